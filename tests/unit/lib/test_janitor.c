/* SPDX-License-Identifier: Apache-2.0 */
/* Its thread comes from pthread_create in lib/janitor.c. The chores are the test's own. */
#include "lib/janitor.h"

#include "core/clock.h"
#include "support/testdb.h"

#include <pthread.h>
#include <stdatomic.h>

static const char *dialect;
static testdb t;
static sl_settings settings;
static sl_log log_;
static sl_janitor *janitor;
static sl_err err;
static _Atomic int runs, others, failing, warnings, infos;
static _Atomic int asked, asked_at_last_run;
static _Atomic int64_t pid;  /* of the last session */
static _Atomic int changes;  /* of it */
static _Atomic bool patient; /* a chore that only stops when it is told to */

static void log_write(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    warnings += level == SL_LOG_WARN && strstr(line, "clean-up failed") != NULL;
    infos += level == SL_LOG_INFO && strstr(line, "clean-up goes on") != NULL;
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    runs = others = failing = warnings = infos = 0;
    patient = false;
    janitor = NULL;
    testdb_init(&t, dialect, NULL);
    sl_settings_init(&settings);
    sl_log_init(&log_, log_write, NULL);
    if (sl_settings_set(&settings, "db", t.url, &err) != SL_OK ||
        sl_settings_set(&settings, "table", t.table, &err) != SL_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_janitor_end(janitor);
    sl_settings_fini(&settings);
    sl_log_fini(&log_);
    testdb_drop(&t);
    return 0;
}

static sl_rc sweep(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                   sl_err *e)
{
    (void)ctx;
    if (s != &settings || *rows != 0) /* no asserts in other threads */
        return sl_fail(e, SL_OPERATOR, "not what was asked for");
    runs++;
    asked_at_last_run = asked;
    *rows = 7;
    if (failing > 0) {
        failing--;
        return sl_fail(e, SL_AGAIN, "the broom is away");
    }
    while (patient && !sl_janitor_yield(stop, sl_now_ns()))
        ;
    return sl_db_run1(db, "meta/all", NULL, NULL, NULL, NULL, e);
}

static sl_rc note_pid(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)ctx, (void)e;
    changes += pid != cols[2].i;
    pid = cols[2].i;
    return SL_OK;
}

/* Says who it is. */
static sl_rc sign(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                  sl_err *e)
{
    (void)ctx;
    (void)s, (void)stop, (void)rows;
    sl_rc rc = sl_db_run1(db, "bench/facts", NULL, note_pid, NULL, NULL, e);
    runs++;
    return rc;
}

static _Atomic bool napped; /* undisturbed */

/* For less time than a worker waits for an answer when it is told to stop. */
static sl_rc nap(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *e)
{
    (void)ctx;
    (void)s, (void)stop, (void)rows;
    runs++;
    sl_rc rc = db->ops->script(db, "SELECT pg_sleep(1.5)", e);
    napped = rc == SL_OK;
    return rc;
}

static sl_rc dust(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                  sl_err *e)
{
    (void)ctx;
    (void)db, (void)s, (void)stop, (void)rows, (void)e;
    others++;
    return SL_OK;
}

/* Every third time; and told what the last run said. */
static bool wanted(void *ctx, int64_t rows)
{
    if (ctx != &asked || rows != (runs ? 7 : 0))
        failing = 1000;
    return ++asked % 3 == 0;
}

