/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of one message that keep the order of a key, or seem to: published recipes that look
 * right and are not (hazards.md, table 0), and beside them the two that are. A test of races
 * which does not notice the former proves nothing about the strategies.
 *
 * PostgreSQL only. A message is taken while leased_until is not NULL. What the races run is also
 * what tests/sql/test_permuter.c runs, step by step: `name` of a statement is for its schedules.
 */
#ifndef TESTS_CONTRACT_BAD_CLAIMS_H
#define TESTS_CONTRACT_BAD_CLAIMS_H

#include "contract/claims.h"

typedef struct bad_claim bad_claim;

struct bad_claim {
    const char *name;
    const char *claim; /* the statement that takes a message, or the lease of a key */
    const char *done;  /* the one that settles */
    sl_rc (*take)(const bad_claim *c, worker *w, int64_t extra);
    sl_rc (*settle)(const bad_claim *c, worker *w);
};

/* Tables besides those of `sluice init`. */
#define BAD_SCHEMA                                                                             \
    "CREATE TABLE sluice_outbox_leases (entity_key text PRIMARY KEY, "                         \
    "ends_at timestamptz NOT NULL DEFAULT '-infinity', epoch bigint NOT NULL DEFAULT 0)"
#define BAD_RESET                                                                              \
    "TRUNCATE sluice_outbox RESTART IDENTITY; TRUNCATE sluice_outbox_leases; "                 \
    "INSERT INTO sluice_outbox_leases (entity_key) SELECT 'k' || i FROM generate_series(0, "   \
    "511) i"
/* The net of A1: two messages of a key cannot be taken at once. */
#define BAD_UNIQUE                                                                             \
    "CREATE UNIQUE INDEX sluice_outbox_ix_one ON sluice_outbox (entity_key) WHERE "            \
    "leased_until IS NOT NULL"

/* ---- Statements of a test ---- */

typedef struct bad_stmt {
    int slot;
    const char *name;
    const char *text;
    int ncols;
    sl_type cols[3];
} bad_stmt;

static inline sl_rc bad_run(worker *w, const bad_stmt *b, const sl_val *in, int nparams,
                            sl_row_fn row, void *ctx, int64_t *affected)
{
    sl_stmt s = testdb_stmt(w->db, b->slot, b->text, b->ncols, SL_T_INT8);
    s.name = b->name;
    memcpy(s.cols, b->cols, sizeof b->cols);
    s.nparams = nparams;
    for (int i = 0; i < nparams; i++)
        s.params[i] = in[i].type;
    sl_call call = { .stmt = &s, .in = in, .row = row, .ctx = ctx };
    sl_rc rc = w->db->ops->run(w->db, &call, 1, &w->err);
    if (affected)
        *affected = call.affected;
    return rc;
}

static inline sl_rc bad_tx(worker *w, const char *what)
{
    return sl_db_run1(w->db, what, NULL, NULL, NULL, NULL, &w->err);
}

/* id, key, epoch */
static inline sl_rc bad_note(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_batch *b = ctx;
    sl_msg *m = sl_batch_add(b);
    m->id = cols[0].i;
    m->key = sl_arena_copy(&b->arena, cols[1].s);
    m->epoch = cols[2].i;
    return SL_OK;
}

static inline sl_rc bad_note_text(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    snprintf(ctx, 32, "%.*s", (int)cols[0].s.n, cols[0].s.p);
    return SL_OK;
}

static inline sl_rc bad_note_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

/* ---- One statement that takes, one that deletes ---- */

#define BAD_ONE(where)                                                                         \
    "WITH c AS MATERIALIZED (SELECT o.id FROM sluice_outbox o WHERE o.leased_until IS "        \
    "NULL " where " ORDER BY o.id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE sluice_outbox o SET " \
    "leased_until = clock_timestamp() + interval '1 min' FROM c WHERE o.id = c.id RETURNING "  \
    "o.id, o.entity_key, o.epoch"
#define BAD_GUARD                                                                              \
    "AND NOT EXISTS (SELECT FROM sluice_outbox s WHERE s.entity_key = o.entity_key AND "       \
    "s.leased_until IS NOT NULL) "
#define BAD_DELETE "DELETE FROM sluice_outbox o WHERE o.id = $1"

static inline sl_rc bad_take_one(const bad_claim *c, worker *w, int64_t extra)
{
    (void)extra;
    bad_stmt s = { 0, "claim", c->claim, 3, { SL_T_INT8, SL_T_TEXT, SL_T_INT8 } };
    return bad_run(w, &s, NULL, 0, bad_note, &w->batch, NULL);
}

