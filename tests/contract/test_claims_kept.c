/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivered messages that are kept: what a settle with `keep` copies, for every strategy on every database, whatever
 * holds the claim. A message is copied in the transaction that deletes it, by whoever deletes it, or not at all.
 */
#include "contract/claims.h"

enum { ALL = 10000 }; /* so many that no lane's share is too small */

static const char *dialect;
static const sl_claim_ops *strategy;
static sl_hold hold;
static testdb t;
static lane_node node, other;
static worker a, b;

static int setup(void **state)
{
    (void)state;
    a = b = (worker){ .lost = 0 };
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

static void open_keeping(worker *w, bool keep)
{
    sl_claim_conf conf = claims_conf(w == &a ? "n/1" : "n/2", hold);
    conf.keep = keep;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(w, &t, strategy, &conf);
}

/* An open transaction holds the claim: nobody can take it over. */
static bool transacted(void)
{
    return strategy->in_transaction || (!strategy->ordered && hold == SL_HOLD_TRANSACTION);
}

/* As if the lease of all that `a` holds had ended: b may take it. */
static void open_successor(void)
{
    sl_claim_conf conf = claims_conf("n/2", hold);
    conf.keep = true;
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2000-01-01 00:00:00.000' "
                    "WHERE leased_until IS NOT NULL");
    if (strategy->owns_lanes) {
        lane_node_prune(&node, &t);
        lane_node_join(&other, &t, "m");
        assert_int_equal(lane_node_acquire(&other, 0, other.count), other.count);
        conf.lanes = other.lanes;
    }
    worker_open(&b, &t, strategy, &conf);
}

static size_t take_soon(worker *w, int64_t max)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (worker_take(w, max) == 0 && sl_now_ns() < until_ns)
        usleep(2000);
    return w->batch.count;
}

/* A letter for each message of the batch: sent, retry, dead, released, or held back. */
static size_t settle_as(worker *w, const char *verdicts)
{
    assert_int_equal(strlen(verdicts), w->batch.count);
    for (size_t i = 0; i < w->batch.count; i++) {
        char c = verdicts[i];
        sl_msg_settle(&w->batch, &w->batch.msgs[i],
                      c == 's'   ? SL_SENT
                      : c == 'r' ? SL_RETRY
                      : c == 'd' ? SL_DEAD
                      : c == 'h' ? SL_HELD
                                 : SL_RELEASED,
                      SL_STR("why"));
    }
    return worker_settle(w, SL_SENT, SL_NONE);
}

#define LEFT "SELECT id || '' FROM sluice_outbox ORDER BY id"
#define KEPT "SELECT id || '' FROM sluice_outbox_sent ORDER BY id"
#define DEAD "SELECT id || '' FROM sluice_outbox_dead ORDER BY id"

/* ---- What is kept ---- */

static void without_keep_nothing_is_kept(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_keeping(&a, false);
    assert_int_equal(worker_take(&a, ALL), 3);
    assert_int_equal(settle_as(&a, "srs"), 0);
    testdb_expect(&t, "2", LEFT);
    testdb_expect(&t, "", KEPT);
}

