/* SPDX-License-Identifier: Apache-2.0 */
/* Its threads come from pthread_create in lib/crew.c and member/member.c. */
#include "lib/crew.h"

#include "core/mem.h"
#include "support/testdb.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>

static const char *dialect;
static const char *strategy;
static testdb t;
static sl_settings settings;
static sl_stop stop;
static sl_log log_;
static sl_crew *crew;
static sl_err err;
static _Atomic int warnings;

/* ---- A sink that sends all, and may be told to fail ---- */

typedef struct plain_sink {
    sl_sink base;
} plain_sink;

static _Atomic int opened, closed, passed, sent;
static _Atomic int open_fails; /* so many times */
static sl_rc open_rc;
static _Atomic int gate;   /* it sends no more than so many until this is raised */
static unsigned fail_each; /* so many messages, at the first attempt; 0: none */

enum { KEYS = 20 };
static _Atomic int64_t last_of[KEYS]; /* by key "k7": the id that was sent last */
static _Atomic int disorder;

enum { OPEN = INT_MAX };

/* Workers wait here as long as the test wants, however late one of them or the test itself is. */
static void pass_gate(void)
{
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (passed++ >= gate) {
        passed--;
        if (sl_now_ns() > until)
            return; /* the test fails, and can end */
        usleep(1000);
    }
}

static void plain_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    (void)s;
    pass_gate();
    if (fail_each && m->attempt == 1 && m->id % fail_each == 0) {
        sl_msg_settle(b, m, SL_RETRY, SL_STR("not now"));
        return;
    }
    if (m->key.n > 1 && m->key.p[0] == 'k') {
        long k = strtol(m->key.p + 1, NULL, 10);
        disorder += atomic_exchange(&last_of[k], m->id) != (m->id > KEYS ? m->id - KEYS : 0);
    }
    sl_msg_settle(b, m, SL_SENT, SL_NONE);
    sent++;
}

static void plain_poll(sl_sink *s, int64_t timeout_ns)
{
    (void)s;
    (void)timeout_ns;
}

static void plain_recall(sl_sink *s)
{
    (void)s;
}

static void plain_close(sl_sink *s)
{
    closed++;
    free(s);
}

static const sl_sink_ops plain_ops = { .scheme = "plain",
                                       .submit = plain_submit,
                                       .poll = plain_poll,
                                       .recall = plain_recall,
                                       .close = plain_close };

static sl_rc make(void *ctx, sl_sink **out, const sl_sink_conf *conf, sl_err *e)
{
    if (ctx != &opened || conf->worker[1] != '/') /* no asserts in other threads */
        return sl_fail(e, SL_OPERATOR, "not what was asked for");
    if (open_fails > 0) {
        open_fails--;
        return sl_fail(e, open_rc, "no sink");
    }
    opened++;
    plain_sink *s = sl_alloc(sizeof *s);
    s->base.ops = &plain_ops;
    *out = &s->base;
    return SL_OK;
}

static void note_line(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    (void)line;
    warnings += level == SL_LOG_WARN;
}

/* ---- Around each test ---- */

