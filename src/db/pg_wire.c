/* SPDX-License-Identifier: Apache-2.0 */
#include "db/pg_wire.h"

#include <assert.h>
#include <endian.h>

/* PostgreSQL counts from 2000-01-01. */
#define PG_EPOCH_US INT64_C(946684800000000)

unsigned sl_pg_oid(sl_type type)
{
    static const unsigned oids[] = {
        [SL_T_INT8] = PG_INT8,        [SL_T_TEXT] = PG_TEXT,
        [SL_T_BYTES] = PG_BYTEA,      [SL_T_TIME] = PG_TIMESTAMPTZ,
        [SL_T_BOOL] = PG_BOOL,        [SL_T_INT8S] = PG_INT8_ARRAY,
        [SL_T_TEXTS] = PG_TEXT_ARRAY, [SL_T_BYTESS] = PG_BYTEA_ARRAY,
    };
    return oids[type];
}

static void put32(sl_buf *out, uint32_t v)
{
    sl_buf_put(out, &(uint32_t){ htobe32(v) }, 4);
}

static void put64(sl_buf *out, int64_t v)
{
    sl_buf_put(out, &(uint64_t){ htobe64((uint64_t)v) }, 8);
}

static void put_array_head(sl_buf *out, unsigned element_oid, size_t count)
{
    put32(out, count ? 1 : 0); /* dimensions */
    put32(out, 1);             /* may hold NULLs */
    put32(out, element_oid);
    if (count) {
        put32(out, (uint32_t)count);
        put32(out, 1); /* lower bound */
    }
}

static void put_strs(sl_buf *out, unsigned element_oid, const sl_str *v, size_t n)
{
    put_array_head(out, element_oid, n);
    for (size_t i = 0; i < n; i++) {
        put32(out, v[i].p ? (uint32_t)v[i].n : UINT32_MAX);
        if (v[i].p)
            sl_buf_put(out, v[i].p, v[i].n);
    }
}

static void put_ints(sl_buf *out, const int64_t *v, size_t n)
{
    put_array_head(out, PG_INT8, n);
    for (size_t i = 0; i < n; i++) {
        put32(out, 8);
        put64(out, v[i]);
    }
}

void sl_pg_encode(sl_buf *out, const sl_val *v)
{
    assert(!v->null);
    switch (v->type) {
    case SL_T_INT8:
        put64(out, v->i);
        break;
    case SL_T_TIME:
        put64(out, v->i - PG_EPOCH_US);
        break;
    case SL_T_BOOL:
        sl_buf_putc(out, v->i ? 1 : 0);
        break;
    case SL_T_TEXT:
    case SL_T_BYTES:
        sl_buf_put(out, v->s.p, v->s.n);
        break;
    case SL_T_INT8S:
        put_ints(out, v->ints.v, v->ints.n);
        break;
    case SL_T_TEXTS:
        put_strs(out, PG_TEXT, v->strs.v, v->strs.n);
        break;
    case SL_T_BYTESS:
        put_strs(out, PG_BYTEA, v->strs.v, v->strs.n);
        break;
    }
}

static bool decode_int(sl_val *out, const char *bytes, size_t n)
{
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (n) {
    case 2:
        memcpy(&h, bytes, 2);
        out->i = (int16_t)be16toh(h);
        return true;
    case 4:
        memcpy(&w, bytes, 4);
        out->i = (int32_t)be32toh(w);
        return true;
    case 8:
        memcpy(&d, bytes, 8);
        out->i = (int64_t)be64toh(d);
        return true;
    default:
        return false;
    }
}

bool sl_pg_reads(sl_type want, unsigned oid)
{
    switch (want) {
    case SL_T_INT8:
        return oid == PG_INT2 || oid == PG_INT4 || oid == PG_INT8;
    case SL_T_BOOL:
        return oid == PG_BOOL;
    case SL_T_TIME:
        return oid == PG_TIMESTAMPTZ || oid == PG_TIMESTAMP;
    case SL_T_TEXT:
    case SL_T_BYTES:
        return oid == PG_TEXT || oid == PG_VARCHAR || oid == PG_BPCHAR || oid == PG_NAME ||
               oid == PG_JSON || oid == PG_JSONB || oid == PG_BYTEA;
    default:
        return false;
    }
}

static bool decode_bytes(sl_val *out, unsigned oid, const char *bytes, size_t n)
{
    out->s = (sl_str){ bytes, n };
    if (oid != PG_JSONB)
        return true;
    /* A version byte, then text. */
    if (n < 1 || bytes[0] != 1)
        return false;
    out->s = (sl_str){ bytes + 1, n - 1 };
    return true;
}

bool sl_pg_decode(sl_val *out, sl_type want, unsigned oid, const char *bytes, size_t n)
{
    *out = (sl_val){ .type = want };
    if (!sl_pg_reads(want, oid))
        return false;
    switch (want) {
    case SL_T_INT8:
        return decode_int(out, bytes, n);
    case SL_T_BOOL:
        out->i = n == 1 && bytes[0];
        return n == 1;
    case SL_T_TIME:
        if (!decode_int(out, bytes, n))
            return false;
        if (__builtin_add_overflow(out->i, PG_EPOCH_US, &out->i))
            out->i = INT64_MAX; /* 'infinity' */
        return true;
    default:
        return decode_bytes(out, oid, bytes, n);
    }
}
