/* SPDX-License-Identifier: Apache-2.0 */
/* db/db.h made executable: what every database of this build must do alike. */
#include "support/testdb.h"

#ifdef SL_TEST_HAS_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SL_TEST_HAS_SQLITE
#include <sqlite3.h>
#endif

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_err err;

/* Statements of this test, each in a slot of its own. */
enum { INSERT_ALL, INSERT_ONE, SELECT_ALL, DELETE_SOME, BREAK };

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_make(&t, dialect, NULL);
    testdb_exec(&t,
                testdb_or(&t,
                          "CREATE TABLE sluice_outbox_things (nr bigint PRIMARY KEY, a text, "
                          "b bytea)",
                          "CREATE TABLE sluice_outbox_things (nr INTEGER PRIMARY KEY, a TEXT, "
                          "b BLOB)"));
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

/* ---- The statements ---- */

/* For each element: nr, a, b. */
static sl_stmt insert_all(const sl_db *on)
{
    sl_stmt s = testdb_stmt(on, INSERT_ALL,
                            testdb_or(&t,
                                      "INSERT INTO sluice_outbox_things "
                                      "SELECT * FROM unnest($1, $2, $3)",
                                      "INSERT INTO sluice_outbox_things VALUES (?1, ?2, ?3)"),
                            0, SL_T_INT8);
    s.nparams = 3;
    s.params[0] = SL_T_INT8S;
    s.params[1] = SL_T_TEXTS;
    s.params[2] = SL_T_BYTESS;
    return s;
}

static sl_stmt insert_one(const sl_db *on)
{
    sl_stmt s =
        testdb_stmt(on, INSERT_ONE,
                    testdb_or(&t, "INSERT INTO sluice_outbox_things VALUES ($1, $2, $3)",
                              "INSERT INTO sluice_outbox_things VALUES (?1, ?2, ?3)"),
                    0, SL_T_INT8);
    s.nparams = 3;
    s.params[0] = SL_T_INT8;
    s.params[1] = SL_T_TEXT;
    s.params[2] = SL_T_BYTES;
    return s;
}

static sl_stmt select_all(const sl_db *on)
{
    sl_stmt s = testdb_stmt(
        on, SELECT_ALL, "SELECT nr, a, b FROM sluice_outbox_things ORDER BY nr", 3, SL_T_INT8);
    s.cols[1] = SL_T_TEXT;
    s.cols[2] = SL_T_BYTES;
    return s;
}

static sl_val bytes(sl_str s)
{
    return (sl_val){ .type = SL_T_BYTES, .null = !s.p, .s = s };
}

static int64_t things(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_things");
}

static sl_rc run(sl_call *calls, size_t n)
{
    err = (sl_err){ 0 };
    return db->ops->run(db, calls, n, &err);
}

static void must_run(sl_call *calls, size_t n)
{
    if (run(calls, n) != SL_OK)
        fail_msg("%s", err.text);
}

static sl_rc insert(sl_db *on, int64_t nr)
{
    sl_stmt s = insert_one(on);
    sl_val in[] = { sl_int(nr), sl_text(SL_STR("a")), bytes(SL_STR("b")) };
    sl_call call = { .stmt = &s, .in = in };
    return on->ops->run(on, &call, 1, &err);
}

static sl_rc tx(sl_db *on, const char *name)
{
    return sl_db_run1(on, name, NULL, NULL, NULL, NULL, &err);
}

/* ---- Transactions ---- */

static void a_commit_keeps_and_a_rollback_does_not(void **state)
{
    (void)state;
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 1), SL_OK);
    assert_int_equal(tx(db, "tx/commit"), SL_OK);
    assert_int_equal(things(), 1);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 2), SL_OK);
    db->ops->rollback(db);
    assert_int_equal(things(), 1);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 2), SL_OK);
    assert_int_equal(tx(db, "tx/rollback"), SL_OK);
    assert_int_equal(things(), 1);
    db->ops->rollback(db); /* harmless outside a transaction */
    assert_int_equal(insert(db, 2), SL_OK);
    assert_int_equal(things(), 2);
}

