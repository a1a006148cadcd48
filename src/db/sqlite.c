/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite: the embedded default. One writer at a time, so every claim and settle begins with
 * BEGIN IMMEDIATE and waits its turn (busy_timeout); readers and other processes go on beside
 * it (WAL). There are no arrays: a call with array parameters runs its statement once per
 * element, unless it wants them whole: as JSON.
 */
#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"
#include "db/db.h"
#include "db/lite_file.h"
#include "db/lite_watch.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>

enum { OLDEST_LIBRARY = 3035000 }; /* UPDATE ... RETURNING */

typedef struct lite_db {
    sl_db base;
    sqlite3 *db;
    bool adopted;
    sl_lite_watch watch;
    const sl_names *names;
    sqlite3_stmt *stmts[]; /* by sl_stmt.index; prepared on first use */
} lite_db;

extern const sl_db_ops sl_db_sqlite;

static lite_db *lite_of(sl_db *db)
{
    return (lite_db *)db;
}

/* ---- Errors ---- */

static sl_rc class_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_SCHEMA:
        return SL_AGAIN;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return SL_REFUSED;
    default:
        return SL_OPERATOR;
    }
}

static const char *advice_for(const char *text)
{
    if (strstr(text, "no such table") || strstr(text, "no such column"))
        return "\nhint: create or migrate the tables with 'sluice init', or check table and "
               "columns";
    if (strstr(text, "readonly"))
        return "\nhint: the file and its folder must be writable by this user";
    return "";
}

static sl_rc fail_code(const lite_db *l, int code, sl_err *err)
{
    const char *text = sqlite3_errmsg(l->db);
    return sl_fail(err, class_of(code), "sqlite: %s%s", text, advice_for(text));
}

/* ---- Parameters and rows ---- */

static int bind_str(sqlite3_stmt *st, int at, sl_type type, sl_str s)
{
    if (!s.p)
        return sqlite3_bind_null(st, at);
    if (type == SL_T_TEXT)
        return sqlite3_bind_text64(st, at, s.p, s.n, SQLITE_STATIC, SQLITE_UTF8);
    return sqlite3_bind_blob64(st, at, s.n ? s.p : "", s.n, SQLITE_STATIC);
}

/* Element `i` of an array, or the value itself. */
static int bind_one(sqlite3_stmt *st, int at, const sl_val *v, size_t i)
{
    if (v->null)
        return sqlite3_bind_null(st, at);
    switch (v->type) {
    case SL_T_INT8S:
        return sqlite3_bind_int64(st, at, v->ints.v[i]);
    case SL_T_TEXTS:
        return bind_str(st, at, SL_T_TEXT, v->strs.v[i]);
    case SL_T_BYTESS:
        return bind_str(st, at, SL_T_BYTES, v->strs.v[i]);
    case SL_T_TEXT:
    case SL_T_BYTES:
        return bind_str(st, at, v->type, v->s);
    default:
        return sqlite3_bind_int64(st, at, v->i);
    }
}

/* As JSON. The text is SQLite's from now on. */
static int bind_whole(sqlite3_stmt *st, int at, const sl_val *v)
{
    sl_buf text = { 0 };
    sl_buf_putc(&text, '[');
    for (size_t i = 0; i < v->ints.n; i++)
        sl_buf_printf(&text, i ? ",%lld" : "%lld", (long long)v->ints.v[i]);
    sl_buf_putc(&text, ']');
    return sqlite3_bind_text64(st, at, text.p, text.n, free, SQLITE_UTF8);
}

static int bind_param(sqlite3_stmt *st, int at, const sl_call *c, size_t i)
{
    const sl_val *v = &c->in[at - 1];
    return c->stmt->whole && v->type == SL_T_INT8S ? bind_whole(st, at, v)
                                                   : bind_one(st, at, v, i);
}

