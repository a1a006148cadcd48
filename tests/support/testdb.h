/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database for one test: a SQLite file in a folder of its own, or a schema of its own on the
 * server that SL_TEST_PG names. All goes through db/db.h, so that the tests also compile in a
 * build that leaves one of the databases out.
 *
 * A test asks what is in the tables through `eye`, a connection of its own, which therefore
 * sees what is committed and nothing else. In all SQL the words of sql/ stand for the real
 * names.
 */
#ifndef TESTS_SUPPORT_TESTDB_H
#define TESTS_SUPPORT_TESTDB_H

#include "core/clock.h"
#include "core/mem.h"
#include "db/db.h"
#include "db/schema.h"

#include "unit/unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { TESTDB_SLOTS = 8, TESTDB_SKIPPED = 77 };

/* Tables of PostgreSQL are made of layout `rotated`. */
static bool testdb_rotated;

typedef struct testdb {
    bool pg;
    char url[512];
    char folder[64]; /* of a SQLite file */
    char table[80];  /* as in the settings: "t4711_1.outbox" */
    char inbox[80];  /* the same of a receiver, which testdb_init does not make */
    sl_names names;
    sl_db *eye;
    char *asked[TESTDB_SLOTS]; /* texts that the eye has prepared */
    size_t next;
} testdb;

/* In this build, and reachable. */
static inline bool testdb_has(const char *dialect)
{
    return sl_db_named(dialect) && (strcmp(dialect, "postgres") != 0 || getenv("SL_TEST_PG"));
}

/* For tests that need some database, and care not which. NULL: there is none, exit with 77. */
static inline const char *testdb_any(void)
{
    return testdb_has("sqlite") ? "sqlite" : testdb_has("postgres") ? "postgres" : NULL;
}

/* Runs a group of tests on each database of this build. What cannot be reached makes the whole
 * test count as skipped, unless something failed. */
static inline int testdb_each(int (*group)(const char *dialect))
{
    int failed = 0;
    bool missing = false;
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        if (testdb_has((*d)->name))
            failed += group((*d)->name);
        else
            missing = true;
    return failed ? failed : missing ? TESTDB_SKIPPED : 0;
}

/* ---- Statements that are not in sql/ ---- */

/*
 * Drivers keep prepared statements by their index. Those of the other dialects are never used
 * on this connection, so that their places are free for statements of a test: the n-th of them.
 */
static inline int testdb_slot(const sl_db *db, int n)
{
    for (int i = 0; i < sl_stmts_count; i++)
        if (strcmp(sl_stmts[i].dialect, db->ops->name) != 0 && n-- == 0)
            return i;
    abort();
}

/* A statement without parameters; one column of the type, or none if ncols is 0. */
static inline sl_stmt testdb_stmt(const sl_db *db, int slot, const char *text, int ncols,
                                  sl_type type)
{
    return (sl_stmt){ .dialect = db->ops->name,
                      .name = "test",
                      .text = text,
                      .index = testdb_slot(db, slot),
                      .ncols = ncols,
                      .cols = { type } };
}

/* ---- Names ---- */

static inline void testdb_map_fini(sl_opt_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        free(map->names[i]);
        free(map->values[i]);
    }
    free(map->names);
    free(map->values);
    *map = (sl_opt_map){ 0 };
}

/* Every column with something before its name. */
static inline void testdb_map_all(sl_opt_map *map, const char *before)
{
    for (const char *const *c = sl_columns; *c; c++) {
        char theirs[64];
        snprintf(theirs, sizeof theirs, "%s%s", before, *c);
        sl_opt_map_put(map, *c, theirs);
    }
}

/* ---- Making and opening ---- */

static inline sl_dsn testdb_dsn(const testdb *t)
{
    return (sl_dsn){ .url = t->url,
                     .steady = true,
                     .app = "test",
                     .names = &t->names,
                     .connect_ns = 20 * SL_SEC,
                     .statement_ns = 60 * SL_SEC,
                     .create = true,
                     .wake_fd = -1 };
}

