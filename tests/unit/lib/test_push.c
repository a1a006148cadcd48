/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/push.h"

#include "lib/conf.h"
#include "support/fakedb.h"
#include "support/testdb.h"

#ifdef SL_TEST_HAS_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SL_TEST_HAS_SQLITE
#include <sqlite3.h>
#endif

static sl_err err;
static sl_pushed pushed;

static sl_draft draft(const char *topic, const char *payload)
{
    return (sl_draft){ .topic = topic, .payload = payload, .payload_bytes = strlen(payload) };
}

/* ---- What is asked of the database ---- */

static void a_draft_becomes_a_row(void **state)
{
    (void)state;
    fakedb f;
    fakedb_init(&f);
    sl_draft d[] = { { .topic = "orders",
                       .key = "order:1 and more",
                       .key_bytes = 7,
                       .payload = "{}",
                       .payload_bytes = 2,
                       .type = "Paid",
                       .content_type = "text/plain",
                       .headers = "{\"a\":\"b\"}",
                       .idempotency_key = "once",
                       .available_at_us = 17 },
                     { .topic = "x", .key = "", .key_bytes = 0 },
                     { .topic = "y" } };
    assert_int_equal(sl_push_db(&f.base, d, 3, &pushed, &err), SL_OK);
    assert_string_equal(fakedb_said(&f),
                        "push/insert({'orders','x','y'},{'order:1','',NULL},{'Paid',NULL,NULL},"
                        "{'{}','',''},{'text/plain',NULL,NULL},{'{\"a\":\"b\"}',NULL,NULL},"
                        "{'once',NULL,NULL},{17,0,0})");
    assert_int_equal(pushed.inserted, 3);
    assert_int_equal(pushed.duplicates, 0);
    f.lossy = "push/insert";
    f.missing = 2;
    assert_int_equal(sl_push_db(&f.base, d, 3, &pushed, &err), SL_OK);
    assert_int_equal(pushed.inserted, 1);
    assert_int_equal(pushed.duplicates, 2);
    assert_int_equal(sl_push_db(&f.base, d, 3, NULL, &err), SL_OK);
    fakedb_fini(&f);
}

static size_t lines_of(fakedb *f)
{
    size_t n = f->said.n > 0;
    for (size_t i = 0; i < f->said.n; i++)
        n += f->said.p[i] == '\n';
    sl_buf_reset(&f->said);
    return n;
}

static void many_drafts_go_in_chunks(void **state)
{
    (void)state;
    fakedb f;
    enum { MANY = 4500 };
    sl_draft *d = sl_alloc(MANY * sizeof *d);
    fakedb_init(&f);
    assert_int_equal(sl_push_db(&f.base, d, 0, &pushed, &err), SL_OK);
    assert_int_equal(lines_of(&f), 0);
    for (int i = 0; i < MANY; i++)
        d[i] = draft("x", "p");
    assert_int_equal(sl_push_db(&f.base, d, MANY, &pushed, &err), SL_OK);
    assert_int_equal(lines_of(&f), 3);
    assert_int_equal(pushed.inserted, MANY);
    /* After a failure, what went before it is in the sum. */
    f.fail_at = 2;
    f.rc = SL_AGAIN;
    assert_int_equal(sl_push_db(&f.base, d, MANY, &pushed, &err), SL_AGAIN);
    assert_int_equal(pushed.inserted, 2000);
    assert_int_equal(lines_of(&f), 2);
    fakedb_fini(&f);
    free(d);
}

static void large_drafts_go_in_smaller_chunks(void **state)
{
    (void)state;
    fakedb f;
    const size_t n = 10 << 20;
    char *payload = sl_alloc(n);
    memset(payload, 'x', n);
    sl_draft d[5];
    for (size_t i = 0; i < COUNT(d); i++)
        d[i] = (sl_draft){ .topic = "x", .payload = payload, .payload_bytes = n };
    fakedb_init(&f);
    assert_int_equal(sl_push_db(&f.base, d, COUNT(d), &pushed, &err), SL_OK);
    assert_int_equal(lines_of(&f), 3); /* of 20, 20 and 10 MB */
    assert_int_equal(pushed.inserted, COUNT(d));
    fakedb_fini(&f);
    free(payload);
}