/* How often the statement runs: once, or once per element of its arrays. */
static size_t times_of(const sl_call *c)
{
    for (int i = 0; i < c->stmt->nparams && !c->stmt->whole; i++) {
        if (c->in[i].type == SL_T_INT8S)
            return c->in[i].ints.n;
        if (c->in[i].type == SL_T_TEXTS || c->in[i].type == SL_T_BYTESS)
            return c->in[i].strs.n;
    }
    return 1;
}

static sl_val column(sqlite3_stmt *st, int i, sl_type want)
{
    sl_val v = { .type = want };
    int have = sqlite3_column_type(st, i);
    if (have == SQLITE_NULL) {
        v.null = true;
    } else if (want == SL_T_TEXT || want == SL_T_BYTES) {
        /* Text is asked for as text, so that it comes as UTF-8 whatever the file's encoding. */
        const void *p = have == SQLITE_BLOB ? sqlite3_column_blob(st, i)
                                            : (const void *)sqlite3_column_text(st, i);
        v.s = (sl_str){ p ? p : "", (size_t)sqlite3_column_bytes(st, i) };
    } else {
        v.i = sqlite3_column_int64(st, i);
    }
    return v;
}

static sl_rc give_row(sqlite3_stmt *st, sl_call *c, sl_err *err)
{
    sl_val cols[SL_STMT_MAX];
    c->affected++;
    if (!c->row)
        return SL_OK;
    for (int i = 0; i < c->stmt->ncols; i++)
        cols[i] = column(st, i, c->stmt->cols[i]);
    return c->row(c->ctx, cols, err);
}

/* ---- Running ---- */

static sl_rc prepare(lite_db *l, const sl_stmt *s, sqlite3_stmt **out, sl_err *err)
{
    if ((*out = l->stmts[s->index]))
        return SL_OK;
    sl_buf sql = { 0 };
    sl_names_apply(l->names, s->text, &sql);
    int code =
        sqlite3_prepare_v3(l->db, sl_buf_text(&sql), -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    sl_buf_fini(&sql);
    if (code != SQLITE_OK)
        return fail_code(l, code, err);
    assert(sqlite3_column_count(*out) == s->ncols);
    l->stmts[s->index] = *out;
    return SL_OK;
}

static sl_rc step_all(lite_db *l, sqlite3_stmt *st, sl_call *c, sl_err *err)
{
    int code;
    int before = sqlite3_total_changes(l->db);
    sl_rc rc = SL_OK;
    while (rc == SL_OK && (code = sqlite3_step(st)) == SQLITE_ROW)
        rc = give_row(st, c, err);
    if (rc == SL_OK && code != SQLITE_DONE)
        rc = fail_code(l, code, err);
    /* BEGIN, COMMIT and the like leave the count of the statement before them. */
    if (rc == SL_OK && c->stmt->ncols == 0 && sqlite3_total_changes(l->db) != before)
        c->affected += sqlite3_changes(l->db);
    sqlite3_reset(st);
    return rc;
}

static sl_rc run_call(lite_db *l, sl_call *c, sl_err *err)
{
    sqlite3_stmt *st;
    sl_rc rc = prepare(l, c->stmt, &st, err);
    size_t times = times_of(c);
    c->affected = 0;
    for (size_t t = 0; rc == SL_OK && t < times; t++) {
        int code = SQLITE_OK;
        for (int i = 0; i < c->stmt->nparams && code == SQLITE_OK; i++)
            code = bind_param(st, i + 1, c, t);
        rc = code == SQLITE_OK ? step_all(l, st, c, err) : fail_code(l, code, err);
    }
    if (rc == SL_OK)
        sqlite3_clear_bindings(st); /* the bytes were borrowed */
    return rc;
}

static sl_rc run_stmt(lite_db *l, const char *name, sl_err *err)
{
    return run_call(l, &(sl_call){ .stmt = sl_db_stmt(&l->base, name) }, err);
}

static void lite_rollback(sl_db *db)
{
    lite_db *l = lite_of(db);
    sl_err ignored;
    if (!l->adopted && !sqlite3_get_autocommit(l->db))
        (void)!run_stmt(l, "tx/rollback", &ignored);
}

/* In a transaction that is not ours, or in none, a savepoint makes the calls all or nothing. */
static sl_rc run_framed(lite_db *l, sl_call *calls, size_t count, sl_err *err)
{
    sl_err ignored;
    sl_rc rc = run_stmt(l, "tx/savepoint", err);
    if (rc != SL_OK)
        return rc;
    for (size_t i = 0; rc == SL_OK && i < count; i++)
        rc = run_call(l, &calls[i], err);
    if (rc != SL_OK)
        (void)!run_stmt(l, "tx/rollback_to", &ignored);
    sl_rc end = run_stmt(l, "tx/release", rc == SL_OK ? err : &ignored);
    return rc != SL_OK ? rc : end;
}

static sl_rc lite_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    lite_db *l = lite_of(db);
    sl_db_count(count);
    if (l->adopted)
        return run_framed(l, calls, count, err);
    for (size_t i = 0; i < count; i++) {
        /* Elsewhere a call with arrays is one statement: it must not half succeed here. */
        bool framed = times_of(&calls[i]) > 1 && sqlite3_get_autocommit(l->db);
        sl_rc rc = framed ? run_framed(l, &calls[i], 1, err) : run_call(l, &calls[i], err);
        if (rc != SL_OK) {
            lite_rollback(db);
            return rc;
        }
    }
    return SL_OK;
}

