/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At most once, in the database: what is consumed has left the table before the first byte leaves, for good; what
 * becomes of it is decided once, by the verdict, or by whoever finds that its node is gone.
 */
#include "contract/claims.h"
#include "member/orphans.h"

#include <pthread.h>

static const char *dialect;
static const sl_claim_ops *strategy;
static sl_hold hold;
static testdb t;
static lane_node node, other;
static worker a, b;

enum { ALL = 10000 };

static int setup(void **state)
{
    (void)state;
    a = b = (worker){ .lost = 0 };
    node = other = (lane_node){ .session = 0 };
    testdb_init(&t, dialect, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    worker_close(&a);
    worker_close(&b);
    lane_node_fini(&node);
    lane_node_fini(&other);
    testdb_drop(&t);
    return 0;
}

static bool transacted(void)
{
    return !strategy->ordered && hold == SL_HOLD_TRANSACTION;
}

/* Nobody can take over what was taken, before or after it was consumed. */
static bool locks_first(void)
{
    return transacted() || strategy->in_transaction;
}

static bool locks_last(void)
{
    return transacted() || (strategy->in_transaction && !strcmp(dialect, "postgres"));
}

static void open_as(worker *w, const char *name, lane_node *n)
{
    sl_claim_conf conf = claims_conf(name, hold);
    conf.consumes = true;
    claims_give_lanes(&conf, strategy, n, &t);
    worker_open(w, &t, strategy, &conf);
}

/* As if the claims of all others had ended. */
static void open_successor(void)
{
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    if (!transacted())
        testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2000-01-01 00:00:00.000'");
    if (strategy->owns_lanes) {
        lane_node_prune(&node, &t);
        lane_node_join(&other, &t, "m");
        assert_int_equal(lane_node_acquire(&other, 0, other.count), other.count);
    }
    open_as(&b, "m/1", &other);
}

/* One message with each of these ids is marked, a letter by id: 'c' is to be consumed. */
static sl_rc try_consume(worker *w, const char *marks)
{
    sl_consume_stamp none = { 0 };
    for (size_t i = 0; i < w->batch.count; i++)
        w->batch.msgs[i].consumed = marks[w->batch.msgs[i].id - 1] == 'c';
    return strategy->consume(w->claim, &w->batch, &none, &w->err);
}

static void consume(worker *w, const char *marks)
{
    if (try_consume(w, marks) != SL_OK)
        fail_msg("%s", w->err.text);
}

/* Verdicts, a letter by id; '.': it has one, or was never handed over. */
static size_t settle(worker *w, const char *verdicts)
{
    for (size_t i = 0; i < w->batch.count; i++) {
        sl_msg *m = &w->batch.msgs[i];
        char c = verdicts[m->id - 1];
        if (c != '.')
            sl_msg_settle(&w->batch, m,
                          c == 's'   ? SL_SENT
                          : c == 'r' ? SL_RETRY
                          : c == 'u' ? SL_UNKNOWN
                                     : SL_DEAD,
                          SL_STR("why"));
    }
    return worker_settle(w, SL_RELEASED, SL_NONE);
}

static void take_all(worker *w, size_t count)
{
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (worker_take(w, ALL) == 0 && sl_now_ns() < until_ns)
        usleep(2000);
    assert_int_equal(w->batch.count, count);
}

static int64_t consumed(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_consumed");
}

static int64_t dead(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead");
}

#define ROWS                                                                                   \
    "SELECT id || ' ' || coalesce(entity_key, '-') || ' ' || attempts FROM sluice_outbox "     \
    "ORDER BY id"
#define CONSUMED                                                                               \
    "SELECT id || ' ' || coalesce(entity_key, '-') || ' ' || attempts || ' ' || worker "       \
    "FROM sluice_outbox_consumed ORDER BY id"
#define DEAD                                                                                   \
    "SELECT id || ' ' || attempts || ' ' || last_error || ' ' || CASE WHEN unknown THEN "      \
    "'maybe' ELSE 'no' END FROM sluice_outbox_dead ORDER BY id"

/* ---- Before the send ---- */

/* Another connection looks: so it is committed. */
static void what_is_marked_moves_and_nothing_else(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    testdb_push(&t, NULL, 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 5);
    consume(&a, "c.c.c");
    testdb_expect(&t, "1 x 0 n/1\n3 x 0 n/1\n5 - 0 n/1", CONSUMED);
    assert_int_equal(testdb_count(&t), 2);
    assert_int_equal(settle(&a, "s.s.s"), 0);
    assert_int_equal(consumed(), 0);
    assert_int_equal(dead(), 0);
    testdb_expect(&t, "2 x 0\n4 - 0", ROWS);
}

static void a_dead_worker_s_are_not_sent_again(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    open_as(&a, "n/1", &node);
    take_all(&a, 3);
    consume(&a, "cc.");
    worker_close(&a);
    open_successor();
    take_all(&b, 1);
    assert_int_equal(b.batch.msgs[0].id, 3);
    assert_int_equal(settle(&b, "..s"), 0);
    assert_int_equal(consumed() + dead(), 2);
}

static void a_lost_claim_consumes_nothing(void **state)
{
    (void)state;
    if (locks_first())
        return; /* nobody can take it over */
    testdb_push(&t, "x", 3);
    testdb_push(&t, NULL, 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 5);
    open_successor();
    take_all(&b, 5);
    assert_int_equal(try_consume(&a, "ccccc"), SL_AGAIN);
    assert_int_equal(consumed(), 0);
    assert_int_equal(testdb_count(&t), 5);
    consume(&b, "ccccc");
    assert_int_equal(consumed(), 5);
    assert_int_equal(try_consume(&a, "ccccc"), SL_AGAIN); /* nor when it has left */
    assert_int_equal(settle(&b, "sssss"), 0);
    assert_int_equal(consumed() + dead() + testdb_count(&t), 0);
}

/* One of the claims is lost: then none of the batch is consumed. */
static void all_or_nothing(void **state)
{
    (void)state;
    if (locks_first())
        return;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 4);
    if (strategy->owns_lanes)
        testdb_exec(&t, "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane IN "
                        "(SELECT lane FROM sluice_outbox WHERE entity_key = 'x')");
    else if (strategy->ordered)
        testdb_exec(&t, testdb_or(&t,
                                  "UPDATE sluice_outbox_claims SET keys = array_remove(keys, "
                                  "'kx')",
                                  "DELETE FROM sluice_outbox_claims WHERE claim = 'kx'"));
    else
        testdb_exec(&t, "UPDATE sluice_outbox SET epoch = epoch + 1 WHERE entity_key = 'x'");
    assert_int_equal(try_consume(&a, "cccc"), SL_AGAIN);
    assert_int_equal(consumed(), 0);
    assert_int_equal(testdb_count(&t), 4);
}

