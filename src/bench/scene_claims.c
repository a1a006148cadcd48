/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a claim costs when much waits, when much is blocked, and beside an old snapshot: the rate of a running node in that
 * state against the rate of the same node without it. Only stretches of a run count, from the first delivery on: no
 * starting, no connecting, no waiting. Messages are added while the node is paused; the last fifth of them, where batches
 * are no longer full, is not counted.
 */
#include "bench/scenes.h"
#include "core/clock.h"

enum {
    STRETCH = 100000,
    SMALL = 10000,
    SMALL_SHARE = 10,
    BLOCKED_KEYS = 20,
    BEFORE = 5,
    COUNTED = 5
};
#define LARGEST INT64_C(10000000)
#define ASIDE_NS (120 * SL_SEC)

static sl_team team_of(sl_bench *b)
{
    int64_t workers = sl_settings_given(b->settings, "workers") ? b->settings->workers : 1;
    return (sl_team){ .bench = b,
                      .fill = sl_bench_fill(b, 0),
                      .plan = { .strategy = sl_bench_strategy(b), .workers = workers } };
}

static int64_t stretch_of(const sl_bench *b)
{
    return b->wish.rows ? b->wish.rows : STRETCH;
}

/* The costs of the whole life of the node, for each message that it delivered. */
static sl_rc finish(sl_team *t, sl_bench_row *row, sl_err *err)
{
    sl_rc rc = sl_team_stop(t, err);
    if (rc == SL_OK)
        rc = sl_team_costs(t, sl_watched_count(&t->watched), row, err);
    return rc;
}

static void tell(sl_bench *b, sl_bench_row *row, double rate, double with_which)
{
    row->rate = rate;
    row->other = with_which;
    row->ratio = rate / with_which;
    b->row(b->ctx, row);
}

typedef sl_rc (*measure_fn)(sl_bench *b, bool with, double *rate, sl_bench_row *row,
                            sl_err *err);

/* Without it, then with it, then without it again: a machine that is slower for a while is so for both. */
static sl_rc compare(sl_bench *b, measure_fn measure, sl_bench_row rows[2], sl_err *err)
{
    double rates[] = { 1, 1, 1 };
    sl_bench_row again = rows[0];
    sl_bench_row *each[] = { &rows[0], &rows[1], &again };
    sl_rc rc = SL_OK;
    for (int i = 0; rc == SL_OK && i < 3; i++) {
        b->say(b->ctx, each[i]->name);
        rc = measure(b, i == 1, &rates[i], each[i], err);
    }
    double without = (rates[0] + rates[2]) / 2;
    if (rc == SL_OK)
        tell(b, &rows[0], without, without);
    if (rc == SL_OK)
        tell(b, &rows[1], rates[1], without);
    return rc;
}

/* ---- backlog ---- */

/* So many stretches of `rows` each, one after the other, while `others` are there: the rate of all of them. One alone takes
 * a fraction of a second, and tells more of what the disk or a vacuum does meanwhile. */
static sl_rc feed_times(sl_team *t, int times, int64_t rows, int64_t others, double *rate,
                        sl_err *err)
{
    double sum = 0;
    sl_rc rc = SL_OK;
    for (int i = 0; rc == SL_OK && i < times; i++) {
        double one = 1;
        rc = sl_team_feed(t, rows, others, &one, err);
        sum += 1 / one;
    }
    *rate = times / sum;
    return rc;
}

/* Many times a few. */
static sl_rc feed_small(sl_bench *b, int64_t few, double *rate, sl_bench_row *row, sl_err *err)
{
    enum { TIMES = 25 };
    sl_team t = team_of(b);
    sl_rc rc = sl_box_empty(&b->box, err);
    if (rc == SL_OK)
        rc = sl_team_start(&t, (TIMES + 1) * few, err);
    if (rc == SL_OK)
        rc = sl_team_feed(&t, few, 0, NULL, err); /* it has just begun, and has no plans yet */
    if (rc == SL_OK)
        rc = feed_times(&t, TIMES, few, 0, rate, err);
    row->messages = few;
    if (rc == SL_OK)
        rc = finish(&t, row, err);
    sl_team_fini(&t);
    return rc;
}

