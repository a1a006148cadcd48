/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a batch sorted by verdict, as the arrays that the settling statements take. */
#ifndef SL_CLAIM_VERDICTS_H
#define SL_CLAIM_VERDICTS_H

#include "core/batch.h"

typedef struct sl_group {
    size_t n;
    int64_t *ids, *epochs, *lanes;
    int64_t *delays_us; /* of `retry` only; SL_FOREVER / 1000: for ever */
    int64_t *counts;    /* what to add to the number of attempts */
    sl_str *reasons;    /* not of `sent` */
} sl_group;

typedef struct sl_groups {
    sl_group sent;
    sl_group retry; /* unknown ones too: at least once, it may arrive twice, never not at all */
    sl_group dead;
    sl_group released;
    sl_group counted; /* of those, whose attempt was counted before it was to be made */
    sl_group gone;    /* consumed, and sent */
    sl_group left;    /* consumed, and nobody knows, or not delivered: it stays in the list */
    sl_group back;    /* consumed, and never handed over */
} sl_groups;

/* Asserts that every message has its verdict. Memory is the batch's own. */
void sl_groups_make(sl_groups *g, sl_batch *b, int64_t retry_base_ns, int64_t retry_max_ns);

#endif
