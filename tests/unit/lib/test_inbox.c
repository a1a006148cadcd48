/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/conf.h"

#include "support/testdb.h"

#include <pthread.h>

#ifdef SL_TEST_HAS_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SL_TEST_HAS_SQLITE
#include <sqlite3.h>
#endif

static const char *dialect;
static testdb t;
static sl_conf *conf;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    bool created = false;
    testdb_make(&t, dialect, NULL); /* a receiver has no outbox */
    conf = sl_conf_new();
    if (sl_conf_set(conf, "inbox_table", t.inbox, &err) != SL_OK ||
        sl_schema_inbox(t.eye, &t.names, &created, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_true(created);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_conf_free(conf);
    testdb_drop(&t);
    return 0;
}

static void *connect_caller(void)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg)
        return PQconnectdb(t.url);
#endif
#ifdef SL_TEST_HAS_SQLITE
    sqlite3 *lite = NULL;
    assert_int_equal(sqlite3_open(t.url + strlen("sqlite:"), &lite), SQLITE_OK);
    sqlite3_busy_timeout(lite, 60000);
    return lite;
#else
    return NULL;
#endif
}

static void close_caller(void *native)
{
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg)
        PQfinish(native);
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        assert_int_equal(sqlite3_close(native), SQLITE_OK);
#endif
}

/* False: refused. */
static bool caller_tries(void *native, const char *sql)
{
    bool good = false;
    sl_buf text = { 0 };
    sl_names_apply(&t.names, sql, &text);
#ifdef SL_TEST_HAS_POSTGRES
    if (t.pg) {
        PGresult *res = PQexec(native, sl_buf_text(&text));
        good = PQresultStatus(res) == PGRES_COMMAND_OK;
        PQclear(res);
    }
#endif
#ifdef SL_TEST_HAS_SQLITE
    if (!t.pg)
        good = sqlite3_exec(native, sl_buf_text(&text), NULL, NULL, NULL) == SQLITE_OK;
#endif
    sl_buf_fini(&text);
    return good;
}

static void caller_does(void *native, const char *sql)
{
    if (!caller_tries(native, sql))
        fail_msg("%s", sql);
}

static sl_rc inbox(void *native, const sl_conf *with, const char *consumer, const char *id,
                   int *fresh, sl_err *why)
{
    return t.pg ? sl_inbox_pg(native, with, consumer, id, fresh, why)
                : sl_inbox_sqlite(native, with, consumer, id, fresh, why);
}

static int fresh(void *native, const char *consumer, const char *id)
{
    int is = -1;
    if (inbox(native, conf, consumer, id, &is, &err) != SL_OK)
        fail_msg("%s", err.text);
    return is;
}

static void each_message_is_new_once(void **state)
{
    (void)state;
    void *c = connect_caller();
    caller_does(c, "BEGIN");
    assert_int_equal(fresh(c, "billing", "1"), 1);
    assert_int_equal(fresh(c, "billing", "1"), 0);
    assert_int_equal(fresh(c, "billing", "2"), 1);
    assert_int_equal(fresh(c, "mails", "1"), 1);
    caller_does(c, "COMMIT");
    caller_does(c, "BEGIN");
    assert_int_equal(fresh(c, "billing", "1"), 0);
    assert_int_equal(fresh(c, "Billing", "1"), 1);
    assert_int_equal(fresh(c, "billing", "01"), 1);
    caller_does(c, "COMMIT");
    close_caller(c);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_inbox"), 5);
    assert_int_equal(
        testdb_int(&t, testdb_or(&t,
                                 "SELECT count(*) FROM sluice_inbox WHERE seen_at BETWEEN "
                                 "now() - interval '1 hour' AND now()",
                                 "SELECT count(*) FROM sluice_inbox WHERE seen_at BETWEEN "
                                 "datetime('now', '-1 hour') AND datetime('now', '1 minute')")),
        5);
}

static void what_is_rolled_back_is_new_again(void **state)
{
    (void)state;
    void *c = connect_caller();
    caller_does(c, "BEGIN");
    assert_int_equal(fresh(c, "billing", "1"), 1);
    caller_does(c, "ROLLBACK");
    caller_does(c, "BEGIN");
    assert_int_equal(fresh(c, "billing", "1"), 1);
    caller_does(c, "COMMIT");
    close_caller(c);
}

/* A note that is committed before the work is done would lose the message. */
static void without_a_transaction_it_is_refused(void **state)
{
    (void)state;
    int is = -1;
    void *c = connect_caller();
    assert_int_equal(inbox(c, conf, "billing", "1", &is, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "no transaction is open\nhint: "));
    assert_int_equal(is, 0);
    close_caller(c);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_inbox"), 0);
}