static void others_see_what_is_committed_only(void **state)
{
    (void)state;
    sl_db *other = testdb_open(&t);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 1), SL_OK);
    sl_stmt s = select_all(other);
    sl_call call = { .stmt = &s };
    assert_int_equal(other->ops->run(other, &call, 1, &err), SL_OK);
    assert_int_equal(call.affected, 0);
    assert_int_equal(tx(db, "tx/commit"), SL_OK);
    assert_int_equal(other->ops->run(other, &call, 1, &err), SL_OK);
    assert_int_equal(call.affected, 1);
    sl_db_close(other);
}

static void closing_rolls_back(void **state)
{
    (void)state;
    sl_db *other = testdb_open(&t);
    assert_int_equal(tx(other, "tx/begin"), SL_OK);
    assert_int_equal(insert(other, 1), SL_OK);
    sl_db_close(other);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 1), SL_OK); /* not in anybody's way */
    assert_int_equal(tx(db, "tx/commit"), SL_OK);
    assert_int_equal(things(), 1);
}

static void a_failure_rolls_back_what_is_open(void **state)
{
    (void)state;
    sl_stmt s = insert_one(db);
    sl_val one[] = { sl_int(1), sl_text(SL_NONE), bytes(SL_NONE) };
    sl_val two[] = { sl_int(2), sl_text(SL_NONE), bytes(SL_NONE) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = &s, .in = one },
                        { .stmt = &s, .in = one },
                        { .stmt = &s, .in = two },
                        { .stmt = sl_db_stmt(db, "tx/commit") } };
    assert_int_equal(run(calls, COUNT(calls)), SL_REFUSED);
    assert_true(err.rc == SL_REFUSED && err.text[0]);
    assert_int_equal(things(), 0);
    /* Also if it was opened by an earlier run. */
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 1), SL_OK);
    assert_int_equal(insert(db, 1), SL_REFUSED);
    assert_int_equal(insert(db, 3), SL_OK); /* in no transaction any more */
    assert_int_equal(things(), 1);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
}

/* ---- Values ---- */

typedef struct expected {
    size_t seen, n;
    const int64_t *nrs;
    const sl_str *as, *bs;
} expected;

static sl_rc compare(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)e;
    expected *x = ctx;
    size_t i = x->seen++;
    assert_true(i < x->n);
    assert_int_equal(cols[0].i, x->nrs[i]);
    assert_int_equal(cols[1].null, x->as[i].p == NULL);
    assert_int_equal(cols[2].null, x->bs[i].p == NULL);
    if (!cols[1].null)
        assert_true(sl_str_eq(cols[1].s, x->as[i]));
    if (!cols[2].null)
        assert_true(sl_str_eq(cols[2].s, x->bs[i]));
    return SL_OK;
}

static void expect_things(const int64_t *nrs, const sl_str *as, const sl_str *bs, size_t n)
{
    expected x = { .n = n, .nrs = nrs, .as = as, .bs = bs };
    sl_stmt s = select_all(db);
    sl_call call = { .stmt = &s, .row = compare, .ctx = &x };
    must_run(&call, 1);
    assert_int_equal(x.seen, n);
    assert_int_equal(call.affected, n);
}

static const int64_t numbers[] = { INT64_MIN, -1, 0, 1, 2, INT64_MAX };
static const sl_str texts[] = { { "h\xc3\xa9", 3 }, { NULL, 0 }, { "", 0 },
                                { "'; DROP", 7 },   { "\\", 1 }, { "\xf0\x9f\x98\x80", 4 } };
static const sl_str blobs[] = { { "\0\xff\0", 3 }, { "", 0 },         { NULL, 0 },
                                { "\xc3\x28", 2 }, { "'\"\\;\n", 5 }, { "x", 1 } };

static void single_values_come_back(void **state)
{
    (void)state;
    sl_stmt s = insert_one(db);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        sl_val in[] = { sl_int(numbers[i]), sl_text(texts[i]), bytes(blobs[i]) };
        sl_call call = { .stmt = &s, .in = in };
        must_run(&call, 1);
        assert_int_equal(call.affected, 1);
    }
    expect_things(numbers, texts, blobs, COUNT(numbers));
}

