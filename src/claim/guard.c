/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: rows of a key are claimed only while none of its siblings is. Each turn has a row with its keys,
 * an epoch and an end, which keeps the others away; the lock on a key only serialises the claim. No
 * transaction is open while a message is sent, and after a crash the keys come back when the lease
 * ends: who wants one then takes it out of that row. Renewed after a third of the lease.
 */
#include "claim/keyed.h"
#include "core/clock.h"
#include "core/mem.h"

#include <assert.h>

typedef struct guard_claim {
    sl_claim base;
    sl_keyed keyed;
    int64_t holder;
    int64_t epoch; /* of the turn */
    bool pieces;   /* a part of the batch was settled before */
    bool adopted;  /* the batch was taken over another connection */
    bool *there;   /* and which of its messages are still in the table; or NULL */
    sl_str_list going;
    sl_str_list ours; /* the keys that were leased, among those that were locked */
    int64_t counted;  /* so many the last statement found */
    int64_t asked_ns; /* just before the request that gained or renewed the leases */
} guard_claim;

extern const sl_claim_ops sl_claim_guard;

static guard_claim *guard_of(sl_claim *c)
{
    return (guard_claim *)c;
}

static bool holds_any(const sl_batch *b)
{
    return sl_batch_count_of(b, SL_HELD) > 0;
}

/* How the keys of this turn are fenced. */
static sl_ordered_how *how_of(const guard_claim *c, sl_fencing *f)
{
    f->in[0] = sl_texts(c->ours.v, c->ours.count);
    f->in[1] = sl_int(c->epoch);
    f->fence = (sl_call){ .stmt = sl_db_stmt(c->keyed.db, "guard/fence"), .in = f->in };
    f->how = (sl_ordered_how){
        .sent = sl_keyed_sent(&c->keyed, false),
        .keep = c->keyed.conf.keep ? "guard/keep" : NULL,
        .fence = &f->fence,
        .fenced = (int64_t)c->ours.count,
        .retry_base_ns = c->keyed.conf.retry_base_ns,
        .retry_max_ns = c->keyed.conf.retry_max_ns,
    };
    return &f->how;
}

/* With calls that let go of keys. */
static sl_rc settle(guard_claim *c, const sl_call *done, size_t dones, size_t *lost,
                    sl_err *err)
{
    sl_fencing f;
    sl_ordered_how *how = how_of(c, &f);
    how->done = done;
    how->dones = dones;
    return sl_ordered_settle(c->keyed.db, &c->keyed.found, how, lost, err);
}

/* The turn ends. */
static sl_rc settle_all(guard_claim *c, size_t *lost, sl_err *err)
{
    sl_val epoch = sl_int(c->epoch);
    sl_call done = { .stmt = sl_db_stmt(c->keyed.db, "guard/done"), .in = &epoch };
    return settle(c, &done, c->ours.count ? 1 : 0, lost, err);
}

/* The turn goes on without the keys that are going. */
static sl_rc settle_part(guard_claim *c, size_t *lost, sl_err *err)
{
    sl_db *db = c->keyed.db;
    sl_val in[] = { sl_texts(c->going.v, c->going.count), sl_int(c->epoch) };
    sl_call done[] = { { .stmt = sl_db_stmt(db, "guard/part"), .in = in },
                       { .stmt = sl_db_stmt(db, "guard/tidy"), .in = &in[1] } };
    return settle(c, done, c->going.count ? 2 : 0, lost, err);
}

static sl_str name_of(guard_claim *c, const sl_msg *m)
{
    char id[24];
    if (!m->key.p) {
        snprintf(id, sizeof id, "i%lld", (long long)m->id);
        return sl_arena_copy(&c->keyed.names, sl_str_of(id));
    }
    char *name = sl_arena_alloc(&c->keyed.names, m->key.n + 1);
    name[0] = 'k';
    memcpy(name + 1, m->key.p, m->key.n);
    return (sl_str){ name, m->key.n + 1 };
}

/* ---- Taking ---- */

/* For those that settle one by one: with which of its messages a key may go. */
static void mark_last(sl_batch *b)
{
    sl_keymap seen = { 0 };
    for (size_t i = b->count; i-- > 0;)
        b->msgs[i].last = !b->msgs[i].key.p || (*sl_keymap_at(&seen, b->msgs[i].key))++ == 0;
    sl_keymap_fini(&seen);
}

