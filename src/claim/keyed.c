/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/keyed.h"

#include "core/clock.h"
#include "core/mem.h"

#define DUE_EVERY_NS (100 * SL_MS)
#define FORGET_EVERY_NS (SL_SEC)
/* Looking from the very beginning may take this part of the time. */
enum { FORGET_COST = 10 };
/* A window is a batch, or up to so many times that where others hold much. A turn looks so many times,
 * at twice as many messages each time; more often where a batch is small, since a look tries no more
 * messages than there is room for. */
enum { WINDOW_MIN = 64, WIDEST = 16, LOOKS = 8, TRIES_MIN = 64 };
#define WINDOW_MAX INT64_C(100000)
/* A due key is served so many messages at a time, and so many keys in a turn. */
enum { DUE_KEYS = 16, DUE_PER_KEY = 32 };
/* All locks of one server live in one table of fixed size, and when it is full others fail, too. */
enum { LOCKS_SHARE = 16, LOCKS_MIN = 16 };

/* ---- Rows ---- */

enum { ANOTHERS = 0, OURS = 1, NO_ROOM = 2 };

/* Whose is the key of this message? What it was at first it stays for this turn. */
static int64_t whose(sl_keyed *k, sl_str claim, int64_t state, bool *first)
{
    const int64_t *known = sl_keymap_find(&k->keys, claim);
    *first = !known;
    if (known)
        return *known;
    claim = sl_arena_copy(&k->names, claim);
    *sl_keymap_at(&k->keys, claim) = state;
    if (state != OURS)
        sl_str_list_add(&k->others, claim);
    return state;
}

static sl_rc lock_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    int64_t id = cols[1].i;
    bool first;
    if (k->seen++ == 0 && k->first == 0)
        k->first = id;
    k->full |= cols[2].i == NO_ROOM;
    if (k->full || whose(k, cols[0].s, cols[2].i, &first) != OURS)
        return SL_OK;
    sl_id_list_add(&k->ids, id);
    if (first)
        sl_id_list_add(&k->heads, id);
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
    k->ids.count = k->heads.count = k->due.count = k->empty.count = k->others.count = 0;
    sl_keymap_reset(&k->keys);
    sl_arena_reset(&k->names);
}

static sl_rc begin_by(sl_keyed *k, const char *stmt, const sl_val *in, sl_row_fn row,
                      sl_err *err)
{
    sl_call calls[3];
    size_t n = 0;
    n += sl_tickets_ask(k->tickets, k->db, &k->writers, &calls[0]);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "tx/begin") };
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, stmt), .in = in, .row = row, .ctx = k };
    clear(k);
    sl_rc rc = k->db->ops->run(k->db, calls, n, err);
    sl_tickets_answered(k->tickets, &k->writers, rc == SL_OK);
    return rc;
}

/* What was begun ends at once where nothing could be locked. */
static sl_rc end_idle(sl_keyed *k, bool *locked, sl_err *err)
{
    *locked = k->heads.count > 0 || k->empty.count > 0;
    return *locked ? SL_OK : sl_db_run1(k->db, "tx/commit", NULL, NULL, NULL, NULL, err);
}

static int64_t floor_now(const sl_keyed *k)
{
    return sl_now_ns() >= k->forget_ns ? 0 : k->floor.at;
}

/* Reading from the very beginning took so long: when to do it again. */
static void plan_forgetting(sl_keyed *k, int64_t began_ns)
{
    int64_t now_ns = sl_now_ns();
    int64_t pause_ns = (now_ns - began_ns) * FORGET_COST;
    if (began_ns >= k->forget_ns)
        k->forget_ns = now_ns + (pause_ns > FORGET_EVERY_NS ? pause_ns : FORGET_EVERY_NS);
}

/* One that has the separator in its name is merely tried again. */
static sl_val others_as_text(sl_keyed *k)
{
    sl_buf_reset(&k->text);
    for (size_t i = 0; i < k->others.count; i++) {
        sl_buf_put(&k->text, k->others.v[i].p, k->others.v[i].n);
        sl_buf_put(&k->text, "\x01", 1);
    }
    return sl_text((sl_str){ sl_buf_text(&k->text), k->text.n });
}

/* The first look of a turn. */
static sl_rc look(sl_keyed *k, const sl_val *in, sl_err *err)
{
    int64_t began_ns = sl_now_ns();
    int64_t ripe = sl_tickets_ripe(k->tickets);
    k->first = 0;
    sl_rc rc = begin_by(k, "keyed/lock", in, lock_row, err);
    if (rc != SL_OK)
        return rc;
    plan_forgetting(k, began_ns);
    sl_floor_seen(&k->floor, ripe, k->first);
    if (k->first)
        sl_floor_propose(&k->floor, k->tickets, k->first);
    return SL_OK;
}

