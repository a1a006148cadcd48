/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that wake up late, in constellations that are rarer than those of test_claims_lost.c: keys that
 * wait for nothing, batches that are settled piece by piece, and tables that are shared in another way by
 * now. Whatever they do then, no message is left where nobody finds it, and none passes another.
 */
#include "contract/ordered.h"

static void use(const char *name)
{
    strategy = sl_claim_named(name);
}

static void turns_are_over(void)
{
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
}

static void join_as(const char *name)
{
    sl_err err = { 0 };
    sl_node_row me = {
        .session = 77, .node = "late", .strategy = name, .assign = "", .workers = 1
    };
    if (sl_nodes_join(t.eye, &me, 30 * SL_SEC, NULL, &err) != SL_OK)
        fail_msg("%s", err.text);
}

/* Blocked, with nothing held: as after an ack by receipt. */
static void block_nothing(const char *key, const char *due_at)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) VALUES ('%s', 0, "
             "0, '%s')",
             key, due_at);
    testdb_exec(&t, sql);
}

/* Another finds that a key waits for nothing, while a zombie is about to hold a message of it. */
static void a_key_of_a_zombie_is_not_unblocked_beneath_it(void **state)
{
    (void)state;
    int64_t ids[2];
    use("guard");
    block_nothing("x", "2999-01-01 00:00:00.000");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 1);
    expect_taken(&a, "2"); /* 1 is to be held */
    all_due();
    turns_are_over();
    open_worker(&b);
    assert_int_equal(worker_take(&b, ALL), 0);
    assert_int_equal(blocked(), 0);
    assert_int_equal(settle_as(&a, "s", 0), 0);
    assert_int_equal(held(), 0);
    testdb_push(&t, "x", 1);
    assert_int_equal(send_all(&b, ALL, ids, 2, 2), 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 3);
    assert_int_equal(testdb_count(&t), 0);
}

