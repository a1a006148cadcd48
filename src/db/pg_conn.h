/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL, by libpq: how it is made, how long it is waited for, and what its errors
 * mean. It is non-blocking, and every wait has an end: a server that never answers is a lost
 * connection, not a worker that hangs. Knows nothing of statements. */
#ifndef SL_DB_PG_CONN_H
#define SL_DB_PG_CONN_H

#include "db/db.h"

struct pg_result; /* libpq's PGconn and PGresult */
struct pg_conn;

typedef struct sl_pg_conn {
    struct pg_conn *pg;
    int wake_fd;
    int64_t stop_grace_ns; /* none while connecting */
    int64_t stop_by_ns;    /* 0, or a stop was seen: no wait goes on beyond this */
    bool notified;         /* since it was last waited for */
} sl_pg_conn;

/* PQfinish(c->pg) afterwards, also when it failed. */
SL_CHECK sl_rc sl_pg_connect(sl_pg_conn *c, const sl_dsn *dsn, sl_err *err);
/* Is the server still there, as far as can be told without asking it? */
bool sl_pg_alive(const sl_pg_conn *c);

/* Waits for a notification, for fd, or until then. */
SL_CHECK sl_rc sl_pg_await(sl_pg_conn *c, int fd, int64_t until_ns, bool *woken, sl_err *err);
/* Notes that notifications have come, and frees them. */
void sl_pg_note_notifies(sl_pg_conn *c);

/* The error of a result, or of the connection (NULL), by class: what is worth another try, what is to
 * be refused, what needs a human. */
sl_rc sl_pg_fail(const sl_pg_conn *c, const struct pg_result *res, sl_err *err);
SL_CHECK sl_rc sl_pg_flush(sl_pg_conn *c, int64_t deadline_ns, sl_err *err);
SL_CHECK sl_rc sl_pg_next(sl_pg_conn *c, struct pg_result **out, int64_t deadline_ns,
                          sl_err *err);

#endif
