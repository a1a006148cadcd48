/* SPDX-License-Identifier: Apache-2.0 */
/* claim/claim.h made executable: what every strategy must do on every database, whatever holds
 * the claim. What those that keep order promise beside that is in test_claims_order.c, what happens
 * to claims that are lost in test_claims_lost.c, what many workers do to each other in
 * test_claims_race.c. */
#include "contract/claims.h"

static const char *dialect;
static const sl_claim_ops *strategy;
static sl_hold hold;
static testdb t;
static lane_node node;
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
    testdb_drop(&t);
    return 0;
}

static void open_with(worker *w, int64_t lease_ns, int64_t batch_bytes)
{
    sl_claim_conf conf = claims_conf(w == &a ? "n/1" : "n/2", hold);
    conf.lease_ns = lease_ns;
    conf.batch_bytes = batch_bytes;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(w, &t, strategy, &conf);
}

static void open_worker(worker *w)
{
    open_with(w, 30 * SL_SEC, 1 << 20);
}

/* Each message has a lease of its own, which stands in its row. */
static bool rows_leased(void)
{
    return !strategy->ordered && hold == SL_HOLD_LEASE;
}

/* An open transaction holds the claim. */
static bool transacted(void)
{
    return strategy->in_transaction || (!strategy->ordered && hold == SL_HOLD_TRANSACTION);
}

/* One line per message: id, attempts, worker, last error. */
#define ROWS                                                                                   \
    "SELECT id || ' ' || attempts || ' ' || coalesce(worker, '-') || ' ' || "                  \
    "coalesce(last_error, '-') FROM sluice_outbox ORDER BY id"

/* As if the lease had run out. */
static void expire(void)
{
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2000-01-01 00:00:00.000' "
                    "WHERE leased_until IS NOT NULL");
}

/* What waited is looked for some times a second. */
static size_t take_soon(worker *w, int64_t max)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (worker_take(w, max) == 0 && sl_now_ns() < until_ns)
        usleep(2000);
    return w->batch.count;
}

/* ---- Taking ---- */

static void an_empty_table_gives_none(void **state)
{
    (void)state;
    open_worker(&a);
    for (int i = 0; i < 3; i++)
        assert_int_equal(worker_take(&a, 10), 0);
    testdb_fill(&t, 1, 1);
    assert_int_equal(worker_take(&a, 0), 0);
    assert_int_equal(worker_take(&a, 1), 1);
}

static void the_oldest_come_first_and_in_order(void **state)
{
    (void)state;
    testdb_fill(&t, 250, 1);
    open_worker(&a);
    bool seen[251] = { 0 };
    for (int64_t next = 1; next <= 250;) {
        size_t n = worker_take(&a, 60);
        assert_in_range(n, 1, 60);
        for (size_t i = 0; i < n; i++, next++) {
            int64_t id = a.batch.msgs[i].id;
            assert_true(i == 0 || id > a.batch.msgs[i - 1].id);
            assert_true(id == next || strategy->owns_lanes); /* which are served in turn */
            assert_false(seen[id]);
            seen[id] = true;
        }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(testdb_count(&t), 0);
}

static void the_byte_budget_is_kept(void **state)
{
    (void)state;
    testdb_fill(&t, 10, 100);
    open_with(&a, 30 * SL_SEC, 250);
    assert_int_equal(worker_take(&a, 10), 3); /* the third begins within the budget */
    worker_settle(&a, SL_SENT, SL_NONE);
    assert_int_equal(worker_take(&a, 2), 2);
    assert_true(a.batch.msgs[0].id == 4 || strategy->owns_lanes);
}

static void the_first_message_always_fits(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 5000);
    open_with(&a, 30 * SL_SEC, 1);
    for (int64_t id = 1; id <= 2; id++) {
        assert_int_equal(worker_take(&a, 10), 1);
        assert_int_equal(a.batch.msgs[0].id, id);
        assert_int_equal(a.batch.msgs[0].payload.n, 5000);
        worker_settle(&a, SL_SENT, SL_NONE);
    }
}

static void messages_without_bytes_are_no_trouble(void **state)
{
    (void)state;
    testdb_fill(&t, 5, 0);
    open_with(&a, 30 * SL_SEC, 1);
    assert_int_equal(worker_take(&a, 10), 5);
    assert_int_equal(a.batch.msgs[4].payload.n, 0);
}

