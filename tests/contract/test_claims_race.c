/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that race for the same messages: no message is ever held by two at once, and none is
 * delivered twice when all goes well. The same check must also notice when a claim is wrong:
 * the last tests run it on statements that look right and are not. What becomes of the order of
 * keys is in test_races.c.
 */
#include "contract/claims.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4, MESSAGES = 5000, BATCH = 50 };

/* ---- The check ---- */

static _Atomic int holders[MESSAGES + 1];   /* by id: how many hold it now */
static _Atomic int delivered[MESSAGES + 1]; /* how often it was settled as sent */
static _Atomic int shared;                  /* takes of what another held */
static _Atomic int takes;
static _Atomic int busy; /* workers that got something */

static void check_begin(void)
{
    for (int i = 0; i <= MESSAGES; i++)
        holders[i] = delivered[i] = 0;
    shared = takes = busy = 0;
}

static void check_taken(int64_t id)
{
    if (atomic_fetch_add(&holders[id], 1) != 0)
        shared++;
}

/* Before the settle: once that is committed, another may have it. */
static void check_given_up(int64_t id, bool sent)
{
    holders[id]--;
    if (sent)
        delivered[id]++;
}

static int delivered_not_once(void)
{
    int wrong = 0;
    for (int i = 1; i <= MESSAGES; i++)
        wrong += delivered[i] != 1;
    return wrong;
}

/* ---- The race ---- */

typedef struct racer racer;

struct racer {
    worker w;
    bool (*turn)(racer *r); /* false: nothing left, or a failure */
    pthread_t thread;
    pthread_barrier_t *start;
    int turns;
    int vain; /* turns of a wrong claim that got nothing, or a deadlock */
    sl_rc rc;
};

/* After its first turn: with the others still on their way it might do all by itself. */
static void let_another_begin(racer *r)
{
    int64_t until_ns = sl_now_ns() + 10 * SL_SEC;
    if (r->turns == 0)
        busy++;
    while (r->turns == 0 && busy < 2 && sl_now_ns() < until_ns)
        usleep(1000);
}

static const char *dialect;
static const sl_claim_ops *strategy;
static sl_hold hold;
static testdb t;
static lane_node node; /* of which all are workers */

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    testdb_fill(&t, MESSAGES, 10);
    check_begin();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lane_node_fini(&node);
    testdb_drop(&t);
    return 0;
}

static void open_racer(worker *w, const char *name)
{
    sl_claim_conf conf = claims_conf(name, hold);
    conf.workers = WORKERS;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(w, &t, strategy, &conf);
}

static void *racer_main(void *arg)
{
    racer *r = arg;
    pthread_barrier_wait(r->start);
    while (r->turn(r))
        r->turns++;
    return NULL;
}

static void race(bool (*turn)(racer *r), racer racers[WORKERS])
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        racers[i] = (racer){ .turn = turn, .start = &start };
        open_racer(&racers[i].w, "racer");
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&racers[i].thread, NULL, racer_main, &racers[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(racers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < WORKERS; i++) {
        if (racers[i].rc != SL_OK)
            print_message("%s: %s\n", sl_rc_name(racers[i].rc), racers[i].w.err.text);
        worker_close(&racers[i].w);
    }
    print_message("%d takes by %d workers, %d shared, %d not delivered once\n", takes, busy,
                  shared, delivered_not_once());
}

static bool failed(racer *r, sl_rc rc)
{
    r->rc = rc;
    return rc != SL_OK;
}

/* What a sink would do meanwhile: long enough to be seen by another. */
static void deliver(void)
{
    usleep(300);
}

/* Takes, and gives every message the verdict that `judge` finds. */
static bool claim_turn(racer *r, sl_verdict (*judge)(const sl_msg *m))
{
    sl_batch *b = &r->w.batch;
    if (failed(r, worker_try_take(&r->w, BATCH)) || b->count == 0)
        return false;
    takes++;
    for (size_t i = 0; i < b->count; i++)
        check_taken(b->msgs[i].id);
    deliver();
    for (size_t i = 0; i < b->count; i++) {
        sl_verdict v = judge(&b->msgs[i]);
        b->msgs[i].delay_ns = 0;
        sl_msg_settle(b, &b->msgs[i], v, SL_NONE);
        check_given_up(b->msgs[i].id, v == SL_SENT);
    }
    if (failed(r, strategy->settle(r->w.claim, b, &r->w.lost, &r->w.err)))
        return false;
    let_another_begin(r);
    if (!t.pg)
        usleep(3000); /* with one writer at a time, whoever never pauses has it all */
    if (r->w.lost)
        failed(r, sl_fail(&r->w.err, SL_NEWER, "%zu were lost", r->w.lost));
    return r->w.lost == 0;
}

