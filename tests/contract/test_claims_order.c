/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every strategy that keeps order promises, on every database: messages of a key come in the
 * order of their ids, and behind one that may not go there comes none, while the others go on.
 * What happens when a claim is lost is in test_claims_lost.c.
 */
#include "contract/ordered.h"

/* ---- Order ---- */

static void messages_of_a_key_come_together_and_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        testdb_push(&t, "a", 2);
        testdb_push(&t, "b", 1);
    }
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 30);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(a.batch.msgs[i].id, i + 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* Keys share the batches; within each, nothing is passed over. */
static void batches_of_any_size_keep_the_order_of_each_key(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 2, 7, 64, 1000 };
    open_worker(&a);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        enum { KEYS = 5, EACH = 12 };
        int64_t ids[KEYS * EACH];
        char key[2] = "a";
        for (int i = 0; i < EACH; i++)
            for (int k = 0; k < KEYS; k++) {
                key[0] = (char)('a' + k);
                testdb_push(&t, key, 1);
            }
        int64_t first = testdb_oldest(&t);
        assert_int_equal(send_all(&a, sizes[s], ids, COUNT(ids), COUNT(ids)), COUNT(ids));
        assert_int_equal(testdb_count(&t), 0);
        int64_t last[KEYS] = { 0 };
        for (size_t i = 0; i < COUNT(ids); i++) {
            int64_t key_of = (ids[i] - first) % KEYS;
            assert_true(ids[i] > last[key_of]);
            last[key_of] = ids[i];
        }
    }
}

/* A batch begins with the oldest message there is: of the lane, where lanes are served in turn. */
static void the_oldest_come_first(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", lanes() ? 0 : i % 7);
        testdb_push(&t, key, 1);
    }
    open_worker(&a);
    for (int64_t sent = 0; sent < 20; sent += (int64_t)a.batch.count) {
        int64_t oldest = testdb_oldest(&t);
        assert_in_range(take_some(&a, 5), 1, 5);
        assert_int_equal(a.batch.msgs[0].id, oldest);
        assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
        assert_in_range(take_some(&a, 5), 1, 5);
        assert_int_equal(a.batch.msgs[0].id, oldest);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(testdb_count(&t), 0);
}

