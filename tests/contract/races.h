/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races: workers, each a thread with a session of its own, take and settle messages of a few or
 * of many keys, while producers write more of them. Beside the database a watch notes who holds
 * which key right now, and what was delivered when. It trusts nobody: neither the claim's word
 * nor what the tables say.
 *
 * A worker holds the keys of its batch from the moment its take returned until just before it
 * settles. Two that hold one key at the same time are concurrent. A message is out of order if a
 * higher id of its key was delivered before it, although no such id was there when it was
 * committed: that a producer commits its ids in another order is no fault of any claim
 * (hazards.md, table 0). A message that was committed late may come late; if even one that was
 * committed after it came first, it is counted as overtaken, for information. What is delivered
 * again, after a lease has ended, must be in order only within one worker's deliveries.
 */
#ifndef TESTS_CONTRACT_RACES_H
#define TESTS_CONTRACT_RACES_H

#include "contract/claims.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    WATCH_KEYS = 512,
    WATCH_IDS = 1 << 17,
    WATCH_WORKERS = 32,
    RACE_PRODUCERS = 2,
    RACE_STALL_S = 20, /* without a delivery, after which a race is over */
};

/* ---- The watch ---- */

typedef struct watch_key {
    pthread_mutex_t lock;
    uint64_t holders; /* a bit for each worker */
    int64_t *sent;    /* ids, in the order of delivery */
    size_t count, cap;
    int64_t highest; /* of them */
    int last_by;     /* the worker that delivered last */
} watch_key;

typedef struct watch {
    watch_key keys[WATCH_KEYS];
    /* By id. What was committed after a higher id of its key: that id. */
    _Atomic int64_t late[WATCH_IDS];
    _Atomic int delivered[WATCH_IDS];
    _Atomic int produced[WATCH_IDS];
    _Atomic int64_t last_id;
    _Atomic int claims;   /* of a key by a worker */
    _Atomic int distinct; /* messages delivered at least once */
    _Atomic int made;     /* messages produced */
    _Atomic int concurrent;
    _Atomic int disorder;
    _Atomic int overtaken; /* late ones */
    _Atomic int doubled;
} watch;

static inline void watch_init(watch *w)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < WATCH_KEYS; i++)
        pthread_mutex_init(&w->keys[i].lock, NULL);
}

static inline void watch_reset(watch *w)
{
    int64_t ids = w->last_id + 1;
    for (int i = 0; i < WATCH_KEYS; i++) {
        w->keys[i].holders = 0;
        w->keys[i].count = 0;
        w->keys[i].highest = 0;
    }
    for (int64_t i = 0; i < ids; i++) {
        w->late[i] = 0;
        w->delivered[i] = w->produced[i] = 0;
    }
    w->last_id = 0;
    w->claims = w->distinct = w->made = w->concurrent = w->disorder = w->overtaken =
        w->doubled = 0;
}

static inline void watch_fini(watch *w)
{
    for (int i = 0; i < WATCH_KEYS; i++) {
        pthread_mutex_destroy(&w->keys[i].lock);
        free(w->keys[i].sent);
        w->keys[i] = (watch_key){ .count = 0 };
    }
}

/* Threads cannot fail a cmocka test: what must not be ends the program. */
static inline void watch_demand(bool so, const char *what)
{
    if (so)
        return;
    fprintf(stderr, "the watch of the race: %s\n", what);
    abort();
}

static inline void watch_id(watch *w, int64_t id)
{
    watch_demand(id > 0 && id < WATCH_IDS, "an id beyond what it can note");
    int64_t last = w->last_id;
    while (id > last && !atomic_compare_exchange_weak(&w->last_id, &last, id))
        ;
}

/* Keys are called k0, k1, ... */
static inline watch_key *watch_key_of(watch *w, const sl_msg *m)
{
    watch_demand(m->key.n > 1 && m->key.p[0] == 'k', "a message without a key of the race");
    long k = strtol(m->key.p + 1, NULL, 10);
    watch_demand(k >= 0 && k < WATCH_KEYS, "a key beyond what it can note");
    return &w->keys[k];
}