/* The first of many. A node that is paused as long as such a table takes to fill would lose its lanes: it starts when it
 * is full. */
static sl_rc begin_large(sl_bench *b, int64_t waiting, double *rate, sl_bench_row *row,
                         sl_err *err)
{
    sl_team t = team_of(b);
    t.fill.rows = waiting;
    int64_t first = b->box.last_id + 1;
    int64_t most = 30 * (int64_t)STRETCH; /* of ten million: two vacuums fall into that */
    int64_t counted = waiting < most ? waiting : most;
    sl_rc rc = sl_bench_prepare(b, &t.fill, err);
    if (rc == SL_OK)
        rc = sl_team_start(&t, 0, err);
    if (rc == SL_OK)
        rc = sl_team_wait(&t, counted, err);
    if (rc == SL_OK)
        rc = finish(&t, row, err);
    if (rc == SL_OK)
        rc = sl_watched_check(&t.watched, &t.fill, first, b->box.last_id, false,
                              sl_bench_is_ordered(t.plan.strategy), err);
    if (rc == SL_OK)
        *rate = sl_watched_rate(&t.watched, first, b->box.last_id,
                                0.8 * (double)counted / (double)waiting, NULL, NULL);
    row->messages = waiting;
    sl_team_fini(&t);
    return rc;
}

/* With the mean of the rates right before and right after it: to fill it takes a minute, in which other work may have
 * come to the machine, or gone. */
static sl_rc compare_large(sl_bench *b, int64_t few, int64_t waiting, double *small,
                           sl_err *err)
{
    double rate = 1, after = 1;
    sl_bench_row row = sl_bench_row_of("%lld waiting", (long long)waiting), again = { 0 };
    b->say(b->ctx, row.name);
    sl_rc rc = begin_large(b, waiting, &rate, &row, err);
    if (rc == SL_OK)
        rc = feed_small(b, few, &after, &again, err);
    if (rc == SL_OK)
        tell(b, &row, rate, (*small + after) / 2);
    *small = after;
    return rc;
}

static sl_rc run_backlog(sl_bench *b, sl_err *err)
{
    double small = 1;
    int64_t largest = b->wish.rows ? b->wish.rows : LARGEST;
    int64_t few = largest < SMALL_SHARE * (int64_t)SMALL ? largest / SMALL_SHARE : SMALL;
    sl_bench_row row = sl_bench_row_of("%lld waiting", (long long)few);
    b->say(b->ctx, row.name);
    sl_rc rc = feed_small(b, few, &small, &row, err);
    if (rc == SL_OK)
        tell(b, &row, small, small);
    for (int64_t waiting = SMALL_SHARE * few; rc == SL_OK && waiting <= largest; waiting *= 10)
        rc = compare_large(b, few, waiting, &small, err);
    return rc;
}

const sl_scene sl_scene_backlog = {
    .name = "backlog",
    .other = "few wait",
    .run = run_backlog,
};

/* ---- blocked ---- */

/* Until the node has set aside what is blocked, or has stopped to. */
static sl_rc wait_aside(sl_team *t, int64_t blocked, sl_err *err)
{
    sl_box_left left = { 0 };
    int64_t until_ns = sl_now_ns() + ASIDE_NS;
    sl_rc rc = SL_OK;
    for (int64_t before = -1; rc == SL_OK && sl_now_ns() < until_ns;) {
        rc = sl_box_left_of(&t->bench->box, &left, err);
        if (left.held >= blocked + BLOCKED_KEYS || (before > 0 && before == left.held))
            break;
        before = left.held;
        if (rc == SL_OK)
            rc = sl_team_watch(t, 2 * SL_SEC, err);
    }
    return rc;
}

