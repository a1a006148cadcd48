/* SPDX-License-Identifier: Apache-2.0 */
/* Pushing on any connection, ours or the caller's. */
#ifndef SL_LIB_PUSH_H
#define SL_LIB_PUSH_H

#include "db/db.h"

/* On a connection of ours each chunk is a transaction of its own. */
SL_CHECK sl_rc sl_push_db(sl_db *db, const sl_draft *drafts, size_t count, sl_pushed *out,
                          sl_err *err);

#endif
