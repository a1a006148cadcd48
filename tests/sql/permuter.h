/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs sessions in every order there is. Each session is a thread with a connection of its own
 * and runs ordinary C code, the program's or a test's, on an sl_db that asks for its turn before
 * each statement; only one has it at a time. A statement that waits for a lock gives its turn
 * back, and goes on when the lock is free, as in PostgreSQL's isolationtester; but here nobody
 * writes the schedules down: after each one, the last choice that has an alternative is changed,
 * until there is none.
 *
 * BEGIN is no step of its own: nobody else can see whether it has happened; nor is drawing a number
 * that nobody else draws. A statement can also be halted in its middle, between its snapshot and what it does then, by a gate: see PERM_GATE.
 *
 * What a schedule depends on besides (the time, random()) must not matter to the outcome; where
 * two sessions wake up together they race, and a schedule may then come out different from the
 * one that was asked for. These are counted.
 */
#ifndef TESTS_SQL_PERMUTER_H
#define TESTS_SQL_PERMUTER_H

#include "support/testdb.h"

#include <pthread.h>
#include <stdio.h>

enum {
    PERM_SESSIONS = 4,
    PERM_DEPTH = 256,
    PERM_SLOT = 10,
    PERM_ANY = 1000,     /* preemptions: as many as there can be */
    PERM_PATIENCE_S = 30 /* for a statement that neither ends nor waits for a lock */
};

/* In a WHERE clause: the statement halts here, wherever it is, until it is its session's turn
 * again. $1 is the session's number. Two doors, so that the first is shut again before the second
 * is opened. */
#define PERM_GATE                                                                              \
    "CREATE FUNCTION sluice_outbox_gate(bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS " \
    "$$ BEGIN FOR door IN 7305 .. 7306 LOOP PERFORM pg_advisory_lock(door, $1::integer); "     \
    "PERFORM pg_advisory_unlock(door, $1::integer); END LOOP; RETURN true; END $$"
enum { PERM_DOOR = 7305 };

typedef enum perm_state {
    PERM_READY,   /* wants to run its next statement */
    PERM_RUNNING, /* has its turn */
    PERM_BLOCKED, /* in a statement that waits for another session */
    PERM_GATED,   /* in a statement that is halted by a gate */
    PERM_DONE
} perm_state;

typedef struct perm perm;
typedef struct perm_session perm_session;

struct perm_session {
    sl_db base; /* what its code runs on */
    sl_db *real;
    perm *p;
    int number;
    int64_t pid;
    void (*body)(perm_session *s);
    pthread_t thread;
    perm_state state;
    const char *at; /* the statement it wants to run, or runs */
    /* Called once, when it has its turn, before the statement runs. */
    void (*before)(perm_session *s);
};

typedef struct perm_case {
    const char *name;
    void (*reset)(perm *p);
    void (*bodies[PERM_SESSIONS])(perm_session *s); /* ended by NULL */
    bool (*violated)(perm *p);                      /* asked after each schedule */
    bool gates;
    int preemptions; /* how often at most a session that could go on has to wait */
    bool find;       /* look for one schedule that violates; else there must be none */
} perm_case;

struct perm {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    testdb *t;
    sl_db *eye; /* holds the gates, and sees who waits for whom */
    int64_t eye_pid;
    perm_session sessions[PERM_SESSIONS];
    int count;
    bool free; /* no schedule: whoever comes may go */
    bool idle; /* statements whose rows nobody wants are left out: a claim opens faster so */
    /* The schedule: at each choice which of how many ways was gone. */
    unsigned char choice[PERM_DEPTH], ways[PERM_DEPTH];
    int depth, fixed; /* so many choices were made; so many of them are given */
    int last, preemptions, most_preemptions;
    int schedules, strayed, steps;
    bool astray; /* this schedule came out different from what was asked for */
    sl_buf trace;
};

/* ---- A session's side ---- */

static inline perm_session *perm_of(sl_db *db)
{
    return (perm_session *)db;
}

