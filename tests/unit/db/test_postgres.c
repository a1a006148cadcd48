/* SPDX-License-Identifier: Apache-2.0 */
/* What is PostgreSQL's own; what all databases do is in tests/contract/test_databases.c. */
#include "support/testdb.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

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

static void reopen(const sl_dsn *dsn)
{
    sl_db_close(db);
    db = testdb_open_as(dsn);
}

/* Runs a text of its own as a statement; each slot may hold one text per connection. */
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

static sl_rc run(const char *name)
{
    return sl_db_run1(db, name, NULL, NULL, NULL, NULL, &err);
}

/* ---- Only looking ---- */

/* What looks may go through a pooler: it leaves nothing behind on the session. */
static void a_look_leaves_nothing_behind(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.look = true;
    reopen(&dsn);
    for (int again = 0; again < 2; again++) {
        int64_t sums[2] = { 0, 0 };
        sl_stmt one = testdb_stmt(db, 0, "SELECT 1::bigint", 1, SL_T_INT8);
        sl_stmt two = testdb_stmt(db, 1, "SELECT 2::bigint", 1, SL_T_INT8);
        sl_call calls[] = { { .stmt = &one, .row = testdb_row_int, .ctx = &sums[0] },
                            { .stmt = &two, .row = testdb_row_int, .ctx = &sums[1] },
                            { .stmt = &one, .row = testdb_row_int, .ctx = &sums[0] } };
        assert_int_equal(db->ops->run(db, calls, COUNT(calls), &err), SL_OK);
        assert_int_equal(sums[0], 1);
        assert_int_equal(sums[1], 2);
    }
    assert_int_equal(int_of(2, "SELECT count(*) FROM pg_prepared_statements"), 0);
    assert_int_equal(int_of(3, "SELECT count(*) FROM pg_settings WHERE source = 'session'"), 0);
}

/* ---- Errors ---- */

#define RAISE(state) "DO $$ BEGIN RAISE EXCEPTION 'oh' USING ERRCODE = '" state "'; END $$"

static const struct {
    const char *state;
    sl_rc rc;
    const char *before; /* NULL, or a script */
    const char *sql;
    const char *after;
} states[] = {
    { "22012", SL_REFUSED, NULL, "SELECT 1 / 0", NULL },
    { "22P02", SL_REFUSED, NULL, "SELECT 'a'::int8", NULL },
    { "22021", SL_REFUSED, NULL, "SELECT convert_from('\\xff', 'UTF8')", NULL },
    { "23502", SL_REFUSED, NULL, "INSERT INTO sluice_outbox (payload) VALUES ('')", NULL },
    { "23505", SL_REFUSED, NULL, "INSERT INTO sluice_outbox_meta VALUES ('lanes', '')", NULL },
    { "23514", SL_REFUSED, NULL, "INSERT INTO sluice_outbox (topic, payload) VALUES ('', '')",
      NULL },
    { "54000", SL_REFUSED, NULL, RAISE("54000"), NULL },
    { "42P01", SL_OPERATOR, NULL, "SELECT 1 FROM nowhere", NULL },
    { "42703", SL_OPERATOR, NULL, "SELECT hope FROM sluice_outbox", NULL },
    { "42601", SL_OPERATOR, NULL, "SELEC 1", NULL },
    { "42501", SL_OPERATOR, "SET ROLE pg_monitor", "DELETE FROM sluice_outbox", "RESET ROLE" },
    { "0A000", SL_AGAIN, NULL, RAISE("0A000"), NULL },
    { "XX000", SL_OPERATOR, NULL, RAISE("XX000"), NULL },
    { "25006", SL_AGAIN, "SET default_transaction_read_only = on", "DELETE FROM sluice_outbox",
      "RESET default_transaction_read_only" },
    { "57014", SL_AGAIN, "BEGIN; SET LOCAL statement_timeout = '50ms'", "SELECT pg_sleep(60)",
      NULL }, /* RESET might take as long */
    { "40001", SL_AGAIN, NULL, RAISE("40001"), NULL },
    { "40P01", SL_AGAIN, NULL, RAISE("40P01"), NULL },
    { "53100", SL_AGAIN, NULL, RAISE("53100"), NULL },
    { "53200", SL_AGAIN, NULL, RAISE("53200"), NULL },
    { "53300", SL_AGAIN, NULL, RAISE("53300"), NULL },
    { "55P03", SL_AGAIN, NULL, RAISE("55P03"), NULL },
    { "57P03", SL_AGAIN, NULL, RAISE("57P03"), NULL },
    { "58030", SL_AGAIN, NULL, RAISE("58030"), NULL },
    { "08006", SL_AGAIN, NULL, RAISE("08006"), NULL },
};