static sl_rc epoch_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    guard_claim *c = ctx;
    c->epoch = c->keyed.turn = cols[0].i;
    return SL_OK;
}

static sl_rc count_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    ((guard_claim *)ctx)->counted += cols[0].i;
    return SL_OK;
}

static sl_rc ours_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    guard_claim *c = ctx;
    sl_str_list_add(&c->ours, sl_arena_copy(&c->keyed.names, cols[0].s));
    return SL_OK;
}

/* In `going`: those to be leased, and those to be swept, which are nobody's either. */
static void note_locked(guard_claim *c)
{
    for (size_t i = 0; i < c->keyed.claims.count; i++)
        sl_str_list_add(&c->going, c->keyed.claims.v[i]);
    for (size_t i = 0; i < c->keyed.empty.count; i++)
        sl_str_list_add(&c->going, c->keyed.empty.v[i]);
}

/* Leases what is locked, reads its messages, and ends the transaction: one round trip. */
static sl_rc lease_and_read(guard_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    sl_db *db = c->keyed.db;
    const sl_str_list *claims = &c->keyed.claims;
    sl_val read_in[3][3];
    sl_val in[] = { sl_texts(claims->v, claims->count), sl_int(sl_keyed_turns(&c->keyed)),
                    sl_int(c->keyed.conf.lease_ns / 1000), sl_int(c->holder),
                    sl_text(sl_str_of(c->keyed.conf.worker)) };
    sl_call calls[9];
    size_t n = 0;
    c->going.count = 0;
    if (c->keyed.over)
        note_locked(c);
    sl_val over_in[] = { sl_texts(c->going.v, c->going.count), in[1] };
    if (c->going.count) {
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "guard/takeover"), .in = over_in };
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "guard/tidy"), .in = &in[1] };
    }
    if (claims->count) {
        calls[n++] =
            (sl_call){ .stmt = sl_db_stmt(db, "guard/draw"), .row = epoch_row, .ctx = c };
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "guard/lease"), .in = in };
        calls[n++] =
            (sl_call){ .stmt = sl_db_stmt(db, "guard/leased"), .row = count_row, .ctx = c };
    }
    n += sl_keyed_read(&c->keyed, b, max, calls + n, read_in);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "tx/commit") };
    c->counted = 0;
    return db->ops->run(db, calls, n, err);
}

static void keep_all(guard_claim *c)
{
    c->ours.count = 0;
    for (size_t i = 0; i < c->keyed.claims.count; i++)
        sl_str_list_add(&c->ours, c->keyed.claims.v[i]);
}

/* A key that another leased between our look and our lock is not ours: its messages are left, and what
 * waits is found again. It hardly ever happens. */
static sl_rc leave_foreign(guard_claim *c, sl_batch *b, sl_err *err)
{
    sl_keymap ours = { 0 };
    size_t kept = 0;
    sl_val in[] = { sl_texts(c->keyed.claims.v, c->keyed.claims.count), sl_int(c->epoch) };
    c->ours.count = 0;
    sl_rc rc = sl_db_run1(c->keyed.db, "guard/fence", in, ours_row, c, NULL, err);
    for (size_t i = 0; i < c->ours.count; i++)
        *sl_keymap_at(&ours, c->ours.v[i]) = 1;
    for (size_t i = 0; i < b->count; i++)
        if (sl_keymap_find(&ours, name_of(c, &b->msgs[i])))
            b->msgs[kept++] = b->msgs[i];
    b->count = kept;
    sl_keymap_fini(&ours);
    sl_ordered_begin(&c->keyed.found, b, 0, 0);
    return rc;
}

static sl_rc guard_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    guard_claim *c = guard_of(base);
    size_t lost;
    bool locked;
    sl_rc rc = sl_keyed_expire(&c->keyed, err);
    if (rc != SL_OK)
        return rc;
    c->ours.count = 0;
    c->adopted = c->pieces = false;
    c->there = NULL;
    rc = sl_keyed_lock(&c->keyed, max, &locked, err);
    if (rc != SL_OK || !locked)
        return rc;
    c->asked_ns = sl_now_ns();
    rc = lease_and_read(c, b, max, err);
    if (rc != SL_OK)
        return rc;
    keep_all(c);
    if ((size_t)c->counted < c->ours.count)
        rc = leave_foreign(c, b, err);
    sl_batch_sort(b);
    mark_last(b);
    if (rc == SL_OK && b->count == 0) /* what only waits is put aside */
        rc = settle_all(c, &lost, err);
    return rc;
}