/* The worker has these messages and nobody else should. */
static inline void watch_taken(watch *w, int who, const sl_batch *b)
{
    uint64_t me = UINT64_C(1) << who;
    for (size_t i = 0; i < b->count; i++) {
        watch_key *k = watch_key_of(w, &b->msgs[i]);
        pthread_mutex_lock(&k->lock);
        if (!(k->holders & me)) {
            w->claims++;
            w->concurrent += k->holders != 0;
            k->holders |= me;
        }
        pthread_mutex_unlock(&k->lock);
    }
}

/* Before the settle: once that is committed, another may have them. */
static inline void watch_given_up(watch *w, int who, const sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        watch_key *k = watch_key_of(w, &b->msgs[i]);
        pthread_mutex_lock(&k->lock);
        k->holders &= ~(UINT64_C(1) << who);
        pthread_mutex_unlock(&k->lock);
    }
}

/* The leases of these workers (a bit for each) have ended: they must have stopped to send. */
static inline void watch_expired(watch *w, uint64_t who)
{
    for (int i = 0; i < WATCH_KEYS; i++) {
        pthread_mutex_lock(&w->keys[i].lock);
        w->keys[i].holders &= ~who;
        pthread_mutex_unlock(&w->keys[i].lock);
    }
}

/* Where a message stands in the order of the commits of its key, in terms of ids. */
static inline int64_t watch_place(watch *w, int64_t id)
{
    int64_t late = w->late[id];
    return late ? late : id;
}

static inline bool watch_overtaken(watch *w, const watch_key *k, int who, int64_t id)
{
    if (id > k->highest)
        return false;
    if (w->delivered[id])
        return k->last_by == who && k->sent[k->count - 1] >= id;
    for (size_t i = 0; i < k->count; i++)
        if (k->sent[i] > id && watch_place(w, k->sent[i]) > watch_place(w, id))
            return true;
    return false;
}

static inline void watch_sent(watch *w, int who, const sl_msg *m)
{
    watch_key *k = watch_key_of(w, m);
    watch_id(w, m->id);
    pthread_mutex_lock(&k->lock);
    if (watch_overtaken(w, k, who, m->id))
        *(w->late[m->id] ? &w->overtaken : &w->disorder) += 1;
    if (k->count == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->sent = sl_realloc(k->sent, k->cap * sizeof k->sent[0]);
    }
    k->sent[k->count++] = m->id;
    k->last_by = who;
    if (m->id > k->highest)
        k->highest = m->id;
    bool again = w->delivered[m->id]++ > 0;
    pthread_mutex_unlock(&k->lock);
    *(again ? &w->doubled : &w->distinct) += 1;
}

static inline void watch_made(watch *w, int64_t id)
{
    watch_id(w, id);
    w->produced[id] = 1;
    w->made++;
}

static inline int watch_lost(watch *w)
{
    int lost = 0;
    for (int64_t id = 1; id <= w->last_id; id++)
        lost += w->produced[id] && !w->delivered[id];
    return lost;
}

/* ---- The race ---- */

typedef struct race race;
typedef struct racer racer;

/* How workers claim. */
typedef struct race_how {
    const char *name;
    bool may_fail; /* a failure is a turn in vain, not the end */
    sl_rc (*open)(racer *r);
    sl_rc (*take)(racer *r); /* fills r->w.batch; how many in r->took */
    void (*judge)(racer *r); /* NULL, or: gives some messages a verdict before all are sent */
    sl_rc (*settle)(racer *r);
    void (*close)(racer *r);
    void (*disturb)(race *r); /* NULL, or called again and again, on a thread of its own */
    const void *ctx;
} race_how;

