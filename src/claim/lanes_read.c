/* SPDX-License-Identifier: Apache-2.0 */
/* How a turn with lanes reads: what is asked in one round trip, and what is learnt of floors from the answer. */
#include "claim/lanes.h"
#include "core/clock.h"
#include "core/mem.h"

/* How often blocked keys are looked for when none were found the last time. */
#define DUE_EVERY_NS (100 * SL_MS)
#define FLOOR_EVERY_NS (SL_SEC)
/* Looking from the very beginning may take this part of the time. */
enum { FLOOR_COST = 10 };
/* After one that failed, for whatever reason, it is tried again by then. */
#define FLOOR_FAILED_NS (10 * SL_SEC)
/* A due key is served so many messages at a time, and so many keys in a turn. */
enum { DUE_KEYS = 16, DUE_PER_KEY = 32 };

/* ---- A turn's lanes ---- */

static int64_t between(int64_t low, int64_t n, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* Lanes that had more than was taken share most of the batch. */
static int64_t quota(const sl_lanes_claim *c, bool hungry, size_t hungries, int64_t max)
{
    int64_t n = (int64_t)c->uses.count;
    int64_t h = (int64_t)hungries;
    if (h == 0 || h == n)
        return (max + n - 1) / n;
    int64_t few = max / (2 * n) > 0 ? max / (2 * n) : 1;
    int64_t most = (max - few * (n - h)) / h;
    return !hungry ? few : most > 0 ? most : 1;
}

void sl_lanes_plan_places(sl_lanes_claim *c)
{
    size_t lanes = 0;
    for (size_t i = 0; i < c->uses.count; i++)
        lanes = (size_t)c->uses.v[i].lane >= lanes ? (size_t)c->uses.v[i].lane + 1 : lanes;
    if (lanes > c->where_cap) {
        c->where = sl_realloc(c->where, lanes * sizeof *c->where);
        c->where_cap = lanes;
    }
    for (size_t i = 0; i < c->uses.count; i++)
        c->where[c->uses.v[i].lane] = i;
}

void sl_lanes_plan_quotas(sl_lanes_claim *c, int64_t max)
{
    size_t hungries = 0;
    for (size_t i = 0; i < c->uses.count; i++)
        hungries += c->uses.v[i].hungry;
    for (size_t i = 0; i < c->uses.count; i++)
        c->quotas[i] = quota(c, c->uses.v[i].hungry, hungries, max);
}

/* Reading from the very beginning, or looking there, took so long: when to do it again. What was known to live there and
 * was not read, since that failed, has to be found once more, whoever looked. */
static void plan_forgetting(sl_lanes_claim *c, int64_t began_ns, bool failed)
{
    int64_t now_ns = sl_now_ns();
    int64_t pause_ns = between(FLOOR_EVERY_NS, (now_ns - began_ns) * FLOOR_COST,
                               failed ? FLOOR_FAILED_NS : INT64_MAX);
    for (size_t i = 0; (c->forgot || c->looks) && i < c->uses.count; i++)
        if (began_ns >= c->uses.v[i].forget_ns || (failed && c->floors[i] == 0))
            c->uses.v[i].forget_ns = now_ns + pause_ns;
    c->forgot = c->looks = false;
}

/* ---- Rows ---- */

/* Notes the first that lives of each lane; held ones are found by key. */
static sl_rc take_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_lanes_claim *c = ctx;
    size_t at = sl_lanes_place(c, cols[SL_COL_LANE].i);
    if (c->firsts[at] == 0)
        c->firsts[at] = cols[0].i;
    c->last = cols[0].i > c->last ? cols[0].i : c->last;
    return sl_ordered_row(&c->found, cols, err);
}

/* The same for a stretch, which ends before a message that is too large for it. */
static sl_rc stretch_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_lanes_claim *c = ctx;
    c->large |= cols[SL_COL_WAIT].i == SL_WAIT_LARGE;
    c->found.over |= c->large;
    return take_row(c, cols, err);
}

/* Of a lane that gave nothing nothing lives up to what was read last; behind it there may be more. */
static void see_floors(sl_lanes_claim *c, int64_t ripe)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_floor_seen(&c->uses.v[i].floor, ripe,
                      c->firsts[i] || !c->busy ? c->firsts[i] : c->last + 1);
}

/* It was asked for a part of the lanes only: the sooner for the next part. */
static int64_t due_pause_ns(const sl_lanes_claim *c)
{
    int64_t owned = (int64_t)sl_lanes_owned_count(c->conf.lanes);
    return DUE_EVERY_NS * (int64_t)c->uses.count / (owned > 0 ? owned : 1);
}

/* Room for a read: what is asked, and the parameters. */
typedef struct reading {
    sl_call calls[SL_FINAL_CALLS + 5];
    size_t count, take; /* which of them takes */
    int64_t upto;       /* a stretch ends before that */
    bool capped;        /* since what is behind it is not final yet */
    sl_val below_in[2], due_in[3], delayed_in[2], take_in[5];
} reading;

