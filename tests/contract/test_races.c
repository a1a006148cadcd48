/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every strategy that promises order, on the races (tests/contract/races.h): whatever the
 * workers do to each other, no key is held by two at once, no message overtakes another of its
 * key, and none is lost or delivered twice. That the same races notice what is wrong is proved by
 * tests/contract/test_races_bad.c.
 */
#include "contract/races.h"
#include "member/member.h"

enum { NODES = 3 };

static testdb t;
static watch seen;
static const char *dialect;
static const sl_claim_ops *strategy;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    return 0;
}

static int64_t marked; /* batches, in tables of layout `rotated` */

static int teardown(void **state)
{
    (void)state;
    if (testdb_rotated)
        marked += testdb_int(&t, "SELECT coalesce(max(seq), 0) FROM sluice_outbox_done");
    testdb_drop(&t);
    return 0;
}

/* ---- Nodes, where a strategy needs lanes ---- */

typedef struct node {
    char name[16];
    sl_member_conf conf;
    sl_member *member;
    pthread_rwlock_t at_work; /* held by its workers during a turn */
    int lives;
} node;

static node nodes[NODES];

static sl_rc node_connect(void *ctx, sl_db **out, int wake_fd, sl_err *err)
{
    (void)ctx;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.wake_fd = wake_fd;
    return sl_db_open(out, &dsn, err);
}

static void node_failed(void *ctx, const sl_err *err)
{
    (void)ctx;
    fprintf(stderr, "the keeper of a node has given up: %s\n", err->text);
    abort();
}

static void node_join(node *n)
{
    sl_err err = { 0 };
    n->lives++;
    if (sl_member_join(&n->member, &n->conf, -1, &err) != SL_OK)
        node_failed(NULL, &err);
}

/* Until every node has lanes, and together they have all. */
static void wait_until_shared(void)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    for (bool shared = !strategy->owns_lanes; !shared; usleep(1000)) {
        size_t owned = 0;
        shared = true;
        for (int i = 0; i < NODES; i++) {
            size_t n = sl_lanes_owned_count(sl_member_lanes(nodes[i].member));
            shared &= n > 0;
            owned += n;
        }
        shared &= owned == (size_t)t.names.lanes;
        assert_true(sl_now_ns() < until_ns);
    }
}

static void nodes_make(int workers)
{
    for (int i = 0; i < NODES; i++) {
        node *n = &nodes[i];
        *n = (node){ .lives = 0 };
        snprintf(n->name, sizeof n->name, "n%d", i);
        pthread_rwlock_init(&n->at_work, NULL);
        n->conf = (sl_member_conf){ .open = node_connect,
                                    .failed = node_failed,
                                    .node = n->name,
                                    .strategy = strategy->name,
                                    .workers = workers / NODES,
                                    .lease_ns = 30 * SL_SEC,
                                    .own_lanes = strategy->owns_lanes,
                                    .assign = SL_ASSIGN_RING };
    }
}

static void nodes_open(int workers)
{
    nodes_make(workers);
    for (int i = 0; strategy->owns_lanes && i < NODES; i++)
        node_join(&nodes[i]);
    wait_until_shared();
}

static void nodes_close(void)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].member)
            sl_member_leave(nodes[i].member);
        pthread_rwlock_destroy(&nodes[i].at_work);
    }
}

static node *node_of(const racer *r)
{
    return &nodes[r->number % NODES];
}

/* ---- A strategy on the races ---- */

static sl_rc real_open(racer *r)
{
    sl_claim_conf conf = claims_conf("racer", SL_HOLD_LEASE);
    if (strategy->owns_lanes) {
        conf.lanes = sl_member_lanes(node_of(r)->member);
        conf.workers = node_of(r)->conf.workers;
    }
    return worker_try_open(&r->w, &t, strategy, &conf, 20 * SL_SEC);
}

/* Settles that are on their way, by worker; each second one is, where the claim can. */
static sl_batch on_way[WATCH_WORKERS];
static _Atomic int posts;

static sl_rc judge_lost(racer *r, sl_rc rc)
{
    if (rc == SL_OK && r->w.lost)
        rc = sl_fail(&r->w.err, SL_NEWER, "%zu messages were lost to another", r->w.lost);
    return rc;
}

