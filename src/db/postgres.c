/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL, by libpq (db/pg_conn.h). Results are binary, statements are prepared on first use, and
 * the calls of one `run` travel in one round trip (pipeline mode), with the preparation where it is
 * needed.
 *
 * A connection that the caller owns (adopt) is used with plain PQexecParams: nothing is
 * prepared on it, so it may as well go through a pooler.
 */
#include "core/clock.h"
#include "core/mem.h"
#include "db/pg_conn.h"
#include "db/pg_wire.h"

#include <assert.h>
#include <ctype.h>
#include <libpq-fe.h>

typedef struct pg_db {
    sl_db base;
    sl_pg_conn conn;
    bool adopted;
    bool look; /* only unnamed statements, each prepared where it is used */
    const sl_names *names;
    int64_t statement_ns;
    sl_buf sql;      /* statement text while it is prepared */
    sl_buf params;   /* encoded parameters of the call being sent */
    sl_post *posted; /* or NULL: its answer comes first */
    bool posted_prepares[SL_POST_MAX];
    bool prepared[]; /* by sl_stmt.index */
} pg_db;

extern const sl_db_ops sl_db_postgres;

static pg_db *pg_of(sl_db *db)
{
    return (pg_db *)db;
}

/* ---- Parameters and rows ---- */

typedef struct packed {
    int n;
    Oid types[SL_STMT_MAX];
    const char *values[SL_STMT_MAX];
    int lengths[SL_STMT_MAX];
    int formats[SL_STMT_MAX];
} packed;

/* Encodes all parameters into p->params first, since the buffer may move, and points
 * afterwards. */
static void pack(pg_db *p, const sl_call *c, packed *out)
{
    size_t starts[SL_STMT_MAX + 1];
    out->n = c->stmt->nparams;
    sl_buf_reset(&p->params);
    for (int i = 0; i < out->n; i++) {
        assert(c->in[i].type == c->stmt->params[i]);
        starts[i] = p->params.n;
        if (!c->in[i].null)
            sl_pg_encode(&p->params, &c->in[i]);
    }
    starts[out->n] = p->params.n;
    sl_buf_room(&p->params, 0); /* never NULL */
    for (int i = 0; i < out->n; i++) {
        out->types[i] = sl_pg_oid(c->stmt->params[i]);
        out->values[i] = c->in[i].null ? NULL : p->params.p + starts[i];
        out->lengths[i] = (int)(starts[i + 1] - starts[i]);
        out->formats[i] = 1;
    }
}

/* Also when there are no rows: a statement that is rehearsed on nothing must not fail later. */
static sl_rc check_columns(const PGresult *res, const sl_call *c, sl_err *err)
{
    int n = PQnfields(res);
    if (n != c->stmt->ncols && n > 0)
        return sl_fail(err, SL_OPERATOR, "postgres: %s gives %d columns, not %d", c->stmt->name,
                       n, c->stmt->ncols);
    for (int i = 0; c->row && i < n; i++)
        if (!sl_pg_reads(c->stmt->cols[i], PQftype(res, i)))
            return sl_fail(err, SL_OPERATOR,
                           "postgres: column '%s' has a type (oid %u) that cannot be read here",
                           PQfname(res, i), PQftype(res, i));
    return SL_OK;
}

static sl_rc give_rows(const PGresult *res, sl_call *c, sl_err *err)
{
    int rows = PQntuples(res);
    int ncols = c->stmt->ncols;
    sl_val cols[SL_STMT_MAX];

    c->affected =
        *PQcmdTuples((PGresult *)res) ? strtoll(PQcmdTuples((PGresult *)res), NULL, 10) : 0;
    sl_rc rc = check_columns(res, c, err);
    if (rc != SL_OK)
        return rc;
    for (int r = 0; c->row && r < rows; r++) {
        for (int i = 0; i < ncols; i++) {
            cols[i] = (sl_val){ .type = c->stmt->cols[i], .null = true };
            if (!PQgetisnull(res, r, i) &&
                !sl_pg_decode(&cols[i], c->stmt->cols[i], PQftype(res, i),
                              PQgetvalue(res, r, i), (size_t)PQgetlength(res, r, i)))
                return sl_fail(err, SL_OPERATOR, "postgres: column '%s' cannot be read",
                               PQfname(res, i));
        }
        rc = c->row(c->ctx, cols, err);
        if (rc != SL_OK)
            return rc;
    }
    return SL_OK;
}

static bool succeeded(const PGresult *res)
{
    ExecStatusType s = PQresultStatus(res);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
}

/* ---- Running ---- */

static void statement_name(const pg_db *p, const sl_stmt *s, char name[32])
{
    if (p->look)
        name[0] = '\0';
    else
        snprintf(name, 32, "sluice_%d", s->index);
}

