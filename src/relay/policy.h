/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a message that was not delivered. */
#ifndef SL_RELAY_POLICY_H
#define SL_RELAY_POLICY_H

#include "core/batch.h"

typedef enum sl_on_failure {
    SL_BLOCK, /* keep trying, at the longest delay; the key waits */
    SL_PARK,  /* stop; the key waits for the operator */
    SL_SKIP   /* a dead letter; the key goes on */
} sl_on_failure;

typedef struct sl_policy {
    sl_on_failure on_failure;
    int64_t max_attempts;
    int64_t retry_base_ns; /* delay after the first failure; doubles */
    int64_t retry_max_ns;
} sl_policy;

/* Given what the sink said of it: does the key wait for this message? */
bool sl_policy_waits(const sl_policy *p, const sl_msg *m);

/* Before the send: were its attempts used up by sends that never ended, since each of them took the program
 * with it? Then it has its verdict, without another one. */
bool sl_policy_spent(const sl_policy *p, sl_batch *b, sl_msg *m);

/* After the send: makes of the sink's verdict what is written. */
void sl_policy_judge(const sl_policy *p, sl_batch *b, sl_msg *m);

#endif