static sl_rc real_answered(racer *r)
{
    sl_batch *b = &on_way[r->number];
    if (b->count == 0)
        return SL_OK;
    sl_batch_reset(b);
    return judge_lost(r, strategy->answered(r->w.claim, &r->w.lost, &r->w.err));
}

static sl_rc real_take(racer *r)
{
    pthread_rwlock_rdlock(&node_of(r)->at_work);
    sl_rc rc = worker_try_take(&r->w, 1 + (int64_t)(sl_random() % (unsigned)r->extra));
    sl_rc answered = real_answered(r);
    rc = rc == SL_OK ? answered : rc;
    r->took = rc == SL_OK ? r->w.batch.count : 0;
    if (rc == SL_OK && r->took > 0)
        rc = strategy->hold(r->w.claim, &r->w.batch, &r->w.err);
    if (rc != SL_OK || r->took == 0) /* from here on others may close it */
        pthread_rwlock_unlock(&node_of(r)->at_work);
    return rc;
}

/* The next take brings the answer. */
static sl_rc real_post(racer *r, bool *posted)
{
    sl_batch *b = &r->w.batch;
    if (!strategy->post || sl_random() % 2 || sl_batch_count_of(b, SL_SENT) < b->count)
        return SL_OK;
    sl_batch sent = *b;
    *b = on_way[r->number];
    on_way[r->number] = sent;
    sl_rc rc = strategy->post(r->w.claim, &on_way[r->number], posted, &r->w.err);
    posts += *posted;
    if (!*posted) {
        on_way[r->number] = *b;
        *b = sent;
    }
    return rc;
}

static sl_rc real_settle(racer *r)
{
    bool posted = false;
    sl_rc rc = real_post(r, &posted);
    if (rc == SL_OK && !posted)
        rc = judge_lost(r, strategy->settle(r->w.claim, &r->w.batch, &r->w.lost, &r->w.err));
    pthread_rwlock_unlock(&node_of(r)->at_work);
    if (!t.pg)
        usleep((useconds_t)(sl_random() % 20000)); /* else whoever has the lock has it all */
    return rc;
}

static void real_close(racer *r)
{
    watch_demand(real_answered(r) == SL_OK, "what was on its way did not arrive");
    sl_batch_fini(&on_way[r->number]);
    worker_close(&r->w);
}

/* Some fail; what stands behind them in their key goes back untried, as the relay does it. */
static void some_fail(racer *r)
{
    sl_batch *b = &r->w.batch;
    bool failed[WATCH_KEYS] = { false };
    for (size_t i = 0; i < b->count; i++) {
        sl_msg *m = &b->msgs[i];
        long key = strtol(m->key.p + 1, NULL, 10);
        if (failed[key]) {
            sl_msg_settle(b, m, SL_RELEASED, SL_NONE);
        } else if (m->attempt < 4 && sl_random() % 8 == 0) {
            failed[key] = true;
            m->delay_ns = (int64_t)(sl_random() % 3) * SL_MS;
            sl_msg_settle(b, m, SL_RETRY, SL_STR("no luck"));
        }
    }
}

/* A node leaves, with its workers at rest, and comes back as another. */
static void node_comes_and_goes(race *r)
{
    int which = (int)(sl_random() % NODES);
    node *n = &nodes[which];
    usleep((useconds_t)(sl_random() % 100000));
    pthread_rwlock_wrlock(&n->at_work);
    for (int i = which; i < r->plan.workers; i += NODES)
        real_close(&r->racers[i]);
    sl_member_leave(n->member);
    node_join(n);
    for (int i = which; i < r->plan.workers; i += NODES)
        watch_demand(real_open(&r->racers[i]) == SL_OK, "a worker could not come back");
    pthread_rwlock_unlock(&n->at_work);
}

/* ---- Runs ---- */

/* `batch` messages at most in a turn. */
#define PLAN(many, wait, batch, ...)                                                           \
    {                                                                                          \
        .keys = many, .backlog = wait, .extra = batch, .workers = 9, .send_us = 400,           \
        __VA_ARGS__                                                                            \
    }

