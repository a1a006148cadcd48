/* SPDX-License-Identifier: Apache-2.0 */
/* More and more processes on one table. */
#include "bench/scenes.h"

static sl_rc measure(sl_bench *b, int64_t nodes, double *one, sl_err *err)
{
    sl_bench_row row = sl_bench_row_of("%lld node%s", (long long)nodes, nodes == 1 ? "" : "s");
    int64_t workers = sl_settings_given(b->settings, "workers") ? b->settings->workers : 1;
    sl_team t = { .bench = b,
                  .fill = sl_bench_fill(b, 0),
                  .nodes = nodes,
                  .plan = { .strategy = sl_bench_strategy(b), .workers = workers } };
    b->say(b->ctx, row.name);
    sl_rc rc = sl_bench_drain(b, &t, &row, err);
    sl_team_fini(&t);
    if (rc != SL_OK)
        return rc;
    *one = nodes == 1 ? row.rate : *one;
    row.other = *one;
    row.ratio = row.rate / *one;
    b->row(b->ctx, &row);
    return SL_OK;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    double one = 1;
    sl_rc rc = SL_OK;
    for (int64_t nodes = 1; rc == SL_OK && nodes <= SL_BENCH_NODES; nodes *= 2)
        rc = measure(b, nodes, &one, err);
    return rc;
}

const sl_scene sl_scene_nodes = {
    .name = "nodes",
    .other = "one node",
    .run = run,
};
