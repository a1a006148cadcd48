/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite alone allows: as ceiling_skip.c, with the statements of sql/sqlite/. A lease is a
 * transaction of its own, and so is the settle that follows it.
 */
#include "bench/ceiling.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { BUSY_MS = 10000 };

typedef struct lite {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *take, *sent;
    int64_t *ids, *epochs;
} lite;

static void check(const lite *l, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        sl_bare_die("sqlite: %s", sqlite3_errmsg(l->db));
}

static void prepare(lite *l, const sl_ceiling *o, const char *name, sqlite3_stmt **out)
{
    char *sql = sl_ceiling_sql(o, name);
    check(l, sqlite3_prepare_v3(l->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL));
    free(sql);
}

static void open_prepared(lite *l, const sl_ceiling *o)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    check(l, sqlite3_open_v2(o->db, &l->db, flags, NULL));
    sqlite3_busy_timeout(l->db, BUSY_MS);
    char *pragmas = sl_ceiling_sql(o, "session/pragmas");
    check(l, sqlite3_exec(l->db, pragmas, NULL, NULL, NULL));
    free(pragmas);
    prepare(l, o, "tx/begin", &l->begin);
    prepare(l, o, "tx/commit", &l->commit);
    prepare(l, o, o->lease ? "skip_locked/lease" : "skip_locked/take", &l->take);
    prepare(l, o, "settle/sent", &l->sent);
    l->ids = calloc((size_t)o->batch, sizeof *l->ids);
    l->epochs = calloc((size_t)o->batch, sizeof *l->epochs);
    if (!l->ids || !l->epochs)
        sl_bare_die("out of memory");
}

static void run(const lite *l, sqlite3_stmt *st)
{
    check(l, sqlite3_step(st));
    check(l, sqlite3_reset(st));
}

/* Reads every column, as anyone who wants to send it must. */
static void read_row(sqlite3_stmt *st)
{
    for (int i = 2; i < sqlite3_column_count(st); i++) {
        (void)sqlite3_column_blob(st, i);
        (void)sqlite3_column_bytes(st, i);
    }
}

static int64_t take(lite *l, const sl_ceiling *o)
{
    int64_t n = 0;
    int code;
    check(l, sqlite3_bind_int64(l->take, 1, o->batch));
    check(l, sqlite3_bind_int64(l->take, 2, SL_CEILING_BYTES));
    if (o->lease) {
        check(l, sqlite3_bind_int64(l->take, 3, SL_CEILING_LEASE_US));
        check(l, sqlite3_bind_text(l->take, 4, "ceiling/1", -1, SQLITE_STATIC));
    }
    while ((code = sqlite3_step(l->take)) == SQLITE_ROW) {
        l->ids[n] = sqlite3_column_int64(l->take, 0);
        l->epochs[n++] = sqlite3_column_int64(l->take, 1);
        read_row(l->take);
    }
    check(l, code);
    check(l, sqlite3_reset(l->take));
    return n;
}

static void settle(const lite *l, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        check(l, sqlite3_bind_int64(l->sent, 1, l->ids[i]));
        check(l, sqlite3_bind_int64(l->sent, 2, l->epochs[i]));
        run(l, l->sent);
        if (sqlite3_changes(l->db) != 1)
            sl_bare_die("message %lld was not deleted", (long long)l->ids[i]);
    }
}

static void close_all(lite *l)
{
    sqlite3_finalize(l->begin);
    sqlite3_finalize(l->commit);
    sqlite3_finalize(l->take);
    sqlite3_finalize(l->sent);
    sqlite3_close(l->db);
    free(l->ids);
    free(l->epochs);
}

int64_t sl_ceiling_sqlite(const sl_ceiling *o, int connection)
{
    lite l = { 0 };
    int64_t messages = 0;
    int64_t n;
    (void)connection;
    open_prepared(&l, o);
    sl_ceiling_ready(o);
    do {
        if (!o->lease)
            run(&l, l.begin);
        n = take(&l, o);
        if (o->lease && n > 0)
            run(&l, l.begin);
        settle(&l, n);
        if (!o->lease || n > 0)
            run(&l, l.commit);
        messages += n;
    } while (n > 0);
    close_all(&l);
    return messages;
}