/* ---- Holding and settling ---- */

static int64_t guard_trusted(const sl_claim *base)
{
    const guard_claim *c = (const guard_claim *)base;
    return sl_claim_trusted_ns(&c->keyed.conf, c->asked_ns);
}

static sl_rc guard_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    (void)b;
    guard_claim *c = guard_of(base);
    int64_t asked_ns = sl_now_ns();
    if (asked_ns - c->asked_ns < c->keyed.conf.lease_ns / 3)
        return SL_OK;
    sl_val in[] = { sl_int(c->epoch), sl_int(c->keyed.conf.lease_ns / 1000) };
    c->counted = 0;
    sl_rc rc = sl_db_run1(c->keyed.db, "guard/renew", in, count_row, c, NULL, err);
    if (rc != SL_OK)
        return rc;
    if ((size_t)c->counted < c->ours.count)
        return sl_fail(err, SL_AGAIN,
                       "lease lost: %zu of %zu keys were taken over by someone else",
                       c->ours.count - (size_t)c->counted, c->ours.count);
    c->asked_ns = asked_ns;
    return SL_OK;
}

/* All messages of a turn have its epoch. */
static sl_rc guard_renew(sl_db *db, const int64_t *ids, const int64_t *epochs, size_t n,
                         int64_t lease_ns, sl_err *err)
{
    if (n == 0)
        return SL_OK;
    sl_val in[] = { sl_int(epochs[0]), sl_int(lease_ns / 1000) };
    sl_val lost_in[] = { sl_ints(ids, n), in[0] };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "guard/renew"), .in = in },
                        { .stmt = sl_db_stmt(db, "guard/lost"), .in = lost_in } };
    sl_rc rc = db->ops->run(db, calls, 2, err);
    if (rc != SL_OK || calls[1].affected == 0)
        return rc;
    return sl_fail(
        err, SL_AGAIN,
        "lease lost: the keys of %lld of %zu messages were taken over by someone else",
        (long long)calls[1].affected, n);
}

/* The keys of what is settled now. */
static void note_names(guard_claim *c, const sl_batch *b)
{
    sl_keymap seen = { 0 };
    c->ours.count = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->msgs[i].verdict == SL_HELD || (c->there && !c->there[i]))
            continue;
        sl_str name = name_of(c, &b->msgs[i]);
        if ((*sl_keymap_at(&seen, name))++ == 0)
            sl_str_list_add(&c->ours, name);
    }
    sl_keymap_fini(&seen);
}

/* What is to be written to messages that are gone. Deletions are counted where they are made. */
static size_t missing(const guard_claim *c, const sl_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; c->there && i < b->count; i++)
        n += !c->there[i] && (b->msgs[i].verdict == SL_RETRY || b->msgs[i].verdict == SL_DEAD);
    return n;
}

/* A batch that is settled piece by piece lets go of a key with its last message. */
static sl_rc guard_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    guard_claim *c = guard_of(base);
    sl_keyed_ends(&c->keyed, b);
    c->keyed.found.batch = b;
    if (!c->adopted && !c->pieces && !holds_any(b))
        return settle_all(c, lost, err);
    c->pieces = true;
    c->going.count = 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->msgs[i].last && b->msgs[i].verdict != SL_HELD)
            sl_str_list_add(&c->going, name_of(c, &b->msgs[i]));
    if (!sl_ordered_found(
            &c->keyed.found)) /* else what waits is written with it: all keys count */
        note_names(c, b);
    sl_rc rc = settle_part(c, lost, err);
    if (*lost == 0) /* a lost claim counts all that was to be written */
        *lost = missing(c, b);
    return rc;
}

/* ---- A batch of another connection ---- */

static sl_rc key_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    guard_claim *c = ctx;
    sl_batch *b = c->keyed.found.batch;
    for (size_t i = 0; i < b->count; i++) {
        if (b->msgs[i].id != cols[0].i)
            continue;
        c->there[i] = true;
        if (!cols[1].null)
            b->msgs[i].key = sl_arena_copy(&b->arena, cols[1].s);
    }
    return SL_OK;
}

