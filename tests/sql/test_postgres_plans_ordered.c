/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How PostgreSQL runs the statements of the ordered strategies once the tables are large and its
 * statistics still say that they are empty, or that they are large and hold nothing, which is what
 * autovacuum finds when it looks at the right moment: each table is looked up by an index with a
 * condition, whatever was believed when the plan was made.
 */
#include "sql/explain.h"

enum { ROWS = 20000 };

static testdb t;
static worker w;
static lane_node node;

#define TABLES "sluice_outbox, sluice_outbox_keys, sluice_outbox_claims, sluice_outbox_lanes"

/* A third of the messages is held behind blocked keys, some keys are leased. */
static void fill_tables(void)
{
    testdb_fill(&t, ROWS, 10);
    testdb_exec(&t,
                "UPDATE sluice_outbox SET entity_key = 'k' || id % 15000, held = id % 3 = 0, "
                "delayed = id % 6 = 0");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT "
                "DISTINCT ON (entity_key) entity_key, lane, id, now() + interval '1 h' FROM "
                "sluice_outbox WHERE held ORDER BY entity_key, id");
    testdb_exec(&t, "INSERT INTO sluice_outbox_claims (epoch, ends_at, holder, held_by, keys) "
                    "SELECT g, now() + interval '1 h', 1, 'n', ARRAY['kk' || g] FROM "
                    "generate_series(1, 2000) g");
}

/* What the server believes when it plans. */
typedef enum belief {
    EMPTY,
    WORN,    /* nothing is left, and nothing of it was cleaned up */
    CLEANED, /* it was */
    FEW,     /* that, and a few have come since */
    ADOPTED, /* empty; the table was there before, and its keys are collated as the database is */
} belief;

static void wear_out(belief what)
{
    fill_tables();
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    testdb_exec(&t, "DELETE FROM sluice_outbox_keys");
    testdb_exec(&t, "DELETE FROM sluice_outbox_claims");
    if (what != WORN)
        testdb_exec(&t, "VACUUM " TABLES);
}

/* What depends on the column goes, and comes again as in schema/adopt and schema/002. */
static void collate_as_the_database(void)
{
    testdb_exec(&t, "ALTER TABLE sluice_outbox DROP COLUMN lane");
    testdb_exec(
        &t, "ALTER TABLE sluice_outbox ALTER COLUMN entity_key TYPE text COLLATE \"default\"");
    testdb_exec(&t, "ALTER TABLE sluice_outbox ADD COLUMN lane integer GENERATED ALWAYS AS "
                    "((coalesce(hashtextextended(entity_key, 0), id) & 63)::integer) STORED");
    testdb_exec(&t, "CREATE INDEX outbox_ix_lane ON sluice_outbox (lane, id) WHERE NOT held");
}

static void make_tables(belief what)
{
    static const char *const names[] = { "",    "_keys", "_claims", "_lanes",
                                         "_s0", "_s1",   "_s2",     "_s3" };
    testdb_init(&t, "postgres", NULL);
    for (size_t i = testdb_rotated; i < (testdb_rotated ? 8 : 4); i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "ALTER TABLE sluice_outbox%s SET (autovacuum_enabled = off)",
                 names[i]);
        testdb_exec(&t, sql); /* else the server may mend the statistics at any time */
    }
    if (what == ADOPTED)
        collate_as_the_database();
    else if (what != EMPTY)
        wear_out(what);
    testdb_exec(&t, "ANALYZE " TABLES);
    if (what == FEW)
        testdb_fill(&t, 20, 10);
}

static int teardown(void **state)
{
    (void)state;
    worker_close(&w);
    lane_node_fini(&node);
    testdb_drop(&t);
    testdb_rotated = false;
    return 0;
}