static void arrays_stand_for_each(void **state)
{
    (void)state;
    sl_stmt s = insert_all(db);
    sl_val in[] = { sl_ints(numbers, COUNT(numbers)), sl_texts(texts, COUNT(numbers)),
                    sl_bytess(blobs, COUNT(numbers)) };
    sl_call call = { .stmt = &s, .in = in };
    must_run(&call, 1);
    assert_int_equal(call.affected, COUNT(numbers));
    expect_things(numbers, texts, blobs, COUNT(numbers));
}

static void empty_arrays_do_nothing(void **state)
{
    (void)state;
    sl_stmt s = insert_all(db);
    sl_val in[] = { sl_ints(NULL, 0), sl_texts(NULL, 0), sl_bytess(NULL, 0) };
    sl_call call = { .stmt = &s, .in = in, .affected = 99 };
    must_run(&call, 1);
    assert_int_equal(call.affected, 0);
    assert_int_equal(things(), 0);
}

static void arrays_are_all_or_nothing(void **state)
{
    (void)state;
    sl_stmt s = insert_all(db);
    int64_t same[] = { 1, 2, 1 };
    sl_val in[] = { sl_ints(same, 3), sl_texts(texts, 3), sl_bytess(blobs, 3) };
    sl_call call = { .stmt = &s, .in = in };
    assert_int_equal(run(&call, 1), SL_REFUSED);
    assert_int_equal(things(), 0);
    same[2] = 3;
    must_run(&call, 1);
    assert_int_equal(things(), 3);
}

static void long_arrays_go_in_one_call(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    int64_t *nrs = sl_alloc(MANY * sizeof *nrs);
    sl_str *strs = sl_alloc(MANY * sizeof *strs);
    for (int i = 0; i < MANY; i++) {
        nrs[i] = i;
        strs[i] = i % 2 ? SL_STR("x") : SL_NONE;
    }
    sl_stmt s = insert_all(db);
    sl_val in[] = { sl_ints(nrs, MANY), sl_texts(strs, MANY), sl_bytess(strs, MANY) };
    sl_call call = { .stmt = &s, .in = in };
    must_run(&call, 1);
    assert_int_equal(call.affected, MANY);
    expect_things(nrs, strs, strs, MANY);
    free(nrs);
    free(strs);
}

/* ---- Calls ---- */

static sl_stmt delete_some(void)
{
    sl_stmt s = testdb_stmt(db, DELETE_SOME,
                            testdb_or(&t, "DELETE FROM sluice_outbox_things WHERE nr <= $1",
                                      "DELETE FROM sluice_outbox_things WHERE nr <= ?1"),
                            0, SL_T_INT8);
    s.nparams = 1;
    s.params[0] = SL_T_INT8;
    return s;
}

static void what_is_touched_is_counted(void **state)
{
    (void)state;
    sl_stmt add = insert_all(db), del = delete_some(), all = select_all(db);
    int64_t nrs[] = { 1, 2, 3, 4 };
    sl_str none[4] = { { 0 } };
    sl_val in[] = { sl_ints(nrs, 4), sl_texts(none, 4), sl_bytess(none, 4) };
    sl_val three[] = { sl_int(3) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = &add, .in = in },
                        { .stmt = &all },
                        { .stmt = &del, .in = three },
                        { .stmt = sl_db_stmt(db, "tx/commit") },
                        { .stmt = &all },
                        { .stmt = &del, .in = three } };
    static const int64_t want[] = { 0, 4, 4, 3, 0, 1, 0 };
    for (size_t i = 0; i < COUNT(calls); i++)
        calls[i].affected = 99;
    must_run(calls, COUNT(calls)); /* in one go, the same statement several times */
    for (size_t i = 0; i < COUNT(calls); i++)
        assert_int_equal(calls[i].affected, want[i]);
}

typedef struct stopper {
    int seen, stop_at;
} stopper;

