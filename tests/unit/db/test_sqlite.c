/* SPDX-License-Identifier: Apache-2.0 */
/* What is SQLite's own; what all databases do is in tests/contract/test_databases.c. */
#include "support/testdb.h"

#include <sys/stat.h>

static testdb t;
static sl_db *db;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, "sqlite", NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    testdb_drop(&t);
    return 0;
}

static sl_rc run(const char *name, const sl_val *in, int64_t *affected)
{
    return sl_db_run1(db, name, in, NULL, NULL, affected, &err);
}

/* ---- Opening ---- */

static sl_rc try_open(const char *url, bool create, const sl_names *names)
{
    sl_db *other = NULL;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = url;
    dsn.create = create;
    dsn.names = names ? names : &t.names;
    err = (sl_err){ 0 };
    sl_rc rc = sl_db_open(&other, &dsn, &err);
    assert_true((rc == SL_OK) == (other != NULL));
    sl_db_close(other);
    return rc;
}

static const char *beside(const char *name)
{
    static char url[256];
    snprintf(url, sizeof url, "sqlite:%s/%s", t.folder, name);
    return url;
}

static void a_missing_file_is_made_only_when_asked(void **state)
{
    (void)state;
    const char *url = beside("new.db");
    assert_int_equal(try_open(url, false, NULL), SL_AGAIN);
    assert_non_null(
        strstr(err.text, "new.db does not exist\nhint: create it with 'sluice init'"));
    assert_int_not_equal(access(url + strlen("sqlite:"), F_OK), 0);
    assert_int_equal(try_open(url, true, NULL), SL_OK);
    assert_int_equal(try_open(url, false, NULL), SL_OK);
}

static void bad_paths_are_told(void **state)
{
    (void)state;
    sl_names in_schema;
    assert_int_equal(sl_names_init(&in_schema, "shop.outbox", NULL, &err), SL_OK);
    assert_int_equal(try_open("sqlite:", true, NULL), SL_OPERATOR);
    assert_non_null(strstr(err.text, "no path"));
    assert_int_equal(try_open("sqlite::memory:", true, NULL), SL_OPERATOR);
    assert_non_null(strstr(err.text, "a :memory: database of its own"));
    assert_int_equal(try_open(beside("a.db"), true, &in_schema), SL_OPERATOR);
    assert_non_null(strstr(err.text, "'shop.outbox' names a schema"));
    assert_int_equal(try_open(beside("no/such/folder/a.db"), true, NULL), SL_AGAIN);
    assert_non_null(strstr(err.text, "cannot open"));
    assert_int_equal(mkdir(beside("dir.db") + strlen("sqlite:"), 0700), 0);
    assert_int_equal(try_open(beside("dir.db"), true, NULL), SL_AGAIN);
    sl_names_fini(&in_schema);
}

static void a_file_that_is_no_database_is_told(void **state)
{
    (void)state;
    const char *url = beside("text.db");
    FILE *f = fopen(url + strlen("sqlite:"), "w");
    for (int i = 0; i < 100; i++)
        fputs("this is not a database, it is a text\n", f);
    fclose(f);
    assert_int_equal(try_open(url, false, NULL), SL_OPERATOR);
    assert_non_null(strstr(err.text, "file is not a database"));
}

static void the_session_is_durable_and_lets_others_read(void **state)
{
    (void)state;
    testdb_expect(&t, "wal", "SELECT journal_mode FROM pragma_journal_mode");
    assert_int_equal(testdb_int(&t, "SELECT synchronous FROM pragma_synchronous"), 2);
    assert_int_equal(testdb_int(&t, "SELECT timeout FROM pragma_busy_timeout"), 20000);
}

/* ---- Errors ---- */

/* Each text is one statement; the error must be of the class and hold the words. */
static sl_rc note_mode(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)e;
    snprintf(ctx, 16, "%.*s", (int)cols[0].s.n, cols[0].s.p);
    return SL_OK;
}

