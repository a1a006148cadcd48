/* SPDX-License-Identifier: Apache-2.0 */
/* A full table until it is empty, and a bare loop of SQL that empties the same one, in turns. */
#include "bench/scenes.h"

#include "claim/claim.h"
#include "core/mem.h"

enum { ROUNDS = 3, ROUNDS_MAX = 99 };

typedef struct way {
    const char *strategy, *hold;
} way;

static const way ways[] = {
    { "lanes", NULL },          { "guard", NULL },
    { "advisory", NULL },       { "skip-locked", "transaction" },
    { "skip-locked", "lease" },
};

static int by_ratio(const void *a, const void *b)
{
    const sl_bench_row *x = a;
    const sl_bench_row *y = b;
    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

/* Who goes first alternates: what the first leaves behind, a warm cache or a full log, hurts both alike. */
static sl_rc one_round(sl_bench *b, const way *w, int64_t workers, bool ceiling_first,
                       sl_bench_row *row, sl_err *err)
{
    sl_team t = { .bench = b,
                  .fill = sl_bench_fill(b, 0),
                  .plan = { .strategy = w->strategy, .hold = w->hold, .workers = workers } };
    sl_rc rc = SL_OK;
    if (ceiling_first)
        rc = sl_bench_ceiling(b, &t, &row->other, err);
    if (rc == SL_OK)
        rc = sl_bench_drain(b, &t, row, err);
    sl_team_fini(&t);
    if (rc == SL_OK && !ceiling_first)
        rc = sl_bench_ceiling(b, &t, &row->other, err);
    row->ratio = rc == SL_OK ? row->rate / row->other : 0;
    return rc;
}

/* The round in the middle, whole: figures of one run belong together. */
static sl_rc measure(sl_bench *b, const way *w, int64_t workers, sl_err *err)
{
    int64_t rounds = b->wish.rounds ? b->wish.rounds : ROUNDS;
    sl_bench_row rows[ROUNDS_MAX];
    sl_rc rc = SL_OK;
    for (int64_t i = 0; rc == SL_OK && i < rounds; i++) {
        rows[i] = sl_bench_row_of("%s%s%s%s, %lld worker%s", w->strategy,
                                  b->box.names.rotated ? ", rotated" : "", w->hold ? " by " : "",
                                  w->hold ? w->hold : "", (long long)workers,
                                  workers == 1 ? "" : "s");
        b->say(b->ctx, rows[i].name);
        rc = one_round(b, w, workers, i % 2 == 0, &rows[i], err);
    }
    if (rc != SL_OK)
        return rc;
    qsort(rows, (size_t)rounds, sizeof *rows, by_ratio);
    b->row(b->ctx, &rows[rounds / 2]);
    return SL_OK;
}

static bool is_wanted(const sl_bench *b, const way *w)
{
    const char *hold = b->settings->hold == SL_HOLD_LEASE ? "lease" : "transaction";
    if (b->box.names.rotated && strcmp(w->strategy, "lanes") != 0)
        return false; /* the others cannot share it */
    if (sl_settings_given(b->settings, "strategy") &&
        strcmp(w->strategy, b->settings->strategy) != 0)
        return false;
    return !w->hold || !sl_settings_given(b->settings, "hold") || !strcmp(w->hold, hold);
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    int64_t most = sl_box_is_postgres(&b->box) ? 8 : 1; /* a file has one writer */
    bool given = sl_settings_given(b->settings, "workers");
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < sizeof ways / sizeof *ways; i++) {
        if (!is_wanted(b, &ways[i]))
            continue;
        if (given)
            rc = measure(b, &ways[i], b->settings->workers, err);
        for (int64_t workers = 1; !given && rc == SL_OK && workers <= most; workers *= 2)
            rc = measure(b, &ways[i], workers, err);
    }
    return rc;
}

const sl_scene sl_scene_drain = {
    .name = "drain",
    .other = "ceiling",
    .run = run,
};