static inline void perm_await_turn(perm_session *s, const char *what)
{
    perm *p = s->p;
    pthread_mutex_lock(&p->lock);
    bool scheduled = !p->free;
    if (scheduled) {
        s->at = what;
        s->state = PERM_READY;
        pthread_cond_broadcast(&p->changed);
        while (s->state != PERM_RUNNING)
            pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    void (*before)(perm_session *) = s->before;
    s->before = NULL;
    if (before)
        before(s);
}

static inline bool perm_is_step(const sl_call *c)
{
    return strcmp(c->stmt->name, "tx/begin") != 0 && strcmp(c->stmt->name, "epoch/next") != 0;
}

/* One statement after the other: what the program sends in one go is the same for the server,
 * as long as it is in a transaction. */
static inline sl_rc perm_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    perm_session *s = perm_of(db);
    sl_rc rc = SL_OK;
    for (size_t i = 0; i < count && rc == SL_OK; i++) {
        if (s->p->idle && !calls[i].row)
            continue;
        if (perm_is_step(&calls[i]))
            perm_await_turn(s, calls[i].stmt->name);
        rc = s->real->ops->run(s->real, &calls[i], 1, err);
    }
    return rc;
}

static inline void perm_rollback(sl_db *db)
{
    perm_await_turn(perm_of(db), "rollback");
    perm_of(db)->real->ops->rollback(perm_of(db)->real);
}

static inline void perm_keep_open(sl_db *db)
{
    (void)db; /* it is the permuter's */
}

static const sl_db_ops perm_ops = {
    .name = "postgres", .close = perm_keep_open, .run = perm_run, .rollback = perm_rollback
};

static inline void *perm_main(void *arg)
{
    perm_session *s = arg;
    s->body(s);
    pthread_mutex_lock(&s->p->lock);
    s->state = PERM_DONE;
    pthread_cond_broadcast(&s->p->changed);
    pthread_mutex_unlock(&s->p->lock);
    return NULL;
}

/* ---- What the eye sees ---- */

/* Slots below PERM_SLOT are for the statements of a test. */
#define PERM_PID "SELECT pg_backend_pid()::bigint + 0 * ($1 + $2)"

static inline int64_t perm_ask(sl_db *db, int slot, const char *sql, int64_t a, int64_t b)
{
    int64_t got = 0;
    sl_err err = { 0 };
    sl_stmt s = testdb_stmt(db, slot, sql, 1, SL_T_INT8);
    s.nparams = 2;
    s.params[0] = s.params[1] = SL_T_INT8;
    sl_val in[] = { sl_int(a), sl_int(b) };
    sl_call call = { .stmt = &s, .in = in, .row = testdb_row_int, .ctx = &got };
    if (db->ops->run(db, &call, 1, &err) != SL_OK)
        fail_msg("%s: %s", sql, err.text);
    return got;
}

/* The lock table says at once when a lock was granted, before whoever let go of it has its
 * answer. */
static inline perm_state perm_look(perm *p, const perm_session *s)
{
    int64_t got = perm_ask(p->eye, PERM_SLOT + 1 + 0,
                           "SELECT CASE WHEN $2::integer = ANY (b) THEN 2 WHEN cardinality(b) "
                           "> 0 THEN 1 ELSE 0 END::bigint FROM pg_blocking_pids($1::integer) b",
                           s->pid, p->eye_pid);
    return got == 2 ? PERM_GATED : got == 1 ? PERM_BLOCKED : PERM_RUNNING;
}

static inline void perm_shut(perm *p, int door, int number)
{
    perm_ask(p->eye, PERM_SLOT + 2,
             "SELECT 1::bigint FROM (SELECT pg_advisory_lock($1::integer, $2::integer)) g",
             door, number);
}

static inline void perm_unlock(perm *p, int door, int number)
{
    perm_ask(p->eye, PERM_SLOT + 3,
             "SELECT pg_advisory_unlock($1::integer, $2::integer)::integer::bigint", door,
             number);
}

static inline void perm_pass_gate(perm *p, int number)
{
    perm_shut(p, PERM_DOOR + 1, number);
    perm_unlock(p, PERM_DOOR, number);
    perm_shut(p, PERM_DOOR, number);
    perm_unlock(p, PERM_DOOR + 1, number);
}

