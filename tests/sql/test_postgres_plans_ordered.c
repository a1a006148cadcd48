/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How PostgreSQL runs the statements of the ordered strategies once the tables are large and its
 * statistics still say that they are empty, which is what a worker meets when a sink breaks down: each
 * table is looked up by an index with a condition, whatever was believed when the plan was made.
 */
#include "sql/explain.h"

enum { ROWS = 20000 };

static testdb t;
static worker w;
static lane_node node;

#define TABLES "sluice_outbox, sluice_outbox_keys, sluice_outbox_claims, sluice_outbox_lanes"

static void make_tables(void)
{
    static const char *const names[] = { "", "_keys", "_claims", "_lanes" };
    testdb_init(&t, "postgres", NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "ALTER TABLE sluice_outbox%s SET (autovacuum_enabled = off)",
                 names[i]);
        testdb_exec(&t, sql); /* else the server may mend the statistics at any time */
    }
    testdb_exec(&t, "ANALYZE " TABLES);
}

/* A third of the messages is held behind blocked keys, some keys are leased. */
static void fill_tables(void)
{
    testdb_fill(&t, ROWS, 10);
    testdb_exec(&t,
                "UPDATE sluice_outbox SET entity_key = 'k' || id % 15000, held = id % 3 = 0");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT "
                "DISTINCT ON (entity_key) entity_key, lane, id, now() + interval '1 h' FROM "
                "sluice_outbox WHERE held ORDER BY entity_key, id");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by) "
                "SELECT 'k' || g, 1, now() + interval '1 h', 1, 'n' FROM generate_series(1, "
                "2000) g");
}

static int teardown(void **state)
{
    (void)state;
    worker_close(&w);
    lane_node_fini(&node);
    testdb_drop(&t);
    return 0;
}

/* Prepares what the strategy needs, with plans of empty tables, and fills them. */
static void begin(const char *strategy)
{
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    make_tables();
    lane_node_join(&node, &t, "n");
    conf.lanes = node.lanes;
    worker_open(&w, &t, sl_claim_named(strategy), &conf);
    testdb_script(w.db, &t.names, "SET plan_cache_mode = force_generic_plan");
    fill_tables();
}

/* Does the scan that this line names have a condition for its index? */
static bool has_condition(const char *line)
{
    const char *next = strchr(line, '\n');
    next = next ? next + 1 + strspn(next + 1, " ") : "";
    return !strncmp(next, "Index Cond: ", 12) || !strncmp(next, "Recheck Cond: ", 14);
}

/* That any key is blocked is asked for as such: the first one will do. */
static bool any_will_do(const char *text, const char *line)
{
    while (line > text && line[-1] != '\n')
        line--;
    const char *before = line > text ? line - 2 : line;
    while (before > text && before[-1] != '\n')
        before--;
    return strstr(before, "InitPlan") && strstr(before, "InitPlan") < line;
}

static void looks_up(const char *stmt, const char *params, const char *must)
{
    sl_buf plan = { 0 };
    explain(&w, stmt, params, &plan);
    const char *text = sl_buf_text(&plan);
    bool good = strstr(text, must) && !strstr(text, "Seq Scan on outbox");
    for (const char *at = strstr(text, " on outbox"); at; at = strstr(at + 1, " on outbox")) {
        bool written = !strncmp(at - 6, "Delete", 6) || !strncmp(at - 6, "Update", 6) ||
                       !strncmp(at - 6, "Insert", 6);
        good &= written || has_condition(at) || any_will_do(text, at);
    }
    if (!good)
        fail_msg("%s, '%s' is wanted:\n%s", stmt, must, text);
    sl_buf_fini(&plan);
}

#define BY_ID "Index Cond: (id = ANY ($1))"
#define BY_DUE "Index Cond: (due_at <= statement_timestamp())"
#define BY_LANE "Index Cond: ((lane = "

static void lanes_by_lane_and_floor(void **state)
{
    (void)state;
    begin("lanes");
    looks_up("lanes/take", "'{1,2,3}', '{0,0,0}', '{100,100,100}', 300, 8388608", BY_LANE);
    looks_up("lanes/sent", "'{1,2,3}', '{1,1,1}'", BY_ID);
    looks_up("lanes/due", "'{1,2,3}', 16, 32", BY_DUE);
    looks_up("lanes/due", "'{1,2,3}', 16, 32", "Index Cond: (entity_key = ");
    looks_up("lanes/due", "'{1,2,3}', 16, 32", "Index Cond: (available_at <= ");
}

static void keys_by_id_and_name(void **state)
{
    (void)state;
    begin("guard");
    looks_up("keyed/look", "0, 500, 1", "Index Cond: (id >= $1)");
    looks_up("keyed/read", "'{1,2,3}'", BY_ID);
    looks_up("guard/lease", "'{1,2,3}', 1000000, 1, 'n/1'", BY_ID);
    looks_up("guard/sent", "'{1,2,3}', '{1}'", BY_ID);
    looks_up("guard/done", "'{k1,k2}', 1", "Index Cond: (claim = ANY ($1))");
}

static void what_waits_by_id_and_key(void **state)
{
    (void)state;
    begin("advisory");
    looks_up("keyed/due_lock", "16", BY_DUE);
    looks_up("keyed/due_read", "'{k1,k2}', 32", "Index Cond: (entity_key = ");
    looks_up("keyed/look", "0, 500, 0", "Index Cond: (id >= $1)");
    looks_up("ordered/sent", "'{1,2,3}'", BY_ID);
    looks_up("ordered/retry", "'{1,2,3}', '{0,0,0}', '{a,b,c}'", BY_ID);
    looks_up("ordered/bury", "'{1,2,3}', '{1,1,1}', '{a,b,c}'", BY_ID);
    looks_up("ordered/hold", "'{1,2,3}'", BY_ID);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lanes_by_lane_and_floor),
        TEST(keys_by_id_and_name),
        TEST(what_waits_by_id_and_key),
    };
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