static bool send_prepare(pg_db *p, const sl_stmt *s)
{
    char name[32];
    Oid types[SL_STMT_MAX];
    statement_name(p, s, name);
    for (int i = 0; i < s->nparams; i++)
        types[i] = sl_pg_oid(s->params[i]);
    sl_buf_reset(&p->sql);
    sl_names_apply(p->names, s->text, &p->sql);
    return PQsendPrepare(p->conn.pg, name, sl_buf_text(&p->sql), s->nparams, types);
}

static bool send_call(pg_db *p, const sl_call *c)
{
    char name[32];
    packed in;
    statement_name(p, c->stmt, name);
    pack(p, c, &in);
    return PQsendQueryPrepared(p->conn.pg, name, in.n, in.values, in.lengths, in.formats, 1);
}

static bool has_stmt(const sl_call *calls, size_t count, const sl_stmt *s)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i].stmt->index == s->index)
            return true;
    return false;
}

/* Once is enough, and that may be on the way. */
static bool to_prepare(const pg_db *p, const sl_call *calls, size_t i)
{
    const sl_stmt *s = calls[i].stmt;
    if (p->look)
        return true;
    return !p->prepared[s->index] && !has_stmt(calls, i, s) &&
           !(p->posted && has_stmt(p->posted->calls, p->posted->count, s));
}

static bool send_all(pg_db *p, const sl_call *calls, size_t count, bool *prepares)
{
    for (size_t i = 0; i < count; i++) {
        const sl_stmt *s = calls[i].stmt;
        prepares[i] = to_prepare(p, calls, i);
        if ((prepares[i] && !send_prepare(p, s)) || !send_call(p, &calls[i]))
            return false;
    }
    return PQpipelineSync(p->conn.pg);
}

/* Reads the answer to one queued command, up to its end. `rows` is NULL for a preparation. *worked: it did, whatever
 * became of others. */
static sl_rc read_answer(pg_db *p, sl_call *rows, int64_t deadline_ns, sl_rc sofar,
                         bool *worked, sl_err *err)
{
    PGresult *res;
    *worked = false;
    sl_rc rc = sl_pg_next(&p->conn, &res, deadline_ns, err);
    if (rc != SL_OK)
        return rc;
    if (!res)
        return sl_pg_fail(&p->conn, NULL, err);
    *worked = succeeded(res);
    if (sofar == SL_OK)
        rc = !*worked ? sl_pg_fail(&p->conn, res, err)
             : rows   ? give_rows(res, rows, err)
                      : SL_OK;
    PQclear(res);
    for (PGresult *more = NULL;; PQclear(more)) {
        sl_err ignored;
        sl_rc ended = sl_pg_next(&p->conn, &more, deadline_ns, rc == SL_OK ? err : &ignored);
        if (ended != SL_OK)
            return ended;
        if (!more)
            return sofar != SL_OK ? sofar : rc;
    }
}

/* The end of what was sent together. When all of it has worked, the commit may still fail: that is told first, and
 * nothing between the two. */
static sl_rc read_sync(pg_db *p, int64_t deadline_ns, sl_rc sofar, sl_err *err)
{
    PGresult *res;
    sl_err ignored;
    sl_rc rc = sofar;
    for (int answers = 0; answers < 3; answers++) {
        sl_rc came = sl_pg_next(&p->conn, &res, deadline_ns, rc == SL_OK ? err : &ignored);
        if (came != SL_OK)
            return rc != SL_OK ? rc : came;
        ExecStatusType is = res ? PQresultStatus(res) : PGRES_EMPTY_QUERY;
        if (rc == SL_OK && is == PGRES_FATAL_ERROR)
            rc = sl_pg_fail(&p->conn, res, err);
        PQclear(res);
        if (is == PGRES_PIPELINE_SYNC)
            return rc;
    }
    return rc != SL_OK ? rc : sl_pg_fail(&p->conn, NULL, err);
}

/* The first failure is the one that is told; the rest of the pipeline is skipped by the server
 * and only read to its end. */
static sl_rc read_all(pg_db *p, sl_call *calls, size_t count, const bool *prepares,
                      int64_t deadline_ns, sl_rc sofar, sl_err *err)
{
    sl_rc rc = sofar;
    bool worked;
    for (size_t i = 0; i < count && PQstatus(p->conn.pg) == CONNECTION_OK; i++) {
        if (prepares[i]) {
            rc = read_answer(p, NULL, deadline_ns, rc, &worked, err);
            p->prepared[calls[i].stmt->index] = worked && !p->look;
        }
        rc = read_answer(p, &calls[i], deadline_ns, rc, &worked, err);
    }
    if (PQstatus(p->conn.pg) != CONNECTION_OK)
        return rc != SL_OK ? rc : sl_pg_fail(&p->conn, NULL, err);
    return read_sync(p, deadline_ns, rc, err);
}

