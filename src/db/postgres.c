/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL, by libpq. Results are binary, statements are prepared on first use, and the calls
 * of one `run` travel in one round trip (pipeline mode), with the preparation where it is
 * needed. The connection is non-blocking and every wait has an end: a server that never answers
 * is a lost connection, not a worker that hangs.
 *
 * A connection that the caller owns (adopt) is used with plain PQexecParams: nothing is
 * prepared on it, so it may as well go through a pooler.
 */
#include "core/clock.h"
#include "core/mem.h"
#include "db/db.h"
#include "db/pg_url.h"
#include "db/pg_wire.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>

enum { OLDEST_SERVER = 130000 };

/* How long an answer is still waited for when a stop has been asked for: verdicts that are on
 * their way shall be written, a server that hangs shall not keep us. */
#define STOP_GRACE_NS (2 * SL_SEC)

typedef struct pg_db {
    sl_db base;
    PGconn *pg;
    bool adopted;
    const sl_names *names;
    int64_t statement_ns;
    int wake_fd;
    int64_t stop_grace_ns; /* none while connecting */
    int64_t stop_by_ns;    /* 0, or a stop was seen: no wait goes on beyond this */
    sl_buf sql;            /* statement text while it is prepared */
    sl_buf params;         /* encoded parameters of the call being sent */
    bool prepared[];       /* by sl_stmt.index */
} pg_db;

extern const sl_db_ops sl_db_postgres;

static pg_db *pg_of(sl_db *db)
{
    return (pg_db *)db;
}

/* ---- Errors ---- */

/* What to do about an SQLSTATE; longer prefixes first. Anything else is for a human. */
static const struct {
    const char *prefix;
    sl_rc rc;
} classes[] = {
    { "0A000",
      SL_AGAIN }, /* a cached plan must not change its type: connect and prepare anew */
    { "57014", SL_AGAIN }, /* statement cancelled or timed out */
    { "55P03", SL_AGAIN }, /* lock not available */
    { "25006", SL_AGAIN }, /* read only: we are on a standby, or a failover is under way */
    { "25P03", SL_AGAIN }, /* idle in transaction too long: the session was ended */
    { "08", SL_AGAIN },    /* connection */
    { "40", SL_AGAIN },    /* deadlock, serialisation */
    { "53", SL_AGAIN },    /* out of memory, disk, connections */
    { "57", SL_AGAIN },    /* shutdown, crash, cannot connect now */
    { "58", SL_AGAIN },    /* I/O */
    { "22", SL_REFUSED },  /* this value */
    { "23", SL_REFUSED },  /* this row: a constraint */
    { "54", SL_REFUSED },  /* too large */
};

static sl_rc class_of(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strncmp(sqlstate, classes[i].prefix, strlen(classes[i].prefix)))
            return classes[i].rc;
    return SL_OPERATOR;
}

static const char *advice_for(const char *sqlstate)
{
    if (!strcmp(sqlstate, "42P01") || !strcmp(sqlstate, "42703"))
        return "\nhint: create or migrate the tables with 'sluice init', or check table and "
               "columns";
    if (!strcmp(sqlstate, "42501"))
        return "\nhint: grant the role what it needs, see docs/operating.md";
    return "";
}

/* Only the primary message: the detail of a constraint holds the whole row, payload included.
 */
static sl_rc fail_result(const pg_db *p, const PGresult *res, sl_err *err)
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (!state || PQstatus(p->pg) == CONNECTION_BAD)
        return sl_fail(err, SL_AGAIN, "postgres: connection lost: %s",
                       text ? text : PQerrorMessage(p->pg));
    return sl_fail(err, class_of(state), "postgres: %s (SQLSTATE %s)%s", text ? text : "failed",
                   state, advice_for(state));
}

/* ---- Waiting ---- */

static sl_rc no_time_left(const pg_db *p, sl_err *err)
{
    return p->stop_by_ns
               ? sl_fail(err, SL_STOPPED, "postgres: stopped while waiting for an answer")
               : sl_fail(err, SL_AGAIN, "postgres: no answer within the time-out");
}

