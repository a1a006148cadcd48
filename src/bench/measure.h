/* SPDX-License-Identifier: Apache-2.0 */
/* One stretch of work and its figures: what every scenario is made of. */
#ifndef SL_BENCH_MEASURE_H
#define SL_BENCH_MEASURE_H

#include "bench/bench.h"
#include "bench/nodes.h"
#include "bench/watched.h"

enum { SL_BENCH_NODES = 8 };

/* What runs, and what it is watched by. */
typedef struct sl_team {
    sl_bench *bench;
    sl_node_plan plan;
    sl_fill fill; /* of what is measured */
    int64_t delay_ns;
    int64_t nodes; /* processes */
    sl_watched watched;
    sl_bench_node node[SL_BENCH_NODES];
    sl_box_facts before;
    double server_cpu;
} sl_team; /* zero-initialise, then fill in what is above `watched` */

sl_fill sl_bench_fill(const sl_bench *b, int64_t rows);
/* The strategy that was asked for, or lanes. */
const char *sl_bench_strategy(const sl_bench *b);
bool sl_bench_is_ordered(const char *strategy);
/* For a sink that takes a millisecond for each: 100, if none was asked for. With 500 a batch would take half a second, and the
 * last ones would be those of a few workers, while the others have none. */
int64_t sl_bench_slow_batch(const sl_bench *b);
sl_bench_row sl_bench_row_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Of rounds of the same, one at least: that with the rate in the middle. They are sorted by it. */
const sl_bench_row *sl_bench_middle(sl_bench_row *rounds, size_t n);

/* Watches so many messages from the next id on, notes what the server has counted, and starts the nodes. */
SL_CHECK sl_rc sl_team_start(sl_team *t, int64_t watched, sl_err *err);
/* Until that many messages were delivered; 0: until all nodes have ended. */
SL_CHECK sl_rc sl_team_wait(sl_team *t, int64_t delivered, sl_err *err);
/* Until nothing that could go is left, and all is settled. */
SL_CHECK sl_rc sl_team_wait_settled(sl_team *t, int64_t left, sl_err *err);
/* For so long. */
SL_CHECK sl_rc sl_team_watch(sl_team *t, int64_t ns, sl_err *err);
/* TERM, and until all have ended. */
SL_CHECK sl_rc sl_team_stop(sl_team *t, sl_err *err);
/* What they used, for each of so many messages. After they have ended. */
SL_CHECK sl_rc sl_team_costs(sl_team *t, int64_t messages, sl_bench_row *row, sl_err *err);
void sl_team_fini(sl_team *t);

/* Messages that are added while the nodes are paused, and the rate of the first four fifths of them. */
SL_CHECK sl_rc sl_team_feed(sl_team *t, int64_t rows, int64_t left, double *rate, sl_err *err);

/* A table that is filled and at rest. */
SL_CHECK sl_rc sl_bench_prepare(sl_bench *b, const sl_fill *fill, sl_err *err);
/* From a table that is full to one that is empty. The row has everything but what it is compared with. */
SL_CHECK sl_rc sl_bench_drain(sl_bench *b, sl_team *t, sl_bench_row *row, sl_err *err);
/* What the database alone allows for that: messages/s. */
SL_CHECK sl_rc sl_bench_ceiling(sl_bench *b, const sl_team *t, double *rate, sl_err *err);

#endif