static void run(const race_plan *like, void (*judge)(racer *r), void (*disturb)(race *r))
{
    race_plan plan = *like;
    race_how how = { .name = strategy->name,
                     .open = real_open,
                     .take = real_take,
                     .judge = judge,
                     .settle = real_settle,
                     .close = real_close,
                     .disturb = disturb };
    if (!t.pg) { /* one at a time */
        plan.workers = 2 * NODES;
        plan.messages = 500;
    }
    posts = 0;
    nodes_open(plan.workers);
    race_sum sum = race_run(&t, &seen, &how, &plan);
    nodes_close();
    assert_true(posts > (strategy->post && t.pg ? 50 : -1));
    assert_true(sum.claims >= plan.messages / (int)plan.extra);
    assert_true(sum.busy >= (t.pg ? 3 : 2)); /* where one writes at a time, it is luck */
    assert_int_equal(sum.concurrent, 0);
    assert_int_equal(sum.disorder, 0);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.doubled, 0);
    assert_int_equal(sum.left, 0);
}

static void few_keys(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(8, 32, 4, .messages = 3000), NULL, NULL);
}

/* More than workers see at once: they must not begin in the middle of a key. */
static void few_keys_with_a_backlog(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(8, 1000, 8, .messages = 3000), NULL, NULL);
}

static void many_keys(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(500, 300, 8, .messages = 3000), NULL, NULL);
}

static void few_keys_that_fail(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(8, 64, 4, .messages = 1500), some_fail, NULL);
}

static void many_keys_that_fail(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(500, 1000, 8, .messages = 3000), some_fail, NULL);
}

static void few_keys_with_late_commits(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(8, 16, 4, .messages = 3000, .late = true), NULL, NULL);
}

static void many_keys_with_late_commits_that_fail(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(500, 300, 8, .messages = 3000, .late = true), some_fail, NULL);
}

static void nodes_that_come_and_go(void **state)
{
    (void)state;
    run(&(race_plan)PLAN(8, 64, 4, .messages = 2000, .disturbances = NODES), some_fail,
        node_comes_and_goes);
    int lives = 0;
    for (int i = 0; i < NODES; i++)
        lives += nodes[i].lives;
    print_message("%d lives of %d nodes\n", lives, NODES);
    assert_true(lives >= 2 * NODES);
}

/* ---- A keeper that loses its connection ---- */

/* Fails instead of giving lanes back, so many times. */
typedef struct weak_db {
    sl_db base;
    sl_db *real;
} weak_db;

static _Atomic int failures_left;

static sl_rc weak_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    sl_db *real = ((weak_db *)db)->real;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(calls[i].stmt->name, "lanes/release") && failures_left > 0) {
            failures_left--;
            return sl_fail(err, SL_AGAIN, "connection lost");
        }
    return real->ops->run(real, calls, count, err);
}

static void weak_close(sl_db *db)
{
    sl_db_close(((weak_db *)db)->real);
    free(db);
}

static sl_rc weak_connect(void *ctx, sl_db **out, int wake_fd, sl_err *err)
{
    static const sl_db_ops pg = { .name = "postgres", .run = weak_run, .close = weak_close };
    static const sl_db_ops lite = { .name = "sqlite", .run = weak_run, .close = weak_close };
    weak_db *w = sl_alloc(sizeof *w);
    w->base.ops = t.pg ? &pg : &lite;
    sl_rc rc = node_connect(ctx, &w->real, wake_fd, err);
    if (rc == SL_OK)
        *out = &w->base;
    else
        free(w);
    return rc;
}

/* Of what a node lets go, the database does not hear: others must get it all the same. */
static void lanes_that_were_not_released_come_back(void **state)
{
    (void)state;
    failures_left = 1;
    nodes_make(NODES);
    for (int i = 0; i < NODES; i++) {
        nodes[i].conf.open = weak_connect;
        node_join(&nodes[i]);
    }
    wait_until_shared();
    assert_int_equal(failures_left, 0);
    nodes_close();
}

/* ---- By hand: one step after the other, with all keys in one lane ---- */

static worker hand;
static lane_node hand_node;
static sl_db *hand_db; /* of whoever writes */