/* Waits until the socket is ready; SL_AGAIN at the deadline, SL_STOPPED soon after being told to
 * stop. */
static sl_rc wait_socket(pg_db *p, short events, int64_t deadline_ns, sl_err *err)
{
    /* A negative descriptor is ignored. */
    struct pollfd fds[2] = {
        { .fd = PQsocket(p->pg), .events = events },
        { .fd = p->stop_by_ns ? -1 : p->wake_fd, .events = POLLIN },
    };
    for (;;) {
        int64_t until =
            p->stop_by_ns && p->stop_by_ns < deadline_ns ? p->stop_by_ns : deadline_ns;
        int64_t left = until - sl_now_ns();
        if (left <= 0)
            return no_time_left(p, err);
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
            return sl_fail(err, SL_AGAIN, "postgres: poll: %s", strerror(errno));
        if (fds[0].revents)
            return SL_OK;
        if (fds[1].revents) {
            p->stop_by_ns = sl_now_ns() + p->stop_grace_ns;
            fds[1] = (struct pollfd){ .fd = -1 };
        }
    }
}

/* Sends all that is queued, reading meanwhile: a server that cannot write to us does not read.
 */
static sl_rc flush(pg_db *p, int64_t deadline_ns, sl_err *err)
{
    int left;
    while ((left = PQflush(p->pg)) == 1) {
        sl_rc rc = wait_socket(p, POLLIN | POLLOUT, deadline_ns, err);
        if (rc != SL_OK)
            return rc;
        if (!PQconsumeInput(p->pg))
            return fail_result(p, NULL, err);
    }
    return left < 0 ? fail_result(p, NULL, err) : SL_OK;
}

static sl_rc next_result(pg_db *p, PGresult **out, int64_t deadline_ns, sl_err *err)
{
    *out = NULL;
    while (PQisBusy(p->pg)) {
        sl_rc rc = wait_socket(p, POLLIN, deadline_ns, err);
        if (rc != SL_OK)
            return rc;
        if (!PQconsumeInput(p->pg))
            return fail_result(p, NULL, err);
    }
    *out = PQgetResult(p->pg);
    return SL_OK;
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

static void statement_name(const sl_stmt *s, char name[32])
{
    snprintf(name, 32, "sluice_%d", s->index);
}

static bool send_prepare(pg_db *p, const sl_stmt *s)
{
    char name[32];
    Oid types[SL_STMT_MAX];
    statement_name(s, name);
    for (int i = 0; i < s->nparams; i++)
        types[i] = sl_pg_oid(s->params[i]);
    sl_buf_reset(&p->sql);
    sl_names_apply(p->names, s->text, &p->sql);
    return PQsendPrepare(p->pg, name, sl_buf_text(&p->sql), s->nparams, types);
}

static bool send_call(pg_db *p, const sl_call *c)
{
    char name[32];
    packed in;
    statement_name(c->stmt, name);
    pack(p, c, &in);
    return PQsendQueryPrepared(p->pg, name, in.n, in.values, in.lengths, in.formats, 1);
}

static bool send_all(pg_db *p, const sl_call *calls, size_t count, bool *prepares)
{
    for (size_t i = 0; i < count; i++) {
        const sl_stmt *s = calls[i].stmt;
        prepares[i] = !p->prepared[s->index];
        for (size_t j = 0; j < i && prepares[i]; j++)
            prepares[i] = calls[j].stmt != s; /* once is enough */
        if ((prepares[i] && !send_prepare(p, s)) || !send_call(p, &calls[i]))
            return false;
    }
    return PQpipelineSync(p->pg);
}

/* Reads the answer to one queued command, up to its end. rows: NULL for a preparation. */
static sl_rc read_answer(pg_db *p, sl_call *rows, int64_t deadline_ns, sl_rc sofar, sl_err *err)
{
    PGresult *res;
    sl_rc rc = next_result(p, &res, deadline_ns, err);
    if (rc != SL_OK)
        return rc;
    if (!res)
        return fail_result(p, NULL, err);
    if (sofar == SL_OK)
        rc = !succeeded(res) ? fail_result(p, res, err)
             : rows          ? give_rows(res, rows, err)
                             : SL_OK;
    PQclear(res);
    for (PGresult *more = NULL;; PQclear(more)) {
        sl_err ignored;
        sl_rc ended = next_result(p, &more, deadline_ns, rc == SL_OK ? err : &ignored);
        if (ended != SL_OK)
            return ended;
        if (!more)
            return sofar != SL_OK ? sofar : rc;
    }
}

/* The first failure is the one that is told; the rest of the pipeline is skipped by the server
 * and only read to its end. */
static sl_rc read_all(pg_db *p, sl_call *calls, size_t count, const bool *prepares,
                      int64_t deadline_ns, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t i = 0; i < count && PQstatus(p->pg) == CONNECTION_OK; i++) {
        if (prepares[i]) {
            rc = read_answer(p, NULL, deadline_ns, rc, err);
            p->prepared[calls[i].stmt->index] = rc == SL_OK;
        }
        rc = read_answer(p, &calls[i], deadline_ns, rc, err);
    }
    if (PQstatus(p->pg) != CONNECTION_OK)
        return rc != SL_OK ? rc : fail_result(p, NULL, err);
    PGresult *sync;
    sl_err ignored;
    sl_rc end = next_result(p, &sync, deadline_ns, rc == SL_OK ? err : &ignored);
    PQclear(sync);
    return rc != SL_OK ? rc : end;
}