static void what_is_not_yet_due_is_left(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    testdb_exec(&t,
                testdb_or(&t,
                          "UPDATE sluice_outbox SET available_at = now() + interval '1 hour' "
                          "WHERE id = 1",
                          "UPDATE sluice_outbox SET available_at = datetime('now', '+1 hour') "
                          "WHERE id = 1"));
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 2);
    assert_int_equal(a.batch.msgs[0].id, 2);
}

static void a_message_comes_whole(void **state)
{
    (void)state;
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, "
                          "content_type, headers, created_at) VALUES ('orders', 'k\xc3\xa9', "
                          "'Paid', '\\x00ff', 'text/plain', '{\"a\":\"b\"}', "
                          "'2026-03-04 05:06:07.008+00')",
                          "INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, "
                          "content_type, headers, created_at) VALUES ('orders', 'k\xc3\xa9', "
                          "'Paid', x'00ff', 'text/plain', '{\"a\": \"b\"}', "
                          "'2026-03-04 05:06:07.008')"));
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES ('x', '', '')");
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 2);
    const sl_msg *m = &a.batch.msgs[0];
    assert_string_equal(m->topic.p, "orders");
    assert_string_equal(m->key.p, "k\xc3\xa9");
    assert_string_equal(m->type.p, "Paid");
    assert_string_equal(m->content_type.p, "text/plain");
    assert_string_equal(m->headers.p, "{\"a\": \"b\"}");
    assert_true(sl_str_eq(m->payload, SL_STR("\0\xff")));
    assert_int_equal(m->created_us, 1772600767008000);
    assert_int_equal(m->attempt, 1);
    if (strategy->ordered)
        assert_true(m->epoch > 0);
    else
        assert_int_equal(m->epoch, rows_leased() ? 1 : 0);
    assert_int_equal(m->verdict, SL_PENDING);
    m = &a.batch.msgs[1];
    assert_true(sl_str_eq(m->key, SL_STR(""))); /* a key like any other */
    assert_null(m->headers.p);
    assert_string_equal(m->content_type.p, "application/json");
    assert_in_range(sl_wall_us() - m->created_us + 1000000, 0, 60000000);
}

/* ---- Two workers ---- */

/* Where the database has one writer, the other may as well be told to come again. */
static void two_claims_share_nothing(void **state)
{
    (void)state;
    testdb_fill(&t, 6, 1);
    open_worker(&a);
    sl_claim_conf conf = claims_conf("n/2", hold);
    claims_give_lanes(&conf, strategy, &node, &t);
    assert_int_equal(worker_try_open(&b, &t, strategy, &conf, t.pg ? 20 * SL_SEC : 200 * SL_MS),
                     SL_OK);
    assert_int_equal(worker_take(&a, 4), 4);
    sl_rc rc = worker_try_take(&b, 10);
    if (rc == SL_AGAIN && !t.pg && transacted())
        return;
    assert_int_equal(rc, SL_OK);
    for (size_t i = 0; i < b.batch.count; i++)
        for (size_t k = 0; k < a.batch.count; k++)
            assert_int_not_equal(b.batch.msgs[i].id, a.batch.msgs[k].id);
    int64_t left = 6 - 4 - (int64_t)b.batch.count;
    assert_true(left == 0 ||
                strategy->owns_lanes); /* it may be in a lane that the first uses */
    if (b.batch.count)
        assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), left);
}

/* Nodes with another `hold` may work on the same table. */
static void a_lease_counts_for_those_who_lock_too(void **state)
{
    (void)state;
    if (strategy->ordered)
        return;
    testdb_fill(&t, 3, 1);
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    worker_open(&a, &t, strategy, &conf);
    assert_int_equal(worker_take(&a, 2), 2);
    open_worker(&b);
    assert_int_equal(worker_take(&b, 10), 1);
    assert_int_equal(b.batch.msgs[0].id, 3);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    expire();
    assert_int_equal(worker_take(&b, 10), 2);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 2);
}

