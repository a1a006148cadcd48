/* SPDX-License-Identifier: Apache-2.0 */
#include "db/relane.h"

#include "member/nodes.h"
#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, dialect, NULL);
    return 0;
}

static int setup_renamed(void **state)
{
    (void)state;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "Their_");
    testdb_init(&t, dialect, &map);
    testdb_map_fini(&map);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testdb_drop(&t);
    return 0;
}

static void must(sl_rc rc)
{
    if (rc != SL_OK)
        fail_msg("%s", err.text);
}

/* So many messages of so many keys, and some without. */
static void push(int count, int keys)
{
    testdb_fill(&t, count, 1);
    char sql[200];
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox SET entity_key = 'order:' || (id %% %d) WHERE id %% 10 > 0",
             keys);
    testdb_exec(&t, sql);
}

static void relane(int64_t lanes)
{
    bool owned = true;
    must(sl_relane(t.eye, &t.names, lanes, &owned, &err));
    assert_false(owned);
}

/* Everything speaks of the same number. */
static void expect_lanes(int64_t lanes)
{
    sl_schema s;
    must(sl_schema_read(t.eye, &t.names, &s, &err));
    assert_int_equal(s.lanes, lanes);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes"), lanes);
    assert_int_equal(testdb_int(&t, "SELECT min(lane) FROM sluice_outbox_lanes"), 0);
    assert_int_equal(testdb_int(&t, "SELECT max(lane) FROM sluice_outbox_lanes"), lanes - 1);
    assert_true(testdb_int(&t, "SELECT min(lane) FROM sluice_outbox") >= 0);
    assert_true(testdb_int(&t, "SELECT max(lane) FROM sluice_outbox") < lanes);
    assert_true(testdb_int(&t, "SELECT count(DISTINCT lane) FROM sluice_outbox") > lanes / 4);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes "
                                    "WHERE owner IS NOT NULL OR epoch <> 0"),
                     0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM (SELECT 1 FROM sluice_outbox WHERE "
                                    "entity_key IS NOT NULL GROUP BY entity_key HAVING "
                                    "count(DISTINCT lane) > 1) x"),
                     0);
}

static int64_t indexes(void)
{
    char sql[256];
    if (!t.pg)
        return testdb_int(&t,
                          "SELECT count(*) FROM sqlite_master WHERE name = 'outbox_ix_lane' "
                          "AND sql LIKE '%WHERE%'");
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_index WHERE indexrelid = '%s.outbox_ix_lane'::regclass "
             "AND indpred IS NOT NULL",
             t.names.schema);
    return testdb_int(&t, sql);
}

static void the_number_changes(void **state)
{
    (void)state;
    push(2000, 97);
    assert_int_equal(indexes(), 1);
    relane(7);
    expect_lanes(7);
    relane(100);
    expect_lanes(100);
    relane(1);
    expect_lanes(1);
    assert_int_equal(indexes(), 1);
    assert_int_equal(testdb_count(&t), 2000);
}

/* A table whose lanes were changed is like one that was made so. */
static void a_key_is_where_a_new_table_has_it(void **state)
{
    (void)state;
    push(500, 97);
    relane(16);
    sl_buf moved = { 0 };
    const char *sql = "SELECT entity_key || ' ' || min(lane) FROM sluice_outbox "
                      "WHERE entity_key IS NOT NULL GROUP BY entity_key ORDER BY entity_key";
    sl_buf_puts(&moved, testdb_text(&t, sql));
    testdb_drop(&t);
    testdb_make(&t, dialect, NULL);
    t.names.lanes = 16;
    sl_schema_done done;
    must(sl_schema_init(t.eye, &t.names, &done, &err));
    push(500, 97);
    testdb_expect(&t, sl_buf_text(&moved), sql);
    sl_buf_fini(&moved);
}

static void not_twice(void **state)
{
    (void)state;
    bool owned;
    assert_int_equal(sl_relane(t.eye, &t.names, 64, &owned, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "64 lanes already"));
    relane(3);
    assert_int_equal(sl_relane(t.eye, &t.names, 3, &owned, &err), SL_OPERATOR);
}

/* ---- Nodes ---- */

static void join(int64_t session)
{
    char text[3][8] = { "n1", "lanes", "ring" };
    sl_node_row me = { .session = session,
                       .node = text[0],
                       .strategy = text[1],
                       .assign = text[2],
                       .workers = 1 };
    must(sl_nodes_join(t.eye, &me, 30 * SL_SEC, NULL, &err));
}

static void note_epoch(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    (void)floor;
    (void)lane;
    *(int64_t *)ctx = epoch;
}

/* 0: not granted. */
static int64_t acquire(int64_t lane, int64_t session)
{
    int64_t epoch = 0;
    must(sl_lanes_acquire(t.eye, &lane, 1, session, note_epoch, &epoch, &err));
    return epoch;
}

static void nothing_while_a_lane_is_owned(void **state)
{
    (void)state;
    bool owned = false;
    push(100, 10);
    join(11);
    int64_t epoch = acquire(5, 11);
    assert_true(epoch > 0);
    must(sl_relane(t.eye, &t.names, 8, &owned, &err));
    assert_true(owned);
    sl_schema s;
    must(sl_schema_read(t.eye, &t.names, &s, &err));
    assert_int_equal(s.lanes, 64);
    assert_int_equal(testdb_int(&t, "SELECT epoch FROM sluice_outbox_lanes WHERE lane = 5"),
                     epoch);

    must(sl_nodes_leave(t.eye, 11, &err)); /* a dead owner is none */
    relane(8);
    expect_lanes(8);
}

