/* SPDX-License-Identifier: Apache-2.0 */
/* Which statements, in which order, and when; what they do is in tests/contract/test_claims.c.
 */
#include "claim/claim.h"

#include "core/clock.h"
#include "support/fakedb.h"

#define SETTLE_REHEARSAL                                                                       \
    "tx/begin settle/retry({},{},{},{},{}) settle/bury({},{},{},{}) settle/sent({},{}) "       \
    "settle/release({},{}) attempts/count({}) attempts/uncount({}) tx/commit"

static const sl_claim_ops *ops;
static fakedb db;
static sl_claim *claim;
static sl_batch batch;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    claim = NULL;
    ops = sl_claim_named("skip-locked");
    fakedb_init(&db);
    sl_batch_init(&batch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (claim)
        ops->close(claim);
    sl_batch_fini(&batch);
    fakedb_fini(&db);
    return 0;
}

static sl_rc try_open(sl_hold hold, int64_t lease_ns)
{
    sl_claim_conf conf = { .worker = "n/1",
                           .batch_bytes = 1000,
                           .lease_ns = lease_ns,
                           .hold = hold,
                           .retry_base_ns = SL_SEC,
                           .retry_max_ns = SL_SEC };
    return ops->open(&claim, &db.base, &conf, &err);
}

static void open_as(sl_hold hold, int64_t lease_ns)
{
    if (try_open(hold, lease_ns) != SL_OK)
        fail_msg("%s", err.text);
    assert_ptr_equal(claim->ops, ops);
    sl_buf_reset(&db.said);
}

/* Two messages, the later one first, as UPDATE ... RETURNING may give them. */
static void give_two(void)
{
    static sl_val rows[2][SL_STMT_MAX];
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 4; i++)
            rows[r][i] = sl_int(r ? 4 : 5);
        for (int i = 4; i < 10; i++)
            rows[r][i] = sl_text(SL_STR("x"));
    }
    db.rows = (const sl_val(*)[SL_STMT_MAX])rows;
    db.nrows = 2;
}

static void take_two(void)
{
    give_two();
    assert_int_equal(ops->take(claim, &batch, 7, &err), SL_OK);
    assert_int_equal(batch.count, 2);
}

static void settle_as(sl_verdict v)
{
    size_t lost;
    sl_batch_settle_rest(&batch, v, SL_NONE);
    assert_int_equal(ops->settle(claim, &batch, &lost, &err), SL_OK);
    assert_int_equal(lost, 0);
}

#define said(want) assert_string_equal(fakedb_said(&db), want)

/* ---- Opening ---- */

static void opening_rehearses_a_lease(void **state)
{
    (void)state;
    assert_int_equal(try_open(SL_HOLD_LEASE, 9 * SL_SEC), SL_OK);
    said("skip_locked/lease(0,1000,9000000,'n/1')\n"
         "lease/renew({},{},9000000)\n" SETTLE_REHEARSAL);
}

static void opening_rehearses_a_transaction(void **state)
{
    (void)state;
    assert_int_equal(try_open(SL_HOLD_TRANSACTION, 9 * SL_SEC), SL_OK);
    said("tx/begin skip_locked/take(0,1000)\ntx/commit\n" SETTLE_REHEARSAL);
}

static void what_fails_in_the_rehearsal_fails_the_opening(void **state)
{
    (void)state;
    for (int hold = SL_HOLD_LEASE; hold <= SL_HOLD_TRANSACTION; hold++)
        for (int at = 1; at <= 3; at++) {
            db.fail_at = at;
            db.rc = SL_OPERATOR;
            assert_int_equal(try_open((sl_hold)hold, SL_SEC), SL_OPERATOR);
            assert_string_equal(err.text, "fake: failed as told");
            assert_null(claim);
        }
    assert_int_equal(db.rollbacks, 0); /* the driver did that */
}

/* ---- Taking ---- */

static void a_lease_is_taken_in_one_statement(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 9 * SL_SEC);
    take_two();
    said("skip_locked/lease(7,1000,9000000,'n/1')");
    assert_int_equal(batch.msgs[0].id, 4); /* sorted */
    assert_int_equal(batch.msgs[1].id, 5);
    settle_as(SL_RETRY);
    assert_non_null(strstr(fakedb_said(&db), "},{0,0}) tx/commit")); /* counted already */
    ops->close(claim);
    claim = NULL;
    assert_int_equal(db.rollbacks, 0);
}

static void a_transaction_stays_open_until_the_verdict(void **state)
{
    (void)state;
    open_as(SL_HOLD_TRANSACTION, 9 * SL_SEC);
    take_two();
    said("tx/begin skip_locked/take(7,1000)");
    settle_as(SL_SENT);
    said("settle/sent({5,4},{5,4}) tx/commit");
    sl_batch_reset(&batch);
    db.nrows = 0;
    assert_int_equal(ops->take(claim, &batch, 7, &err), SL_OK);
    said("tx/begin skip_locked/take(7,1000)\ntx/commit"); /* nothing there: nothing open */
    ops->close(claim);
    claim = NULL;
    assert_int_equal(db.rollbacks, 0);
}

static void attempts_are_counted_with_the_verdict(void **state)
{
    (void)state;
    open_as(SL_HOLD_TRANSACTION, 9 * SL_SEC);
    take_two();
    settle_as(SL_UNKNOWN);
    assert_non_null(strstr(fakedb_said(&db), "},{1,1}) tx/commit"));
}