typedef struct race_plan {
    int keys;
    int workers;
    int messages; /* at least so many are produced */
    int backlog;  /* at most so many wait; few of them mean that workers meet more often */
    int send_us;  /* a delivery takes so long at most */
    bool late;    /* every second producer's turn commits an id after higher ones of its key */
    /* Looks for these, and ends as soon as it has seen all of them. */
    bool want_concurrent, want_disorder;
    int disturbances;           /* at least so often it is disturbed */
    int64_t extra, extra_first; /* for the claims of all workers, and of the first */
} race_plan;

typedef struct race_sum {
    int claims, busy, vain, concurrent, disorder, overtaken, doubled, lost, left;
    int64_t took_ns;
} race_sum;

struct racer {
    race *race;
    int number;
    worker w;
    size_t took;
    int64_t extra;
    pthread_t thread;
    int turns, vain;
    int idle; /* turns in vain since the last other */
    sl_rc rc;
};

typedef struct producer {
    race *race;
    int number;
    sl_db *db, *slow;
    pthread_t thread;
    int64_t ids[8];
    size_t count;
    sl_rc rc;
    sl_err err;
} producer;

struct race {
    testdb *t;
    const race_how *how;
    race_plan plan;
    watch *watch;
    racer racers[WATCH_WORKERS];
    producer producers[RACE_PRODUCERS];
    pthread_t disturber;
    _Atomic int producing;
    _Atomic int disturbed;
    _Atomic bool stop;
};

/* ---- Producers: each has keys of its own, so that the writes of a key are serialised ---- */

static inline sl_rc producer_note(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    producer *p = ctx;
    watch_demand(p->count < COUNT(p->ids), "too many ids at once");
    p->ids[p->count++] = cols[0].i;
    return SL_OK;
}

/* Their ids are in p->ids then. */
static inline sl_rc producer_insert(producer *p, sl_db *db, const int64_t *keys, size_t n)
{
    sl_stmt s = testdb_stmt(
        db, 0,
        testdb_or(p->race->t,
                  "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'race', "
                  "'k' || u.k, convert_to('', 'UTF8') FROM unnest($1) AS u (k) RETURNING id",
                  "INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES ('race', 'k' "
                  "|| $1, x'') RETURNING id"),
        1, SL_T_INT8);
    s.nparams = 1;
    s.params[0] = SL_T_INT8S;
    sl_val in[] = { sl_ints(keys, n) };
    sl_call call = { .stmt = &s, .in = in, .row = producer_note, .ctx = p };
    p->count = 0;
    return db->ops->run(db, &call, 1, &p->err);
}

static inline void producer_made(producer *p)
{
    for (size_t i = 0; i < p->count; i++)
        watch_made(p->race->watch, p->ids[i]);
}

static inline int64_t producer_key(const producer *p)
{
    uint64_t mine = (uint64_t)p->race->plan.keys / RACE_PRODUCERS;
    return (int64_t)(sl_random() % mine) * RACE_PRODUCERS + p->number;
}