static void errors_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(states); i++) {
        char want[32];
        snprintf(want, sizeof want, "(SQLSTATE %s)", states[i].state);
        if (states[i].before)
            testdb_script(db, &t.names, states[i].before);
        sl_rc rc = run_text(0, states[i].sql);
        if (rc != states[i].rc || !strstr(err.text, want))
            fail_msg("%s: %s: %s", states[i].sql, sl_rc_name(rc), err.text);
        assert_memory_equal(err.text, "postgres: ", 10);
        if (states[i].after)
            testdb_script(db, &t.names, states[i].after);
        assert_int_equal(int_of(1, "SELECT 42::bigint"), 42); /* still usable */
        sl_dsn dsn = testdb_dsn(&t);
        reopen(&dsn); /* a text may have been prepared: each needs a session of its own */
    }
}

static void errors_say_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(run_text(0, "SELECT 1 FROM nowhere"), SL_OPERATOR);
    assert_non_null(
        strstr(err.text, "\nhint: create or migrate the tables with 'sluice init'"));
    testdb_script(db, &t.names, "SET ROLE pg_monitor");
    assert_int_equal(run_text(1, "DELETE FROM sluice_outbox"), SL_OPERATOR);
    assert_non_null(strstr(err.text, "\nhint: grant the role what it needs"));
}

/* The server's DETAIL holds the row, and with it what nobody may log. */
static void errors_hold_no_payload(void **state)
{
    (void)state;
    assert_int_equal(run_text(0, "INSERT INTO sluice_outbox (topic, payload, headers) VALUES "
                                 "('', 'hunter2', '{\"a\":\"hunter2\"}')"),
                     SL_REFUSED);
    assert_null(strstr(err.text, "hunter2"));
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, payload, idempotency_key) VALUES "
                    "('x', '', 'hunter2'), ('x', '', 'other')");
    assert_int_equal(run_text(1, "UPDATE sluice_outbox SET idempotency_key = 'hunter2'"),
                     SL_REFUSED);
    assert_null(strstr(err.text, "hunter2"));
}

static void a_lock_that_others_hold_is_waited_for(void **state)
{
    (void)state;
    testdb_exec(&t, "BEGIN; LOCK TABLE sluice_outbox");
    testdb_script(db, &t.names, "SET lock_timeout = '50ms'");
    assert_int_equal(run_text(0, "DELETE FROM sluice_outbox"), SL_AGAIN);
    assert_non_null(strstr(err.text, "55P03"));
    testdb_exec(&t, "ROLLBACK");
    assert_int_equal(run_text(1, "DELETE FROM sluice_outbox"), SL_OK);
}

static void a_serialisation_failure_passes(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    testdb_script(db, &t.names,
                  "BEGIN ISOLATION LEVEL REPEATABLE READ; "
                  "SELECT count(*) FROM sluice_outbox");
    testdb_exec(&t, "UPDATE sluice_outbox SET epoch = 5");
    assert_int_equal(run_text(0, "UPDATE sluice_outbox SET epoch = 6"), SL_AGAIN);
    assert_non_null(strstr(err.text, "40001"));
    assert_int_equal(testdb_int(&t, "SELECT epoch FROM sluice_outbox"), 5);
}

static void a_session_that_is_ended_is_a_lost_connection(void **state)
{
    (void)state;
    assert_int_equal(run_text(0, "SELECT pg_terminate_backend(pg_backend_pid())"), SL_AGAIN);
    assert_int_equal(run("tx/begin"), SL_AGAIN); /* and stays one */
    assert_non_null(strstr(err.text, "connection lost"));
    db->ops->rollback(db);
    assert_int_equal(db->ops->script(db, "SELECT 1", &err), SL_AGAIN);
}

/* Has the server closed a connection of this process? */
static bool one_is_closed(void)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in in;
        socklen_t len = sizeof in;
        struct pollfd p = { .fd = fd, .events = POLLRDHUP };
        if (getsockname(fd, (struct sockaddr *)&in, &len) == 0 && in.sin_family == AF_INET &&
            poll(&p, 1, 0) > 0 && p.revents & POLLRDHUP)
            return true;
    }
    return false;
}

