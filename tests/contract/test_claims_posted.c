/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settle whose answer comes with the next take, in one round trip: what that changes for the worker itself, and that
 * it changes nothing for anybody else. All other contracts settle each second time like this, too (worker_try_settle),
 * and so do the races (tests/contract/test_races.c).
 */
#include "contract/ordered.h"

static sl_batch before; /* what is on its way */
static sl_db *rival;    /* somebody who holds the locks that a settle needs */
static int64_t rival_pid;

static int setup_posted(void **state)
{
    sl_batch_init(&before);
    rival = NULL;
    return setup(state);
}

static int teardown_posted(void **state)
{
    sl_db_close(rival);
    sl_batch_fini(&before);
    return teardown(state);
}

/* ---- What a worker does ---- */

static bool posted(worker *w, const char *verdicts)
{
    bool done = false;
    assert_int_equal(strlen(verdicts), w->batch.count);
    for (size_t i = 0; i < w->batch.count; i++)
        sl_msg_settle(&w->batch, &w->batch.msgs[i], verdicts[i] == 's' ? SL_SENT : SL_RELEASED,
                      SL_NONE);
    sl_batch sent = w->batch;
    w->batch = before;
    before = sent;
    if (strategy->post(w->claim, &before, &done, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    if (!done) {
        before = w->batch;
        w->batch = sent;
    }
    return done;
}

static void post(worker *w)
{
    char all[ALL + 1] = "";
    memset(all, 's', w->batch.count);
    assert_true(posted(w, all));
}

static size_t lost(worker *w)
{
    size_t n = SIZE_MAX;
    if (strategy->answered(w->claim, &n, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    sl_batch_reset(&before);
    return n;
}

static void push(int keys, int each)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || i %% "
             "%d, 'p' FROM generate_series(0, %d) i",
             keys, keys * each - 1);
    testdb_exec(&t, sql);
}

/* Nobody can settle until it lets go. */
static void rival_locks(void)
{
    sl_err err = { 0 };
    rival = testdb_open(&t);
    sl_stmt s = testdb_stmt(rival, 0, "SELECT pg_backend_pid()::bigint", 1, SL_T_INT8);
    sl_call call = { .stmt = &s, .row = testdb_row_int, .ctx = &rival_pid };
    assert_int_equal(rival->ops->run(rival, &call, 1, &err), SL_OK);
    testdb_script(rival, &t.names, "BEGIN; SELECT FROM sluice_outbox_lanes FOR UPDATE");
}

/* Ends the session that waits for it. */
static void end_waiting(void)
{
    char sql[160];
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    snprintf(sql, sizeof sql,
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
             "%lld = ANY (pg_blocking_pids(pid))",
             (long long)rival_pid);
    while (!testdb_int(&t, sql))
        assert_true(sl_now_ns() < until_ns);
}

static void rival_lets_go(void)
{
    testdb_script(rival, &t.names, "COMMIT");
}

/* ---- One turn after the other ---- */

static void turns_follow_each_other(void **state)
{
    (void)state;
    enum { KEYS = 10, EACH = 20 };
    int64_t last[KEYS] = { 0 };
    int64_t sent = 0;
    bool waits = false;
    push(KEYS, EACH);
    open_worker(&a);
    for (int turns = 0; sent < (int64_t)KEYS * EACH && turns < 1000; turns++) {
        assert_int_equal(worker_try_take(&a, 30), SL_OK);
        if (waits)
            assert_int_equal(lost(&a), 0);
        waits = a.batch.count > 0;
        for (size_t i = 0; i < a.batch.count; i++) {
            int64_t *k = &last[strtol(a.batch.msgs[i].key.p + 1, NULL, 10)];
            assert_true(a.batch.msgs[i].id > *k);
            *k = a.batch.msgs[i].id;
        }
        sent += (int64_t)a.batch.count;
        if (waits)
            post(&a);
    }
    assert_int_equal(sent, KEYS * EACH);
    assert_int_equal(lost(&a), 0); /* with no take that brings it */
    assert_int_equal(testdb_count(&t), 0);
    expect_nothing(&a);
}

static void what_comes_meanwhile_comes_next(void **state)
{
    (void)state;
    push(1, 2);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 2);
    push(1, 1);
    post(&a);
    assert_int_equal(worker_take(&a, ALL), 1);
    expect_taken(&a, "3");
    assert_int_equal(lost(&a), 0);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* Anything else has to be settled in the ordinary way, and nothing was written yet. */
static void only_what_was_sent_as_a_whole(void **state)
{
    (void)state;
    push(3, 1);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 3);
    assert_false(posted(&a, "s-s"));
    assert_int_equal(testdb_count(&t), 3);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 1);
    assert_int_equal(take_some(&a, ALL), 1);
    expect_taken(&a, "2");
}

/* ---- For everybody else ---- */

/* It may or may not be written yet: until that is known nobody reads those lanes. */
static void what_is_on_its_way_is_nobody_elses(void **state)
{
    (void)state;
    push(200, 2);
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    take_some(&a, ALL);
    size_t sent = a.batch.count;
    assert_true(sent > 0 && sent < 400);
    rival_locks();
    post(&a);
    for (int i = 0; i < 5; i++) {
        worker_take(&b, ALL);
        for (size_t k = 0; k < b.batch.count; k++)
            for (size_t j = 0; j < sent; j++)
                assert_int_not_equal(b.batch.msgs[k].lane, before.msgs[j].lane);
        sl_batch_settle_rest(&b.batch, SL_RELEASED, SL_NONE);
        if (strategy->settle(b.claim, &b.batch, &b.lost, &b.err) != SL_OK)
            fail_msg("%s", b.err.text);
    }
    rival_lets_go();
    assert_int_equal(lost(&a), 0);
    assert_int_equal(testdb_count(&t), 400 - (int64_t)sent);
    worker_take(&a, 0); /* and it lets go of them */
    take_some(&b, ALL);
    worker_settle(&b, SL_SENT, SL_NONE);
}

