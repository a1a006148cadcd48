/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors come from a PostgreSQL 15, by COPY ... WITH (FORMAT binary); but that arrays
 * always say that they may hold NULLs. */
#include "db/pg_wire.h"

#include "unit/unit.h"

/* Encodes, and compares with bytes that are given as a string literal. */
#define expect_bytes(v, literal) expect_encoded(v, literal, sizeof(literal) - 1)

static void expect_encoded(sl_val v, const char *want, size_t n)
{
    sl_buf out = { 0 };
    sl_buf_puts(&out, "before");
    sl_pg_encode(&out, &v);
    assert_int_equal(out.n, strlen("before") + n); /* it appends */
    assert_memory_equal(out.p + strlen("before"), want, n);
    sl_buf_fini(&out);
}

static sl_val timed(int64_t us)
{
    return (sl_val){ .type = SL_T_TIME, .i = us };
}

static void each_type_has_its_oid(void **state)
{
    (void)state;
    static const unsigned oids[] = {
        [SL_T_INT8] = 20, [SL_T_TEXT] = 25,    [SL_T_BYTES] = 17,   [SL_T_TIME] = 1184,
        [SL_T_BOOL] = 16, [SL_T_INT8S] = 1016, [SL_T_TEXTS] = 1009, [SL_T_BYTESS] = 1001,
    };
    for (size_t i = 0; i < COUNT(oids); i++)
        assert_int_equal(sl_pg_oid((sl_type)i), oids[i]);
}

static void single_values_are_encoded(void **state)
{
    (void)state;
    expect_bytes(sl_int(0), "\0\0\0\0\0\0\0\0");
    expect_bytes(sl_int(1), "\0\0\0\0\0\0\0\x01");
    expect_bytes(sl_int(-2), "\xff\xff\xff\xff\xff\xff\xff\xfe");
    expect_bytes(sl_int(INT64_MAX), "\x7f\xff\xff\xff\xff\xff\xff\xff");
    expect_bytes(sl_int(INT64_MIN), "\x80\0\0\0\0\0\0\0");
    expect_bytes(sl_text(SL_STR("h\xc3\xa9")), "h\xc3\xa9");
    expect_bytes(sl_text(SL_STR("")), "");
    expect_bytes(((sl_val){ .type = SL_T_BYTES, .s = SL_STR("a\0b") }), "a\0b");
    expect_bytes(((sl_val){ .type = SL_T_BOOL, .i = 1 }), "\x01");
    expect_bytes(((sl_val){ .type = SL_T_BOOL, .i = 0 }), "\0");
    expect_bytes(timed(946684800000000), "\0\0\0\0\0\0\0\0"); /* 2000-01-01 */
    /* 2026-03-04 05:06:07.000008+00 */
    expect_bytes(timed(1772600767000008), "\x00\x02\xef\x2a\x8b\xd3\xcd\xc8");
    expect_bytes(timed(0), "\xff\xfc\xa2\xfe\xc4\xc8\x20\x00"); /* 1970-01-01 */
}

static void arrays_of_numbers_are_encoded(void **state)
{
    (void)state;
    expect_bytes(sl_ints((int64_t[]){ 7, -1 }, 2),
                 "\0\0\0\x01\0\0\0\x01\0\0\0\x14\0\0\0\x02\0\0\0\x01"
                 "\0\0\0\x08\0\0\0\0\0\0\0\x07"
                 "\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff");
    expect_bytes(sl_ints(NULL, 0), "\0\0\0\0\0\0\0\x01\0\0\0\x14");
}

static void arrays_of_text_hold_nulls(void **state)
{
    (void)state;
    sl_str v[] = { SL_STR("ab"), SL_NONE, SL_STR("") };
    expect_bytes(sl_texts(v, 3), "\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x03\0\0\0\x01"
                                 "\0\0\0\x02"
                                 "ab"
                                 "\xff\xff\xff\xff"
                                 "\0\0\0\0");
    expect_bytes(sl_texts(NULL, 0), "\0\0\0\0\0\0\0\x01\0\0\0\x19");
    expect_bytes(sl_texts(&v[1], 1),
                 "\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff");
}

static void arrays_of_bytes_are_encoded(void **state)
{
    (void)state;
    sl_str v[] = { SL_STR("\0\xff") };
    expect_bytes(sl_bytess(v, 1), "\0\0\0\x01\0\0\0\x01\0\0\0\x11\0\0\0\x01\0\0\0\x01"
                                  "\0\0\0\x02\0\xff");
    expect_bytes(sl_bytess(NULL, 0), "\0\0\0\0\0\0\0\x01\0\0\0\x11");
}

static void encode_null(void)
{
    sl_buf out = { 0 };
    sl_val v = { .type = SL_T_TEXT, .null = true };
    sl_pg_encode(&out, &v);
}

/* A NULL is no bytes at all, which is the caller's to say. */
static void null_cannot_be_encoded(void **state)
{
    (void)state;
    assert_true(aborts(encode_null));
}

/* ---- Decoding ---- */

#define decode(want, oid, literal) decoded(want, oid, literal, sizeof(literal) - 1)

static sl_val decoded(sl_type want, unsigned oid, const char *bytes, size_t n)
{
    sl_val v = { .null = true };
    if (!sl_pg_decode(&v, want, oid, bytes, n))
        fail_msg("type %d from oid %u is refused", (int)want, oid);
    assert_int_equal(v.type, want);
    assert_false(v.null);
    return v;
}

