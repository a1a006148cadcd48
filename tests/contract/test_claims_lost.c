/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of the ordered strategies in the database: what is written and what is not, what happens
 * to a claim that another has taken over, and to what one strategy leaves to the next.
 */
#include "contract/ordered.h"

static lane_node other; /* who takes over the lanes */

static int setup_lost(void **state)
{
    other = (lane_node){ .session = 0 };
    return setup(state);
}

static int teardown_lost(void **state)
{
    worker_close(&b);
    lane_node_fini(&other);
    return teardown(state);
}

/* As if the lease of all that `a` holds had ended: b may take it. */
static void open_successor(void)
{
    sl_claim_conf conf = claims_conf("n/2", SL_HOLD_LEASE);
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    if (lanes()) {
        lane_node_prune(&node, &t);
        lane_node_join(&other, &t, "m");
        assert_int_equal(lane_node_acquire(&other, 0, other.count), other.count);
        conf.lanes = other.lanes;
    }
    worker_open(&b, &t, strategy, &conf);
}

#define ROWS                                                                                   \
    "SELECT id || ' ' || attempts || ' ' || coalesce(last_error, '-') FROM sluice_outbox "     \
    "ORDER BY id"

/* ---- Lost ---- */

/* The zombie: it was paused, another has its keys, and now it wants to settle. */
static void what_was_lost_is_left_alone_and_counted(void **state)
{
    (void)state;
    static const char *const keys[] = { "u", "v", "w", "x", "y", NULL };
    if (strategy->in_transaction)
        return; /* a transaction cannot be taken over */
    for (size_t i = 0; i < COUNT(keys); i++)
        testdb_push(&t, keys[i], 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 6);
    int64_t epoch = a.batch.msgs[0].epoch;
    open_successor();
    assert_int_equal(take_some(&b, ALL), 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(b.batch.msgs[i].epoch > epoch);
    assert_int_equal(settle_as(&a, "srdu-s", 0), 5); /* to give back is nothing to lose */
    testdb_expect(&t, "1 0 -\n2 0 -\n3 0 -\n4 0 -\n5 0 -\n6 0 -", ROWS);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
    assert_int_equal(blocked(), 0);
    assert_int_equal(held(), 0);
    sl_lanes *zombies = node.lanes;
    if (zombies)
        sl_lanes_trust(zombies, 0); /* it is over when others may have them */
    expect_nothing(&a);             /* nor does it get anything any more */
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
}

/* Only deletions, without anything else to write: one statement, which checks by itself. */
static void sent_of_the_lost_deletes_nothing(void **state)
{
    (void)state;
    if (strategy->in_transaction)
        return;
    testdb_push(&t, "x", 2);
    testdb_push(&t, NULL, 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    open_successor();
    assert_int_equal(take_some(&b, ALL), 4);
    assert_int_equal(settle_as(&a, "ssss", 0), 4);
    assert_int_equal(testdb_count(&t), 4);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
}

/* Of two keys one is lost: what was sent of the other is deleted; the rest comes again. */
static void a_part_may_be_lost(void **state)
{
    (void)state;
    if (strategy->in_transaction)
        return;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    testdb_exec(&t, lanes()
                        ? "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane IN "
                          "(SELECT lane FROM sluice_outbox WHERE entity_key = 'x')"
                        : testdb_or(&t,
                                    "UPDATE sluice_outbox_claims SET keys = "
                                    "array_remove(keys, 'kx')",
                                    "DELETE FROM sluice_outbox_claims WHERE claim = 'kx'"));
    assert_int_equal(settle_as(&a, "sssr", 3600 * SL_SEC), 3);
    testdb_expect(&t, "1 0 -\n2 0 -\n4 0 -", ROWS);
    assert_int_equal(blocked(), 0);
}

/* A lease that ended, but that nobody took, is still good for a verdict. */
static void a_late_verdict_counts_if_nobody_came(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    if (!strategy->in_transaction)
        testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    if (lanes())
        lane_node_prune(&node, &t);
    assert_int_equal(settle_as(&a, "s-rs", 3600 * SL_SEC), 0); /* and y's second, out of turn */
    testdb_expect(&t, "2 0 -\n3 1 why", ROWS);
    assert_int_equal(blocked(), 1);
}

/* A worker that went away without a word: others get its keys when its lease has ended, or at once
 * where the connection, or the node, was the lease. */
static void what_a_dead_worker_held_comes_back(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 3);
    worker_close(&a);
    open_worker(&b);
    if (!lanes() && !strategy->in_transaction) {
        expect_nothing(&b);
        testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    }
    assert_int_equal(take_some(&b, ALL), 3);
    expect_taken(&b, "1 2 3");
    assert_int_equal(b.batch.msgs[0].attempt, 1); /* only failures count */
}

/* ---- Holding ---- */

#define ENDS_AT "(SELECT min(ends_at) FROM sluice_outbox_claims)"

static void holding_extends_the_lease_of_the_keys(void **state)
{
    (void)state;
    if (lanes() || strategy->in_transaction)
        return;
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    conf.lease_ns = 6 * SL_SEC; /* none is lost by a machine that stops for a while */
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 1);
    worker_open(&a, &t, strategy, &conf);
    open_worker(&b);
    assert_int_equal(worker_take(&a, ALL), 3);
    int64_t trusted_ns = strategy->trusted_ns(a.claim);
    assert_true(trusted_ns <= sl_now_ns() + 5400 * SL_MS); /* less a margin of a tenth */
    int64_t end_us = testdb_time_us(&t, ENDS_AT);
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (strategy->trusted_ns(a.claim) == trusted_ns) {
        assert_true(sl_now_ns() < until_ns);
        assert_int_equal(worker_take(&b, ALL), 0);
        assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_OK);
        usleep(20000);
    }
    assert_true(strategy->trusted_ns(a.claim) >= trusted_ns + 2 * SL_SEC);
    assert_true(testdb_time_us(&t, ENDS_AT) >= end_us + 1990000); /* for a third more */
    assert_int_equal(worker_take(&b, ALL), 0);
    /* And when another has one of them, it says so. */
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    assert_int_equal(take_some(&b, 2), 2);
    expect_taken(&b, "1 2");
    sl_rc rc = SL_OK;
    until_ns = sl_now_ns() + 30 * SL_SEC;
    for (; rc == SL_OK && sl_now_ns() < until_ns; usleep(1000))
        rc = strategy->hold(a.claim, &a.batch, &a.err);
    assert_int_equal(rc, SL_AGAIN);
    assert_non_null(strstr(a.err.text, "lease lost: 1 of 2 keys"));
}