/* At the first look, although the server says why before it hangs up. */
static void a_session_that_is_ended_is_not_alive(void **state)
{
    (void)state;
    char text[100];
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    snprintf(text, sizeof text, "SELECT pg_terminate_backend(%lld)",
             (long long)int_of(0, "SELECT pg_backend_pid()::bigint"));
    assert_true(db->ops->alive(db));
    testdb_exec(&t, text);
    while (!one_is_closed())
        assert_true(sl_now_ns() < until_ns);
    assert_false(db->ops->alive(db));
    assert_false(
        db->ops->alive(db)); /* libpq has closed its side, too: there is no socket to ask */
}

static void a_transaction_that_idles_is_ended(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.idle_in_tx_ns = 100 * SL_MS;
    reopen(&dsn);
    assert_int_equal(run("tx/begin"), SL_OK);
    usleep(400 * 1000);
    assert_int_equal(run("tx/commit"), SL_AGAIN);
}

/* With these settings the best plan is the same for all values; that of a command depends on what it looks for. */
static void a_session_that_lasts_plans_once(void **state)
{
    (void)state;
    static const char sql[] =
        "SELECT (current_setting('plan_cache_mode') = 'force_generic_plan')::int::bigint";
    sl_dsn dsn = testdb_dsn(&t);
    for (int steady = 0; steady < 2; steady++) {
        dsn.steady = steady;
        reopen(&dsn);
        assert_int_equal(int_of(0, sql), steady);
    }
}

/* ---- Pipelines ---- */

static void a_failure_in_the_middle_ends_all(void **state)
{
    (void)state;
    sl_stmt good = testdb_stmt(
        db, 0, "INSERT INTO sluice_outbox (topic, payload) VALUES ('x', '')", 0, SL_T_INT8);
    sl_stmt bad = testdb_stmt(
        db, 1, "INSERT INTO sluice_outbox (topic, payload) VALUES ('', '')", 0, SL_T_INT8);
    sl_stmt worse = testdb_stmt(db, 2, "SELECT 1 FROM nowhere", 0, SL_T_INT8);
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = &good },
                        { .stmt = &bad },
                        { .stmt = &worse },
                        { .stmt = &good },
                        { .stmt = sl_db_stmt(db, "tx/commit") } };
    for (int round = 0; round < 3; round++) { /* also when all is prepared */
        assert_int_equal(db->ops->run(db, calls, COUNT(calls), &err), SL_REFUSED);
        assert_non_null(strstr(err.text, "23514")); /* the first failure is told */
        assert_int_equal(testdb_count(&t), 0);
    }
    /* Not in the old transaction: this one is committed. */
    sl_call again[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = &good },
                        { .stmt = sl_db_stmt(db, "tx/commit") } };
    assert_int_equal(db->ops->run(db, again, COUNT(again), &err), SL_OK);
    assert_int_equal(testdb_count(&t), 1);
}

/* A statement that could not be prepared, because the table was missing, can be later. */
static void a_failed_preparation_is_tried_again(void **state)
{
    (void)state;
    testdb_exec(&t, "ALTER TABLE sluice_outbox_meta RENAME TO elsewhere");
    assert_int_equal(run("meta/all"), SL_OPERATOR);
    assert_int_equal(run("meta/all"), SL_OPERATOR);
    char sql[128];
    snprintf(sql, sizeof sql, "ALTER TABLE %s.elsewhere RENAME TO outbox_meta", t.names.schema);
    testdb_script(db, &t.names, sql);
    assert_int_equal(run("meta/all"), SL_OK);
}

static void statements_are_prepared_once(void **state)
{
    (void)state;
    char sql[160];
    snprintf(sql, sizeof sql,
             "SELECT sum(generic_plans + custom_plans)::bigint FROM pg_prepared_statements "
             "WHERE name = 'sluice_%d'",
             sl_db_stmt(db, "status/counts")->index);
    for (int i = 0; i < 7; i++)
        assert_int_equal(run("status/counts"), SL_OK);
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "status/counts") },
                        { .stmt = sl_db_stmt(db, "status/workers") },
                        { .stmt = sl_db_stmt(db, "status/counts") },
                        { .stmt = sl_db_stmt(db, "status/workers") } };
    assert_int_equal(db->ops->run(db, calls, COUNT(calls), &err), SL_OK);
    assert_int_equal(int_of(0, sql), 9);
}