static void a_bad_draft_is_named_before_anything_is_sent(void **state)
{
    (void)state;
    char longer[513];
    memset(longer, 'x', sizeof longer);
    static const char nul[] = "a\0b";
    const struct {
        sl_draft draft;
        const char *text;
    } rows[] = {
        { { .topic = NULL, .payload = "" }, "message 1 has no topic" },
        { { .topic = "", .payload = "" }, "message 1 has no topic" },
        { { .topic = "x", .key = longer, .key_bytes = 513 },
          "message 1: the key has 513 bytes" },
        { { .topic = "x", .key = nul, .key_bytes = 3 }, "message 1: the key holds a NUL byte" },
        { { .topic = "x", .payload_bytes = 1 }, "message 1 has a payload size but no payload" },
        { { .topic = "x", .idempotency_key = "" }, "message 1: the idempotency key is empty" },
        { { .topic = "x\xff" }, "message 1: the topic is not UTF-8" },
        { { .topic = "x", .key = "\xc3", .key_bytes = 1 }, "message 1: the key is not UTF-8" },
        { { .topic = "x", .type = "\xff" }, "message 1: the type is not UTF-8" },
        { { .topic = "x", .content_type = "\xff" }, "message 1: the content type is not" },
        { { .topic = "x", .headers = "\xff" }, "message 1: the headers is not" },
        { { .topic = "x", .idempotency_key = "\xff" },
          "message 1: the idempotency key is not" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fakedb f;
        fakedb_init(&f);
        sl_draft d[] = { draft("x", "fine"), rows[i].draft };
        pushed = (sl_pushed){ .inserted = 99 };
        assert_int_equal(sl_push_db(&f.base, d, 2, &pushed, &err), SL_REFUSED);
        assert_memory_equal(err.text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(lines_of(&f), 0);
        assert_int_equal(pushed.inserted, 0);
        fakedb_fini(&f);
    }
}

/* ---- On the caller's connection ---- */

static const char *dialect;
static testdb t;
static sl_conf *conf;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, dialect, NULL);
    conf = sl_conf_new();
    return sl_conf_set(conf, "table", t.table, &err) == SL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_conf_free(conf);
    testdb_drop(&t);
    return 0;
}

/* One of the two libraries; `with` NULL: the default table. */
typedef struct caller {
    void *native;
} caller;

static void caller_exec(const caller *c, const char *sql)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        PGresult *res = PQexec(c->native, sql);
        assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
        PQclear(res);
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        assert_int_equal(sqlite3_exec(c->native, sql, NULL, NULL, NULL), SQLITE_OK);
#endif
}

static void caller_open(caller *c)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        char sql[100];
        c->native = PQconnectdb(t.url);
        snprintf(sql, sizeof sql, "SET search_path = %s", t.names.schema);
        caller_exec(c, sql);
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        assert_int_equal(sqlite3_open(t.url + strlen("sqlite:"), (sqlite3 **)&c->native), 0);
#endif
}

static void caller_close(caller *c)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg)
        PQfinish(c->native);
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        assert_int_equal(sqlite3_close(c->native), SQLITE_OK);
#endif
    c->native = NULL;
}

static sl_rc push(const caller *c, const sl_conf *with, const sl_draft *d, size_t n)
{
    return t.pg ? sl_push_pg(c->native, with, d, n, &pushed, &err)
                : sl_push_sqlite(c->native, with, d, n, &pushed, &err);
}

static void must_push(const caller *c, const sl_conf *with, const sl_draft *d, size_t n)
{
    if (push(c, with, d, n) != SL_OK)
        fail_msg("%s", err.text);
}