/* The node renews for all its workers: each believes it for as long as that is good. */
static void lanes_are_held_as_long_as_the_node_is_trusted(void **state)
{
    (void)state;
    if (!lanes())
        return;
    testdb_push(&t, "x", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 1);
    assert_int_equal(strategy->trusted_ns(a.claim), sl_lanes_trusted_ns(node.lanes));
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_OK);
    sl_lanes_trust(node.lanes, sl_now_ns() - 1);
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_AGAIN);
    assert_non_null(strstr(a.err.text, "the node's lease"));
    sl_lanes_trust(node.lanes, sl_now_ns() + 60 * SL_SEC);
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_OK);
    sl_lanes_void(node.lanes, node.count); /* pruned, and joined again: not the same any more */
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_AGAIN);
    assert_int_equal(strategy->trusted_ns(a.claim), 0);
    assert_int_equal(sl_lanes_stale(node.lanes), 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0); /* the epoch is still its own */
    assert_int_equal(sl_lanes_stale(node.lanes), 0);
}

static void a_node_that_is_not_trusted_takes_nothing(void **state)
{
    (void)state;
    if (!lanes())
        return;
    testdb_push(&t, "x", 1);
    open_worker(&a);
    sl_lanes_trust(node.lanes, sl_now_ns() - 1);
    expect_nothing(&a);
    sl_lanes_trust(node.lanes, sl_now_ns() + 60 * SL_SEC);
    assert_int_equal(take_some(&a, ALL), 1);
}

/* A lane that is to leave is given up only when its last message is settled. */
/* Others may share the table in another way by then. */
static void a_claim_is_trusted_no_longer_than_its_node(void **state)
{
    (void)state;
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    testdb_push(&t, "x", 1);
    lane_node_join(&node, &t, "n");
    if (lanes())
        assert_int_equal(lane_node_acquire(&node, 0, node.count), node.count);
    conf.lanes = node.lanes;
    sl_lanes_trust(node.lanes, INT64_MAX);
    worker_open(&a, &t, strategy, &conf);
    assert_int_equal(take_some(&a, ALL), 1);
    assert_true(sl_now_ns() < strategy->trusted_ns(a.claim));
    sl_lanes_trust(node.lanes, sl_now_ns());
    assert_true(sl_now_ns() >= strategy->trusted_ns(a.claim));
}

