/* SPDX-License-Identifier: Apache-2.0 */
/* Workers in the permuter, and a watch (tests/contract/races.h) that says who holds what. All keys
 * are in one lane. */
#ifndef TESTS_SQL_PERMUTED_H
#define TESTS_SQL_PERMUTED_H

#include "contract/bad_claims.h"
#include "contract/races.h"
#include "sql/permuter.h"

static testdb t;
static perm p;
static watch seen;
static worker workers[PERM_SESSIONS];
static int expiries; /* how often all leases have ended */
/* How often that had been when a worker asked for its claim. */
static int asked[PERM_SESSIONS];
static int64_t total;  /* messages there are */
static sl_err failure; /* where nothing should fail */

static inline int open_all(int sessions)
{
    sl_err err = { 0 };
    sl_schema_done done;
    testdb_make(&t, "postgres", NULL);
    t.names.lanes = 1; /* so that all keys share it */
    if (sl_schema_init(t.eye, &t.names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
    testdb_exec(&t, BAD_SCHEMA ";" PERM_GATE);
    testdb_exec(&t, "INSERT INTO sluice_outbox_leases (entity_key) VALUES ('k0')");
    perm_open(&p, &t, sessions);
    for (int i = 0; i < sessions; i++) {
        workers[i] = (worker){ .db = &p.sessions[i].base };
        sl_batch_init(&workers[i].batch);
    }
    failure = (sl_err){ 0 };
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < p.count; i++)
        sl_batch_fini(&workers[i].batch);
    perm_close(&p);
    testdb_drop(&t);
    return 0;
}

/* ---- What a worker does ---- */

static inline void give_up(perm_session *s)
{
    watch_given_up(&seen, s->number, &workers[s->number].batch);
}

/* A worker asks for its claim: with the first statement that comes now. */
static inline void ask(perm_session *s)
{
    asked[s->number] = expiries;
}

/* It was taken; until the next statement begins, it is being sent. false: the lease may have
 * ended since it was asked for, which a worker knows by its own clock, and nothing was sent. */
static inline bool hold_and_send(perm_session *s)
{
    const sl_batch *b = &workers[s->number].batch;
    if (expiries != asked[s->number])
        return false;
    watch_taken(&seen, s->number, b);
    for (size_t i = 0; i < b->count; i++)
        if (b->msgs[i].verdict == SL_PENDING)
            watch_sent(&seen, s->number, &b->msgs[i]);
    s->before = give_up;
    return true;
}

/* ---- The verdict ---- */

/* What was sent and not settled when the lease ended is sent again: that is no fault. */
static inline bool wrong(perm *unused)
{
    (void)unused;
    if (failure.rc != SL_OK)
        fail_msg("%s: %s", sl_buf_text(&p.trace), failure.text);
    return seen.concurrent || seen.disorder;
}

#endif