static sl_rc lite_script(sl_db *db, const char *sql, sl_err *err)
{
    lite_db *l = lite_of(db);
    int code = sqlite3_exec(l->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? SL_OK : fail_code(l, code, err);
}

/* ---- Opening ---- */

static bool lite_accepts(const char *url)
{
    return !strncmp(url, "sqlite:", 7);
}

/* Locks over a network are a matter of luck, and with them the file. */
static sl_rc refuse_network(const char *path, sl_err *err)
{
    const char *remote = sl_lite_file_remote(path);
    if (!remote)
        return SL_OK;
    return sl_fail(err, SL_OPERATOR,
                   "sqlite: %.200s is on a network file system (%s), where SQLite's locks do "
                   "not hold\nhint: use a local disk, or PostgreSQL",
                   path, remote);
}

static sl_rc open_file(lite_db *l, const char *path, bool create, sl_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(path, &l->db, flags, NULL);
    if (code == SQLITE_OK)
        return SL_OK;
    /* Read before anything else touches it. */
    int e = l->db ? sqlite3_system_errno(l->db) : 0;
    if (e == ENOENT && !create)
        return sl_fail(
            err, SL_AGAIN,
            "sqlite: %.200s does not exist\nhint: create it with 'sluice init', or say "
            "where it is with --db sqlite:PATH",
            path);
    return sl_fail(err, SL_AGAIN, "sqlite: cannot open %.200s: %s", path,
                   e ? strerror(e) : sqlite3_errstr(code));
}

/* A new file becomes one with a WAL at its first opening. Where several try that at once, SQLite
 * tells some that it is locked without waiting, whatever the busy timeout: wait here. */
static sl_rc prepare_session(lite_db *l, const sl_dsn *dsn, sl_err *err)
{
    const char *pragmas = sl_script_named("sqlite", "session/pragmas")->text;
    int64_t deadline_ns = sl_now_ns() + dsn->connect_ns;
    sqlite3_extended_result_codes(l->db, 1);
    sqlite3_busy_timeout(l->db, (int)(dsn->connect_ns / SL_MS));
    sl_rc rc = lite_script(&l->base, pragmas, err);
    for (unsigned n = 1; rc == SL_AGAIN && (sqlite3_errcode(l->db) & 0xff) == SQLITE_BUSY;
         n++) {
        int64_t pause_ns = sl_backoff_ns(n, SL_MS, 50 * SL_MS);
        if (sl_now_ns() + pause_ns > deadline_ns)
            return rc;
        nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
        rc = lite_script(&l->base, pragmas, err);
    }
    return rc;
}

/* Waits its turn like any other, but leaves the journal's mode as it is, and the journal where it is. */
static sl_rc prepare_look(lite_db *l, const sl_dsn *dsn)
{
    sqlite3_extended_result_codes(l->db, 1);
    sqlite3_busy_timeout(l->db, (int)(dsn->connect_ns / SL_MS));
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return SL_OK;
}

static lite_db *new_db(bool adopted, const sl_names *names)
{
    lite_db *l = sl_alloc(sizeof *l + (size_t)sl_stmts_count * sizeof(sqlite3_stmt *));
    l->base.ops = &sl_db_sqlite;
    l->adopted = adopted;
    l->names = names;
    return l;
}

static sl_rc check_url(const char *path, const sl_names *names, bool look, sl_err *err)
{
    if (!*path)
        return sl_fail(err, SL_OPERATOR, "sqlite: the URL has no path\nhint: sqlite:PATH");
    if (!strcmp(path, ":memory:"))
        return sl_fail(err, SL_OPERATOR,
                       "sqlite: every worker would get a :memory: database of its "
                       "own\nhint: sqlite:PATH");
    if (names->schema)
        return sl_fail(err, SL_OPERATOR,
                       "sqlite: table '%s.%s' names a schema, which SQLite has not",
                       names->schema, names->table);
    if (sqlite3_libversion_number() < OLDEST_LIBRARY)
        return sl_fail(err, SL_OPERATOR,
                       "sqlite: the library is version %s; Sluice needs 3.35 or "
                       "newer",
                       sqlite3_libversion());
    return look ? SL_OK : refuse_network(path, err);
}

static sl_rc lite_open(sl_db **out, const sl_dsn *dsn, sl_err *err)
{
    const char *path = dsn->url + strlen("sqlite:");
    sl_rc rc = check_url(path, dsn->names, dsn->look, err);
    if (rc != SL_OK)
        return rc;
    lite_db *l = new_db(false, dsn->names);
    rc = open_file(l, path, dsn->create, err);
    if (rc == SL_OK)
        rc = dsn->look ? prepare_look(l, dsn) : prepare_session(l, dsn, err);
    if (rc == SL_OK)
        *out = &l->base;
    else
        l->base.ops->close(&l->base);
    return rc;
}

static sl_rc lite_adopt(sl_db **out, void *native, const sl_names *names, sl_err *err)
{
    (void)err;
    lite_db *l = new_db(true, names);
    l->db = native;
    *out = &l->base;
    return SL_OK;
}

static bool lite_alive(sl_db *db)
{
    (void)db;
    return true; /* nobody is at the other end */
}

static void lite_close(sl_db *db)
{
    lite_db *l = lite_of(db);
    for (int i = 0; i < sl_stmts_count; i++)
        sqlite3_finalize(l->stmts[i]);
    sl_lite_watch_close(&l->watch);
    if (!l->adopted)
        sqlite3_close(l->db);
    free(l);
}

static sl_rc lite_await(sl_db *db, int fd, int64_t until_ns, bool *woken, sl_err *err)
{
    lite_db *l = lite_of(db);
    sl_rc rc = SL_OK;
    if (l->watch.fd <= 0)
        rc = sl_lite_watch_open(&l->watch, sqlite3_db_filename(l->db, "main"), err);
    return rc == SL_OK ? sl_lite_watch_await(&l->watch, fd, until_ns, woken, err) : rc;
}

static bool lite_in_tx(sl_db *db)
{
    return !sqlite3_get_autocommit(lite_of(db)->db);
}

const sl_db_ops sl_db_sqlite = {
    .name = "sqlite",
    .example = "sqlite:PATH",
    .library = "sqlite3",
    .library_version = sqlite3_libversion_number,
    .accepts = lite_accepts,
    .open = lite_open,
    .adopt = lite_adopt,
    .close = lite_close,
    .run = lite_run,
    .script = lite_script,
    .rollback = lite_rollback,
    .await = lite_await,
    .alive = lite_alive,
    .in_tx = lite_in_tx,
};