static void a_leaving_lane_waits_for_its_worker(void **state)
{
    (void)state;
    if (!lanes())
        return;
    bool none[LANES_MAX] = { 0 };
    int64_t left[LANES_MAX];
    testdb_push(&t, "x", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    sl_lanes_wish(node.lanes, none);
    size_t at_once = sl_lanes_left(node.lanes, left);
    for (size_t i = 0; i < at_once; i++)
        assert_int_not_equal(left[i], a.batch.msgs[0].lane);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(at_once + sl_lanes_left(node.lanes, left), node.count);
    assert_int_equal(testdb_count(&t), 0);
}

/* Two workers of one node use some of its lanes each; what is written is fenced by these alone. */
static void workers_of_a_node_settle_side_by_side(void **state)
{
    (void)state;
    if (!lanes())
        return;
    for (int i = 0; i < 40; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        testdb_push(&t, key, 2);
    }
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    size_t n = worker_take(&a, ALL) + worker_take(&b, ALL);
    assert_true(a.batch.count > 0 && b.batch.count > 0);
    assert_int_equal(worker_settle(&a, SL_RETRY, SL_STR("why")), 0);
    assert_int_equal(worker_settle(&b, SL_DEAD, SL_STR("why")), 0);
    assert_int_equal(
        testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead") +
            testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE attempts = 1"),
        (int64_t)n);
}

/* ---- Locks ---- */

static sl_rc note_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

/* Locks that the worker's own session holds, beside those on tables. */
static int64_t locks_of(worker *w)
{
    int64_t n = -1;
    sl_stmt s = testdb_stmt(w->db, 7,
                            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid "
                            "= pg_backend_pid()",
                            1, SL_T_INT8);
    sl_call call = { .stmt = &s, .row = note_int, .ctx = &n };
    if (w->db->ops->run(w->db, &call, 1, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    return n;
}

static int64_t keys_of(const sl_batch *batch)
{
    int64_t n = 0;
    for (size_t i = 0; i < batch->count; i++) {
        bool again = false;
        for (size_t k = 0; k < i && batch->msgs[i].key.p; k++)
            again |= sl_str_eq(batch->msgs[i].key, batch->msgs[k].key);
        n += !again;
    }
    return n;
}

/* The server has room for so many: no more than what is delivered, and none for longer. */
static void no_key_is_locked_in_vain(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 3, 10, 1000 };
    if (!t.pg)
        return;
    for (int i = 0; i < 60; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i % 20);
        testdb_push(&t, i % 6 ? key : NULL, 1);
    }
    for (int small = 0; small < 2; small++) {
        open_with(&a, small ? 2 : 1 << 20, 1); /* two messages fill it */
        for (size_t i = 0; i < COUNT(sizes); i++) {
            assert_true(worker_take(&a, sizes[i]) > 0);
            int64_t locks = locks_of(&a);
            assert_true(locks <= (strategy->in_transaction ? keys_of(&a.batch) : 0));
            assert_true(locks > 0 || !strategy->in_transaction);
            assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
            assert_int_equal(locks_of(&a), 0);
        }
        worker_close(&a);
    }
}

/* The same for keys that waited. */
static void no_due_key_is_locked_in_vain(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 3, 10 };
    if (!t.pg)
        return;
    for (int i = 0; i < 40; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        testdb_push(&t, i % 2 ? key : NULL, 1);
    }
    open_worker(&a);
    for (size_t n = 0; n < 40; n += a.batch.count) {
        take_some(&a, ALL);
        for (size_t i = 0; i < a.batch.count; i++)
            a.batch.msgs[i].delay_ns = 3600 * SL_SEC;
        assert_int_equal(worker_settle(&a, SL_RETRY, SL_NONE), 0);
    }
    assert_int_equal(held(), 40);
    all_due();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_true(take_some(&a, sizes[i]) > 0);
        int64_t locks = locks_of(&a);
        assert_true(locks <= (strategy->in_transaction ? keys_of(&a.batch) : 0));
        assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
        assert_int_equal(locks_of(&a), 0);
    }
}

/* ---- Batches of another connection ---- */

/* As from receipts: what is known of a message is its id, its epoch and whether it is its key's last. */
static void adopt_one(worker *from, size_t i, sl_verdict v)
{
    const sl_msg *m = &from->batch.msgs[i];
    sl_batch_reset(&b.batch);
    sl_msg *to = sl_batch_add(&b.batch);
    to->id = m->id;
    to->epoch = m->epoch;
    to->last = m->last;
    to->attempt = 1;
    to->delay_ns = 3600 * SL_SEC;
    assert_int_equal(strategy->adopt(b.claim, &b.batch, &b.err), SL_OK);
    sl_msg_settle(&b.batch, to, v, SL_STR("why"));
    if (strategy->settle(b.claim, &b.batch, &b.lost, &b.err) != SL_OK)
        fail_msg("%s", b.err.text);
}