/* Also the first time, when each of them is prepared before. */
static void as_many_as_are_allowed_run_together(void **state)
{
    (void)state;
    sl_call calls[SL_RUN_MAX];
    static const char *const names[] = { "status/counts", "status/workers" };
    for (size_t i = 0; i < COUNT(calls); i++)
        calls[i] = (sl_call){ .stmt = sl_db_stmt(db, names[i % COUNT(names)]) };
    for (int round = 0; round < 2; round++)
        assert_int_equal(db->ops->run(db, calls, COUNT(calls), &err), SL_OK);
}

/* ---- Time ---- */

/* A server that is slow may need more than one try for that. */
static void reopen_soon(const sl_dsn *dsn)
{
    int64_t until_ns = sl_now_ns() + 60 * SL_SEC;
    sl_db_close(db);
    db = NULL;
    while (sl_db_open(&db, dsn, &err) != SL_OK)
        if (sl_now_ns() > until_ns)
            fail_msg("%s", err.text);
}

static void a_statement_without_an_answer_is_given_up(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.statement_ns = 300 * SL_MS;
    reopen_soon(&dsn);
    int64_t before = sl_now_ns();
    assert_int_equal(run_text(0, "SELECT pg_sleep(60)"), SL_AGAIN);
    assert_string_equal(err.text, "postgres: no answer within the time-out");
    assert_true(sl_now_ns() - before < 30 * SL_SEC);
    reopen_soon(&dsn);
    /* A migration may take longer. */
    assert_int_equal(db->ops->script(db, "SELECT pg_sleep(0.5)", &err), SL_OK);
}

static void a_stop_ends_the_wait(void **state)
{
    (void)state;
    int fd = eventfd(0, EFD_CLOEXEC);
    sl_dsn dsn = testdb_dsn(&t);
    dsn.wake_fd = fd;
    reopen(&dsn);
    assert_int_equal(int_of(0, "SELECT 42::bigint"), 42);
    assert_int_equal(write(fd, &(uint64_t){ 1 }, 8), 8);
    int64_t before = sl_now_ns();
    assert_int_equal(run_text(1, "SELECT pg_sleep(60)"), SL_STOPPED);
    assert_true(sl_now_ns() - before < 30 * SL_SEC);
    close(fd);
}

/* Accepts, and says nothing. */
static int silent_port(int *fd)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(*fd, 5), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &n), 0);
    return ntohs(at.sin_port);
}

static void a_silent_server_is_given_up(void **state)
{
    (void)state;
    int fd;
    char url[64];
    snprintf(url, sizeof url, "postgresql://x@127.0.0.1:%d/x", silent_port(&fd));
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = url;
    dsn.connect_ns = 300 * SL_MS;
    sl_db *other = NULL;
    int64_t before = sl_now_ns();
    assert_int_equal(sl_db_open(&other, &dsn, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "does not answer (host 127.0.0.1"));
    assert_true(sl_now_ns() - before < 10 * SL_SEC);

    dsn.connect_ns = 60 * SL_SEC;
    dsn.wake_fd = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(sl_db_open(&other, &dsn, &err), SL_STOPPED);
    assert_true(sl_now_ns() - before < 20 * SL_SEC);
    assert_null(other);
    close(dsn.wake_fd);
    close(fd);
}

/* ---- Connecting ---- */

static sl_rc try_open(const char *url)
{
    sl_db *other = NULL;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = url;
    err = (sl_err){ 0 };
    sl_rc rc = sl_db_open(&other, &dsn, &err);
    assert_true((rc == SL_OK) == (other != NULL));
    sl_db_close(other);
    return rc;
}

static void what_cannot_be_reached_is_told(void **state)
{
    (void)state;
    assert_int_equal(try_open("postgresql://x@127.0.0.1:1/x"), SL_AGAIN);
    assert_non_null(strstr(err.text, "postgres: cannot connect: "));
    assert_int_equal(try_open("host=/nowhere dbname=x"), SL_AGAIN);
    char url[600];
    snprintf(url, sizeof url, "%s_not_there", t.url);
    assert_int_equal(try_open(url), SL_AGAIN);
    assert_non_null(strstr(err.text, "does not exist"));
}

static void a_string_that_cannot_be_read_is_not_shown(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "host=h hunter2",
        "password='hunter2",
        "hope=hunter2",
        "postgresql://u:hunter2@[::1/db",
        "postgresql://u:hunter2%zz@h/db",
        "postgresql://h/db?password",
        "postgresql:host=hunter2",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        sl_rc rc = try_open(bad[i]);
        if (rc != SL_OPERATOR || strstr(err.text, "hunter2"))
            fail_msg("%s: %s: %s", bad[i], sl_rc_name(rc), err.text);
    }
}