static void what_a_closed_claim_held_comes_back(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 3);
    worker_close(&a);
    open_worker(&b);
    bool at_once = transacted() || strategy->owns_lanes; /* whose lease is the node's */
    assert_int_equal(worker_take(&b, 10), at_once ? 3 : 0);
    if (!rows_leased())
        return;
    expire();
    assert_int_equal(worker_take(&b, 10), 3);
    assert_int_equal(b.batch.msgs[0].epoch, 2);
    assert_int_equal(b.batch.msgs[0].attempt, 2); /* it was counted before it was made */
}

/* ---- Verdicts ---- */

static void sent_goes_from_the_table(void **state)
{
    (void)state;
    testdb_fill(&t, 3, 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 2), 2);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "3 0 - -", ROWS);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
}

static void retry_comes_back_after_its_delay(sl_verdict v)
{
    testdb_fill(&t, 2, 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 2);
    a.batch.msgs[0].delay_ns = 100 * SL_SEC;
    assert_int_equal(worker_settle(&a, v, SL_STR("busy")), 0);
    testdb_expect(&t, "1 1 - busy\n2 1 - busy", ROWS);
    assert_in_range(testdb_ahead_us(&t, "available_at", 1), 70000000, 100001000);
    assert_in_range(testdb_ahead_us(&t, "available_at", 2), 1000000,
                    12001000); /* the default */
    assert_int_equal(testdb_ahead_us(&t, "leased_until", 1), INT64_MIN);
    assert_int_equal(worker_take(&a, 10), 0);
}

static void retry_comes_back_later(void **state)
{
    (void)state;
    retry_comes_back_after_its_delay(SL_RETRY);
}

static void unknown_comes_back_later(void **state)
{
    (void)state;
    retry_comes_back_after_its_delay(SL_UNKNOWN);
}

static void attempts_are_counted_and_delays_grow(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    open_worker(&a);
    for (int32_t attempt = 1; attempt <= 3; attempt++) {
        assert_int_equal(take_soon(&a, 10), 1);
        assert_int_equal(a.batch.msgs[0].attempt, attempt);
        a.batch.msgs[0].delay_ns = 0;
        assert_int_equal(worker_settle(&a, SL_RETRY, SL_NONE), 0);
    }
    assert_int_equal(take_soon(&a, 10), 1);
    assert_int_equal(worker_settle(&a, SL_RETRY, SL_NONE), 0);
    testdb_expect(&t, "1 4 - -", ROWS);
    /* 10, 20, 40 s, then at most 60; +/- 20 %. */
    assert_in_range(testdb_ahead_us(&t, "available_at", 1), 40000000, 72001000);
}

static void released_is_as_if_never_taken(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 1);
    open_worker(&a);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(worker_take(&a, 10), 2);
        assert_int_equal(a.batch.msgs[0].attempt, 1);
        assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
        testdb_expect(&t, "1 0 - -\n2 0 - -", ROWS);
        assert_int_equal(testdb_ahead_us(&t, "leased_until", 1), INT64_MIN);
        assert_true(testdb_ahead_us(&t, "available_at", 1) <= 0);
    }
    open_worker(&b);
    assert_int_equal(worker_take(&b, 10), 2); /* free for all */
}

static void held_stays_as_it_is(void **state)
{
    (void)state;
    if (!strategy->renew || transacted())
        return; /* it ends with its settle */
    testdb_fill(&t, 2, 1);
    open_worker(&a);
    open_worker(&b);
    assert_int_equal(worker_take(&a, 10), 2);
    sl_msg_settle(&a.batch, &a.batch.msgs[1], SL_SENT, SL_NONE);
    assert_int_equal(worker_settle(&a, SL_HELD, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 1);
    assert_int_equal(worker_take(&b, 10), 0);
    if (rows_leased()) {
        testdb_expect(&t, "1 1 n/1 -", ROWS);
        assert_true(testdb_ahead_us(&t, "leased_until", 1) > 10000000);
    }
    sl_msg_unsettle(&a.batch, &a.batch.msgs[0]);
    a.batch.msgs[1].verdict = SL_HELD; /* written already */
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* Every column, and the attempt that was its last. */
static void dead_letters_are_complete(void **state)
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
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 2);
    assert_int_equal(worker_settle(&a, SL_DEAD, SL_STR("too large")), 0);
    assert_int_equal(testdb_count(&t), 0);
    testdb_expect(
        &t, "1 orders k Paid text/plain {\"a\": \"b\"} once too large",
        testdb_or(&t,
                  "SELECT concat_ws(' ', id, topic, entity_key, event_type, content_type, "
                  "headers, idempotency_key, last_error) FROM sluice_outbox_dead "
                  "WHERE id = 1 AND payload = '\\x00ff' AND created_at = "
                  "'2026-03-04 05:06:07+00' AND died_at > now() - interval '1 hour'",
                  "SELECT id || ' ' || topic || ' ' || entity_key || ' ' || event_type || "
                  "' ' || content_type || ' ' || headers || ' ' || idempotency_key || "
                  "' ' || last_error FROM sluice_outbox_dead WHERE id = 1 AND payload = "
                  "x'00ff' AND created_at = '2026-03-04 05:06:07' AND died_at > "
                  "datetime('now', '-1 hour')"));
    testdb_expect(&t, "1 1\n2 1",
                  "SELECT id || ' ' || attempts FROM sluice_outbox_dead ORDER BY id");
}

