/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that is busy with most of the lanes reads the table in its own order and deletes ranges of it
 * (claim/stretch.h). Where it does, and only there, a batch is full and its ids leave nothing out; so
 * each test counts such batches, and all that the others promise holds for them, too. Strategies that claim keys do the
 * same on PostgreSQL with messages that stand close to each other (claim/keyed.h).
 */
#include "claim/stretch.h"
#include "contract/ordered.h"

enum { MAX = 500, KEYS = 300 };

/* `count` messages of so many keys in turn, with `bytes` of payload each. */
static void fill(int count, int keys, int bytes)
{
    char sql[256];
    if (t.pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || (i "
                 "%% %d), convert_to(repeat('x', %d), 'UTF8') FROM generate_series(0, %d) i",
                 keys, bytes, count - 1);
    else
        snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || (i %% "
            "%d), zeroblob(%d) FROM n",
            count - 1, keys, bytes);
    testdb_exec(&t, sql);
}

static int64_t last_of[KEYS];
static size_t came, stretches;

static int setup_stretch(void **state)
{
    memset(last_of, 0, sizeof last_of);
    came = stretches = 0;
    return setup(state);
}

/* Each comes once: behind what came of its key before. */
static void note(const worker *w)
{
    const sl_batch *m = &w->batch;
    for (size_t i = 0; i < m->count; i++) {
        long key = strtol(m->msgs[i].key.p + 1, NULL, 10);
        assert_in_range(key, 0, KEYS - 1);
        assert_true(m->msgs[i].id > last_of[key]);
        last_of[key] = m->msgs[i].id;
    }
    came += m->count;
    stretches += m->count == MAX && m->msgs[MAX - 1].id - m->msgs[0].id == MAX - 1;
}

/* Takes until so many stretches came one after the other; the last one is still in hand. */
static void take_stretches(worker *w, size_t wanted)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    size_t had = stretches;
    for (;;) {
        take_some(w, MAX);
        note(w);
        if (stretches >= had + wanted)
            return;
        assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
        assert_true(sl_now_ns() < until_ns);
    }
}

static void take_the_rest(worker *w, size_t all)
{
    while (came < all) {
        take_some(w, MAX);
        note(w);
        assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(came, all);
    assert_int_equal(testdb_count(&t), 0);
}

static void the_busy_read_the_table_in_its_order(void **state)
{
    (void)state;
    fill(20000, KEYS, 10);
    open_worker(&a);
    take_stretches(&a, 10);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal((size_t)testdb_count(&t), 20000 - came);
    take_the_rest(&a, 20000);
    assert_true(stretches >= 20);
}

/* A few keys leave most lanes without anything: their floors must not hold the others back. */
static void quiet_lanes_are_no_obstacle(void **state)
{
    (void)state;
    fill(10000, 3, 10);
    open_worker(&a);
    take_stretches(&a, 5);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    take_the_rest(&a, 10000);
}

/* Its id was given out before, it is committed while the others are sent: nobody has seen it. */
static void what_is_committed_late_in_between_stays(void **state)
{
    (void)state;
    char sql[200];
    if (testdb_rotated)
        return; /* ids cannot be chosen there: tests/contract/test_claims_rotated.c */
    fill(5000, KEYS, 10);
    open_worker(&a);
    take_stretches(&a, 2);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    long long id = (long long)testdb_oldest(&t) + MAX / 2;
    snprintf(sql, sizeof sql, "UPDATE sluice_outbox SET id = %lld WHERE id = %lld", id + 100000,
             id); /* another, at the end of the table, has its place */
    testdb_exec(&t, sql);
    assert_int_equal(worker_take(&a, MAX), MAX);
    assert_true(a.batch.msgs[0].id < id && a.batch.msgs[MAX - 1].id > id);
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (id, topic, entity_key, payload) %sVALUES "
             "(%lld, 'x', 'late', 'p')",
             testdb_or(&t, "OVERRIDING SYSTEM VALUE ", ""), id);
    testdb_exec(&t, sql);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sluice_outbox WHERE id <= %lld", id);
    assert_int_equal(testdb_int(&t, sql), 1);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sluice_outbox WHERE id <= %lld",
             (long long)a.batch.msgs[MAX - 1].id);
    assert_int_equal(testdb_int(&t, sql), 1);
    worker_take(&a, MAX);
    assert_int_equal(a.batch.msgs[0].id, id);
}

