/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/measure.h"

#include "bench/ceiling.h"
#include "bench/usage.h"
#include "claim/claim.h"
#include "core/clock.h"
#include "core/mem.h"

#include <signal.h>
#include <stdarg.h>

enum { ROWS = 400000, KEYS = 5000, BYTES = 200, SLOW_BATCH = 100 };

#define LOOK_NS (10 * SL_MS)
#define SETTLE_NS (60 * SL_SEC)
/* Nothing was delivered for so long: nothing will be. */
#define STUCK_NS (120 * SL_SEC)

/* ---- What is wished ---- */

sl_fill sl_bench_fill(const sl_bench *b, int64_t rows)
{
    return (sl_fill){ .rows = b->wish.rows ? b->wish.rows
                              : rows       ? rows
                                           : ROWS,
                      .keys = b->wish.keys ? b->wish.keys : KEYS,
                      .bytes = b->wish.bytes ? b->wish.bytes : BYTES };
}

const char *sl_bench_strategy(const sl_bench *b)
{
    return sl_settings_given(b->settings, "strategy") ? b->settings->strategy : "lanes";
}

bool sl_bench_is_ordered(const char *strategy)
{
    return strcmp(strategy, "skip-locked") != 0;
}

int64_t sl_bench_slow_batch(const sl_bench *b)
{
    return sl_settings_given(b->settings, "batch") ? b->settings->batch : SLOW_BATCH;
}

static int by_rate(const void *a, const void *b)
{
    const sl_bench_row *x = a;
    const sl_bench_row *y = b;
    return (x->rate > y->rate) - (x->rate < y->rate);
}

const sl_bench_row *sl_bench_middle(sl_bench_row *rounds, size_t n)
{
    qsort(rounds, n, sizeof *rounds, by_rate);
    return &rounds[n / 2];
}

sl_bench_row sl_bench_row_of(const char *fmt, ...)
{
    const double none = SL_BENCH_NONE;
    sl_bench_row row = { .other = none,
                         .ratio = none,
                         .p50 = none,
                         .p99 = none,
                         .p999 = none,
                         .statements = none,
                         .wal_bytes = none,
                         .dead_rows = none,
                         .node_cpu = none,
                         .db_cpu = none,
                         .memory = none,
                         .reached = -1 };
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(row.name, sizeof row.name, fmt, ap);
    va_end(ap);
    return row;
}

/* ---- Nodes ---- */

static sl_rc note_server(sl_team *t, sl_err *err)
{
    sl_rc rc = sl_box_facts_of(&t->bench->box, &t->before, err);
    t->server_cpu = sl_usage_server_cpu((pid_t)t->before.pid);
    return rc;
}

static sl_rc wait_started(sl_team *t, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (int64_t i = 0; rc == SL_OK && i < t->nodes; i++)
        while (rc == SL_OK && !t->node[i].started_ns && t->node[i].pid)
            rc = sl_bench_node_look(&t->node[i], LOOK_NS, err);
    return rc;
}

sl_rc sl_team_start(sl_team *t, int64_t watched, sl_err *err)
{
    t->nodes = t->nodes ? t->nodes : 1;
    /* What is there already may be delivered, too. */
    sl_rc rc =
        sl_watched_make(&t->watched, 1, t->bench->box.last_id + watched, t->delay_ns, err);
    if (rc == SL_OK)
        rc = note_server(t, err);
    for (int i = 0; rc == SL_OK && i < t->nodes; i++)
        rc = sl_bench_node_start(&t->node[i], t->bench->settings, &t->plan, i + 1, &t->watched,
                                 err);
    return rc == SL_OK ? wait_started(t, err) : rc;
}

static bool all_done(const sl_team *t)
{
    for (int64_t i = 0; i < t->nodes; i++)
        if (!sl_bench_node_is_done(&t->node[i]))
            return false;
    return true;
}

static sl_rc look(sl_team *t, sl_err *err)
{
    sl_bench *b = t->bench;
    sl_rc rc = SL_OK;
    if (b->stopped && b->stopped(b->ctx))
        return sl_fail(err, SL_STOPPED, "interrupted");
    for (int64_t i = 0; rc == SL_OK && i < t->nodes; i++)
        rc = sl_bench_node_look(&t->node[i], LOOK_NS / t->nodes, err);
    return rc;
}