static int open_hand(int64_t lanes)
{
    sl_err err = { 0 };
    sl_schema_done done;
    testdb_make(&t, dialect, NULL);
    t.names.lanes = lanes;
    if (sl_schema_init(t.eye, &t.names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
    hand_db = testdb_open(&t);
    sl_claim_conf conf = claims_conf("hand", SL_HOLD_LEASE);
    hand_node = (lane_node){ .session = 0 };
    claims_give_lanes(&conf, strategy, &hand_node, &t);
    worker_open(&hand, &t, strategy, &conf);
    return 0;
}

static int setup_hand(void **state)
{
    (void)state;
    return open_hand(1);
}

static int setup_two_lanes(void **state)
{
    (void)state;
    return open_hand(2);
}

static int teardown_hand(void **state)
{
    worker_close(&hand);
    if (hand_node.session)
        lane_node_fini(&hand_node);
    sl_db_close(hand_db);
    return teardown(state);
}

static void put(sl_db *db, const char *key, bool later)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (topic, entity_key, payload, available_at) VALUES "
             "('race', '%s', '', %s)",
             key,
             !later ? testdb_or(&t, "now()", "strftime('%Y-%m-%d %H:%M:%f', 'now')")
                    : testdb_or(&t, "now() + interval '1 hour'",
                                "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour')"));
    testdb_script(db, &t.names, sql);
}

/* Until there is something; blocked keys are looked for only now and then. */
static size_t hand_takes(int64_t max)
{
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (worker_take(&hand, max) == 0)
        assert_true(sl_now_ns() < until_ns);
    return hand.batch.count;
}

static void hand_sends_all(void)
{
    assert_int_equal(worker_settle(&hand, SL_SENT, SL_NONE), 0);
}

/* Two producers, each with a key of its own, in order: the ids of the one are taken before those
 * of the other and committed after them. The worker knows the table from before. */
static void what_another_key_commits_first_hides_nothing(void **state)
{
    (void)state;
    sl_db *other = testdb_open(&t);
    put(hand_db, "k1", false); /* 1 */
    assert_int_equal(hand_takes(10), 1);
    hand_sends_all();
    testdb_script(hand_db, &t.names, "BEGIN");
    put(hand_db, "k0", false); /* 2 */
    put(other, "k1", false);   /* 3 */
    assert_int_equal(hand_takes(10), 1);
    assert_int_equal(hand.batch.msgs[0].id, 3);
    hand_sends_all();
    testdb_script(hand_db, &t.names, "COMMIT");
    put(hand_db, "k0", false); /* 4 */
    hand_takes(10);
    assert_int_equal(hand.batch.msgs[0].id, 2);
    hand_sends_all();
    sl_db_close(other);
}

/* A key of this lane, of two. */
static void key_in_lane(char key[8], int64_t lane, int from)
{
    char sql[160];
    int64_t got;
    do {
        snprintf(key, 8, "k%d", from++);
        snprintf(sql, sizeof sql,
                 "SELECT (hashtextextended('%s', 0) & 9223372036854775807) %% 2", key);
        got = testdb_int(&t, sql);
    } while (got != lane);
}

/* The same, while another lane fills the worker's turns: that a turn has no room for a lane does
 * not mean that there is nothing in it. */
static void a_lane_without_room_hides_nothing(void **state)
{
    (void)state;
    char busy[8], slow[8], quick[8];
    sl_db *other = testdb_open(&t);
    key_in_lane(busy, 1, 0);
    key_in_lane(slow, 0, 0);
    key_in_lane(quick, 0, 1 + (int)strtol(slow + 1, NULL, 10));
    for (int i = 0; i < 10; i++)
        put(other, busy, false); /* 1 to 10 */
    testdb_script(hand_db, &t.names, "BEGIN");
    put(hand_db, slow, false); /* 11 */
    put(other, quick, false);  /* 12 */
    for (bool sent = false; !sent; hand_sends_all()) {
        worker_take(&hand, 2);
        for (size_t i = 0; i < hand.batch.count; i++)
            sent |= hand.batch.msgs[i].id == 12;
    }
    testdb_script(hand_db, &t.names, "COMMIT");
    for (int64_t until_ns = sl_now_ns() + 200 * SL_MS; sl_now_ns() < until_ns;) {
        worker_take(&hand, 1);
        worker_settle(&hand, SL_RELEASED, SL_NONE);
    }
    put(hand_db, slow, false); /* 13 */
    for (bool found = false; !found; hand_sends_all()) {
        worker_take(&hand, 20);
        for (size_t i = 0; i < hand.batch.count && !found; i++) {
            assert_int_not_equal(hand.batch.msgs[i].id, 13);
            found = hand.batch.msgs[i].id == 11;
        }
    }
    sl_db_close(other);
}