static inline sl_db *testdb_open_as(const sl_dsn *dsn)
{
    sl_db *db = NULL;
    sl_err err = { 0 };
    if (sl_db_open(&db, dsn, &err) != SL_OK)
        fail_msg("%s", err.text);
    return db;
}

/* Another connection to the same database. */
static inline sl_db *testdb_open(const testdb *t)
{
    sl_dsn dsn = testdb_dsn(t);
    return testdb_open_as(&dsn);
}

static inline void testdb_script(sl_db *db, const sl_names *names, const char *sql)
{
    sl_buf text = { 0 };
    sl_err err = { 0 };
    sl_names_apply(names, sql, &text);
    sl_rc rc = db->ops->script(db, sl_buf_text(&text), &err);
    sl_buf_fini(&text);
    if (rc != SL_OK)
        fail_msg("%s: %s", sql, err.text);
}

/* An empty database; `columns` may rename columns, or be NULL. */
static inline void testdb_make(testdb *t, const char *dialect, const sl_opt_map *columns)
{
    static int made;
    sl_err err = { 0 };

    *t = (testdb){ .pg = !strcmp(dialect, "postgres") };
    if (t->pg) {
        snprintf(t->url, sizeof t->url, "%s", getenv("SL_TEST_PG"));
        snprintf(t->table, sizeof t->table, "t%ld_%d.outbox", (long)getpid(), ++made);
    } else {
        snprintf(t->folder, sizeof t->folder, "/tmp/sluice-test-XXXXXX");
        assert_non_null(mkdtemp(t->folder));
        snprintf(t->url, sizeof t->url, "sqlite:%s/outbox.db", t->folder);
        snprintf(t->table, sizeof t->table, "outbox");
    }
    if (sl_names_init(&t->names, t->table, columns, &err) != SL_OK)
        fail_msg("%s", err.text);
    t->names.rotated = t->pg && testdb_rotated;
    snprintf(t->inbox, sizeof t->inbox, "%s%sinbox", t->pg ? t->names.schema : "",
             t->pg ? "." : "");
    if (sl_names_inbox(&t->names, t->inbox, &err) != SL_OK)
        fail_msg("%s", err.text);
    t->eye = testdb_open(t);
    if (t->pg) {
        char sql[80];
        snprintf(sql, sizeof sql, "CREATE SCHEMA \"%s\"", t->names.schema);
        testdb_script(t->eye, &t->names, sql);
    }
}