static sl_rc run_pipeline(pg_db *p, sl_call *calls, size_t count, sl_err *err)
{
    enum { MOST = 16 };
    bool prepares[MOST];
    int64_t deadline_ns = sl_now_ns() + p->statement_ns;

    assert(count <= MOST);
    if (!PQenterPipelineMode(p->pg))
        return fail_result(p, NULL, err);
    if (!send_all(p, calls, count, prepares))
        return fail_result(p, NULL, err);
    sl_rc rc = flush(p, deadline_ns, err);
    if (rc == SL_OK)
        rc = read_all(p, calls, count, prepares, deadline_ns, err);
    if (PQexitPipelineMode(p->pg) || rc != SL_OK)
        return rc;
    return fail_result(p, NULL, err);
}

/* Nothing is expected to arrive now but the end, or a notice. */
static bool pg_alive(sl_db *db)
{
    PGconn *pg = pg_of(db)->pg;
    struct pollfd fd = { .fd = PQsocket(pg), .events = POLLIN };
    if (poll(&fd, 1, 0) == 0)
        return true;
    return PQconsumeInput(pg) && PQstatus(pg) == CONNECTION_OK && !PQisBusy(pg);
}

static void pg_rollback(sl_db *db)
{
    pg_db *p = pg_of(db);
    PGTransactionStatusType t = PQtransactionStatus(p->pg);
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
    PGresult *res = PQexecParams(p->pg, sl_buf_text(&p->sql), in.n, in.types, in.values,
                                 in.lengths, in.formats, 1);
    sl_rc rc = succeeded(res) ? give_rows(res, c, err) : fail_result(p, res, err);
    PQclear(res);
    return rc;
}

static sl_rc pg_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    pg_db *p = pg_of(db);
    if (!p->adopted) {
        sl_rc rc = run_pipeline(p, calls, count, err);
        if (rc != SL_OK)
            pg_rollback(db);
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
    if (!PQsendQuery(p->pg, sql))
        return fail_result(p, NULL, err);
    sl_rc rc = flush(p, deadline_ns, err);
    for (;;) {
        PGresult *res;
        sl_err later;
        sl_rc got = next_result(p, &res, deadline_ns, rc == SL_OK ? err : &later);
        if (got != SL_OK || !res)
            return rc == SL_OK ? got : rc;
        if (!succeeded(res) && rc == SL_OK)
            rc = fail_result(p, res, err);
        PQclear(res);
    }
}

