/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers that commit messages at a rate together, each in a thread with a session of its own, and what they have committed. The
 * database draws the ids, inside of the transactions, as for any producer: what nodes know about late commits rests on that. So it is
 * written down which id was whose.
 *
 * A rate that is too high is no failure: each goes on as fast as it can, in transactions of a bounded size, until the time is over.
 */
#ifndef SL_BENCH_PRODUCERS_H
#define SL_BENCH_PRODUCERS_H

#include "bench/box.h"
#include "bench/pace.h"

/* By id, from first_id on. */
typedef struct sl_made {
    int64_t first_id;
    int64_t count; /* that were committed; none is missing in between */
    int64_t room;
    int64_t *at_ns; /* when the answer to its COMMIT was there */
    int32_t *key;
} sl_made;

typedef struct sl_producers {
    sl_pace pace; /* began_ns is set when they begin */
    sl_made made; /* to be read when they have ended */
    struct sl_producer *each;
    struct sl_producers_shared *shared;
} sl_producers; /* zero-initialise, then fill in the pace */

/* `fill` says what messages look like. */
SL_CHECK sl_rc sl_producers_start(sl_producers *p, sl_box *box, const sl_fill *fill,
                                  sl_err *err);
bool sl_producers_work(const sl_producers *p); /* is one still at it? */
/* Until all have ended; at once, if `now`. Says why one has failed. */
SL_CHECK sl_rc sl_producers_end(sl_producers *p, bool now, sl_err *err);
void sl_producers_fini(sl_producers *p);

#endif