static sl_rc stop_at(void *ctx, const sl_val *cols, sl_err *e)
{
    stopper *s = ctx;
    (void)cols;
    return ++s->seen == s->stop_at ? sl_fail(e, SL_NEWER, "enough") : SL_OK;
}

static void a_reader_may_stop(void **state)
{
    (void)state;
    for (int i = 1; i <= 5; i++)
        assert_int_equal(insert(db, i), SL_OK);
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    assert_int_equal(insert(db, 6), SL_OK);
    stopper s = { .stop_at = 3 };
    sl_stmt all = select_all(db);
    sl_call call = { .stmt = &all, .row = stop_at, .ctx = &s };
    assert_int_equal(run(&call, 1), SL_NEWER); /* any code is passed on */
    assert_string_equal(err.text, "enough");
    assert_int_equal(s.seen, 3);
    assert_int_equal(things(), 5); /* a failure like any other: rolled back */
    s = (stopper){ .stop_at = -1 };
    must_run(&call, 1);
    assert_int_equal(s.seen, 5);
}

static void rows_may_be_unwanted(void **state)
{
    (void)state;
    assert_int_equal(insert(db, 1), SL_OK);
    sl_stmt all = select_all(db);
    sl_call call = { .stmt = &all };
    must_run(&call, 1);
    assert_int_equal(call.affected, 1);
}

static void errors_are_of_their_class(void **state)
{
    (void)state;
    sl_stmt bad = testdb_stmt(db, BREAK, "SELECT 1 FROM nowhere", 1, SL_T_INT8);
    sl_call call = { .stmt = &bad };
    assert_int_equal(run(&call, 1), SL_OPERATOR);
    assert_non_null(strstr(err.text, "nowhere"));
    assert_non_null(
        strstr(err.text, "\nhint: create or migrate the tables with 'sluice init'"));
    assert_int_equal(err.rc, SL_OPERATOR);
    assert_int_equal(insert(db, 1), SL_OK);
    assert_int_equal(insert(db, 1), SL_REFUSED);
}

static void scripts_run_many_statements(void **state)
{
    (void)state;
    testdb_script(db, &t.names,
                  "INSERT INTO sluice_outbox_things (nr) VALUES (1); -- one; two\n"
                  "INSERT INTO sluice_outbox_things (nr, a) VALUES (2, 'a;b');");
    assert_int_equal(things(), 2);
    sl_rc rc = db->ops->script(db, "SELECT 1 FROM nowhere", &err);
    assert_int_equal(rc, SL_OPERATOR);
    assert_int_equal(insert(db, 3), SL_OK);
    /* In a transaction, it is part of it. */
    assert_int_equal(tx(db, "tx/begin"), SL_OK);
    testdb_script(db, &t.names, "DELETE FROM sluice_outbox_things");
    db->ops->rollback(db);
    assert_int_equal(things(), 3);
}

/* ---- Connections of the caller ---- */

/* The caller's connection, by its own library. */
static void *native_open(void)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        PGconn *pg = PQconnectdb(t.url);
        assert_int_equal(PQstatus(pg), CONNECTION_OK);
        return pg;
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    sqlite3 *lite = NULL;
    assert_int_equal(sqlite3_open(t.url + strlen("sqlite:"), &lite), SQLITE_OK);
    return lite;
#else
    abort();
#endif
}

static void native_exec(void *native, const char *sql)
{
    sl_buf text = { 0 };
    sl_names_apply(&t.names, sql, &text);
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        PGresult *res = PQexec(native, sl_buf_text(&text));
        assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
        PQclear(res);
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        assert_int_equal(sqlite3_exec(native, sl_buf_text(&text), NULL, NULL, NULL), SQLITE_OK);
#endif
    sl_buf_fini(&text);
}

/* Closes, and says how many prepared statements were left behind on it. */
static int native_close(void *native)
{
    int left = 0;
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        PGresult *res = PQexec(native, "SELECT 1 FROM pg_prepared_statements");
        left = PQntuples(res);
        PQclear(res);
        assert_int_equal(PQpipelineStatus(native), PQ_PIPELINE_OFF);
        assert_int_equal(PQisnonblocking(native), 0);
        PQfinish(native);
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg) {
        left = sqlite3_next_stmt(native, NULL) != NULL;
        assert_int_equal(sqlite3_close(native), SQLITE_OK);
    }