static void all_verdicts_go_in_one_transaction(void **state)
{
    (void)state;
    static const sl_verdict all[] = { SL_SENT, SL_RETRY, SL_DEAD, SL_UNKNOWN, SL_RELEASED };
    testdb_fill(&t, COUNT(all), 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), COUNT(all));
    for (size_t i = 0; i < COUNT(all); i++)
        sl_msg_settle(&a.batch, &a.batch.msgs[i], all[i], SL_STR("why"));
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "2 1 - why\n4 1 - why\n5 0 - -", ROWS);
    testdb_expect(&t, "3 why", "SELECT id || ' ' || last_error FROM sluice_outbox_dead");
}

static void a_strange_reason_does_no_harm(void **state)
{
    (void)state;
    testdb_fill(&t, 1, 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 1);
    assert_int_equal(worker_settle(&a, SL_RETRY, SL_STR("a\0b\xff\xc3' \xe2\x82\xac")), 0);
    testdb_expect(&t,
                  "1 1 - a b?"
                  "?' ???",
                  ROWS);
}

/* ---- Leases ---- */

/* The zombie: its lease ran out, another has taken the messages, and now it wants to settle. */
static void what_was_lost_is_left_alone_and_counted(void **state)
{
    (void)state;
    static const sl_verdict all[] = { SL_SENT, SL_RETRY, SL_DEAD, SL_UNKNOWN, SL_RELEASED };
    if (!rows_leased())
        return; /* of the others: test_claims_lost.c */
    testdb_fill(&t, COUNT(all) + 1, 1);
    open_worker(&a);
    open_worker(&b);
    assert_int_equal(worker_take(&a, 10), COUNT(all) + 1);
    expire();
    assert_int_equal(worker_take(&b, COUNT(all)), COUNT(all));
    for (size_t i = 0; i < COUNT(all); i++)
        sl_msg_settle(&a.batch, &a.batch.msgs[i], all[i], SL_STR("zombie"));
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE),
                     COUNT(all)); /* and the last is sent */
    testdb_expect(&t, "1 2 n/2 -\n2 2 n/2 -\n3 2 n/2 -\n4 2 n/2 -\n5 2 n/2 -", ROWS);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
    assert_true(testdb_ahead_us(&t, "leased_until", 1) > 10000000);
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* A lease that ended, but that nobody took, is still good for a verdict. */
static void a_late_verdict_counts_if_nobody_came(void **state)
{
    (void)state;
    testdb_fill(&t, 2, 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 2);
    if (rows_leased())
        expire();
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

#define LEASE_END "(SELECT leased_until FROM sluice_outbox WHERE id = 2)"

static void holding_extends_the_lease(void **state)
{
    (void)state;
    if (!rows_leased())
        return;
    testdb_fill(&t, 2, 1);
    open_with(&a, 6 * SL_SEC, 1 << 20);
    open_worker(&b);
    assert_int_equal(worker_take(&a, 10), 2);
    assert_in_range(testdb_ahead_us(&t, "leased_until", 1), 1, 6001000);
    int64_t trusted = strategy->trusted_ns(a.claim);
    int64_t before_us = testdb_time_us(&t, LEASE_END);
    usleep(2050000); /* a third, and some */
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_OK);
    assert_true(testdb_time_us(&t, LEASE_END) >= before_us + 2000000);
    assert_true(strategy->trusted_ns(a.claim) >= trusted + 2 * SL_SEC);
    assert_int_equal(worker_take(&b, 10), 0);
    assert_int_equal(testdb_int(&t, "SELECT max(epoch) FROM sluice_outbox"),
                     1); /* same claim */
    /* And when another has one of them, it says so. */
    expire();
    assert_int_equal(worker_take(&b, 1), 1);
    usleep(2050000);
    assert_int_equal(strategy->hold(a.claim, &a.batch, &a.err), SL_AGAIN);
    assert_non_null(strstr(a.err.text, "lease lost: 1 of 2"));
}