static void a_batch_of_another_connection_is_settled_one_by_one(void **state)
{
    (void)state;
    if (!strategy->adopt)
        return;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 1);
    testdb_push(&t, NULL, 1);
    open_worker(&a);
    open_worker(&b);
    assert_int_equal(worker_take(&a, ALL), 4);
    adopt_one(&a, 0, SL_SENT);
    assert_int_equal(b.lost, 0);
    assert_int_equal(testdb_held_keys(&t), 3);
    adopt_one(&a, 1, SL_RETRY);
    adopt_one(&a, 2, SL_DEAD);
    testdb_expect(&t, "i4",
                  testdb_or(&t, "SELECT unnest(keys) FROM sluice_outbox_claims",
                            "SELECT claim FROM sluice_outbox_claims"));
    adopt_one(&a, 3, SL_SENT);
    assert_int_equal(b.lost, 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
    testdb_expect(&t, "2 1 why", ROWS);
    testdb_expect(&t, "3", "SELECT CAST(id AS text) FROM sluice_outbox_dead");
    assert_int_equal(blocked(), 1);
    adopt_one(&a, 2, SL_SENT); /* twice: it is gone */
    assert_int_equal(b.lost, 1);
}

static void a_receipt_of_the_lost_is_refused(void **state)
{
    (void)state;
    if (!strategy->adopt)
        return;
    testdb_push(&t, "x", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET epoch = epoch + 1000");
    open_worker(&b);
    adopt_one(&a, 0, SL_SENT);
    assert_int_equal(b.lost, 1);
    adopt_one(&a, 0, SL_RETRY);
    assert_int_equal(b.lost, 1);
    testdb_expect(&t, "1 0 -\n2 0 -", ROWS);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 1);
}

/* ---- What is written ---- */

/* A message that goes back untried costs no write. */
static void released_writes_nothing(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    testdb_push(&t, NULL, 2);
    open_worker(&a);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(worker_take(&a, ALL), 5);
        assert_int_equal(a.batch.msgs[0].attempt, 1);
        assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
    }
    assert_int_equal(blocked(), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
    if (t.pg)
        assert_int_equal(testdb_int(&t, "SELECT count(DISTINCT xmin::text) FROM sluice_outbox"),
                         2);
}

/* A row of a message in flight says nothing of that: the claim stands elsewhere. */
static void rows_are_not_leased(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    testdb_expect(&t, "0 - -\n0 - -",
                  testdb_or(&t,
                            "SELECT attempts || ' ' || coalesce(worker, '-') || ' ' || "
                            "coalesce(leased_until::text, '-') FROM sluice_outbox",
                            "SELECT attempts || ' ' || coalesce(worker, '-') || ' ' || "
                            "coalesce(leased_until, '-') FROM sluice_outbox"));
}

static void the_epochs_of_a_key_never_fall(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int i = 0; i < 10; i++) {
        worker *w = i % 2 ? &a : &b;
        testdb_push(&t, "x", 2);
        open_worker(w);
        assert_int_equal(take_some(w, ALL), 2);
        assert_true(w->batch.msgs[0].epoch > 0);
        assert_true(w->batch.msgs[0].epoch >= last);
        assert_true(w->batch.msgs[1].epoch >= w->batch.msgs[0].epoch);
        last = w->batch.msgs[1].epoch;
        assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
        worker_close(w);
        if (i % 3 == 2)
            lane_node_fini(&node); /* the next owner of the lanes */
    }
}

/* Is there anything to do, for anyone? */
static bool peek(void)
{
    bool any = true;
    if (strategy->peek(a.claim, &any, &a.err) != SL_OK)
        fail_msg("%s", a.err.text);
    return any;
}

static void peek_sees_what_may_go_and_nothing_else(void **state)
{
    (void)state;
    open_worker(&a);
    assert_false(peek());
    testdb_push(&t, "x", 2);
    testdb_push(&t, NULL, 1);
    assert_true(peek());
    assert_int_equal(take_some(&a, ALL), 3);
    assert_int_equal(settle_as(&a, "r-r", 3600 * SL_SEC), 0);
    expect_nothing(&a); /* 2 is put aside */
    assert_false(peek());
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000' WHERE "
                    "entity_key IS NULL");
    assert_true(peek());
    expect_sent(&a, 100, 3, 3);
    assert_false(peek());
    all_due();
    assert_true(peek());
    expect_sent(&a, 100, 1, 2);
    assert_false(peek());
}

