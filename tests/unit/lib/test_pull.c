/* SPDX-License-Identifier: Apache-2.0 */
/* Its threads come from pthread_create in lib/pull.c and member/member.c. */
#include "lib/conf.h"

#include "support/testdb.h"

#include <pthread.h>

static const char *dialect;
static bool ordered; /* by guard, as is the default; else by skip-locked */
static testdb t;
static sl_conf *conf;
static sl_puller *p, *q;
static sl_err err;
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of logged: the keeper writes it */
static char logged[8192];                                /* all lines */

static void log_fn(void *ctx, const char *level, const char *line)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%s %s\n", level, line);
    pthread_mutex_unlock(&lock);
}

static bool has_logged(const char *words)
{
    pthread_mutex_lock(&lock);
    bool has = strstr(logged, words) != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}

static void wait_logged(const char *words)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (!has_logged(words) && sl_now_ns() < until_ns)
        usleep(10000);
    assert_true(has_logged(words));
}

static void set(const char *name, const char *value)
{
    if (sl_conf_set(conf, name, value, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    p = q = NULL;
    logged[0] = '\0';
    testdb_init(&t, dialect, NULL);
    conf = sl_conf_new();
    sl_conf_log(conf, log_fn, NULL);
    set("db", t.url);
    set("table", t.table);
    set("node", "puller");
    set("poll", "20ms");
    if (!ordered)
        set("strategy", "skip-locked");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_pull_close(p);
    sl_pull_close(q);
    sl_conf_free(conf);
    testdb_drop(&t);
    return 0;
}

static void open_puller(sl_puller **out)
{
    set("node", out == &p ? "puller" : "other");
    if (sl_pull_open(out, conf, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static size_t pull(sl_puller *from, size_t max)
{
    if (sl_pull(from, max, 0, &count, &err) != SL_OK)
        fail_msg("%s", err.text);
    return count;
}

static void expire(void)
{
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2000-01-01 00:00:00.000' "
                    "WHERE leased_until IS NOT NULL");
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
}

static int64_t claims(void)
{
    return testdb_held_keys(&t);
}

#define ROWS                                                                                   \
    "SELECT id || ' ' || attempts || ' ' || coalesce(worker, '-') || ' ' || "                  \
    "coalesce(last_error, '-') FROM sluice_outbox ORDER BY id"

/* ---- Taking ---- */

static void messages_come_in_order(void **state)
{
    (void)state;
    testdb_fill(&t, 5, 3);
    open_puller(&p);
    assert_null(sl_pull_msg(p, 0));
    assert_int_equal(pull(p, 3), 3);
    for (size_t i = 0; i < 3; i++) {
        size_t bytes;
        const sl_msg *m = sl_pull_msg(p, i);
        assert_int_equal(sl_msg_id(m), i + 1);
        assert_memory_equal(sl_msg_payload(m, &bytes), "xxx", 3);
        assert_int_equal(bytes, 3);
        assert_int_equal(sl_msg_attempt(m), 1);
        assert_true(sl_msg_epoch(m) > 0);
    }
    assert_null(sl_pull_msg(p, 3));
    assert_null(sl_pull_msg(p, SIZE_MAX));
}

static void nothing_there_is_waited_for(void **state)
{
    (void)state;
    open_puller(&p);
    int64_t before = sl_now_ns();
    assert_int_equal(pull(p, 3), 0);
    assert_int_equal(sl_pull(p, 3, 150, &count, &err), SL_OK);
    assert_int_equal(count, 0);
    assert_true(sl_now_ns() - before >= 150 * SL_MS);
    before = sl_now_ns();
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox (topic, payload, available_at) VALUES "
                          "('x', '', now() + interval '300 ms')",
                          "INSERT INTO sluice_outbox (topic, payload, available_at) VALUES "
                          "('x', '', strftime('%Y-%m-%d %H:%M:%f', 'now', '+0.3 seconds'))"));
    assert_int_equal(sl_pull(p, 3, INT64_MAX, &count, &err), SL_OK); /* for ever, if need be */
    assert_int_equal(count, 1);
    assert_true(sl_now_ns() - before > 290 * SL_MS); /* not before it is due */
    assert_int_equal(sl_pull(p, 3, INT64_MIN, &count, &err), SL_OK);
}

static void two_pullers_share_nothing(void **state)
{
    (void)state;
    testdb_fill(&t, 5, 1);
    open_puller(&p);
    open_puller(&q);
    assert_int_equal(pull(p, 3), 3);
    assert_int_equal(pull(q, 10), 2);
    assert_int_equal(sl_msg_id(sl_pull_msg(q, 0)), 4);
}

static void what_cannot_work_fails_at_once(void **state)
{
    (void)state;
    testdb_exec(&t, "DROP TABLE sluice_outbox_meta");
    assert_int_equal(sl_pull_open(&p, conf, &err), SL_OPERATOR);
    assert_null(p);
    set("table", "a b");
    assert_int_equal(sl_pull_open(&p, conf, &err), SL_REFUSED);
    set("strategy", "hope");
    assert_int_equal(sl_pull_open(&p, conf, &err), SL_REFUSED);
    assert_null(p);
    sl_pull_close(NULL);
}

/* ---- Verdicts ---- */

static void each_verdict_is_written(void **state)
{
    (void)state;
    testdb_fill(&t, 5, 1);
    set("retry_base", "50s");
    open_puller(&p);
    assert_int_equal(pull(p, 10), 5);
    sl_pull_ack(p, 0);
    sl_pull_retry(p, 1, 100000, "busy");
    sl_pull_retry(p, 2, -1, NULL);
    sl_pull_bury(p, 3, "too large");
    testdb_expect(&t, "5",
                  "SELECT '' || count(*) FROM sluice_outbox"); /* recorded, not written */
    assert_int_equal(sl_pull_settle(p, &err), SL_OK);
    testdb_expect(
        &t, ordered ? "2 1 - busy\n3 1 - -\n5 0 - -" : "2 1 - busy\n3 1 - -\n5 1 puller -",
        ROWS);
    testdb_expect(&t, "4 too large", "SELECT id || ' ' || last_error FROM sluice_outbox_dead");
    assert_in_range(testdb_ahead_us(&t, "available_at", 2), 70000000, 100001000);
    assert_in_range(testdb_ahead_us(&t, "available_at", 3), 20000000,
                    60001000); /* retry_base, more or less */
    assert_int_equal(sl_pull_end(p, &err), SL_OK);
    testdb_expect(&t, "2 1 - busy\n3 1 - -\n5 0 - -", ROWS); /* given back, untried */
    assert_null(sl_pull_msg(p, 0));
    assert_int_equal(sl_pull_end(p, &err), SL_OK);
    assert_int_equal(sl_pull_settle(p, &err), SL_OK);
}

static void a_later_verdict_replaces_until_it_is_written(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_puller(&p);
    assert_int_equal(pull(p, 10), 3);
    sl_pull_bury(p, 0, "no");
    sl_pull_retry(p, 0, 0, "why");
    sl_pull_ack(p, 0);
    sl_pull_ack(p, 1);
    sl_pull_retry(p, 1, 60000, "later");
    sl_pull_ack(p, 99); /* there is no such message */
    assert_int_equal(sl_pull_settle(p, &err), SL_OK);
    testdb_expect(&t, ordered ? "2 1 - later\n3 0 - -" : "2 1 - later\n3 1 puller -", ROWS);
    sl_pull_ack(p, 1); /* too late */
    sl_pull_ack(p, 2);
    assert_int_equal(sl_pull_end(p, &err), SL_OK);
    testdb_expect(&t, "2 1 - later", ROWS);
}

static void the_next_pull_ends_the_batch(void **state)
{
    (void)state;
    testdb_fill(&t, 4, 1);
    open_puller(&p);
    assert_int_equal(pull(p, 2), 2);
    sl_pull_ack(p, 1);
    assert_int_equal(pull(p, 2), 2); /* the first was given back */
    assert_int_equal(sl_msg_id(sl_pull_msg(p, 0)), 1);
    assert_int_equal(sl_msg_attempt(sl_pull_msg(p, 0)), 1);
    assert_int_equal(sl_msg_id(sl_pull_msg(p, 1)), 3);
    assert_int_equal(testdb_count(&t), 3);
}

static void closing_gives_back(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_puller(&p);
    assert_int_equal(pull(p, 10), 3);
    sl_pull_ack(p, 0);
    sl_pull_close(p); /* writes what was recorded */
    p = NULL;
    testdb_expect(&t, "2 0 - -\n3 0 - -", ROWS);
    assert_int_equal(claims(), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 0);
}

static void a_delay_without_end_is_no_overflow(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    open_puller(&p);
    assert_int_equal(pull(p, 10), 1);
    sl_pull_retry(p, 0, INT64_MAX, NULL);
    if (sl_pull_end(p, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_true(testdb_ahead_us(&t, "available_at", 1) > INT64_C(86400000000) * 365 * 200);
}

/* ---- Leases ---- */

static int64_t lease_end_us(void)
{
    return testdb_time_us(
        &t, ordered ? "(SELECT max(ends_at) FROM sluice_outbox_claims)"
                    : "(SELECT max(leased_until) FROM sluice_outbox WHERE id = 3)");
}

/* While nobody but the keeper works on them. Long enough that a keeper that is stopped for some seconds loses none. */
static void leases_are_kept_alive(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    set("lease", "6s");
    open_puller(&p);
    open_puller(&q);
    assert_int_equal(pull(p, 10), 3);
    sl_pull_ack(p, 0);
    sl_pull_retry(p, 1, 0, NULL);
    assert_int_equal(sl_pull_settle(p, &err), SL_OK);
    int64_t end_us = lease_end_us();
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (lease_end_us() <= end_us && sl_now_ns() < until_ns)
        usleep(20000);
    assert_true(lease_end_us() > end_us);
    assert_int_equal(pull(q, 10), 1); /* what was settled is not kept */
    assert_int_equal(sl_msg_id(sl_pull_msg(q, 0)), 2);
    if (!ordered)
        assert_true(testdb_ahead_us(&t, "leased_until", 3) > 0);
    sl_pull_ack(p, 2);
    if (sl_pull_end(p, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_false(has_logged(" "));
}

static void a_lost_lease_is_told(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_puller(&p);
    open_puller(&q);
    assert_int_equal(pull(p, 10), 3);
    expire();
    assert_int_equal(pull(q, 2), 2);
    for (size_t i = 0; i < 3; i++)
        sl_pull_ack(p, i);
    assert_int_equal(sl_pull_settle(p, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "lease lost: 2 messages"));
    testdb_expect(&t, ordered ? "1 0 - -\n2 0 - -" : "1 2 other -\n2 2 other -",
                  ROWS);                           /* the third was written */
    assert_int_equal(sl_pull_end(p, &err), SL_OK); /* told once */
    sl_pull_ack(q, 0);
    sl_pull_ack(q, 1);
    assert_int_equal(sl_pull_end(q, &err), SL_OK);
    assert_int_equal(testdb_count(&t), 0);
}

/* By the keeper, while the caller is still busy. */
static void a_lost_lease_is_logged(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 1);
    set("lease", "1s");
    open_puller(&p);
    assert_int_equal(pull(p, 10), 2);
    testdb_exec(&t, ordered ? "UPDATE sluice_outbox_claims SET epoch = epoch + 100"
                            : "UPDATE sluice_outbox SET epoch = epoch + 1 WHERE id = 1");
    wait_logged("leases were not renewed");
    assert_true(has_logged(ordered ? "lease lost: " : "lease lost: 1 of 2"));
    sl_pull_ack(p, 0);
    assert_int_equal(sl_pull_end(p, &err), SL_AGAIN);
}

/* ---- Order ---- */

/* The rest of a key that failed stays behind it, also for others. */
static void a_key_that_failed_waits_for_its_head(void **state)
{
    (void)state;
    if (!ordered)
        return;
    testdb_push(&t, "x", 3);
    testdb_push(&t, "y", 1);
    open_puller(&p);
    open_puller(&q);
    assert_int_equal(pull(p, 10), 4);
    assert_int_equal(pull(q, 10), 0);
    sl_pull_retry(p, 0, 3600 * 1000, "busy");
    assert_int_equal(sl_pull_end(p, &err), SL_OK);
    assert_int_equal(pull(q, 10), 1); /* y */
    assert_int_equal(sl_msg_id(sl_pull_msg(q, 0)), 4);
    sl_pull_ack(q, 0);
    testdb_schedule(&t, 1, -60); /* as if its time had come */
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    for (int64_t next = 1; next <= 3;) {
        if (sl_pull(q, 10, 20000, &count, &err) != SL_OK || count == 0)
            fail_msg("nothing comes: %s", err.text);
        for (size_t i = 0; i < count; i++, next++) {
            assert_int_equal(sl_msg_id(sl_pull_msg(q, i)), next);
            assert_int_equal(sl_msg_attempt(sl_pull_msg(q, i)), next == 1 ? 2 : 1);
            sl_pull_ack(q, i);
        }
    }
    assert_int_equal(sl_pull_end(q, &err), SL_OK);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(claims(), 0);
}

/* Whoever keeps messages needs a lease that another connection can renew. */
static void other_strategies_are_refused(void **state)
{
    (void)state;
    set("strategy", "lanes");
    assert_int_equal(sl_pull_open(&p, conf, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "hint: guard, or skip-locked"));
    set("strategy", "advisory");
    assert_int_equal(sl_pull_open(&p, conf, &err), SL_REFUSED);
    assert_null(p);
}

/* A pull is a node among the others. */
static void a_table_shared_otherwise_is_refused(void **state)
{
    (void)state;
    open_puller(&p);
    testdb_expect(&t, ordered ? "puller guard" : "puller skip-locked",
                  "SELECT node || ' ' || strategy FROM sluice_outbox_nodes");
    set("strategy", ordered ? "skip-locked" : "guard");
    assert_int_equal(sl_pull_open(&q, conf, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "node 'puller' lives"));
    assert_null(q);
}

/* Forgotten, while others came that share the table in another way: it takes nothing any more. */
static void one_that_was_forgotten_is_refused_too(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    set("lease", "1s");
    open_puller(&p);
    testdb_exec(
        &t, "UPDATE sluice_outbox_nodes SET session = 1, node = 'theirs', strategy = 'lanes', "
            "lives_until = '2999-01-01 00:00:00.000'");
    wait_logged("no node any more");
    assert_int_equal(sl_pull(p, 10, 0, &count, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "node 'theirs' lives"));
    assert_int_equal(count, 0);
}

/* ---- When the database is away ---- */

static void wait_for_locks_shortly(void)
{
    if (!t.pg)
        set("connect_timeout", "1s"); /* as long for a lock */
}

/* Makes every settle fail: no table to write to, or another writer. */
static void forbid(void)
{
    testdb_exec(&t,
                testdb_or(&t, "ALTER TABLE sluice_outbox RENAME TO gone", "BEGIN IMMEDIATE"));
}

static void allow_again(void)
{
    char sql[128] = "ROLLBACK";
    if (t.pg)
        snprintf(sql, sizeof sql, "ALTER TABLE %s.gone RENAME TO outbox", t.names.schema);
    testdb_exec(&t, sql);
}

static void verdicts_are_kept_for_another_try(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    wait_for_locks_shortly();
    open_puller(&p);
    assert_int_equal(pull(p, 10), 3);
    sl_pull_ack(p, 0);
    assert_int_equal(sl_pull_settle(p, &err), SL_OK); /* a part is written already */
    sl_pull_ack(p, 1);
    forbid();
    assert_int_not_equal(sl_pull_settle(p, &err), SL_OK);
    assert_int_not_equal(sl_pull_end(p, &err), SL_OK);
    assert_non_null(sl_pull_msg(p, 1)); /* the batch is still there */
    size_t n = 99;
    assert_int_not_equal(sl_pull(p, 10, 0, &n, &err), SL_OK);
    assert_int_equal(n, 0);
    allow_again();
    if (sl_pull_end(p, &err) != SL_OK)
        fail_msg("%s", err.text);
    testdb_expect(&t, "3 0 - -", ROWS);
    assert_int_equal(pull(p, 10), 1);
}

static void a_failed_pull_can_be_repeated(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 1);
    wait_for_locks_shortly();
    open_puller(&p);
    forbid();
    count = 99;
    assert_int_not_equal(sl_pull(p, 10, 0, &count, &err), SL_OK);
    assert_int_equal(count, 0);
    assert_null(sl_pull_msg(p, 0));
    allow_again();
    assert_int_equal(pull(p, 10), 2);
}

static void a_lost_connection_is_replaced(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    testdb_fill(&t, 2, 1);
    open_puller(&p);
    assert_int_equal(pull(p, 10), 2);
    sl_pull_ack(p, 0);
    testdb_cut(&t);
    assert_int_equal(sl_pull_end(p, &err), SL_AGAIN);
    if (sl_pull_end(p, &err) != SL_OK)
        fail_msg("%s", err.text);
    testdb_expect(&t, "2 0 - -", ROWS);
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(messages_come_in_order),
        TEST(nothing_there_is_waited_for),
        TEST(two_pullers_share_nothing),
        TEST(what_cannot_work_fails_at_once),
        TEST(each_verdict_is_written),
        TEST(a_later_verdict_replaces_until_it_is_written),
        TEST(the_next_pull_ends_the_batch),
        TEST(closing_gives_back),
        TEST(a_delay_without_end_is_no_overflow),
        TEST(leases_are_kept_alive),
        TEST(a_lost_lease_is_told),
        TEST(a_lost_lease_is_logged),
        TEST(a_key_that_failed_waits_for_its_head),
        TEST(other_strategies_are_refused),
        TEST(a_table_shared_otherwise_is_refused),
        TEST(one_that_was_forgotten_is_refused_too),
        TEST(verdicts_are_kept_for_another_try),
        TEST(a_failed_pull_can_be_repeated),
        TEST(a_lost_connection_is_replaced),
    };
    print_message("by %s on %s\n", ordered ? "guard" : "skip-locked", dialect);
    return cmocka_run_group_tests_name(dialect, tests, NULL, NULL);
}

static int on(const char *name)
{
    int failed = 0;
    dialect = name;
    for (int i = 0; i < 2; i++) {
        ordered = i == 0;
        failed += run_group();
    }
    return failed;
}

int main(void)
{
    return testdb_each(on);
}