static inline sl_rc bad_delete(const bad_claim *c, worker *w)
{
    bad_stmt s = { 1, "settle", c->done, 0, { 0 } };
    sl_val in[] = { sl_int(w->batch.msgs[0].id) };
    return bad_run(w, &s, in, 1, NULL, NULL, NULL);
}

/* (f) Any message, judged as if that kept an order. */
static const bad_claim bad_skip = { "skip-locked alone", BAD_ONE(""), BAD_DELETE, bad_take_one,
                                    bad_delete };
/* (a) A1: the guard reads a snapshot that is older than the row it locks. */
static const bad_claim bad_guard = { "guard in the claim statement", BAD_ONE(BAD_GUARD),
                                     BAD_DELETE, bad_take_one, bad_delete };
/* (g) The same over BAD_UNIQUE. */
static const bad_claim bad_unique = { "unique index only", BAD_ONE(BAD_GUARD), BAD_DELETE,
                                      bad_take_one, bad_delete };
/* (b) A3: the lock is young, the snapshot of the guard is not. */
static const bad_claim bad_lock_and_guard = {
    "lock and guard in one statement",
    BAD_ONE(BAD_GUARD "AND pg_try_advisory_xact_lock(hashtextextended(o.entity_key, 0)) "),
    BAD_DELETE, bad_take_one, bad_delete
};
/* (h) A4: right while the ids of a key are committed in their order, and not else. */
static const bad_claim bad_head = {
    "head only",
    BAD_ONE("AND NOT EXISTS (SELECT FROM sluice_outbox s WHERE s.entity_key = o.entity_key "
            "AND s.id < o.id) "),
    BAD_DELETE, bad_take_one, bad_delete
};

/* ---- A lock on the key, then its head, in one transaction ---- */

static inline sl_rc bad_take_locked(const bad_claim *c, worker *w, int64_t extra)
{
    (void)extra;
    static const bad_stmt pick = {
        2,
        "pick",
        "SELECT o.entity_key FROM sluice_outbox o WHERE o.leased_until IS NULL ORDER BY "
        "random() LIMIT 1",
        1,
        { SL_T_TEXT }
    };
    static const bad_stmt lock = {
        3,
        "lock",
        "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))::int::bigint",
        1,
        { SL_T_INT8 }
    };
    bad_stmt head = { 0, "head", c->claim, 3, { SL_T_INT8, SL_T_TEXT, SL_T_INT8 } };
    char key[32] = "";
    int64_t locked = 0;
    sl_rc rc = bad_run(w, &pick, NULL, 0, bad_note_text, key, NULL);
    if (rc != SL_OK || !*key)
        return rc;
    sl_val in[] = { sl_text(sl_str_of(key)) };
    rc = bad_tx(w, "tx/begin");
    if (rc == SL_OK)
        rc = bad_run(w, &lock, in, 1, bad_note_int, &locked, NULL);
    if (rc == SL_OK && locked)
        rc = bad_run(w, &head, in, 1, bad_note, &w->batch, NULL);
    return rc == SL_OK ? bad_tx(w, "tx/commit") : rc;
}

#define BAD_HEAD(guard)                                                                        \
    "UPDATE sluice_outbox o SET leased_until = clock_timestamp() + interval '1 min' WHERE "    \
    "o.id = (SELECT m.id FROM sluice_outbox m WHERE m.entity_key = $1 AND m.leased_until IS "  \
    "NULL ORDER BY m.id LIMIT 1) " guard "RETURNING o.id, o.entity_key, o.epoch"

/* (c) A2: the lock ends with the claim, while the message is still on its way. */
static const bad_claim bad_lock_then_send = { "transaction lock, then the send", BAD_HEAD(""),
                                              BAD_DELETE, bad_take_locked, bad_delete };
/* Right: the lock serialises the claims of a key, and the guard, in a later statement, sees
 * what the one before has committed. */
static const bad_claim good_lock = {
    "adv2: lock, then guard and head",
    BAD_HEAD("AND NOT EXISTS (SELECT FROM sluice_outbox s WHERE s.entity_key = $1 AND "
             "s.leased_until IS NOT NULL) "),
    BAD_DELETE, bad_take_locked, bad_delete
};

/* ---- A lease for each key ---- */