/* Every column, and the attempt that was its last. */
static void kept_messages_are_complete(void **state)
{
    (void)state;
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, "
                          "content_type, headers, idempotency_key, created_at) VALUES "
                          "('orders', 'k', 'Paid', '\\x00ff', 'text/plain', '{\"a\":\"b\"}', "
                          "'once', '2026-03-04 05:06:07+00')",
                          "INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, "
                          "content_type, headers, idempotency_key, created_at) VALUES "
                          "('orders', 'k', 'Paid', x'00ff', 'text/plain', '{\"a\": \"b\"}', "
                          "'once', '2026-03-04 05:06:07')"));
    testdb_fill(&t, 1, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 2);
    int64_t epoch = a.batch.msgs[0].epoch;
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
    testdb_expect(
        &t, "1 orders k Paid text/plain {\"a\": \"b\"} once",
        testdb_or(&t,
                  "SELECT concat_ws(' ', id, topic, entity_key, event_type, content_type, "
                  "headers, idempotency_key) FROM sluice_outbox_sent "
                  "WHERE id = 1 AND payload = '\\x00ff' AND created_at = "
                  "'2026-03-04 05:06:07+00' AND sent_at > now() - interval '1 hour'",
                  "SELECT id || ' ' || topic || ' ' || entity_key || ' ' || event_type || "
                  "' ' || content_type || ' ' || headers || ' ' || idempotency_key "
                  "FROM sluice_outbox_sent WHERE id = 1 AND payload = "
                  "x'00ff' AND created_at = '2026-03-04 05:06:07' AND sent_at > "
                  "datetime('now', '-1 hour')"));
    testdb_expect(&t, "1 1\n2 1",
                  "SELECT id || ' ' || attempts FROM sluice_outbox_sent ORDER BY id");
    assert_int_equal(testdb_int(&t, "SELECT epoch FROM sluice_outbox_sent WHERE id = 1"),
                     epoch);
}

/* Only what was delivered, and with the same transaction. */
static void only_the_sent_are_kept(void **state)
{
    (void)state;
    testdb_fill(&t, 6, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 6);
    assert_int_equal(settle_as(&a, "srds-s"), 0);
    testdb_expect(&t, "2\n5", LEFT);
    testdb_expect(&t, "1\n4\n6", KEPT);
    testdb_expect(&t, "3", DEAD);
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000'");
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (testdb_count(&t) > 0 && sl_now_ns() < until_ns)
        if (worker_take(&a, ALL) > 0)
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "1 1\n2 2\n4 1\n5 1\n6 1",
                  "SELECT id || ' ' || attempts FROM sluice_outbox_sent ORDER BY id");
}

/* A sequence that was reset gives ids again: that must not keep a message from being settled. */
static void an_id_that_comes_again_is_kept_again(void **state)
{
    (void)state;
    open_keeping(&a, true);
    for (int i = 0; i < 2; i++) {
        testdb_exec(
            &t, "INSERT INTO sluice_outbox (id, topic, entity_key, payload) VALUES (7, 't', "
                "'k', 'p')");
        assert_int_equal(take_soon(&a, ALL), 1);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        testdb_exec(&t, testdb_or(&t, "SELECT 1", "DELETE FROM sqlite_sequence"));
    }
    testdb_expect(&t, "7\n7", KEPT);
}

/* Who settles piece by piece: each piece is kept once. */
static void pieces_are_kept_once(void **state)
{
    (void)state;
    if (!strategy->renew || transacted())
        return;
    testdb_fill(&t, 3, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 3);
    assert_int_equal(settle_as(&a, "hsh"), 0);
    testdb_expect(&t, "2", KEPT);
    sl_msg_unsettle(&a.batch, &a.batch.msgs[0]);
    sl_msg_unsettle(&a.batch, &a.batch.msgs[2]);
    a.batch.msgs[1].verdict = SL_HELD; /* written already */
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "1\n2\n3", KEPT);
    assert_int_equal(testdb_count(&t), 0);
}

/* Care after a crash counts before the send: not again when it is kept. */
static void an_attempt_that_was_counted_before(void **state)
{
    (void)state;
    bool again = false;
    sl_err err = { 0 };
    if (!strategy->count)
        return;
    testdb_fill(&t, 2, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 2);
    assert_int_equal(strategy->count(a.claim, &a.batch, &again, &err), SL_OK);
    assert_int_equal(settle_as(&a, "sr"), 0);
    testdb_expect(&t, "1 1", "SELECT id || ' ' || attempts FROM sluice_outbox_sent");
    testdb_expect(&t, "2 1", "SELECT id || ' ' || attempts FROM sluice_outbox");
}

/* ---- At most once ---- */