/* Opening it in the ordinary way puts the file into WAL mode; one that only looks leaves it alone. */
static void a_look_changes_nothing(void **state)
{
    (void)state;
    char mode[16] = "";
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = beside("looked_at.db");
    dsn.look = true;
    assert_int_equal(try_open(dsn.url, true, NULL), SL_OK);
    for (int looks = 0; looks < 2; looks++) {
        sl_db *look = testdb_open_as(&dsn);
        if (!looks)
            assert_int_equal(look->ops->script(look, "PRAGMA journal_mode = DELETE", &err),
                             SL_OK);
        assert_int_equal(sl_db_run1(look, "doctor/journal", NULL, note_mode, mode, NULL, &err),
                         SL_OK);
        assert_string_equal(mode, "delete");
        sl_db_close(look);
    }
}

static void errors_are_sorted(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        sl_rc rc;
        const char *words;
    } rows[] = {
        { "INSERT INTO sluice_outbox (topic, payload) VALUES ('', '')", SL_REFUSED, "CHECK" },
        { "INSERT INTO sluice_outbox (payload) VALUES ('')", SL_REFUSED, "NOT NULL" },
        { "INSERT INTO sluice_outbox_meta VALUES ('lanes', '1')", SL_REFUSED, "UNIQUE" },
        { "INSERT INTO sluice_outbox (id, topic, payload) VALUES ('a', 'x', '')", SL_REFUSED,
          "mismatch" },
        { "SELECT zeroblob(2000000000)", SL_REFUSED, "too big" },
        { "DELETE FROM nowhere", SL_OPERATOR,
          "no such table: nowhere\nhint: create or migrate the tables" },
        { "UPDATE sluice_outbox SET hope = 1", SL_OPERATOR,
          "no such column: hope\nhint: create or migrate the tables" },
        { "SELEC 1", SL_OPERATOR, "syntax error" },
        { "PRAGMA query_only = ON; DELETE FROM sluice_outbox", SL_OPERATOR,
          "readonly database\nhint: the file and its folder must be writable" },
        { "PRAGMA query_only = OFF; PRAGMA max_page_count = 1; CREATE TABLE big (x); INSERT "
          "INTO "
          "big VALUES (zeroblob(1000000))",
          SL_AGAIN, "full" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_buf sql = { 0 };
        sl_names_apply(&t.names, rows[i].sql, &sql);
        sl_rc rc = db->ops->script(db, sl_buf_text(&sql), &err);
        sl_buf_fini(&sql);
        if (rc != rows[i].rc || !strstr(err.text, rows[i].words))
            fail_msg("%s: %s: %s", rows[i].sql, sl_rc_name(rc), err.text);
        assert_memory_equal(err.text, "sqlite: ", 8);
    }
}

static void a_writer_in_the_way_is_waited_for(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.connect_ns = 300 * SL_MS; /* the busy timeout too */
    sl_db *hasty = testdb_open_as(&dsn);
    assert_int_equal(run("tx/begin", NULL, NULL), SL_OK);
    int64_t before = sl_now_ns();
    assert_int_equal(sl_db_run1(hasty, "tx/begin", NULL, NULL, NULL, NULL, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "database is locked"));
    assert_true(sl_now_ns() - before >= 250 * SL_MS);
    assert_int_equal(run("tx/commit", NULL, NULL), SL_OK);
    assert_int_equal(sl_db_run1(hasty, "tx/begin", NULL, NULL, NULL, NULL, &err), SL_OK);
    sl_db_close(hasty); /* with its transaction: rolled back */
    assert_int_equal(run("tx/begin", NULL, NULL), SL_OK);
}

/* A reader is in nobody's way. */
static void readers_go_on_beside_a_writer(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 1);
    assert_int_equal(run("tx/begin", NULL, NULL), SL_OK);
    testdb_script(db, &t.names, "DELETE FROM sluice_outbox");
    assert_int_equal(testdb_count(&t), 2);
    assert_int_equal(run("tx/commit", NULL, NULL), SL_OK);
    assert_int_equal(testdb_count(&t), 0);
}

/* ---- Values ---- */