static sl_rc send_pipeline(pg_db *p, const sl_call *calls, size_t count, bool *prepares,
                           int64_t deadline_ns, sl_err *err)
{
    if (!PQenterPipelineMode(p->conn.pg) || !send_all(p, calls, count, prepares))
        return sl_pg_fail(&p->conn, NULL, err);
    return sl_pg_flush(&p->conn, deadline_ns, err);
}

/* It is committed when the answer to its end has come. */
static sl_rc read_posted(pg_db *p, int64_t deadline_ns, sl_err *err)
{
    sl_post *post = p->posted;
    if (!post)
        return SL_OK;
    p->posted = NULL;
    sl_rc rc =
        read_all(p, post->calls, post->count, p->posted_prepares, deadline_ns, SL_OK, err);
    post->answered = rc == SL_OK;
    return rc;
}

static sl_rc run_pipeline(pg_db *p, sl_call *calls, size_t count, sl_err *err)
{
    bool prepares[SL_RUN_MAX];
    int64_t deadline_ns = sl_now_ns() + p->statement_ns;

    assert(count <= SL_RUN_MAX);
    sl_rc rc = count ? send_pipeline(p, calls, count, prepares, deadline_ns, err) : SL_OK;
    if (rc == SL_OK) {
        sl_rc before = read_posted(p, deadline_ns, err);
        rc = count ? read_all(p, calls, count, prepares, deadline_ns, before, err) : before;
    }
    p->posted = NULL;
    if (PQexitPipelineMode(p->conn.pg) || rc != SL_OK)
        return rc;
    return sl_pg_fail(&p->conn, NULL, err);
}

static sl_rc pg_post(sl_db *db, sl_post *post, sl_err *err)
{
    pg_db *p = pg_of(db);
    assert(!p->adopted && !p->posted && post->count <= SL_POST_MAX);
    sl_db_count(post->count);
    post->answered = false;
    sl_rc rc = send_pipeline(p, post->calls, post->count, p->posted_prepares,
                             sl_now_ns() + p->statement_ns, err);
    p->posted = rc == SL_OK ? post : NULL;
    return rc;
}

/* Nothing is expected to arrive now but the end, or a notice. */
static void pg_rollback(sl_db *db)
{
    pg_db *p = pg_of(db);
    PGTransactionStatusType t = PQtransactionStatus(p->conn.pg);
    if (p->adopted || (t != PQTRANS_INTRANS && t != PQTRANS_INERROR))
        return;
    sl_err ignored;
    sl_call call = { .stmt = sl_db_stmt(db, "tx/rollback") };
    sl_rc rc = run_pipeline(p, &call, 1, &ignored);
    (void)rc; /* a lost connection has rolled back by itself */
}

static sl_rc run_params(pg_db *p, sl_call *c, sl_err *err)
{
    packed in;
    pack(p, c, &in);
    sl_buf_reset(&p->sql);
    sl_names_apply(p->names, c->stmt->text, &p->sql);
    PGresult *res = PQexecParams(p->conn.pg, sl_buf_text(&p->sql), in.n, in.types, in.values,
                                 in.lengths, in.formats, 1);
    sl_rc rc = succeeded(res) ? give_rows(res, c, err) : sl_pg_fail(&p->conn, res, err);
    PQclear(res);
    return rc;
}

static sl_rc pg_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    pg_db *p = pg_of(db);
    sl_db_count(count);
    if (!p->adopted) {
        sl_rc rc = run_pipeline(p, calls, count, err);
        if (rc != SL_OK)
            pg_rollback(db);
        sl_pg_note_notifies(&p->conn); /* a busy worker must not collect them */
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        sl_rc rc = run_params(p, &calls[i], err);
        if (rc != SL_OK)
            return rc;
    }
    return SL_OK;
}

/* A migration may rewrite a large table: it takes the time it takes. */
static sl_rc pg_script(sl_db *db, const char *sql, sl_err *err)
{
    pg_db *p = pg_of(db);
    int64_t deadline_ns = INT64_MAX;
    if (!PQsendQuery(p->conn.pg, sql))
        return sl_pg_fail(&p->conn, NULL, err);
    sl_rc rc = sl_pg_flush(&p->conn, deadline_ns, err);
    for (;;) {
        PGresult *res;
        sl_err later;
        sl_rc got = sl_pg_next(&p->conn, &res, deadline_ns, rc == SL_OK ? err : &later);
        if (got != SL_OK || !res)
            return rc == SL_OK ? got : rc;
        if (!succeeded(res) && rc == SL_OK)
            rc = sl_pg_fail(&p->conn, res, err);
        PQclear(res);
    }
}