/* Takes three messages, and consumes them. */
static bool consume_three(void)
{
    sl_err err = { 0 };
    sl_consume_stamp stamp = { 0 };
    sl_claim_conf conf = claims_conf("n/1", hold);
    if (!strategy->consume)
        return false;
    conf.keep = conf.consumes = true;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(&a, &t, strategy, &conf);
    testdb_fill(&t, 3, 1);
    assert_int_equal(take_soon(&a, ALL), 3);
    for (size_t i = 0; i < 3; i++)
        a.batch.msgs[i].consumed = true;
    if (strategy->consume(a.claim, &a.batch, &stamp, &err) != SL_OK)
        fail_msg("%s", err.text);
    testdb_expect(&t, "", LEFT);
    return true;
}

/* They are no longer in the outbox when they are sent. What is not known to be sent is not kept. */
static void what_was_consumed_and_sent_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        testdb_exec(&t, "DELETE FROM sluice_outbox_sent");
        if (!consume_three())
            return;
        int64_t first = a.batch.msgs[0].id;
        int64_t epoch = a.batch.msgs[0].epoch;
        assert_int_equal(settle_as(&a, i ? "sds" : "sss"), 0);
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_consumed"), 0);
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), i);
        assert_int_equal(
            testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent WHERE "
                           "attempts = 1 AND topic = 'orders' AND payload IS NOT NULL"),
            3 - i);
        assert_int_equal(testdb_int(&t, "SELECT min(id) FROM sluice_outbox_sent"), first);
        assert_int_equal(testdb_int(&t, "SELECT min(epoch) FROM sluice_outbox_sent"), epoch);
        worker_close(&a);
        lane_node_fini(&node);
    }
}

/* Someone took it for left behind: it is a dead letter by now. */
static void what_is_out_of_the_list_is_not_kept(void **state)
{
    (void)state;
    if (!consume_three())
        return;
    testdb_exec(&t, "DELETE FROM sluice_outbox_consumed WHERE id = 2");
    assert_int_equal(settle_as(&a, "sss"), strategy->ordered ? 0 : 1);
    testdb_expect(&t, "1\n3", KEPT);
}

/* ---- What was lost ---- */

/* The zombie: another has its messages, delivers them again, and keeps them. */
static void what_was_lost_is_not_kept(void **state)
{
    (void)state;
    if (transacted())
        return;
    testdb_fill(&t, 4, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 4);
    open_successor();
    assert_int_equal(take_soon(&b, ALL), 4);
    int64_t epoch = b.batch.msgs[0].epoch;
    assert_true(epoch > a.batch.msgs[0].epoch);
    assert_int_equal(settle_as(&a, "ssss"), 4);
    testdb_expect(&t, "", KEPT);
    testdb_expect(&t, "1\n2\n3\n4", LEFT);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "1\n2\n3\n4", KEPT);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(testdb_int(&t, "SELECT min(epoch) FROM sluice_outbox_sent"), epoch);
}

/* The same when there is more to write than deletions. */
static void what_was_lost_is_not_kept_beside_a_failure(void **state)
{
    (void)state;
    if (transacted())
        return;
    testdb_fill(&t, 4, 1);
    open_keeping(&a, true);
    assert_int_equal(worker_take(&a, ALL), 4);
    open_successor();
    assert_int_equal(take_soon(&b, ALL), 4);
    assert_int_equal(settle_as(&a, "srds"), 4);
    testdb_expect(&t, "", KEPT);
    testdb_expect(&t, "", DEAD);
    testdb_expect(&t, "1\n2\n3\n4", LEFT);
}

static void lose_key(const char *key)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             !strategy->ordered ? "UPDATE sluice_outbox SET epoch = epoch + 1 WHERE "
                                  "entity_key = '%s'"
             : strategy->owns_lanes
                 ? "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane IN "
                   "(SELECT lane FROM sluice_outbox WHERE entity_key = '%s')"
             : t.pg ? "UPDATE sluice_outbox_claims SET keys = array_remove(keys, 'k%s')"
                    : "DELETE FROM sluice_outbox_claims WHERE claim = 'k%s'",
             key);
    testdb_exec(&t, sql);
}

