/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a table of layout `rotated` a batch that was delivered is marked, not deleted (claim/marks.h), and a segment in
 * which nothing is left to do is emptied (lib/rotate.h). What the strategy promises on it is tested with all other
 * layouts; here, that it is marked where it may be, and what must not be marked.
 */
#include "contract/ordered.h"
#include "lib/rotate.h"

enum { MAX = 500, KEYS = 300 };

static int setup_rotated(void **state)
{
    testdb_rotated = true;
    return setup(state);
}

static void fill(int count)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || i %% "
             "%d, 'p' FROM generate_series(0, %d) i",
             KEYS, count - 1);
    testdb_exec(&t, sql);
}

static int64_t rows(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox");
}

static int64_t marks(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_done");
}

/* Takes what there is until a batch is marked: what was read before the first answer is deleted. Returns how many. */
static int64_t until_marked(worker *w)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    int64_t sent = 0;
    for (int64_t before = marks(); marks() == before;) {
        sent += (int64_t)take_some(w, MAX);
        assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
        assert_true(sl_now_ns() < until_ns);
    }
    return sent;
}

static void send_rest(worker *w)
{
    while (testdb_count(&t) > held()) {
        take_some(w, MAX);
        assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
    }
}

/* All of them, some of which stay, marked. */
static void deliver(int count)
{
    fill(count);
    open_worker(&a);
    until_marked(&a);
    send_rest(&a);
}

static void a_batch_costs_one_row(void **state)
{
    (void)state;
    fill(10000);
    open_worker(&a);
    int64_t sent = until_marked(&a);
    int64_t had = rows();
    int64_t had_marks = marks();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(worker_take(&a, MAX), MAX);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(rows(), had);
    assert_int_equal(marks(), had_marks + 4);
    assert_int_equal(testdb_count(&t), 10000 - sent - 4 * MAX);
}

/* Nobody knows what it has drawn: nothing at or above it may be marked, and it comes first when it is committed. */
static void beside_a_writer_it_is_deleted(void **state)
{
    (void)state;
    fill(5000);
    open_worker(&a);
    until_marked(&a);
    while (testdb_count(&t) > 0) {
        take_some(&a, MAX);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    sl_db *slow = testdb_open(&t);
    testdb_script(slow, &t.names,
                  "BEGIN; INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES "
                  "('x', 'k1', 'p')");
    fill(3 * MAX);
    int64_t had = rows();
    int64_t had_marks = marks();
    for (int64_t sent = 0; sent < 3 * MAX; sent += (int64_t)a.batch.count) {
        take_some(&a, MAX);
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
        usleep(2000); /* it is asked again */
    }
    assert_int_equal(marks(), had_marks);
    assert_int_equal(rows(), had - 3 * MAX);
    testdb_script(slow, &t.names, "COMMIT");
    sl_db_close(slow);
    assert_int_equal(take_some(&a, MAX), 1);
    assert_string_equal(a.batch.msgs[0].key.p, "k1");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    fill(5000); /* and nobody is in the way any more */
    until_marked(&a);
}

/* What fails is held, whatever is marked around it, and comes when it is due. */
static void what_failed_stays(void **state)
{
    (void)state;
    int64_t failed = 0;
    fill(2000);
    testdb_push(&t, "alone", 1);
    fill(3000);
    open_worker(&a);
    while (!failed) {
        take_some(&a, MAX);
        for (size_t i = 0; i < a.batch.count; i++)
            if (!strcmp(a.batch.msgs[i].key.p, "alone")) {
                failed = a.batch.msgs[i].id;
                a.batch.msgs[i].delay_ns = 3600 * SL_SEC;
                sl_msg_settle(&a.batch, &a.batch.msgs[i], SL_RETRY, SL_STR("why"));
            }
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    until_marked(&a);
    assert_int_equal(held(), 1);
    send_rest(&a);
    expect_nothing(&a);
    all_due();
    assert_int_equal(take_some(&a, MAX), 1);
    assert_int_equal(a.batch.msgs[0].id, failed);
    assert_int_equal(a.batch.msgs[0].attempt, 2);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* Whoever comes next begins where the last one has got to. */
static void the_next_owner_goes_on(void **state)
{
    (void)state;
    lane_node next;
    fill(5000);
    open_worker(&a);
    int64_t sent = until_marked(&a);
    int64_t last = a.batch.msgs[a.batch.count - 1].id;
    worker_close(&a);
    lane_node_fini(&node);
    lane_node_join(&next, &t, "next");
    lane_node_acquire(&next, 0, next.count);
    node = next;
    open_worker(&b);
    assert_int_equal(take_some(&b, MAX), MAX);
    assert_int_equal(b.batch.msgs[0].id, last + 1);
    for (;;) {
        sent += (int64_t)b.batch.count;
        assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
        if (testdb_count(&t) == 0)
            break;
        take_some(&b, MAX);
    }
    assert_int_equal(sent, 5000);
    expect_nothing(&b);
}

/* One of the lanes is another's by now: the mark would hide its messages. */
static void a_mark_needs_every_lane(void **state)
{
    (void)state;
    char sql[160];
    fill(5000);
    open_worker(&a);
    until_marked(&a);
    int64_t had_marks = marks();
    assert_int_equal(worker_take(&a, MAX), MAX);
    int64_t lane = a.batch.msgs[0].lane;
    size_t of_lane = 0;
    for (size_t i = 0; i < a.batch.count; i++)
        of_lane += a.batch.msgs[i].lane == lane;
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane = %lld",
             (long long)lane);
    int64_t waiting = testdb_count(&t);
    testdb_exec(&t, sql);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), of_lane);
    assert_int_equal(marks(), had_marks);
    assert_int_equal(testdb_count(&t), waiting - MAX + (int64_t)of_lane);
}