/* ---- Connecting ---- */

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

/* libpq reads URLs only with the two slashes; "postgresql:" alone means: all from PG*
 * variables. */
static const char *conninfo_of(const char *url)
{
    return !strcmp(url, "postgresql:") || !strcmp(url, "postgres:") ? "" : url;
}

static bool has_many_hosts(const char *conninfo)
{
    bool many = false;
    PQconninfoOption *all = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *o = all; o && o->keyword; o++)
        if (!strncmp(o->keyword, "host", 4) && o->val && strchr(o->val, ','))
            many = true;
    PQconninfoFree(all);
    return many;
}

/* What the user wrote wins over what stands before it here: later keywords override, and an
 * empty value leaves the choice to the PG* variables. A dead peer is noticed by TCP, not after
 * two hours. */
static PGconn *start_connecting(const sl_dsn *dsn, bool many_hosts)
{
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%lld",
             (long long)((dsn->connect_ns + SL_SEC - 1) / SL_SEC));
    const char *attrs = many_hosts && !getenv("PGTARGETSESSIONATTRS") ? "read-write" : "";
    const char *timeout = getenv("PGCONNECT_TIMEOUT") ? "" : seconds;
    const char *const keywords[] = { "fallback_application_name",
                                     "client_encoding",
                                     "keepalives_idle",
                                     "keepalives_interval",
                                     "keepalives_count",
                                     "tcp_user_timeout",
                                     "connect_timeout",
                                     "target_session_attrs",
                                     "dbname",
                                     NULL };
    const char *const values[] = {
        dsn->app, "UTF8", "10", "5", "3", "30000", timeout, attrs, conninfo_of(dsn->url), NULL
    };
    return many_hosts ? PQconnectdbParams(keywords, values, 1)
                      : PQconnectStartParams(keywords, values, 1);
}

/* The user's own connect_timeout, in seconds, goes before the setting. */
static int64_t connect_limit_ns(PGconn *pg, int64_t setting_ns)
{
    long seconds = 0;
    PQconninfoOption *all = PQconninfo(pg);
    for (PQconninfoOption *o = all; o && o->keyword; o++)
        if (!strcmp(o->keyword, "connect_timeout") && o->val)
            seconds = strtol(o->val, NULL, 10);
    PQconninfoFree(all);
    bool ours = seconds <= 0 || seconds == (setting_ns + SL_SEC - 1) / SL_SEC;
    return ours ? setting_ns : seconds * SL_SEC;
}

static sl_rc no_answer(const pg_db *p, sl_err *err)
{
    return sl_fail(
        err, SL_AGAIN,
        "postgres: the server does not answer (host %s, port %s): gave up connecting\n"
        "hint: is it running and reachable? setting: connect_timeout",
        PQhost(p->pg), PQport(p->pg));
}

/* Our own loop, so that it ends on time and when told to stop. Not used with several hosts:
 * only libpq's own can give each of them its time. */
static sl_rc connect_by(pg_db *p, int64_t deadline_ns, sl_err *err)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    while (PQstatus(p->pg) != CONNECTION_BAD && want != PGRES_POLLING_OK &&
           want != PGRES_POLLING_FAILED) {
        sl_rc rc =
            wait_socket(p, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ns, err);
        if (rc != SL_OK)
            return rc == SL_STOPPED ? rc : no_answer(p, err);
        want = PQconnectPoll(p->pg);
    }
    return SL_OK;
}

static sl_rc check_connected(const pg_db *p, sl_err *err)
{
    if (PQstatus(p->pg) == CONNECTION_OK)
        return SL_OK;
    return sl_fail(err, SL_AGAIN, "postgres: cannot connect: %s", PQerrorMessage(p->pg));
}