/* Not half of what stands there is theirs. */
static void workers_share_the_table(void **state)
{
    (void)state;
    fill(20000, KEYS, 10);
    open_with(&a, 1 << 20, 2);
    open_with(&b, 1 << 20, 2);
    size_t full = 0;
    while (came < 20000) {
        worker_take(&a, MAX);
        worker_take(&b, MAX);
        note(&a);
        note(&b);
        full += a.batch.count == MAX;
        full += b.batch.count == MAX;
        if (a.batch.count)
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        if (b.batch.count)
            assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(came, 20000);
    assert_int_equal(testdb_count(&t), 0);
    assert_true(full >= 10);
}

/* Ten times what a message may have on average: it is read the other way, and nothing passes it. */
static void large_ones_come_whole(void **state)
{
    (void)state;
    enum { LARGE = 100 * 1000 };
    char sql[200];
    size_t large = 0;
    fill(6000, KEYS, 10);
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox SET payload = %s%d%s WHERE id IN (3001, 3002, 4000)",
             testdb_or(&t, "convert_to(repeat('y', ", "zeroblob("), LARGE,
             testdb_or(&t, "), 'UTF8')", ")"));
    testdb_exec(&t, sql);
    open_with(&a, 500 * MAX, 1);
    take_stretches(&a, 1);
    for (;;) {
        for (size_t i = 0; i < a.batch.count; i++) {
            const sl_msg *m = &a.batch.msgs[i];
            bool is = m->id == 3001 || m->id == 3002 || m->id == 4000;
            assert_int_equal(m->payload.n, is ? LARGE : 10);
            large += is;
        }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        assert_int_equal(
            blocked(),
            0); /* a stretch ends before it, and does not take it for one that waits */
        if (came == 6000)
            break;
        take_some(&a, MAX);
        note(&a);
    }
    assert_int_equal(large, 3);
    assert_int_equal(testdb_count(&t), 0);
}

/* As the relay does: nothing of a key goes after one that failed. Returns how many were sent. */
static size_t send_in_order(worker *w)
{
    bool failed[KEYS] = { false };
    size_t sent = 0;
    for (size_t i = 0; i < w->batch.count; i++) {
        sl_msg *m = &w->batch.msgs[i];
        long key = strtol(m->key.p + 1, NULL, 10);
        bool fails = m->attempt == 1 && m->id % 487 == 0;
        if (failed[key]) {
            sl_msg_settle(&w->batch, m, SL_RELEASED, SL_NONE);
            continue;
        }
        assert_int_equal(m->id, last_of[key] ? last_of[key] + KEYS : key + 1);
        failed[key] = fails;
        last_of[key] = fails ? last_of[key] : m->id;
        sent += !fails;
        m->delay_ns = 3600 * SL_SEC;
        sl_msg_settle(&w->batch, m, fails ? SL_RETRY : SL_SENT, SL_STR("why"));
    }
    return sent;
}

/* Some fail at first, some are for later: behind them nothing of their key goes, and none is left out. */
static void what_waits_holds_its_key(void **state)
{
    (void)state;
    fill(10000, KEYS, 10);
    testdb_exec(&t, testdb_or(&t,
                              "UPDATE sluice_outbox SET available_at = now() + interval '1 h' "
                              "WHERE id % 977 = 0",
                              "UPDATE sluice_outbox SET available_at = datetime('now', '+1 "
                              "hour') WHERE id % 977 = 0"));
    open_worker(&a);
    int64_t until_ns = sl_now_ns() + 60 * SL_SEC;
    while (came < 10000 && sl_now_ns() < until_ns) {
        if (worker_take(&a, MAX) == 0) {
            all_due();
            continue;
        }
        stretches += a.batch.count == MAX;
        came += send_in_order(&a);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(came, 10000);
    assert_int_equal(testdb_count(&t), 0);
    assert_true(stretches > 0);
}

/* Another has one of the lanes meanwhile. */
static void a_lane_that_was_lost_keeps_its_messages(void **state)
{
    (void)state;
    char sql[160];
    fill(5000, KEYS, 10);
    open_worker(&a);
    take_stretches(&a, 2);
    int64_t lane = a.batch.msgs[0].lane;
    size_t of_lane = 0;
    for (size_t i = 0; i < a.batch.count; i++)
        of_lane += a.batch.msgs[i].lane == lane;
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane = %lld",
             (long long)lane);
    testdb_exec(&t, sql);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), of_lane);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM sluice_outbox WHERE id <= %lld AND lane = %lld",
             (long long)a.batch.msgs[MAX - 1].id, (long long)lane);
    assert_int_equal((size_t)testdb_int(&t, sql), of_lane);
    assert_int_equal((size_t)testdb_count(&t), 5000 - came + of_lane);
}

