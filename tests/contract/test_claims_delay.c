/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delayed messages (`unordered_delay`), for every strategy that keeps order, on every database: later
 * ones of the key pass a message whose time has not come and that was never tried; it comes in time, never
 * beside another of its key; and what is held is always found again.
 */
#include "contract/ordered.h"

/* A worker with the setting. */
static void open_delaying(worker *w, int64_t workers)
{
    sl_claim_conf conf = claims_conf(w == &a ? "n/1" : "n/2", SL_HOLD_LEASE);
    conf.workers = workers;
    conf.delays = true;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(w, &t, strategy, &conf);
}

#define DELAYED "SELECT count(*) FROM sluice_outbox WHERE delayed"

static int64_t delayed(void)
{
    return testdb_int(&t, DELAYED);
}

/* Held messages that neither their key nor their time leads to. */
static void expect_none_lost(void)
{
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox o WHERE held AND NOT "
                                    "(delayed AND available_at IS NOT NULL) AND entity_key IS "
                                    "NOT NULL AND NOT EXISTS (SELECT 1 FROM "
                                    "sluice_outbox_keys k WHERE k.entity_key = o.entity_key)"),
                     0);
}

/* Its time has come; nothing is said of its key. */
static void make_due(int64_t id)
{
    testdb_schedule(&t, id, -60);
}

/* Takes until this comes, and no other. */
static void expect_next(worker *w, const char *ids)
{
    take_some(w, ALL);
    expect_taken(w, ids);
}

static void expect_all_gone(void)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    assert_int_equal(testdb_count(&t), 0);
    do { /* keys that wait for nothing are cleaned up */
        assert_int_equal(worker_take(&a, 500), 0);
    } while (blocked() > 0 && sl_now_ns() < until_ns);
    assert_int_equal(blocked(), 0);
}

/* 1 to 3 of x: 2 is delayed, and the others have been taken. */
static void delay_the_second(void)
{
    testdb_push(&t, "x", 3);
    testdb_schedule(&t, 2, 3600);
    open_delaying(&a, 1);
    expect_next(&a, "1 3");
}

