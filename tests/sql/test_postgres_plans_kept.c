/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How PostgreSQL runs what keeps, purges and resends delivered messages, on large tables: by an index, whatever the
 * statistics say, in a session that has been at work since the tables were empty.
 */
#include "sql/explain.h"

#include "lib/sent.h"

enum { ROWS = 100000, IDLE_TURNS = 12 };

static testdb t;
static lane_node node;
static worker w;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, "postgres", NULL);
    /* Else the server may mend, or spoil, the statistics at any time. */
    testdb_exec(&t, "ALTER TABLE sluice_outbox SET (autovacuum_enabled = off)");
    testdb_exec(&t, "ALTER TABLE sluice_outbox_sent SET (autovacuum_enabled = off)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    worker_close(&w);
    lane_node_fini(&node);
    testdb_drop(&t);
    return 0;
}

static void open_keeping(const char *strategy)
{
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    conf.keep = true;
    claims_give_lanes(&conf, sl_claim_named(strategy), &node, &t);
    worker_open(&w, &t, sl_claim_named(strategy), &conf);
}

static void analyse(void)
{
    testdb_exec(&t, "ANALYZE sluice_outbox");
    testdb_exec(&t, "ANALYZE sluice_outbox_sent");
}

static void keep_many(void)
{
    testdb_exec(&t, "INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, "
                    "payload, content_type, attempts, "
                    "epoch, sent_at) SELECT i, 't', 'k' || i % 1000, '', '', '', 1, 0, now() - "
                    "i * interval '1 second' "
                    "FROM generate_series(1, 100000) AS s (i)");
}

/* `must` is in the plan, and no table that grows is read whole. */
static void has_plan(const char *stmt, const char *params, const char *must)
{
    sl_buf plan = { 0 };
    explain(&w, stmt, params, &plan);
    const char *text = sl_buf_text(&plan);
    if (strstr(text, "Materialize") || strstr(text, "Seq Scan on outbox m") ||
        strstr(text, "Seq Scan on outbox o") || strstr(text, "Seq Scan on outbox_sent") ||
        !strstr(text, must))
        fail_msg("%s:\n%s", stmt, text);
    sl_buf_fini(&plan);
}

/* ---- Keeping ---- */

/* Turns on one message: the server may settle for a plan of the quiet hour. */
static void idle(void)
{
    for (int i = 0; i < IDLE_TURNS; i++) {
        testdb_fill(&t, 1, 1);
        int64_t until_ns = sl_now_ns() + 10 * SL_SEC;
        while (worker_take(&w, 500) == 0 && sl_now_ns() < until_ns)
            usleep(1000);
        assert_int_equal(worker_settle(&w, SL_SENT, SL_NONE), 0);
    }
}

static void keeping_looks_up(const char *strategy, const char *stmt, const char *params)
{
    analyse();
    open_keeping(strategy);
    idle();
    testdb_fill(&t, ROWS, 10);
    const char *must = strstr(stmt, "lanes") || strstr(stmt, "guard")
                           ? "Index Cond: (id = n.id)"
                           : "Index Cond: (id = u.id)";
    has_plan(stmt, params, must);
    analyse();
    has_plan(stmt, params, must);
}

static void of_skip_locked(void **state)
{
    (void)state;
    keeping_looks_up("skip-locked", "settle/keep", "'{1,2,3}', '{1,1,1}', '{0,0,0}'");
}

static void of_lanes(void **state)
{
    (void)state;
    keeping_looks_up("lanes", "lanes/keep", "'{1,2,3}', '{1,1,1}', '{1,1,1}', '{4,5,6}'");
    has_plan("ordered/keep", "'{1,2,3}', '{1,1,1}', '{1,1,1}'", "Index Cond: (id = u.id)");
}

static void of_guard(void **state)
{
    (void)state;
    keeping_looks_up("guard", "guard/keep", "'{1,2,3}', '{1,1,1}', '{1,1,1}'");
    has_plan("ordered/keep", "'{1,2,3}', '{1,1,1}', '{1,1,1}'", "Index Cond: (id = u.id)");
}

static void of_advisory(void **state)
{
    (void)state;
    keeping_looks_up("advisory", "ordered/keep", "'{1,2,3}', '{1,1,1}', '{1,1,1}'");
}

/* ---- Purging and resending ---- */

/* In a session that began when nothing was kept. */
static void run_on_nothing(void)
{
    int64_t none;
    sl_val in[] = { sl_ints(&none, 0), sl_ints(&none, 0) };
    static const char *const stmts[] = { "sent/lock", "sent/resend", "sent/pick" };
    for (int i = 0; i < IDLE_TURNS; i++) {
        assert_int_equal(sl_sent_rehearse(w.db, &err), SL_OK);
        for (size_t k = 0; k < COUNT(stmts); k++)
            assert_int_equal(sl_db_run1(w.db, stmts[k], in, NULL, NULL, NULL, &err), SL_OK);
    }
}

static void the_purge_reads_the_oldest(void)
{
    has_plan("sent/purge", "3600000000, 0, 500",
             "Index Scan using outbox_ix_sent on outbox_sent s");
    has_plan("sent/purge", "3600000000, 0, 500", "Tid Scan on outbox_sent d");
}

static void resending_looks_up(void)
{
    has_plan("sent/pick", "'{1,2,3}'", "Index Cond: (id = ");
    has_plan("sent/lock", "'{1,2,3}', '{1,2,3}'", "Index Cond: (id = ");
    has_plan("sent/resend", "'{1,2,3}', '{1,2,3}'", "Index Cond: (id = ");
}

static void of_what_is_kept(void **state)
{
    (void)state;
    analyse();
    open_keeping("lanes");
    run_on_nothing();
    keep_many();
    the_purge_reads_the_oldest();
    resending_looks_up();
    analyse();
    the_purge_reads_the_oldest();
    resending_looks_up();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(of_skip_locked), TEST(of_lanes),        TEST(of_guard),
        TEST(of_advisory),    TEST(of_what_is_kept),
    };
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
