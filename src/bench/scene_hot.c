/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half of all messages are of one key, which can be delivered one at a time only. What do the others have of that? The sink takes a
 * millisecond for each, as with less there would be nothing to share. Counted is how fast the others come, until nine
 * tenths of them are there: a few share a lane with the hot key, and wait for it.
 */
#include "bench/scenes.h"
#include "core/clock.h"

enum { ROWS = 10000, WORKERS = 8 };

static bool is_other(void *ctx, int64_t id)
{
    const sl_fill *f = ctx;
    return !f->hot || id % f->hot != 0;
}

static sl_rc measure(sl_bench *b, int64_t hot, sl_bench_row *row, sl_err *err)
{
    sl_team t = { .bench = b,
                  .fill = sl_bench_fill(b, ROWS),
                  .plan = { .strategy = sl_bench_strategy(b),
                            .batch = sl_bench_slow_batch(b),
                            .workers = sl_settings_given(b->settings, "workers")
                                           ? b->settings->workers
                                           : WORKERS },
                  .delay_ns = SL_MS };
    t.fill.hot = hot;
    t.fill.rows *= hot ? 2 : 1;
    b->say(b->ctx, row->name);
    sl_rc rc = sl_bench_drain(b, &t, row, err);
    if (rc == SL_OK)
        row->rate = sl_watched_rate(&t.watched, b->box.last_id - t.fill.rows + 1,
                                    b->box.last_id, 0.9, is_other, &t.fill);
    sl_team_fini(&t);
    return rc;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    sl_bench_row without = sl_bench_row_of("no hot key");
    sl_bench_row with = sl_bench_row_of("other keys, beside a hot one");
    sl_rc rc = measure(b, 0, &without, err);
    if (rc != SL_OK)
        return rc;
    without.other = without.rate;
    without.ratio = 1;
    b->row(b->ctx, &without);
    rc = measure(b, 2, &with, err);
    with.other = without.rate;
    with.ratio = with.rate / without.rate;
    if (rc == SL_OK)
        b->row(b->ctx, &with);
    return rc;
}

const sl_scene sl_scene_hot = {
    .name = "hot",
    .other = "without",
    .run = run,
};