/* "postgresql:" alone means the PG* variables; a colon at the end of a password does not. */
static void a_colon_at_the_end_is_part_of_the_string(void **state)
{
    (void)state;
    assert_int_equal(try_open("host=/nowhere dbname=x password=secret:"), SL_AGAIN);
    assert_non_null(strstr(err.text, "/nowhere"));
    assert_int_equal(try_open("postgresql:///x?host=/nowhere&password=a:"), SL_AGAIN);
    assert_non_null(strstr(err.text, "/nowhere"));
    setenv("PGHOST", "/elsewhere", 1);
    assert_int_equal(try_open("postgresql:"), SL_AGAIN);
    assert_non_null(strstr(err.text, "/elsewhere"));
    unsetenv("PGHOST");
}

/* The URL with other hosts before the server's own, or other parameters behind it. */
static const char *url_with(const char *hosts, const char *parameters)
{
    static char url[700];
    const char *at = strchr(t.url, '@') + 1;
    snprintf(url, sizeof url, "%.*s%s%s%s", (int)(at - t.url), t.url, hosts, at, parameters);
    return url;
}

static void of_many_hosts_one_is_enough(void **state)
{
    (void)state;
    if (try_open(url_with("127.0.0.1:1,", "")) != SL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(try_open("postgresql://x@127.0.0.1:1,127.0.0.1:2/x"), SL_AGAIN);
    assert_non_null(strstr(err.text, "postgres: cannot connect"));
}

static void the_users_own_timeout_goes_first(void **state)
{
    (void)state;
    int fd;
    char url[100];
    snprintf(url, sizeof url, "postgresql://x@127.0.0.1:%d/x?connect_timeout=2",
             silent_port(&fd));
    sl_dsn dsn = testdb_dsn(&t);
    dsn.url = url;
    dsn.connect_ns = 3600 * SL_SEC;
    sl_db *other = NULL;
    int64_t before = sl_now_ns();
    assert_int_equal(sl_db_open(&other, &dsn, &err), SL_AGAIN);
    assert_true(sl_now_ns() - before >= 1 * SL_SEC);
    assert_true(sl_now_ns() - before < 20 * SL_SEC);
    close(fd);
}

static void another_encoding_is_refused(void **state)
{
    (void)state;
    char sql[160], name[40], url[600];
    snprintf(name, sizeof name, "latin_%ld", (long)getpid());
    snprintf(sql, sizeof sql,
             "CREATE DATABASE %s ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", name);
    testdb_exec(&t, sql);
    snprintf(url, sizeof url, "%.*s/%s", (int)(strrchr(t.url, '/') - t.url), t.url, name);
    sl_rc rc = try_open(url);
    snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", name);
    testdb_exec(&t, sql);
    assert_int_equal(rc, SL_OPERATOR);
    assert_non_null(strstr(err.text, "the database's encoding is LATIN1; Sluice needs UTF8"));
}

static void the_session_is_as_asked(void **state)
{
    (void)state;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.app = "node 7";
    dsn.idle_in_tx_ns = 1500 * SL_MS;
    reopen(&dsn);
    assert_int_equal(int_of(0, "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                               "'node 7' AND pid = pg_backend_pid()"),
                     1);
    assert_int_equal(int_of(1, "SELECT setting::bigint FROM pg_settings "
                               "WHERE name = 'idle_in_transaction_session_timeout'"),
                     1500);
    assert_int_equal(int_of(2,
                            "SELECT count(*) FROM pg_settings WHERE name = 'client_encoding' "
                            "AND setting = 'UTF8'"),
                     1);
}

/* The library prints nothing; libpq would. */
static void notices_are_not_printed(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    int file = mkstemp(path);
    int real = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    sl_rc rc = db->ops->script(db, "DO $$ BEGIN RAISE WARNING 'oh'; END $$", &err);
    dup2(real, STDERR_FILENO);
    assert_int_equal(rc, SL_OK);
    assert_int_equal(lseek(file, 0, SEEK_END), 0);
    close(real);
    close(file);
    unlink(path);
}

/* ---- Values ---- */

static sl_rc check_row(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)e;
    ++*(int *)ctx;
    assert_int_equal(cols[0].i, -7);
    assert_int_equal(cols[1].i, 1772600767000008);
    assert_int_equal(cols[2].i, 1);
    assert_true(sl_str_eq(cols[3].s, SL_STR("h\xc3\xa9")));
    assert_true(sl_str_eq(cols[4].s, SL_STR("\0\xff\n")));
    assert_true(sl_str_eq(cols[5].s, SL_STR("{\"a\": 1}")));
    assert_true(sl_str_eq(cols[6].s, SL_STR("")));
    assert_true(cols[7].null);
    return SL_OK;
}

static void results_are_binary(void **state)
{
    (void)state;
    int rows = 0;
    sl_stmt s = testdb_stmt(db, 0,
                            "SELECT (-7)::smallint, timestamptz '2026-03-04 "
                            "05:06:07.000008+00', true, 'h\xc3\xa9', "
                            "'\\x00ff0a'::bytea, '{\"a\":1}'::jsonb, ''::bytea, NULL::text "
                            "FROM generate_series(1, 3)",
                            8, SL_T_INT8);
    static const sl_type types[] = { SL_T_INT8,  SL_T_TIME, SL_T_BOOL,  SL_T_TEXT,
                                     SL_T_BYTES, SL_T_TEXT, SL_T_BYTES, SL_T_TEXT };
    memcpy(s.cols, types, sizeof types);
    sl_call call = { .stmt = &s, .row = check_row, .ctx = &rows };
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK);
    assert_int_equal(rows, 3);
    assert_int_equal(call.affected, 3);
}

