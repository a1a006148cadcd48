/* SPDX-License-Identifier: Apache-2.0 */
/* What a node costs that has nothing to do: the difference between a short life and a longer one, so that starting and ending do
 * not count. Its figures are for a second, not for a message. */
#include "bench/scenes.h"
#include "core/clock.h"

enum { CALM_SECONDS = 10, SECONDS = 30 };

static sl_rc live(sl_bench *b, int64_t seconds, sl_bench_row *row, sl_err *err)
{
    sl_team t = { .bench = b,
                  .plan = { .strategy = sl_bench_strategy(b),
                            .workers = b->settings->workers } };
    sl_rc rc = sl_box_empty(&b->box, err);
    if (rc == SL_OK)
        rc = sl_team_start(&t, 1, err);
    if (rc == SL_OK)
        rc = sl_team_watch(&t, seconds * SL_SEC, err);
    if (rc == SL_OK)
        rc = sl_team_stop(&t, err);
    if (rc == SL_OK)
        rc = sl_team_costs(&t, 1, row, err);
    sl_team_fini(&t);
    return rc;
}

static double per_second(double longer, double shorter, double seconds)
{
    return longer < 0 || shorter < 0 ? SL_BENCH_NONE : (longer - shorter) / seconds;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    int64_t seconds = b->wish.seconds ? b->wish.seconds : SECONDS;
    sl_bench_row calm = sl_bench_row_of("-");
    sl_bench_row row = sl_bench_row_of("%s, %lld workers, for a second", sl_bench_strategy(b),
                                       (long long)b->settings->workers);
    b->say(b->ctx, row.name);
    sl_rc rc = live(b, CALM_SECONDS, &calm, err);
    if (rc == SL_OK)
        rc = live(b, CALM_SECONDS + seconds, &row, err);
    if (rc != SL_OK)
        return rc;
    double s = (double)seconds;
    row.statements = per_second(row.statements, calm.statements, s);
    row.wal_bytes = per_second(row.wal_bytes, calm.wal_bytes, s);
    row.dead_rows = per_second(row.dead_rows, calm.dead_rows, s);
    /* A million messages were a million times one: it was counted as one. */
    row.node_cpu = per_second(row.node_cpu, calm.node_cpu, s);
    row.db_cpu = per_second(row.db_cpu, calm.db_cpu, s);
    b->row(b->ctx, &row);
    return SL_OK;
}

const sl_scene sl_scene_idle = {
    .name = "idle",
    .other = "-",
    .run = run,
};
