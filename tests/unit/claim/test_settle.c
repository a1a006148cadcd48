/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/settle.h"

#include "core/clock.h"
#include "support/fakedb.h"

static fakedb db;
static sl_batch batch;
static sl_err err;
static size_t lost;

static const sl_settle_how leased = { .attempt_counted = true,
                                      .retry_base_ns = SL_SEC,
                                      .retry_max_ns = 60 * SL_SEC };
static const sl_settle_how locked = { .in_transaction = true,
                                      .retry_base_ns = SL_SEC,
                                      .retry_max_ns = 60 * SL_SEC };

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    lost = 99;
    fakedb_init(&db);
    sl_batch_init(&batch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fakedb_fini(&db);
    sl_batch_fini(&batch);
    return 0;
}

/* The next id, with the epoch ten times that. */
static sl_msg *add(sl_verdict v, int64_t delay_ns, sl_str reason)
{
    sl_msg *m = sl_batch_add(&batch);
    m->id = (int64_t)batch.count;
    m->epoch = m->id * 10;
    m->attempt = 1;
    m->delay_ns = delay_ns;
    if (v != SL_PENDING)
        sl_msg_settle(&batch, m, v, reason);
    return m;
}

static void write_with(const sl_settle_how *how)
{
    if (sl_settle_write(&db.base, &batch, how, &lost, &err) != SL_OK)
        fail_msg("%s", err.text);
}

#define said(want) assert_string_equal(fakedb_said(&db), want)

/* ---- What is written ---- */

static void each_verdict_has_its_statement(void **state)
{
    (void)state;
    add(SL_SENT, -1, SL_NONE);
    add(SL_RETRY, 5 * SL_MS, SL_STR("busy"));
    add(SL_DEAD, -1, SL_STR("too large"));
    add(SL_RELEASED, -1, SL_NONE);
    add(SL_HELD, -1, SL_NONE);
    add(SL_UNKNOWN, 0, SL_NONE);
    add(SL_SENT, -1, SL_NONE);
    write_with(&leased);
    said("tx/begin settle/sent({1,7},{10,70}) "
         "settle/retry({2,6},{20,60},{5000,0},{'busy',NULL},{0,0}) "
         "settle/bury({3},{30},{'too large'},{0}) settle/sent({3},{30}) "
         "settle/release({4},{40}) tx/commit");
    assert_int_equal(lost, 0);
}

/* Copied before they go; what is copied counts where it is deleted. */
static void what_is_kept_is_copied_first(void **state)
{
    (void)state;
    sl_settle_how how = leased;
    how.keep = true;
    add(SL_SENT, -1, SL_NONE);
    add(SL_DEAD, -1, SL_STR("no"));
    add(SL_SENT, -1, SL_NONE);
    write_with(&how);
    said("tx/begin settle/keep({1,3},{10,30},{0,0}) settle/sent({1,3},{10,30}) "
         "settle/bury({2},{20},{'no'},{0}) settle/sent({2},{20}) tx/commit");
    assert_int_equal(lost, 0);
    db.lossy = "settle/keep";
    db.missing = 1;
    write_with(&how);
    assert_int_equal(lost, 0);
    db.lossy = "settle/sent";
    write_with(&how);
    assert_int_equal(lost, 2); /* one of each */
    how = locked;
    how.keep = true;
    sl_batch_reset(&batch);
    fakedb_said(&db);
    add(SL_SENT, -1, SL_NONE);
    db.lossy = NULL;
    write_with(&how);
    said("settle/keep({1},{10},{1}) settle/sent({1},{10}) tx/commit");
}

/* It left the outbox before it was sent. The copy counts: it may be what takes it out of the list. */
static void what_was_consumed_is_kept(void **state)
{
    (void)state;
    sl_settle_how how = locked;
    how.keep = true;
    how.in_transaction = false;
    for (int i = 0; i < 3; i++)
        add(i == 1 ? SL_UNKNOWN : SL_SENT, -1, SL_NONE)->consumed = true;
    write_with(&how);
    said("tx/begin consumed/keep({1,3}) consumed/sent({1,3}) "
         "consumed/bury({2},{NULL}) consumed/sent({2}) tx/commit");
    assert_int_equal(lost, 0);
    db.lossy = "consumed/keep";
    db.missing = 1;
    write_with(&how);
    assert_int_equal(lost, 1);
}

/* The commit lets go of what was only locked; and the attempt is counted now, if it was made.
 */
static void in_a_transaction_only_the_rest_is_written(void **state)
{
    (void)state;
    add(SL_SENT, -1, SL_NONE);
    add(SL_RETRY, 0, SL_NONE);
    add(SL_RELEASED, -1, SL_NONE);
    add(SL_DEAD, -1, SL_NONE);
    write_with(&locked);
    said("settle/sent({1},{10}) settle/retry({2},{20},{0},{NULL},{1}) "
         "settle/bury({4},{40},{NULL},{1}) settle/sent({4},{40}) tx/commit");
    assert_int_equal(lost, 0);
}

static void nothing_to_write_is_no_round_trip(void **state)
{
    (void)state;
    write_with(&leased);
    said("");
    add(SL_HELD, -1, SL_NONE);
    write_with(&leased);
    said("");
    assert_int_equal(lost, 0);
}

static void an_open_transaction_is_always_ended(void **state)
{
    (void)state;
    add(SL_HELD, -1, SL_NONE);
    add(SL_RELEASED, -1, SL_NONE);
    write_with(&locked);
    said("tx/commit");
}

static void settle_pending(void)
{
    add(SL_PENDING, -1, SL_NONE);
    (void)!sl_settle_write(&db.base, &batch, &leased, &lost, &err);
}

