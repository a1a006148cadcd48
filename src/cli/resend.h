/* SPDX-License-Identifier: Apache-2.0 */
/* Delivered messages that were kept: which are to be sent again, and how they become messages anew (cli/requeue.h). The
 * kept ones stay kept. */
#ifndef SL_CLI_RESEND_H
#define SL_CLI_RESEND_H

#include "cli/requeue.h"
#include "core/arena.h"
#include "core/keymap.h"

typedef struct sl_resend_filter {
    sl_str topic, prefix; /* the topic, or how it begins */
    sl_str key;
    int64_t since_us,
        until_us;   /* delivered no longer ago than, no later than that long ago; 0: whenever */
} sl_resend_filter; /* absent: anything */

typedef struct sl_resend_found {
    sl_refs refs;
    sl_keymap keys; /* and how many messages of each */
    size_t keyless; /* messages without one */
    sl_arena arena;
} sl_resend_found; /* zero-initialise */

/* Both append, and then sort by the old id. Ids of which nothing is kept are left out. */
SL_CHECK sl_rc sl_resend_find(sl_resend_found *out, sl_db *db, const sl_resend_filter *f,
                              sl_err *err);
SL_CHECK sl_rc sl_resend_pick(sl_resend_found *out, sl_db *db, const int64_t *ids, size_t n,
                              sl_err *err);
/* Is anything of this message among them? */
bool sl_resend_has(const sl_resend_found *found, int64_t id);
void sl_resend_found_fini(sl_resend_found *found);

extern const sl_requeue_how sl_resend_how;

#endif
