/* SPDX-License-Identifier: Apache-2.0 */
#include "db/schema.h"

#include "support/testdb.h"

#include <pthread.h>

static const char *dialect;
static testdb t;
static sl_err err;
static sl_schema_done done;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_make(&t, dialect, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testdb_drop(&t);
    return 0;
}

static sl_rc init(void)
{
    return sl_schema_init(t.eye, &t.names, &done, &err);
}

static void must_init(void)
{
    if (init() != SL_OK)
        fail_msg("%s", err.text);
}

/* ---- Creating ---- */

static void a_missing_table_is_created_once(void **state)
{
    (void)state;
    t.names.lanes = 8;
    must_init();
    assert_false(done.before.table);
    assert_int_equal(done.before.version, 0);
    assert_true(done.after.table);
    assert_int_equal(done.after.version, SL_SCHEMA_VERSION);
    assert_int_equal(done.after.lanes, 8);
    assert_int_equal(done.columns_added, 0);

    t.names.lanes = 16; /* too late: the keys are in their lanes */
    must_init();
    assert_int_equal(done.before.version, SL_SCHEMA_VERSION);
    assert_int_equal(done.after.version, SL_SCHEMA_VERSION);
    assert_int_equal(done.after.lanes, 8);
    assert_int_equal(sl_schema_check(t.eye, &t.names, &err), SL_OK);
}

static void a_producer_needs_topic_and_payload_only(void **state)
{
    (void)state;
    must_init();
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, payload) VALUES ('orders', '{}')");
    testdb_expect(&t, "1 orders - - application/json - 0 0",
                  "SELECT id || ' ' || topic || ' ' || coalesce(entity_key, '-') || ' ' || "
                  "CASE event_type WHEN '' THEN '-' ELSE event_type END || ' ' || content_type "
                  "|| ' ' || coalesce(last_error, worker, '-') || ' ' || attempts || ' ' || "
                  "epoch FROM sluice_outbox");
    assert_true(testdb_ahead_us(&t, "created_at", 1) <= 0);
    assert_true(testdb_ahead_us(&t, "created_at", 1) > -60000000);
    assert_true(testdb_ahead_us(&t, "available_at", 1) <= 1000);
    assert_int_equal(testdb_ahead_us(&t, "leased_until", 1), INT64_MIN);
}

static void lanes_are_within_bounds(void **state)
{
    (void)state;
    t.names.lanes = 7;
    must_init();
    testdb_fill(&t, 50, 1);
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, entity_key, payload) "
                    "SELECT 'x', 'order:' || id, '' FROM sluice_outbox");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, entity_key, payload) "
                "SELECT 'x', entity_key, '' FROM sluice_outbox WHERE entity_key IS NOT NULL");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES ('x', '', ''), "
                "('x', 'a', ''), ('x', 'z\xc3\xa9', '')");
    assert_int_equal(testdb_int(&t, "SELECT min(lane) FROM sluice_outbox"), 0);
    assert_int_equal(testdb_int(&t, "SELECT max(lane) FROM sluice_outbox"), 6);
    assert_true(testdb_int(&t, "SELECT count(DISTINCT lane) FROM sluice_outbox "
                               "WHERE entity_key IS NOT NULL") > 3);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM (SELECT 1 FROM sluice_outbox WHERE "
                                    "entity_key IS NOT NULL GROUP BY entity_key HAVING "
                                    "count(DISTINCT lane) > 1) x"),
                     0);
}

static void bad_messages_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "('', NULL, '', NULL, NULL)",
        "(NULL, NULL, '', NULL, NULL)",
        "('x', NULL, NULL, NULL, NULL)",
        "('x', @512 || 'x', '', NULL, NULL)",
        "('x', @510 || '\xe2\x82\xac', '', NULL, NULL)", /* bytes, not characters */
        "('x', NULL, '', '[]', NULL)",
        "('x', NULL, '', '3', NULL)",
        "('x', NULL, '', NULL, @513)",
    };
    must_init();
    for (size_t i = 0; i < COUNT(bad) + 1; i++) {
        const char *row = i < COUNT(bad) ? bad[i] : "('x', @512, '', '{\"a\":\"b\"}', @512)";
        sl_buf sql = { 0 }, out = { 0 };
        sl_buf_puts(&sql, "INSERT INTO sluice_outbox (topic, entity_key, payload, headers, "
                          "idempotency_key) VALUES ");
        for (const char *p = row; *p; p++)
            if (*p != '@')
                sl_buf_putc(&sql, *p);
            else if (t.pg)
                sl_buf_printf(&sql, "repeat('x', %.3s)", ++p), p += 2;
            else
                sl_buf_printf(&sql, "replace(hex(zeroblob(%.3s)), '00', 'x')", ++p), p += 2;
        sl_names_apply(&t.names, sl_buf_text(&sql), &out);
        sl_rc rc = t.eye->ops->script(t.eye, sl_buf_text(&out), &err);
        if (rc != (i < COUNT(bad) ? SL_REFUSED : SL_OK))
            fail_msg("%s: %s: %s", row, sl_rc_name(rc), err.text);
        sl_buf_fini(&sql);
        sl_buf_fini(&out);
    }
    assert_int_equal(testdb_count(&t), 1);
}