sl_rc sl_team_wait(sl_team *t, int64_t delivered, sl_err *err)
{
    int64_t count = 0, since_ns = sl_now_ns();
    sl_rc rc = SL_OK;
    while (rc == SL_OK && !all_done(t)) {
        int64_t now = sl_watched_count(&t->watched);
        if (delivered && now >= delivered)
            return SL_OK;
        since_ns = now == count ? since_ns : sl_now_ns();
        count = now;
        if (sl_now_ns() - since_ns > STUCK_NS)
            return sl_fail(err, SL_OPERATOR,
                           "nothing is delivered any more: %lld messages were, of %lld",
                           (long long)count, (long long)delivered);
        if (t->bench->progress)
            t->bench->progress(t->bench->ctx, count, delivered ? delivered : t->fill.rows);
        rc = look(t, err);
    }
    if (rc == SL_OK && delivered && sl_watched_count(&t->watched) < delivered)
        rc = sl_fail(err, SL_OPERATOR, "the node ended too early");
    return rc;
}

sl_rc sl_team_wait_settled(sl_team *t, int64_t left, sl_err *err)
{
    sl_box_left now;
    int64_t until_ns = sl_now_ns() + SETTLE_NS;
    for (;;) {
        sl_rc rc = sl_box_left_of(&t->bench->box, &now, err);
        if (rc != SL_OK || now.waiting <= left)
            return rc;
        if (sl_now_ns() > until_ns)
            return sl_fail(err, SL_OPERATOR, "%lld messages are still there, not %lld",
                           (long long)now.waiting, (long long)left);
        rc = look(t, err);
        if (rc != SL_OK)
            return rc;
    }
}

sl_rc sl_team_watch(sl_team *t, int64_t ns, sl_err *err)
{
    int64_t until_ns = sl_now_ns() + ns;
    sl_rc rc = SL_OK;
    while (rc == SL_OK && sl_now_ns() < until_ns)
        rc = look(t, err);
    return rc;
}

static void signal_all(const sl_team *t, int signal)
{
    for (int64_t i = 0; i < t->nodes; i++)
        sl_bench_node_signal(&t->node[i], signal);
}

sl_rc sl_team_stop(sl_team *t, sl_err *err)
{
    signal_all(t, SIGCONT);
    signal_all(t, SIGTERM);
    return sl_team_wait(t, 0, err);
}

sl_rc sl_team_costs(sl_team *t, int64_t messages, sl_bench_row *row, sl_err *err)
{
    sl_box_facts now;
    double statements = 0, cpu = 0;
    double n = (double)messages;
    sl_rc rc = sl_box_facts_of(&t->bench->box, &now, err);
    if (rc != SL_OK)
        return rc;
    row->memory = 0;
    for (int64_t i = 0; i < t->nodes; i++) {
        statements += (double)t->node[i].statements;
        cpu += t->node[i].cpu;
        row->memory =
            (double)t->node[i].memory > row->memory ? (double)t->node[i].memory : row->memory;
    }
    row->statements = statements / n;
    row->node_cpu = cpu * 1e6 / n;
    if (now.wal) {
        row->wal_bytes = (double)(now.wal - t->before.wal) / n;
        row->dead_rows = (double)(now.dead_rows - t->before.dead_rows) / n;
    }
    double server = sl_usage_server_cpu((pid_t)now.pid);
    if (server >= 0 && t->server_cpu >= 0)
        row->db_cpu = (server - t->server_cpu) * 1e6 / n;
    return SL_OK;
}

void sl_team_fini(sl_team *t)
{
    for (int i = 0; i < SL_BENCH_NODES; i++)
        sl_bench_node_fini(&t->node[i]);
    sl_watched_remove(&t->watched);
}

/* So that all is there, and the table at rest, when they go on. Whoever is stopped in a transaction of SQLite keeps all others
 * from writing: there the messages come at once, in one transaction, while they run. */
static void pause_all(const sl_team *t)
{
    if (sl_box_is_postgres(&t->bench->box))
        signal_all(t, SIGSTOP);
}

/* Four fifths, in whole batches. */
static double share_of(const sl_bench *b, int64_t rows)
{
    int64_t batch = b->settings->batch, most = rows * 4 / 5;
    return (double)(most > batch ? most - most % batch : most) / (double)rows;
}

/* The checkpoint makes the first change of each page cost what it costs in a table that lay still. */
sl_rc sl_team_feed(sl_team *t, int64_t rows, int64_t left, double *rate, sl_err *err)
{
    sl_bench *b = t->bench;
    int64_t first = b->box.last_id + 1;
    int64_t before = sl_watched_count(&t->watched);
    sl_fill fill = t->fill;
    fill.rows = rows;
    pause_all(t);
    sl_rc rc = sl_box_fill(&b->box, &fill, NULL, NULL, err);
    if (rc == SL_OK)
        rc = sl_box_rest(&b->box, false, err);
    signal_all(t, SIGCONT);
    if (rc == SL_OK)
        rc = sl_team_wait(t, before + rows, err);
    if (rc == SL_OK)
        rc = sl_team_wait_settled(t, left, err);
    if (rc == SL_OK)
        rc = sl_watched_check(&t->watched, &t->fill, first, b->box.last_id, true,
                              sl_bench_is_ordered(t->plan.strategy), err);
    if (rc == SL_OK && rate)
        *rate =
            sl_watched_rate(&t->watched, first, b->box.last_id, share_of(b, rows), NULL, NULL);
    return rc;
}