#define BAD_LEASE(now, until)                                                                  \
    "WITH c AS MATERIALIZED (SELECT l.entity_key FROM sluice_outbox_leases l WHERE l.ends_at " \
    "<= " now " AND EXISTS (SELECT FROM sluice_outbox o WHERE o.entity_key = l.entity_key) "   \
    "ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE sluice_outbox_leases l SET "     \
    "ends_at = " until ", epoch = l.epoch + 1 FROM c WHERE l.entity_key = c.entity_key "       \
    "RETURNING 0::bigint, l.entity_key, l.epoch"
#define BAD_ENDS "clock_timestamp() + $1 * interval '1 microsecond'"
#define BAD_THEIRS "to_timestamp($1 / 1000000.0)"
#define BAD_GIVE_BACK                                                                          \
    "WITH mine AS (UPDATE sluice_outbox_leases l SET ends_at = '-infinity' WHERE "             \
    "l.entity_key = $2 AND l.epoch = $3 RETURNING 1) "                                         \
    "DELETE FROM sluice_outbox o WHERE o.id = $1 AND EXISTS (SELECT FROM mine)"
#define BAD_GIVE_BACK_ANY                                                                      \
    "WITH mine AS (UPDATE sluice_outbox_leases l SET ends_at = '-infinity' WHERE "             \
    "l.entity_key = $2 AND l.epoch >= least(0, $3) RETURNING 1) "                              \
    "DELETE FROM sluice_outbox o WHERE o.id = $1 AND EXISTS (SELECT FROM mine)"

/* The first message of the key that was leased, in a second statement. */
static inline sl_rc bad_take_head(worker *w)
{
    static const bad_stmt head = { 2,
                                   "head",
                                   "SELECT o.id FROM sluice_outbox o WHERE o.entity_key = $1 "
                                   "ORDER BY o.id LIMIT 1",
                                   1,
                                   { SL_T_INT8 } };
    if (w->batch.count == 0)
        return SL_OK;
    sl_msg *m = &w->batch.msgs[0];
    sl_val in[] = { sl_text(m->key) };
    return bad_run(w, &head, in, 1, bad_note_int, &m->id, NULL);
}

/* extra: the time of the lease, in microseconds. */
static inline sl_rc bad_take_lease(const bad_claim *c, worker *w, int64_t extra)
{
    bad_stmt lease = { 0, "lease", c->claim, 3, { SL_T_INT8, SL_T_TEXT, SL_T_INT8 } };
    sl_val in[] = { sl_int(extra) };
    sl_rc rc = bad_run(w, &lease, in, 1, bad_note, &w->batch, NULL);
    if (rc == SL_OK)
        rc = bad_take_head(w);
    if (rc != SL_OK || w->batch.count == 0 || w->batch.msgs[0].id)
        return rc;
    rc = c->settle(c, w); /* another was faster: the key has none any more */
    sl_batch_reset(&w->batch);
    return rc;
}

/* extra: how far the client's clock is ahead. */
static inline sl_rc bad_take_client(const bad_claim *c, worker *w, int64_t extra)
{
    return bad_take_lease(c, w, sl_wall_us() + extra);
}

/* What was lost is counted in w->lost. */
static inline sl_rc bad_give_back(const bad_claim *c, worker *w)
{
    bad_stmt s = { 1, "settle", c->done, 0, { 0 } };
    const sl_msg *m = &w->batch.msgs[0];
    sl_val in[] = { sl_int(m->id), sl_text(m->key), sl_int(m->epoch) };
    int64_t affected;
    sl_rc rc = bad_run(w, &s, in, 3, NULL, NULL, &affected);
    w->lost = m->id != 0 && affected == 0;
    return rc;
}

/* Right: exclusion is data, in a row with an epoch, on the database's clock. */
static const bad_claim good_lease = { "keyrow: a lease for each key",
                                      BAD_LEASE("clock_timestamp()", BAD_ENDS), BAD_GIVE_BACK,
                                      bad_take_lease, bad_give_back };
/* (d) C2: who was paused gives back what another holds. */
static const bad_claim bad_no_epoch = { "no epoch in the settle",
                                        BAD_LEASE("clock_timestamp()", BAD_ENDS),
                                        BAD_GIVE_BACK_ANY, bad_take_lease, bad_give_back };
/* (e) C1: whose clock is ahead judges a lease that lives to be over. */
static const bad_claim bad_client_clock = {
    "lease on the client's clock", BAD_LEASE(BAD_THEIRS, BAD_THEIRS " + interval '30 s'"),
    BAD_GIVE_BACK, bad_take_client, bad_give_back
};

#endif