static void the_byte_budget_leaves_no_gap(void **state)
{
    (void)state;
    testdb_exec(&t, testdb_or(&t,
                              "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT "
                              "'x', 'k' || i % 3, convert_to(repeat('x', 100), 'UTF8') FROM "
                              "generate_series(1, 30) i",
                              "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                              "WHERE i < 30) INSERT INTO sluice_outbox (topic, entity_key, "
                              "payload) SELECT 'x', 'k' || i % 3, zeroblob(100) FROM n"));
    open_with(&a, 250, 1);
    int64_t last[3] = { 0 };
    for (size_t sent = 0; sent < 30; sent += a.batch.count) {
        assert_in_range(take_some(&a, ALL), 1, 3); /* the third begins within the budget */
        for (size_t k = 0; k < a.batch.count; k++) {
            int64_t id = a.batch.msgs[k].id;
            assert_true(last[id % 3] == 0 ? id <= 3 : id == last[id % 3] + 3);
            last[id % 3] = id;
        }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(testdb_count(&t), 0);
}

static void what_has_no_key_is_never_held_twice(void **state)
{
    (void)state;
    bool seen[41] = { 0 };
    if (!t.pg && strategy->in_transaction)
        return; /* the write transaction is the lock: the second would wait for the first */
    testdb_fill(&t, 40, 1);
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    for (int i = 0; i < 100 && testdb_count(&t) > 0; i++) {
        worker_take(&a, 7);
        worker_take(&b, 7);
        for (int w = 0; w < 2; w++) {
            const sl_batch *batch = w ? &b.batch : &a.batch;
            for (size_t k = 0; k < batch->count; k++) {
                assert_false(seen[batch->msgs[k].id]);
                seen[batch->msgs[k].id] = true;
            }
        }
        if (a.batch.count)
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        if (b.batch.count)
            assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(testdb_count(&t), 0);
}

/* One worker holds the key: the other gets none of it, and the other keys. */
static void a_key_has_one_worker_at_a_time(void **state)
{
    (void)state;
    if (!t.pg && strategy->in_transaction)
        return;
    testdb_push(&t, "x", 5);
    testdb_push(&t, "y", 5);
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    assert_in_range(take_some(&a, 3), 1, 3);
    size_t had = a.batch.count;
    for (int i = 0; i < 5; i++) {
        had += worker_take(&b, ALL);
        for (size_t k = 0; k < b.batch.count; k++)
            for (size_t j = 0; j < a.batch.count; j++)
                assert_false(sl_str_eq(a.batch.msgs[j].key, b.batch.msgs[k].key));
        if (b.batch.count)
            assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 10 - (int64_t)had);
}

/* The worker has gone on beyond what others hold; when a key of it comes free meanwhile, its older
 * messages still go first. */
static void a_key_that_comes_free_is_served_from_its_oldest(void **state)
{
    (void)state;
    if (!t.pg && strategy->in_transaction)
        return;
    testdb_push(&t, "x", 100); /* more than a worker looks at when it takes one */
    testdb_push(&t, "y", 5);
    testdb_push(&t, "x", 5);
    testdb_push(&t, "y", 100);
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    while (take_some(&a, 1), a.batch.msgs[0].id != 1)
        assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
    if (worker_take(&b, 1)) /* y, behind the first of x */
        assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    for (int i = 0; i < 10; i++) {
        take_some(&b, 1);
        if (sl_str_eq(b.batch.msgs[0].key, SL_STR("x"))) {
            assert_int_equal(b.batch.msgs[0].id, 2);
            break;
        }
        assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    }
}

/* However many messages it has: a look passes them by, and finds the keys behind them at once. */
static void a_long_key_in_other_hands_hides_no_other(void **state)
{
    (void)state;
    if (lanes() || (!t.pg && strategy->in_transaction))
        return;
    testdb_push(&t, "x", 3000);
    testdb_push(&t, "y", 3);
    open_worker(&a);
    open_worker(&b);
    assert_int_equal(worker_take(&a, 50), 50);
    assert_int_equal(worker_take(&b, 50), 3);
    expect_taken(&b, "3001 3002 3003");
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_sent(&b, 50, 51, 100);
}

/* Four keys, four workers: by and by each takes more of fewer keys, and leaves the others. */
static void few_keys_are_left_for_many_workers(void **state)
{
    (void)state;
    if (lanes())
        return;
    testdb_fill(&t, 2000, 1);
    testdb_exec(&t, "UPDATE sluice_outbox SET entity_key = 'k' || id % 4");
    open_with(&a, 1 << 20, 4);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(take_some(&a, 100), 100);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(take_some(&a, 100), 100);
    for (size_t i = 1; i < 100; i++)
        assert_true(sl_str_eq(a.batch.msgs[i].key, a.batch.msgs[0].key));
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
}

/* With room for one message: those that others have are tried, and the next is. */
static void many_workers_find_a_key_each(void **state)
{
    (void)state;
    enum { WORKERS = 10 };
    worker many[WORKERS] = { { .lost = 0 } };
    if (lanes() || (!t.pg && strategy->in_transaction))
        return;
    for (int i = 0; i < WORKERS; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        testdb_push(&t, key, 3);
    }
    for (int i = 0; i < WORKERS; i++) {
        open_worker(&many[i]);
        assert_int_equal(worker_take(&many[i], 1), 1);
        assert_int_equal(many[i].batch.msgs[0].id, 3 * i + 1);
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(worker_settle(&many[i], SL_SENT, SL_NONE), 0);
    for (int i = 0; i < WORKERS; i++)
        worker_close(&many[i]);
}

/* Sends 40 messages but for the first, which is committed when the others are gone. Returns how long
 * it takes until that one comes. */
static int64_t find_late_commit(const char *key)
{
    char sql[160];
    int64_t ids[39];
    testdb_push(&t, key, 40);
    int64_t first = testdb_oldest(&t);
    snprintf(sql, sizeof sql, "DELETE FROM sluice_outbox WHERE id = %lld", (long long)first);
    testdb_exec(&t, sql); /* not there yet */
    assert_int_equal(send_all(&a, 10, ids, 39, 39), 39);
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (id, topic, entity_key, payload) VALUES (%lld, "
             "'orders', %s, 'p')",
             (long long)first, key ? "'x'" : "NULL");
    testdb_exec(&t, sql);
    int64_t began_ns = sl_now_ns();
    expect_sent(&a, 10, first, first);
    return sl_now_ns() - began_ns;
}

/* An id that was given first may be committed last. It is found, if late; later where looking for it
 * takes long, as on a machine that is busy. */
static void a_late_commit_is_found_soon(void **state)
{
    (void)state;
    static const char *const keys[] = { "x", NULL };
    if (testdb_rotated)
        return; /* ids cannot be chosen there */
    open_worker(&a);
    for (size_t i = 0; i < COUNT(keys); i++) {
        int tries = 5;
        while (find_late_commit(keys[i]) > 5 * SL_SEC)
            assert_true(--tries > 0);
    }
}

/* A producer that takes its time: its message has a lower id than what goes meanwhile. Once it has
 * committed, nothing that was committed after it goes first. */
static void a_late_commit_goes_before_later_ones(void **state)
{
    (void)state;
    if (!t.pg)
        return; /* with one writer at a time, ids are committed in order */
    open_worker(&a);
    for (int round = 0; round < 3; round++) {
        sl_db *slow = testdb_open(&t);
        testdb_script(slow, &t.names,
                      "BEGIN; INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES "
                      "('x', 'x', 'p')");
        testdb_push(&t, "x", 3);
        int64_t late = testdb_oldest(&t) - 1;
        expect_sent(&a, 10, late + 1, late + 3);
        for (int i = 0; i < 30; i++) { /* time enough to forget what is below */
            testdb_push(&t, "y", 1);
            assert_int_equal(take_some(&a, 10), 1);
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
            usleep(10000);
        }
        testdb_script(slow, &t.names, "COMMIT");
        testdb_push(&t, "x", 1);
        assert_in_range(take_some(&a, ALL), 1, 2);
        assert_int_equal(a.batch.msgs[0].id, late);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        while (testdb_count(&t) > 0)
            if (worker_take(&a, ALL))
                assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        sl_db_close(slow);
    }
}

/* ---- Waiting ---- */

static void a_failed_message_holds_its_key_back(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        testdb_push(&t, "x", 1);
        testdb_push(&t, "y", 1);
    }
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 6);
    assert_int_equal(settle_as(&a, "rs-s-s", 3600 * SL_SEC), 0); /* x: 1 3 5 */
    testdb_expect(&t, "1 1 why\n3 0 -\n5 0 -",
                  "SELECT id || ' ' || attempts || ' ' || coalesce(last_error, '-') FROM "
                  "sluice_outbox ORDER BY id");
    testdb_expect(&t, "x 1 why",
                  "SELECT entity_key || ' ' || head || ' ' || reason FROM "
                  "sluice_outbox_keys");
    testdb_push(&t, "x", 1);
    testdb_push(&t, "y", 1);
    assert_int_equal(take_some(&a, 100), 1);
    expect_taken(&a, "8");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_nothing(&a);
    expect_held(&a, 4);
    all_due();
    assert_int_equal(take_some(&a, ALL), 4);
    expect_taken(&a, "1 3 5 7");
    assert_int_equal(a.batch.msgs[0].attempt, 2);
    assert_int_equal(a.batch.msgs[1].attempt, 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(blocked(), 0);
}

/* One message fails for each of the keys `from` to `to`, and one comes behind it. */
static void block_keys(int from, int to)
{
    char key[16];
    for (int i = from; i <= to; i++) {
        snprintf(key, sizeof key, "blocked%d", i);
        testdb_push(&t, key, 1);
    }
    for (int failed = from - 1; failed < to;) {
        failed += (int)take_some(&a, ALL);
        for (size_t k = 0; k < a.batch.count; k++) {
            sl_msg_settle(&a.batch, &a.batch.msgs[k], SL_RETRY, SL_STR("why"));
            a.batch.msgs[k].delay_ns = 3600 * SL_SEC;
        }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    for (int i = from; i <= to; i++) {
        snprintf(key, sizeof key, "blocked%d", i);
        testdb_push(&t, key, 1);
    }
}

/* Few blocked keys are looked for in another way than many; 256 are few, 257 are not. */
static void many_keys_may_be_blocked(void **state)
{
    (void)state;
    static const int counts[] = { 0, 255, 256, 257, 300 };
    open_worker(&a);
    for (size_t i = 1; i < sizeof counts / sizeof counts[0]; i++) {
        block_keys(counts[i - 1] + 1, counts[i]);
        testdb_push(&t, "free", 1);
        assert_int_equal(take_some(&a, ALL), 1);
        assert_true(sl_str_eq(a.batch.msgs[0].key, SL_STR("free")));
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        assert_int_equal(blocked(), counts[i]);
    }
    expect_nothing(&a);
    expect_held(&a, 2 * 300);
}

/* Its delay is over by the database's clock alone. */
static void a_failed_message_comes_back_by_itself(void **state)
{
    (void)state;
    int32_t tries[4] = { 0 };
    int64_t failed_ns[4] = { 0 };
    testdb_push(&t, "x", 2);
    testdb_push(&t, NULL, 1);
    open_worker(&a);
    while (tries[1] < 3 || tries[3] < 3) {
        bool with_first = false;
        take_some(&a, ALL);
        for (size_t i = 0; i < a.batch.count; i++) {
            sl_msg *m = &a.batch.msgs[i];
            with_first |= m->id == 1;
            assert_true(m->id != 2 || with_first);
            assert_int_equal(m->attempt, m->id == 2 ? 1 : ++tries[m->id]);
            assert_true(m->attempt == 1 || sl_now_ns() - failed_ns[m->id] > 190 * SL_MS);
            failed_ns[m->id] = sl_now_ns();
            m->delay_ns = 200 * SL_MS;
            sl_msg_settle(&a.batch, m, m->id == 2 ? SL_RELEASED : SL_RETRY, SL_NONE);
        }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
}

/* In doubt it goes again, and the others of its key wait for that. */
static void unknown_holds_its_key_back_too(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    assert_int_equal(settle_as(&a, "u-", 3600 * SL_SEC), 0);
    expect_nothing(&a);
    all_due();
    expect_sent(&a, 1000, 1, 2);
    assert_int_equal(blocked(), 0);
}

static void a_dead_letter_holds_nobody_back(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 3);
    assert_int_equal(settle_as(&a, "d--", 0), 0);
    testdb_expect(&t, "1 1 why",
                  "SELECT id || ' ' || attempts || ' ' || last_error FROM sluice_outbox_dead");
    assert_int_equal(blocked(), 0);
    expect_sent(&a, 100, 2, 3);
}

/* What an ordered sink had already fails with the first: each has its own delay then. */
static void several_failed_messages_come_back_in_order(void **state)
{
    (void)state;
    testdb_push(&t, "x", 4);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    a.batch.msgs[0].delay_ns = 3600 * SL_SEC;
    sl_msg_settle(&a.batch, &a.batch.msgs[0], SL_RETRY, SL_NONE);
    a.batch.msgs[1].delay_ns = 0; /* sooner than the one before it */
    sl_msg_settle(&a.batch, &a.batch.msgs[1], SL_RETRY, SL_NONE);
    a.batch.msgs[2].delay_ns = 7200 * SL_SEC;
    sl_msg_settle(&a.batch, &a.batch.msgs[2], SL_UNKNOWN, SL_NONE);
    assert_int_equal(worker_settle(&a, SL_RELEASED, SL_NONE), 0);
    expect_nothing(&a);
    testdb_expect(&t, "1", "SELECT CAST(head AS text) FROM sluice_outbox_keys");
    testdb_exec(
        &t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000' WHERE id = 1");
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
    expect_sent(&a, 1000, 1, 2);
    expect_nothing(&a); /* 3 has two hours, and 4 stands behind it */
    testdb_expect(&t, "3", "SELECT CAST(head AS text) FROM sluice_outbox_keys");
    all_due();
    expect_sent(&a, 1000, 3, 4);
    assert_int_equal(blocked(), 0);
}

static void a_scheduled_message_holds_its_key_back(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    testdb_push(&t, "y", 1);
    testdb_schedule(&t, 2, 3600);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 2);
    expect_taken(&a, "1 4");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    testdb_push(&t, "x", 1);
    expect_nothing(&a);
    expect_held(&a, 3);
    testdb_expect(&t, "x 2", "SELECT entity_key || ' ' || head FROM sluice_outbox_keys");
    all_due();
    int64_t ids[3];
    assert_int_equal(send_all(&a, 1000, ids, 3, 3), 3);
    assert_true(ids[0] == 2 && ids[1] == 3 && ids[2] == 5);
    assert_int_equal(blocked(), 0);
}

/* The one before the scheduled one fails: the key waits for it, not for the later. */
static void a_failure_before_a_scheduled_message_blocks_at_the_failed(void **state)
{
    (void)state;
    testdb_push(&t, "x", 3);
    testdb_schedule(&t, 2, 3600);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 100), 1);
    assert_int_equal(settle_as(&a, "r", 0), 0);
    testdb_expect(&t, "1", "SELECT CAST(head AS text) FROM sluice_outbox_keys");
    assert_int_equal(take_some(&a, 100), 1);
    expect_taken(&a, "1");
    assert_int_equal(a.batch.msgs[0].attempt, 2);
    assert_int_equal(settle_as(&a, "r", 0), 0); /* and now from the held ones */
    testdb_expect(&t, "1", "SELECT CAST(head AS text) FROM sluice_outbox_keys");
    assert_int_equal(take_some(&a, 100), 1);
    assert_int_equal(settle_as(&a, "s", 0), 0);
    expect_nothing(&a);
    testdb_expect(&t, "2", "SELECT CAST(head AS text) FROM sluice_outbox_keys");
    all_due();
    expect_sent(&a, 1000, 2, 3);
}

/* SQLite has no type for it: what a producer writes may look otherwise than what we write. */
static void a_time_may_have_any_form(void **state)
{
    (void)state;
    static const char *const forms[] = { "'%Y-%m-%dT%H:%M:%SZ'", "'%Y-%m-%d %H:%M'", "'%J'" };
    if (t.pg)
        return;
    open_worker(&a);
    for (size_t i = 0; i < COUNT(forms); i++) {
        char sql[256];
        for (int k = 0; k < 2; k++) {
            testdb_push(&t, k ? "x" : NULL, 1);
            snprintf(
                sql, sizeof sql,
                "UPDATE sluice_outbox SET available_at = strftime(%s, 'now', '%s') WHERE id "
                "= (SELECT max(id) FROM sluice_outbox)",
                forms[i], "+1 hour");
            testdb_exec(&t, sql);
        }
        expect_nothing(&a);
        expect_held(&a, 2);
        snprintf(sql, sizeof sql,
                 "UPDATE sluice_outbox SET available_at = strftime(%s, 'now', '-1 hour')",
                 forms[i]);
        testdb_exec(&t, sql);
        testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
        int64_t ids[2];
        assert_int_equal(send_all(&a, ALL, ids, 2, 2), 2);
        assert_int_equal(testdb_count(&t), 0);
    }
}

static void a_scheduled_message_without_a_key_comes_in_time(void **state)
{
    (void)state;
    testdb_push(&t, NULL, 3);
    testdb_schedule(&t, 2, 3600);
    open_worker(&a);
    int64_t ids[3];
    assert_int_equal(send_all(&a, 100, ids, 3, 2), 2);
    assert_true(ids[0] == 1 && ids[1] == 3);
    expect_nothing(&a);
    assert_int_equal(blocked(), 0);
    all_due();
    expect_sent(&a, 100, 2, 2);
}

/* Put aside once, however long it takes, and the others find their way past them. */
static void a_long_tail_behind_a_blocked_key_costs_nothing(void **state)
{
    (void)state;
    testdb_push(&t, "x", 1001);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 1), 1);
    assert_int_equal(settle_as(&a, "r", 3600 * SL_SEC), 0);
    testdb_push(&t, "y", 3);
    expect_sent(&a, 10, 1002, 1004);
    expect_held(&a, 1001);
    if (t.pg) {
        int64_t written = testdb_int(&t, "SELECT max(xmin::text::bigint) FROM sluice_outbox");
        testdb_push(&t, "y", 3);
        expect_sent(&a, 10, 1005, 1007);
        expect_nothing(&a);
        assert_int_equal(testdb_int(&t, "SELECT max(xmin::text::bigint) FROM sluice_outbox"),
                         written);
    }
    all_due();
    expect_sent(&a, 100, 1, 1001);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(blocked(), 0);
}