static void push(const sl_str *payloads, size_t n)
{
    sl_str topics[8], none[8];
    int64_t now[8] = { 0 };
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++) {
        topics[i] = SL_STR("x");
        none[i] = SL_NONE;
    }
    sl_val in[] = { sl_texts(topics, n),    sl_texts(none, n), sl_texts(none, n),
                    sl_bytess(payloads, n), sl_texts(none, n), sl_texts(none, n),
                    sl_texts(none, n),      sl_ints(now, n) };
    int64_t affected;
    assert_int_equal(run("push/insert", in, &affected), SL_OK);
    assert_int_equal(affected, n);
}

static void bytes_are_blobs_and_empty_is_not_null(void **state)
{
    (void)state;
    push((sl_str[]){ SL_STR("a\0b"), SL_STR("") }, 2);
    testdb_expect(
        &t, "blob 610062\nblob ",
        "SELECT typeof(payload) || ' ' || hex(payload) FROM sluice_outbox ORDER BY id");
    testdb_expect(&t, "text\ntext", "SELECT typeof(topic) FROM sluice_outbox");
}

static sl_rc note_text(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)e;
    sl_buf *out = ctx;
    sl_buf_printf(out, "%zu:", cols[0].s.n);
    sl_buf_put(out, cols[0].s.p, cols[0].s.n);
    return SL_OK;
}

static void any_value_can_be_read_as_text(void **state)
{
    (void)state;
    sl_buf out = { 0 };
    sl_stmt s = testdb_stmt(db, 0,
                            "SELECT 42 UNION ALL SELECT 1.5 UNION ALL SELECT x'6100' UNION ALL "
                            "SELECT '' UNION ALL SELECT x'' UNION ALL SELECT 'h\xc3\xa9'",
                            1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = note_text, .ctx = &out };
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK);
    assert_int_equal(out.n, sizeof "2:423:1.52:a\0000:0:3:h\xc3\xa9" - 1);
    assert_memory_equal(out.p, "2:423:1.52:a\0000:0:3:h\xc3\xa9", out.n);
    sl_buf_fini(&out);
}

static void another_encoding_reads_as_utf8(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = beside("utf16.db");
    sl_db *other = testdb_open_as(&dsn);
    testdb_script(other, &t.names,
                  "PRAGMA encoding = 'UTF-16le'; CREATE TABLE x (y TEXT); "
                  "INSERT INTO x VALUES ('h\xc3\xa9')");
    sl_buf out = { 0 };
    sl_stmt s = testdb_stmt(other, 0, "SELECT y FROM x", 1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = note_text, .ctx = &out };
    assert_int_equal(other->ops->run(other, &call, 1, &err), SL_OK);
    assert_string_equal(sl_buf_text(&out), "3:h\xc3\xa9");
    sl_buf_fini(&out);
    sl_db_close(other);
}

/* ---- Arrays ---- */

/* As one statement does elsewhere: also outside of a transaction. */
static void a_call_with_arrays_is_all_or_nothing(void **state)
{
    (void)state;
    sl_str topics[] = { SL_STR("x"), SL_STR("") };
    sl_str none[] = { SL_NONE, SL_NONE };
    sl_str payloads[] = { SL_STR("1"), SL_STR("2") };
    int64_t now[2] = { 0 };
    sl_val in[] = { sl_texts(topics, 2),    sl_texts(none, 2), sl_texts(none, 2),
                    sl_bytess(payloads, 2), sl_texts(none, 2), sl_texts(none, 2),
                    sl_texts(none, 2),      sl_ints(now, 2) };
    assert_int_equal(run("push/insert", in, NULL), SL_REFUSED);
    assert_int_equal(testdb_count(&t), 0);
    topics[1] = SL_STR("y");
    assert_int_equal(run("push/insert", in, NULL), SL_OK);
    assert_int_equal(testdb_count(&t), 2);
}