/* ---- Segments ---- */

static int64_t settled;

static int64_t written(void *ctx)
{
    (void)ctx;
    return settled;
}

static sl_rotate rotation;

/* One pass of the chore; returns how many segments it has emptied. `busy`: messages were delivered meanwhile. */
static int64_t rotate(bool busy)
{
    sl_err err = { 0 };
    sl_stop stop;
    int64_t cleared = 0;
    rotation.written = written;
    sl_chore c = sl_rotate_chore(&rotation);
    sl_db *db = testdb_open(&t);
    settled += busy;
    (void)c.due(c.ctx, 0);
    assert_int_equal(rotation.idle, !busy);
    assert_true(sl_stop_init(&stop));
    if (c.run(c.ctx, db, NULL, &stop, &cleared, &err) != SL_OK)
        fail_msg("%s", err.text);
    sl_stop_fini(&stop);
    sl_db_close(db);
    return cleared;
}

/* New ids go to the next segment. */
static void next_segment(void)
{
    testdb_exec(&t,
                "SELECT setval('sluice_outbox_ids', nextval('sluice_outbox_ids') + 524288)");
}

static int setup_rotation(void **state)
{
    rotation = (sl_rotate){ .low = 0 };
    settled = 0;
    return setup_rotated(state);
}

static void a_segment_goes_when_all_of_it_is_done(void **state)
{
    (void)state;
    fill(3000);
    open_worker(&a);
    until_marked(&a);
    assert_int_equal(rotate(true), 0); /* there is more in it */
    send_rest(&a);
    assert_true(rows() > 0);
    assert_int_equal(rotate(true), 0); /* producers write to it */
    next_segment();
    fill(1000);
    assert_int_equal(rotate(true), 1);
    assert_int_equal(rows(), 1000);
    assert_int_equal(testdb_count(&t), 1000);
    send_rest(&a);
    assert_int_equal(rotate(false), 1); /* nobody does anything */
    assert_int_equal(rows(), 0);
    assert_int_equal(rotate(false), 0);
}