static void nothing_is_consumed_twice(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 2);
    consume(&a, "cc");
    assert_int_equal(try_consume(&a, "cc"), SL_AGAIN);
    assert_int_equal(consumed(), 2);
    assert_int_equal(settle(&a, "ss"), 0);
    assert_int_equal(consumed() + testdb_count(&t), 0);
}

/* After the commit: before that, on SQLite, nobody else can write. */
static void push_more(void)
{
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    testdb_push(&t, "z", 1);
}

/* Nobody takes what follows in a key, nor what was taken with it and is not consumed, while it may still be
 * on its way. With nobody else's messages in between, the rest is found as soon as it is settled. */
static void its_keys_stay_ours(void **state)
{
    (void)state;
    if (!strategy->ordered || strategy->owns_lanes)
        return; /* a lane's keys are its owner's all the time */
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    testdb_push(&t, NULL, 1);
    open_as(&a, "n/1", &node);
    open_as(&b, "m/1", &other);
    take_all(&a, 3);
    consume(&a, "c.c");
    push_more();
    for (int i = 0; i < 3; i++) { /* looks at more each time */
        assert_int_equal(worker_take(&b, 1 + 100 * i), 1);
        assert_int_equal(b.batch.msgs[0].id, 6); /* of a key that is nobody's */
        assert_int_equal(worker_settle(&b, SL_RELEASED, SL_NONE), 0);
    }
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_OK);
    assert_true(strategy->trusted_ns(a.claim) > sl_now_ns());
    assert_int_equal(settle(&a, "sss"), 0);
    testdb_expect(&t, "4 x 0\n5 y 0\n6 z 0", ROWS);
    take_all(&b, 3);
    assert_int_equal(settle(&b, "...sss"), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
}

/* A worker that ends lets go of its keys: at once where locks keep them, else when its lease ends. */
static void a_dead_worker_s_keys_are_free(void **state)
{
    (void)state;
    if (!strategy->in_transaction)
        return;
    testdb_push(&t, "x", 2);
    open_as(&a, "n/1", &node);
    open_as(&b, "m/1", &other);
    take_all(&a, 2);
    consume(&a, "c.");
    assert_int_equal(worker_take(&b, ALL), 0);
    worker_close(&a);
    if (!locks_last()) {
        assert_int_equal(worker_take(&b, ALL), 0);
        testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    }
    take_all(&b, 1);
    assert_int_equal(settle(&b, ".s"), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 0);
}

