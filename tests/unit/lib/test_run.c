/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/conf.h"

#include "support/testdb.h"

#include <pthread.h>
#include <stdatomic.h>

static const char *dialect;
static testdb t;
static sl_conf *conf;
static sl_runner *runner;
static sl_err err;

static void set(const char *name, const char *value)
{
    if (sl_conf_set(conf, name, value, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    runner = NULL;
    testdb_init(&t, dialect, NULL);
    conf = sl_conf_new();
    set("db", t.url);
    set("table", t.table);
    set("node", "n");
    set("poll", "20ms");
    set("drain", "true");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_run_close(runner);
    sl_conf_free(conf);
    testdb_drop(&t);
    return 0;
}

static void open_runner(sl_handler fn, void *ctx)
{
    if (sl_run_open(&runner, conf, fn, ctx, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void must_run(void)
{
    if (sl_run(runner, &err) != SL_OK)
        fail_msg("%s", err.text);
}

/* ---- What the handler sees, and says ---- */

static sl_verdict count_up(void *ctx, const sl_msg *m, sl_reply *reply)
{
    (void)reply;
    (void)m;
    ++*(_Atomic int *)ctx;
    return SL_SENT;
}

static void every_message_is_handled_once(void **state)
{
    (void)state;
    _Atomic int n = 0;
    testdb_fill(&t, 700, 1);
    set("batch", "50");
    open_runner(count_up, (void *)&n);
    must_run();
    assert_int_equal(n, 700);
    assert_int_equal(testdb_count(&t), 0);
    testdb_fill(&t, 7, 1);
    must_run(); /* and again */
    assert_int_equal(n, 707);
}

static void a_transaction_may_hold_them(void **state)
{
    (void)state;
    _Atomic int n = 0;
    testdb_fill(&t, 100, 1);
    set("hold", "transaction");
    set("batch", "30");
    open_runner(count_up, (void *)&n);
    must_run();
    assert_int_equal(n, 100);
    assert_int_equal(testdb_count(&t), 0);
}

static sl_verdict by_id(void *ctx, const sl_msg *m, sl_reply *reply)
{
    (void)ctx;
    switch (sl_msg_id(m)) {
    case 1:
        sl_reply_reason(reply, "busy");
        sl_reply_delay(reply, 100000);
        return SL_RETRY;
    case 2:
        sl_reply_reason(reply, NULL);
        return SL_RETRY;
    case 3:
        sl_reply_reason(reply, "too large");
        sl_reply_delay(reply, 5); /* means nothing here */
        return SL_DEAD;
    case 4:
        return (sl_verdict)77; /* nonsense: it may or may not have done it */
    case 5:
        return SL_HELD; /* not for a handler to say */
    case 6:
        sl_reply_delay(reply, INT64_MAX);
        return SL_RETRY;
    default:
        return SL_SENT;
    }
}

static void each_verdict_is_written(void **state)
{
    (void)state;
    testdb_fill(&t, 7, 1);
    set("retry_base", "50s");
    open_runner(by_id, NULL);
    must_run();
    testdb_expect(&t, "1 1 busy\n2 1 -\n4 1 -\n5 1 -\n6 1 -",
                  "SELECT id || ' ' || attempts || ' ' || coalesce(last_error, '-') FROM "
                  "sluice_outbox ORDER BY id");
    testdb_expect(&t, "3 too large", "SELECT id || ' ' || last_error FROM sluice_outbox_dead");
    assert_in_range(testdb_ahead_us(&t, "available_at", 1), 60000000, 100001000);
    assert_in_range(testdb_ahead_us(&t, "available_at", 2), 20000000, 60001000);
    assert_true(testdb_ahead_us(&t, "available_at", 6) > INT64_C(86400000000) * 365 * 200);
}

static sl_verdict long_reason(void *ctx, const sl_msg *m, sl_reply *reply)
{
    (void)ctx;
    (void)m;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sl_reply_reason(reply, text);
    return SL_DEAD;
}

static void a_long_reason_is_cut(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    open_runner(long_reason, NULL);
    must_run();
    assert_in_range(testdb_int(&t, "SELECT length(last_error) FROM sluice_outbox_dead"), 100,
                    500);
}

static sl_verdict down_at_first(void *ctx, const sl_msg *m, sl_reply *reply)
{
    int *calls = ctx;
    assert_int_equal(sl_msg_attempt(m), 1);
    if ((*calls)++ >= 2)
        return SL_SENT;
    sl_reply_reason(reply, "the mail server is away");
    return SL_RELEASED;
}

/* An outage is no message's fault: none loses an attempt, and one at a time is tried until it is over. */
static void an_outage_uses_up_no_attempts(void **state)
{
    (void)state;
    int calls = 0;
    testdb_fill(&t, 50, 10);
    set("workers", "1");
    set("max_attempts", "1");
    set("on_failure", "skip");
    open_runner(down_at_first, &calls);
    must_run();
    assert_int_equal(calls, 52);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox"), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
}

/* ---- Threads and stops ---- */

typedef struct meeting {
    _Atomic int inside, most;
} meeting;

static sl_verdict meet(void *ctx, const sl_msg *m, sl_reply *reply)
{
    (void)m;
    (void)reply;
    meeting *x = ctx;
    int now = ++x->inside;
    int most = x->most;
    while (now > most && !atomic_compare_exchange_weak(&x->most, &most, now))
        ;
    for (int i = 0; i < 200 && x->most < 2; i++)
        usleep(10000);
    x->inside--;
    return SL_SENT;
}

static void handlers_run_side_by_side(void **state)
{
    (void)state;
    meeting x = { 0 };
    testdb_fill(&t, 8, 1);
    set("batch", "1");
    set("workers", "3");
    open_runner(meet, &x);
    must_run();
    assert_in_range(x.most, 2, 3);
    assert_int_equal(testdb_count(&t), 0);
}

static sl_verdict stop_soon(void *ctx, const sl_msg *m, sl_reply *reply)
{
    (void)m;
    (void)reply;
    ++*(int *)ctx;
    sl_run_stop(runner);
    return SL_SENT;
}

/* The batch in hand is finished; no other is taken. */
static void a_stop_finishes_what_is_in_hand(void **state)
{
    (void)state;
    int n = 0;
    testdb_fill(&t, 30, 1);
    set("workers", "1");
    set("batch", "10");
    set("drain", "false");
    open_runner(stop_soon, &n);
    must_run();
    assert_int_equal(n, 10);
    assert_int_equal(testdb_count(&t), 20);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE attempts > 0"),
                     0);
}

static void *stop_later(void *arg)
{
    usleep(100000);
    sl_run_stop(arg);
    return NULL;
}

static void a_stop_wakes_an_idle_runner(void **state)
{
    (void)state;
    _Atomic int n = 0;
    pthread_t thread;
    set("drain", "false");
    set("poll", "1h");
    open_runner(count_up, (void *)&n);
    assert_int_equal(pthread_create(&thread, NULL, stop_later, runner), 0);
    int64_t before = sl_now_ns();
    must_run();
    pthread_join(thread, NULL);
    assert_true(sl_now_ns() - before < 20 * SL_SEC);
    assert_int_equal(n, 0);
}

/* ---- What cannot work ---- */

static void contradictions_fail_the_opening(void **state)
{
    (void)state;
    set("strategy", "hope");
    assert_int_equal(sl_run_open(&runner, conf, count_up, NULL, &err), SL_REFUSED);
    assert_null(runner);
    sl_run_close(NULL);
}

static void a_missing_table_fails_the_run(void **state)
{
    (void)state;
    set("table", "nowhere");
    open_runner(count_up, NULL);
    assert_int_equal(sl_run(runner, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "table 'nowhere' is not there"));
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_message_is_handled_once),   TEST(a_transaction_may_hold_them),
        TEST(each_verdict_is_written),         TEST(a_long_reason_is_cut),
        TEST(an_outage_uses_up_no_attempts),   TEST(handlers_run_side_by_side),
        TEST(a_stop_finishes_what_is_in_hand), TEST(a_stop_wakes_an_idle_runner),
        TEST(contradictions_fail_the_opening), TEST(a_missing_table_fails_the_run),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