/* ---- Other tables ---- */

static void a_wrong_schema_fails_the_opening(void **state)
{
    (void)state;
    sl_claim_conf conf = claims_conf("n/1", hold);
    claims_give_lanes(&conf, strategy, &node, &t);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_dead RENAME COLUMN last_error TO oh");
    assert_int_equal(worker_try_open(&a, &t, strategy, &conf, 20 * SL_SEC), SL_OPERATOR);
    assert_null(a.claim);
    worker_close(&a);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_dead RENAME COLUMN oh TO last_error");
    if (t.pg) { /* a type that cannot be read is noticed while there is no message yet */
        testdb_exec(&t, "ALTER TABLE sluice_outbox DROP COLUMN created_at");
        testdb_exec(&t, "ALTER TABLE sluice_outbox ADD COLUMN created_at date");
        assert_int_equal(worker_try_open(&a, &t, strategy, &conf, 20 * SL_SEC), SL_OPERATOR);
        assert_non_null(strstr(a.err.text, "column 'created_at' has a type"));
        worker_close(&a);
    }
    testdb_exec(&t, "DROP TABLE sluice_outbox");
    assert_int_equal(worker_try_open(&a, &t, strategy, &conf, 20 * SL_SEC), SL_OPERATOR);
    assert_non_null(strstr(a.err.text, "hint: create or migrate the tables"));
}

