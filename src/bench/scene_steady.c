/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer that commits at a steady rate, and how long its messages take: from the answer to the COMMIT until the sink has confirmed. A
 * message that was there before the answer counts as 0. The producer commits each two milliseconds what is due then; one that cannot keep
 * up makes the run a failure, since its figures would be those of another rate. The time is told in tenths, so that a growth shows.
 */
#include "bench/scenes.h"
#include "core/clock.h"
#include "core/mem.h"

#include <time.h>

enum { SECONDS = 30, SLICES = 10, BEHIND_SECONDS = 3 };
#define TICK_NS (2 * SL_MS)

typedef struct commit {
    int64_t last_id, at_ns;
} commit;

typedef struct producer {
    commit *commits;
    size_t count;
    int64_t first_id, began_ns, rate, rows;
} producer;

static void sleep_until(int64_t at_ns)
{
    int64_t ns = at_ns - sl_now_ns();
    if (ns > 0)
        nanosleep(&(struct timespec){ .tv_sec = ns / SL_SEC, .tv_nsec = ns % SL_SEC }, NULL);
}

static sl_rc produce(sl_team *t, producer *p, sl_err *err)
{
    sl_bench *b = t->bench;
    sl_rc rc = SL_OK;
    int64_t looked_ns = p->began_ns = sl_now_ns();
    p->first_id = b->box.last_id + 1;
    for (int64_t done = 0; rc == SL_OK && done < p->rows;) {
        int64_t now_ns = sl_now_ns();
        int64_t due = (now_ns - p->began_ns) / 1000 * p->rate / 1000000 + 1;
        sl_fill fill = t->fill;
        fill.rows = (due < p->rows ? due : p->rows) - done;
        if (fill.rows > 0)
            rc = sl_box_fill(&b->box, &fill, NULL, NULL, err);
        done += fill.rows > 0 ? fill.rows : 0;
        p->commits[p->count++] = (commit){ b->box.last_id, sl_now_ns() };
        if (fill.rows > BEHIND_SECONDS * p->rate)
            rc =
                sl_fail(err, SL_OPERATOR,
                        "the producer cannot commit %lld messages/s here\nhint: a lower --rate",
                        (long long)p->rate);
        if (rc == SL_OK && sl_now_ns() - looked_ns > 100 * SL_MS) {
            looked_ns = sl_now_ns();
            b->progress(b->ctx, sl_watched_count(&t->watched), p->rows);
            rc = sl_team_watch(t, 0, err);
        }
        sleep_until(now_ns + TICK_NS);
    }
    return rc;
}

/* ---- Figures ---- */

typedef struct slice {
    int64_t from_ns, upto_ns;
} slice;

/* Milliseconds of the messages of the commits in that time, sorted. */
static size_t latencies(const sl_watched *w, const producer *p, slice s, double *out)
{
    size_t n = 0;
    int64_t id = p->first_id;
    for (size_t i = 0; i < p->count; i++)
        for (; id <= p->commits[i].last_id; id++) {
            int64_t at_ns = p->commits[i].at_ns;
            int64_t got_ns = w->tap->messages[id - w->tap->first_id].at_ns;
            if (at_ns >= s.from_ns && at_ns < s.upto_ns)
                out[n++] = got_ns > at_ns ? (double)(got_ns - at_ns) / 1e6 : 0;
        }
    qsort(out, n, sizeof *out, sl_by_double);
    return n;
}

static void tell(const sl_team *t, const producer *p, slice s, sl_bench_row *row, double *room)
{
    size_t n = latencies(&t->watched, p, s, room);
    row->messages = (int64_t)n;
    row->rate = (double)n * 1e9 / (double)(s.upto_ns - s.from_ns);
    row->other = (double)p->rate;
    row->ratio = row->rate / row->other;
    row->p50 = sl_percentile(room, n, 0.5);
    row->p99 = sl_percentile(room, n, 0.99);
    row->p999 = sl_percentile(room, n, 0.999);
    t->bench->row(t->bench->ctx, row);
}

static void tell_all(sl_team *t, const producer *p, sl_bench_row *all)
{
    double *room = sl_alloc((size_t)p->rows * sizeof *room);
    int64_t whole_ns = p->commits[p->count - 1].at_ns + 1 - p->began_ns;
    for (int64_t i = 0; i < SLICES; i++) {
        slice s = { p->began_ns + whole_ns * i / SLICES,
                    p->began_ns + whole_ns * (i + 1) / SLICES };
        sl_bench_row row =
            sl_bench_row_of("after %.0f s", (double)(s.from_ns - p->began_ns) / 1e9);
        tell(t, p, s, &row, room);
    }
    tell(t, p, (slice){ p->began_ns, p->began_ns + whole_ns }, all, room);
    free(room);
}

/* ---- The rate ---- */

/* Half of what a drain reaches. */
static sl_rc choose_rate(sl_bench *b, const sl_node_plan *plan, int64_t *rate, sl_err *err)
{
    sl_bench_row row = sl_bench_row_of("a drain, for its rate");
    sl_team t = { .bench = b, .fill = sl_bench_fill(b, 0), .plan = *plan };
    if (b->wish.rate) {
        *rate = b->wish.rate;
        return SL_OK;
    }
    b->say(b->ctx, row.name);
    sl_rc rc = sl_bench_drain(b, &t, &row, err);
    sl_team_fini(&t);
    *rate = (int64_t)(row.rate / 2);
    if (rc == SL_OK)
        b->row(b->ctx, &row);
    return rc;
}

static sl_rc deliver(sl_team *t, producer *p, sl_bench_row *row, sl_err *err)
{
    sl_rc rc = sl_box_empty(&t->bench->box, err);
    if (rc == SL_OK)
        rc = sl_team_start(t, p->rows, err);
    if (rc == SL_OK)
        rc = produce(t, p, err);
    if (rc == SL_OK)
        rc = sl_team_wait(t, p->rows, err);
    if (rc == SL_OK)
        rc = sl_team_wait_settled(t, 0, err);
    if (rc == SL_OK)
        rc = sl_team_stop(t, err);
    if (rc == SL_OK)
        rc = sl_watched_check(&t->watched, &t->fill, p->first_id, t->bench->box.last_id, true,
                              sl_bench_is_ordered(t->plan.strategy), err);
    return rc == SL_OK ? sl_team_costs(t, p->rows, row, err) : rc;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    int64_t seconds = b->wish.seconds ? b->wish.seconds : SECONDS;
    sl_node_plan plan = { .strategy = sl_bench_strategy(b),
                          .workers = sl_settings_given(b->settings, "workers")
                                         ? b->settings->workers
                                         : 1 };
    producer p = { 0 };
    sl_rc rc = choose_rate(b, &plan, &p.rate, err);
    if (rc != SL_OK)
        return rc;
    p.rows = p.rate * seconds;
    p.commits = sl_alloc((size_t)(seconds * SL_SEC / TICK_NS * 2 + 16) * sizeof *p.commits);
    sl_bench_row row =
        sl_bench_row_of("%lld/s for %lld s", (long long)p.rate, (long long)seconds);
    sl_team t = { .bench = b, .fill = sl_bench_fill(b, 1), .plan = plan };
    t.fill.rows = p.rows;
    b->say(b->ctx, row.name);
    rc = deliver(&t, &p, &row, err);
    if (rc == SL_OK)
        tell_all(&t, &p, &row);
    sl_team_fini(&t);
    free(p.commits);
    return rc;
}

const sl_scene sl_scene_steady = {
    .name = "steady",
    .other = "asked for",
    .run = run,
};