static void a_held_message_keeps_its_segment(void **state)
{
    (void)state;
    static const char *const waiting[] = {
        "held = true",
        "held = true, delayed = true",
        "held = true, entity_key = NULL",
    };
    open_worker(&a);
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++) {
        char sql[160];
        fill(3000);
        until_marked(&a);
        send_rest(&a);
        snprintf(sql, sizeof sql,
                 "UPDATE sluice_outbox SET %s WHERE id = (SELECT max(id) FROM sluice_outbox)",
                 waiting[i]);
        testdb_exec(&t, sql);
        assert_int_equal(testdb_count(&t), 1);
        assert_int_equal(rotate(false), 0);
        assert_int_equal(testdb_count(&t), 1);
        testdb_exec(&t, "DELETE FROM sluice_outbox WHERE held");
        assert_int_equal(rotate(false), 1);
        assert_int_equal(rows(), 0);
    }
}

/* A parked one may stay for weeks: around it, what is done goes. */
static void around_a_held_message_what_is_done_goes(void **state)
{
    (void)state;
    deliver(12000);
    testdb_exec(&t, "UPDATE sluice_outbox SET held = true WHERE id = (SELECT max(id) FROM "
                    "sluice_outbox)");
    assert_true(rows() > 10000);
    assert_int_equal(rotate(true), 0);
    assert_true(rows() > 10000); /* producers write to it: it may still go as a whole */
    next_segment();
    fill(1000);
    assert_int_equal(rotate(true), 0);
    assert_int_equal(rows(), 1001);
    assert_int_equal(held(), 1);
    assert_int_equal(testdb_count(&t), 1001);
}

/* Who writes to it is not waited for, and whose message is not yet committed keeps it. */
static void a_writer_keeps_its_segment(void **state)
{
    (void)state;
    deliver(3000);
    sl_db *slow = testdb_open(&t);
    testdb_script(slow, &t.names,
                  "BEGIN; INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES "
                  "('x', 'k1', 'p')");
    assert_int_equal(rotate(false), 0);
    testdb_script(slow, &t.names, "COMMIT");
    rotation = (sl_rotate){ .low = 0, .idle = true };
    assert_int_equal(rotate(false), 0);
    assert_int_equal(testdb_count(&t), 1);
    send_rest(&a);
    assert_int_equal(rotate(false), 1);
    sl_db_close(slow);
}

static sl_rotate_busy *busy_one(void)
{
    size_t i = 0;
    while (i < SL_ROTATE_SEGMENTS && !rotation.busy[i].tries)
        i++;
    assert_true(i < SL_ROTATE_SEGMENTS);
    return &rotation.busy[i];
}

static int64_t rows_elsewhere(int64_t segment)
{
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sluice_outbox WHERE tableoid <> %lld",
             (long long)segment);
    return testdb_int(&t, sql);
}

/* Each try makes others wait, so that they become rare; the other segments go meanwhile, and this one when the reader has. */
static void who_reads_for_long_is_asked_seldom(void **state)
{
    (void)state;
    deliver(3000);
    sl_db *reader = testdb_open(&t);
    testdb_script(reader, &t.names,
                  "SET idle_in_transaction_session_timeout = '20s'; "
                  "BEGIN; LOCK TABLE sluice_outbox_s0 IN ACCESS SHARE MODE");
    next_segment();
    fill(10);
    send_rest(&a);
    int64_t began_ns = sl_now_ns();
    rotate(false);
    sl_rotate_busy *busy = busy_one();
    assert_int_equal(busy->tries, 1);
    assert_true(busy->next_ns > began_ns + SL_SEC);
    for (int i = 0; i < 10; i++)
        assert_int_equal(rotate(false), 0);
    assert_int_equal(busy->tries, 1);
    for (unsigned i = 2; i < 10; i++) {
        busy->next_ns = 0;
        assert_int_equal(rotate(false), 0);
        assert_int_equal(busy->tries, i);
        assert_true(busy->next_ns < sl_now_ns() + 45 * SL_SEC);
    }
    assert_true(busy->next_ns > sl_now_ns() + 15 * SL_SEC);
    assert_int_equal(rows_elsewhere(busy->segment), 0);
    testdb_script(reader, &t.names, "COMMIT");
    busy->next_ns = 0;
    assert_int_equal(rotate(false), 1);
    assert_int_equal(busy->tries, 0);
    sl_db_close(reader);
}