/* ---- Whole drains ---- */

static void say_added(void *ctx, int64_t rows)
{
    sl_bench *b = ctx;
    if (b->progress)
        b->progress(b->ctx, rows, 0);
}

sl_rc sl_bench_prepare(sl_bench *b, const sl_fill *fill, sl_err *err)
{
    sl_rc rc = sl_box_empty(&b->box, err);
    if (rc == SL_OK)
        rc = sl_box_fill(&b->box, fill, say_added, b, err);
    return rc == SL_OK ? sl_box_rest(&b->box, true, err) : rc;
}

static sl_rc check_drained(sl_team *t, int64_t first, sl_err *err)
{
    sl_box_left left;
    sl_rc rc = sl_watched_check(&t->watched, &t->fill, first, t->bench->box.last_id, true,
                                sl_bench_is_ordered(t->plan.strategy), err);
    if (rc == SL_OK)
        rc = sl_box_left_of(&t->bench->box, &left, err);
    if (rc == SL_OK && left.waiting + left.dead)
        rc = sl_fail(err, SL_OPERATOR, "%lld messages and %lld dead letters are left",
                     (long long)left.waiting, (long long)left.dead);
    return rc;
}

static double seconds_of(const sl_team *t)
{
    int64_t began_ns = INT64_MAX, ended_ns = 0;
    for (int64_t i = 0; i < t->nodes; i++) {
        const sl_bench_node *n = &t->node[i];
        began_ns = n->started_ns < began_ns ? n->started_ns : began_ns;
        ended_ns = n->ended_ns > ended_ns ? n->ended_ns : ended_ns;
    }
    return (double)(ended_ns - began_ns) / 1e9;
}

sl_rc sl_bench_drain(sl_bench *b, sl_team *t, sl_bench_row *row, sl_err *err)
{
    t->bench = b;
    t->plan.drain = true;
    sl_rc rc = sl_bench_prepare(b, &t->fill, err);
    int64_t first = b->box.last_id - t->fill.rows + 1;
    if (rc == SL_OK)
        rc = sl_team_start(t, 0, err);
    if (rc == SL_OK)
        rc = sl_team_wait(t, 0, err);
    if (rc == SL_OK)
        rc = check_drained(t, first, err);
    if (rc == SL_OK)
        rc = sl_team_costs(t, t->fill.rows, row, err);
    row->messages = t->fill.rows;
    row->rate = rc == SL_OK ? (double)t->fill.rows / seconds_of(t) : 0;
    return rc;
}

/* Only skip-locked has a choice; the others are compared with the faster one, where they have no loop of their own. */
static bool by_lease(const sl_bench *b, const sl_node_plan *plan)
{
    if (sl_bench_is_ordered(plan->strategy))
        return false;
    return plan->hold ? !strcmp(plan->hold, "lease") : b->settings->hold == SL_HOLD_LEASE;
}

sl_rc sl_bench_ceiling(sl_bench *b, const sl_team *t, double *rate, sl_err *err)
{
    sl_ceiling_got got;
    sl_ceiling c = { .dialect = b->box.db->ops->name,
                     .db = b->box.file ? b->box.file : b->settings->db,
                     .names = &b->box.names,
                     .batch = b->settings->batch,
                     .connections = (int)(t->plan.workers * (t->nodes ? t->nodes : 1)),
                     .lease = by_lease(b, &t->plan) };
    sl_rc rc = sl_bench_prepare(b, &t->fill, err);
    if (rc != SL_OK)
        return rc;
    sl_box_close(&b->box);
    rc = sl_ceiling_run(&c, t->plan.strategy, &got, err);
    if (rc == SL_OK && got.messages != t->fill.rows)
        rc = sl_fail(err, SL_OPERATOR, "the ceiling took %lld of %lld messages",
                     (long long)got.messages, (long long)t->fill.rows);
    sl_err later;
    sl_rc again = sl_box_reopen(&b->box, rc == SL_OK ? err : &later);
    *rate = rc == SL_OK ? (double)got.messages / got.seconds : 0;
    return rc == SL_OK ? again : rc;
}
