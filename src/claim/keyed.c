/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/keyed.h"

#include "claim/consume.h"
#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"

#define DUE_EVERY_NS (100 * SL_MS)
#define FORGET_EVERY_NS (SL_SEC)
#define EXPIRE_EVERY_NS (60 * SL_SEC)
/* Looking from the very beginning may take this part of the time. */
enum { FORGET_COST = 10 };
/* A window is a batch, or two where there are other workers, and up to so many times that where those
 * hold much or where the keys are few. A turn looks so many times, at twice as many messages each time. */
enum { WINDOW_MIN = 64, WIDEST = 16, LOOKS = 8 };
#define WINDOW_MAX INT64_C(100000)
/* A due key is served so many messages at a time, and so many keys in a turn. */
enum { DUE_KEYS = 16, DUE_PER_KEY = 32 };
/* All locks of one server live in one table of fixed size, and when it is full others fail, too. */
enum { LOCKS_SHARE = 16, LOCKS_MIN = 16 };

/* ---- Rows ---- */

enum { LEASED, FREE, OVER };

static sl_rc look_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    sl_window_add(&k->window, cols[0].s, cols[1].i, cols[2].i, cols[3].i != LEASED);
    k->over |= cols[3].i == OVER;
    k->oldest = cols[4].i;
    return SL_OK;
}

static sl_rc lock_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_window_got(&((sl_keyed *)ctx)->window, cols[0].s);
    return SL_OK;
}

static sl_rc due_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    sl_str name = sl_arena_copy(&k->names, cols[0].s);
    sl_str_list_add(cols[1].null ? &k->empty : &k->claims, name);
    k->over = true; /* it was not asked */
    return SL_OK;
}

/* Of one key there may be several, and it may be a blocked one that is due, too. */
static sl_rc delayed_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keyed *k = ctx;
    sl_id_list_add(&k->delayed, cols[1].i);
    k->over = true; /* it was not asked */
    for (size_t i = 0; i < k->claims.count; i++)
        if (sl_str_eq(k->claims.v[i], cols[0].s))
            return SL_OK;
    sl_str_list_add(&k->claims, sl_arena_copy(&k->names, cols[0].s));
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
    k->ids.count = k->delayed.count = k->claims.count = k->empty.count = 0;
    k->over = k->together = false;
    sl_window_reset(&k->window);
    sl_arena_reset(&k->names);
}

static sl_rc begin_by(sl_keyed *k, const sl_call *by, size_t count, sl_err *err)
{
    sl_call calls[4];
    size_t n = 0;
    n += sl_tickets_ask(k->tickets, k->db, &k->writers, &calls[0]);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "tx/begin") };
    for (size_t i = 0; i < count; i++)
        calls[n++] = by[i];
    clear(k);
    sl_rc rc = k->db->ops->run(k->db, calls, n, err);
    sl_tickets_answered(k->tickets, &k->writers, rc == SL_OK);
    return rc;
}

/* What was begun ends at once where nothing could be locked. */
static sl_rc end_idle(sl_keyed *k, bool *locked, sl_err *err)
{
    *locked = k->claims.count > 0 || k->empty.count > 0;
    return *locked ? SL_OK : sl_db_run1(k->db, "tx/commit", NULL, NULL, NULL, NULL, err);
}

static int64_t floor_now(const sl_keyed *k)
{
    return sl_now_ns() >= k->forget_ns ? 0 : k->floor.at;
}

int64_t sl_keyed_turns(const sl_keyed *k)
{
    return k->leases ? k->turns.at : INT64_MAX;
}

/* Reading from the very beginning took so long: when to do it again. */
static void plan_forgetting(sl_keyed *k, int64_t began_ns)
{
    int64_t now_ns = sl_now_ns();
    int64_t pause_ns = (now_ns - began_ns) * FORGET_COST;
    if (began_ns >= k->forget_ns)
        k->forget_ns = now_ns + (pause_ns > FORGET_EVERY_NS ? pause_ns : FORGET_EVERY_NS);
}

/* The first look of a turn. */
static sl_rc begin_look(sl_keyed *k, const sl_val *in, sl_err *err)
{
    int64_t began_ns = sl_now_ns();
    int64_t ripe = sl_tickets_ripe(k->tickets);
    sl_call look = {
        .stmt = sl_db_stmt(k->db, "keyed/look"), .in = in, .row = look_row, .ctx = k
    };
    sl_rc rc = begin_by(k, &look, 1, err);
    if (rc != SL_OK)
        return rc;
    plan_forgetting(k, began_ns);
    int64_t first = sl_window_first(&k->window);
    sl_floor_seen(&k->floor, ripe, first);
    if (first)
        sl_floor_propose(&k->floor, k->tickets, first);
    if (first && k->leases) {
        sl_floor_seen(&k->turns, ripe, k->oldest);
        sl_floor_propose(&k->turns, k->tickets, k->oldest ? k->oldest : k->turn + 1);
    }
    return SL_OK;
}

