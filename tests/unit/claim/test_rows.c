/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/rows.h"

#include "unit/unit.h"

static sl_batch batch;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    sl_batch_init(&batch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_batch_fini(&batch);
    return 0;
}

static sl_val time_us(int64_t us)
{
    return (sl_val){ .type = SL_T_TIME, .i = us };
}

static sl_val bytes(sl_str s)
{
    return (sl_val){ .type = SL_T_BYTES, .null = !s.p, .s = s };
}

static void a_row_becomes_a_message(void **state)
{
    (void)state;
    char payload[] = "a\0b";
    sl_val cols[] = { sl_int(7),
                      sl_int(3),
                      sl_int(2),
                      time_us(1700000000000001),
                      sl_text(SL_STR("orders")),
                      sl_text(SL_STR("order:1")),
                      sl_text(SL_STR("Paid")),
                      sl_text(SL_STR("text/plain")),
                      sl_text(SL_STR("{\"a\":\"b\"}")),
                      bytes((sl_str){ payload, 3 }) };
    assert_int_equal(sl_claim_row(&batch, cols, &err), SL_OK);
    memset(payload, 'x', sizeof payload); /* the bytes were copied */
    assert_int_equal(batch.count, 1);
    const sl_msg *m = &batch.msgs[0];
    assert_int_equal(m->id, 7);
    assert_int_equal(m->epoch, 3);
    assert_int_equal(m->attempt, 2);
    assert_int_equal(m->created_us, 1700000000000001);
    assert_int_equal(m->verdict, SL_PENDING);
    assert_int_equal(m->delay_ns, -1);
    assert_string_equal(m->topic.p, "orders");
    assert_true(sl_str_eq(m->key, SL_STR("order:1")));
    assert_string_equal(m->type.p, "Paid");
    assert_string_equal(m->content_type.p, "text/plain");
    assert_string_equal(m->headers.p, "{\"a\":\"b\"}");
    assert_true(sl_str_eq(m->payload, SL_STR("a\0b")));
    assert_null(m->reason.p);
}

static void an_empty_key_is_a_key(void **state)
{
    (void)state;
    sl_val cols[10] = { sl_int(1), sl_int(1), sl_int(1), time_us(0) };
    for (int i = 4; i < 10; i++)
        cols[i] = sl_text(SL_STR(""));
    assert_int_equal(sl_claim_row(&batch, cols, &err), SL_OK);
    assert_true(sl_str_eq(batch.msgs[0].key, SL_STR("")));
    assert_non_null(batch.msgs[0].headers.p);
}

/* In a table that was adopted, columns may be NULL that are not in ours. */
static void nulls_become_absent_or_empty(void **state)
{
    (void)state;
    sl_val cols[10] = { sl_int(1), sl_int(1), sl_int(1) };
    for (int i = 3; i < 10; i++)
        cols[i] = (sl_val){ .type = SL_T_TEXT, .null = true };
    cols[3].i = 12345; /* what a NULL holds means nothing */
    assert_int_equal(sl_claim_row(&batch, cols, &err), SL_OK);
    const sl_msg *m = &batch.msgs[0];
    assert_int_equal(m->created_us, 0);
    assert_null(m->key.p);
    assert_null(m->headers.p);
    assert_string_equal(m->topic.p, "");
    assert_string_equal(m->type.p, "");
    assert_string_equal(m->content_type.p, "");
    assert_null(m->payload.p); /* no bytes is not the same as none */
    assert_int_equal(m->payload.n, 0);
}

static void rows_are_appended(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        sl_val cols[10] = { sl_int(i), sl_int(1), sl_int(1), time_us(0) };
        for (int c = 4; c < 10; c++)
            cols[c] = sl_text(sl_str_of(key));
        assert_int_equal(sl_claim_row(&batch, cols, &err), SL_OK);
    }
    assert_int_equal(batch.count, 1000);
    assert_string_equal(batch.msgs[0].key.p, "k0");
    assert_string_equal(batch.msgs[999].payload.p, "k999");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_row_becomes_a_message),
        TEST(an_empty_key_is_a_key),
        TEST(nulls_become_absent_or_empty),
        TEST(rows_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