static void a_push_is_part_of_the_callers_transaction(void **state)
{
    (void)state;
    caller c;
    sl_draft d[] = { draft("x", "1"), draft("x", "2") };
    caller_open(&c);
    caller_exec(&c, "BEGIN");
    must_push(&c, conf, d, 2);
    assert_int_equal(pushed.inserted, 2);
    assert_int_equal(testdb_count(&t), 0);
    caller_exec(&c, "ROLLBACK");
    assert_int_equal(testdb_count(&t), 0);
    caller_exec(&c, "BEGIN");
    must_push(&c, conf, d, 1);
    must_push(&c, NULL, d + 1, 1); /* without a conf: the table is called outbox */
    caller_exec(&c, "COMMIT");
    assert_int_equal(testdb_count(&t), 2);
    must_push(&c, conf, d, 2); /* outside of one, at once */
    assert_int_equal(testdb_count(&t), 4);
    caller_close(&c);
}

static void all_columns_are_written(void **state)
{
    (void)state;
    caller c;
    sl_draft d = { .topic = "orders",
                   .key = "k\xc3\xa9...",
                   .key_bytes = 3,
                   .payload = "\0\xff",
                   .payload_bytes = 2,
                   .type = "Paid",
                   .content_type = "text/plain",
                   .headers = "{\"a\": \"b\"}",
                   .idempotency_key = "once",
                   .available_at_us = 4102444800000000 /* 2100-01-01 */ };
    caller_open(&c);
    must_push(&c, conf, &d, 1);
    testdb_expect(
        &t, "1 orders k\xc3\xa9 Paid text/plain {\"a\": \"b\"} once",
        testdb_or(&t,
                  "SELECT concat_ws(' ', id, topic, entity_key, event_type, "
                  "content_type, headers, idempotency_key) FROM sluice_outbox WHERE "
                  "payload = '\\x00ff' AND available_at = '2100-01-01 00:00+00'",
                  "SELECT id || ' ' || topic || ' ' || entity_key || ' ' || event_type "
                  "|| ' ' || content_type || ' ' || headers || ' ' || idempotency_key "
                  "FROM sluice_outbox WHERE payload = x'00ff' AND available_at = "
                  "'2100-01-01 00:00:00.000'"));
    d = (sl_draft){ .topic = "x" };
    must_push(&c, conf, &d, 1);
    testdb_expect(
        &t, "application/json",
        "SELECT content_type FROM sluice_outbox WHERE id = 2 AND entity_key IS NULL AND "
        "event_type = '' AND headers IS NULL AND idempotency_key IS NULL");
    assert_true(testdb_ahead_us(&t, "available_at", 2) <= 1000);
    caller_close(&c);
}

static void ids_rise_in_the_order_of_the_drafts(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    caller c;
    sl_draft *d = sl_alloc(MANY * sizeof *d);
    char(*keys)[8] = sl_alloc(MANY * sizeof *keys);
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "%05d", i);
        d[i] = draft("x", "p");
        d[i].key = keys[i];
        d[i].key_bytes = 5;
    }
    caller_open(&c);
    must_push(&c, conf, d, MANY);
    assert_int_equal(pushed.inserted, MANY);
    assert_int_equal(testdb_int(&t,
                                "SELECT count(*) FROM sluice_outbox a JOIN sluice_outbox b ON "
                                "b.id = a.id + 1 AND b.entity_key > a.entity_key"),
                     MANY - 1);
    caller_close(&c);
    free(keys);
    free(d);
}

static void an_idempotency_key_is_taken_once(void **state)
{
    (void)state;
    caller c;
    sl_draft d[] = { draft("x", "1"), draft("x", "2"), draft("x", "3"), draft("x", "4") };
    d[0].idempotency_key = d[2].idempotency_key = "a";
    d[1].idempotency_key = "b";
    caller_open(&c);
    must_push(&c, conf, d, 4);
    assert_int_equal(pushed.inserted, 3);
    assert_int_equal(pushed.duplicates, 1);
    must_push(&c, conf, d, 4);
    assert_int_equal(pushed.inserted, 1);
    assert_int_equal(pushed.duplicates, 3);
    assert_int_equal(testdb_count(&t), 4);
    caller_close(&c);
}