/* Folded into one, they say the same. */
static void positions_are_folded(void **state)
{
    (void)state;
    static const char all[] = "SELECT string_agg(lane || ':' || floor, ' ' ORDER BY lane) FROM "
                              "sluice_outbox_positions";
    fill(5000);
    open_worker(&a);
    until_marked(&a);
    send_rest(&a);
    assert_true(marks() > 1);
    char *before = sl_strdup(testdb_text(&t, all));
    rotate(true);
    assert_int_equal(marks(), 1);
    testdb_expect(&t, before, all);
    /* An older one that comes late changes nothing. */
    testdb_exec(&t,
                "INSERT INTO sluice_outbox_done (lanes, floors) VALUES ('{0,1,2}', '{5,5,5}')");
    testdb_expect(&t, before, all);
    rotate(true);
    assert_int_equal(marks(), 1);
    testdb_expect(&t, before, all);
    free(before);
}

/* One whose number was drawn before the fold and that was committed after it is found in the end. */
static void a_late_position_is_folded_some_time(void **state)
{
    (void)state;
    open_worker(&a);
    testdb_exec(&t, "INSERT INTO sluice_outbox_done (seq, lanes, floors) OVERRIDING SYSTEM "
                    "VALUE VALUES (100, '{0}', '{7}')");
    testdb_exec(&t, "SELECT setval(pg_get_serial_sequence('sluice_outbox_done', 'seq'), 200)");
    rotate(true);
    testdb_exec(&t, "INSERT INTO sluice_outbox_done (seq, lanes, floors) OVERRIDING SYSTEM "
                    "VALUE VALUES (101, '{0}', '{9}')");
    rotate(true);
    assert_int_equal(marks(), 2);
    assert_int_equal(testdb_int(&t, "SELECT floor FROM sluice_outbox_positions WHERE lane = 0"),
                     9);
    rotation.full_ns = 0;
    rotate(true);
    assert_int_equal(marks(), 1);
    assert_int_equal(testdb_int(&t, "SELECT floor FROM sluice_outbox_positions WHERE lane = 0"),
                     9);
}

/* ---- What is refused ---- */

static void expect_refused(const char *name, bool consumes, const char *why)
{
    sl_claim *claim = NULL;
    sl_err err = { 0 };
    sl_db *db = testdb_open(&t);
    sl_claim_conf conf = claims_conf("n/1", SL_HOLD_LEASE);
    conf.consumes = consumes;
    assert_int_equal(sl_claim_open(&claim, sl_claim_named(name), db, &conf, &err), SL_OPERATOR);
    assert_null(claim);
    if (!strstr(err.text, why))
        fail_msg("%s", err.text);
    sl_db_close(db);
}

static void only_lanes_can_share_it(void **state)
{
    (void)state;
    expect_refused("guard", false, "by strategy 'guard'");
    expect_refused("advisory", false, "by strategy 'advisory'");
    expect_refused("skip-locked", false, "by strategy 'skip-locked'");
    expect_refused("lanes", true, "at most once");
}

/* New messages would be taken for done. */
static void a_sequence_that_was_set_back_is_noticed(void **state)
{
    (void)state;
    deliver(3000);
    testdb_exec(&t, "SELECT setval('sluice_outbox_ids', 10)");
    expect_refused("lanes", false, "set back");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_rotation, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_batch_costs_one_row),
        TEST(beside_a_writer_it_is_deleted),
        TEST(what_failed_stays),
        TEST(the_next_owner_goes_on),
        TEST(a_mark_needs_every_lane),
        TEST(a_segment_goes_when_all_of_it_is_done),
        TEST(a_held_message_keeps_its_segment),
        TEST(around_a_held_message_what_is_done_goes),
        TEST(a_writer_keeps_its_segment),
        TEST(who_reads_for_long_is_asked_seldom),
        TEST(positions_are_folded),
        TEST(a_late_position_is_folded_some_time),
        TEST(only_lanes_can_share_it),
        TEST(a_sequence_that_was_set_back_is_noticed),
    };
    if (!testdb_has("postgres")) {
        puts("PostgreSQL alone has such tables, and there is none here");
        return TESTDB_SKIPPED;
    }
    dialect = "postgres";
    strategy = sl_claim_named("lanes");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