/* Keys that another has turn out to be so; then the next ones are tried. */
static sl_rc lock_keys(sl_keyed *k, const sl_room *room, sl_err *err)
{
    sl_rc rc = SL_OK;
    while (rc == SL_OK && k->window.ours <= room->messages / 2 &&
           sl_window_choose(&k->window, room, &k->chosen)) {
        sl_val in = sl_texts(k->chosen.v, k->chosen.count);
        rc = sl_db_run1(k->db, "keyed/lock", &in, lock_row, k, NULL, err);
    }
    return rc;
}

/* All workers on the table, as far as is known; others may have other numbers of them. */
static int64_t workers(const sl_keyed *k)
{
    return k->conf.workers * (k->conf.lanes ? sl_lanes_peers(k->conf.lanes) : 1);
}

/* Few keys with many messages each: in a wider window fewer of them fill a batch, and more are left to
 * the others. */
static bool took_too_many(const sl_keyed *k)
{
    const sl_window *w = &k->window;
    return workers(k) > 1 && w->count >= 2 * w->nkeys &&
           w->ours_keys * workers(k) > (int64_t)w->nkeys;
}

/* Where others hold most keys of what was seen, look at more. What is ours is found again. */
static sl_rc lock_some(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    sl_room room = { max, k->conf.batch_bytes, k->keys_max };
    int64_t window = (max > WINDOW_MIN ? max : WINDOW_MIN) * (workers(k) > 1 ? 2 : 1) * k->wide;
    int64_t from = floor_now(k);
    int looks = 0;
    bool more = true;
    sl_rc rc = SL_OK;
    for (; rc == SL_OK && more && looks < LOOKS; looks++) {
        sl_val in[] = { sl_int(from), sl_int(window), sl_int(sl_keyed_turns(k)) };
        sl_window_reset(&k->window);
        rc = looks == 0 ? begin_look(k, in, err)
                        : sl_db_run1(k->db, "keyed/look", in, look_row, k, NULL, err);
        if (rc == SL_OK)
            rc = lock_keys(k, &room, err);
        more = (int64_t)k->window.count == window && k->window.ours <= max / 2;
        window = 2 * window < WINDOW_MAX ? 2 * window : WINDOW_MAX;
    }
    if (rc != SL_OK)
        return rc;
    sl_window_take(&k->window, &room, &k->ids, &k->claims);
    SL_FAULT("locked");
    if ((looks > 1 || took_too_many(k)) && k->wide < WIDEST)
        k->wide *= 2;
    else if (k->wide > 1 && looks == 1)
        k->wide -= 1;
    return end_idle(k, locked, err);
}

static int64_t per_key(int64_t max)
{
    int64_t n = max / DUE_KEYS;
    return n < 1 ? 1 : n < DUE_PER_KEY ? n : DUE_PER_KEY;
}

/* Keys with held messages that are due. */
static sl_rc lock_due(sl_keyed *k, int64_t max, bool *locked, sl_err *err)
{
    int64_t some = DUE_KEYS * per_key(max);
    int64_t keys = k->keys_max < max ? k->keys_max : max;
    sl_val due_in[] = { sl_int(max < DUE_KEYS ? max : DUE_KEYS), sl_int(sl_keyed_turns(k)) };
    sl_val delayed_in[] = { sl_int(keys < some ? keys : some), due_in[1] };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(k->db, "keyed/due_lock"), .in = due_in, .row = due_row, .ctx = k },
        { .stmt = sl_db_stmt(k->db, "keyed/delayed_lock"),
          .in = delayed_in,
          .row = delayed_row,
          .ctx = k },
    };
    sl_rc rc = begin_by(k, calls, 2, err);
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
        sl_rc rc = lock_due(k, max, locked, err);
        k->was_due = *locked;
        if (rc != SL_OK || *locked)
            return rc;
        k->due_ns = now_ns + DUE_EVERY_NS;
    }
    k->was_due = false;
    return lock_some(k, max, locked, err);
}

sl_rc sl_keyed_expire(sl_keyed *k, sl_err *err)
{
    sl_val turns = sl_int(sl_keyed_turns(k));
    if (!k->leases || sl_now_ns() < k->expire_ns)
        return SL_OK;
    k->expire_ns = sl_now_ns() + EXPIRE_EVERY_NS;
    return sl_db_run1(k->db, "guard/expire", &turns, NULL, NULL, NULL, err);
}

/* ---- Reading ---- */

/* They come key by key. */
static void ask_messages(sl_keyed *k, sl_arena *arena, sl_call *call, sl_val in[3])
{
    int64_t first = INT64_MAX;
    int64_t last = 0;
    for (size_t i = 0; i < k->ids.count; i++) {
        first = k->ids.v[i] < first ? k->ids.v[i] : first;
        last = k->ids.v[i] > last ? k->ids.v[i] : last;
    }
    k->together =
        sl_db_has(k->db, "keyed/read_stretch") && sl_stretch_dense(first, last, k->ids.count);
    if (k->together)
        sl_stretch_map(in, arena, k->ids.v, k->ids.count);
    else
        in[0] = sl_ints(k->ids.v, k->ids.count);
    *call =
        (sl_call){ .stmt = sl_db_stmt(k->db, k->together ? "keyed/read_stretch" : "keyed/read"),
                   .in = in,
                   .row = sl_ordered_row,
                   .ctx = &k->found };
}