static void wrong_texts_are_refused(void **state)
{
    (void)state;
    char longer[514] = { 0 };
    memset(longer, 'x', 513);
    const struct {
        const char *consumer, *id, *text;
    } rows[] = {
        { NULL, "1", "the consumer is missing" },
        { "", "1", "the consumer is missing" },
        { "c", NULL, "the message id is missing" },
        { "c", "", "the message id is missing" },
        { longer, "1", "the consumer has 513 bytes, 512 are allowed" },
        { "c", longer, "the message id has 513 bytes" },
        { "\xff", "1", "the consumer is not UTF-8" },
        { "c", "\xc3", "the message id is not UTF-8" },
    };
    void *c = connect_caller();
    caller_does(c, "BEGIN");
    for (size_t i = 0; i < COUNT(rows); i++) {
        int is = -1;
        assert_int_equal(inbox(c, conf, rows[i].consumer, rows[i].id, &is, &err), SL_REFUSED);
        assert_memory_equal(err.text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(is, 0);
    }
    assert_int_equal(fresh(c, longer + 1, longer + 1), 1); /* 512 are */
    caller_does(c, "ROLLBACK");
    close_caller(c);
}

static void a_missing_table_is_told(void **state)
{
    (void)state;
    int is;
    void *c = connect_caller();
    caller_does(c, "BEGIN");
    assert_int_equal(inbox(c, NULL, "billing", "1", &is, &err), SL_OPERATOR); /* inbox_seen */
    caller_does(c, "ROLLBACK");
    assert_int_equal(sl_conf_set(conf, "inbox_table", "no name", &err), SL_OK);
    assert_int_equal(inbox(c, conf, "billing", "1", &is, &err), SL_REFUSED);
    close_caller(c);
}

static void it_is_made_once_and_nothing_else_passes_for_it(void **state)
{
    (void)state;
    bool created = true;
    assert_int_equal(sl_schema_inbox(t.eye, &t.names, &created, &err), SL_OK);
    assert_false(created);
    testdb_exec(&t, "DROP TABLE sluice_inbox");
    testdb_exec(&t, "CREATE TABLE sluice_inbox (consumer text, id text)");
    assert_int_equal(sl_schema_inbox(t.eye, &t.names, &created, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "it is no inbox: it has no column 'message_id'\nhint: "));
}

/* ---- Several at once ---- */

enum { RECEIVERS = 6, MESSAGES = 60 };

typedef struct receiver {
    pthread_t thread;
    int number;
    int handled; /* of which it committed the work */
    bool failed;
} receiver;

static bool handle(receiver *r, void *c, int message)
{
    sl_err why = { 0 };
    char id[16], work[100];
    int is = 0;
    snprintf(id, sizeof id, "%d", message);
    snprintf(work, sizeof work, "INSERT INTO sluice_inbox_work VALUES (%d)", message);
    if (!caller_tries(c, testdb_or(&t, "BEGIN", "BEGIN IMMEDIATE")) ||
        inbox(c, conf, "billing", id, &is, &why) != SL_OK || (is && !caller_tries(c, work)))
        return false;
    /* Some crash before their commit: the message is not handled, and comes again. */
    bool crash = (message + r->number) % 5 == 0 && is;
    r->handled += is && !crash;
    return caller_tries(c, crash ? "ROLLBACK" : "COMMIT");
}

static void *receive(void *arg)
{
    receiver *r = arg;
    void *c = connect_caller();
    for (int round = 0; round < 2; round++)
        for (int m = 0; m < MESSAGES && !r->failed; m++)
            r->failed = !handle(r, c, m);
    close_caller(c);
    return NULL;
}

/* Each message goes to all of them, twice; some roll back. The work of each is done once. */
static void several_receivers_of_the_same_messages(void **state)
{
    (void)state;
    receiver all[RECEIVERS] = { 0 };
    int handled = 0;
    testdb_exec(&t, "CREATE TABLE sluice_inbox_work (message int)");
    for (int i = 0; i < RECEIVERS; i++) {
        all[i].number = i;
        assert_int_equal(pthread_create(&all[i].thread, NULL, receive, &all[i]), 0);
    }
    for (int i = 0; i < RECEIVERS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_false(all[i].failed);
        handled += all[i].handled;
    }
    int64_t done = testdb_int(&t, "SELECT count(*) FROM sluice_inbox_work");
    int64_t different = testdb_int(&t, "SELECT count(DISTINCT message) FROM sluice_inbox_work");
    assert_int_equal(handled, MESSAGES);
    assert_int_equal(done, MESSAGES);
    assert_int_equal(different, MESSAGES);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_inbox"), MESSAGES);
}

/* ---- PostgreSQL's own ---- */

static void insert_is_all_the_role_needs(void **state)
{
    (void)state;
    char role[64], sql[512];
    if (!t.pg)
        return;
    snprintf(role, sizeof role, "receiver_%ld", (long)getpid());
    snprintf(
        sql, sizeof sql,
        "CREATE ROLE %s; GRANT USAGE ON SCHEMA %s TO %s; GRANT INSERT ON sluice_inbox TO %s",
        role, t.names.schema, role, role);
    testdb_exec(&t, sql);
    void *c = connect_caller();
    snprintf(sql, sizeof sql, "SET ROLE %s", role);
    caller_does(c, sql);
    caller_does(c, "BEGIN");
    int first = fresh(c, "billing", "1");
    int second = fresh(c, "billing", "1");
    caller_does(c, "COMMIT");
    close_caller(c);
    snprintf(sql, sizeof sql, "DROP OWNED BY %s; DROP ROLE %s", role, role);
    testdb_exec(&t, sql);
    assert_int_equal(first, 1);
    assert_int_equal(second, 0);
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_message_is_new_once),
        TEST(what_is_rolled_back_is_new_again),
        TEST(without_a_transaction_it_is_refused),
        TEST(wrong_texts_are_refused),
        TEST(a_missing_table_is_told),
        TEST(it_is_made_once_and_nothing_else_passes_for_it),
        TEST(several_receivers_of_the_same_messages),
        TEST(insert_is_all_the_role_needs),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