static sl_rc below_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_lanes_claim *c = ctx;
    c->uses.v[sl_lanes_place(c, cols[0].i)].below = true;
    return SL_OK;
}

static void ask_below(sl_lanes_claim *c, reading *r)
{
    r->below_in[0] = sl_ints(c->lanes, c->uses.count);
    r->below_in[1] = sl_ints(c->floors, c->uses.count);
    r->calls[r->count++] = (sl_call){
        .stmt = sl_db_stmt(c->db, "lanes/below"), .in = r->below_in, .row = below_row, .ctx = c
    };
}

/* Blocked keys that are due get at most a quarter of the batch, unless there was nothing else. */
static void ask_due(sl_lanes_claim *c, reading *r, int64_t max)
{
    int64_t share = c->busy ? 4 : 1;
    int64_t keys = between(1, max / share, DUE_KEYS);
    int64_t per_key = between(1, max / (share * keys), DUE_PER_KEY);
    sl_val lanes = sl_ints(c->lanes, c->uses.count);
    memcpy(r->due_in, (sl_val[]){ lanes, sl_int(keys), sl_int(per_key) }, sizeof r->due_in);
    memcpy(r->delayed_in, (sl_val[]){ lanes, sl_int(keys * per_key) }, sizeof r->delayed_in);
    r->calls[r->count++] = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/due"),
                                      .in = r->due_in,
                                      .row = sl_ordered_due_row,
                                      .ctx = &c->found };
    r->calls[r->count++] = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/delayed"),
                                      .in = r->delayed_in,
                                      .row = sl_ordered_delayed_row,
                                      .ctx = &c->found };
}

static void ask_lanes(sl_lanes_claim *c, reading *r, int64_t max)
{
    size_t n = c->uses.count;
    memcpy(r->take_in,
           (sl_val[]){ sl_ints(c->lanes, n), sl_ints(c->floors, n), sl_ints(c->quotas, n),
                       sl_int(max), sl_int(c->conf.batch_bytes) },
           sizeof r->take_in);
    r->take = r->count++;
    r->calls[r->take] = (sl_call){
        .stmt = sl_db_stmt(c->db, "lanes/take"), .in = r->take_in, .row = take_row, .ctx = c
    };
}

static sl_rc beyond_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    ((sl_lanes_claim *)ctx)->beyond = cols[0].i != 0;
    return SL_OK;
}

static int64_t lowest_floor(const sl_lanes_claim *c)
{
    int64_t low = INT64_MAX;
    for (size_t i = 0; i < c->uses.count; i++)
        low = c->floors[i] < low ? c->floors[i] : low;
    return low;
}

/* Of lanes that are not ours, one that no id reaches. Where delivered rows stay, of each of ours its own floor. */
static sl_val plan_froms(sl_lanes_claim *c, int64_t from)
{
    size_t lanes = sl_lanes_count(c->conf.lanes);
    for (size_t i = 0; i < c->uses.count; i++) /* there were more, a moment ago */
        lanes = (size_t)c->uses.v[i].lane >= lanes ? (size_t)c->uses.v[i].lane + 1 : lanes;
    if (c->froms_cap < lanes) {
        c->froms_cap = lanes;
        c->froms = sl_realloc(c->froms, lanes * sizeof *c->froms);
    }
    for (size_t i = 0; i < lanes; i++)
        c->froms[i] = INT64_MAX;
    for (size_t i = 0; i < c->uses.count; i++)
        c->froms[c->uses.v[i].lane] = c->marks.able ? c->uses.v[i].floor.at : from;
    return sl_ints(c->froms, lanes);
}

/* From the lowest floor on; a whole batch of payloads that are no larger than that has room. While it fills
 * batches, what is beyond it need not be asked. */
static void ask_stretch(sl_lanes_claim *c, reading *r, int64_t max)
{
    int64_t from = lowest_floor(c);
    int64_t end = sl_stretch_end(&c->stretch, from, max);
    int64_t unread = c->stretch.next > from ? c->stretch.next : from;
    r->upto = c->marks.able ? sl_marks_end(&c->marks, unread, end, max, sl_now_ns()) : end;
    r->capped = r->upto < end;
    memcpy(r->take_in,
           (sl_val[]){ plan_froms(c, from), sl_int(from), sl_int(r->upto), sl_int(max),
                       sl_int(c->conf.batch_bytes / max) },
           sizeof r->take_in);
    r->take = r->count++;
    r->calls[r->take] = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/take_stretch"),
                                   .in = r->take_in,
                                   .row = stretch_row,
                                   .ctx = c };
    if (!c->stretch.busy)
        r->calls[r->count++] = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/beyond"),
                                          .in = &r->take_in[2],
                                          .row = beyond_row,
                                          .ctx = c };
}