/* ---- From one strategy to the next ---- */

static void open_as(worker *w, const char *name)
{
    const sl_claim_ops *ops = sl_claim_named(name);
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    lane_node_fini(&node);
    claims_give_lanes(&conf, ops, &node, &t);
    worker_open(w, &t, ops, &conf);
}

/* Each leaves a failed head, messages behind it and something in flight, and dies. */
static void a_strategy_takes_over_from_any_other(void **state)
{
    (void)state;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        int64_t ids[6];
        testdb_push(&t, "x", 3);
        testdb_push(&t, "y", 3);
        open_as(&a, (*c)->name);
        take_some(&a, ALL);
        assert_int_equal(a.batch.count, 6);
        assert_int_equal(settle_as(&a, "r-----", 3600 * SL_SEC), 0);
        worker_take(&a, ALL); /* in flight */
        worker_close(&a);
        all_due();
        testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000', "
                        "leased_until = NULL");
        testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
        open_as(&a, strategy->name);
        assert_int_equal(send_all(&a, ALL, ids, 6, 6), 6);
        int64_t last[2] = { 0 };
        for (size_t i = 0; i < 6; i++) {
            int64_t y = (ids[i] - 1) % 6 >= 3;
            assert_true(ids[i] > last[y]);
            last[y] = ids[i];
        }
        assert_int_equal(testdb_count(&t), 0);
        int64_t until_ns =
            sl_now_ns() + 10 * SL_SEC; /* a key that waits for nothing is cleaned up */
        while (blocked() > 0 && sl_now_ns() < until_ns)
            assert_int_equal(worker_take(&a, 10), 0);
        assert_int_equal(blocked(), 0);
        worker_close(&a);
    }
}

/* What skip-locked has leased is not sent by others while the lease lasts, nor what is behind it. */
static void rows_that_are_leased_are_left_alone(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 1);
    testdb_push(&t, NULL, 1);
    testdb_exec(
        &t, testdb_or(&t,
                      "UPDATE sluice_outbox SET worker = 'n/1', epoch = 1, leased_until "
                      "= now() + interval '1 hour' WHERE id IN (1, 4)",
                      "UPDATE sluice_outbox SET worker = 'n/1', epoch = 1, leased_until "
                      "= strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour') WHERE id IN (1, 4)"));
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 1);
    expect_taken(&a, "3");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_nothing(&a);
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2000-01-01 00:00:00.000' WHERE "
                    "leased_until IS NOT NULL");
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    int64_t ids[3];
    assert_int_equal(send_all(&a, ALL, ids, 3, 3), 3);
}

/* Epochs come from one source: what was fenced off stays so, whoever comes next. */
static void epochs_grow_from_strategy_to_strategy(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int i = 0; i < 6; i++) {
        const char *name = i % 2                             ? strategy->name
                           : strcmp(strategy->name, "guard") ? "guard"
                                                             : "lanes";
        testdb_push(&t, "x", 1);
        open_as(&a, name);
        assert_int_equal(take_some(&a, ALL), 1);
        assert_true(a.batch.msgs[0].epoch > last);
        last = a.batch.msgs[0].epoch;
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        worker_close(&a);
    }
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_lost, teardown_lost)
    const struct CMUnitTest tests[] = {
        TEST(what_was_lost_is_left_alone_and_counted),
        TEST(sent_of_the_lost_deletes_nothing),
        TEST(a_part_may_be_lost),
        TEST(a_late_verdict_counts_if_nobody_came),
        TEST(what_a_dead_worker_held_comes_back),
        TEST(holding_extends_the_lease_of_the_keys),
        TEST(lanes_are_held_as_long_as_the_node_is_trusted),
        TEST(a_node_that_is_not_trusted_takes_nothing),
        TEST(a_claim_is_trusted_no_longer_than_its_node),
        TEST(a_leaving_lane_waits_for_its_worker),
        TEST(workers_of_a_node_settle_side_by_side),
        TEST(no_key_is_locked_in_vain),
        TEST(no_due_key_is_locked_in_vain),
        TEST(a_batch_of_another_connection_is_settled_one_by_one),
        TEST(a_receipt_of_the_lost_is_refused),
        TEST(released_writes_nothing),
        TEST(rows_are_not_leased),
        TEST(the_epochs_of_a_key_never_fall),
        TEST(peek_sees_what_may_go_and_nothing_else),
        TEST(a_strategy_takes_over_from_any_other),
        TEST(rows_that_are_leased_are_left_alone),
        TEST(epochs_grow_from_strategy_to_strategy),
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