/* The same with the tables of `sluice init` in it. */
static inline void testdb_init(testdb *t, const char *dialect, const sl_opt_map *columns)
{
    sl_schema_done done;
    sl_err err = { 0 };
    testdb_make(t, dialect, columns);
    if (sl_schema_init(t->eye, &t->names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static inline void testdb_drop(testdb *t)
{
    char text[128];
    if (t->pg) {
        snprintf(text, sizeof text, "DROP SCHEMA IF EXISTS \"%s\" CASCADE", t->names.schema);
        testdb_script(t->eye, &t->names, text);
    }
    sl_db_close(t->eye);
    if (!t->pg) {
        snprintf(text, sizeof text, "rm -rf '%s'", t->folder);
        assert_int_equal(system(text), 0);
    }
    for (size_t i = 0; i < TESTDB_SLOTS; i++)
        free(t->asked[i]);
    sl_names_fini(&t->names);
    *t = (testdb){ 0 };
}

/* ---- Looking and changing ---- */

static inline void testdb_exec(testdb *t, const char *sql)
{
    testdb_script(t->eye, &t->names, sql);
}

/* One text for each database. */
static inline const char *testdb_or(const testdb *t, const char *pg, const char *sqlite)
{
    return t->pg ? pg : sqlite;
}

/* The slot in which the eye has prepared this text, or a new one; when all are taken, the eye
 * is opened anew. */
static inline int testdb_asked(testdb *t, const char *sql)
{
    for (size_t i = 0; i < t->next; i++)
        if (!strcmp(t->asked[i], sql))
            return (int)i;
    if (t->next == TESTDB_SLOTS) {
        sl_db_close(t->eye);
        t->eye = testdb_open(t);
        while (t->next > 0)
            free(t->asked[--t->next]);
        memset(t->asked, 0, sizeof t->asked);
    }
    t->asked[t->next] = sl_strdup(sql);
    return (int)t->next++;
}

static inline void testdb_ask(testdb *t, const char *sql, sl_type type, sl_row_fn row,
                              void *ctx)
{
    char key[1024];
    sl_err err = { 0 };
    snprintf(key, sizeof key, "%d %s", (int)type, sql);
    int slot = testdb_asked(t, key);
    sl_stmt s = testdb_stmt(t->eye, slot, sql, 1, type);
    sl_call call = { .stmt = &s, .row = row, .ctx = ctx };
    if (t->eye->ops->run(t->eye, &call, 1, &err) != SL_OK)
        fail_msg("%s: %s", sql, err.text);
}

static inline sl_rc testdb_row_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].null ? INT64_MIN : cols[0].i;
    return SL_OK;
}

/* A bigint; INT64_MIN if it is NULL, or if there is no row. */
static inline int64_t testdb_int(testdb *t, const char *sql)
{
    int64_t got = INT64_MIN;
    testdb_ask(t, sql, SL_T_INT8, testdb_row_int, &got);
    return got;
}

static inline sl_rc testdb_row_text(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_buf *out = ctx;
    if (out->n)
        sl_buf_putc(out, '\n');
    if (cols[0].null)
        sl_buf_puts(out, "NULL");
    else
        sl_buf_put(out, cols[0].s.p, cols[0].s.n);
    return SL_OK;
}

/* All rows of one text column, a line each; good until the next call. */
static inline const char *testdb_text(testdb *t, const char *sql)
{
    static char text[4096];
    sl_buf out = { 0 };
    testdb_ask(t, sql, SL_T_TEXT, testdb_row_text, &out);
    snprintf(text, sizeof text, "%s", sl_buf_text(&out));
    sl_buf_fini(&out);
    return text;
}

#define testdb_expect(t, want, sql) assert_string_equal(testdb_text(t, sql), want)

/* Messages that wait: those that are done and stay (layout rotated) do not. */
static inline int64_t testdb_count(testdb *t)
{
    return testdb_int(t, t->pg ? "SELECT count(*) FROM sluice_outbox o LEFT JOIN "
                                 "sluice_outbox_positions p ON p.lane = o.lane WHERE o.held OR "
                                 "p.floor IS NULL OR o.id >= p.floor"
                               : "SELECT count(*) FROM sluice_outbox");
}

/* The oldest of them. */
static inline int64_t testdb_oldest(testdb *t)
{
    return testdb_int(t, t->pg ? "SELECT min(o.id) FROM sluice_outbox o LEFT JOIN "
                                 "sluice_outbox_positions p ON p.lane = o.lane WHERE o.held OR "
                                 "p.floor IS NULL OR o.id >= p.floor"
                               : "SELECT min(id) FROM sluice_outbox");
}

/* How many keys are leased, by strategy guard. */
static inline int64_t testdb_held_keys(testdb *t)
{
    return testdb_int(
        t,
        testdb_or(
            t, "SELECT coalesce(sum(cardinality(keys)), 0)::bigint FROM sluice_outbox_claims",
            "SELECT count(*) FROM sluice_outbox_claims"));
}

/* How far a time column of a message lies ahead, on the database's clock; INT64_MIN: NULL. */
static inline int64_t testdb_ahead_us(testdb *t, const char *column, int64_t id)
{
    char sql[256];
    if (t->pg)
        snprintf(sql, sizeof sql,
                 "SELECT (extract(EPOCH FROM %s - clock_timestamp()) * 1000000)::bigint "
                 "FROM sluice_outbox WHERE id = %lld",
                 column, (long long)id);
    else
        snprintf(
            sql, sizeof sql,
            "SELECT CAST(round((julianday(%s) - julianday('now')) * 86400000.0) AS INTEGER) "
            "* 1000 FROM sluice_outbox WHERE id = %lld",
            column, (long long)id);
    return testdb_int(t, sql);
}

/* A time, which is an expression or a SELECT in brackets, in microseconds since 1970. */
static inline int64_t testdb_time_us(testdb *t, const char *time)
{
    char sql[512];
    if (t->pg)
        snprintf(sql, sizeof sql, "SELECT (extract(EPOCH FROM %s) * 1000000)::bigint", time);
    else
        snprintf(sql, sizeof sql,
                 "SELECT CAST(round((julianday(%s) - 2440587.5) * 86400000.0) AS INTEGER) * "
                 "1000",
                 time);
    return testdb_int(t, sql);
}

/* Waits until a session waits for a lock in a statement on our tables: tests beside this one have sessions and locks in
 * the same database. False: it never does. */
static inline bool testdb_waits_for_lock(testdb *t)
{
    char sql[256];
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM pg_stat_activity a WHERE a.wait_event_type = 'Lock' AND "
             "strpos(a.query, '\"%s\".') > 0",
             t->names.schema);
    while (testdb_int(t, sql) == 0) {
        if (sl_now_ns() > until_ns)
            return false;
        usleep(1000);
        testdb_exec(t, "SELECT pg_stat_clear_snapshot()"); /* for an eye in a transaction */
    }
    return true;
}

