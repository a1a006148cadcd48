/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Your own row and a message, in one transaction of yours on SQLite: either both are there
 * afterwards, or neither.
 *
 *   sluice init --db sqlite:shop.db
 *   push_sqlite shop.db 9182
 *
 * Places order 9182, then another one which is rolled back: its message was never there.
 *
 *   cc push_sqlite.c $(pkg-config --cflags --libs sluice sqlite3)
 */
#include <sluice/sluice.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    return false;
}

/* The program's own data: it knows nothing of Sluice. */
static bool insert_order(sqlite3 *db, const char *id)
{
    sqlite3_stmt *st = NULL;
    bool good = sqlite3_prepare_v2(db, "INSERT INTO orders (id, paid) VALUES (?, 1)", -1, &st,
                                   NULL) == SQLITE_OK &&
                sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(st) == SQLITE_DONE;
    if (!good)
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    sqlite3_finalize(st);
    return good;
}

/* The message: on the same connection, and so in the same transaction. Nothing is sent now. */
static bool push_paid(sqlite3 *db, const char *id)
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
    if (sl_push_sqlite(db, NULL, &draft, 1, NULL, &err) == SL_OK) /* NULL: table `outbox` */
        return true;
    fprintf(stderr, "%s\n", err.text);
    return false;
}

/* `end` is COMMIT or ROLLBACK. IMMEDIATE, because a transaction that begins as a reader may be
 * refused when it turns into a writer while a node is at work, whatever the timeout. */
static bool place_order(sqlite3 *db, const char *id, const char *end)
{
    if (!sql(db, "BEGIN IMMEDIATE"))
        return false;
    bool good = insert_order(db, id) && push_paid(db, id);
    return sql(db, good ? end : "ROLLBACK") && good;
}

int main(int argc, char **argv)
{
    sqlite3 *db;
    char other[64];
    if (argc != 3) {
        fprintf(stderr, "usage: push_sqlite FILE ORDER\n");
        return 2;
    }
    bool good = sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK;
    if (!good)
        fprintf(stderr, "%s: %s\n", argv[1], sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 10000); /* wait for other writers */
    snprintf(other, sizeof other, "%.50s-cancelled", argv[2]);

    good = good &&
           sql(db, "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, paid int)") &&
           place_order(db, argv[2], "COMMIT") && place_order(db, other, "ROLLBACK");
    sqlite3_close(db);
    return good ? 0 : 1;
}