static void an_id_is_never_given_twice(void **state)
{
    (void)state;
    must_init();
    testdb_fill(&t, 3, 1);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    testdb_fill(&t, 1, 1);
    assert_int_equal(testdb_int(&t, "SELECT id FROM sluice_outbox"), 4);
}

/* ---- Checking ---- */

static void check_tells(sl_rc rc, const char *text)
{
    err = (sl_err){ 0 };
    sl_rc got = sl_schema_check(t.eye, &t.names, &err);
    if (got != rc || !strstr(err.text, text))
        fail_msg("%s: %s", sl_rc_name(got), err.text);
}

static void a_missing_table_is_told(void **state)
{
    (void)state;
    check_tells(SL_OPERATOR, "table 'outbox' is not there\nhint: run 'sluice init' once");
    testdb_exec(&t, "CREATE TABLE sluice_outbox (id bigint)");
    check_tells(SL_OPERATOR, "table 'outbox' was not made by sluice init");
}

static void set_version(int version)
{
    char sql[96];
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox_meta SET value = '%d' WHERE name = 'schema_version'",
             version);
    testdb_exec(&t, sql);
}

static void a_newer_schema_is_left_alone(void **state)
{
    (void)state;
    must_init();
    set_version(SL_SCHEMA_VERSION + 1);
    check_tells(SL_NEWER, "has schema version 6, this program knows up to 5");
    err = (sl_err){ 0 };
    assert_int_equal(init(), SL_NEWER);
    assert_non_null(strstr(err.text, "install a newer sluice"));
    /* The connection is not left in a transaction. */
    set_version(SL_SCHEMA_VERSION);
    sl_db *other = testdb_open(&t);
    assert_int_equal(sl_schema_check(other, &t.names, &err), SL_OK);
    sl_db_close(other);
}

static void a_role_without_rights_is_told(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    must_init();
    testdb_exec(&t, "SET ROLE pg_read_all_stats");
    check_tells(SL_OPERATOR, "SQLSTATE 42501");
    testdb_exec(&t, "RESET ROLE");
}

/* ---- Adopting ---- */

/* With the columns of a table that others have made. */
static void rename_columns(const char *ours, const char *theirs)
{
    sl_opt_map_put(&t.names.columns, ours, theirs);
}

static void a_table_of_others_is_adopted(void **state)
{
    (void)state;
    testdb_exec(&t,
                testdb_or(&t,
                          "CREATE TABLE sluice_outbox (nr serial PRIMARY KEY, kind varchar "
                          "NOT NULL, body bytea, retries int NOT NULL DEFAULT 3, extra int)",
                          "CREATE TABLE sluice_outbox (nr INTEGER PRIMARY KEY AUTOINCREMENT, "
                          "kind VARCHAR NOT NULL, body TEXT, retries INT NOT NULL DEFAULT 3, "
                          "extra INT)"));
    testdb_exec(&t, "INSERT INTO sluice_outbox (kind, body) VALUES ('a', 'old')");
    rename_columns("id", "nr");
    rename_columns("event_type", "kind");
    rename_columns("payload", "body");
    rename_columns("attempts", "retries");
    must_init();
    assert_true(done.before.table);
    assert_int_equal(done.before.version, 0);
    assert_int_equal(done.after.version, SL_SCHEMA_VERSION);
    assert_int_equal(done.columns_added, 12); /* and one by a migration */
    testdb_expect(&t, "1 a 3 sluice application/json 0",
                  "SELECT id || ' ' || event_type || ' ' || attempts || ' ' || topic || ' ' || "
                  "content_type || ' ' || epoch FROM sluice_outbox WHERE payload = 'old'");
    check_tells(SL_OK, "");
    must_init();
    assert_int_equal(done.columns_added, 0);
}