/* Whoever took messages by the old numbers and slept meanwhile settles none of them. */
static void an_old_epoch_is_worth_nothing(void **state)
{
    (void)state;
    push(100, 10);
    join(11);
    int64_t old = acquire(5, 11);
    must(sl_nodes_leave(t.eye, 11, &err));
    relane(8);
    int64_t all[100];
    int64_t epochs[100];
    int64_t lanes[100];
    for (int64_t i = 0; i < 100; i++) {
        all[i] = i + 1;
        epochs[i] = old;
        lanes[i] = i % 8;
    }
    int64_t n = -1;
    sl_val in[] = { sl_ints(all, 100), sl_ints(epochs, 100), sl_ints(lanes, 100) };
    must(sl_db_run1(t.eye, "lanes/sent", in, NULL, NULL, &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(testdb_count(&t), 100);
    join(12);
    assert_true(acquire(5, 12) > old);
}

static bool paused(int64_t session)
{
    sl_beat b;
    sl_node_row me = { .session = session };
    must(sl_nodes_beat(t.eye, &me, 30 * SL_SEC, &b, &err));
    assert_true(b.alive);
    return b.paused;
}

static void a_pause_is_seen_and_ends(void **state)
{
    (void)state;
    join(11);
    assert_false(paused(11));
    must(sl_relane_pause(t.eye, 60 * SL_SEC, &err));
    assert_true(paused(11));
    assert_int_equal(acquire(3, 11), 0);
    must(sl_relane_pause(t.eye, 0, &err));
    usleep(2000);
    assert_false(paused(11));
    assert_true(acquire(3, 11) > 0);
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    do { /* it may be over before anyone has looked */
        assert_true(sl_now_ns() < until_ns);
        must(sl_relane_pause(t.eye, 200 * SL_MS, &err));
    } while (!paused(11));
    usleep(250000);
    assert_false(paused(11));
}

static void the_change_lifts_the_pause(void **state)
{
    (void)state;
    join(11);
    must(sl_relane_pause(t.eye, 60 * SL_SEC, &err));
    relane(9);
    assert_false(paused(11));
    assert_true(acquire(8, 11) > 0);
}

/* ---- Keys that wait ---- */

static void waiting_keys_move_along(void **state)
{
    (void)state;
    push(100, 10);
    testdb_exec(&t, testdb_or(&t, "UPDATE sluice_outbox SET held = true WHERE id < 60",
                              "UPDATE sluice_outbox SET held = 1 WHERE id < 60"));
    testdb_exec(&t, "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                    "SELECT entity_key, min(lane), min(id), '2999-01-01' FROM sluice_outbox "
                    "WHERE entity_key IS NOT NULL GROUP BY entity_key");
    testdb_exec(&t, "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                    "VALUES ('none held', 63, 1, '2999-01-01')");
    int64_t before = testdb_int(&t, "SELECT count(*) FROM sluice_outbox_keys");
    relane(5);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_keys"), before - 1);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_keys k WHERE lane <> "
                                    "(SELECT max(o.lane) FROM sluice_outbox o "
                                    "WHERE o.entity_key = k.entity_key)"),
                     0);
    assert_true(testdb_int(&t, "SELECT count(DISTINCT lane) FROM sluice_outbox_keys") > 1);
}

/* ---- What is not ours ---- */

static void a_column_of_theirs_stays(void **state)
{
    (void)state;
    bool owned;
    if (!t.pg) /* there it goes with its column */
        testdb_script(t.eye, &t.names, "DROP INDEX sluice_outbox_ix_lane");
    testdb_script(t.eye, &t.names, "ALTER TABLE sluice_outbox DROP COLUMN lane");
    testdb_script(t.eye, &t.names,
                  "ALTER TABLE sluice_outbox ADD COLUMN lane integer DEFAULT 3");
    testdb_fill(&t, 3, 1);
    assert_int_equal(sl_relane(t.eye, &t.names, 8, &owned, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "not computed"));
    assert_int_equal(testdb_int(&t, "SELECT sum(lane) FROM sluice_outbox"), 9);
}

static void a_table_in_use_is_left_alone(void **state)
{
    (void)state;
    bool owned;
    sl_dsn dsn = testdb_dsn(&t);
    if (!t.pg)
        dsn.connect_ns = 100 * SL_MS; /* how long SQLite waits for a lock */
    sl_db *producer = testdb_open(&t);
    sl_db *db = testdb_open_as(&dsn);
    push(10, 3);
    testdb_script(producer, &t.names, testdb_or(&t, "BEGIN", "BEGIN IMMEDIATE"));
    testdb_script(producer, &t.names,
                  "INSERT INTO sluice_outbox (topic, payload) VALUES ('t', '')");
    assert_int_equal(sl_relane(db, &t.names, 8, &owned, &err), SL_AGAIN);
    testdb_script(producer, &t.names, "COMMIT");
    must(sl_relane(db, &t.names, 8, &owned, &err)); /* the connection is as good as before */
    sl_db_close(producer);
    sl_db_close(db);
}

static int group(const char *of)
{
    dialect = of;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_number_changes),
        cmocka_unit_test_setup_teardown(the_number_changes, setup_renamed, teardown),
        TEST(a_key_is_where_a_new_table_has_it),
        TEST(not_twice),
        TEST(nothing_while_a_lane_is_owned),
        TEST(an_old_epoch_is_worth_nothing),
        TEST(a_pause_is_seen_and_ends),
        TEST(the_change_lifts_the_pause),
        TEST(waiting_keys_move_along),
        cmocka_unit_test_setup_teardown(waiting_keys_move_along, setup_renamed, teardown),
        TEST(a_column_of_theirs_stays),
        TEST(a_table_in_use_is_left_alone),
    };
    return cmocka_run_group_tests_name(of, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(group);
}