static void what_another_has_taken_over_is_lost(void **state)
{
    (void)state;
    push(4, 1);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 4);
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane IN (SELECT "
                    "lane FROM sluice_outbox WHERE id <> 3)");
    int64_t left =
        testdb_int(&t, "SELECT count(*) FROM sluice_outbox o WHERE o.lane IN (SELECT "
                       "lane FROM sluice_outbox WHERE id <> 3)");
    post(&a);
    sl_lanes_trust(node.lanes, 0);
    assert_int_equal(worker_take(&a, ALL), 0);
    assert_int_equal(lost(&a), left);
    assert_int_equal(testdb_count(&t), left);
}

/* ---- What ends in the middle ---- */

static void lanes_that_are_not_trusted_are_not_read(void **state)
{
    (void)state;
    push(4, 2);
    open_worker(&a);
    assert_int_equal(take_some(&a, 4), 4);
    post(&a);
    sl_lanes_trust(node.lanes, 0);
    assert_int_equal(worker_take(&a, 4), 0);
    assert_int_equal(lost(&a), 0);
    assert_int_equal(testdb_count(&t), 4);
}

static void lanes_that_are_no_longer_ours_are_not_read(void **state)
{
    (void)state;
    push(4, 2);
    open_worker(&a);
    assert_int_equal(take_some(&a, 4), 4);
    post(&a);
    sl_lanes_void(node.lanes, node.count);
    assert_int_equal(worker_take(&a, 4), 0);
    assert_int_equal(lost(&a), 0);
    assert_int_equal(testdb_count(&t), 4);
    assert_int_equal(sl_lanes_stale(node.lanes), 0);
}

/* Whoever comes next begins where this one has begun. `asks`: it has taken notice of what became of its settle; else
 * something else has failed before. */
static void not_written(bool asks)
{
    size_t n;
    push(20, 100);
    open_worker(&a);
    for (int i = 0; i < 3; i++) { /* so that some may be marked, where rows stay */
        take_some(&a, 400);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    int64_t left = testdb_count(&t);
    take_some(&a, 400);
    int64_t first = a.batch.msgs[0].id;
    rival_locks();
    post(&a);
    end_waiting();
    if (asks) {
        assert_int_equal(worker_try_take(&a, 400), SL_AGAIN);
        assert_int_not_equal(strategy->answered(a.claim, &n, &a.err), SL_OK);
    }
    rival_lets_go();
    worker_close(&a);
    assert_int_equal(testdb_count(&t), left);
    open_worker(&a);
    take_some(&a, 400);
    assert_int_equal(a.batch.msgs[0].id, first);
    for (int64_t sent = 0;;) {
        sent += (int64_t)a.batch.count;
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        if (testdb_count(&t) == 0) {
            assert_int_equal(sent, left);
            break;
        }
        take_some(&a, 400);
    }
}

static void what_was_not_written_comes_again(void **state)
{
    (void)state;
    not_written(true);
}

static void what_nobody_asked_about_comes_again(void **state)
{
    (void)state;
    not_written(false);
}

/* It was written, and what failed behind it does not undo that. */
static void what_was_written_is_told_when_the_read_fails(void **state)
{
    (void)state;
    push(4, 2);
    open_worker(&a);
    assert_int_equal(take_some(&a, 4), 4);
    post(&a);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_keys RENAME TO outbox_gone");
    assert_int_not_equal(worker_try_take(&a, 4), SL_OK);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_gone RENAME TO outbox_keys");
    assert_int_equal(lost(&a), 0);
    assert_int_equal(testdb_count(&t), 4);
}

/* With what is to be done about it: not each failure passes by itself. */
static void why_it_was_not_written_is_told(void **state)
{
    (void)state;
    size_t n;
    push(4, 1);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 4);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_lanes RENAME TO outbox_gone");
    post(&a);
    assert_int_equal(strategy->answered(a.claim, &n, &a.err), SL_OPERATOR);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_gone RENAME TO outbox_lanes");
    assert_int_equal(testdb_count(&t), 4);
}

/* Where each statement is a call, and no trip, nothing would be gained. */
static void it_is_always_waited_for(void **state)
{
    (void)state;
    testdb_push(&t, "x", 2);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 2);
    assert_false(posted(&a, "ss"));
    assert_int_equal(testdb_count(&t), 2);
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_posted, teardown_posted)
    const struct CMUnitTest tests[] = {
        TEST(turns_follow_each_other),
        TEST(what_comes_meanwhile_comes_next),
        TEST(only_what_was_sent_as_a_whole),
        TEST(what_is_on_its_way_is_nobody_elses),
        TEST(what_another_has_taken_over_is_lost),
        TEST(lanes_that_are_not_trusted_are_not_read),
        TEST(lanes_that_are_no_longer_ours_are_not_read),
        TEST(what_was_not_written_comes_again),
        TEST(what_nobody_asked_about_comes_again),
        TEST(what_was_written_is_told_when_the_read_fails),
        TEST(why_it_was_not_written_is_told),
    };
    const struct CMUnitTest waited[] = { TEST(it_is_always_waited_for) };
    if (!strategy->post)
        return 0;
    return strcmp(dialect, "postgres") ? cmocka_run_group_tests_name(name, waited, NULL, NULL)
                                       : cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

static int on(const char *name)
{
    return ordered_on(name, run_group);
}

int main(void)
{
    return testdb_each(on);
}