static void judge(worker *w, size_t i, sl_verdict v)
{
    for (size_t k = 0; k < w->batch.count; k++)
        w->batch.msgs[k].verdict = SL_HELD;
    w->batch.msgs[i].verdict = v;
    w->batch.msgs[i].delay_ns = 3600 * SL_SEC;
    if (strategy->settle(w->claim, &w->batch, &w->lost, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
}

/* As sl_pull does: the keys of the first piece have gone when the second comes. */
static void a_batch_is_settled_piece_by_piece(void **state)
{
    (void)state;
    use("guard");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    testdb_push(&t, "z", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    judge(&a, 0, SL_SENT);
    assert_int_equal(a.lost, 0);
    assert_int_equal(testdb_held_keys(&t), 2);
    judge(&a, 1, SL_RETRY);
    assert_int_equal(a.lost, 0);
    assert_int_equal(held(), 1);
    assert_int_equal(blocked(), 1);
    judge(&a, 2, SL_DEAD);
    assert_int_equal(a.lost, 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 1);
    assert_int_equal(testdb_held_keys(&t), 1);
    judge(&a, 3, SL_SENT);
    assert_int_equal(a.lost, 0);
    assert_int_equal(testdb_held_keys(&t), 0);
}

/* And a piece of which another has the key writes nothing. */
static void a_piece_may_be_lost(void **state)
{
    (void)state;
    use("guard");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    turns_are_over();
    open_worker(&b);
    assert_int_equal(worker_take(&b, 1), 1); /* x */
    judge(&a, 0, SL_RETRY);
    assert_int_equal(a.lost, 1);
    assert_int_equal(held(), 0);
    judge(&a, 1, SL_RETRY);
    assert_int_equal(a.lost, 0);
    assert_int_equal(held(), 1);
}

/* All was sent, and of some keys another is the holder by now: one statement deletes the others' messages, and leaves
 * theirs. */
static void a_part_of_a_turn_may_be_taken_over(void **state)
{
    (void)state;
    use("guard");
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 2);
    testdb_push(&t, NULL, 2);
    testdb_push(&t, "x", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 7);
    turns_are_over();
    open_worker(&b);
    assert_int_equal(worker_take(&b, 3), 3);
    expect_taken(&b, "1 2 7"); /* x */
    assert_int_equal(settle_as(&a, "sssssss", 0), 3);
    testdb_expect(&t, "1\n2\n7", "SELECT CAST(id AS text) FROM sluice_outbox ORDER BY id");
    assert_int_equal(testdb_held_keys(&t), 1);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(testdb_held_keys(&t), 0);
}

/* A floor was wrong: the look passes by a turn that has the key. On SQLite the primary key is the net beneath, and what
 * is in it is left alone. */
static void a_key_that_another_has_after_all_is_left(void **state)
{
    (void)state;
    use("guard");
    if (t.pg)
        return; /* there the lease looks from the same floor on */
    open_worker(&a);
    for (int i = 0; i < 5; i++) { /* until there is a floor */
        testdb_push(&t, "x", 1);
        assert_int_equal(worker_take(&a, ALL), 1);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    testdb_exec(&t, "INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by) "
                    "VALUES ('kx', 1, '2999-01-01 00:00:00.000', 5, 'n/5')");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    testdb_push(&t, "x", 1);
    assert_int_equal(worker_take(&a, ALL), 1);
    expect_taken(&a, "7"); /* y */
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "6\n8", "SELECT CAST(id AS text) FROM sluice_outbox ORDER BY id");
    testdb_expect(&t, "kx 1", "SELECT claim || ' ' || epoch FROM sluice_outbox_claims");
}

/* Of two receipts one is for a message that is gone, the other for a key that another has. */
static void each_lost_receipt_counts_once(void **state)
{
    (void)state;
    use("guard");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE id = 1");
    turns_are_over();
    open_worker(&b);
    assert_int_equal(take_some(&b, 1), 1); /* y */
    assert_int_equal(strategy->adopt(a.claim, &a.batch, &a.err), SL_OK);
    assert_int_equal(settle_as(&a, "rr", 0), 2);
    assert_int_equal(held(), 0);
}

static void a_renewal_tells_of_a_part_that_is_lost(void **state)
{
    (void)state;
    int64_t ids[] = { 1, 2 };
    use("guard");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    int64_t epochs[] = { a.batch.msgs[0].epoch, a.batch.msgs[1].epoch };
    assert_int_equal(strategy->renew(a.db, ids, epochs, 2, SL_SEC, &a.err), SL_OK);
    turns_are_over();
    open_worker(&b);
    assert_int_equal(worker_take(&b, 1), 1);
    assert_int_equal(strategy->renew(a.db, ids, epochs, 2, SL_SEC, &a.err), SL_AGAIN);
    assert_non_null(strstr(a.err.text, "lease lost: the keys of 1 of 2 messages"));
    assert_int_equal(strategy->renew(a.db, ids + 1, epochs, 1, SL_SEC, &a.err), SL_OK);
}

/* Nobody looks for its keys: it would stay for ever. */
static void a_turn_without_messages_goes_after_a_day(void **state)
{
    (void)state;
    use("guard");
    testdb_push(&t, "x", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 1);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    turns_are_over();
    open_worker(&b);
    assert_int_equal(worker_take(&b, ALL), 0);
    assert_int_equal(testdb_held_keys(&t), 1);
    sl_val turns = sl_int(0); /* as a worker does each minute */
    if (sl_db_run1(b.db, "guard/expire", &turns, NULL, NULL, NULL, &b.err) != SL_OK)
        fail_msg("%s", b.err.text);
    assert_int_equal(testdb_held_keys(&t), 0);
}

/* ---- The table is shared in another way by now ---- */

static void a_zombie_of_lanes_settles_nothing_of_guard(void **state)
{
    (void)state;
    use("lanes");
    testdb_push(&t, "x", 3);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 3);
    lane_node_prune(&node, &t);
    join_as("guard");
    use("guard");
    sl_claim_conf conf = claims_conf("late/1", SL_HOLD_LEASE);
    worker_open(&b, &t, strategy, &conf);
    assert_int_equal(worker_take(&b, 2), 2);
    assert_int_equal(settle_as(&a, "srs", 0), 3);
    assert_int_equal(testdb_count(&t), 3);
    assert_int_equal(held(), 0);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
}

static void a_zombie_of_guard_settles_nothing_of_lanes(void **state)
{
    (void)state;
    int64_t id = 1;
    use("guard");
    testdb_push(&t, "x", 3);
    sl_claim_conf conf = claims_conf("early/1", SL_HOLD_LEASE);
    worker_open(&a, &t, strategy, &conf);
    assert_int_equal(worker_take(&a, ALL), 3);
    const sl_claim_ops *guard = strategy;
    turns_are_over();
    use("lanes");
    open_worker(&b);
    assert_true(worker_take(&b, ALL) > 0);
    assert_int_equal(guard->renew(a.db, &id, &a.batch.msgs[0].epoch, 1, SL_SEC, &a.err),
                     SL_AGAIN);
    assert_int_equal(settle_as(&a, "srs", 0), 3);
    assert_int_equal(testdb_count(&t), 3);
    assert_int_equal(held(), 0);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_of_a_zombie_is_not_unblocked_beneath_it),
        TEST(a_batch_is_settled_piece_by_piece),
        TEST(a_piece_may_be_lost),
        TEST(a_part_of_a_turn_may_be_taken_over),
        TEST(a_key_that_another_has_after_all_is_left),
        TEST(each_lost_receipt_counts_once),
        TEST(a_renewal_tells_of_a_part_that_is_lost),
        TEST(a_turn_without_messages_goes_after_a_day),
        TEST(a_zombie_of_lanes_settles_nothing_of_guard),
        TEST(a_zombie_of_guard_settles_nothing_of_lanes),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
