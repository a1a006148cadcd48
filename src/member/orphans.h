/* SPDX-License-Identifier: Apache-2.0 */
/* At most once: what was consumed and whose node, or worker, ended before the answer. Nobody knows whether it was sent,
 * so it becomes a dead letter that may have been delivered. What a journal knows more of is left to it. */
#ifndef SL_MEMBER_ORPHANS_H
#define SL_MEMBER_ORPHANS_H

#include "db/db.h"

/* Of nodes that are gone; and of the worker of this name, if there is one, which begins anew. *listed: so many. */
SL_CHECK sl_rc sl_orphans_list(sl_db *db, const char *worker, int64_t *listed, sl_err *err);
/* How many there are of nodes that are gone. */
SL_CHECK sl_rc sl_orphans_count(sl_db *db, int64_t *count, sl_err *err);
/* May this role count them, and list them? */
SL_CHECK sl_rc sl_orphans_may(sl_db *db, bool *count, bool *list, sl_err *err);

#endif