/* Of two keys one is lost: exactly what is deleted is kept, with a failure in the batch and without one. */
static void of_a_part_what_is_deleted_is_kept(void **state)
{
    (void)state;
    if (transacted())
        return;
    for (int i = 0; i < 2; i++) {
        testdb_exec(&t, "DELETE FROM sluice_outbox");
        testdb_exec(&t, "DELETE FROM sluice_outbox_sent");
        testdb_push(&t, "x", 2);
        testdb_push(&t, "y", 2);
        open_keeping(&a, true);
        assert_int_equal(take_soon(&a, ALL), 4);
        lose_key("x");
        settle_as(&a, i ? "sssr" : "ssss");
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent"), i ? 1 : 2);
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent WHERE "
                                        "entity_key = 'y'"),
                         i ? 1 : 2);
        assert_int_equal(testdb_count(&t), i ? 3 : 2);
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox o JOIN "
                                        "sluice_outbox_sent s ON s.id = o.id"),
                         0);
        worker_close(&a);
        lane_node_fini(&node);
    }
}

/* ---- Other tables ---- */

/* The rehearsal finds what only a settle would meet, and only who keeps needs it. */
static void a_missing_table_fails_the_opening(void **state)
{
    (void)state;
    sl_claim_conf conf = claims_conf("n/1", hold);
    conf.keep = true;
    claims_give_lanes(&conf, strategy, &node, &t);
    testdb_exec(&t, "DROP TABLE sluice_outbox_sent");
    assert_int_equal(worker_try_open(&a, &t, strategy, &conf, 20 * SL_SEC), SL_OPERATOR);
    worker_close(&a);
    testdb_fill(&t, 1, 1);
    open_keeping(&a, false);
    assert_int_equal(take_soon(&a, ALL), 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
}

static void every_column_may_have_another_name(void **state)
{
    (void)state;
    /* Names that the statements use for themselves, too. */
    static const char *const theirs[][18] = {
        { "nr", "s", "u", "reason", "d", "upto", "delay", "excluded", "due", "fit", "o",
          "retry_count", "lock", "from_day", "c", "select", "m", "x" },
        { "n", "rows", "keys", "next", "claim", "head", "due_at", "ends_at", "holder", "since",
          "ours", "session", "l", "owner", "k", "open", "w", "d" },
    };
    for (size_t list = 0; list < COUNT(theirs); list++) {
        sl_opt_map map = { 0 };
        for (size_t i = 0; i < COUNT(theirs[list]); i++)
            sl_opt_map_put(&map, sl_columns[i], theirs[list][i]);
        worker_close(&a);
        lane_node_fini(&node);
        testdb_drop(&t);
        testdb_init(&t, dialect, &map);
        testdb_map_fini(&map);
        only_the_sent_are_kept(NULL);
    }
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_keep_nothing_is_kept),
        TEST(kept_messages_are_complete),
        TEST(only_the_sent_are_kept),
        TEST(an_id_that_comes_again_is_kept_again),
        TEST(pieces_are_kept_once),
        TEST(an_attempt_that_was_counted_before),
        TEST(what_was_consumed_and_sent_is_kept),
        TEST(what_is_out_of_the_list_is_not_kept),
        TEST(what_was_lost_is_not_kept),
        TEST(what_was_lost_is_not_kept_beside_a_failure),
        TEST(of_a_part_what_is_deleted_is_kept),
        TEST(a_missing_table_fails_the_opening),
        TEST(every_column_may_have_another_name),
    };
    char name[80];
    snprintf(name, sizeof name, "%s on %s, held by %s", strategy->name, dialect,
             transacted() ? "transaction" : "lease");
    print_message("%s\n", name);
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int on(const char *name)
{
    int failed = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++)
        for (int h = SL_HOLD_LEASE; h <= SL_HOLD_TRANSACTION; h++) {
            strategy = *c;
            hold = (sl_hold)h;
            if (h == SL_HOLD_LEASE || !strategy->ordered) /* which hold in their own way */
                failed += run_group();
        }
    return failed;
}

int main(void)
{
    return testdb_each(on);
}
