/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose answer is not waited for: it comes with the next run, in the same round trip. */
#include "support/testdb.h"

static testdb t;
static sl_db *db;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, "postgres", NULL);
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

static sl_rc run_text(int slot, const char *sql)
{
    sl_stmt s = testdb_stmt(db, slot, sql, 0, SL_T_INT8);
    sl_call call = { .stmt = &s };
    return db->ops->run(db, &call, 1, &err);
}

static int64_t int_of(int slot, const char *sql)
{
    int64_t got = INT64_MIN;
    sl_stmt s = testdb_stmt(db, slot, sql, 1, SL_T_INT8);
    sl_call call = { .stmt = &s, .row = testdb_row_int, .ctx = &got };
    if (db->ops->run(db, &call, 1, &err) != SL_OK)
        fail_msg("%s", err.text);
    return got;
}

static const char push_one[] = "INSERT INTO sluice_outbox (topic, payload) VALUES ('x', '')";
static const char push_bad[] = "INSERT INTO sluice_outbox (topic, payload) VALUES ('', '')";

typedef struct posted {
    sl_stmt stmts[2];
    sl_call calls[2];
    sl_post post;
} posted;

static void post(posted *p, int slot, const char *first, const char *second)
{
    const char *texts[] = { first, second };
    p->post = (sl_post){ .calls = p->calls };
    for (int i = 0; i < 2 && texts[i]; i++) {
        p->stmts[i] = testdb_stmt(db, slot + i, texts[i], 0, SL_T_INT8);
        p->calls[p->post.count++] = (sl_call){ .stmt = &p->stmts[i], .affected = -1 };
    }
    if (db->ops->post(db, &p->post, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_false(p->post.answered);
}

/* What runs next sees what it has written, and brings its answer. */
static void what_is_posted_is_answered_by_the_next_run(void **state)
{
    (void)state;
    posted p;
    for (int again = 0; again < 3; again++) { /* prepared, and not */
        post(&p, 0, push_one, push_one);
        assert_int_equal(int_of(2, "SELECT count(*) FROM sluice_outbox"), 2 * again + 2);
        assert_true(p.post.answered);
        assert_int_equal(p.calls[0].affected + p.calls[1].affected, 2);
    }
    post(&p, 0, push_one, NULL);
    assert_int_equal(db->ops->run(db, NULL, 0, &err), SL_OK);
    assert_true(p.post.answered);
    assert_int_equal(testdb_count(&t), 7);
    assert_int_equal(db->ops->run(db, NULL, 0, &err), SL_OK); /* with nothing on the way */
}

/* The same statement in both, that was never prepared. */
static void what_is_posted_is_prepared_once(void **state)
{
    (void)state;
    posted p;
    post(&p, 0, push_one, NULL);
    if (run_text(0, push_one) != SL_OK)
        fail_msg("%s", err.text);
    assert_true(p.post.answered);
    assert_int_equal(testdb_count(&t), 2);
}

/* All of it or nothing; and what runs next gives nothing, and is not told to have worked. */
static void what_is_posted_and_fails_fails_the_next_run(void **state)
{
    (void)state;
    posted p;
    int64_t got = -1;
    sl_stmt s = testdb_stmt(db, 2, "SELECT 7::bigint", 1, SL_T_INT8);
    sl_call call = { .stmt = &s, .row = testdb_row_int, .ctx = &got };
    post(&p, 0, push_one, push_bad);
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "23514"));
    assert_false(p.post.answered);
    assert_int_equal(got, -1);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK); /* and that was all */
    assert_int_equal(got, 7);
}

/* It is committed before what fails behind it, and that is told. */
static void what_is_posted_stays_when_the_next_run_fails(void **state)
{
    (void)state;
    posted p;
    post(&p, 0, push_one, NULL);
    assert_int_equal(run_text(2, push_bad), SL_REFUSED);
    assert_true(p.post.answered);
    assert_int_equal(testdb_count(&t), 1);
}

/* A commit may fail when all of its statements have worked. */
static void a_commit_that_fails_is_no_answer(void **state)
{
    (void)state;
    posted p;
    testdb_exec(
        &t, "CREATE TABLE sluice_outbox_pairs (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    testdb_exec(&t, "INSERT INTO sluice_outbox_pairs VALUES (1)");
    post(&p, 0, "INSERT INTO sluice_outbox_pairs VALUES (1)", NULL);
    assert_int_equal(db->ops->run(db, NULL, 0, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "23505"));
    assert_false(p.post.answered);
}

static void what_is_posted_to_a_session_that_ends_is_not_answered(void **state)
{
    (void)state;
    posted p;
    int64_t pid = int_of(3, "SELECT pg_backend_pid()::bigint");
    char end[80];
    snprintf(end, sizeof end, "SELECT pg_terminate_backend(%d)", (int)pid);
    post(&p, 0, "SELECT pg_sleep(60)", push_one);
    testdb_exec(&t, end);
    assert_int_equal(db->ops->run(db, NULL, 0, &err), SL_AGAIN);
    assert_false(p.post.answered);
    assert_int_equal(testdb_count(&t), 0);
}

/* The same of what is waited for. */
static void a_commit_that_fails_is_told(void **state)
{
    (void)state;
    testdb_exec(
        &t, "CREATE TABLE sluice_outbox_pairs (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    testdb_exec(&t, "INSERT INTO sluice_outbox_pairs VALUES (1)");
    assert_int_equal(run_text(0, "INSERT INTO sluice_outbox_pairs VALUES (1)"), SL_REFUSED);
    assert_non_null(strstr(err.text, "23505"));
    assert_int_equal(int_of(1, "SELECT 7::bigint"), 7);
}

int main(void)
{
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_posted_is_answered_by_the_next_run),
        TEST(what_is_posted_is_prepared_once),
        TEST(what_is_posted_and_fails_fails_the_next_run),
        TEST(what_is_posted_stays_when_the_next_run_fails),
        TEST(a_commit_that_fails_is_no_answer),
        TEST(a_commit_that_fails_is_told),
        TEST(what_is_posted_to_a_session_that_ends_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