static void closing_gives_up_an_open_transaction(void **state)
{
    (void)state;
    open_as(SL_HOLD_TRANSACTION, 9 * SL_SEC);
    take_two();
    ops->close(claim);
    claim = NULL;
    assert_int_equal(db.rollbacks, 1);
}

static void failures_are_passed_on(void **state)
{
    (void)state;
    size_t lost;
    open_as(SL_HOLD_TRANSACTION, 9 * SL_SEC);
    db.rc = SL_AGAIN;
    db.fail_at = 1;
    assert_int_equal(ops->take(claim, &batch, 7, &err), SL_AGAIN);
    sl_batch_reset(&batch);
    db.fail_at = 2; /* the commit of an empty take */
    assert_int_equal(ops->take(claim, &batch, 7, &err), SL_AGAIN);
    take_two();
    sl_batch_settle_rest(&batch, SL_SENT, SL_NONE);
    db.fail_at = 1;
    assert_int_equal(ops->settle(claim, &batch, &lost, &err), SL_AGAIN);
    ops->close(claim); /* the driver has rolled back */
    claim = NULL;
    assert_int_equal(db.rollbacks, 0);
}

/* ---- Holding ---- */

static int64_t trust_left_ns(void)
{
    return ops->trusted_ns(claim) - sl_now_ns();
}

/* Less a tenth, at most two seconds: what a send may still take. */
static void trust_ends_before_the_lease(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 100 * SL_SEC);
    take_two();
    assert_true(trust_left_ns() <= 98 * SL_SEC && trust_left_ns() > 88 * SL_SEC);
    ops->close(claim);
    open_as(SL_HOLD_TRANSACTION, 10 * SL_SEC);
    sl_batch_reset(&batch);
    take_two();
    assert_true(trust_left_ns() <= 9 * SL_SEC && trust_left_ns() > 4 * SL_SEC);
}

/* The database counts from some time within the request; we count from before it. */
static void trust_counts_from_before_the_request(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 100 * SL_SEC);
    db.slow_us = 50000;
    take_two();
    assert_true(ops->trusted_ns(claim) <= db.began_ns + 98 * SL_SEC);
}

static void holding_costs_nothing_until_a_third(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 60 * SL_SEC);
    take_two();
    sl_buf_reset(&db.said);
    for (int i = 0; i < 100; i++)
        assert_int_equal(ops->hold(claim, &batch, &err), SL_OK);
    said("");
}

static void a_lease_is_renewed_when_due(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 300 * SL_MS);
    take_two();
    sl_buf_reset(&db.said);
    int64_t first = ops->trusted_ns(claim);
    usleep(110000);
    db.slow_us = 50000; /* from before the request, here too */
    int64_t before = sl_now_ns();
    assert_int_equal(ops->hold(claim, &batch, &err), SL_OK);
    said("lease/renew({4,5},{4,5},300000)");
    assert_true(ops->trusted_ns(claim) >= before + 270 * SL_MS);
    assert_true(ops->trusted_ns(claim) <= db.began_ns + 270 * SL_MS);
    assert_true(ops->trusted_ns(claim) > first);
}

static void a_lease_that_cannot_be_renewed_is_lost(void **state)
{
    (void)state;
    open_as(SL_HOLD_LEASE, 300 * SL_MS);
    take_two();
    int64_t first = ops->trusted_ns(claim);
    usleep(110000);
    db.lossy = "lease/renew";
    db.missing = 1;
    assert_int_equal(ops->hold(claim, &batch, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "lease lost: 1 of 2"));
    db.fail_at = 1;
    db.rc = SL_AGAIN;
    assert_int_equal(ops->hold(claim, &batch, &err), SL_AGAIN);
    assert_int_equal(ops->trusted_ns(claim), first); /* no more than was had */
}

/* A transaction past a third of its time. False: this process was stopped until all of it was over. */
static bool hold_past_a_third(void)
{
    open_as(SL_HOLD_TRANSACTION, 600 * SL_MS);
    sl_batch_reset(&batch);
    int64_t before_ns = sl_now_ns();
    take_two();
    sl_buf_reset(&db.said);
    usleep(210000);
    sl_rc rc = ops->hold(claim, &batch, &err);
    if (sl_now_ns() < before_ns + 540 * SL_MS)
        assert_int_equal(rc, SL_OK);
    return rc == SL_OK;
}

static void a_transaction_is_not_renewed(void **state)
{
    (void)state;
    for (int tries = 50; !hold_past_a_third(); ops->close(claim))
        assert_true(--tries > 0);
    usleep(350000);
    assert_int_equal(ops->hold(claim, &batch, &err), SL_AGAIN);
    assert_non_null(strstr(err.text, "longer than a transaction may last\nhint: "));
    said("");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(opening_rehearses_a_lease),
        TEST(opening_rehearses_a_transaction),
        TEST(what_fails_in_the_rehearsal_fails_the_opening),
        TEST(a_lease_is_taken_in_one_statement),
        TEST(a_transaction_stays_open_until_the_verdict),
        TEST(attempts_are_counted_with_the_verdict),
        TEST(closing_gives_up_an_open_transaction),
        TEST(failures_are_passed_on),
        TEST(trust_ends_before_the_lease),
        TEST(trust_counts_from_before_the_request),
        TEST(holding_costs_nothing_until_a_third),
        TEST(a_lease_is_renewed_when_due),
        TEST(a_lease_that_cannot_be_renewed_is_lost),
        TEST(a_transaction_is_not_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