/* ---- Verdicts ---- */

static void verdicts_are_written(void **state)
{
    (void)state;
    static const char *const keys[] = { "u", "v", "w", "x", "y" };
    for (size_t i = 0; i < COUNT(keys); i++)
        testdb_push(&t, keys[i], 1);
    open_as(&a, "n/1", &node);
    take_all(&a, 5);
    consume(&a, "ccccc");
    assert_int_equal(settle(&a, "srud."), 0);
    testdb_expect(&t, "2 1 why maybe\n3 1 why maybe\n4 1 why maybe", DEAD);
    testdb_expect(&t, "5 y 0", ROWS);
    assert_int_equal(consumed(), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_keys"), 0);
}

/* Beside others of the same batch that are delivered at least once. */
static void verdicts_of_both_promises_at_once(void **state)
{
    (void)state;
    static const char *const keys[] = { "u", "v", "w", "x", "y", "z", "t" };
    if (transacted())
        return; /* the others are released */
    for (size_t i = 0; i < COUNT(keys); i++)
        testdb_push(&t, keys[i], 1);
    open_as(&a, "n/1", &node);
    take_all(&a, 7);
    consume(&a, "ccc...c");
    assert_int_equal(settle(&a, "srdsrd."), 0);
    testdb_expect(&t, "2 1 why maybe\n3 1 why maybe\n6 1 why no", DEAD);
    testdb_expect(&t, "5 y 1\n7 t 0", ROWS);
    assert_int_equal(consumed(), 0);
}

static void what_was_never_handed_over_comes_back_in_order(void **state)
{
    (void)state;
    testdb_push(&t, "x", 1);
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, entity_key, payload, idempotency_key) "
                    "VALUES ('t', 'x', 'p', 'once')");
    testdb_push(&t, "x", 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 4);
    consume(&a, "cccc");
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(settle(&a, "s..."), 0);
    testdb_expect(&t, "2 x 0\n3 x 0\n4 x 0", ROWS);
    assert_int_equal(consumed() + dead(), 0);
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, entity_key, payload, idempotency_key) "
                    "VALUES ('t', 'x', 'p', 'once') ON CONFLICT DO NOTHING");
    assert_int_equal(testdb_count(&t), 3); /* the key is still taken */
    take_all(&a, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a.batch.msgs[i].id, 2 + (int64_t)i);
    assert_int_equal(a.batch.msgs[0].attempt, 1);
    assert_int_equal(settle(&a, ".sss"), 0);
}

/* Later ones of its key may have been sent by the next owner: it does not come back behind them. */
static void what_was_never_handed_over_and_lost_is_listed(void **state)
{
    (void)state;
    if (!strategy->ordered || locks_last())
        return;
    testdb_push(&t, "x", 2);
    open_as(&a, "n/1", &node);
    take_all(&a, 2);
    consume(&a, "c.");
    testdb_exec(&t, "UPDATE sluice_outbox_consumed SET journal = 1"); /* nobody else lists it */
    open_successor();
    take_all(&b, 1);
    bool first = strategy->in_transaction; /* nobody else can write meanwhile */
    if (first)
        assert_int_equal(settle(&b, ".s"), 0);
    settle(&a, "..");
    testdb_expect(&t, "1 1 not sent: the claim was lost before maybe", DEAD);
    if (!first)
        assert_int_equal(settle(&b, ".s"), 0);
    assert_int_equal(testdb_count(&t) + consumed(), 0);
}

/* ---- Its node is gone ---- */

