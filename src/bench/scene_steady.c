/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers that commit at a steady rate, and how long their messages take: from the answer to the COMMIT until the sink has confirmed. A
 * message that was there before the answer counts as 0. What cannot be committed at that rate is committed as fast as it can be, and the
 * line says that the rate was not reached: its figures are those of another rate. The time is told in tenths, so that a growth shows.
 */
#include "bench/producers.h"
#include "bench/scenes.h"
#include "core/clock.h"
#include "core/mem.h"

enum { SECONDS = 30, SLICES = 10 };
/* Of the drain that gives the rate: the program's default. Larger batches drain faster, but nobody could commit half of that beside them. */
enum { DRAIN_BATCH = 500 };
/* Before the time begins. A server plans a statement that was just prepared several times. */
enum { WARM_COMMITS = 20, WARM_ROWS = 10, WARM = WARM_COMMITS * WARM_ROWS };
#define LOOK_NS (100 * SL_MS)
/* Of the rate that was asked for; less is another rate. */
#define REACHED 0.99

static sl_rc produce(sl_team *t, sl_producers *p, sl_err *err)
{
    sl_bench *b = t->bench;
    sl_err ended = { 0 };
    sl_rc rc = sl_producers_start(p, &b->box, &t->fill, err);
    while (rc == SL_OK && sl_producers_work(p)) {
        b->progress(b->ctx, sl_watched_count(&t->watched), p->made.room);
        rc = sl_team_watch(t, LOOK_NS, err);
    }
    sl_rc end = sl_producers_end(p, rc != SL_OK, &ended);
    b->box.last_id += p->made.count;
    if (rc != SL_OK || end == SL_OK)
        return rc;
    *err = ended;
    return end;
}

/* ---- Figures ---- */

typedef struct slice {
    int64_t from_ns, upto_ns;
} slice;

/* Milliseconds of the messages that were committed in that time, sorted. */
static size_t latencies(const sl_watched *w, const sl_made *m, slice s, double *out)
{
    size_t n = 0;
    for (int64_t i = 0; i < m->count; i++) {
        int64_t got_ns = w->tap->messages[m->first_id + i - w->tap->first_id].at_ns;
        if (m->at_ns[i] >= s.from_ns && m->at_ns[i] < s.upto_ns)
            out[n++] = got_ns > m->at_ns[i] ? (double)(got_ns - m->at_ns[i]) / 1e6 : 0;
    }
    qsort(out, n, sizeof *out, sl_by_double);
    return n;
}

static void tell(const sl_team *t, const sl_producers *p, slice s, sl_bench_row *row,
                 double *room)
{
    size_t n = latencies(&t->watched, &p->made, s, room);
    row->messages = (int64_t)n;
    row->rate = (double)n * 1e9 / (double)(s.upto_ns - s.from_ns);
    row->other = (double)p->pace.rate;
    row->ratio = row->rate / row->other;
    row->p50 = sl_percentile(room, n, 0.5);
    row->p99 = sl_percentile(room, n, 0.99);
    row->p999 = sl_percentile(room, n, 0.999);
}

static int64_t last_ns(const sl_made *m)
{
    int64_t last = 0;
    for (int64_t i = 0; i < m->count; i++)
        last = m->at_ns[i] > last ? m->at_ns[i] : last;
    return last;
}

static void judge(sl_bench_row *row)
{
    size_t n = strlen(row->name);
    row->reached = row->ratio >= REACHED;
    if (!row->reached)
        snprintf(row->name + n, sizeof row->name - n, ": not reached");
}

static void tell_all(sl_team *t, const sl_producers *p, sl_bench_row *all)
{
    sl_bench *b = t->bench;
    double *room = sl_alloc((size_t)p->made.count * sizeof *room);
    int64_t began_ns = p->pace.began_ns;
    int64_t whole_ns = last_ns(&p->made) + 1 - began_ns;
    for (int64_t i = 0; i < SLICES; i++) {
        slice s = { began_ns + whole_ns * i / SLICES, began_ns + whole_ns * (i + 1) / SLICES };
        sl_bench_row row =
            sl_bench_row_of("after %.0f s", (double)(s.from_ns - began_ns) / 1e9);
        tell(t, p, s, &row, room);
        b->row(b->ctx, &row);
    }
    tell(t, p, (slice){ began_ns, began_ns + whole_ns }, all, room);
    judge(all);
    b->row(b->ctx, all);
    free(room);
}

/* ---- The rate ---- */