static void cannot_adopt(const char *columns, const char *text)
{
    char sql[128];
    snprintf(sql, sizeof sql, "CREATE TABLE sluice_outbox %s", columns);
    testdb_exec(&t, sql);
    assert_int_equal(init(), SL_OPERATOR);
    if (!strstr(err.text, text))
        fail_msg("%s: %s", columns, err.text);
    check_tells(SL_OPERATOR, "was not made by sluice init"); /* nothing was left behind */
    testdb_exec(&t, "DROP TABLE sluice_outbox");
}

static void what_cannot_be_adopted_is_told(void **state)
{
    (void)state;
    cannot_adopt("(payload text)",
                 "has no column 'id'\nhint: say what it is called: columns: id=NAME");
    cannot_adopt("(id text, payload text)", "column 'id' of table 'outbox' is text\nhint: ");
    cannot_adopt("(id uuid, payload jsonb)", "column 'id' of table 'outbox' is uuid");
    if (t.pg) {
        cannot_adopt("(id bigint)", "has no column 'payload'");
        cannot_adopt("(id bigint, payload jsonb)",
                     "column 'payload' of table 'outbox' is jsonb");
        cannot_adopt("(id bigint, payload text)", "column 'payload' of table 'outbox' is text");
    } else {
        cannot_adopt("(id INTEGER PRIMARY KEY AUTOINCREMENT)", "has no column 'payload'");
        cannot_adopt("(id INTEGER PRIMARY KEY AUTOINCREMENT, payload REAL)",
                     "column 'payload' of table 'outbox' is real");
        /* An id that is given again could be deleted by an old claim. */
        cannot_adopt("(id INTEGER PRIMARY KEY, payload BLOB)", "column 'id'");
        cannot_adopt("(id INT, payload BLOB)", "column 'id'");
    }
}

/* Half way through, after columns were added: all of it goes back. */
static void a_failed_adoption_changes_nothing(void **state)
{
    (void)state;
    testdb_exec(&t,
                testdb_or(&t,
                          "CREATE TABLE sluice_outbox (id bigint PRIMARY KEY, payload bytea, "
                          "idempotency_key text)",
                          "CREATE TABLE sluice_outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, "
                          "payload BLOB, idempotency_key TEXT)"));
    testdb_exec(&t, "INSERT INTO sluice_outbox VALUES (1, '', 'same'), (2, '', 'same')");
    assert_int_equal(init(), SL_REFUSED);
    sl_schema now;
    assert_int_equal(sl_schema_read(t.eye, &t.names, &now, &err), SL_OK);
    assert_true(now.table);
    assert_int_equal(now.version, 0);
    testdb_exec(&t, "ALTER TABLE sluice_outbox ADD COLUMN topic text"); /* it has none yet */
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE id = 2");
    must_init();
    assert_int_equal(done.columns_added, 12);
}

/* ---- Migrating ---- */

/* As `sluice init` of version 1 has left it, with messages in it. */
static void a_table_of_version_1_is_migrated(void **state)
{
    (void)state;
    t.names.lanes = 8;
    testdb_exec(&t, sl_script_named(dialect, "schema/001")->text);
    testdb_fill(&t, 3, 1);
    testdb_exec(&t, "UPDATE sluice_outbox SET attempts = 2, worker = 'n/1' WHERE id = 2");
    check_tells(SL_OPERATOR, "hint: run 'sluice init'");
    t.names.lanes = 16; /* too late */
    must_init();
    assert_int_equal(done.before.version, 1);
    assert_int_equal(done.after.version, SL_SCHEMA_VERSION);
    assert_int_equal(done.after.lanes, 8);
    testdb_expect(&t, "1 0 -\n2 2 n/1\n3 0 -",
                  "SELECT id || ' ' || attempts || ' ' || coalesce(worker, '-') FROM "
                  "sluice_outbox ORDER BY id");
    assert_int_equal(
        testdb_int(&t, testdb_or(&t, "SELECT count(*) FROM sluice_outbox WHERE held",
                                 "SELECT count(*) FROM sluice_outbox WHERE "
                                 "held = 1")),
        0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes WHERE owner IS "
                                    "NULL AND epoch = 0"),
                     8);
    assert_int_equal(
        testdb_int(&t, "SELECT CAST(max(lane) AS bigint) FROM sluice_outbox_lanes"), 7);
    check_tells(SL_OK, "");
}

