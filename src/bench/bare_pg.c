/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bare_pg.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY_HEAD = 20, ARRAY_COUNT_AT = 12, PARAMS_MAX = 8 };

/* ---- Arrays: a head of five words, and a length before each value ---- */

static void put32(char *at, uint32_t v)
{
    memcpy(at, &(uint32_t){ htobe32(v) }, 4);
}

void sl_bare_array_init(sl_bare_array *a, Oid element)
{
    *a = (sl_bare_array){ .room = 4096, .bytes = malloc(4096) };
    if (!a->bytes)
        sl_bare_die("out of memory");
    put32(a->bytes, 1); /* dimensions */
    put32(a->bytes + 4, 0);
    put32(a->bytes + 8, element);
    put32(a->bytes + 16, 1); /* lower bound */
    sl_bare_array_clear(a);
}

void sl_bare_array_clear(sl_bare_array *a)
{
    a->n = 0;
    a->used = ARRAY_HEAD;
    put32(a->bytes + ARRAY_COUNT_AT, 0);
}

void sl_bare_array_add(sl_bare_array *a, const void *bytes, int n)
{
    size_t need = a->used + 4 + (size_t)n;
    if (need > a->room) {
        a->room = 2 * need;
        a->bytes = realloc(a->bytes, a->room);
        if (!a->bytes)
            sl_bare_die("out of memory");
    }
    put32(a->bytes + a->used, (uint32_t)n);
    memcpy(a->bytes + a->used + 4, bytes, (size_t)n);
    a->used = need;
    put32(a->bytes + ARRAY_COUNT_AT, ++a->n);
}

void sl_bare_array_add64(sl_bare_array *a, int64_t v)
{
    sl_bare_array_add(a, &(uint64_t){ htobe64((uint64_t)v) }, 8);
}

void sl_bare_array_fill(sl_bare_array *a, const PGresult *rows, int column)
{
    sl_bare_array_clear(a);
    for (int i = 0; i < PQntuples(rows); i++)
        sl_bare_array_add(a, PQgetvalue(rows, i, column), PQgetlength(rows, i, column));
}

void sl_bare_array_free(sl_bare_array *a)
{
    free(a->bytes);
}

/* ---- Sessions and statements ---- */

static PGresult *check(PGconn *pg, PGresult *res)
{
    ExecStatusType s = PQresultStatus(res);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
        sl_bare_die("%s", PQerrorMessage(pg));
    return res;
}

PGconn *sl_bare_open(const sl_ceiling *o)
{
    PGconn *pg = PQconnectdb(o->db);
    if (PQstatus(pg) != CONNECTION_OK)
        sl_bare_die("%s", PQerrorMessage(pg));
    /* The program's settings for a session, since plans depend on them. */
    char *sql = sl_ceiling_sql(o, "session/open");
    PQclear(
        check(pg, PQexecParams(pg, sql, 2, NULL, (const char *[]){ "0", "force_generic_plan" },
                               NULL, NULL, 1)));
    free(sql);
    return pg;
}

void sl_bare_prepare(PGconn *pg, const sl_ceiling *o, const char *as, const char *file,
                     int nparams, const Oid *types)
{
    char *sql = sl_ceiling_sql(o, file);
    PQclear(check(pg, PQprepare(pg, as, sql, nparams, types)));
    free(sql);
}

PGresult *sl_bare_call(PGconn *pg, const char *statement, int n, const sl_bare_param *params)
{
    const char *values[PARAMS_MAX] = { 0 };
    int lengths[PARAMS_MAX] = { 0 };
    uint64_t numbers[PARAMS_MAX];
    const int formats[PARAMS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    if (n > PARAMS_MAX)
        sl_bare_die("%s has too many parameters", statement);
    for (int i = 0; i < n; i++) {
        const sl_bare_param *p = &params[i];
        numbers[i] = htobe64((uint64_t)p->number);
        values[i] = p->array ? p->array->bytes : p->bytes ? p->bytes : (char *)&numbers[i];
        lengths[i] = (int)(p->array ? p->array->used : p->bytes ? strlen(p->bytes) : 8);
    }
    return check(pg, PQexecPrepared(pg, statement, n, values, lengths, formats, 1));
}

void sl_bare_run(PGconn *pg, const char *statement)
{
    PQclear(sl_bare_call(pg, statement, 0, NULL));
}

void sl_bare_delete(PGconn *pg, const char *statement, int n, const sl_bare_param *params,
                    uint32_t rows)
{
    PGresult *res = sl_bare_call(pg, statement, n, params);
    if (strtoul(PQcmdTuples(res), NULL, 10) != rows)
        sl_bare_die("%s of %u messages deleted", PQcmdTuples(res), rows);
    PQclear(res);
}

/* ---- Results ---- */

int64_t sl_bare_int8(const PGresult *rows, int row, int column)
{
    uint64_t v;
    memcpy(&v, PQgetvalue(rows, row, column), 8);
    return (int64_t)be64toh(v);
}

void sl_bare_read(const PGresult *rows)
{
    static _Thread_local volatile int seen;
    for (int r = 0; r < PQntuples(rows); r++)
        for (int c = 0; c < PQnfields(rows); c++)
            seen += PQgetlength(rows, r, c) + *PQgetvalue(rows, r, c);
    (void)seen;
}