static void a_shape_that_is_not_as_declared_is_told(void **state)
{
    (void)state;
    int64_t got;
    sl_stmt two = testdb_stmt(db, 0, "SELECT 1, 2", 1, SL_T_INT8);
    sl_stmt numeric = testdb_stmt(db, 1, "SELECT 1.5 AS price", 1, SL_T_INT8);
    sl_call call = { .stmt = &two, .row = testdb_row_int, .ctx = &got };
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "test gives 2 columns, not 1"));
    call.stmt = &numeric;
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "column 'price' has a type (oid 1700)"));
    /* Also where there are no rows: as when a claim is rehearsed. */
    sl_stmt empty = testdb_stmt(db, 2, "SELECT 1.5 AS price LIMIT 0", 1, SL_T_INT8);
    call.stmt = &empty;
    assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OPERATOR);
}

static sl_rc check_huge(void *ctx, const sl_val *cols, sl_err *e)
{
    (void)e;
    const sl_str *want = ctx;
    assert_int_equal(cols[0].s.n, want->n);
    assert_memory_equal(cols[0].s.p, want->p, want->n);
    return SL_OK;
}

/* More than any socket buffer, in both directions. */
static void huge_values_go_there_and_back(void **state)
{
    (void)state;
    const size_t n = 50U << 20;
    char *p = sl_alloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * 2654435761U >> 13);
    sl_str huge = { p, n };
    sl_stmt s = testdb_stmt(db, 0, "SELECT $1", 1, SL_T_BYTES);
    s.nparams = 1;
    s.params[0] = SL_T_BYTES;
    sl_val in[] = { { .type = SL_T_BYTES, .s = huge } };
    sl_call call = { .stmt = &s, .in = in, .row = check_huge, .ctx = &huge };
    if (db->ops->run(db, &call, 1, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(call.affected, 1);
    free(p);
}

int main(void)
{
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_look_leaves_nothing_behind),
        TEST(errors_are_sorted),
        TEST(errors_say_what_to_do),
        TEST(errors_hold_no_payload),
        TEST(a_lock_that_others_hold_is_waited_for),
        TEST(a_serialisation_failure_passes),
        TEST(a_session_that_is_ended_is_a_lost_connection),
        TEST(a_session_that_is_ended_is_not_alive),
        TEST(a_transaction_that_idles_is_ended),
        TEST(a_session_that_lasts_plans_once),
        TEST(a_failure_in_the_middle_ends_all),
        TEST(a_failed_preparation_is_tried_again),
        TEST(statements_are_prepared_once),
        TEST(as_many_as_are_allowed_run_together),
        TEST(a_statement_without_an_answer_is_given_up),
        TEST(a_stop_ends_the_wait),
        TEST(a_silent_server_is_given_up),
        TEST(what_cannot_be_reached_is_told),
        TEST(a_string_that_cannot_be_read_is_not_shown),
        TEST(a_colon_at_the_end_is_part_of_the_string),
        TEST(of_many_hosts_one_is_enough),
        TEST(the_users_own_timeout_goes_first),
        TEST(another_encoding_is_refused),
        TEST(the_session_is_as_asked),
        TEST(notices_are_not_printed),
        TEST(results_are_binary),
        TEST(a_shape_that_is_not_as_declared_is_told),
        TEST(huge_values_go_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
