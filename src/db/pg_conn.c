/* SPDX-License-Identifier: Apache-2.0 */
#include "db/pg_conn.h"

#include "core/clock.h"
#include "db/pg_url.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>

enum { OLDEST_SERVER = 130000 };

/* How long an answer is still waited for when a stop has been asked for: verdicts that are on
 * their way shall be written, a server that hangs shall not keep us. */
#define STOP_GRACE_NS (2 * SL_SEC)

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
sl_rc sl_pg_fail(const sl_pg_conn *c, const PGresult *res, sl_err *err)
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (!state || PQstatus(c->pg) == CONNECTION_BAD)
        return sl_fail(err, SL_AGAIN, "postgres: connection lost: %s",
                       text ? text : PQerrorMessage(c->pg));
    return sl_fail(err, class_of(state), "postgres: %s (SQLSTATE %s)%s", text ? text : "failed",
                   state, advice_for(state));
}

/* ---- Waiting ---- */

static sl_rc no_time_left(const sl_pg_conn *c, sl_err *err)
{
    return c->stop_by_ns
               ? sl_fail(err, SL_STOPPED, "postgres: stopped while waiting for an answer")
               : sl_fail(err, SL_AGAIN, "postgres: no answer within the time-out");
}

/* Waits until the socket is ready; SL_AGAIN at the deadline, SL_STOPPED soon after being told to
 * stop. */
static sl_rc wait_socket(sl_pg_conn *c, short events, int64_t deadline_ns, sl_err *err)
{
    /* A negative descriptor is ignored. */
    struct pollfd fds[2] = {
        { .fd = PQsocket(c->pg), .events = events },
        { .fd = c->stop_by_ns ? -1 : c->wake_fd, .events = POLLIN },
    };
    for (;;) {
        int64_t until =
            c->stop_by_ns && c->stop_by_ns < deadline_ns ? c->stop_by_ns : deadline_ns;
        int64_t left = until - sl_now_ns();
        if (left <= 0)
            return no_time_left(c, err);
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
            return sl_fail(err, SL_AGAIN, "postgres: poll: %s", strerror(errno));
        if (fds[0].revents)
            return SL_OK;
        if (fds[1].revents) {
            c->stop_by_ns = sl_now_ns() + c->stop_grace_ns;
            fds[1] = (struct pollfd){ .fd = -1 };
        }
    }
}

/* Sends all that is queued, reading meanwhile: a server that cannot write to us does not read.
 */
sl_rc sl_pg_flush(sl_pg_conn *c, int64_t deadline_ns, sl_err *err)
{
    int left;
    while ((left = PQflush(c->pg)) == 1) {
        sl_rc rc = wait_socket(c, POLLIN | POLLOUT, deadline_ns, err);
        if (rc != SL_OK)
            return rc;
        if (!PQconsumeInput(c->pg))
            return sl_pg_fail(c, NULL, err);
    }
    return left < 0 ? sl_pg_fail(c, NULL, err) : SL_OK;
}

sl_rc sl_pg_next(sl_pg_conn *c, PGresult **out, int64_t deadline_ns, sl_err *err)
{
    *out = NULL;
    while (PQisBusy(c->pg)) {
        sl_rc rc = wait_socket(c, POLLIN, deadline_ns, err);
        if (rc != SL_OK)
            return rc;
        if (!PQconsumeInput(c->pg))
            return sl_pg_fail(c, NULL, err);
    }
    *out = PQgetResult(c->pg);
    return SL_OK;
}

void sl_pg_note_notifies(sl_pg_conn *c)
{
    for (PGnotify *n = PQnotifies(c->pg); n; n = PQnotifies(c->pg)) {
        PQfreemem(n);
        c->notified = true;
    }
}