static sl_rc drain_once(sl_bench *b, const sl_node_plan *plan, sl_bench_row *row, sl_err *err)
{
    sl_team t = { .bench = b, .fill = sl_bench_fill(b, 0), .plan = *plan };
    t.plan.batch = DRAIN_BATCH;
    *row = sl_bench_row_of("a drain, for its rate");
    b->say(b->ctx, row->name);
    sl_rc rc = sl_bench_drain(b, &t, row, err);
    sl_team_fini(&t);
    return rc;
}

/* Half of what a drain reaches, the one in the middle, as scenario `drain` tells it: each takes a second, and the rate is kept for minutes.
 * A server that was just made has also made most files of its log by then, which takes it 70 ms each. */
static sl_rc choose_rate(sl_bench *b, const sl_node_plan *plan, int64_t *rate, sl_err *err)
{
    size_t rounds = (size_t)(b->wish.rounds ? b->wish.rounds : SL_BENCH_ROUNDS);
    sl_bench_row rows[SL_BENCH_ROUNDS_MAX];
    sl_rc rc = SL_OK;
    *rate = b->wish.rate;
    if (*rate)
        return SL_OK;
    for (size_t i = 0; rc == SL_OK && i < rounds; i++)
        rc = drain_once(b, plan, &rows[i], err);
    if (rc != SL_OK)
        return rc;
    const sl_bench_row *middle = sl_bench_middle(rows, rounds);
    *rate = (int64_t)(middle->rate / 2);
    b->row(b->ctx, middle);
    return SL_OK;
}

static sl_pace pace_of(const sl_bench *b, int64_t rate, int64_t seconds)
{
    int64_t keys = sl_bench_fill(b, 1).keys;
    int64_t n = b->wish.producers             ? b->wish.producers
                : sl_box_is_postgres(&b->box) ? sl_pace_producers(rate)
                                              : 1; /* a file has one writer */
    return (sl_pace){
        .rate = rate, .seconds = seconds, .producers = n < keys ? n : keys, .keys = keys
    };
}

/* How a node starts is not what is asked here. */
static sl_rc warm_up(sl_team *t, sl_err *err)
{
    sl_fill fill = t->fill;
    sl_rc rc = SL_OK;
    fill.rows = WARM_ROWS;
    for (int i = 0; rc == SL_OK && i < WARM_COMMITS; i++)
        rc = sl_box_fill(&t->bench->box, &fill, NULL, NULL, err);
    return rc == SL_OK ? sl_team_wait(t, WARM, err) : rc;
}

static sl_rc deliver(sl_team *t, sl_producers *p, sl_bench_row *row, sl_err *err)
{
    sl_rc rc = sl_box_empty(&t->bench->box, err);
    if (rc == SL_OK)
        rc = sl_team_start(t, WARM + p->pace.rate * p->pace.seconds, err);
    if (rc == SL_OK)
        rc = warm_up(t, err);
    if (rc == SL_OK)
        rc = produce(t, p, err);
    if (rc == SL_OK)
        rc = sl_team_wait(t, WARM + p->made.count, err);
    if (rc == SL_OK)
        rc = sl_team_wait_settled(t, 0, err);
    if (rc == SL_OK)
        rc = sl_team_stop(t, err);
    t->fill.drawn = p->made.key;
    if (rc == SL_OK)
        rc = sl_watched_check(&t->watched, &t->fill, p->made.first_id, t->bench->box.last_id,
                              true, sl_bench_is_ordered(t->plan.strategy), err);
    return rc == SL_OK ? sl_team_costs(t, WARM + p->made.count, row, err) : rc;
}

static sl_rc run(sl_bench *b, sl_err *err)
{
    int64_t rate, seconds = b->wish.seconds ? b->wish.seconds : SECONDS;
    sl_node_plan plan = { .strategy = sl_bench_strategy(b),
                          .workers = sl_settings_given(b->settings, "workers")
                                         ? b->settings->workers
                                         : 1 };
    sl_rc rc = choose_rate(b, &plan, &rate, err);
    if (rc != SL_OK)
        return rc;
    sl_producers p = { .pace = pace_of(b, rate, seconds) };
    sl_bench_row row = sl_bench_row_of("%lld/s for %lld s, %lld producer%s", (long long)rate,
                                       (long long)seconds, (long long)p.pace.producers,
                                       p.pace.producers == 1 ? "" : "s");
    sl_team t = { .bench = b, .fill = sl_bench_fill(b, 1), .plan = plan };
    b->say(b->ctx, row.name);
    rc = deliver(&t, &p, &row, err);
    if (rc == SL_OK)
        tell_all(&t, &p, &row);
    sl_team_fini(&t);
    sl_producers_fini(&p);
    return rc;
}

const sl_scene sl_scene_steady = {
    .name = "steady",
    .other = "asked for",
    .run = run,
};