/* Messages with the ids that the table gives them, and payloads of so many bytes. */
static inline void testdb_fill(testdb *t, int count, int payload_bytes)
{
    char sql[512];
    if (t->pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox (topic, payload) SELECT 'orders', "
                 "convert_to(repeat('x', %d), 'UTF8') FROM generate_series(1, %d)",
                 payload_bytes, count);
    else
        snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO sluice_outbox (topic, payload) "
            "SELECT 'orders', CAST(replace(hex(zeroblob(%d)), '00', 'x') AS BLOB) FROM n",
            count, payload_bytes);
    testdb_exec(t, sql);
}

/* Cuts every connection of this process but the eye's: tests beside this one have theirs on the same
 * server. */
static inline void testdb_cut(testdb *t)
{
    char sql[4096] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                     "pg_backend_pid() AND client_port IN (0";
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in in;
        socklen_t len = sizeof in;
        size_t n = strlen(sql);
        if (getsockname(fd, (struct sockaddr *)&in, &len) == 0 && in.sin_family == AF_INET)
            snprintf(sql + n, sizeof sql - n, ", %d", ntohs(in.sin_port));
    }
    snprintf(sql + strlen(sql), sizeof sql - strlen(sql), ")");
    testdb_exec(t, sql);
}

/* Messages of a key, or without one. */
static inline void testdb_push(testdb *t, const char *key, int count)
{
    char sql[512], quoted[128] = "NULL";
    if (key)
        snprintf(quoted, sizeof quoted, "'%s'", key);
    if (t->pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'orders', %s, "
                 "'p' FROM generate_series(1, %d)",
                 quoted, count);
    else
        snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'orders', %s, 'p' "
            "FROM n",
            count, quoted);
    testdb_exec(t, sql);
}

/* Not before so many seconds from now. */
static inline void testdb_schedule(testdb *t, int64_t id, int seconds)
{
    char sql[256];
    if (t->pg)
        snprintf(sql, sizeof sql,
                 "UPDATE sluice_outbox SET available_at = clock_timestamp() + %d * interval '1 "
                 "second' WHERE id = %lld",
                 seconds, (long long)id);
    else
        snprintf(sql, sizeof sql,
                 "UPDATE sluice_outbox SET available_at = datetime('now', '%+d seconds') WHERE "
                 "id = %lld",
                 seconds, (long long)id);
    testdb_exec(t, sql);
}

#endif