static sl_verdict all_sent(const sl_msg *m)
{
    (void)m;
    return SL_SENT;
}

static bool turn_sent(racer *r)
{
    return claim_turn(r, all_sent);
}

/* A third is sent at the first attempt, the rest comes back, in one way or the other. */
static sl_verdict some_later(const sl_msg *m)
{
    if (m->attempt > 2 || sl_random() % 3 == 0)
        return SL_SENT;
    return sl_random() % 4 == 0 ? SL_RELEASED : SL_RETRY;
}

static bool turn_later(racer *r)
{
    return claim_turn(r, some_later);
}

static void expect_no_failure(const racer racers[WORKERS])
{
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(racers[i].rc, SL_OK);
    assert_int_equal(shared, 0);
    assert_int_equal(delivered_not_once(), 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* A worker that saw only what others had has left early: the rest is for one more. */
static void take_rest(bool (*turn)(racer *r))
{
    racer last = { .turns = 0 };
    open_racer(&last.w, "last");
    int64_t until_ns = sl_now_ns() + 60 * SL_SEC;
    while (testdb_count(&t) > 0 && last.rc == SL_OK && sl_now_ns() < until_ns)
        turn(&last);
    assert_int_equal(last.rc, SL_OK);
    worker_close(&last.w);
}

static void each_message_is_taken_once(void **state)
{
    (void)state;
    racer racers[WORKERS];
    race(turn_sent, racers);
    take_rest(turn_sent);
    assert_true(takes >= MESSAGES / BATCH); /* else nothing was proved */
    assert_true(busy >= 2);
    expect_no_failure(racers);
}

static void what_comes_back_is_not_shared_either(void **state)
{
    (void)state;
    racer racers[WORKERS];
    race(turn_later, racers);
    take_rest(turn_later);
    assert_true(takes >= 2 * MESSAGES / BATCH);
    assert_true(busy >= 2);
    expect_no_failure(racers);
}

/* ---- Verdicts that come too late ---- */

static void *settle_main(void *arg)
{
    racer *r = arg;
    r->rc = strategy->settle(r->w.claim, &r->w.batch, &r->w.lost, &r->w.err);
    return NULL;
}

/* The new owner has the rows, and has not committed yet: the statement of the old one waits for
 * it, and must then judge by what it finds, not by what it saw at first. */
static void what_changes_hands_meanwhile_is_lost(void **state)
{
    (void)state;
    static const sl_verdict all[] = { SL_SENT, SL_RETRY, SL_DEAD, SL_UNKNOWN, SL_RELEASED };
    for (size_t i = 0; i < COUNT(all); i++) {
        racer r = { .rc = SL_NEWER };
        sl_claim_conf conf = claims_conf("old", SL_HOLD_LEASE);
        worker_open(&r.w, &t, strategy, &conf);
        assert_int_equal(worker_take(&r.w, BATCH), BATCH);
        sl_batch_settle_rest(&r.w.batch, all[i], SL_STR("late"));
        sl_db *owner = testdb_open(&t);
        testdb_script(owner, &t.names,
                      "BEGIN; UPDATE sluice_outbox SET epoch = epoch + 1, worker = "
                      "'new' WHERE leased_until IS NOT NULL AND worker = 'old'");
        assert_int_equal(pthread_create(&r.thread, NULL, settle_main, &r), 0);
        assert_true(testdb_waits_for_lock(&t));
        testdb_script(owner, &t.names, "COMMIT");
        pthread_join(r.thread, NULL);
        sl_db_close(owner);
        assert_int_equal(r.rc, SL_OK);
        assert_int_equal(r.w.lost, BATCH);
        worker_close(&r.w);
    }
    assert_int_equal(testdb_count(&t), MESSAGES);
    assert_int_equal(testdb_int(&t,
                                "SELECT count(*) FROM sluice_outbox WHERE worker = 'new' AND "
                                "epoch = 2 AND last_error IS NULL AND attempts = 1"),
                     (int)COUNT(all) * BATCH);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
}

/* ---- Claims that are wrong ---- */

/* Neither locked nor skipped: the second worker waits for the first, and then takes the same.
 */
#define BAD_LEASE                                                                              \
    "WITH due AS MATERIALIZED (SELECT o.id FROM sluice_outbox o WHERE o.leased_until IS NULL " \
    "ORDER BY o.id LIMIT 50) UPDATE sluice_outbox o SET leased_until = clock_timestamp() + "   \
    "interval '30 s', epoch = o.epoch + 1 FROM due WHERE o.id = due.id RETURNING o.id"
/* Reads, and marks in a later statement. */
#define BAD_READ                                                                               \
    "SELECT o.id FROM sluice_outbox o WHERE o.leased_until IS NULL ORDER BY o.id LIMIT 50"
#define BAD_MARK                                                                               \
    "UPDATE sluice_outbox SET leased_until = clock_timestamp() + interval '30 s' WHERE id = "  \
    "ANY ($1)"
/* Whoever holds it by now. */
#define BAD_SETTLE "DELETE FROM sluice_outbox WHERE id = ANY ($1)"

static sl_rc note_id(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_batch_add(ctx)->id = cols[0].i;
    return SL_OK;
}

static sl_rc run_ids(racer *r, int slot, const char *sql)
{
    int64_t ids[BATCH];
    for (size_t i = 0; i < r->w.batch.count; i++)
        ids[i] = r->w.batch.msgs[i].id;
    sl_stmt s = testdb_stmt(r->w.db, slot, sql, 0, SL_T_INT8);
    s.nparams = 1;
    s.params[0] = SL_T_INT8S;
    sl_val in[] = { sl_ints(ids, r->w.batch.count) };
    sl_call call = { .stmt = &s, .in = in };
    return r->w.db->ops->run(r->w.db, &call, 1, &r->w.err);
}

static bool bad_turn(racer *r, const char *take, const char *mark)
{
    sl_batch *b = &r->w.batch;
    sl_batch_reset(b);
    sl_stmt s = testdb_stmt(r->w.db, 0, take, 1, SL_T_INT8);
    sl_call call = { .stmt = &s, .row = note_id, .ctx = b };
    if (failed(r, r->w.db->ops->run(r->w.db, &call, 1, &r->w.err)) || b->count == 0)
        return ++r->vain < 200;
    if (mark && failed(r, run_ids(r, 1, mark)))
        return ++r->vain < 200;
    takes++;
    for (size_t i = 0; i < b->count; i++)
        check_taken(b->msgs[i].id);
    deliver();
    for (size_t i = 0; i < b->count; i++)
        check_given_up(b->msgs[i].id, true);
    return !failed(r, run_ids(r, 2, BAD_SETTLE)) || ++r->vain < 200;
}

static bool turn_bad_lease(racer *r)
{
    return bad_turn(r, BAD_LEASE, NULL);
}

static bool turn_bad_read(racer *r)
{
    return bad_turn(r, BAD_READ, BAD_MARK);
}

/* It did so each time here; but whether workers meet is a matter of luck. */
static void the_check_notices(bool (*turn)(racer *r))
{
    racer racers[WORKERS];
    for (int round = 0; round < 5; round++) {
        testdb_exec(&t, "TRUNCATE sluice_outbox RESTART IDENTITY");
        testdb_fill(&t, MESSAGES, 10);
        check_begin();
        race(turn, racers);
        if (delivered_not_once() > 0)
            return;
    }
    fail_msg("a wrong claim went unnoticed");
}

static void the_check_notices_a_lease_without_a_lock(void **state)
{
    (void)state;
    the_check_notices(turn_bad_lease);
}

static void the_check_notices_a_read_before_the_mark(void **state)
{
    (void)state;
    the_check_notices(turn_bad_read);
}

/* Where rows have locks of their own. */
static int run_on_postgres(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_changes_hands_meanwhile_is_lost),
        TEST(the_check_notices_a_lease_without_a_lock),
        TEST(the_check_notices_a_read_before_the_mark),
    };
    strategy = sl_claim_named("skip-locked");
    print_message("verdicts that are late, and claims that are wrong\n");
    return cmocka_run_group_tests_name("late and wrong", tests, NULL, NULL);
}

static int run_good(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_message_is_taken_once),
        TEST(what_comes_back_is_not_shared_either),
    };
    bool lease = hold == SL_HOLD_LEASE && !strategy->in_transaction;
    print_message("%s on %s, held by %s\n", strategy->name, dialect,
                  lease ? "lease" : "transaction");
    return cmocka_run_group_tests_name(dialect, tests, NULL, NULL);
}

static int on(const char *name)
{
    int wrong = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++)
        for (int h = SL_HOLD_LEASE; h <= SL_HOLD_TRANSACTION; h++) {
            strategy = *c;
            hold = (sl_hold)h;
            if (h == SL_HOLD_LEASE || !strategy->ordered) /* which hold in their own way */
                wrong += run_good();
        }
    if (!strcmp(name, "postgres"))
        wrong += run_on_postgres();
    return wrong;
}

int main(void)
{
    return testdb_each(on);
}