static void set(const char *name, const char *value)
{
    if (sl_settings_set(&settings, name, value, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    opened = closed = passed = sent = open_fails = warnings = 0;
    gate = OPEN;
    fail_each = 0;
    disorder = 0;
    for (int i = 0; i < KEYS; i++)
        last_of[i] = 0;
    crew = NULL;
    testdb_init(&t, dialect, NULL);
    sl_settings_init(&settings);
    set("db", t.url);
    set("table", t.table);
    set("node", "n");
    set("poll", "20ms");
    set("workers", "3");
    set("batch", "10");
    set("strategy", strategy);
    sl_log_init(&log_, note_line, NULL);
    return sl_stop_init(&stop) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    gate = OPEN; /* also of a test that failed */
    sl_crew_free(crew);
    assert_int_equal(opened, closed);
    sl_stop_fini(&stop);
    sl_log_fini(&log_);
    sl_settings_fini(&settings);
    testdb_drop(&t);
    return 0;
}

static sl_rc start(bool rehearsed)
{
    return sl_crew_start(&crew, &settings, make, &opened, &stop, &log_,
                         rehearsed ? stop.fd_soon : -1, &err);
}

static void must_start(void)
{
    if (start(true) != SL_OK)
        fail_msg("%s", err.text);
}

static void must_end(void)
{
    if (sl_crew_wait(crew, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static bool ended(void)
{
    struct pollfd p = { .fd = sl_crew_ended_fd(crew), .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

/* Waits until so many were sent. */
static void wait_sent(int n)
{
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (sent < n && sl_now_ns() < until)
        usleep(2000);
    assert_true(sent >= n);
}

/* Waits until all is settled. */
static void wait_empty(void)
{
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (testdb_count(&t) > 0 && sl_now_ns() < until)
        usleep(2000);
    assert_int_equal(testdb_count(&t), 0);
}

/* ---- Working ---- */

static void a_crew_drains_the_table(void **state)
{
    (void)state;
    testdb_fill(&t, 200, 1);
    set("drain", "true");
    must_start();
    must_end();
    assert_true(ended());
    sl_counts c;
    sl_crew_counts(crew, &c);
    assert_int_equal(c.taken, 200);
    assert_int_equal(c.sent, 200);
    assert_int_equal(c.retried + c.dead + c.unknown + c.released + c.lost + c.reconnects, 0);
    assert_true(c.turns >= 20);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(opened, 1 + 3); /* the rehearsal's, and one each */
}

static void a_crew_works_until_told_to_stop(void **state)
{
    (void)state;
    must_start();
    testdb_fill(&t, 20, 1);
    wait_sent(20);
    testdb_fill(&t, 20, 1); /* after a pause */
    wait_sent(40);
    assert_false(ended());
    sl_stop_ask(&stop, SL_STOP_SOON);
    must_end();
    assert_true(ended());
    must_end(); /* harmless */
}

static void freeing_a_crew_stops_it(void **state)
{
    (void)state;
    testdb_fill(&t, 30, 1);
    must_start();
    sl_crew_free(crew);
    crew = NULL;
    /* All given back, or sent. */
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE worker IS NOT "
                                    "NULL"),
                     0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 0);
    sl_crew_free(NULL);
}

/* Where the claim is written down, with the name of the worker. */
static void workers_are_told_apart(void **state)
{
    (void)state;
    bool rows = !strcmp(strategy, "skip-locked");
    if (!rows && strcmp(strategy, "guard") != 0)
        return;
    const char *claims = rows ? "SELECT count(DISTINCT worker) FROM sluice_outbox"
                              : "SELECT count(DISTINCT held_by) FROM sluice_outbox_claims";
    testdb_fill(&t, 60, 1);
    gate = 0;
    set("workers", "2");
    must_start();
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (testdb_int(&t, claims) < 2 && sl_now_ns() < until)
        usleep(2000);
    testdb_expect(&t, "n/1\nn/2",
                  rows ? "SELECT DISTINCT worker FROM sluice_outbox WHERE worker IS NOT NULL "
                         "ORDER BY worker"
                       : "SELECT DISTINCT held_by FROM sluice_outbox_claims ORDER BY held_by");
}

static void a_crew_is_a_node_among_others(void **state)
{
    (void)state;
    must_start();
    char want[64];
    snprintf(want, sizeof want, "n %s 3", strategy);
    testdb_expect(&t, want,
                  "SELECT node || ' ' || strategy || ' ' || workers FROM sluice_outbox_nodes");
    int64_t owned = testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes l JOIN "
                                   "sluice_outbox_nodes n ON l.owner = n.session");
    assert_int_equal(owned, strcmp(strategy, "lanes") ? 0 : 64);
    sl_stop_ask(&stop, SL_STOP_SOON);
    must_end();
    sl_crew_free(crew);
    crew = NULL;
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 0);
}

static void a_table_shared_otherwise_is_refused(void **state)
{
    (void)state;
    sl_settings others;
    sl_crew *second = NULL;
    must_start();
    sl_settings_init(&others);
    const char *wish[][2] = {
        { "db", t.url },
        { "table", t.table },
        { "node", "m" },
        { "strategy", strcmp(strategy, "guard") ? "guard" : "skip-locked" },
    };
    for (size_t i = 0; i < COUNT(wish); i++)
        assert_int_equal(sl_settings_set(&others, wish[i][0], wish[i][1], &err), SL_OK);
    sl_rc rc = sl_crew_start(&second, &others, make, &opened, &stop, &log_, stop.fd_soon, &err);
    sl_settings_fini(&others);
    assert_int_equal(rc, SL_OPERATOR);
    assert_non_null(strstr(err.text, "node 'n' lives and shares this table by strategy"));
    assert_null(second);
}

/* Each message says where it stands in its key; some fail at first. */
static void a_crew_keeps_the_order_of_each_key(void **state)
{
    (void)state;
    enum { EACH = 12 };
    if (!strcmp(strategy, "skip-locked"))
        return;
    for (int i = 0; i < EACH; i++)
        for (int k = 0; k < KEYS; k++) {
            char key[8];
            snprintf(key, sizeof key, "k%d", k);
            testdb_push(&t, key, 1);
        }
    set("retry_base", "5ms");
    set("drain", "false");
    fail_each = 5;
    must_start();
    wait_empty();
    sl_stop_ask(&stop, SL_STOP_SOON);
    must_end();
    assert_int_equal(disorder, 0);
    assert_int_equal(sent, KEYS * EACH);
    sl_counts c;
    sl_crew_counts(crew, &c);
    assert_true(c.retried > 0);
    assert_int_equal(c.lost, 0);
}

/* What was sent is marked, and the rest is given back, before the crew has ended. */
static void a_stop_now_settles_what_is_in_hand(void **state)
{
    (void)state;
    testdb_fill(&t, 60, 1);
    gate = 5;
    must_start();
    wait_sent(5);
    sl_stop_ask(&stop, SL_STOP_NOW);
    gate = OPEN;
    must_end();
    assert_int_equal(testdb_count(&t) + sent, 60);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE attempts > 0 OR "
                                    "leased_until IS NOT NULL"),
                     0);
    sl_counts c;
    sl_crew_counts(crew, &c);
    assert_int_equal(c.sent, sent);
    assert_int_equal(c.taken, c.sent + c.released);
    assert_true(c.released > 0);
}

/* ---- Failing ---- */

static void what_cannot_work_fails_the_rehearsal(void **state)
{
    (void)state;
    open_fails = 1;
    open_rc = SL_REFUSED;
    assert_int_equal(start(true), SL_REFUSED);
    assert_string_equal(err.text, "no sink");
    assert_null(crew);
    set("table", "a b");
    assert_int_equal(start(true), SL_REFUSED);
    set("table", "nowhere");
    assert_int_equal(start(true), SL_OPERATOR);
    assert_null(crew);
}

static void what_passes_is_tried_again(void **state)
{
    (void)state;
    testdb_fill(&t, 20, 1);
    set("drain", "true");
    set("workers", "1");
    open_fails = 2;
    open_rc = SL_AGAIN;
    assert_int_equal(start(false), SL_OK); /* not rehearsed: the worker has to cope */
    must_end();
    sl_counts c;
    sl_crew_counts(crew, &c);
    assert_int_equal(c.reconnects, 2);
    assert_int_equal(c.sent, 20);
    assert_true(warnings >= 1);
}

/* One worker's failure, if it needs a human, ends them all. */
static void a_failure_for_a_human_stops_all(void **state)
{
    (void)state;
    must_start();
    testdb_fill(&t, 10, 1);
    wait_sent(10);
    testdb_exec(&t, "ALTER TABLE sluice_outbox RENAME COLUMN topic TO oh");
    testdb_exec(&t, "INSERT INTO sluice_outbox (oh, payload) VALUES ('x', 'p')"); /* woken */
    assert_int_equal(sl_crew_wait(crew, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "topic"));
    assert_true(ended());
}

static void a_lost_database_is_waited_for(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    must_start();
    testdb_fill(&t, 10, 1);
    wait_empty();
    testdb_cut(&t);
    sl_counts c;
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    do { /* one of them, at least, was in the middle of a statement on our table */
        usleep(5000);
        sl_crew_counts(crew, &c);
    } while (c.reconnects < 1 && sl_now_ns() < until);
    assert_true(c.reconnects >= 1);
    testdb_fill(&t, 10, 1);
    wait_empty();
    assert_int_equal(sent, 20);
    sl_stop_ask(&stop, SL_STOP_SOON);
    must_end();
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_crew_drains_the_table),
        TEST(freeing_a_crew_stops_it),
        TEST(workers_are_told_apart),
        TEST(a_crew_is_a_node_among_others),
        TEST(a_table_shared_otherwise_is_refused),
        TEST(a_crew_keeps_the_order_of_each_key),
        TEST(a_stop_now_settles_what_is_in_hand),
        TEST(a_lost_database_is_waited_for),
    };
    print_message("by %s on %s\n", strategy, dialect);
    return cmocka_run_group_tests_name(strategy, tests, NULL, NULL);
}

/* What does not depend on the strategy. */
static int run_once(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crew_works_until_told_to_stop),
        TEST(what_cannot_work_fails_the_rehearsal),
        TEST(what_passes_is_tried_again),
        TEST(a_failure_for_a_human_stops_all),
    };
    return cmocka_run_group_tests_name(dialect, tests, NULL, NULL);
}

static int on(const char *name)
{
    int failed = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        strategy = (*c)->name;
        failed += run_group();
    }
    strategy = "lanes";
    return failed + run_once();
}

int main(void)
{
    return testdb_each(on);
}