static void statements_of_transactions_affect_nothing(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    sl_val in[] = { sl_ints((int64_t[]){ 1, 2, 9 }, 3), sl_ints((int64_t[]){ 0, 0, 0 }, 3) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "settle/sent"), .in = in },
                        { .stmt = sl_db_stmt(db, "tx/commit") },
                        { .stmt = sl_db_stmt(db, "settle/sent"), .in = in },
                        { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "tx/rollback") } };
    assert_int_equal(db->ops->run(db, calls, COUNT(calls), &err), SL_OK);
    static const int64_t want[] = { 0, 2, 0, 0, 0, 0 };
    for (size_t i = 0; i < COUNT(calls); i++)
        assert_int_equal(calls[i].affected, want[i]);
}

static void a_changed_schema_is_noticed(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    int64_t affected;
    sl_val in[] = { sl_ints((int64_t[]){ 9 }, 1), sl_ints((int64_t[]){ 0 }, 1) };
    assert_int_equal(run("settle/sent", in, &affected), SL_OK); /* prepared */
    testdb_exec(&t, "ALTER TABLE sluice_outbox ADD COLUMN more TEXT");
    in[0] = sl_ints((int64_t[]){ 1 }, 1);
    assert_int_equal(run("settle/sent", in, &affected), SL_OK);
    assert_int_equal(affected, 1);
    testdb_exec(&t, "DROP TABLE sluice_outbox");
    assert_int_equal(run("settle/sent", in, &affected), SL_OPERATOR);
}

/* A number that does not count as to how often it runs, and an array. */
static void expect_whole(const int64_t *v, size_t n, const char *want)
{
    sl_stmt s = testdb_stmt(db, 0, "SELECT ?2 || ':' || ?1", 1, SL_T_TEXT);
    sl_val in[] = { sl_ints(v, n), sl_int(5) };
    sl_buf out = { 0 };
    s.whole = true;
    s.nparams = 2;
    s.params[0] = SL_T_INT8S;
    sl_call call = { .stmt = &s, .in = in, .row = testdb_row_text, .ctx = &out };
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK);
    assert_int_equal(call.affected, 1); /* one run, also for nothing */
    assert_string_equal(sl_buf_text(&out), want);
    sl_buf_fini(&out);
}

static void arrays_come_whole_where_they_are_wanted_so(void **state)
{
    (void)state;
    const int64_t some[] = { INT64_MIN, -1, 0, 7, INT64_MAX };
    expect_whole(some, COUNT(some), "5:[-9223372036854775808,-1,0,7,9223372036854775807]");
    expect_whole(some + 3, 1, "5:[7]");
    expect_whole(some, 0, "5:[]");
}

/* Their lengths may differ; and SQLite reads each number as it was. */
static void whole_arrays_are_sets(void **state)
{
    (void)state;
    const int64_t all[] = { INT64_MIN, -1, 0, 7, INT64_MAX };
    const int64_t some[] = { INT64_MAX, INT64_MIN, 8 };
    int64_t both = 0;
    sl_stmt s = testdb_stmt(
        db, 0, "SELECT count(*) FROM json_each(?1) a, json_each(?2) b WHERE a.value = b.value",
        1, SL_T_INT8);
    sl_val in[] = { sl_ints(all, COUNT(all)), sl_ints(some, COUNT(some)) };
    s.whole = true;
    s.nparams = 2;
    s.params[0] = s.params[1] = SL_T_INT8S;
    sl_call call = { .stmt = &s, .in = in, .row = testdb_row_int, .ctx = &both };
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK);
    assert_int_equal(both, 2);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_missing_file_is_made_only_when_asked),
        TEST(bad_paths_are_told),
        TEST(a_file_that_is_no_database_is_told),
        TEST(the_session_is_durable_and_lets_others_read),
        TEST(a_look_changes_nothing),
        TEST(errors_are_sorted),
        TEST(a_writer_in_the_way_is_waited_for),
        TEST(readers_go_on_beside_a_writer),
        TEST(bytes_are_blobs_and_empty_is_not_null),
        TEST(any_value_can_be_read_as_text),
        TEST(another_encoding_reads_as_utf8),
        TEST(a_call_with_arrays_is_all_or_nothing),
        TEST(arrays_come_whole_where_they_are_wanted_so),
        TEST(whole_arrays_are_sets),
        TEST(statements_of_transactions_affect_nothing),
        TEST(a_changed_schema_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
