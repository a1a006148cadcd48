/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How PostgreSQL runs our statements on a large table: by the primary key, and without sorting
 * it. What is looked at is the plan of the very statement that the driver has prepared, in the
 * session of a worker that has been at work for a while: after some runs the server may settle
 * for a plan that it made when the table was empty.
 *
 * Those of the ordered strategies are also run, and the pages that they read are counted: an index
 * that leads through the whole table is no better than none.
 */
#include "contract/claims.h"

enum { ROWS = 200000, ORDERED_ROWS = 100000, IDLE_TURNS = 12 };

static sl_hold hold;
static const sl_claim_ops *strategy;
static testdb t;
static lane_node node;
static worker w;
static worker sessions[2];

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
    lane_node_fini(&node);
    testdb_drop(&t);
    return 0;
}

static void open_worker(void)
{
    sl_claim_conf conf = claims_conf("n/1", hold);
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(&w, &t, strategy, &conf);
}

/* As a worker does in a quiet hour: turns on nothing, and some on one message. */
static void idle(void)
{
    for (int i = 0; i < IDLE_TURNS; i++)
        assert_int_equal(worker_take(&w, 500), 0);
    for (int i = 0; i < IDLE_TURNS; i++) {
        testdb_fill(&t, 1, 1);
        while (worker_take(&w, 500) == 0)
            ;
        assert_int_equal(worker_settle(&w, i % 2 ? SL_RETRY : SL_SENT, SL_NONE), 0);
    }
    testdb_exec(&t, "DELETE FROM sluice_outbox"); /* TRUNCATE would make it plan anew */
}

/* The plan of a statement as the worker's session would run it now. */
static void explain(const char *how, const char *stmt, const char *params, sl_buf *plan)
{
    static int slot;
    char sql[4096];
    sl_err err = { 0 };
    snprintf(sql, sizeof sql, "EXPLAIN (%s) EXECUTE sluice_%d%s%s%s", how,
             sl_db_stmt(w.db, stmt)->index, *params ? " (" : "", params, *params ? ")" : "");
    sl_stmt s = testdb_stmt(w.db, slot++ % 16, sql, 1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = testdb_row_text, .ctx = plan };
    if (w.db->ops->run(w.db, &call, 1, &err) != SL_OK)
        fail_msg("%s: %s", sql, err.text);
}

/* `must` is in the plan; the table is never read whole, and never sorted. */
static void has_plan(const char *stmt, const char *params, const char *must)
{
    sl_buf plan = { 0 };
    explain("COSTS OFF", stmt, params, &plan);
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
    looks_up("settle/retry", "'{1,2,3}', '{1,1,1}', '{0,0,0}', '{a,b,c}', 0");
    looks_up("settle/bury", "'{1,2,3}', '{1,1,1}', '{a,b,c}', 0");
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
    int64_t before = sl_now_ns();
    assert_int_equal(worker_take(&w, 500), 500);
    int64_t took = sl_now_ns() - before;
    print_message("500 of %d messages in %lld ms\n", ROWS, (long long)(took / SL_MS));
    assert_true(took < 2 * SL_SEC);
}

/* ---- The ordered strategies ---- */

typedef enum shape {
    MANY_KEYS,
    ONE_KEY,
    NO_KEYS,
    ONE_BLOCKED, /* one key that is blocked has most of the messages */
    ALL_BLOCKED, /* each message has failed, each of a key of its own: the sink is down */
    NONE_DUE,    /* the same without keys */
    SHAPES
} shape;

static const char *const shape_names[] = { "many keys",      "one key",         "no keys",
                                           "one is blocked", "all are blocked", "none is due" };