/* Prepares what the strategy needs, with plans of empty tables, and fills them. */
static void begin(const char *strategy, void **state)
{
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    make_tables(*(const belief *)*state);
    lane_node_join(&node, &t, "n");
    conf.lanes = node.lanes;
    worker_open(&w, &t, sl_claim_named(strategy), &conf);
    fill_tables();
}

/* Does the scan that this line names have a condition for its index? */
static bool has_condition(const char *line)
{
    const char *next = strchr(line, '\n');
    next = next ? next + 1 + strspn(next + 1, " ") : "";
    return !strncmp(next, "Index Cond: ", 12);
}

/* That any key is blocked is asked for as such: the first one, or the first few, will do. Of no other table. */
static bool a_few_will_do(const char *text, const char *line)
{
    if (strncmp(line, " on outbox_keys", 15) != 0)
        return false;
    while (line > text && line[-1] != '\n')
        line--;
    const char *before = line > text ? line - 2 : line;
    while (before > text && before[-1] != '\n')
        before--;
    const char *init = strstr(before, "InitPlan");
    const char *limit = strstr(before, "->  Limit\n");
    return (init && init < line) || (limit && limit < line);
}

/* Is any table read as a whole? The few rows that say how the table was made may be. */
static bool reads_all(const char *text)
{
    for (const char *at = text; (at = strstr(at, "Seq Scan on outbox")); at++)
        if (strncmp(at, "Seq Scan on outbox_meta ", 24) != 0)
            return true;
    return false;
}

static void reads(const char *stmt, const char *params, const char *must, bool compares_lists)
{
    sl_buf plan = { 0 };
    explain(&w, stmt, params, &plan);
    const char *text = sl_buf_text(&plan);
    bool good = strstr(text, must) && !reads_all(text) &&
                !strstr(text, "Bitmap") && /* reads all of it before the first */
                (compares_lists || !strstr(text, "Materialize"));
    for (const char *at = strstr(text, " on outbox"); at; at = strstr(at + 1, " on outbox")) {
        bool written = !strncmp(at - 6, "Delete", 6) || !strncmp(at - 6, "Update", 6) ||
                       !strncmp(at - 6, "Insert", 6);
        bool small = !strncmp(at, " on outbox_meta", 15);
        good &= written || small || has_condition(at) || a_few_will_do(text, at);
    }
    if (!good)
        fail_msg("%s, '%s' is wanted:\n%s", stmt, must, text);
    sl_buf_fini(&plan);
}

/* Not by a list where there should be a hash table. */
static void looks_up(const char *stmt, const char *params, const char *must)
{
    reads(stmt, params, must, false);
}

/* An update cannot be told how to join: what failed is found by its id, and then may be compared with all that failed
 * in the same turn. */
static void finds_failed(const char *stmt, const char *params, const char *must)
{
    reads(stmt, params, must, true);
}

#define BY_ID "Index Cond: (id = ANY ($1))"
#define BY_RANGE "Index Cond: ((id >= $2) AND (id <= ($2 + "
#define BY_DUE "Index Cond: (due_at <= statement_timestamp())"
#define BY_DELAY "outbox_ix_delayed on outbox o"
#define BY_LANE "Index Cond: ((ROW(lane, id) >= ROW("
#define BY_HELD "Index Cond: ((entity_key >= "

static void prepare_peek(void)
{
    bool any;
    assert_int_equal(w.claim->ops->peek(w.claim, &any, &w.err), SL_OK);
}

