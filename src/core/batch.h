/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and the batch that owns them. All bytes of a batch's messages live in its arena, bounded
 * by `batch_bytes`; everyone else borrows them until sl_batch_reset. A verdict is given exactly
 * once, by sl_msg_settle; a pull alone may change its mind, with sl_msg_unsettle.
 */
#ifndef SL_CORE_BATCH_H
#define SL_CORE_BATCH_H

#include "core/arena.h"

#include <sluice/sluice.h>

typedef struct sl_batch sl_batch;

#define SL_FOREVER INT64_MAX /* until an operator says otherwise: parked */

struct sl_msg {
    int64_t id;
    int64_t epoch;
    int64_t lane;       /* with an ordered claim */
    bool held;          /* the same: it stood behind another, or waited, before it was taken */
    int64_t created_us; /* Unix time */
    bool last;          /* the same: of its key in this claim */
    int32_t attempt;    /* 1 at the first delivery */
    int32_t route;      /* which of the node's; -1: none wants it */
    bool counted;       /* this attempt is in the table already */
    bool untried;       /* of SL_RETRY: there was no attempt, or none that is held against it */
    bool blameless;     /* of SL_UNKNOWN: the sink as a whole gave no answer */
    bool
        consumed; /* at most once: it is no longer in the table, and never sent again by itself */
    bool handed; /* the sink has, or had, it */
    bool buried; /* of SL_DEAD: by decision of a program, whatever the policy */
    sl_verdict verdict;
    int64_t
        delay_ns; /* of SL_RETRY: the sink's wish, or -1 for the relay's own growing delay, or SL_FOREVER */
    sl_str topic;
    sl_str key; /* absent: no order wanted */
    sl_str type;
    sl_str content_type;
    sl_str headers; /* absent, or a JSON object */
    sl_str payload;
    sl_str reason; /* of any verdict but SL_SENT: why, for the operator */
};

struct sl_batch {
    sl_msg *msgs; /* in the order of their ids */
    size_t count;
    size_t cap;
    size_t settled;
    sl_arena arena;
};

void sl_batch_init(sl_batch *b);
void sl_batch_fini(sl_batch *b);
void sl_batch_reset(sl_batch *b);

/* Appends a message, zeroed but for its verdict and delay. The pointer is good until the next
 * call. */
sl_msg *sl_batch_add(sl_batch *b);
/* UPDATE ... RETURNING promises no order. */
void sl_batch_sort(sl_batch *b);

/* Gives a message its verdict; asserts that it had none. The reason is copied. */
void sl_msg_settle(sl_batch *b, sl_msg *m, sl_verdict v, sl_str reason);
void sl_msg_unsettle(sl_batch *b, sl_msg *m);
/* Every message that still has no verdict gets this one. */
void sl_batch_settle_rest(sl_batch *b, sl_verdict v, sl_str reason);
size_t sl_batch_count_of(const sl_batch *b, sl_verdict v);

#endif
