/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a client woken by notifications can do: LISTEN, wait for the socket, SELECT what is new,
 * append a line for each to a file. It claims nothing and settles nothing.
 *
 *     listen CONNINFO CHANNEL TABLE FILE
 */
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what, PGconn *pg)
{
    fprintf(stderr, "listen: %s: %s", what, pg ? PQerrorMessage(pg) : "");
    exit(1);
}

static void append_new(PGconn *pg, int file, char last[32])
{
    const char *values[] = { last };
    PGresult *rows = PQexecPrepared(pg, "new", 1, values, NULL, NULL, 0);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK)
        die("select", pg);
    for (int i = 0; i < PQntuples(rows); i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "{\"id\":%s}\n", PQgetvalue(rows, i, 0));
        if (write(file, line, (size_t)n) != n)
            die("write", NULL);
        snprintf(last, 32, "%s", PQgetvalue(rows, i, 0));
    }
    PQclear(rows);
}

int main(int argc, char **argv)
{
    char sql[256];
    char last[32] = "0";
    if (argc != 5)
        die("usage: listen CONNINFO CHANNEL TABLE FILE\n", NULL);
    PGconn *pg = PQconnectdb(argv[1]);
    int file = open(argv[4], O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (PQstatus(pg) != CONNECTION_OK || file < 0)
        die("open", pg);
    snprintf(sql, sizeof sql, "SELECT id, payload FROM %s WHERE id > $1::bigint ORDER BY id",
             argv[3]);
    PQclear(PQprepare(pg, "new", sql, 1, NULL));
    snprintf(sql, sizeof sql, "LISTEN %s", argv[2]);
    PQclear(PQexec(pg, sql));
    puts("listening");
    fflush(stdout);
    for (;;) {
        struct pollfd fd = { .fd = PQsocket(pg), .events = POLLIN };
        PGnotify *n;
        poll(&fd, 1, -1);
        if (!PQconsumeInput(pg))
            die("connection", pg);
        int any = 0;
        while ((n = PQnotifies(pg))) {
            PQfreemem(n);
            any = 1;
        }
        if (any)
            append_new(pg, file, last);
    }
}