static sl_rc pg_await(sl_db *db, int fd, int64_t until_ns, bool *woken, sl_err *err)
{
    assert(!pg_of(db)->posted);
    return sl_pg_await(&pg_of(db)->conn, fd, until_ns, woken, err);
}

static bool pg_alive(sl_db *db)
{
    assert(!pg_of(db)->posted);
    return sl_pg_alive(&pg_of(db)->conn);
}

/* ---- Opening and closing ---- */

static bool pg_accepts(const char *url)
{
    if (!strncmp(url, "postgresql:", 11) || !strncmp(url, "postgres:", 9))
        return true;
    /* A conninfo string: "host=... dbname=...", "service=app". */
    const char *p = url;
    while (islower((unsigned char)*p) || *p == '_')
        p++;
    return p > url && *p == '=';
}

static sl_rc note_standby(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i;
    return SL_OK;
}

static sl_rc open_session(pg_db *p, const sl_dsn *dsn, sl_err *err)
{
    char idle_ms[32];
    bool standby = false;
    snprintf(idle_ms, sizeof idle_ms, "%lld", (long long)(dsn->idle_in_tx_ns / SL_MS));
    sl_str plans = dsn->steady ? SL_STR("force_generic_plan") : (sl_str){ 0 };
    sl_val in[] = { sl_text(sl_str_of(idle_ms)), sl_text(plans) };
    sl_rc rc = sl_db_run1(&p->base, "session/open", in, note_standby, &standby, NULL, err);
    if (rc != SL_OK || !standby)
        return rc;
    return sl_fail(
        err, SL_AGAIN,
        "postgres: host %s, port %s is a standby and cannot be written to\nhint: name the "
        "primary, or all hosts of the cluster",
        PQhost(p->conn.pg), PQport(p->conn.pg));
}

static pg_db *new_db(sl_pg_conn conn, bool adopted, const sl_names *names)
{
    pg_db *p = sl_alloc(sizeof *p + (size_t)sl_stmts_count * sizeof p->prepared[0]);
    p->base.ops = &sl_db_postgres;
    p->conn = conn;
    p->adopted = adopted;
    p->names = names;
    return p;
}

static sl_rc pg_open(sl_db **out, const sl_dsn *dsn, sl_err *err)
{
    sl_pg_conn conn;
    sl_rc rc = sl_pg_connect(&conn, dsn, err);
    pg_db *p = new_db(conn, false, dsn->names);
    p->statement_ns = dsn->statement_ns;
    p->look = dsn->look;
    if (rc == SL_OK && !dsn->look)
        rc = open_session(p, dsn, err);
    if (rc == SL_OK)
        *out = &p->base;
    else
        p->base.ops->close(&p->base);
    return rc;
}

static sl_rc pg_adopt(sl_db **out, void *native, const sl_names *names, sl_err *err)
{
    PGconn *pg = native;
    if (PQstatus(pg) != CONNECTION_OK)
        return sl_fail(err, SL_AGAIN, "postgres: the caller's connection is not open");
    if (PQpipelineStatus(pg) != PQ_PIPELINE_OFF || PQtransactionStatus(pg) == PQTRANS_ACTIVE)
        return sl_fail(err, SL_REFUSED,
                       "postgres: the caller's connection is busy or in pipeline mode");
    *out = &new_db((sl_pg_conn){ .pg = pg, .wake_fd = -1 }, true, names)->base;
    return SL_OK;
}

static void pg_close(sl_db *db)
{
    pg_db *p = pg_of(db);
    if (!p->adopted)
        PQfinish(p->conn.pg);
    sl_buf_fini(&p->sql);
    sl_buf_fini(&p->params);
    free(p);
}

static bool pg_in_tx(sl_db *db)
{
    PGTransactionStatusType t = PQtransactionStatus(pg_of(db)->conn.pg);
    return t == PQTRANS_INTRANS || t == PQTRANS_INERROR;
}

const sl_db_ops sl_db_postgres = {
    .name = "postgres",
    .example = "postgresql://user@host/database",
    .library = "libpq",
    .library_version = PQlibVersion,
    .session_locks = true,
    .accepts = pg_accepts,
    .open = pg_open,
    .adopt = pg_adopt,
    .close = pg_close,
    .run = pg_run,
    .post = pg_post,
    .script = pg_script,
    .rollback = pg_rollback,
    .await = pg_await,
    .alive = pg_alive,
    .in_tx = pg_in_tx,
};