static void expect_str(sl_val v, const char *want, size_t n)
{
    assert_int_equal(v.s.n, n);
    assert_memory_equal(v.s.p, want, n);
}

static void numbers_of_each_width_are_read(void **state)
{
    (void)state;
    assert_int_equal(decode(SL_T_INT8, PG_INT2, "\xff\xfe").i, -2);
    assert_int_equal(decode(SL_T_INT8, PG_INT4, "\x80\0\0\0").i, INT32_MIN);
    assert_int_equal(decode(SL_T_INT8, PG_INT8, "\x7f\xff\xff\xff\xff\xff\xff\xff").i,
                     INT64_MAX);
    assert_int_equal(decode(SL_T_INT8, PG_INT8, "\x80\0\0\0\0\0\0\0").i, INT64_MIN);
    assert_int_equal(decode(SL_T_BOOL, PG_BOOL, "\x01").i, 1);
    assert_int_equal(decode(SL_T_BOOL, PG_BOOL, "\0").i, 0);
}

static void times_are_read_as_microseconds(void **state)
{
    (void)state;
    assert_int_equal(decode(SL_T_TIME, PG_TIMESTAMPTZ, "\x00\x02\xef\x2a\x8b\xd3\xcd\xc8").i,
                     1772600767000008);
    assert_int_equal(decode(SL_T_TIME, PG_TIMESTAMP, "\0\0\0\0\0\0\0\0").i, 946684800000000);
}

/* 'infinity' is a time that a producer may write; it must not overflow. */
static void infinite_times_are_the_ends(void **state)
{
    (void)state;
    assert_int_equal(decode(SL_T_TIME, PG_TIMESTAMPTZ, "\x7f\xff\xff\xff\xff\xff\xff\xff").i,
                     INT64_MAX);
    assert_true(decode(SL_T_TIME, PG_TIMESTAMPTZ, "\x80\0\0\0\0\0\0\0").i < 0);
}

static void bytes_are_borrowed_from_each_kind_of_text(void **state)
{
    (void)state;
    static const unsigned oids[] = {
        PG_TEXT, PG_VARCHAR, PG_BPCHAR, PG_NAME, PG_JSON, PG_BYTEA
    };
    for (size_t i = 0; i < COUNT(oids); i++) {
        static const char bytes[] = "a\0\xff";
        sl_val v = decoded(SL_T_TEXT, oids[i], bytes, 3);
        assert_ptr_equal(v.s.p, bytes);
        expect_str(v, "a\0\xff", 3);
        expect_str(decoded(SL_T_BYTES, oids[i], bytes, 0), "", 0);
        assert_non_null(decoded(SL_T_BYTES, oids[i], bytes, 0).s.p); /* empty is not NULL */
    }
}

static void jsonb_has_a_version(void **state)
{
    (void)state;
    sl_val v;
    expect_str(decode(SL_T_TEXT, PG_JSONB, "\x01{}"), "{}", 2);
    assert_false(sl_pg_decode(&v, SL_T_TEXT, PG_JSONB, "\x02{}", 3));
    assert_false(sl_pg_decode(&v, SL_T_TEXT, PG_JSONB, "", 0));
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        sl_type want;
        unsigned oid;
        const char *bytes;
        size_t n;
    } rows[] = {
        { SL_T_INT8, PG_TEXT, "12345678", 8 },  { SL_T_INT8, PG_TIMESTAMPTZ, "12345678", 8 },
        { SL_T_INT8, 700, "1234", 4 }, /* float4 */
        { SL_T_INT8, 26, "1234", 4 },  /* oid */
        { SL_T_INT8, PG_INT8, "1234567", 7 },   { SL_T_INT8, PG_INT8, "", 0 },
        { SL_T_TEXT, PG_INT8, "12345678", 8 },  { SL_T_TEXT, 2950, "1234567812345678", 16 },
        { SL_T_BYTES, PG_BOOL, "1", 1 },        { SL_T_TIME, PG_INT8, "12345678", 8 },
        { SL_T_TIME, 1082, "1234", 4 }, /* date */
        { SL_T_BOOL, PG_BOOL, "", 0 },          { SL_T_BOOL, PG_INT4, "1234", 4 },
        { SL_T_INT8S, PG_INT8_ARRAY, "", 0 },   { SL_T_TEXTS, PG_TEXT_ARRAY, "", 0 },
        { SL_T_BYTESS, PG_BYTEA_ARRAY, "", 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_val v;
        if (sl_pg_decode(&v, rows[i].want, rows[i].oid, rows[i].bytes, rows[i].n))
            fail_msg("type %d was read from oid %u", (int)rows[i].want, rows[i].oid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_oid),
        cmocka_unit_test(single_values_are_encoded),
        cmocka_unit_test(arrays_of_numbers_are_encoded),
        cmocka_unit_test(arrays_of_text_hold_nulls),
        cmocka_unit_test(arrays_of_bytes_are_encoded),
        cmocka_unit_test(null_cannot_be_encoded),
        cmocka_unit_test(numbers_of_each_width_are_read),
        cmocka_unit_test(times_are_read_as_microseconds),
        cmocka_unit_test(infinite_times_are_the_ends),
        cmocka_unit_test(bytes_are_borrowed_from_each_kind_of_text),
        cmocka_unit_test(jsonb_has_a_version),
        cmocka_unit_test(what_does_not_go_together_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