static void what_a_node_left_is_listed_once(void **state)
{
    (void)state;
    sl_err err = { 0 };
    int64_t listed = 0, count = 0;
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    testdb_push(&t, "z", 1);
    open_as(&a, "n/1", &node);
    take_all(&a, 3);
    consume(&a, "ccc");
    if (strategy->owns_lanes) {
        assert_int_equal(sl_orphans_list(b.db ? b.db : node.db, NULL, &listed, &err), SL_OK);
        assert_int_equal(listed, 0); /* it lives */
        lane_node_prune(&node, &t);
    }
    sl_db *db = testdb_open(&t);
    assert_int_equal(sl_orphans_count(db, &count, &err), SL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(sl_orphans_list(db, NULL, &listed, &err), SL_OK);
    assert_int_equal(listed, 3);
    assert_int_equal(sl_orphans_list(db, NULL, &listed, &err), SL_OK);
    assert_int_equal(listed, 0);
    sl_db_close(db);
    settle(&a, "sd."); /* it was only forgotten, and comes too late */
    assert_int_equal(testdb_count(&t) + consumed(), 0);
    testdb_expect(&t,
                  "1 1 consumed by n/1, which ended before the answer maybe\n"
                  "2 1 consumed by n/1, which ended before the answer maybe\n"
                  "3 1 consumed by n/1, which ended before the answer maybe",
                  DEAD);
}

/* The node lives, but this worker lost its connection. */
static void a_worker_that_begins_anew_lists_its_own(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    testdb_exec(&t, "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                    "workers, born, lives_until) VALUES (7, 'k', 'lanes', '', 1, 1, "
                    "'2100-01-01 00:00:00.000')");
    open_as(&a, "k/1", &node);
    take_all(&a, 2);
    consume(&a, "cc");
    worker_close(&a);
    sl_lanes *lanes = sl_lanes_new();
    sl_claim_conf conf = claims_conf("k/2", hold);
    conf.consumes = true;
    conf.lanes = strategy->owns_lanes ? node.lanes : lanes;
    worker_open(&b, &t, strategy, &conf);
    assert_int_equal(consumed(), 2); /* another worker's */
    worker_close(&b);
    conf.worker = "k/1";
    worker_open(&b, &t, strategy, &conf);
    assert_int_equal(consumed(), 0);
    assert_int_equal(dead(), 2);
    worker_close(&b);
    sl_lanes_free(lanes);
}

static void *settle_in_thread(void *arg)
{
    sl_batch_settle_rest(&a.batch, SL_RELEASED, SL_NONE);
    *(sl_rc *)arg = strategy->settle(a.claim, &a.batch, &a.lost, &a.err);
    return NULL;
}

/* Both at the same moment: the settle waits, and finds nothing. */
static void a_settle_waits_for_who_lists(void **state)
{
    (void)state;
    sl_err err = { 0 };
    sl_rc rc = SL_AGAIN;
    pthread_t thread;
    sl_val nobody = sl_text(SL_NONE);
    if (!strcmp(dialect, "sqlite"))
        return; /* one writer at a time */
    testdb_push(&t, "x", 1);
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, entity_key, payload, idempotency_key) "
                    "VALUES ('t', 'y', 'p', 'once')");
    open_as(&a, "gone/1", &node);
    take_all(&a, 2);
    consume(&a, "cc");
    for (size_t i = 0; i < 2; i++)
        if (a.batch.msgs[i].id == 1)
            sl_msg_settle(&a.batch, &a.batch.msgs[i], SL_DEAD, SL_STR("why"));
    sl_db *db = testdb_open(&t);
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "consumed/orphans"), .in = &nobody } };
    assert_int_equal(db->ops->run(db, calls, 2, &err), SL_OK);
    assert_int_equal(calls[1].affected, 2);
    assert_int_equal(pthread_create(&thread, NULL, settle_in_thread, &rc), 0);
    bool waits = testdb_waits_for_lock(&t);
    assert_int_equal(sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, &err), SL_OK);
    pthread_join(thread, NULL);
    sl_db_close(db);
    assert_true(waits);
    assert_int_equal(rc, SL_OK);
    assert_int_equal(dead(), 2);
    assert_int_equal(testdb_count(&t) + consumed(), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_idempotency"), 1);
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_marked_moves_and_nothing_else),
        TEST(a_dead_worker_s_are_not_sent_again),
        TEST(a_lost_claim_consumes_nothing),
        TEST(all_or_nothing),
        TEST(nothing_is_consumed_twice),
        TEST(its_keys_stay_ours),
        TEST(a_dead_worker_s_keys_are_free),
        TEST(verdicts_are_written),
        TEST(verdicts_of_both_promises_at_once),
        TEST(what_was_never_handed_over_comes_back_in_order),
        TEST(what_was_never_handed_over_and_lost_is_listed),
        TEST(what_a_node_left_is_listed_once),
        TEST(a_worker_that_begins_anew_lists_its_own),
        TEST(a_settle_waits_for_who_lists),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int run_with(const char *how)
{
    char title[80];
    snprintf(title, sizeof title, "%s%s on %s", strategy->name, how, dialect);
    print_message("%s\n", title);
    return run_group(title);
}

static int on(const char *name)
{
    int failed = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        strategy = *c;
        hold = SL_HOLD_LEASE;
        failed += run_with("");
        hold = SL_HOLD_TRANSACTION;
        if (!strategy->ordered)
            failed += run_with(", in a transaction,");
    }
    return failed;
}

int main(void)
{
    return testdb_each(on);
}