/* What a stretch that was filled has of a lane, says that it has more. One that was capped could not be filled. */
static void note_stretch(sl_lanes_claim *c, int64_t max, int64_t came, bool capped)
{
    bool full = came >= max;
    if (c->large || (!full && !capped && c->beyond && !c->stretch.busy))
        sl_stretch_failed(&c->stretch, c->large, sl_now_ns());
    for (size_t i = 0; i < c->uses.count; i++)
        c->quotas[i] = full ? 1 : INT64_MAX;
}

/* What is asked before the read, and answered with it: since when nobody can come late. */
static void ask_first(sl_lanes_claim *c, reading *r)
{
    sl_tickets *tickets = sl_lanes_tickets(c->conf.lanes);
    if (c->marks.able)
        r->count += sl_marks_ask(&c->marks, c->db, r->calls);
    else
        r->count += sl_tickets_ask(tickets, c->db, &c->writers, r->calls);
}

static void writers_answered(sl_lanes_claim *c, bool ok)
{
    if (c->marks.able)
        sl_marks_answered(&c->marks, ok);
    else
        sl_tickets_answered(sl_lanes_tickets(c->conf.lanes), &c->writers, ok);
}

/* Of each lane, all that lives below `seen` was read. */
static void raise_floors(sl_lanes_claim *c, int64_t seen, int64_t came)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_marks_raise(&c->marks, &c->uses.v[i].floor, c->firsts[i] ? c->firsts[i] : seen);
    sl_marks_note(&c->marks, c->last, came, sl_now_ns());
}

/* A read that was not full has shown all that it was asked for. */
static int64_t seen_below(const sl_lanes_claim *c, const reading *r, bool together, int64_t max)
{
    int64_t came = r->calls[r->take].affected;
    if (together && came < max)
        return r->upto;
    return came > 0 ? c->last + 1 : INT64_MAX;
}

static void begin_read(sl_lanes_claim *c, sl_batch *b, int64_t max)
{
    memset(c->firsts, 0, c->uses.count * sizeof *c->firsts);
    c->last = 0;
    c->large = false;
    c->beyond = true;
    sl_ordered_begin(&c->found, b, max, c->conf.batch_bytes);
}

static sl_rc read_once(sl_lanes_claim *c, sl_batch *b, int64_t max, bool together, sl_err *err)
{
    int64_t now_ns = sl_now_ns();
    reading r = { .count = 0 };
    int64_t ripe = sl_tickets_ripe(sl_lanes_tickets(c->conf.lanes));
    begin_read(c, b, max);
    ask_first(c, &r);
    if (c->looks)
        ask_below(c, &r);
    bool due = now_ns >= c->due_ns;
    if (due)
        ask_due(c, &r, max);
    (together ? ask_stretch : ask_lanes)(c, &r, max);
    sl_rc rc = c->db->ops->run(c->db, r.calls, r.count, err);
    sl_rc before = sl_lanes_conclude(c, rc == SL_OK ? err : &(sl_err){ 0 });
    rc = rc == SL_OK ? before : rc;
    writers_answered(c, rc == SL_OK);
    plan_forgetting(c, now_ns, rc != SL_OK); /* it may have been too long for the server */
    if (rc != SL_OK)
        return rc;
    int64_t came = r.calls[r.take].affected;
    int64_t held = due ? r.calls[r.take - 1].affected + r.calls[r.take - 2].affected : 0;
    if (due)
        c->due_ns = held > 0 ? 0 : now_ns + due_pause_ns(c);
    c->busy = came > 0;
    c->together = together;
    c->held = held > 0;
    if (together)
        note_stretch(c, max, came, r.capped);
    sl_stretch_note(&c->stretch, max, came, c->last);
    if (c->marks.able)
        raise_floors(c, seen_below(c, &r, together, max), came);
    else if (!together || came > 0 || !c->beyond)
        see_floors(c, ripe);
    return SL_OK;
}

static bool stretch_pays(const sl_lanes_claim *c, int64_t max)
{
    return !c->forgot && sl_stretch_has_part(c->uses.count, sl_lanes_count(c->conf.lanes)) &&
           sl_stretch_pays(&c->stretch, lowest_floor(c), max, sl_now_ns());
}

/* A stretch that gives nothing says nothing if there is more behind it, unless that is to wait, or one that is too large. */
sl_rc sl_lanes_read(sl_lanes_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    if (stretch_pays(c, max)) {
        sl_rc rc = read_once(c, b, max, true, err);
        bool all = (!c->beyond || sl_marks_patient(&c->marks)) && !c->large;
        if (rc != SL_OK || all || b->count > 0 || sl_ordered_found(&c->found))
            return rc;
        sl_lanes_plan_quotas(c, max);
    }
    return read_once(c, b, max, false, err);
}