static void lanes_by_lane_and_floor(void **state)
{
    begin("lanes", state);
    looks_up("lanes/take", "'{1,2,3}', '{0,0,0}', '{100,100,100}', 300, 8388608", BY_LANE);
    looks_up("lanes/sent", "'{1,2,3}', '{1,1,1}', '{1,2,3}'", BY_ID);
    looks_up("lanes/sent", "'{1,2,3}', '{1,1,1}', '{1,2,3}'", "Index Cond: (lane = ANY ($3))");
    looks_up("lanes/take_stretch", "'{1,1,1}', 1, 8000, 500, 16000",
             "outbox_pkey on outbox m\n");
    looks_up("lanes/take_stretch", "'{1,1,1}', 1, 8000, 500, 16000",
             "Index Cond: ((id >= $2) AND (id < $3))");
    looks_up("lanes/sent_stretch", "'\\x010101', 1, '{1,1,1}', '{1,2,3}'", BY_RANGE);
    looks_up("lanes/beyond", "8000", "Index Cond: (id >= $1)");
    looks_up("lanes/due", "'{1,2,3}', 16, 32", BY_DUE);
    looks_up("lanes/due", "'{1,2,3}', 16, 32", BY_HELD);
    looks_up("lanes/due", "'{1,2,3}', 16, 32", "Index Cond: (available_at <= ");
    looks_up("lanes/delayed", "'{1,2,3}', 512", BY_DELAY);
    looks_up("lanes/below", "'{1,2,3}', '{8000,8000,8000}'",
             "Index Cond: ((id >= 0) AND (id < $");
    looks_up("lanes/below", "'{1,2,3}', '{8000,8000,8000}'", BY_LANE);
    looks_up("lanes/below", "'{1,2,3}', '{8000,8000,8000}'", "(hashed SubPlan ");
    prepare_peek();
    looks_up("ordered/peek", "0", "Index Cond: (id >= $1)");
    looks_up("ordered/peek", "0", BY_LANE);
}

/* The same where rows stay: in each segment. */
static void segments_by_lane_and_floor(void **state)
{
    testdb_rotated = true;
    begin("lanes", state);
    looks_up("lanes/take_stretch", "'{1,1,1}', 1, 8000, 500, 16000",
             "outbox_ix_s3 on outbox_s3 m_4\n");
    looks_up("lanes/take_stretch", "'{1,1,1}', 1, 8000, 500, 16000",
             "Index Cond: ((id >= $2) AND (id < $3))");
    looks_up("done/write", "'{1,2,3}', '{1,1,1}', '{9,9,9}'", "Index Cond: (lane = ANY ($1))");
    looks_up("lanes/take", "'{1,2,3}', '{0,0,0}', '{100,100,100}', 300, 8388608", BY_LANE);
    looks_up("lanes/take", "'{1,2,3}', '{0,0,0}', '{100,100,100}', 300, 8388608",
             "Merge Append\n"); /* else all that a lane has would be sorted */
    looks_up("lanes/sent", "'{1,2,3}', '{1,1,1}', '{1,2,3}'", BY_ID);
    looks_up("lanes/sent_stretch", "'\\x010101', 1, '{1,1,1}', '{1,2,3}'", BY_RANGE);
    looks_up("lanes/beyond", "8000", "Index Cond: (id >= $1)");
    looks_up("lanes/due", "'{1,2,3}', 16, 32", BY_HELD);
    looks_up("lanes/delayed", "'{1,2,3}', 512", "Index Cond: (available_at <= ");
    looks_up("ordered/sent", "'{1,2,3}'", BY_ID);
    looks_up("ordered/hold", "'{1,2,3}'", BY_ID);
}