static sl_rc check_server(pg_db *p, sl_err *err)
{
    int version = PQserverVersion(p->pg);
    if (version < OLDEST_SERVER)
        return sl_fail(
            err, SL_OPERATOR,
            "postgres: the server is version %s; Sluice needs PostgreSQL 13 or newer",
            PQparameterStatus(p->pg, "server_version"));
    const char *encoding = PQparameterStatus(p->pg, "server_encoding");
    if (!encoding || (strcmp(encoding, "UTF8") && strcmp(encoding, "SQL_ASCII")))
        return sl_fail(err, SL_OPERATOR,
                       "postgres: the database's encoding is %s; Sluice needs UTF8",
                       encoding ? encoding : "unknown");
    return SL_OK;
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
    sl_rc rc = sl_db_run1(&p->base, "session/open", (sl_val[]){ sl_text(sl_str_of(idle_ms)) },
                          note_standby, &standby, NULL, err);
    if (rc != SL_OK || !standby)
        return rc;
    return sl_fail(
        err, SL_AGAIN,
        "postgres: host %s, port %s is a standby and cannot be written to\nhint: name the "
        "primary, or all hosts of the cluster",
        PQhost(p->pg), PQport(p->pg));
}

static pg_db *new_db(PGconn *pg, bool adopted, const sl_names *names)
{
    pg_db *p = sl_alloc(sizeof *p + (size_t)sl_stmts_count * sizeof p->prepared[0]);
    p->base.ops = &sl_db_postgres;
    p->pg = pg;
    p->adopted = adopted;
    p->names = names;
    p->wake_fd = -1;
    return p;
}

/* libpq's own complaint may quote a part of the password. */
static sl_rc check_conninfo(const char *url, sl_err *err)
{
    if (sl_pg_url_is_torn(url))
        return sl_fail(
            err, SL_OPERATOR,
            "postgres: the URL cannot be read: what stands for host and port is none\n"
            "hint: in a user or password write @ as %%40, / as %%2F, : as %%3A, ? as %%3F");
    PQconninfoOption *all = PQconninfoParse(conninfo_of(url), NULL);
    PQconninfoFree(all);
    return all ? SL_OK
               : sl_fail(err, SL_OPERATOR,
                         "postgres: the connection string cannot be read\nhint: "
                         "postgresql://user@host:port/database?name=value, or name=value pairs "
                         "with "
                         "quotes around values that hold spaces");
}

/* libpq would print them: "relation exists, skipping". */
static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

static sl_rc pg_open(sl_db **out, const sl_dsn *dsn, sl_err *err)
{
    sl_rc rc = check_conninfo(dsn->url, err);
    if (rc != SL_OK)
        return rc;
    bool many = has_many_hosts(conninfo_of(dsn->url));
    PGconn *pg = start_connecting(dsn, many);
    if (!pg)
        return sl_fail(err, SL_AGAIN, "postgres: out of memory");
    pg_db *p = new_db(pg, false, dsn->names);
    p->statement_ns = dsn->statement_ns;
    p->wake_fd = dsn->wake_fd;
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    if (!many)
        rc = connect_by(p, sl_now_ns() + connect_limit_ns(pg, dsn->connect_ns), err);
    if (rc == SL_OK)
        rc = check_connected(p, err);
    p->stop_grace_ns = STOP_GRACE_NS;
    if (rc == SL_OK)
        rc = check_server(p, err);
    if (rc == SL_OK && PQsetnonblocking(pg, 1) != 0)
        rc = fail_result(p, NULL, err);
    if (rc == SL_OK)
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
    *out = &new_db(pg, true, names)->base;
    return SL_OK;
}

static void pg_close(sl_db *db)
{
    pg_db *p = pg_of(db);
    if (!p->adopted)
        PQfinish(p->pg);
    sl_buf_fini(&p->sql);
    sl_buf_fini(&p->params);
    free(p);
}

const sl_db_ops sl_db_postgres = {
    .name = "postgres",
    .example = "postgresql://user@host/database",
    .accepts = pg_accepts,
    .open = pg_open,
    .adopt = pg_adopt,
    .close = pg_close,
    .run = pg_run,
    .script = pg_script,
    .rollback = pg_rollback,
    .alive = pg_alive,
};