size_t sl_keyed_read(sl_keyed *k, sl_batch *b, int64_t max, sl_call calls[3], sl_val in[3][3])
{
    size_t n = 0;
    sl_ordered_begin(&k->found, b, max, k->conf.batch_bytes);
    if (k->ids.count) {
        ask_messages(k, &b->arena, &calls[0], in[0]);
        return 1;
    }
    in[0][0] = sl_texts(k->claims.v, k->claims.count);
    in[0][1] = sl_int(per_key(max));
    in[1][0] = sl_texts(k->empty.v, k->empty.count);
    in[1][1] = sl_int(sl_keyed_turns(k));
    in[2][0] = sl_ints(k->delayed.v, k->delayed.count);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/due_read"),
                            .in = in[0],
                            .row = sl_ordered_due_row,
                            .ctx = &k->found };
    if (k->empty.count)
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/sweep"), .in = in[1] };
    if (k->delayed.count)
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "keyed/delayed_read"),
                                .in = in[2],
                                .row = sl_ordered_delayed_row,
                                .ctx = &k->found };
    return n;
}

sl_rc sl_keyed_peek(const sl_keyed *k, const char *stmt, bool *any, sl_err *err)
{
    sl_val in[] = { sl_int(floor_now(k)), sl_int(sl_keyed_turns(k)) };
    return sl_ordered_peek(k->db, stmt, in, any, err);
}

/* ---- Opening and closing ---- */

static sl_rc rehearse_stretch(sl_db *db, sl_err *err)
{
    sl_val in[] = { sl_bytes(SL_STR("")), sl_int(0) };
    sl_rc rc = sl_db_run1(db, "keyed/read_stretch", in, sl_ordered_row, NULL, NULL, err);
    return rc == SL_OK ? sl_ordered_rehearse_sent(db, "ordered/sent_stretch", err) : rc;
}

/* Runs everything once on nothing. */
static sl_rc rehearse(sl_keyed *k, sl_err *err)
{
    int64_t no_id;
    sl_str no_name;
    sl_val two[] = { sl_int(0), sl_int(0) };
    sl_val none[] = { sl_int(0), sl_int(0), sl_int(1) };
    sl_val ids[] = { sl_ints(&no_id, 0) };
    sl_val names[] = { sl_texts(&no_name, 0), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(k->db, "keyed/room"), .row = room_row, .ctx = k },
        { .stmt = sl_db_stmt(k->db, "floor/writers") },
        { .stmt = sl_db_stmt(k->db, "tx/begin") },
        { .stmt = sl_db_stmt(k->db, "epoch/next") },
        { .stmt = sl_db_stmt(k->db, "keyed/due_lock"), .in = two },
        { .stmt = sl_db_stmt(k->db, "keyed/delayed_lock"), .in = two },
        { .stmt = sl_db_stmt(k->db, "keyed/delayed_read"),
          .in = ids,
          .row = sl_ordered_delayed_row },
        { .stmt = sl_db_stmt(k->db, "keyed/look"), .in = none },
        { .stmt = sl_db_stmt(k->db, "keyed/lock"), .in = names },
        { .stmt = sl_db_stmt(k->db, "keyed/read"), .in = ids, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(k->db, "keyed/due_read"), .in = names, .row = sl_ordered_due_row },
        { .stmt = sl_db_stmt(k->db, "keyed/sweep"), .in = names },
        { .stmt = sl_db_stmt(k->db, "tx/commit") },
    };
    sl_rc rc = k->db->ops->run(k->db, calls, sizeof calls / sizeof calls[0], err);
    return rc == SL_OK && sl_db_has(k->db, "keyed/read_stretch") ? rehearse_stretch(k->db, err)
                                                                 : rc;
}

sl_rc sl_keyed_open(sl_keyed *k, sl_db *db, const sl_claim_conf *conf, bool leases, sl_err *err)
{
    *k = (sl_keyed){ .db = db,
                     .conf = *conf,
                     .leases = leases,
                     .tickets = sl_tickets_new(),
                     .wide = 1,
                     .expire_ns = sl_now_ns() + EXPIRE_EVERY_NS };
    k->found.delays = conf->delays;
    sl_rc rc = rehearse(k, err);
    if (rc == SL_OK)
        rc = sl_ordered_rehearse(db, conf->consumes, err);
    return rc == SL_OK ? sl_consume_begin(db, conf, err) : rc;
}

void sl_keyed_fini(sl_keyed *k)
{
    sl_ordered_fini(&k->found);
    sl_window_fini(&k->window);
    sl_arena_fini(&k->names);
    sl_tickets_free(k->tickets);
    sl_writers_fini(&k->writers);
    free(k->ids.v);
    free(k->delayed.v);
    free(k->claims.v);
    free(k->empty.v);
    free(k->chosen.v);
}