static void fill(shape s)
{
    static const char *const sql[] = {
        [MANY_KEYS] = "SELECT 'x', 'k' || i % 5000, 'p'::bytea, now(), false",
        [ONE_KEY] = "SELECT 'x', 'hot', 'p'::bytea, now(), false",
        [NO_KEYS] = "SELECT 'x', NULL, 'p'::bytea, now(), false",
        [ONE_BLOCKED] =
            "SELECT 'x', CASE WHEN i % 200 = 0 THEN 'k' || i ELSE 'hot' END, 'p'::bytea, "
            "now(), i % 200 <> 0",
        [ALL_BLOCKED] = "SELECT 'x', 'k' || i, 'p'::bytea, now() + interval '1 hour', true",
        [NONE_DUE] = "SELECT 'x', NULL, 'p'::bytea, now() + interval '1 hour', true",
    };
    char text[512];
    snprintf(
        text, sizeof text,
        "INSERT INTO sluice_outbox (topic, entity_key, payload, available_at, held) %s FROM "
        "generate_series(1, %d) i",
        sql[s], ORDERED_ROWS);
    testdb_exec(&t, text);
    testdb_exec(&t,
                "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT "
                "entity_key, min(lane), min(id), now() + interval '1 hour' FROM sluice_outbox "
                "WHERE held AND entity_key IS NOT NULL GROUP BY entity_key");
}

static void analyze(void)
{
    testdb_exec(&t, "ANALYZE sluice_outbox");
    testdb_exec(&t, "ANALYZE sluice_outbox_keys");
    testdb_exec(&t, "ANALYZE sluice_outbox_claims");
    testdb_exec(&t, "ANALYZE sluice_outbox_lanes");
}

static shape now;
static const char *when;
static int greedy; /* statements that read too much */

/* The pages of the top node, which are those of all. */
static long pages_of(const char *plan)
{
    long pages = 0;
    const char *at = strstr(plan, "Buffers: shared");
    const char *end = at ? strchr(at, '\n') : NULL;
    for (; at && at < end; at = strchr(at + 1, '=')) {
        if (!strncmp(at - 3, "hit", 3) || !strncmp(at - 4, "read", 4))
            pages += strtol(at + 1, NULL, 10);
        if (!strchr(at + 1, '='))
            break;
    }
    return pages;
}

/* Runs it, and takes it back. */
static void reads_little(const char *stmt, const char *params, long most)
{
    sl_buf plan = { 0 };
    testdb_script(w.db, &t.names, "BEGIN");
    sl_err err = { 0 };
    assert_int_equal(sl_db_run1(w.db, "epoch/next", NULL, NULL, NULL, NULL, &err), SL_OK);
    explain("ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", stmt, params, &plan);
    testdb_script(w.db, &t.names, "ROLLBACK");
    const char *text = sl_buf_text(&plan);
    long pages = pages_of(text);
    if (pages > most || strstr(text, "Seq Scan on outbox ")) {
        print_error("%s (%s, %s): %ld pages, expected at most %ld\n", stmt, shape_names[now],
                    when, pages, most);
        fputs(text, stderr); /* longer than cmocka would print */
        fputc('\n', stderr);
        greedy++;
    }
    sl_buf_fini(&plan);
}

/* "'{1,2,3}'" */
static const char *numbers(int64_t first, int64_t step, int count)
{
    static char text[4][2048];
    static int next;
    char *to = text[next++ % 4];
    size_t n = (size_t)snprintf(to, sizeof text[0], "'{");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(to + n, sizeof text[0] - n, "%s%lld", i ? "," : "",
                              (long long)(first + step * i));
    snprintf(to + n, sizeof text[0] - n, "}'");
    return to;
}

static void lanes_read_little(void)
{
    char in[4096];
    snprintf(in, sizeof in, "%s, %s, %s, 500, 8388608", numbers(0, 1, 64), numbers(0, 0, 64),
             numbers(8, 0, 64));
    reads_little("lanes/take", in, 2000);
    snprintf(in, sizeof in, "%s, 16, 32", numbers(0, 1, 64));
    reads_little("lanes/due", in, 500);
    snprintf(in, sizeof in, "%s, %s", numbers(1, 7, 50), numbers(1, 0, 50));
    reads_little("lanes/sent", in, 500);
    snprintf(in, sizeof in, "%s, %s", numbers(0, 1, 64), numbers(1, 0, 64));
    reads_little("lanes/fence", in, 300);
}

static void keys_read_little(void)
{
    char in[4096];
    reads_little("keyed/lock", "0, 64, 32, 8388608, 100", 1000);
    reads_little("keyed/due_lock", "16", 300);
    snprintf(in, sizeof in, "%s, 8388608", numbers(1, 1, 50));
    reads_little("keyed/read", in, 500);
    reads_little("keyed/due_read", "'{khot,kk1,i5}', 32", 300);
    reads_little("keyed/sweep", "'{khot,kk1,i5}'", 100);
}