static sl_rc add_blocked(sl_bench *b, sl_err *err)
{
    sl_rc rc = sl_box_block(&b->box, BLOCKED_KEYS, "blocked:", err);
    return rc == SL_OK ? sl_box_fill(&b->box,
                                     &(sl_fill){ .rows = stretch_of(b),
                                                 .keys = BLOCKED_KEYS,
                                                 .bytes = 200,
                                                 .prefix = "blocked:" },
                                     NULL, NULL, err)
                       : rc;
}

static sl_rc blocked(sl_bench *b, bool with, double *rate, sl_bench_row *row, sl_err *err)
{
    sl_team t = team_of(b);
    int64_t rows = stretch_of(b);
    sl_rc rc = sl_box_empty(&b->box, err);
    if (rc == SL_OK && with)
        rc = add_blocked(b, err);
    if (rc == SL_OK)
        rc = sl_team_start(&t, (1 + COUNTED) * rows, err);
    if (rc == SL_OK && with)
        rc = wait_aside(&t, rows, err);
    int64_t others = with ? rows + BLOCKED_KEYS : 0;
    if (rc == SL_OK)
        rc = sl_team_feed(&t, rows, others, NULL, err);
    if (rc == SL_OK)
        rc = feed_times(&t, COUNTED, rows, others, rate, err);
    row->messages = COUNTED * rows;
    if (rc == SL_OK)
        rc = finish(&t, row, err);
    sl_team_fini(&t);
    return rc;
}

static sl_rc run_blocked(sl_bench *b, sl_err *err)
{
    sl_bench_row rows[] = { sl_bench_row_of("nothing is blocked"),
                            sl_bench_row_of("%lld behind %d failed heads",
                                            (long long)stretch_of(b), BLOCKED_KEYS) };
    return compare(b, blocked, rows, err);
}

const sl_scene sl_scene_blocked = {
    .name = "blocked",
    .other = "without",
    .run = run_blocked,
};

/* ---- snapshot ---- */

static sl_rc hold_snapshot(const sl_box *box, sl_db **out, sl_err *err)
{
    sl_rc rc = sl_box_connect(box, out, err);
    if (rc == SL_OK)
        rc = sl_db_run1(*out, "bench/snapshot", NULL, NULL, NULL, NULL, err);
    if (rc == SL_OK)
        rc = sl_db_run1(*out, "bench/hold", NULL, NULL, NULL, NULL, err);
    return rc;
}

static sl_rc snapshot(sl_bench *b, bool with, double *rate, sl_bench_row *row, sl_err *err)
{
    sl_team t = team_of(b);
    sl_db *other = NULL;
    sl_rc rc = sl_box_empty(&b->box, err);
    if (rc == SL_OK && with)
        rc = hold_snapshot(&b->box, &other, err);
    if (rc == SL_OK)
        rc = sl_team_start(&t, (BEFORE + COUNTED) * stretch_of(b), err);
    double before;
    if (rc == SL_OK)
        rc = feed_times(&t, BEFORE, stretch_of(b), 0, &before, err);
    if (rc == SL_OK)
        rc = feed_times(&t, COUNTED, stretch_of(b), 0, rate, err);
    row->messages = COUNTED * stretch_of(b);
    if (rc == SL_OK)
        rc = finish(&t, row, err);
    sl_team_fini(&t);
    sl_db_close(other);
    return rc;
}

static sl_rc run_snapshot(sl_bench *b, sl_err *err)
{
    sl_bench_row rows[] = { sl_bench_row_of("no other session"),
                            sl_bench_row_of("a snapshot older than %lld messages",
                                            (long long)(BEFORE * stretch_of(b))) };
    return compare(b, snapshot, rows, err);
}

const sl_scene sl_scene_snapshot = {
    .name = "snapshot",
    .other = "without",
    .run = run_snapshot,
    .postgres_only = true,
};
