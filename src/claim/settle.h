/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the verdicts of a batch, for all strategies that name a claim by (id, epoch): one
 * statement per kind of verdict, all in one transaction and one round trip. */
#ifndef SL_CLAIM_SETTLE_H
#define SL_CLAIM_SETTLE_H

#include "claim/claim.h"

typedef struct sl_settle_how {
    bool in_transaction;   /* one is open already: only commit it */
    bool attempt_counted;  /* the claim has counted the attempt */
    bool keep;             /* delivered messages */
    int64_t retry_base_ns; /* growing delay of messages that ask for no other */
    int64_t retry_max_ns;
} sl_settle_how;

SL_CHECK sl_rc sl_settle_write(sl_db *db, sl_batch *b, const sl_settle_how *how, size_t *lost,
                               sl_err *err);

/* Runs every settling statement on nothing: prepares it, and shows whether schema and grants
 * allow it. */
SL_CHECK sl_rc sl_settle_rehearse(sl_db *db, bool keep, bool consumes, sl_err *err);

#endif
