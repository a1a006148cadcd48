/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes deliver, message by message: the file that their sinks write (sink/tap.h), as the bench sees it. */
#ifndef SL_BENCH_WATCHED_H
#define SL_BENCH_WATCHED_H

#include "bench/box.h"
#include "sink/tap.h"

typedef struct sl_watched {
    char *path;
    sl_tap *tap;
    size_t bytes;
} sl_watched; /* zero-initialise */

/* For messages first_id .. first_id + count - 1. */
SL_CHECK sl_rc sl_watched_make(sl_watched *w, int64_t first_id, int64_t count, int64_t delay_ns,
                               sl_err *err);
void sl_watched_remove(sl_watched *w);

/* Deliveries so far, each message counted once. */
int64_t sl_watched_count(const sl_watched *w);

/* Is what was delivered of ids `from` to `upto` right? All of it, if `all`, each once, those of a key in their order if `ordered`.
 * SL_OPERATOR says what is not. */
SL_CHECK sl_rc sl_watched_check(const sl_watched *w, const sl_fill *fill, int64_t from,
                                int64_t upto, bool all, bool ordered, sl_err *err);

/* Messages per second of those with ids `from` to `upto`, or those of them that `pick` wants: from the first delivery to the one that
 * is that share of the way, which should be the first of a batch: each counts with the pause before the next. */
double sl_watched_rate(const sl_watched *w, int64_t from, int64_t upto, double share,
                       bool (*pick)(void *ctx, int64_t id), void *ctx);

int sl_by_double(const void *a, const void *b);
/* Of sorted values; 0.99 is p99. */
double sl_percentile(const double *sorted, size_t n, double p);

#endif