static void a_message_without_a_verdict_is_a_bug(void **state)
{
    (void)state;
    assert_true(aborts(settle_pending));
}

/* ---- Delays and reasons ---- */

static int64_t delay_us_of(int32_t attempt)
{
    sl_batch_reset(&batch);
    sl_msg *m = add(SL_PENDING, -1, SL_NONE);
    m->attempt = attempt;
    sl_msg_settle(&batch, m, SL_RETRY, SL_NONE);
    write_with(&leased);
    long long us = 0;
    assert_int_equal(sscanf(fakedb_said(&db), "tx/begin settle/retry({1},{10},{%lld}", &us), 1);
    return us;
}

static void the_default_delay_grows(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_in_range(delay_us_of(1), 800000, 1200000);
        assert_in_range(delay_us_of(2), 1600000, 2400000);
        assert_in_range(delay_us_of(3), 3200000, 4800000);
        assert_in_range(delay_us_of(1000), 48000000, 72000000);
        assert_in_range(delay_us_of(0), 800000, 1200000);
        assert_in_range(delay_us_of(INT32_MAX), 48000000, 72000000);
    }
}

static void reasons_are_made_harmless(void **state)
{
    (void)state;
    char longer[1000];
    memset(longer, 'x', sizeof longer);
    add(SL_RETRY, 0, SL_STR("a\0b\nc\td\x7f\x01"));
    add(SL_RETRY, 0, SL_STR("h\xc3\xa9"));
    add(SL_RETRY, 0, SL_STR("h\xc3\xa9 \xff\xc3"));
    add(SL_RETRY, 0, SL_STR(""));
    add(SL_RETRY, 0, (sl_str){ longer, sizeof longer });
    write_with(&leased);
    const char *text = fakedb_said(&db);
    assert_non_null(strstr(text, "{'a b c d  ','h\xc3\xa9','h\xc3\xa9 ?"
                                 "?','','xxx"));
    const char *xs = strstr(text, "'xxx") + 1;
    assert_int_equal(strspn(xs, "x"), 500);
}

/* Cut in the middle of a character: what is left is still UTF-8. */
static void a_long_reason_is_cut_to_valid_text(void **state)
{
    (void)state;
    char text[501];
    memset(text, 'x', 499);
    memcpy(text + 499, "\xc3\xa9", 2);
    add(SL_DEAD, 0, (sl_str){ text, sizeof text });
    write_with(&leased);
    assert_non_null(strstr(fakedb_said(&db), "xxx?'"));
}

/* ---- What was lost, and what failed ---- */

static void expect_lost(const char *stmt, int64_t missing, size_t want)
{
    db.lossy = stmt;
    db.missing = missing;
    write_with(&leased);
    assert_int_equal(lost, want);
}

static void what_is_missing_is_counted_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        add(SL_SENT, -1, SL_NONE);
        add(SL_RETRY, 0, SL_NONE);
        add(SL_DEAD, -1, SL_NONE);
        add(SL_RELEASED, -1, SL_NONE);
    }
    expect_lost("settle/retry", 2, 2);
    expect_lost("settle/release", 3, 3);
    expect_lost("settle/release", 0, 0);
}

/* A message that should die is copied and deleted: two statements miss it, one message is lost.
 */
static void a_dead_letter_is_lost_once(void **state)
{
    (void)state;
    add(SL_DEAD, -1, SL_NONE);
    add(SL_DEAD, -1, SL_NONE);
    expect_lost("settle/bury", 1, 0); /* the delete decides */
    expect_lost("settle/sent", 1, 1);
    expect_lost("settle/sent", 2, 2);
}

static void a_failure_is_passed_on(void **state)
{
    (void)state;
    add(SL_SENT, -1, SL_NONE);
    db.fail_at = 1;
    db.rc = SL_AGAIN;
    assert_int_equal(sl_settle_write(&db.base, &batch, &leased, &lost, &err), SL_AGAIN);
    assert_string_equal(err.text, "fake: failed as told");
    assert_int_equal(lost, 0);
}

static void the_rehearsal_runs_all_on_nothing(void **state)
{
    (void)state;
    assert_int_equal(sl_settle_rehearse(&db.base, false, false, &err), SL_OK);
    said("tx/begin settle/retry({},{},{},{},{}) settle/bury({},{},{},{}) settle/sent({},{}) "
         "settle/release({},{}) attempts/count({}) attempts/uncount({}) tx/commit");
    assert_int_equal(sl_settle_rehearse(&db.base, true, false, &err), SL_OK);
    assert_true(strncmp(fakedb_said(&db), "tx/begin settle/keep({},{},{}) settle/retry", 43) ==
                0);
    assert_int_equal(sl_settle_rehearse(&db.base, true, true, &err), SL_OK);
    assert_non_null(strstr(fakedb_said(&db), "consumed/keep({})"));
    db.fail_at = 1;
    db.rc = SL_OPERATOR;
    assert_int_equal(sl_settle_rehearse(&db.base, true, false, &err), SL_OPERATOR);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_verdict_has_its_statement),
        TEST(what_is_kept_is_copied_first),
        TEST(what_was_consumed_is_kept),
        TEST(in_a_transaction_only_the_rest_is_written),
        TEST(nothing_to_write_is_no_round_trip),
        TEST(an_open_transaction_is_always_ended),
        TEST(a_message_without_a_verdict_is_a_bug),
        TEST(the_default_delay_grows),
        TEST(reasons_are_made_harmless),
        TEST(a_long_reason_is_cut_to_valid_text),
        TEST(what_is_missing_is_counted_once),
        TEST(a_dead_letter_is_lost_once),
        TEST(a_failure_is_passed_on),
        TEST(the_rehearsal_runs_all_on_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
