/* SPDX-License-Identifier: Apache-2.0 */
/* The table that is often published of such programs: so many events, a publish that takes a millisecond, more and more
 * processors. Here a processor is a worker. */
#include "bench/ceiling.h"
#include "bench/scenes.h"
#include "core/clock.h"

enum { ROWS = 10000, SLEEPS = 1000 };

static sl_rc measure(sl_bench *b, int64_t workers, double *one, sl_err *err)
{
    sl_bench_row row =
        sl_bench_row_of("%lld worker%s", (long long)workers, workers == 1 ? "" : "s");
    sl_team t = { .bench = b,
                  .fill = sl_bench_fill(b, ROWS),
                  .plan = { .strategy = sl_bench_strategy(b),
                            .workers = workers,
                            .batch = sl_bench_slow_batch(b) },
                  .delay_ns = SL_MS };
    b->say(b->ctx, row.name);
    sl_rc rc = sl_bench_drain(b, &t, &row, err);
    sl_team_fini(&t);
    if (rc != SL_OK)
        return rc;
    row.other = sl_ceiling_sleep(SL_MS, SLEEPS, (int)workers);
    row.ratio = row.rate / row.other;
    *one = workers == 1 ? row.rate : *one;
    if (workers > 1)
        snprintf(row.name, sizeof row.name, "%lld workers, %.1f times one", (long long)workers,
                 row.rate / *one);
    b->row(b->ctx, &row);
    return SL_OK;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    double one = 1;
    sl_rc rc = SL_OK;
    for (int64_t workers = 1; rc == SL_OK && workers <= 8; workers *= 2)
        rc = measure(b, workers, &one, err);
    return rc;
}

const sl_scene sl_scene_processors = {
    .name = "processors",
    .other = "sleeping",
    .run = run,
};
