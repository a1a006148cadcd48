/* SPDX-License-Identifier: Apache-2.0 */
/* A full table until it is empty, and a bare loop of SQL that empties the same one, in turns. */
#include "bench/scenes.h"

#include "claim/claim.h"
#include "core/mem.h"

typedef struct way {
    const char *strategy, *hold;
} way;

static const way ways[] = {
    { "lanes", NULL },          { "guard", NULL },
    { "advisory", NULL },       { "skip-locked", "transaction" },
    { "skip-locked", "lease" },
};

/* 1 to 8 workers, or as many as were asked for. */
enum { COUNTS = 4 };

typedef struct counts {
    int64_t workers[COUNTS];
    size_t n;
} counts;

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

static sl_bench_row row_of(const sl_bench *b, const way *w, int64_t workers)
{
    return sl_bench_row_of("%s%s%s%s, %lld worker%s", w->strategy,
                           b->box.names.rotated ? ", rotated" : "", w->hold ? " by " : "",
                           w->hold ? w->hold : "", (long long)workers, workers == 1 ? "" : "s");
}

/* Of each number of workers the round in the middle, whole: figures of one run belong together. They take turns, so
 * that a machine which is slower for a minute is so for all: what a second worker brings is asked, too. */
static sl_rc measure(sl_bench *b, const way *w, const counts *c, sl_err *err)
{
    size_t rounds = (size_t)(b->wish.rounds ? b->wish.rounds : SL_BENCH_ROUNDS);
    sl_bench_row rows[COUNTS][SL_BENCH_ROUNDS_MAX];
    sl_rc rc = SL_OK;
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; rc == SL_OK && k < c->n; k++) {
            rows[k][i] = row_of(b, w, c->workers[k]);
            b->say(b->ctx, rows[k][i].name);
            rc = one_round(b, w, c->workers[k], i % 2 == 0, &rows[k][i], err);
        }
    for (size_t k = 0; rc == SL_OK && k < c->n; k++)
        b->row(b->ctx, sl_bench_middle(rows[k], rounds));
    return rc;
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

static counts counts_of(const sl_bench *b)
{
    if (sl_settings_given(b->settings, "workers"))
        return (counts){ { b->settings->workers }, 1 };
    if (!sl_box_is_postgres(&b->box))
        return (counts){ { 1 }, 1 }; /* a file has one writer */
    return (counts){ { 1, 2, 4, 8 }, COUNTS };
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    counts c = counts_of(b);
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < sizeof ways / sizeof *ways; i++)
        if (is_wanted(b, &ways[i]))
            rc = measure(b, &ways[i], &c, err);
    return rc;
}

const sl_scene sl_scene_drain = {
    .name = "drain",
    .other = "ceiling",
    .run = run,
};