/* The key must wait for the one that failed, and for nothing else. */
static void one_that_fails_before_one_that_is_scheduled(void **state)
{
    (void)state;
    put(hand_db, "k0", false);
    put(hand_db, "k0", true);
    assert_int_equal(hand_takes(10), 1);
    hand.batch.msgs[0].delay_ns = 0;
    worker_settle(&hand, SL_RETRY, SL_STR("no luck"));
    assert_int_equal(hand_takes(10), 1);
    assert_int_equal(hand.batch.msgs[0].id, 1);
    assert_int_equal(hand.batch.msgs[0].attempt, 2);
    hand_sends_all();
    assert_int_equal(testdb_count(&t), 1);
}

/* Blocked keys that are due fill a part of the batch: what then finds no room any more must not
 * be passed by what is scheduled behind it. */
static void one_without_room_before_one_that_is_scheduled(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++)
        put(hand_db, i == 1 ? "k1" : "k2", false);
    assert_int_equal(hand_takes(8), 2);
    hand.batch.msgs[0].delay_ns = hand.batch.msgs[1].delay_ns = 0;
    worker_settle(&hand, SL_RETRY, SL_STR("no luck"));
    for (int i = 0; i < 6; i++)
        put(hand_db, "k3", false);
    put(hand_db, "k0", false); /* 9 */
    put(hand_db, "k0", true);
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    for (bool found = false; !found; hand_sends_all()) {
        worker_take(&hand, 8);
        for (size_t i = 0; i < hand.batch.count; i++)
            found |= hand.batch.msgs[i].id == 9;
        if (sl_now_ns() > until_ns)
            fail_msg("message 9 waits for one that is behind it");
    }
}

static int run_by_hand(void)
{
#define BY_HAND(fn) cmocka_unit_test_setup_teardown(fn, setup_hand, teardown_hand)
    const struct CMUnitTest everywhere[] = {
        BY_HAND(one_that_fails_before_one_that_is_scheduled),
        BY_HAND(one_without_room_before_one_that_is_scheduled),
    };
    const struct CMUnitTest on_postgres[] = {
        /* Elsewhere one writes at a time. */
        BY_HAND(what_another_key_commits_first_hides_nothing),
        cmocka_unit_test_setup_teardown(a_lane_without_room_hides_nothing, setup_two_lanes,
                                        teardown_hand),
    };
    int wrong = cmocka_run_group_tests_name(strategy->name, everywhere, NULL, NULL);
    if (!strcmp(dialect, "postgres"))
        wrong += cmocka_run_group_tests_name(strategy->name, on_postgres, NULL, NULL);
    return wrong;
}

/* ---- All ---- */

static int run_strategy(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest everywhere[] = {
        TEST(few_keys),
        TEST(many_keys),
        TEST(few_keys_that_fail),
    };
    const struct CMUnitTest on_postgres[] = {
        TEST(few_keys_with_a_backlog),
        TEST(many_keys_that_fail),
        TEST(few_keys_with_late_commits),
        TEST(many_keys_with_late_commits_that_fail),
        /* The last two: only where nodes own something. */
        TEST(lanes_that_were_not_released_come_back),
        TEST(nodes_that_come_and_go),
    };
    size_t n = COUNT(on_postgres) - (strategy->owns_lanes ? 0 : 2);
    int wrong = cmocka_run_group_tests_name(strategy->name, everywhere, NULL, NULL);
    if (!strcmp(dialect, "postgres"))
        wrong += _cmocka_run_group_tests(strategy->name, on_postgres, n, NULL, NULL);
    return wrong;
}

static const char *only; /* the strategy that was asked for: test_contract_races guard */

/* Once more on a table whose rows stay, and many batches of it must have been marked. */
static int on_rotated(void)
{
    testdb_rotated = true;
    int wrong = run_by_hand() + run_strategy();
    testdb_rotated = false;
    print_message("%lld batches were marked\n", (long long)marked);
    return wrong + (marked < 100);
}

static int on(const char *name)
{
    int wrong = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        strategy = *c;
        if (!strategy->ordered || (only && strcmp(only, strategy->name) != 0))
            continue;
        print_message("%s on %s\n", strategy->name, dialect);
        wrong += run_by_hand() + run_strategy();
        if (strategy->owns_lanes && !strcmp(dialect, "postgres"))
            wrong += on_rotated();
    }
    return wrong;
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    watch_init(&seen);
    int wrong = testdb_each(on);
    watch_fini(&seen);
    return wrong;
}
