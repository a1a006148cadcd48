/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/keyed.h"

#include "core/clock.h"
#include "core/mem.h"

#define DUE_EVERY_NS (100 * SL_MS)
#define FORGET_EVERY_NS (SL_SEC)
/* Looking from the very beginning may take this part of the time. */
enum { FORGET_COST = 10 };
/* A window is twice a batch, and up to so many times that. */
enum { WINDOW_MIN = 64, WIDEST = 32 };
/* A due key is served so many messages at a time, and so many keys in a turn. */
enum { DUE_KEYS = 16, DUE_PER_KEY = 32 };
/* All locks of one server live in one table of fixed size, and when it is full others fail, too. */
enum { LOCKS_SHARE = 16, LOCKS_MIN = 16 };

/* ---- Rows ---- */

enum { KIND_MESSAGE, KIND_WINDOW };

static sl_rc lock_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    if (cols[0].i == KIND_WINDOW) {
        k->first = cols[1].i;
        k->seen = cols[3].i;
        return SL_OK;
    }
    if (k->ids.count >= k->ids_max)
        return SL_OK; /* the rest of the last key is for the next turn */
    sl_id_list_add(&k->ids, cols[1].i);
    if (cols[2].i)
        sl_id_list_add(&k->heads, cols[1].i);
    return SL_OK;
}

static sl_rc due_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    sl_str name = sl_arena_copy(&k->names, cols[0].s);
    sl_str_list_add(cols[1].null ? &k->empty : &k->due, name);
    if (!cols[1].null)
        sl_id_list_add(&k->heads, cols[1].i);
    return SL_OK;
}

static sl_rc room_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    int64_t share = cols[0].i / LOCKS_SHARE;
    ((sl_keyed *)ctx)->keys_max = share > LOCKS_MIN ? share : LOCKS_MIN;
    return SL_OK;
}

/* ---- Locking ---- */

static void clear(sl_keyed *k)
{
    k->ids.count = k->heads.count = k->due.count = k->empty.count = 0;
    sl_arena_reset(&k->names);
}

static sl_rc lock_by(sl_keyed *k, const char *stmt, const sl_val *in, sl_row_fn row,
                     bool *locked, sl_err *err)
{
    sl_call calls[3];
    size_t n = 0;
    n += sl_tickets_ask(k->tickets, k->db, &k->writers, &calls[0]);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "tx/begin") };
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, stmt), .in = in, .row = row, .ctx = k };
    clear(k);
    sl_rc rc = k->db->ops->run(k->db, calls, n, err);
    sl_tickets_answered(k->tickets, &k->writers, rc == SL_OK);
    *locked = rc == SL_OK && (k->heads.count > 0 || k->empty.count > 0);
    if (rc == SL_OK && !*locked)
        rc = sl_db_run1(k->db, "tx/commit", NULL, NULL, NULL, NULL, err);
    return rc;
}

/* Reading from the very beginning took so long: when to do it again. */
static void plan_forgetting(sl_keyed *k, int64_t began_ns)
{
    int64_t now_ns = sl_now_ns();
    int64_t pause_ns = (now_ns - began_ns) * FORGET_COST;
    if (began_ns >= k->forget_ns)
        k->forget_ns = now_ns + (pause_ns > FORGET_EVERY_NS ? pause_ns : FORGET_EVERY_NS);
}

static sl_rc lock_window(sl_keyed *k, int64_t max, int64_t window, bool *locked, sl_err *err)
{
    int64_t began_ns = sl_now_ns();
    sl_val in[] = { sl_int(began_ns >= k->forget_ns ? 0 : k->floor.at), sl_int(window),
                    sl_int(max), sl_int(k->conf.batch_bytes), sl_int(k->keys_max) };
    k->ids_max = (size_t)max;
    int64_t ripe = sl_tickets_ripe(k->tickets);
    sl_rc rc = lock_by(k, "keyed/lock", in, lock_row, locked, err);
    if (rc != SL_OK)
        return rc;
    plan_forgetting(k, began_ns);
    sl_floor_seen(&k->floor, ripe, k->first);
    if (k->first)
        sl_floor_propose(&k->floor, k->tickets, k->first);
    return SL_OK;
}