static void guard_reads_little(void)
{
    char in[4096];
    reads_little("guard/sent", "'{1,8,15,22,29}', '{1,1,1,1,1}'", 100);
    snprintf(in, sizeof in, "%s, 30000000, 1, 'n/1'", numbers(1, 1, 50));
    reads_little("guard/lease", in, 1500);
    reads_little("guard/fence", "'{khot,kk1,i5}', 1", 50);
    reads_little("guard/renew", "'{khot,kk1,i5}', 1, 30000000", 50);
    reads_little("guard/done", "'{khot,kk1,i5}', 1", 50);
    reads_little("guard/keys", "'{1,2,3}'", 50);
    reads_little("guard/peek", "", 500);
}

static void settling_reads_little(void)
{
    reads_little("ordered/sent", "'{1,8,15,22,29}'", 100);
    reads_little("ordered/retry", "'{1,8,15}', '{5,5,5}', '{a,b,c}'", 200);
    reads_little("ordered/bury", "'{1,8,15}', '{5,5,5}', '{a,b,c}'", 100);
    reads_little("ordered/hold", "'{1,8,15,22,29}'", 200);
    reads_little("ordered/block", now == ONE_KEY || now == ONE_BLOCKED ? "'{1}'" : "'{1,8,15}'",
                 100);
    reads_little("ordered/unblock", "'{hot,k1,k2}'", 100);
    reads_little("ordered/rotate", "'{hot,k1,k2}'", 100);
    reads_little("ordered/peek", "", 300);
}

/* Sessions of both kinds, on the same table; advisory has no statement of its own. */
static void in_each_session(void (*fn)(void))
{
    static const char *const names[] = { "lanes", "guard" };
    for (size_t i = 0; i < COUNT(names); i++) {
        worker kept = w;
        w = sessions[i];
        strategy = sl_claim_named(names[i]);
        if (!w.claim)
            open_worker();
        fn();
        sessions[i] = w;
        w = kept;
    }
}

static void nothing_yet(void)
{
}

static void all_read_little(void)
{
    if (strategy->owns_lanes) {
        lanes_read_little();
    } else {
        keys_read_little();
        guard_reads_little();
    }
    settling_reads_little();
}

static void check_all(const char *name)
{
    when = name;
    greedy = 0;
    in_each_session(all_read_little);
    assert_int_equal(greedy, 0);
}

static int teardown_sessions(void **state)
{
    for (size_t i = 0; i < COUNT(sessions); i++)
        worker_close(&sessions[i]);
    return teardown(state);
}

static void a_large_table_is_read_in_little_pieces(void **state)
{
    (void)state;
    fill(now);
    analyze();
    check_all("analysed");
}

static void so_is_one_that_was_empty_when_analysed(void **state)
{
    (void)state;
    analyze();
    fill(now);
    check_all("analysed when empty");
}

static void so_is_one_that_was_empty_while_we_idled(void **state)
{
    (void)state;
    analyze();
    in_each_session(nothing_yet);
    in_each_session(idle);
    testdb_exec(&t, "DELETE FROM sluice_outbox_keys");
    fill(now);
    check_all("idled when empty");
}

static int run_ordered(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown_sessions)
    const struct CMUnitTest tests[] = {
        TEST(a_large_table_is_read_in_little_pieces),
        TEST(so_is_one_that_was_empty_when_analysed),
        TEST(so_is_one_that_was_empty_while_we_idled),
    };
#undef TEST
    int failed = 0;
    for (now = 0; now < SHAPES; now++) {
        print_message("%s\n", shape_names[now]);
        failed += cmocka_run_group_tests_name(shape_names[now], tests, NULL, NULL);
    }
    return failed;
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(on_a_large_table),
        TEST(on_a_table_that_was_empty_when_analysed),
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
    strategy = sl_claim_named("skip-locked");
    for (int h = SL_HOLD_LEASE; h <= SL_HOLD_TRANSACTION; h++) {
        hold = (sl_hold)h;
        failed += run_group();
    }
    return failed + run_ordered();
}