static sl_rc guard_adopt(sl_claim *base, sl_batch *b, sl_err *err)
{
    guard_claim *c = guard_of(base);
    int64_t *ids = sl_arena_alloc(&b->arena, (b->count + 1) * sizeof *ids);
    for (size_t i = 0; i < b->count; i++) {
        assert(b->msgs[i].epoch == b->msgs[0].epoch);
        ids[i] = b->msgs[i].id;
    }
    sl_val in[] = { sl_ints(ids, b->count) };
    c->adopted = true;
    c->epoch = b->count ? b->msgs[0].epoch : 0;
    c->there = sl_arena_alloc(&b->arena, b->count + 1);
    memset(c->there, 0, b->count + 1);
    sl_arena_reset(&c->keyed.names);
    sl_ordered_begin(&c->keyed.found, b, 0, 0);
    return sl_db_run1(c->keyed.db, "guard/keys", in, key_row, c, NULL, err);
}

/* ---- Opening and closing ---- */

static sl_rc guard_count(sl_claim *base, sl_batch *b, bool *again, sl_err *err)
{
    (void)again;
    return sl_ordered_count(guard_of(base)->keyed.db, b, err);
}

static sl_rc guard_consume(sl_claim *base, sl_batch *b, const sl_consume_stamp *stamp,
                           sl_err *err)
{
    guard_claim *c = guard_of(base);
    sl_fencing f;
    return sl_ordered_consume(c->keyed.db, how_of(c, &f), b, c->keyed.conf.worker, stamp, err);
}

static sl_rc guard_peek(sl_claim *base, bool *any, sl_err *err)
{
    return sl_keyed_peek(&guard_of(base)->keyed, "guard/peek", any, err);
}

static void guard_close(sl_claim *base)
{
    guard_claim *c = guard_of(base);
    sl_keyed_fini(&c->keyed);
    free(c->ours.v);
    free(c->going.v);
    free(c);
}

/* Runs its own statements once on nothing. */
static sl_rc rehearse(sl_db *db, sl_err *err)
{
    sl_str none;
    sl_val claims = sl_texts(&none, 0);
    int64_t no_id;
    sl_val lease_in[] = { claims, sl_int(0), sl_int(0), sl_int(0), sl_text(SL_STR("")) };
    sl_val turn_in[] = { sl_int(0), sl_int(0) };
    sl_val no_turn = sl_int(INT64_MAX);
    sl_val sent_in[] = { sl_ints(&no_id, 0), sl_ints(&no_id, 0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "guard/draw") },
        { .stmt = sl_db_stmt(db, "guard/takeover"), .in = lease_in },
        { .stmt = sl_db_stmt(db, "guard/lease"), .in = lease_in },
        { .stmt = sl_db_stmt(db, "guard/leased") },
        { .stmt = sl_db_stmt(db, "guard/renew"), .in = turn_in },
        { .stmt = sl_db_stmt(db, "guard/fence"), .in = lease_in },
        { .stmt = sl_db_stmt(db, "guard/sent"), .in = sent_in },
        { .stmt = sl_db_stmt(db, "guard/part"), .in = lease_in },
        { .stmt = sl_db_stmt(db, "guard/tidy"), .in = turn_in },
        { .stmt = sl_db_stmt(db, "guard/expire"), .in = &no_turn },
        { .stmt = sl_db_stmt(db, "guard/done"), .in = turn_in },
        { .stmt = sl_db_stmt(db, "guard/keys"), .in = sent_in },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    if (rc == SL_OK && sl_db_has(db, "guard/sent_stretch"))
        rc = sl_ordered_rehearse_sent(db, "guard/sent_stretch", err);
    return rc;
}

static sl_rc guard_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    guard_claim *c = sl_alloc(sizeof *c);
    c->base.ops = &sl_claim_guard;
    c->holder = (int64_t)(sl_random() >> 2) | 1;
    sl_rc rc = sl_keyed_open(&c->keyed, db, conf, true, err);
    if (rc == SL_OK)
        rc = rehearse(db, err);
    if (rc == SL_OK && conf->keep)
        rc = sl_ordered_rehearse_keep(db, "guard/keep", conf->consumes, err);
    if (rc == SL_OK)
        *out = &c->base;
    else
        guard_close(&c->base);
    return rc;
}

const sl_claim_ops sl_claim_guard = {
    .name = "guard",
    .ordered = true,
    .open = guard_open,
    .take = guard_take,
    .hold = guard_hold,
    .trusted_ns = guard_trusted,
    .settle = guard_settle,
    .renew = guard_renew,
    .adopt = guard_adopt,
    .peek = guard_peek,
    .count = guard_count,
    .consume = guard_consume,
    .close = guard_close,
};