/* ---- The schedule ---- */

static inline void perm_set(perm *p, perm_session *s, perm_state from, perm_state to)
{
    pthread_mutex_lock(&p->lock);
    if (s->state == from)
        s->state = to;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* Waits a moment for those that run. Returns whether some still do. */
static inline bool perm_wait(perm *p)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    bool running = true;
    pthread_mutex_lock(&p->lock);
    for (int rc = 0; running && rc == 0;) {
        running = false;
        for (int i = 0; i < p->count; i++)
            running |= p->sessions[i].state == PERM_RUNNING;
        if (running)
            rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    return running;
}

static inline perm_state perm_state_of(perm *p, const perm_session *s)
{
    pthread_mutex_lock(&p->lock);
    perm_state state = s->state;
    pthread_mutex_unlock(&p->lock);
    return state;
}

/* Looks anew at all sessions in this state. Returns whether one of them runs. */
static inline bool perm_look_at(perm *p, perm_state state)
{
    bool runs = false;
    for (int i = 0; i < p->count; i++) {
        perm_session *s = &p->sessions[i];
        if (perm_state_of(p, s) != state)
            continue;
        perm_set(p, s, state, perm_look(p, s));
        runs |= perm_state_of(p, s) == PERM_RUNNING;
    }
    return runs;
}

/* Until nobody runs: all wait for their turn, for a lock or at a gate, or are done. A step that
 * ends may free others, which run then. */
static inline void perm_quiesce(perm *p)
{
    int64_t until = sl_now_ns() + PERM_PATIENCE_S * SL_SEC;
    do {
        while (perm_wait(p)) {
            perm_look_at(p, PERM_RUNNING);
            if (sl_now_ns() > until)
                fail_msg("a session neither ends nor waits: %s", sl_buf_text(&p->trace));
        }
    } while (perm_look_at(p, PERM_BLOCKED));
}

/* Who may go next; whoever went last comes first. */
static inline int perm_runnable(perm *p, int out[PERM_SESSIONS])
{
    int n = 0;
    for (int i = 0; i < p->count; i++) {
        int at = (p->last + i) % p->count;
        perm_state state = perm_state_of(p, &p->sessions[at]);
        if (state == PERM_READY || state == PERM_GATED)
            out[n++] = at;
    }
    if (n > 1 && out[0] == p->last && p->preemptions >= p->most_preemptions)
        n = 1;
    return n;
}

static inline int perm_choose(perm *p, const int *runnable, int n)
{
    assert_true(p->depth < PERM_DEPTH);
    int d = p->depth++;
    int way = d < p->fixed ? p->choice[d] : 0;
    if (way >= n) {
        p->astray = true;
        way = 0;
    }
    p->choice[d] = (unsigned char)way;
    p->ways[d] = (unsigned char)n;
    p->preemptions += way > 0 && runnable[0] == p->last;
    return runnable[way];
}

static inline void perm_go(perm *p, int who)
{
    perm_session *s = &p->sessions[who];
    char text[96];
    p->last = who;
    p->steps++;
    bool gated = perm_state_of(p, s) == PERM_GATED;
    snprintf(text, sizeof text, "%s%d:%s", p->trace.n ? " " : "", who + 1,
             gated ? "(on)" : s->at);
    sl_buf_puts(&p->trace, text);
    if (gated) {
        perm_set(p, s, PERM_GATED, PERM_RUNNING);
        perm_pass_gate(p, who);
    } else {
        perm_set(p, s, PERM_READY, PERM_RUNNING);
    }
}

/* Runs one schedule. */
static inline void perm_schedule(perm *p, const perm_case *c)
{
    int runnable[PERM_SESSIONS];
    int64_t until = sl_now_ns() + PERM_PATIENCE_S * SL_SEC;
    p->depth = p->preemptions = p->last = 0;
    sl_buf_reset(&p->trace);
    for (int i = 0; i < p->count; i++) {
        perm_session *s = &p->sessions[i];
        s->state = PERM_RUNNING;
        s->body = c->bodies[i];
        s->before = NULL;
        assert_int_equal(pthread_create(&s->thread, NULL, perm_main, s), 0);
    }
    for (bool done = false; !done;) {
        perm_quiesce(p);
        int n = perm_runnable(p, runnable);
        if (n > 0)
            perm_go(p, perm_choose(p, runnable, n));
        done = n == 0;
        for (int i = 0; i < p->count; i++)
            done &= perm_state_of(p, &p->sessions[i]) == PERM_DONE;
        /* All wait for each other: the server ends such a deadlock. */
        if (n == 0 && !done && sl_now_ns() > until)
            fail_msg("nobody can go on: %s", sl_buf_text(&p->trace));
    }
    for (int i = 0; i < p->count; i++)
        pthread_join(p->sessions[i].thread, NULL);
    p->schedules++;
}

/* The same until it comes out as it was asked for; that may be impossible, but not often. */
static inline bool perm_try(perm *p, const perm_case *c)
{
    unsigned char wanted[PERM_DEPTH];
    bool violated = false;
    memcpy(wanted, p->choice, sizeof wanted);
    for (int i = 0; i == 0 || (p->astray && i < 5); i++) {
        memcpy(p->choice, wanted, sizeof wanted);
        p->astray = false;
        p->free = true;
        c->reset(p);
        p->free = false;
        perm_schedule(p, c);
        p->free = true;
        violated |= c->violated(p);
    }
    p->strayed += p->astray;
    return violated;
}

/* The next schedule; false: that was all. */
static inline bool perm_next(perm *p)
{
    int d = p->depth - 1;
    while (d >= 0 && p->choice[d] + 1 >= p->ways[d])
        d--;
    if (d < 0)
        return false;
    p->choice[d]++;
    p->fixed = d + 1;
    return true;
}

/* ---- Opening, running, closing ---- */

static inline void perm_open(perm *p, testdb *t, int count)
{
    *p = (perm){ .t = t, .count = count, .eye = testdb_open(t) };
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->eye_pid = perm_ask(p->eye, PERM_SLOT, PERM_PID, 0, 0);
    for (int i = 0; i < count; i++) {
        perm_session *s = &p->sessions[i];
        *s = (perm_session){ .base = { &perm_ops }, .p = p, .number = i, .state = PERM_DONE };
        s->real = testdb_open(t);
        testdb_script(s->real, &t->names, "SET deadlock_timeout = '10ms'");
        s->pid = perm_ask(s->real, PERM_SLOT, PERM_PID, 0, 0);
    }
}

static inline void perm_close(perm *p)
{
    for (int i = 0; i < p->count; i++)
        sl_db_close(p->sessions[i].real);
    sl_db_close(p->eye);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    sl_buf_fini(&p->trace);
}

/* All schedules of a case. Those that violate must be there, or not, as it says. */
static inline void perm_all(perm *p, const perm_case *c)
{
    int violated = 0;
    int64_t began_ns = sl_now_ns();
    p->schedules = p->strayed = p->steps = p->fixed = 0;
    p->most_preemptions = c->preemptions;
    for (int i = 0; c->gates && i < p->count; i++)
        perm_shut(p, PERM_DOOR, i);
    do {
        if (perm_try(p, c) && violated++ == 0)
            print_message("%s: violated by the schedule %s\n", c->name, sl_buf_text(&p->trace));
    } while (!(violated && c->find) && perm_next(p));
    for (int i = 0; c->gates && i < p->count; i++)
        perm_unlock(p, PERM_DOOR, i);
    char bound[48] = "";
    if (c->preemptions < PERM_ANY)
        snprintf(bound, sizeof bound, " of up to %d preemptions", c->preemptions);
    print_message("%s: %d schedules%s, %d steps, %d violate it, %d strayed, %.1f s%s\n",
                  c->name, p->schedules, bound, p->steps, violated, p->strayed,
                  (double)(sl_now_ns() - began_ns) / SL_SEC,
                  violated && c->find ? " (ended with the first)" : "");
    if (c->find && violated == 0)
        fail_msg("%s: no schedule violates it", c->name);
    if (!c->find)
        assert_int_equal(violated, 0);
}

#endif