/* ---- Strategies that claim keys ---- */

/* Far from each other they are looked up one by one. */
static void those_far_apart_come_as_well(void **state)
{
    (void)state;
    fill(5000, KEYS, 10);
    testdb_exec(&t, "UPDATE sluice_outbox SET id = -id"); /* no id twice meanwhile */
    testdb_exec(&t, "UPDATE sluice_outbox SET id = -10 * id");
    open_worker(&a);
    take_the_rest(&a, 5000);
    assert_int_equal(stretches, 0);
}

/* Another has taken over one of the keys meanwhile. */
static void lose_a_key(int apart)
{
    char sql[160];
    fill(5000, KEYS, 10);
    snprintf(sql, sizeof sql, "UPDATE sluice_outbox SET id = -id * %d", apart);
    testdb_exec(&t, sql);
    testdb_exec(&t, "UPDATE sluice_outbox SET id = -id");
    open_worker(&a);
    assert_int_equal(take_some(&a, MAX), MAX);
    size_t of_key = 0;
    for (size_t i = 0; i < a.batch.count; i++)
        of_key += sl_str_eq(a.batch.msgs[i].key, SL_STR("k7"));
    assert_true(of_key > 0);
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET keys = array_remove(keys, 'kk7')");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), of_key);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM sluice_outbox WHERE id <= %lld AND entity_key = 'k7'",
             (long long)a.batch.msgs[MAX - 1].id);
    assert_int_equal((size_t)testdb_int(&t, sql), of_key);
    assert_int_equal((size_t)testdb_count(&t), 5000 - MAX + of_key);
}

static void a_key_that_was_lost_keeps_its_messages(void **state)
{
    (void)state;
    lose_a_key(1);
}

static void also_where_they_stand_far_apart(void **state)
{
    (void)state;
    lose_a_key(10);
}

/* ---- The statements alone ---- */

static sl_rc count_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx += cols[0].i;
    return SL_OK;
}

static int64_t lane_of(int64_t id)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT lane FROM sluice_outbox WHERE id = %lld", (long long)id);
    return testdb_int(&t, sql);
}

/* The sum of what came, of the lane of message 1 and that of message 2. */
static int64_t read_from(int64_t from, int64_t upto, int64_t max)
{
    int64_t floors[LANES_MAX];
    for (size_t i = 0; i < LANES_MAX; i++)
        floors[i] = INT64_MAX;
    floors[lane_of(1)] = floors[lane_of(2)] = from;
    sl_val in[] = { sl_ints(floors, LANES_MAX), sl_int(from), sl_int(upto), sl_int(max),
                    sl_int(100) };
    sl_err err;
    int64_t sum = 0;
    assert_int_equal(sl_db_run1(t.eye, "lanes/take_stretch", in, count_row, &sum, NULL, &err),
                     SL_OK);
    return sum;
}

static int64_t is_beyond(int64_t upto)
{
    sl_val in = sl_int(upto);
    sl_err err;
    int64_t any = 0;
    assert_int_equal(sl_db_run1(t.eye, "lanes/beyond", &in, count_row, &any, NULL, &err),
                     SL_OK);
    return any;
}

static void it_begins_and_ends_where_it_is_told(void **state)
{
    (void)state;
    fill(10, 2, 10);
    assert_int_equal(read_from(3, 6, 100), 3 + 4 + 5);
    assert_int_equal(read_from(3, 6, 2), 3 + 4);
    assert_int_equal(read_from(10, INT64_MAX, 2), 10);
    assert_int_equal(read_from(11, INT64_MAX, 2), 0);
    assert_int_equal(is_beyond(10), 1);
    assert_int_equal(is_beyond(11), 0);
    assert_int_equal(is_beyond(0), 1);
}