/* A column of another meaning must not be mistaken for ours; it can be given another name. */
static void a_column_that_is_in_the_way_is_told(void **state)
{
    (void)state;
    testdb_exec(&t,
                testdb_or(&t,
                          "CREATE TABLE sluice_outbox (id bigint PRIMARY KEY, payload bytea, "
                          "\"held\" text)",
                          "CREATE TABLE sluice_outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, "
                          "payload BLOB, \"held\" TEXT)"));
    assert_int_equal(init(), SL_OPERATOR);
    if (!strstr(err.text, "held"))
        fail_msg("%s", err.text);
    rename_columns("held", "sluice_held");
    must_init();
    testdb_exec(&t, "INSERT INTO sluice_outbox (id, payload) VALUES (1, 'x')");
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE NOT held"), 1);
}

/* ---- At once, and on paper ---- */

enum { NODES = 4 };

static void *init_too(void *arg)
{
    sl_rc *rc = arg;
    sl_dsn dsn = testdb_dsn(&t);
    sl_db *db;
    sl_err e = { 0 };
    sl_schema_done d;
    *rc = sl_db_open(&db, &dsn, &e);
    if (*rc == SL_OK) {
        *rc = sl_schema_init(db, &t.names, &d, &e);
        sl_db_close(db);
    }
    if (*rc != SL_OK)
        print_message("%s\n", e.text);
    return NULL;
}

static void many_nodes_may_do_it_at_once(void **state)
{
    (void)state;
    pthread_t threads[NODES];
    sl_rc rcs[NODES];
    for (int i = 0; i < NODES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, init_too, &rcs[i]), 0);
    for (int i = 0; i < NODES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(rcs[i], SL_OK);
    check_tells(SL_OK, "");
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes"), 64);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_meta WHERE name IN "
                                    "('schema_version', 'lanes', 'lanes_pause')"),
                     3);
}

static void what_is_printed_can_be_run(void **state)
{
    (void)state;
    sl_buf sql = { 0 };
    t.names.lanes = 5;
    rename_columns("entity_key", "aggregate_id");
    assert_int_equal(sl_schema_print(dialect, &t.names, &sql, &err), SL_OK);
    assert_memory_equal(sl_buf_text(&sql), "BEGIN;\n", 7);
    assert_non_null(strstr(sl_buf_text(&sql), "\nCOMMIT;\n"));
    assert_null(strstr(sl_buf_text(&sql), " sluice_outbox ("));
    assert_null(strstr(sl_buf_text(&sql), "% sluice_lanes"));
    assert_non_null(strstr(sl_buf_text(&sql), "\"aggregate_id\""));
    if (t.eye->ops->script(t.eye, sl_buf_text(&sql), &err) != SL_OK)
        fail_msg("%s", err.text);
    sl_buf_fini(&sql);
    check_tells(SL_OK, "");
    testdb_fill(&t, 20, 1);
    assert_int_equal(testdb_int(&t, "SELECT max(lane) FROM sluice_outbox"), 4);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes"), 5);
    must_init();
    assert_int_equal(done.before.version, SL_SCHEMA_VERSION);
}

static void an_unknown_dialect_is_not_printed(void **state)
{
    (void)state;
    sl_buf sql = { 0 };
    assert_int_equal(sl_schema_print("oracle", &t.names, &sql, &err), SL_OPERATOR);
    assert_string_equal(err.text, "no dialect 'oracle' in this build");
    assert_int_equal(sql.n, 0);
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_missing_table_is_created_once),
        TEST(a_producer_needs_topic_and_payload_only),
        TEST(lanes_are_within_bounds),
        TEST(bad_messages_are_refused),
        TEST(an_id_is_never_given_twice),
        TEST(a_missing_table_is_told),
        TEST(a_newer_schema_is_left_alone),
        TEST(a_role_without_rights_is_told),
        TEST(a_table_of_others_is_adopted),
        TEST(what_cannot_be_adopted_is_told),
        TEST(a_failed_adoption_changes_nothing),
        TEST(a_table_of_version_1_is_migrated),
        TEST(a_column_that_is_in_the_way_is_told),
        TEST(many_nodes_may_do_it_at_once),
        TEST(what_is_printed_can_be_run),
        TEST(an_unknown_dialect_is_not_printed),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
