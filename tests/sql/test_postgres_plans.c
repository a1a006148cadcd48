/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How PostgreSQL runs our statements on a large table: by the primary key, and without sorting
 * it. What is looked at is the plan of the very statement that the driver has prepared, in the
 * session of a worker that has been at work for a while: after some runs the server may settle
 * for a plan that it made when the table was empty.
 */
#include "sql/explain.h"

enum { ROWS = 200000, IDLE_TURNS = 12 };

static sl_hold hold;
static testdb t;
static worker w;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, "postgres", NULL);
    /* Else the server may mend, or spoil, the statistics at any time. */
    testdb_exec(&t, "ALTER TABLE sluice_outbox SET (autovacuum_enabled = off)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    worker_close(&w);
    testdb_drop(&t);
    return 0;
}

static void open_worker(void)
{
    sl_claim_conf conf = claims_conf("n/1", hold);
    worker_open(&w, &t, sl_claim_named("skip-locked"), &conf);
}

/* As a worker does in a quiet hour: turns on nothing, and some on one message. */
static void idle(void)
{
    for (int i = 0; i < IDLE_TURNS; i++)
        assert_int_equal(worker_take(&w, 500), 0);
    for (int i = 0; i < IDLE_TURNS; i++) {
        testdb_fill(&t, 1, 1);
        assert_int_equal(worker_take(&w, 500), 1);
        assert_int_equal(worker_settle(&w, i % 2 ? SL_RETRY : SL_SENT, SL_NONE), 0);
    }
    testdb_exec(&t, "DELETE FROM sluice_outbox"); /* TRUNCATE would make it plan anew */
}

/* `must` is in the plan; the table is never read whole, and never sorted. */
static void has_plan(const char *stmt, const char *params, const char *must)
{
    sl_buf plan = { 0 };
    explain(&w, stmt, params, &plan);
    const char *text = sl_buf_text(&plan);
    const char *lock = strstr(text, "LockRows\n");
    bool sorted = lock && !strncmp(lock + 9 + strspn(lock + 9, " "), "->  Sort", 8);
    if (strstr(text, "Seq Scan on outbox") || !strstr(text, must) || sorted)
        fail_msg("%s:\n%s", stmt, text);
    sl_buf_fini(&plan);
}

/* The oldest come first, read in the order of the key. */
static void reads_in_order(const char *stmt, const char *params)
{
    has_plan(stmt, params, "Index Scan using outbox_pkey on outbox");
}

/* Only the rows that are named are looked up. */
static void looks_up(const char *stmt, const char *params)
{
    has_plan(stmt, params, "Index Cond: (id = ");
}

static void claims_use_the_key(void)
{
    if (hold == SL_HOLD_LEASE) {
        reads_in_order("skip_locked/lease", "500, 8388608, 30000000, 'n/1'");
        looks_up("skip_locked/lease", "500, 8388608, 30000000, 'n/1'");
        looks_up("lease/renew", "'{1,2,3,4,5}', '{1,1,1,1,1}', 30000000");
    } else {
        reads_in_order("skip_locked/take", "500, 8388608");
    }
}

static void settling_uses_the_key(void)
{
    looks_up("settle/sent", "'{1,2,3,4,5}', '{1,1,1,1,1}'");
    looks_up("settle/retry", "'{1,2,3}', '{1,1,1}', '{0,0,0}', '{a,b,c}', '{0,0,0}'");
    has_plan("settle/bury", "'{1,2,3}', '{1,1,1}', '{a,b,c}', '{0,0,0}'",
             "Index Cond: (id = u.id)");
    looks_up("settle/release", "'{1,2,3}', '{1,1,1}'");
}

static void on_a_large_table(void **state)
{
    (void)state;
    testdb_fill(&t, ROWS, 10);
    testdb_exec(&t, "ANALYZE sluice_outbox");
    open_worker();
    claims_use_the_key();
    settling_uses_the_key();
    assert_int_equal(worker_take(&w, 500), 500);
    assert_int_equal(worker_settle(&w, SL_SENT, SL_NONE), 0);
    all_were_planned_once(&w);
}

/* The statistics say: empty. */
static void on_a_table_that_was_empty_when_analysed(void **state)
{
    (void)state;
    testdb_exec(&t, "ANALYZE sluice_outbox");
    testdb_fill(&t, ROWS, 10);
    open_worker();
    claims_use_the_key();
    settling_uses_the_key();
}

/* The statistics say: large, and nothing in it. Autovacuum looked when all had just gone. */
static void on_a_table_that_was_worn_when_analysed(void **state)
{
    (void)state;
    testdb_fill(&t, ROWS, 10);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    testdb_exec(&t, "ANALYZE sluice_outbox");
    testdb_fill(&t, ROWS, 10);
    open_worker();
    claims_use_the_key();
    settling_uses_the_key();
}

/* A burst after a quiet hour: the worker's plans must not be those of the quiet hour. */
static void on_a_table_that_was_empty_while_we_idled(void **state)
{
    (void)state;
    testdb_exec(&t, "ANALYZE sluice_outbox");
    open_worker();
    idle();
    testdb_fill(&t, ROWS, 10);
    claims_use_the_key();
    settling_uses_the_key();
}

/* And it is quick: the whole of it would take far longer. */
static void a_burst_is_claimed_in_no_time(void **state)
{
    (void)state;
    testdb_exec(&t, "ANALYZE sluice_outbox");
    open_worker();
    for (int i = 0; i < IDLE_TURNS; i++)
        assert_int_equal(worker_take(&w, 500), 0);
    testdb_fill(&t, ROWS, 10);
    int64_t took = INT64_MAX;
    for (int tries = 5; took > 2 * SL_SEC; tries--) { /* the machine may have been busy */
        assert_true(tries > 0);
        int64_t before = sl_now_ns();
        assert_int_equal(worker_take(&w, 500), 500);
        took = sl_now_ns() - before;
        print_message("500 of %d messages in %lld ms\n", ROWS, (long long)(took / SL_MS));
        assert_int_equal(worker_settle(&w, SL_RELEASED, SL_NONE), 0);
    }
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(on_a_large_table),
        TEST(on_a_table_that_was_empty_when_analysed),
        TEST(on_a_table_that_was_worn_when_analysed),
        TEST(on_a_table_that_was_empty_while_we_idled),
        TEST(a_burst_is_claimed_in_no_time),
    };
    print_message("held by %s\n", hold == SL_HOLD_LEASE ? "lease" : "transaction");
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}

int main(void)
{
    int failed = 0;
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
    for (int h = SL_HOLD_LEASE; h <= SL_HOLD_TRANSACTION; h++) {
        hold = (sl_hold)h;
        failed += run_group();
    }
    return failed;
}