static void start(int64_t every_ns, size_t count)
{
    sl_janitor_conf conf = { .settings = &settings,
                             .names = &t.names,
                             .log = &log_,
                             .chores = { { "sweeping", every_ns, sweep },
                                         { "dusting", 3600 * SL_SEC, dust } },
                             .count = count };
    if (sl_janitor_start(&janitor, &conf, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void expect_soon(_Atomic int *n, int least)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (*n < least)
        if (sl_now_ns() > until_ns)
            fail_msg("%d, not %d", *n, least);
        else
            usleep(1000);
}

static void without_a_chore_there_is_nobody(void **state)
{
    (void)state;
    start(SL_MS, 0);
    assert_null(janitor);
}

static void chores_are_done_at_once_and_again(void **state)
{
    (void)state;
    start(SL_MS, 2);
    expect_soon(&runs, 4);
    assert_int_equal(others, 1); /* each at its own time */
}

/* Without anything to do there is no connection, either. */
static void a_chore_may_say_that_there_is_nothing_to_do(void **state)
{
    (void)state;
    sl_janitor_conf conf = { .settings = &settings,
                             .names = &t.names,
                             .log = &log_,
                             .chores = { { .name = "sweeping",
                                           .every_ns = SL_MS,
                                           .run = sweep,
                                           .due = wanted,
                                           .ctx = &asked } },
                             .count = 1 };
    asked = 0;
    assert_int_equal(sl_janitor_start(&janitor, &conf, &err), SL_OK);
    expect_soon(&runs, 3);
    sl_janitor_end(janitor);
    janitor = NULL;
    assert_int_equal(asked_at_last_run,
                     3 * runs); /* it may have been asked since, and then told to stop */
    assert_int_equal(warnings, 0);
}

/* In the middle of a chore, and between two. */
static void it_stops_at_once(void **state)
{
    (void)state;
    patient = true;
    start(SL_MS, 1);
    expect_soon(&runs, 1);
    sl_janitor_end(janitor);
    janitor = NULL;
    assert_int_equal(runs, 1);
    patient = false;
    start(3600 * SL_SEC, 1);
    expect_soon(&runs, 2);
    sl_janitor_end(janitor);
    janitor = NULL;
    assert_int_equal(runs, 2);
}

/* A vacuum of a large table may take minutes. */
static void it_stops_in_the_middle_of_a_statement(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_janitor_conf conf = { .settings = &settings,
                             .names = &t.names,
                             .log = &log_,
                             .chores = { { "nap", 3600 * SL_SEC, nap } },
                             .count = 1 };
    napped = false;
    assert_int_equal(sl_janitor_start(&janitor, &conf, &err), SL_OK);
    expect_soon(&runs, 1);
    sl_janitor_end(janitor);
    janitor = NULL;
    assert_false(napped);
    assert_int_equal(warnings, 0);
}

static void a_failure_is_told_once_and_tried_again(void **state)
{
    (void)state;
    failing = 2;
    start(SL_MS, 2);
    expect_soon(&runs, 4);
    expect_soon(&others, 1); /* which had no turn before */
    expect_soon(&infos, 1);
    assert_int_equal(warnings, 1);
}

static void a_lost_connection_is_no_end(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    start(SL_MS, 1);
    expect_soon(&runs, 1);
    for (int i = 0; i < 200; i++)
        testdb_cut(&t);
    int before = runs;
    expect_soon(&runs, before + 2);
}

/* ---- Its session, of PostgreSQL ---- */

static void expect_end_of(int64_t session)
{
    char sql[100];
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_stat_activity WHERE pid = %lld",
             (long long)session);
    while (testdb_int(&t, sql) > 0)
        assert_true(sl_now_ns() < until_ns);
}

static void start_signing(int64_t every_ns)
{
    sl_janitor_conf conf = { .settings = &settings,
                             .names = &t.names,
                             .log = &log_,
                             .chores = { { "signing", every_ns, sign } },
                             .count = 1 };
    pid = 0;
    changes = 0;
    assert_int_equal(sl_janitor_start(&janitor, &conf, &err), SL_OK);
}

static void a_session_is_kept_while_there_is_work(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    start_signing(SL_MS);
    expect_soon(&runs, 5);
    sl_janitor_end(janitor);
    janitor = NULL;
    assert_int_equal(changes, 1);
}

static void it_is_let_go_when_there_is_none(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    start_signing(3600 * SL_SEC);
    expect_soon(&runs, 1);
    expect_end_of(pid);
}

static void one_that_was_ended_is_no_failure(void **state)
{
    (void)state;
    char sql[100];
    if (!t.pg)
        return;
    start_signing(SL_SEC);
    expect_soon(&runs, 1);
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%lld)", (long long)pid);
    testdb_exec(&t, sql);
    expect_end_of(pid);
    expect_soon(&runs, 2);
    assert_int_equal(changes, 2);
    assert_int_equal(warnings, 0);
}

static void a_schema_that_is_newer_is_no_end(void **state)
{
    (void)state;
    testdb_exec(&t, "UPDATE sluice_outbox_meta SET value = '99' WHERE name = 'schema_version'");
    start(SL_MS, 1);
    expect_soon(&warnings, 1);
    assert_int_equal(runs, 0);
    testdb_exec(&t, "UPDATE sluice_outbox_meta SET value = '5' WHERE name = 'schema_version'");
    expect_soon(&runs, 1);
}

static void a_pause_grows_with_what_it_follows(void **state)
{
    (void)state;
    sl_stop stop;
    assert_true(sl_stop_init(&stop));
    int64_t began_ns = sl_now_ns();
    assert_false(sl_janitor_yield(&stop, began_ns));
    assert_true(sl_now_ns() - began_ns >= 5 * SL_MS);
    began_ns = sl_now_ns();
    assert_false(sl_janitor_yield(&stop, began_ns - 20 * SL_MS));
    assert_true(sl_now_ns() - began_ns >= 60 * SL_MS);
    sl_stop_ask(&stop, SL_STOP_SOON);
    assert_true(sl_janitor_yield(&stop, sl_now_ns() - 3600 * SL_SEC));
    sl_stop_fini(&stop);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_chore_there_is_nobody),
        TEST(chores_are_done_at_once_and_again),
        TEST(a_chore_may_say_that_there_is_nothing_to_do),
        TEST(it_stops_at_once),
        TEST(it_stops_in_the_middle_of_a_statement),
        TEST(a_failure_is_told_once_and_tried_again),
        TEST(a_lost_connection_is_no_end),
        TEST(a_session_is_kept_while_there_is_work),
        TEST(it_is_let_go_when_there_is_none),
        TEST(one_that_was_ended_is_no_failure),
        TEST(a_schema_that_is_newer_is_no_end),
        TEST(a_pause_grows_with_what_it_follows),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