sl_rc sl_pg_await(sl_pg_conn *c, int fd, int64_t until_ns, bool *woken, sl_err *err)
{
    struct pollfd fds[] = { { .fd = PQsocket(c->pg), .events = POLLIN },
                            { .fd = fd, .events = POLLIN } };
    for (;;) {
        if (!PQconsumeInput(c->pg))
            return sl_pg_fail(c, NULL, err);
        sl_pg_note_notifies(c);
        *woken = c->notified;
        c->notified = false;
        int64_t left = until_ns - sl_now_ns();
        if (*woken || left <= 0 || fds[1].revents)
            return SL_OK;
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
            return sl_fail(err, SL_AGAIN, "postgres: poll: %s", strerror(errno));
    }
}

bool sl_pg_alive(const sl_pg_conn *c)
{
    if (PQstatus(c->pg) != CONNECTION_OK) /* and it has no socket any more */
        return false;
    struct pollfd fd = { .fd = PQsocket(c->pg), .events = POLLIN };
    while (poll(&fd, 1, 0) != 0) /* whoever hangs up says why before that */
        if (!PQconsumeInput(c->pg) || PQstatus(c->pg) != CONNECTION_OK || PQisBusy(c->pg))
            return false;
    return true;
}

/* ---- Connecting ---- */

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

static sl_rc no_answer(const sl_pg_conn *c, sl_err *err)
{
    return sl_fail(
        err, SL_AGAIN,
        "postgres: the server does not answer (host %s, port %s): gave up connecting\n"
        "hint: is it running and reachable? setting: connect_timeout",
        PQhost(c->pg), PQport(c->pg));
}

/* Our own loop, so that it ends on time and when told to stop. Not used with several hosts:
 * only libpq's own can give each of them its time. */
static sl_rc connect_by(sl_pg_conn *c, int64_t deadline_ns, sl_err *err)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    while (PQstatus(c->pg) != CONNECTION_BAD && want != PGRES_POLLING_OK &&
           want != PGRES_POLLING_FAILED) {
        sl_rc rc =
            wait_socket(c, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ns, err);
        if (rc != SL_OK)
            return rc == SL_STOPPED ? rc : no_answer(c, err);
        want = PQconnectPoll(c->pg);
    }
    return SL_OK;
}

static sl_rc check_connected(const sl_pg_conn *c, sl_err *err)
{
    if (PQstatus(c->pg) == CONNECTION_OK)
        return SL_OK;
    return sl_fail(err, SL_AGAIN, "postgres: cannot connect: %s", PQerrorMessage(c->pg));
}

static sl_rc check_server(sl_pg_conn *c, sl_err *err)
{
    int version = PQserverVersion(c->pg);
    if (version < OLDEST_SERVER)
        return sl_fail(
            err, SL_OPERATOR,
            "postgres: the server is version %s; Sluice needs PostgreSQL 13 or newer",
            PQparameterStatus(c->pg, "server_version"));
    const char *encoding = PQparameterStatus(c->pg, "server_encoding");
    if (!encoding || (strcmp(encoding, "UTF8") && strcmp(encoding, "SQL_ASCII")))
        return sl_fail(err, SL_OPERATOR,
                       "postgres: the database's encoding is %s; Sluice needs UTF8",
                       encoding ? encoding : "unknown");
    return SL_OK;
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

sl_rc sl_pg_connect(sl_pg_conn *c, const sl_dsn *dsn, sl_err *err)
{
    *c = (sl_pg_conn){ .wake_fd = dsn->wake_fd };
    sl_rc rc = check_conninfo(dsn->url, err);
    if (rc != SL_OK)
        return rc;
    bool many = has_many_hosts(conninfo_of(dsn->url));
    c->pg = start_connecting(dsn, many);
    if (!c->pg)
        return sl_fail(err, SL_AGAIN, "postgres: out of memory");
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    if (!many)
        rc = connect_by(c, sl_now_ns() + connect_limit_ns(c->pg, dsn->connect_ns), err);
    if (rc == SL_OK)
        rc = check_connected(c, err);
    c->stop_grace_ns = dsn->hasty ? 0 : STOP_GRACE_NS;
    if (rc == SL_OK)
        rc = check_server(c, err);
    if (rc == SL_OK && PQsetnonblocking(c->pg, 1) != 0)
        rc = sl_pg_fail(c, NULL, err);
    return rc;
}
