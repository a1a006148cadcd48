/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain libpq for the ceilings of PostgreSQL: a session as the program has it, statements
 * prepared under the names of their files, binary parameters and results, one round trip for
 * each call.
 */
#ifndef SL_BENCH_BARE_PG_H
#define SL_BENCH_BARE_PG_H

#include "bench/ceiling.h"

#include <libpq-fe.h>

/* From PostgreSQL's sl_bare_type: these never change. */
enum { OID_INT8 = 20, OID_TEXT = 25 };
enum { OID_TEXT_ARRAY = 1009, OID_INT8_ARRAY = 1016 };

/* An array as it goes over the wire. */
typedef struct sl_bare_array {
    char *bytes;
    size_t used, room;
    uint32_t n;
} sl_bare_array;

void sl_bare_array_init(sl_bare_array *a, Oid element);
void sl_bare_array_clear(sl_bare_array *a);
void sl_bare_array_add(sl_bare_array *a, const void *bytes, int n);
void sl_bare_array_add64(sl_bare_array *a, int64_t v);
void sl_bare_array_free(sl_bare_array *a);

/* All values of one column, in the byte order in which they came. */
void sl_bare_array_fill(sl_bare_array *a, const PGresult *rows, int column);

/* A parameter: an array, bytes, or a number if both are none. */
typedef struct sl_bare_param {
    const sl_bare_array *array;
    const char *bytes;
    int64_t number;
} sl_bare_param;

PGconn *sl_bare_open(const sl_ceiling *o);

/* DIR/postgres/FILE.sql as the statement AS. */
void sl_bare_prepare(PGconn *pg, const sl_ceiling *o, const char *as, const char *file,
                     int nparams, const Oid *types);

/* The caller clears the result. A statement that fails ends the program. */
PGresult *sl_bare_call(PGconn *pg, const char *statement, int n, const sl_bare_param *params);

/* A statement without parameters whose result nobody wants. */
void sl_bare_run(PGconn *pg, const char *statement);

/* A DELETE that must hit exactly n rows. */
void sl_bare_delete(PGconn *pg, const char *statement, int n, const sl_bare_param *params,
                    uint32_t rows);

int64_t sl_bare_int8(const PGresult *rows, int row, int column);

/* Looks at each value of each row, as anyone who wants to send it must. */
void sl_bare_read(const PGresult *rows);

#endif