/* While a blocked key is worked off, others have their share of each batch. */
static void a_long_tail_that_is_due_leaves_room_for_others(void **state)
{
    (void)state;
    testdb_push(&t, "x", 1000);
    open_worker(&a);
    assert_int_equal(worker_take(&a, 1), 1);
    assert_int_equal(settle_as(&a, "r", 3600 * SL_SEC), 0);
    expect_held(&a, 1000);
    all_due();
    testdb_push(&t, "y", 20);
    int64_t ids[1020];
    assert_int_equal(send_all(&a, 100, ids, COUNT(ids), COUNT(ids)), COUNT(ids));
    size_t last_y = 0;
    int64_t last_x = 0;
    for (size_t i = 0; i < COUNT(ids); i++) {
        if (ids[i] > 1000) {
            last_y = i;
            continue;
        }
        assert_int_equal(ids[i], last_x + 1);
        last_x = ids[i];
    }
    assert_true(last_y < 300);
}

/* As a crash between two strategies, or an operator, may leave it. */
static void a_blocked_key_without_messages_is_cleaned_up(void **state)
{
    (void)state;
    testdb_exec(&t, testdb_or(&t,
                              "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                              "VALUES ('x', 1, 77, now())",
                              "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                              "VALUES ('x', 1, 77, datetime('now'))"));
    open_worker(&a);
    int64_t until_ns = sl_now_ns() + 10 * SL_SEC;
    while (blocked() > 0 && sl_now_ns() < until_ns)
        assert_int_equal(worker_take(&a, 10), 0);
    assert_int_equal(blocked(), 0);
    testdb_push(&t, "x", 2);
    expect_sent(&a, 10, 1, 2);
}

/* An operator's hold has no end. */
static void a_key_that_an_operator_holds_stays_held(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    testdb_push(&t, "y", 1);
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                          "SELECT entity_key, lane, id, 'infinity' FROM sluice_outbox WHERE "
                          "id = 1",
                          "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) "
                          "SELECT entity_key, lane, id, '9999-12-31' FROM sluice_outbox "
                          "WHERE id = 1"));
    open_worker(&a);
    assert_int_equal(worker_take(&a, 10), 1);
    expect_taken(&a, "3");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    expect_nothing(&a);
    all_due();
    expect_sent(&a, 1000, 1, 2);
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(messages_of_a_key_come_together_and_in_order),
        TEST(batches_of_any_size_keep_the_order_of_each_key),
        TEST(the_oldest_come_first),
        TEST(the_byte_budget_leaves_no_gap),
        TEST(what_has_no_key_is_never_held_twice),
        TEST(a_key_has_one_worker_at_a_time),
        TEST(a_key_that_comes_free_is_served_from_its_oldest),
        TEST(a_long_key_in_other_hands_hides_no_other),
        TEST(few_keys_are_left_for_many_workers),
        TEST(many_workers_find_a_key_each),
        TEST(a_late_commit_is_found_soon),
        TEST(a_late_commit_goes_before_later_ones),
        TEST(a_time_may_have_any_form),
        TEST(a_failed_message_holds_its_key_back),
        TEST(many_keys_may_be_blocked),
        TEST(a_failed_message_comes_back_by_itself),
        TEST(unknown_holds_its_key_back_too),
        TEST(a_dead_letter_holds_nobody_back),
        TEST(several_failed_messages_come_back_in_order),
        TEST(a_scheduled_message_holds_its_key_back),
        TEST(a_failure_before_a_scheduled_message_blocks_at_the_failed),
        TEST(a_scheduled_message_without_a_key_comes_in_time),
        TEST(a_long_tail_behind_a_blocked_key_costs_nothing),
        TEST(a_long_tail_that_is_due_leaves_room_for_others),
        TEST(a_blocked_key_without_messages_is_cleaned_up),
        TEST(a_key_that_an_operator_holds_stays_held),
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