static void keys_by_id_and_name(void **state)
{
    begin("guard", state);
    looks_up("keyed/look", "0, 500, 1", "Index Cond: (id >= $1)");
    looks_up("keyed/read", "'{1,2,3}'", BY_ID);
    looks_up("keyed/read_stretch", "'\\x010101', 1", BY_RANGE);
    looks_up("keyed/look", "0, 500, 1", "Index Cond: (epoch >= $3)");
    looks_up("guard/lease", "'{k1,k2}', 1000, 1000000, 1, 'n/1'", "Index Cond: (epoch >= $2)");
    looks_up("guard/takeover", "'{k1,k2}', 1000", "Index Cond: (epoch >= $2)");
    looks_up("guard/tidy", "1000", "Index Cond: (epoch >= $1)");
    looks_up("guard/sent", "'{1,2,3}', '{1}'", BY_ID);
    looks_up("guard/sent", "'{1,2,3}', '{1}'", "Index Cond: (epoch = ($2)[1])");
    looks_up("guard/sent_stretch", "'\\x010101', 1, '{1}'", BY_RANGE);
    looks_up("guard/sent_stretch", "'\\x010101', 1, '{1}'", "Index Cond: (epoch = ($3)[1])");
    looks_up("guard/fence", "'{k1,k2}', 1000", "Index Cond: (epoch = $2)");
    prepare_peek();
    looks_up("guard/peek", "0, 1000", "Index Cond: (epoch >= $2)");
    looks_up("guard/peek", "0, 1000", "Index Cond: (id >= $1)");
    looks_up("guard/peek", "0, 1000", BY_LANE);
}

static void what_waits_by_id_and_key(void **state)
{
    begin("advisory", state);
    looks_up("keyed/due_lock", "16, 1", BY_DUE);
    looks_up("keyed/sweep", "'{k1,k2}', 1", "Index Cond: (entity_key = ");
    looks_up("keyed/sweep", "'{k1,k2}', 1", "outbox_ix_held on outbox o\n");
    looks_up("keyed/due_read", "'{k1,k2}', 32", BY_HELD);
    looks_up("keyed/due_lock", "16, 1", BY_HELD);
    looks_up("keyed/look", "0, 500, 0", "Index Cond: (id >= $1)");
    looks_up("keyed/delayed_lock", "16, 1", BY_DELAY);
    looks_up("keyed/delayed_read", "'{1,2,3}'", BY_ID);
    looks_up("ordered/delay", "'{1,2,3}'", BY_ID);
    looks_up("ordered/rejoin", "'{1,2,3}'", BY_ID);
    looks_up("ordered/sent", "'{1,2,3}'", BY_ID);
    looks_up("ordered/sent_stretch", "'\\x010101', 1", BY_RANGE);
    finds_failed("ordered/retry", "'{1,2,3}', '{0,0,0}', '{a,b,c}', '{1,1,1}'", BY_ID);
    looks_up("ordered/bury", "'{1,2,3}', '{1,1,1}', '{a,b,c}', '{1,1,1}'",
             "Index Cond: (id = u.id)");
    looks_up("attempts/count", "'{1,2,3}'", BY_ID);
    looks_up("attempts/uncount", "'{1,2,3}'", BY_ID);
    looks_up("ordered/hold", "'{1,2,3}'", BY_ID);
    looks_up("ordered/block", "'{1,2,3}'", BY_ID);
    looks_up("ordered/unblock", "'{k1,k2}'", "Index Cond: (entity_key = ");
    looks_up("ordered/unblock", "'{k1,k2}'", "outbox_ix_held on outbox o\n");
    looks_up("ordered/rotate", "'{k1,k2}'", "Index Cond: (entity_key = ");
}

int main(void)
{
    static belief beliefs[] = { EMPTY, WORN, CLEANED, FEW, ADOPTED };
#define CASE(fn, name, i)                                                                      \
    {                                                                                          \
#fn name, fn, NULL, teardown, &beliefs[i]                                              \
    }
#define TEST(fn)                                                                               \
    CASE(fn, ": empty", 0), CASE(fn, ": worn", 1), CASE(fn, ": cleaned", 2),                   \
        CASE(fn, ": few", 3)
    const struct CMUnitTest tests[] = {
        TEST(lanes_by_lane_and_floor),
        CASE(lanes_by_lane_and_floor, ": adopted", 4),
        TEST(segments_by_lane_and_floor),
        TEST(keys_by_id_and_name),
        CASE(keys_by_id_and_name, ": adopted", 4),
        TEST(what_waits_by_id_and_key),
        CASE(what_waits_by_id_and_key, ": adopted", 4),
    };
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