/* In place of the usual tables, one that others have made. */
static void adopt(const char *columns, const char *rows)
{
    char sql[512];
    sl_schema_done done;
    sl_err err = { 0 };
    testdb_drop(&t);
    testdb_make(&t, dialect, NULL);
    snprintf(sql, sizeof sql, "CREATE TABLE sluice_outbox %s", columns);
    testdb_exec(&t, sql);
    snprintf(sql, sizeof sql, "INSERT INTO sluice_outbox %s", rows);
    testdb_exec(&t, sql);
    if (sl_schema_init(t.eye, &t.names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
}

/* Absent, and not in the way of those behind it. */
static void a_null_payload_of_others_is_delivered(void **state)
{
    (void)state;
    adopt(testdb_or(&t, "(id bigint PRIMARY KEY, payload bytea)",
                    "(id INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB)"),
          "VALUES (1, NULL), (2, NULL), (3, 'y')");
    open_worker(&a);
    assert_int_equal(worker_take(&a, 2), 2);
    assert_int_equal(a.batch.msgs[0].id, 1);
    assert_null(a.batch.msgs[0].payload.p);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(worker_take(&a, 2), 1);
    assert_string_equal(a.batch.msgs[0].payload.p, "y");
}

/* As many as may be NULL: due now, and no trouble for any verdict. */
static void other_nulls_of_others_are_no_trouble(void **state)
{
    (void)state;
    static const sl_verdict all[] = { SL_SENT, SL_RETRY, SL_DEAD, SL_UNKNOWN, SL_RELEASED };
    adopt(testdb_or(
              &t,
              "(id bigint PRIMARY KEY, payload bytea, topic text, available_at timestamptz, "
              "created_at timestamptz, event_type text, content_type text, attempts int)",
              "(id INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB, topic TEXT, available_at "
              "TEXT, created_at TEXT, event_type TEXT, content_type TEXT, attempts INT)"),
          "(id) VALUES (1), (2), (3), (4), (5)");
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 5);
    const sl_msg *m = &a.batch.msgs[0];
    assert_string_equal(m->topic.p, "");
    assert_string_equal(m->type.p, "");
    assert_string_equal(m->content_type.p, "");
    assert_int_equal(m->created_us, 0);
    assert_int_equal(m->attempt, 1);
    for (size_t i = 0; i < COUNT(all); i++)
        sl_msg_settle(&a.batch, &a.batch.msgs[i], all[i], SL_STR("why"));
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_expect(&t, "2 1\n4 1\n5 0",
                  "SELECT id || ' ' || coalesce(attempts, 0) FROM sluice_outbox ORDER BY id");
    testdb_expect(&t, "3 1 why",
                  "SELECT id || ' ' || attempts || ' ' || last_error FROM sluice_outbox_dead");
}

/* SQLite may hold text in it; the budget is of bytes all the same. */
static void a_text_payload_of_others_is_delivered_and_buried(void **state)
{
    (void)state;
    if (t.pg)
        return; /* refused when it is adopted: tests/unit/db/test_schema.c */
    adopt("(id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT)",
          "VALUES (1, 'a\\b'), (2, 'h\xc3\xa9h\xc3\xa9'), (3, 'x')");
    open_with(&a, 30 * SL_SEC, 9);
    assert_int_equal(worker_take(&a, 10), 2);
    assert_string_equal(a.batch.msgs[0].payload.p, "a\\b");
    assert_string_equal(a.batch.msgs[1].payload.p, "h\xc3\xa9h\xc3\xa9");
    assert_int_equal(worker_settle(&a, SL_DEAD, SL_STR("no")), 0);
    testdb_expect(&t, "615C62\n68C3A968C3A9",
                  "SELECT hex(payload) FROM sluice_outbox_dead ORDER BY id");
}

/* Every kind of statement: taken, failed, waited for, sent. */
static void exercise(void)
{
    all_verdicts_go_in_one_transaction(NULL);
    testdb_push(&t, "x", 2);
    assert_in_range(take_soon(&a, 1000), 2, 3); /* with the one that was released */
    for (size_t i = 0; i < a.batch.count; i++) {
        a.batch.msgs[i].delay_ns = 0;
        sl_msg_settle(&a.batch, &a.batch.msgs[i], i ? SL_RELEASED : SL_RETRY, SL_NONE);
    }
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000'");
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (testdb_count(&t) > 0 && sl_now_ns() < until_ns)
        if (worker_take(&a, 1000) > 0)
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* The words of the statements are replaced wherever they stand, or not at all. */
static void every_column_may_have_another_name(void **state)
{
    (void)state;
    /* Names that the statements use for themselves, too. */
    static const char *const theirs[][18] = {
        { "nr", "bytes", "f", "reason", "d", "upto", "delay", "excluded", "due", "fit", "o",
          "retry_count", "lock", "from_day", "u", "select", "m", "x" },
        { "n", "rows", "keys", "next", "claim", "head", "due_at", "ends_at", "holder", "since",
          "walk", "session", "ours", "owner", "k", "open", "w", "d" },
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
        exercise();
    }
}

static int run_group(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_table_gives_none),
        TEST(the_oldest_come_first_and_in_order),
        TEST(the_byte_budget_is_kept),
        TEST(the_first_message_always_fits),
        TEST(messages_without_bytes_are_no_trouble),
        TEST(what_is_not_yet_due_is_left),
        TEST(a_message_comes_whole),
        TEST(two_claims_share_nothing),
        TEST(a_lease_counts_for_those_who_lock_too),
        TEST(what_a_closed_claim_held_comes_back),
        TEST(sent_goes_from_the_table),
        TEST(retry_comes_back_later),
        TEST(unknown_comes_back_later),
        TEST(attempts_are_counted_and_delays_grow),
        TEST(released_is_as_if_never_taken),
        TEST(held_stays_as_it_is),
        TEST(dead_letters_are_complete),
        TEST(all_verdicts_go_in_one_transaction),
        TEST(a_strange_reason_does_no_harm),
        TEST(what_was_lost_is_left_alone_and_counted),
        TEST(a_late_verdict_counts_if_nobody_came),
        TEST(holding_extends_the_lease),
        TEST(a_wrong_schema_fails_the_opening),
        TEST(a_null_payload_of_others_is_delivered),
        TEST(other_nulls_of_others_are_no_trouble),
        TEST(a_text_payload_of_others_is_delivered_and_buried),
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