/* Where others hold the keys of all that was seen, look further; and at less again by and by. */
static sl_rc lock_some(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    int64_t least = 2 * max > WINDOW_MIN ? 2 * max : WINDOW_MIN;
    sl_rc rc;
    k->wide = k->wide > 1 ? k->wide - 1 : 1;
    for (;; k->wide *= 2) {
        int64_t window = least * k->wide;
        rc = lock_window(k, max, window, locked, err);
        if (rc != SL_OK || *locked || k->seen < window || k->wide >= WIDEST)
            return rc;
    }
}

sl_rc sl_keyed_lock(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    int64_t now_ns = sl_now_ns();
    *locked = false;
    clear(k);
    if (max <= 0)
        return SL_OK;
    if (now_ns >= k->due_ns && !k->was_due) { /* in turns with the others */
        sl_rc rc =
            lock_by(k, "keyed/due_lock", (sl_val[]){ sl_int(max < DUE_KEYS ? max : DUE_KEYS) },
                    due_row, locked, err);
        k->was_due = *locked;
        if (rc != SL_OK || *locked)
            return rc;
        k->due_ns = now_ns + DUE_EVERY_NS;
    }
    k->was_due = false;
    return lock_some(k, max, locked, err);
}

/* ---- Reading ---- */

static int64_t per_key(int64_t max)
{
    int64_t n = max / DUE_KEYS;
    return n < 1 ? 1 : n < DUE_PER_KEY ? n : DUE_PER_KEY;
}

size_t sl_keyed_read(sl_keyed *k, sl_batch *b, int64_t max, sl_call calls[2], sl_val in[2][2])
{
    sl_ordered_begin(&k->found, b, max, k->conf.batch_bytes);
    if (k->ids.count) {
        in[0][0] = sl_ints(k->ids.v, k->ids.count);
        in[0][1] = sl_int(k->conf.batch_bytes);
        calls[0] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/read"),
                              .in = in[0],
                              .row = sl_ordered_row,
                              .ctx = &k->found };
        return 1;
    }
    in[0][0] = sl_texts(k->due.v, k->due.count);
    in[0][1] = sl_int(per_key(max));
    in[1][0] = sl_texts(k->empty.v, k->empty.count);
    calls[0] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/due_read"),
                          .in = in[0],
                          .row = sl_ordered_due_row,
                          .ctx = &k->found };
    calls[1] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/sweep"), .in = in[1] };
    return k->empty.count ? 2 : 1;
}

/* ---- Opening and closing ---- */

/* Runs everything once on nothing. */
static sl_rc rehearse(sl_keyed *k, sl_err *err)
{
    int64_t no_id;
    sl_str no_name;
    sl_val one[] = { sl_int(0) };
    sl_val five[] = { sl_int(0), sl_int(0), sl_int(0), sl_int(0), sl_int(0) };
    sl_val ids[] = { sl_ints(&no_id, 0), sl_int(0) };
    sl_val names[] = { sl_texts(&no_name, 0), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(k->db, "keyed/room"), .row = room_row, .ctx = k },
        { .stmt = sl_db_stmt(k->db, "floor/writers") },
        { .stmt = sl_db_stmt(k->db, "tx/begin") },
        { .stmt = sl_db_stmt(k->db, "epoch/next") },
        { .stmt = sl_db_stmt(k->db, "keyed/due_lock"), .in = one },
        { .stmt = sl_db_stmt(k->db, "keyed/lock"), .in = five },
        { .stmt = sl_db_stmt(k->db, "keyed/read"), .in = ids, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(k->db, "keyed/due_read"), .in = names, .row = sl_ordered_due_row },
        { .stmt = sl_db_stmt(k->db, "keyed/sweep"), .in = names },
        { .stmt = sl_db_stmt(k->db, "tx/commit") },
    };
    return k->db->ops->run(k->db, calls, sizeof calls / sizeof calls[0], err);
}

sl_rc sl_keyed_open(sl_keyed *k, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    *k = (sl_keyed){ .db = db, .conf = *conf, .tickets = sl_tickets_new() };
    sl_rc rc = rehearse(k, err);
    return rc == SL_OK ? sl_ordered_rehearse(db, err) : rc;
}

void sl_keyed_fini(sl_keyed *k)
{
    sl_ordered_fini(&k->found);
    sl_arena_fini(&k->names);
    sl_tickets_free(k->tickets);
    sl_writers_fini(&k->writers);
    free(k->ids.v);
    free(k->heads.v);
    free(k->due.v);
    free(k->empty.v);
}