/* Once more, at more messages: what is ours is found again, and what is not stays so. */
static sl_rc look_again(sl_keyed *k, const sl_val *in, sl_err *err)
{
    k->ids.count = k->heads.count = 0;
    sl_keymap_reset(&k->keys);
    for (size_t i = 0; i < k->others.count; i++)
        *sl_keymap_at(&k->keys, k->others.v[i]) = ANOTHERS;
    return sl_db_run1(k->db, "keyed/lock", in, lock_row, k, NULL, err);
}

/* Where others hold most keys of what was seen, look further. */
static sl_rc lock_some(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    int64_t most = max < k->keys_max ? max : k->keys_max;
    int64_t window = (max > WINDOW_MIN ? max : WINDOW_MIN) * k->wide;
    int64_t from = floor_now(k);
    int64_t looks = 0;
    bool more = true;
    sl_rc rc = SL_OK;
    clear(k);
    while (rc == SL_OK && more && looks < LOOKS + TRIES_MIN / most) {
        sl_val in[] = { sl_int(from),      sl_int(window),
                        sl_int(most),      sl_int(k->conf.batch_bytes),
                        sl_int(k->leases), others_as_text(k) };
        k->seen = 0;
        k->full = false;
        rc = looks++ == 0 ? look(k, in, err) : look_again(k, in, err);
        more = (k->full || k->seen == window) && (int64_t)k->ids.count <= most / 2;
        window = 2 * window < WINDOW_MAX ? 2 * window : WINDOW_MAX;
    }
    if (looks > 1 && k->wide < WIDEST)
        k->wide *= 2;
    else if (looks == 1 && k->wide > 1)
        k->wide -= 1;
    return rc == SL_OK ? end_idle(k, locked, err) : rc;
}

sl_rc sl_keyed_lock(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    int64_t now_ns = sl_now_ns();
    *locked = false;
    clear(k);
    if (max <= 0)
        return SL_OK;
    if (now_ns >= k->due_ns && !k->was_due) { /* in turns with the others */
        sl_val keys = sl_int(max < DUE_KEYS ? max : DUE_KEYS);
        sl_rc rc = begin_by(k, "keyed/due_lock", &keys, due_row, err);
        if (rc == SL_OK)
            rc = end_idle(k, locked, err);
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

sl_rc sl_keyed_peek(const sl_keyed *k, const char *stmt, bool *any, sl_err *err)
{
    return sl_ordered_peek(k->db, stmt, floor_now(k), any, err);
}

/* ---- Opening and closing ---- */

/* Runs everything once on nothing. */
static sl_rc rehearse(sl_keyed *k, sl_err *err)
{
    int64_t no_id;
    sl_str no_name;
    sl_val one[] = { sl_int(0) };
    sl_val none[] = {
        sl_int(0), sl_int(0), sl_int(0), sl_int(0), sl_int(1), sl_text(SL_STR(""))
    };
    sl_val ids[] = { sl_ints(&no_id, 0) };
    sl_val names[] = { sl_texts(&no_name, 0), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(k->db, "keyed/room"), .row = room_row, .ctx = k },
        { .stmt = sl_db_stmt(k->db, "floor/writers") },
        { .stmt = sl_db_stmt(k->db, "tx/begin") },
        { .stmt = sl_db_stmt(k->db, "epoch/next") },
        { .stmt = sl_db_stmt(k->db, "keyed/due_lock"), .in = one },
        { .stmt = sl_db_stmt(k->db, "keyed/lock"), .in = none },
        { .stmt = sl_db_stmt(k->db, "keyed/read"), .in = ids, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(k->db, "keyed/due_read"), .in = names, .row = sl_ordered_due_row },
        { .stmt = sl_db_stmt(k->db, "keyed/sweep"), .in = names },
        { .stmt = sl_db_stmt(k->db, "tx/commit") },
    };
    return k->db->ops->run(k->db, calls, sizeof calls / sizeof calls[0], err);
}

sl_rc sl_keyed_open(sl_keyed *k, sl_db *db, const sl_claim_conf *conf, bool leases, sl_err *err)
{
    *k = (sl_keyed){
        .db = db, .conf = *conf, .leases = leases, .tickets = sl_tickets_new(), .wide = 1
    };
    sl_rc rc = rehearse(k, err);
    return rc == SL_OK ? sl_ordered_rehearse(db, err) : rc;
}

void sl_keyed_fini(sl_keyed *k)
{
    sl_ordered_fini(&k->found);
    sl_keymap_fini(&k->keys);
    sl_arena_fini(&k->names);
    sl_tickets_free(k->tickets);
    sl_writers_fini(&k->writers);
    free(k->ids.v);
    free(k->heads.v);
    free(k->due.v);
    free(k->empty.v);
    free(k->others.v);
    sl_buf_fini(&k->text);
}