static void a_refused_push_leaves_nothing(void **state)
{
    (void)state;
    caller c;
    sl_draft d[] = { draft("x", "1"), draft("x", "2") };
    d[1].headers = "[]";
    caller_open(&c);
    assert_int_equal(push(&c, conf, d, 2), SL_REFUSED);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(pushed.inserted, 0);
    d[1].headers = NULL;
    must_push(&c, conf, d, 2); /* the connection is as good as before */
    assert_int_equal(testdb_count(&t), 2);
    caller_close(&c);
}

static void a_wrong_conf_is_told(void **state)
{
    (void)state;
    caller c;
    sl_draft d = draft("x", "1");
    caller_open(&c);
    assert_int_equal(sl_conf_set(conf, "table", "nowhere", &err), SL_OK);
    assert_int_equal(push(&c, conf, &d, 1), SL_OPERATOR);
    assert_int_equal(sl_conf_set(conf, "table", "no name", &err), SL_OK);
    assert_int_equal(push(&c, conf, &d, 1), SL_REFUSED);
    caller_close(&c);
}

/* What is PostgreSQL's own: rights, and the state of the connection. */
static void a_producer_needs_insert_and_no_more(void **state)
{
    (void)state;
#ifdef SL_TEST_HAS_POSTGRES
    caller c;
    sl_draft d[] = { draft("x", "1"), draft("x", "2") };
    if (!t.pg)
        return;
    char role[64], sql[512];
    snprintf(role, sizeof role, "producer_%ld", (long)getpid());
    snprintf(
        sql, sizeof sql,
        "CREATE ROLE %s; GRANT USAGE ON SCHEMA %s TO %s; GRANT INSERT ON sluice_outbox TO %s",
        role, t.names.schema, role, role);
    testdb_exec(&t, sql);
    caller_open(&c);
    snprintf(sql, sizeof sql, "SET ROLE %s", role);
    caller_exec(&c, sql);
    d[0].idempotency_key = d[1].idempotency_key = "same";
    sl_rc rc = push(&c, conf, d, 2);
    caller_close(&c);
    snprintf(sql, sizeof sql, "DROP OWNED BY %s; DROP ROLE %s", role, role);
    testdb_exec(&t, sql);
    if (rc != SL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pushed.inserted, 1);
#endif
}

static void a_connection_that_cannot_be_used_is_told(void **state)
{
    (void)state;
#ifdef SL_TEST_HAS_POSTGRES
    caller c;
    sl_draft d = draft("x", "1");
    if (!t.pg)
        return;
    caller_open(&c);
    assert_int_equal(PQenterPipelineMode(c.native), 1);
    assert_int_equal(push(&c, conf, &d, 1), SL_REFUSED);
    assert_int_equal(PQexitPipelineMode(c.native), 1);
    assert_int_equal(PQsendQuery(c.native, "SELECT pg_sleep(0.2)"), 1);
    assert_int_equal(push(&c, conf, &d, 1), SL_REFUSED);
    for (PGresult *res; (res = PQgetResult(c.native));)
        PQclear(res);
    must_push(&c, conf, &d, 1);
    PGresult *res = PQexec(c.native, "SELECT pg_terminate_backend(pg_backend_pid())");
    PQclear(res);
    assert_int_equal(push(&c, conf, &d, 1), SL_AGAIN);
    caller_close(&c);
#endif
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_push_is_part_of_the_callers_transaction),
        TEST(all_columns_are_written),
        TEST(ids_rise_in_the_order_of_the_drafts),
        TEST(an_idempotency_key_is_taken_once),
        TEST(a_refused_push_leaves_nothing),
        TEST(a_wrong_conf_is_told),
        TEST(a_producer_needs_insert_and_no_more),
        TEST(a_connection_that_cannot_be_used_is_told),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draft_becomes_a_row),
        cmocka_unit_test(many_drafts_go_in_chunks),
        cmocka_unit_test(large_drafts_go_in_smaller_chunks),
        cmocka_unit_test(a_bad_draft_is_named_before_anything_is_sent),
    };
    int failed = cmocka_run_group_tests_name("drafts", tests, NULL, NULL);
    return failed ? failed : testdb_each(on);
}