/* So many of these two went, of two lanes with these epochs. */
static int64_t delete_sent(const int64_t ids[2], const int64_t epochs[2],
                           const int64_t lanes[2])
{
    sl_arena arena = { 0 };
    sl_val in[4] = { [2] = sl_ints(epochs, 2), [3] = sl_ints(lanes, 2) };
    int64_t gone = -1;
    sl_err err;
    sl_stretch_map(in, &arena, ids, 2);
    assert_int_equal(sl_db_run1(t.eye, "lanes/sent_stretch", in, NULL, NULL, &gone, &err),
                     SL_OK);
    sl_arena_fini(&arena);
    return gone;
}

/* Each lane has an epoch of its own: that of another does not do. */
static void an_epoch_is_that_of_its_lane(void **state)
{
    (void)state;
    int64_t ids[] = { 1, 1 }, lanes[2], epochs[2];
    fill(100, 100, 10);
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET epoch = 100 + lane");
    while (lane_of(++ids[1]) == lane_of(1))
        ;
    lanes[0] = lane_of(1);
    lanes[1] = lane_of(ids[1]);
    epochs[0] = 100 + lanes[1];
    epochs[1] = 100 + lanes[0];
    assert_int_equal(delete_sent(ids, epochs, lanes), 0);
    epochs[0] = 100 + lanes[0];
    assert_int_equal(delete_sent(ids, epochs, lanes), 1);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE id = 1"), 0);
    epochs[1] = 100 + lanes[1];
    assert_int_equal(delete_sent(ids, epochs, lanes), 1);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox"), 98);
}

/* A look at a table from its very beginning may take longer than a server allows: who tried it once does not try it
 * again with each turn, in which nothing would ever be delivered. */
static void a_look_below_that_failed_is_not_repeated_at_once(void **state)
{
    (void)state;
    sl_lane_uses uses = { 0 };
    if (!t.pg || testdb_rotated)
        return; /* there is no server; and where rows stay, nobody looks below */
    open_worker(&a);
    testdb_cut(&t);
    int64_t before_ns = sl_now_ns();
    assert_int_equal(worker_try_take(&a, MAX), SL_AGAIN);
    worker_close(&a);
    sl_lanes_pick(node.lanes, 1, &uses);
    assert_true(uses.count > 0);
    for (size_t i = 0; i < uses.count; i++)
        assert_true(uses.v[i].forget_ns > before_ns);
    sl_lanes_put(node.lanes, &uses);
    free(uses.v);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_stretch, teardown)

static int on_keys(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_busy_read_the_table_in_its_order),
        TEST(what_is_committed_late_in_between_stays),
        TEST(workers_share_the_table),
        TEST(what_waits_holds_its_key),
        TEST(those_far_apart_come_as_well),
    };
    const struct CMUnitTest leases[] = {
        TEST(a_key_that_was_lost_keeps_its_messages),
        TEST(also_where_they_stand_far_apart),
    };
    strategy = sl_claim_named("advisory");
    int failed = cmocka_run_group_tests_name("postgres, advisory", tests, NULL, NULL);
    strategy = sl_claim_named("guard");
    failed += cmocka_run_group_tests_name("postgres, guard", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("postgres, leases", leases, NULL, NULL);
}

static int on(const char *name)
{
    const struct CMUnitTest tests[] = {
        TEST(the_busy_read_the_table_in_its_order),
        TEST(quiet_lanes_are_no_obstacle),
        TEST(what_is_committed_late_in_between_stays),
        TEST(workers_share_the_table),
        TEST(large_ones_come_whole),
        TEST(what_waits_holds_its_key),
        TEST(a_lane_that_was_lost_keeps_its_messages),
        TEST(it_begins_and_ends_where_it_is_told),
        TEST(an_epoch_is_that_of_its_lane),
        TEST(a_look_below_that_failed_is_not_repeated_at_once),
    };
    dialect = name;
    strategy = sl_claim_named("lanes");
    int failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    if (strcmp(dialect, "postgres") != 0)
        return failed;
    testdb_rotated = true;
    failed += cmocka_run_group_tests_name("postgres, rotated", tests, NULL, NULL);
    testdb_rotated = false;
    return failed + on_keys();
}

int main(void)
{
    return testdb_each(on);
}
