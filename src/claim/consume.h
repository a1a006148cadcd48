/* SPDX-License-Identifier: Apache-2.0 */
/* At most once: messages move out of the table, into the list of what may have been sent, before the first byte
 * leaves. What all strategies share of it. */
#ifndef SL_CLAIM_CONSUME_H
#define SL_CLAIM_CONSUME_H

#include "claim/claim.h"
#include "claim/verdicts.h"
#include "db/db.h"

/* The messages that are to be consumed: ids, epochs, and earlier attempts. */
void sl_group_consumed(sl_group *g, sl_batch *b);

/* Runs its statements on nothing. */
SL_CHECK sl_rc sl_consume_rehearse(sl_db *db, sl_err *err);
/* And the one that keeps what was delivered so. */
SL_CHECK sl_rc sl_consume_rehearse_keep(sl_db *db, sl_err *err);
/* The worker begins anew: what it consumed and did not settle, since the database went away, is nobody's. */
SL_CHECK sl_rc sl_consume_begin(sl_db *db, const sl_claim_conf *conf, sl_err *err);

#endif