#endif
    return left;
}

static sl_db *adopt(void *native)
{
    sl_db *ours = NULL;
    if (sl_db_named(dialect)->adopt(&ours, native, &t.names, &err) != SL_OK)
        fail_msg("%s", err.text);
    return ours;
}

static void a_callers_transaction_stays_his(void **state)
{
    (void)state;
    void *native = native_open();
    native_exec(native, "BEGIN");
    native_exec(native, "INSERT INTO sluice_outbox_things (nr) VALUES (100)");
    sl_db *ours = adopt(native);
    assert_int_equal(insert(ours, 1), SL_OK);
    assert_int_equal(insert(ours, 2), SL_OK);
    ours->ops->rollback(ours); /* not ours to roll back */
    sl_db_close(ours);
    assert_int_equal(things(), 0); /* nor to commit */
    native_exec(native, "ROLLBACK");
    assert_int_equal(things(), 0);

    native_exec(native, "BEGIN");
    ours = adopt(native);
    assert_int_equal(insert(ours, 3), SL_OK);
    sl_db_close(ours);
    native_exec(native, "COMMIT");
    assert_int_equal(things(), 1);
    assert_int_equal(native_close(native), 0);
}

static void without_a_transaction_each_run_is_one(void **state)
{
    (void)state;
    void *native = native_open();
    sl_db *ours = adopt(native);
    sl_stmt s = insert_all(ours);
    int64_t same[] = { 1, 2, 1 };
    sl_val in[] = { sl_ints(same, 3), sl_texts(texts, 3), sl_bytess(blobs, 3) };
    sl_call call = { .stmt = &s, .in = in };
    assert_int_equal(ours->ops->run(ours, &call, 1, &err), SL_REFUSED);
    assert_int_equal(things(), 0);
    same[2] = 3;
    assert_int_equal(ours->ops->run(ours, &call, 1, &err), SL_OK);
    assert_int_equal(call.affected, 3);
    assert_int_equal(things(), 3);
    sl_db_close(ours);
    assert_int_equal(native_close(native), 0);
}

/* PostgreSQL aborts the caller's transaction, as after any failed statement; SQLite does not.
 */
static void a_failure_leaves_nothing_of_ours(void **state)
{
    (void)state;
    void *native = native_open();
    native_exec(native, "BEGIN");
    native_exec(native, "INSERT INTO sluice_outbox_things (nr) VALUES (100)");
    sl_db *ours = adopt(native);
    sl_stmt s = insert_all(ours);
    sl_val in[] = { sl_ints((int64_t[]){ 1, 2, 100 }, 3), sl_texts(texts, 3),
                    sl_bytess(blobs, 3) };
    sl_call call = { .stmt = &s, .in = in };
    assert_int_equal(ours->ops->run(ours, &call, 1, &err), SL_REFUSED);
    sl_db_close(ours);
    native_exec(native, "COMMIT");
    assert_int_equal(things(), t.pg ? 0 : 1);
    assert_int_equal(native_close(native), 0);
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_keeps_and_a_rollback_does_not),
        TEST(others_see_what_is_committed_only),
        TEST(closing_rolls_back),
        TEST(a_failure_rolls_back_what_is_open),
        TEST(single_values_come_back),
        TEST(arrays_stand_for_each),
        TEST(empty_arrays_do_nothing),
        TEST(arrays_are_all_or_nothing),
        TEST(long_arrays_go_in_one_call),
        TEST(what_is_touched_is_counted),
        TEST(a_reader_may_stop),
        TEST(rows_may_be_unwanted),
        TEST(errors_are_of_their_class),
        TEST(scripts_run_many_statements),
        TEST(a_callers_transaction_stays_his),
        TEST(without_a_transaction_each_run_is_one),
        TEST(a_failure_leaves_nothing_of_ours),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