static inline sl_rc producer_in_order(producer *p)
{
    int64_t keys[4];
    size_t n = 1 + sl_random() % COUNT(keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = producer_key(p);
    sl_rc rc = producer_insert(p, p->db, keys, n);
    if (rc == SL_OK)
        producer_made(p);
    return rc;
}

/* Takes an id, and commits it when higher ones of its key are there already. */
static inline sl_rc producer_late(producer *p)
{
    int64_t key = producer_key(p);
    int64_t keys[] = { key, key, key };
    sl_rc rc = sl_db_run1(p->slow, "tx/begin", NULL, NULL, NULL, NULL, &p->err);
    if (rc == SL_OK)
        rc = producer_insert(p, p->slow, keys, 1);
    if (rc != SL_OK)
        return rc;
    int64_t late = p->ids[0];
    rc = producer_insert(p, p->db, keys, 1 + sl_random() % COUNT(keys));
    if (rc != SL_OK)
        return rc;
    producer_made(p);
    watch_id(p->race->watch, late);
    p->race->watch->late[late] = p->ids[p->count - 1];
    usleep((useconds_t)(sl_random() % 2000));
    rc = sl_db_run1(p->slow, "tx/commit", NULL, NULL, NULL, NULL, &p->err);
    if (rc == SL_OK)
        watch_made(p->race->watch, late);
    return rc;
}

static inline void *producer_main(void *arg)
{
    producer *p = arg;
    race *r = p->race;
    while (!r->stop && p->rc == SL_OK &&
           (r->watch->made < r->plan.messages || r->disturbed < r->plan.disturbances)) {
        if (r->watch->made - r->watch->distinct >= r->plan.backlog)
            usleep(100);
        else
            p->rc = r->plan.late && sl_random() % 2 ? producer_late(p) : producer_in_order(p);
    }
    r->producing--;
    return NULL;
}

/* ---- Workers ---- */

/* What a sink would do meanwhile: long enough to be seen by another. */
static inline void racer_send(racer *r)
{
    sl_batch *b = &r->w.batch;
    if (r->race->how->judge)
        r->race->how->judge(r);
    for (size_t i = 0; i < b->count; i++)
        if (b->msgs[i].verdict == SL_PENDING || b->msgs[i].verdict == SL_SENT)
            watch_sent(r->race->watch, r->number, &b->msgs[i]);
    if (r->race->plan.send_us)
        usleep((useconds_t)(sl_random() % (unsigned)r->race->plan.send_us));
}

static inline sl_rc racer_turn(racer *r)
{
    const race_how *how = r->race->how;
    r->took = 0;
    sl_rc rc = how->take(r);
    if (rc != SL_OK)
        return rc;
    if (r->took == 0) { /* the longer it finds nothing, the more room for the others */
        r->vain++;
        r->idle += r->idle < 5;
        usleep((useconds_t)(sl_random() % (UINT64_C(200) << r->idle)));
        return SL_OK;
    }
    r->turns++;
    r->idle = 0;
    watch_taken(r->race->watch, r->number, &r->w.batch);
    racer_send(r);
    watch_given_up(r->race->watch, r->number, &r->w.batch);
    sl_batch_settle_rest(&r->w.batch, SL_SENT, SL_NONE);
    return how->settle(r);
}

static inline void *racer_main(void *arg)
{
    racer *r = arg;
    while (!r->race->stop) {
        sl_rc rc = racer_turn(r);
        if (rc == SL_OK)
            continue;
        r->vain++;
        if (!r->race->how->may_fail || rc == SL_OPERATOR) {
            r->rc = rc;
            r->race->stop = true;
        }
    }
    return NULL;
}

static inline void *disturber_main(void *arg)
{
    race *r = arg;
    for (; !r->stop; r->disturbed++)
        r->how->disturb(r);
    return NULL;
}

/* ---- Beginning and ending ---- */

static inline void race_open(race *r)
{
    watch_demand(r->plan.workers <= WATCH_WORKERS && r->plan.keys <= WATCH_KEYS, "too small");
    for (int i = 0; i < r->plan.workers; i++) {
        racer *x = &r->racers[i];
        *x = (racer){ .race = r, .number = i };
        x->extra = i == 0 && r->plan.extra_first ? r->plan.extra_first : r->plan.extra;
        if (r->how->open(x) != SL_OK)
            fail_msg("%s: %s", r->how->name, x->w.err.text);
    }
    for (int i = 0; i < RACE_PRODUCERS; i++) {
        producer *p = &r->producers[i];
        *p = (producer){ .race = r, .number = i, .db = testdb_open(r->t) };
        if (r->plan.late)
            p->slow = testdb_open(r->t);
    }
}

static inline bool race_found(const race_plan *p, int concurrent, int disorder)
{
    return (p->want_concurrent || p->want_disorder) && (!p->want_concurrent || concurrent) &&
           (!p->want_disorder || disorder);
}

/* Everything was delivered, or what was looked for has been seen, or nothing moves any more. */
static inline bool race_over(race *r, int *distinct, int64_t *moved_ns)
{
    watch *w = r->watch;
    if (race_found(&r->plan, w->concurrent, w->disorder))
        return true;
    if (r->producing == 0 && w->distinct >= w->made)
        return true;
    if (w->distinct != *distinct) {
        *distinct = w->distinct;
        *moved_ns = sl_now_ns();
    }
    return sl_now_ns() - *moved_ns > RACE_STALL_S * SL_SEC;
}

static inline void race_threads(race *r)
{
    int distinct = 0;
    int64_t moved_ns = sl_now_ns();
    r->producing = RACE_PRODUCERS;
    for (int i = 0; i < RACE_PRODUCERS; i++)
        assert_int_equal(
            pthread_create(&r->producers[i].thread, NULL, producer_main, &r->producers[i]), 0);
    for (int i = 0; i < r->plan.workers; i++)
        assert_int_equal(pthread_create(&r->racers[i].thread, NULL, racer_main, &r->racers[i]),
                         0);
    if (r->how->disturb)
        assert_int_equal(pthread_create(&r->disturber, NULL, disturber_main, r), 0);
    while (!r->stop && !race_over(r, &distinct, &moved_ns))
        usleep(1000);
    r->stop = true;
    if (r->how->disturb)
        pthread_join(r->disturber, NULL);
    for (int i = 0; i < RACE_PRODUCERS; i++)
        pthread_join(r->producers[i].thread, NULL);
    for (int i = 0; i < r->plan.workers; i++)
        pthread_join(r->racers[i].thread, NULL);
}

static inline race_sum race_close(race *r)
{
    watch *w = r->watch;
    race_sum sum = { .claims = w->claims,
                     .concurrent = w->concurrent,
                     .disorder = w->disorder,
                     .overtaken = w->overtaken,
                     .doubled = w->doubled,
                     .lost = watch_lost(w) };
    for (int i = 0; i < r->plan.workers; i++) {
        racer *x = &r->racers[i];
        sum.busy += x->turns > 0;
        sum.vain += x->vain;
        if (x->rc != SL_OK)
            print_message("worker %d: %s: %s\n", i, sl_rc_name(x->rc), x->w.err.text);
        r->how->close(x);
    }
    for (int i = 0; i < RACE_PRODUCERS; i++) {
        producer *p = &r->producers[i];
        sl_db_close(p->db);
        if (p->slow)
            sl_db_close(p->slow);
        if (p->rc != SL_OK)
            fail_msg("producer: %s", p->err.text);
    }
    sum.left = (int)testdb_count(r->t);
    return sum;
}

/* The tables must be empty, and ids begin with 1. */
static inline race_sum race_run(testdb *t, watch *w, const race_how *how, const race_plan *plan)
{
    static race r;
    r = (race){ .t = t, .how = how, .plan = *plan, .watch = w };
    watch_reset(w);
    int64_t began_ns = sl_now_ns();
    race_open(&r);
    race_threads(&r);
    bool failed = false;
    for (int i = 0; i < plan->workers; i++)
        failed |= r.racers[i].rc != SL_OK;
    race_sum sum = race_close(&r);
    sum.took_ns = sl_now_ns() - began_ns;
    print_message("%s, %d keys%s: %d claims by %d workers, %d concurrent, %d out of order",
                  how->name, plan->keys, plan->late ? ", late commits" : "", sum.claims,
                  sum.busy, sum.concurrent, sum.disorder);
    if (race_found(plan, sum.concurrent, sum.disorder))
        print_message("; ended there, after %.1f s\n", (double)sum.took_ns / SL_SEC);
    else
        print_message("; %d late ones overtaken, %d lost, %d twice, %d turns in vain, %.1f s\n",
                      sum.overtaken, sum.lost, sum.doubled, sum.vain,
                      (double)sum.took_ns / SL_SEC);
    if (failed)
        fail_msg("%s: a worker failed", how->name);
    return sum;
}

#endif
