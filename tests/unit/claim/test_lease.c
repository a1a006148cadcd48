/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/lease.h"

#include "support/fakedb.h"
#include "support/testdb.h"

static sl_err err;

static void all_are_renewed_in_one_statement(void **state)
{
    (void)state;
    fakedb f;
    fakedb_init(&f);
    int64_t ids[] = { 3, 4 }, epochs[] = { 7, 1 };
    assert_int_equal(sl_lease_renew(&f.base, ids, epochs, 2, 30 * SL_SEC, &err), SL_OK);
    assert_string_equal(fakedb_said(&f), "lease/renew({3,4},{7,1},30000000)");
    assert_int_equal(sl_lease_renew(&f.base, NULL, NULL, 0, SL_SEC, &err), SL_OK);
    assert_string_equal(fakedb_said(&f), "lease/renew({},{},1000000)");
    fakedb_fini(&f);
}

static void a_lost_lease_is_told(void **state)
{
    (void)state;
    fakedb f;
    fakedb_init(&f);
    f.lossy = "lease/renew";
    f.missing = 2;
    int64_t ids[3] = { 0 };
    assert_int_equal(sl_lease_renew(&f.base, ids, ids, 3, SL_SEC, &err), SL_AGAIN);
    assert_string_equal(err.text,
                        "lease lost: 2 of 3 messages were taken over by someone else");
    f.fail_at = 1;
    f.rc = SL_OPERATOR;
    assert_int_equal(sl_lease_renew(&f.base, ids, ids, 3, SL_SEC, &err), SL_OPERATOR);
    assert_string_equal(err.text, "fake: failed as told");
    fakedb_fini(&f);
}

/* ---- On a real database ---- */

static testdb t;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, testdb_any(), NULL);
    testdb_fill(&t, 4, 1);
    /* 1 is ours, 2 ran out, 3 is someone else's by now, 4 was given back. */
    testdb_exec(&t, "UPDATE sluice_outbox SET epoch = 5, worker = 'w', "
                    "leased_until = '2000-01-01 00:00:00.000'");
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2999-01-01 00:00:00.000' "
                    "WHERE id = 1");
    testdb_exec(&t, "UPDATE sluice_outbox SET epoch = 6 WHERE id = 3");
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = NULL, worker = NULL WHERE id = 4");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testdb_drop(&t);
    return 0;
}

static sl_rc renew(int64_t id)
{
    return sl_lease_renew(t.eye, &id, (int64_t[]){ 5 }, 1, 10 * SL_SEC, &err);
}

static void what_is_ours_is_renewed_on_the_databases_clock(void **state)
{
    (void)state;
    assert_int_equal(renew(1), SL_OK);
    assert_in_range(testdb_ahead_us(&t, "leased_until", 1), 5000000, 10001000);
    assert_int_equal(renew(2), SL_OK); /* nobody took it meanwhile */
    assert_in_range(testdb_ahead_us(&t, "leased_until", 2), 5000000, 10001000);
    assert_int_equal(testdb_int(&t, "SELECT max(epoch) FROM sluice_outbox WHERE id < 3"), 5);
}

static void what_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(renew(3), SL_AGAIN);
    assert_true(testdb_ahead_us(&t, "leased_until", 3) < 0);
    assert_int_equal(renew(4), SL_AGAIN); /* a late keeper must not revive it */
    assert_int_equal(testdb_ahead_us(&t, "leased_until", 4), INT64_MIN);
    assert_int_equal(renew(9), SL_AGAIN);
}

static void a_part_is_renewed_too(void **state)
{
    (void)state;
    int64_t ids[] = { 3, 1, 4 }, epochs[] = { 5, 5, 5 };
    assert_int_equal(sl_lease_renew(t.eye, ids, epochs, 3, 10 * SL_SEC, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "2 of 3"));
    assert_in_range(testdb_ahead_us(&t, "leased_until", 1), 5000000, 10001000);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_renewed_in_one_statement),
        cmocka_unit_test(a_lost_lease_is_told),
        TEST(what_is_ours_is_renewed_on_the_databases_clock),
        TEST(what_is_not_ours_is_left_alone),
        TEST(a_part_is_renewed_too),
    };
    if (!testdb_any())
        return TESTDB_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