static void later_ones_pass_a_delayed_message(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(held(), 1);
    assert_int_equal(delayed(), 1);
    assert_int_equal(blocked(), 0);
    testdb_push(&t, "x", 1);
    expect_next(&a, "4");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_nothing(&a);
    make_due(2);
    expect_next(&a, "2");
    assert_int_equal(a.batch.msgs[0].attempt, 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_all_gone();
}

static void it_comes_by_itself(void **state)
{
    (void)state;
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    open_delaying(&a, 1);
    testdb_schedule(&t, 1, 3600);
    expect_next(&a, "2");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(delayed(), 1);
    testdb_schedule(&t, 1, 1);
    expect_next(&a, "1"); /* no statement of this test makes it due */
    testdb_expect(&t, "0",
                  testdb_or(&t,
                            "SELECT count(*)::text FROM sluice_outbox WHERE available_at > "
                            "clock_timestamp()",
                            "SELECT CAST(count(*) AS TEXT) FROM sluice_outbox WHERE "
                            "julianday(available_at) > julianday('now')"));
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_all_gone();
}

/* Whichever is due first; of those that are due together, the one with the lower id. */
static void several_come_as_their_times_do(void **state)
{
    (void)state;
    testdb_push(&t, "x", 4);
    for (int i = 1; i <= 4; i++)
        testdb_schedule(&t, i, 3600);
    open_delaying(&a, 1);
    expect_nothing(&a);
    assert_int_equal(delayed(), 4);
    assert_int_equal(blocked(), 0);
    make_due(3);
    expect_next(&a, "3");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000'");
    int64_t ids[3];
    assert_int_equal(send_all(&a, ALL, ids, 3, 3), 3);
    assert_true(ids[0] == 1 && ids[1] == 2 && ids[2] == 4);
    expect_all_gone();
}

/* Failed ones wait as ever: what stands behind them, too, and delayed ones rejoin. */
static void a_delayed_message_of_a_blocked_key_waits_in_order(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(settle_as(&a, "r-", 3600 * SL_SEC), 0);
    assert_int_equal(delayed(), 1);
    assert_int_equal(blocked(), 1);
    expect_held(&a, 3);
    make_due(2);
    expect_nothing(&a);
    assert_int_equal(delayed(), 0); /* among the others now */
    expect_none_lost();
    all_due();
    expect_sent(&a, ALL, 1, 3);
    expect_all_gone();
}

/* It stays aside while the key is blocked and served for another reason. */
static void a_delayed_message_does_not_stop_a_retry(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(settle_as(&a, "r-", 0), 0);
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    make_due(1);
    int64_t ids[2];
    assert_int_equal(send_all(&a, ALL, ids, 2, 2), 2);
    assert_true(ids[0] == 1 && ids[1] == 3);
    expect_nothing(&a);
    assert_int_equal(blocked(), 0);
    assert_int_equal(delayed(), 1);
    make_due(2);
    expect_sent(&a, ALL, 2, 2);
    expect_all_gone();
}

/* It was held behind a failed one before anyone saw that it is scheduled. */
static void what_was_held_behind_is_delayed_when_its_turn_comes(void **state)
{
    (void)state;
    testdb_push(&t, "x", 1);
    open_delaying(&a, 1);
    expect_next(&a, "1");
    assert_int_equal(settle_as(&a, "r", 3600 * SL_SEC), 0);
    testdb_push(&t, "x", 2);
    testdb_schedule(&t, 2, 3600);
    expect_held(&a, 3);
    assert_int_equal(delayed(), 0);
    make_due(1);
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    expect_next(&a, "1 3");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(delayed(), 1);
    expect_nothing(&a);
    assert_int_equal(blocked(), 0);
    make_due(2);
    expect_sent(&a, ALL, 2, 2);
    expect_all_gone();
}

/* Once it has been tried it is as any other that failed. */
static void a_delayed_message_that_fails_holds_its_key_back(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    make_due(2);
    expect_next(&a, "2");
    assert_int_equal(settle_as(&a, "r", 3600 * SL_SEC), 0);
    assert_int_equal(delayed(), 0);
    assert_int_equal(blocked(), 1);
    testdb_push(&t, "x", 1);
    expect_nothing(&a);
    expect_held(&a, 2);
    all_due();
    int64_t ids[2];
    assert_int_equal(send_all(&a, ALL, ids, 2, 2), 2);
    assert_true(ids[0] == 2 && ids[1] == 4);
    expect_all_gone();
}

static void other_verdicts_are_as_ever(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    make_due(2);
    expect_next(&a, "2");
    assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
    expect_next(&a, "2");
    assert_int_equal(a.batch.msgs[0].attempt, 1);
    assert_int_equal(settle_as(&a, "d", 0), 0);
    testdb_expect(&t, "2", "SELECT CAST(id AS text) FROM sluice_outbox_dead");
    expect_all_gone();
}

/* One that was tried before is scheduled by its retry, not by its producer. */
static void what_was_tried_is_not_delayed(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 2);
    testdb_exec(&t, "UPDATE sluice_outbox SET attempts = 1 WHERE id = 1");
    testdb_exec(&t, "UPDATE sluice_outbox SET last_error = 'down' WHERE id = 3");
    testdb_schedule(&t, 1, 3600);
    testdb_schedule(&t, 3, 3600);
    open_delaying(&a, 1);
    expect_nothing(&a);
    assert_int_equal(delayed(), 0);
    assert_int_equal(held(), 4);
    assert_int_equal(blocked(), 2);
}

/* The key is in other hands: it waits for that, and then comes. */
static void never_beside_another_of_its_key(void **state)
{
    (void)state;
    if (!t.pg && strategy->in_transaction)
        return;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_push(&t, "x", 1);
    worker_close(&a);
    open_delaying(&a, 2);
    open_delaying(&b, 2);
    expect_next(&a, "4");
    make_due(2);
    expect_nothing(&b);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_next(&b, "2");
    testdb_push(&t, "x", 1);
    expect_nothing(&a); /* and the other way round */
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    expect_next(&a, "5");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_all_gone();
}

/* A key with more due ones than are looked at, in other hands, hides no other key. */
static void many_of_one_key_hide_no_other(void **state)
{
    (void)state;
    enum { MANY = 700 };
    if (lanes() || (!t.pg && strategy->in_transaction))
        return;
    testdb_push(&t, "x", MANY);
    testdb_push(&t, "y", 1);
    testdb_exec(
        &t, testdb_or(&t, "UPDATE sluice_outbox SET available_at = now() + interval '1 h'",
                      "UPDATE sluice_outbox SET available_at = datetime('now', '+1 hour')"));
    open_delaying(&a, 2);
    open_delaying(&b, 2);
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (delayed() < MANY + 1 && sl_now_ns() < until_ns)
        assert_int_equal(worker_take(&a, 500), 0);
    assert_int_equal(delayed(), MANY + 1);
    testdb_push(&t, "x", 1);
    assert_int_equal(take_some(&a, 1), 1); /* holds x */
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000' WHERE "
                    "entity_key = 'x'");
    make_due(MANY + 1);
    int64_t ids[1];
    assert_int_equal(send_all(&b, 500, ids, 1, 1), 1);
    assert_int_equal(ids[0], MANY + 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
}

