/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain libpq for the ceilings of PostgreSQL: a session as the program has it, statements
 * prepared under the names of their files, binary parameters and results, one round trip for
 * each call.
 */
#ifndef BENCH_CEILING_PG_H
#define BENCH_CEILING_PG_H

#include "ceiling_common.h"

#include <libpq-fe.h>

/* From PostgreSQL's pg_type: these never change. */
enum { OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };
enum { OID_INT4_ARRAY = 1007, OID_TEXT_ARRAY = 1009, OID_INT8_ARRAY = 1016 };

/* An array as it goes over the wire. */
typedef struct pg_array {
    char *bytes;
    size_t used, room;
    uint32_t n;
} pg_array;

void pg_array_init(pg_array *a, Oid element);
void pg_array_clear(pg_array *a);
void pg_array_add(pg_array *a, const void *bytes, int n);
void pg_array_add32(pg_array *a, int32_t v);
void pg_array_add64(pg_array *a, int64_t v);
void pg_array_free(pg_array *a);

/* All values of one column, in the byte order in which they came. */
void pg_array_fill(pg_array *a, const PGresult *rows, int column);

/* A parameter: an array, bytes, or a number if both are none. */
typedef struct pg_param {
    const pg_array *array;
    const char *bytes;
    int64_t number;
} pg_param;

PGconn *pg_open(const bench_options *o);

/* DIR/postgres/FILE.sql as the statement AS. */
void pg_prepare(PGconn *pg, const bench_options *o, const char *as, const char *file,
                int nparams, const Oid *types);

/* The caller clears the result. A statement that fails ends the program. */
PGresult *pg_call(PGconn *pg, const char *statement, int n, const pg_param *params);

/* A statement without parameters whose result nobody wants. */
void pg_run(PGconn *pg, const char *statement);

/* A DELETE that must hit exactly n rows. */
void pg_delete(PGconn *pg, const char *statement, int n, const pg_param *params, uint32_t rows);

int64_t pg_int8(const PGresult *rows, int row, int column);
int32_t pg_int4(const PGresult *rows, int row, int column);

/* Looks at each value of each row, as anyone who wants to send it must. */
void pg_read(const PGresult *rows);

#endif
