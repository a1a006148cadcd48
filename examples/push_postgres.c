/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Your own row and a message, in one transaction of yours on PostgreSQL: either both are there
 * afterwards, or neither.
 *
 *   sluice init --db postgresql:///shop
 *   push_postgres postgresql:///shop 9182
 *
 * Places order 9182, then another one which is rolled back: its message was never there.
 *
 *   cc push_postgres.c $(pkg-config --cflags --libs sluice libpq)
 */
#include <libpq-fe.h>
#include <sluice/sluice.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool sql(PGconn *conn, const char *text)
{
    PGresult *res = PQexec(conn, text);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK;
    if (!good)
        fprintf(stderr, "%s", PQresultErrorMessage(res));
    PQclear(res);
    return good;
}

/* The program's own data: it knows nothing of Sluice. */
static bool insert_order(PGconn *conn, const char *id)
{
    PGresult *res = PQexecParams(conn, "INSERT INTO orders (id, paid) VALUES ($1, true)", 1,
                                 NULL, &id, NULL, NULL, 0);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK;
    if (!good)
        fprintf(stderr, "%s", PQresultErrorMessage(res));
    PQclear(res);
    return good;
}

/* The message: on the same connection, and so in the same transaction. Nothing is sent now. */
static bool push_paid(PGconn *conn, const char *id)
{
    sl_err err = { 0 };
    char key[64];
    snprintf(key, sizeof key, "order:%s", id);
    sl_draft draft = {
        .topic = "orders",
        .key = key, /* messages of one order arrive in order */
        .key_bytes = strlen(key),
        .type = "paid",
        .payload = "{\"paid\":true}",
        .payload_bytes = strlen("{\"paid\":true}"),
    };
    if (sl_push_pg(conn, NULL, &draft, 1, NULL, &err) == SL_OK) /* NULL: table `outbox` */
        return true;
    fprintf(stderr, "%s\n", err.text);
    return false;
}

/* `end` is COMMIT or ROLLBACK. After a failure PostgreSQL makes a rollback of either. */
static bool place_order(PGconn *conn, const char *id, const char *end)
{
    bool good = sql(conn, "BEGIN") && insert_order(conn, id) && push_paid(conn, id);
    return sql(conn, good ? end : "ROLLBACK") && good;
}

int main(int argc, char **argv)
{
    char other[64];
    if (argc != 3) {
        fprintf(stderr, "usage: push_postgres CONNINFO ORDER\n");
        return 2;
    }
    PGconn *conn = PQconnectdb(argv[1]);
    bool good = PQstatus(conn) == CONNECTION_OK;
    if (!good)
        fprintf(stderr, "%s", PQerrorMessage(conn));
    snprintf(other, sizeof other, "%.50s-cancelled", argv[2]);

    good = good && sql(conn, "SET client_min_messages = warning") &&
           sql(conn, "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, paid boolean)") &&
           place_order(conn, argv[2], "COMMIT") && place_order(conn, other, "ROLLBACK");
    PQfinish(conn);
    return good ? 0 : 1;
}