/* However many stand before it: what is due of a key is found among them. */
static void two_thousand_delayed_ones_hide_nothing_of_their_key(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    testdb_push(&t, "x", MANY);
    testdb_exec(
        &t, testdb_or(&t, "UPDATE sluice_outbox SET available_at = now() + interval '1 h'",
                      "UPDATE sluice_outbox SET available_at = datetime('now', '+1 hour')"));
    testdb_push(&t, "x", 2);
    open_delaying(&a, 1);
    int64_t ids[2];
    take_some(&a, ALL);
    assert_int_equal(a.batch.msgs[0].id, MANY + 1);
    assert_int_equal(a.batch.count, 2);
    assert_int_equal(settle_as(&a, "r-", 0), 0);
    assert_int_equal(delayed(), MANY);
    make_due(MANY + 1);
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    assert_int_equal(send_all(&a, 100, ids, 2, 2), 2);
    assert_true(ids[0] == MANY + 1 && ids[1] == MANY + 2);
    expect_nothing(&a);
    assert_int_equal(blocked(), 0);
    assert_int_equal(delayed(), MANY);
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000'");
    expect_sent(&a, 500, 1, MANY);
    expect_all_gone();
}

/* What was delayed is so for all, whatever their setting; and who has not got it delays nothing. */
static void nodes_without_the_setting_go_with_it(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    worker_close(&a);
    open_worker(&a);
    testdb_push(&t, "x", 3);
    testdb_schedule(&t, 5, 3600);
    expect_next(&a, "4");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_nothing(&a); /* 5 is scheduled, and its key waits for it */
    assert_int_equal(delayed(), 1);
    make_due(2);
    expect_nothing(&a); /* the key is blocked: it rejoins */
    assert_int_equal(delayed(), 0);
    expect_none_lost();
    all_due();
    int64_t ids[3];
    assert_int_equal(send_all(&a, ALL, ids, 3, 3), 3);
    assert_true(ids[0] == 2 && ids[1] == 5 && ids[2] == 6);
    expect_all_gone();
}

static void an_operator_who_parks_the_key_parks_it_too(void **state)
{
    (void)state;
    delay_the_second();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_exec(&t, testdb_or(&t,
                              "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                              "SELECT entity_key, lane, 0, 'infinity' FROM sluice_outbox",
                              "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                              "SELECT entity_key, lane, 0, '9999-12-31 23:59:59.999' FROM "
                              "sluice_outbox"));
    make_due(2);
    expect_nothing(&a);
    expect_none_lost();
    assert_int_equal(blocked(), 1);
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    expect_sent(&a, ALL, 2, 2);
    expect_all_gone();
}

/* The rows are the producer's: it may give up a message, or move it. */
static void a_producer_may_change_its_mind(void **state)
{
    (void)state;
    bool any = true;
    testdb_push(&t, "x", 3);
    for (int i = 1; i <= 3; i++)
        testdb_schedule(&t, i, 3600);
    open_delaying(&a, 1);
    expect_nothing(&a);
    assert_int_equal(delayed(), 3);
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE id = 1");
    testdb_exec(&t, "UPDATE sluice_outbox SET entity_key = NULL WHERE id = 3");
    assert_int_equal(a.claim->ops->peek(a.claim, &any, &a.err), SL_OK);
    assert_false(any);
    make_due(2);
    assert_int_equal(a.claim->ops->peek(a.claim, &any, &a.err), SL_OK);
    assert_true(any);
    expect_next(&a, "2");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    make_due(3);
    expect_next(&a, "3");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_all_gone();
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(later_ones_pass_a_delayed_message),
        TEST(it_comes_by_itself),
        TEST(several_come_as_their_times_do),
        TEST(a_delayed_message_of_a_blocked_key_waits_in_order),
        TEST(a_delayed_message_does_not_stop_a_retry),
        TEST(what_was_held_behind_is_delayed_when_its_turn_comes),
        TEST(a_delayed_message_that_fails_holds_its_key_back),
        TEST(other_verdicts_are_as_ever),
        TEST(what_was_tried_is_not_delayed),
        TEST(never_beside_another_of_its_key),
        TEST(many_of_one_key_hide_no_other),
        TEST(two_thousand_delayed_ones_hide_nothing_of_their_key),
        TEST(nodes_without_the_setting_go_with_it),
        TEST(an_operator_who_parks_the_key_parks_it_too),
        TEST(a_producer_may_change_its_mind),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int on(const char *name)
{
    return ordered_on(name, run_group);
}

int main(void)
{
    return testdb_each(on);
}
