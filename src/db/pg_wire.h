/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's binary formats: values on their way in, and columns on their way out. Knows the
 * wire, not libpq. */
#ifndef SL_DB_PG_WIRE_H
#define SL_DB_PG_WIRE_H

#include "db/db.h"

/* Type oids, from the server's catalogue; they never change. */
enum {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_NAME = 19,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_JSON = 114,
    PG_BPCHAR = 1042,
    PG_VARCHAR = 1043,
    PG_TIMESTAMP = 1114,
    PG_TIMESTAMPTZ = 1184,
    PG_JSONB = 3802,
    PG_BYTEA_ARRAY = 1001,
    PG_TEXT_ARRAY = 1009,
    PG_INT8_ARRAY = 1016
};

/* The oid that a parameter of this type is sent as. */
unsigned sl_pg_oid(sl_type type);

/* Appends the value in binary form. */
void sl_pg_encode(sl_buf *out, const sl_val *v);

/* Can a column of that type be read as the type that a statement declares? */
bool sl_pg_reads(sl_type want, unsigned oid);

/* Reads a column of any of the types above as the type that the statement declares. The value
 * borrows the bytes. false: the two do not go together. */
bool sl_pg_decode(sl_val *out, sl_type want, unsigned oid, const char *bytes, size_t n);

#endif
