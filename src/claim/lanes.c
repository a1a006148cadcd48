/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes: keys hash to lanes, and a lane has one owner at a time, a node, by a lease with an epoch
 * (member/member.h). Within the node a lane is used by one worker at a time. So nothing is claimed
 * message by message: a turn reads the oldest of its lanes, and writes one deletion for each, in a
 * statement that checks the epochs of the lanes.
 *
 * Each lane has a floor below which nothing is read: member/floor.h. A worker with a good part of all
 * lanes reads them together: claim/stretch.h. In a table whose rows stay, it then marks them as done: claim/marks.h.
 */
#include "claim/claim.h"
#include "claim/consume.h"
#include "claim/marks.h"
#include "claim/ordered.h"
#include "claim/stretch.h"
#include "core/clock.h"
#include "core/mem.h"

#include <assert.h>

/* How often blocked keys are looked for when none were found the last time. */
#define DUE_EVERY_NS (100 * SL_MS)
#define FLOOR_EVERY_NS (SL_SEC)
/* Looking from the very beginning may take this part of the time. */
enum { FLOOR_COST = 10 };
/* A due key is served so many messages at a time, and so many keys in a turn. */
enum { DUE_KEYS = 16, DUE_PER_KEY = 32 };
#define SIFT_MAX_NS (SL_SEC)

typedef struct lanes_claim {
    sl_claim base;
    sl_db *db;
    sl_claim_conf conf;
    sl_lane_uses uses;
    bool using; /* a turn has begun */
    sl_ordered found;
    int64_t due_ns; /* when blocked keys are looked for again */
    bool busy;      /* the last turn found messages that are not held */
    bool forgot;    /* some lanes are read from the very beginning in this turn */
    int64_t *lanes, *floors, *quotas, *epochs; /* of the uses, as parameters */
    int64_t *firsts;                           /* of each, what was read first */
    int64_t last;                              /* of all, what was read last */
    sl_stretch stretch;
    bool together;  /* this turn's messages came in one piece of the table */
    bool held;      /* and some that were held before, by their keys and times */
    bool stretched; /* they are settled as a stretch */
    bool beyond;    /* there is more behind it, or that was not asked */
    bool large;     /* it met one that is too large for a stretch */
    sl_marks marks;
    bool mark; /* what this turn has taken may be marked, if all of it is sent */
    sl_writers writers;
    size_t cap;
} lanes_claim;

extern const sl_claim_ops sl_claim_lanes;

static lanes_claim *lanes_of(sl_claim *c)
{
    return (lanes_claim *)c;
}

/* ---- A turn's lanes ---- */

static void make_room(lanes_claim *c)
{
    if (c->cap >= c->uses.count && c->cap > 0)
        return;
    c->cap = c->uses.count + 1;
    c->lanes = sl_realloc(c->lanes, c->cap * sizeof *c->lanes);
    c->floors = sl_realloc(c->floors, c->cap * sizeof *c->floors);
    c->quotas = sl_realloc(c->quotas, c->cap * sizeof *c->quotas);
    c->epochs = sl_realloc(c->epochs, c->cap * sizeof *c->epochs);
    c->firsts = sl_realloc(c->firsts, c->cap * sizeof *c->firsts);
}

/* Lanes that had more than was taken share most of the batch. */
static int64_t quota(const lanes_claim *c, bool hungry, size_t hungries, int64_t max)
{
    int64_t n = (int64_t)c->uses.count;
    int64_t h = (int64_t)hungries;
    if (h == 0 || h == n)
        return (max + n - 1) / n;
    int64_t few = max / (2 * n) > 0 ? max / (2 * n) : 1;
    int64_t most = (max - few * (n - h)) / h;
    return !hungry ? few : most > 0 ? most : 1;
}

static int by_lane(const void *a, const void *b)
{
    int64_t x = ((const sl_lane_use *)a)->lane;
    int64_t y = ((const sl_lane_use *)b)->lane;
    return (x > y) - (x < y);
}

static void plan_quotas(lanes_claim *c, int64_t max)
{
    size_t hungries = 0;
    for (size_t i = 0; i < c->uses.count; i++)
        hungries += c->uses.v[i].hungry;
    for (size_t i = 0; i < c->uses.count; i++)
        c->quotas[i] = quota(c, c->uses.v[i].hungry, hungries, max);
}

static void begin_turn(lanes_claim *c, int64_t max)
{
    int64_t now_ns = sl_now_ns();
    sl_lanes_pick(c->conf.lanes, (size_t)c->conf.workers, &c->uses);
    c->using = true;
    c->forgot = false;
    c->mark = false;
    make_room(c);
    if (c->uses.count)
        qsort(c->uses.v, c->uses.count, sizeof *c->uses.v, by_lane);
    plan_quotas(c, max);
    for (size_t i = 0; i < c->uses.count; i++) {
        sl_lane_use *u = &c->uses.v[i];
        bool forget = !c->marks.able && now_ns >= u->forget_ns;
        c->forgot |= forget;
        c->lanes[i] = u->lane;
        c->epochs[i] = u->epoch;
        c->floors[i] = forget ? 0 : u->floor.at;
    }
}

/* Reading from the very beginning took so long: when to do it again. */
static void plan_forgetting(lanes_claim *c, int64_t began_ns)
{
    int64_t now_ns = sl_now_ns();
    int64_t pause_ns = (now_ns - began_ns) * FLOOR_COST;
    for (size_t i = 0; c->forgot && i < c->uses.count; i++)
        if (began_ns >= c->uses.v[i].forget_ns)
            c->uses.v[i].forget_ns =
                now_ns + (pause_ns > FLOOR_EVERY_NS ? pause_ns : FLOOR_EVERY_NS);
    c->forgot = false;
}

static void end_turn(lanes_claim *c)
{
    if (c->using)
        sl_lanes_put(c->conf.lanes, &c->uses);
    c->using = false;
}

static sl_lane_use *use_of(const lanes_claim *c, int64_t lane)
{
    sl_lane_use *u = bsearch(&(sl_lane_use){ .lane = lane }, c->uses.v, c->uses.count,
                             sizeof *c->uses.v, by_lane);
    assert(u); /* no other lane was asked for */
    return u;
}

/* ---- Taking ---- */

static void stamp_epochs(lanes_claim *c, sl_batch *b)
{
    const sl_lane_use *u = NULL;
    for (size_t i = 0; i < b->count; i++) {
        if (!u || u->lane != b->msgs[i].lane)
            u = use_of(c, b->msgs[i].lane);
        b->msgs[i].epoch = u->epoch;
    }
}

/* Notes the first that lives of each lane; held ones are found by key. */
static sl_rc take_row(void *ctx, const sl_val *cols, sl_err *err)
{
    lanes_claim *c = ctx;
    size_t at = (size_t)(use_of(c, cols[SL_COL_LANE].i) - c->uses.v);
    if (c->firsts[at] == 0)
        c->firsts[at] = cols[0].i;
    c->last = cols[0].i > c->last ? cols[0].i : c->last;
    return sl_ordered_row(&c->found, cols, err);
}

/* The same for a stretch, which ends before a message that is too large for it. */
static sl_rc stretch_row(void *ctx, const sl_val *cols, sl_err *err)
{
    lanes_claim *c = ctx;
    c->large |= cols[SL_COL_WAIT].i == SL_WAIT_LARGE;
    c->found.over |= c->large;
    return take_row(c, cols, err);
}

static int64_t between(int64_t low, int64_t n, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* Of a lane that gave nothing nothing lives up to what was read last; behind it there may be more. */
static void see_floors(lanes_claim *c, int64_t ripe)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_floor_seen(&c->uses.v[i].floor, ripe,
                      c->firsts[i] || !c->busy ? c->firsts[i] : c->last + 1);
}

/* It was asked for a part of the lanes only: the sooner for the next part. */
static int64_t due_pause_ns(const lanes_claim *c)
{
    int64_t owned = (int64_t)sl_lanes_owned_count(c->conf.lanes);
    return DUE_EVERY_NS * (int64_t)c->uses.count / (owned > 0 ? owned : 1);
}

/* Room for a read: what is asked, and the parameters. */
typedef struct reading {
    sl_call calls[6];
    size_t count, take; /* which of them takes */
    int64_t upto;       /* a stretch ends before that */
    sl_val due_in[3], delayed_in[2], take_in[5];
} reading;

/* Blocked keys that are due get at most a quarter of the batch, unless there was nothing else. */
static void ask_due(lanes_claim *c, reading *r, int64_t max)
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

static void ask_lanes(lanes_claim *c, reading *r, int64_t max)
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
    ((lanes_claim *)ctx)->beyond = cols[0].i != 0;
    return SL_OK;
}

static int64_t lowest_floor(const lanes_claim *c)
{
    int64_t low = INT64_MAX;
    for (size_t i = 0; i < c->uses.count; i++)
        low = c->floors[i] < low ? c->floors[i] : low;
    return low;
}

/* From the lowest floor on; a whole batch of payloads that are no larger than that has room. While it fills
 * batches, what is beyond it need not be asked. */
static void ask_stretch(lanes_claim *c, reading *r, int64_t max)
{
    int64_t from = lowest_floor(c);
    bool marks = c->marks.able;
    r->upto = sl_stretch_end(&c->stretch, from, max);
    if (marks)
        r->upto = sl_marks_end(&c->marks, from, r->upto, max);
    memcpy(r->take_in,
           (sl_val[]){
               marks ? sl_marks_table(&c->marks, &c->uses, sl_lanes_count(c->conf.lanes))
                     : sl_ints(c->lanes, c->uses.count),
               sl_int(from), sl_int(r->upto), sl_int(max), sl_int(c->conf.batch_bytes / max) },
           sizeof r->take_in);
    r->take = r->count++;
    r->calls[r->take] = (sl_call){ .stmt = sl_db_stmt(c->db, marks ? "done/take"
                                                                   : "lanes/take_stretch"),
                                   .in = r->take_in,
                                   .row = stretch_row,
                                   .ctx = c };
    if (!c->stretch.busy)
        r->calls[r->count++] = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/beyond"),
                                          .in = &r->take_in[2],
                                          .row = beyond_row,
                                          .ctx = c };
}

/* What a stretch that was filled has of a lane, says that it has more. */
static void note_stretch(lanes_claim *c, int64_t max, int64_t came)
{
    bool full = came >= max;
    if (c->large || (!full && c->beyond && !c->stretch.busy))
        sl_stretch_failed(&c->stretch, c->large, sl_now_ns());
    for (size_t i = 0; i < c->uses.count; i++)
        c->quotas[i] = full ? 1 : INT64_MAX;
}

/* What is asked before the read, and answered with it: since when nobody can come late. */
static void ask_first(lanes_claim *c, reading *r)
{
    sl_tickets *tickets = sl_lanes_tickets(c->conf.lanes);
    if (c->marks.able)
        r->count += sl_marks_ask(&c->marks, c->db, r->calls);
    else
        r->count += sl_tickets_ask(tickets, c->db, &c->writers, r->calls);
}

static void answered(lanes_claim *c, bool ok)
{
    if (c->marks.able)
        sl_marks_answered(&c->marks, ok);
    else
        sl_tickets_answered(sl_lanes_tickets(c->conf.lanes), &c->writers, ok);
}

/* Of each lane, all that lives below `seen` was read. */
static void raise_floors(lanes_claim *c, int64_t seen)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_marks_raise(&c->marks, &c->uses.v[i].floor, c->firsts[i] ? c->firsts[i] : seen);
    sl_marks_note(&c->marks, c->last);
}

/* A read that was not full has shown all that it was asked for. */
static int64_t seen_below(const lanes_claim *c, const reading *r, bool together, int64_t max)
{
    int64_t came = r->calls[r->take].affected;
    if (together && came < max)
        return r->upto;
    return came > 0 ? c->last + 1 : INT64_MAX;
}

static void begin_read(lanes_claim *c, sl_batch *b, int64_t max)
{
    memset(c->firsts, 0, c->uses.count * sizeof *c->firsts);
    c->last = 0;
    c->large = false;
    c->beyond = true;
    sl_ordered_begin(&c->found, b, max, c->conf.batch_bytes);
}

static sl_rc read_once(lanes_claim *c, sl_batch *b, int64_t max, bool together, sl_err *err)
{
    int64_t now_ns = sl_now_ns();
    reading r = { .count = 0 };
    int64_t ripe = sl_tickets_ripe(sl_lanes_tickets(c->conf.lanes));
    begin_read(c, b, max);
    ask_first(c, &r);
    bool due = now_ns >= c->due_ns;
    if (due)
        ask_due(c, &r, max);
    (together ? ask_stretch : ask_lanes)(c, &r, max);
    sl_rc rc = c->db->ops->run(c->db, r.calls, r.count, err);
    answered(c, rc == SL_OK);
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
        note_stretch(c, max, came);
    sl_stretch_note(&c->stretch, max, came, c->last);
    if (c->marks.able)
        raise_floors(c, seen_below(c, &r, together, max));
    else if (!together || came > 0 || !c->beyond)
        see_floors(c, ripe);
    plan_forgetting(c, now_ns);
    return SL_OK;
}

static bool stretch_pays(const lanes_claim *c, int64_t max)
{
    return !c->forgot && sl_stretch_has_part(c->uses.count, sl_lanes_count(c->conf.lanes)) &&
           sl_stretch_pays(&c->stretch, lowest_floor(c), max, sl_now_ns());
}

/* A stretch that gives nothing says nothing if there is more behind it, or one that is too large. */
static sl_rc read_lanes(lanes_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    if (stretch_pays(c, max)) {
        sl_rc rc = read_once(c, b, max, true, err);
        bool all = !c->beyond && !c->large;
        if (rc != SL_OK || all || b->count > 0 || sl_ordered_found(&c->found))
            return rc;
        plan_quotas(c, max);
    }
    return read_once(c, b, max, false, err);
}

/* How the lanes of this turn are fenced. */
static const sl_ordered_how *how_of(const lanes_claim *c, sl_fencing *f)
{
    f->in[0] = sl_ints(c->lanes, c->uses.count);
    f->in[1] = sl_ints(c->epochs, c->uses.count);
    f->in[2] = sl_ints(c->floors, c->uses.count);
    f->fence = (sl_call){ .stmt = sl_db_stmt(c->db, "lanes/fence"), .in = f->in };
    f->how = (sl_ordered_how){
        .mark = c->mark ? "done/write" : NULL,
        .sent = c->stretched ? "lanes/sent_stretch" : "lanes/sent",
        .claims = c->stretched || c->mark ? f->in : NULL,
        .keep = c->conf.keep ? "lanes/keep" : NULL,
        .fence = &f->fence,
        .fenced = (int64_t)c->uses.count,
        .retry_base_ns = c->conf.retry_base_ns,
        .retry_max_ns = c->conf.retry_max_ns,
    };
    return &f->how;
}

static sl_rc settle(lanes_claim *c, size_t *lost, sl_err *err)
{
    sl_fencing f;
    return sl_ordered_settle(c->db, &c->found, how_of(c, &f), lost, err);
}

/* Reads until there is something to deliver or nothing at all: what only waits is put aside. */
static sl_rc sift(lanes_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    size_t lost;
    int64_t until_ns = sl_now_ns() + SIFT_MAX_NS;
    sl_rc rc;
    do {
        rc = read_lanes(c, b, max, err);
        if (rc != SL_OK || b->count > 0 || !sl_ordered_found(&c->found))
            return rc;
        rc = settle(c, &lost, err);
    } while (rc == SL_OK && sl_now_ns() < until_ns &&
             sl_lanes_current(c->conf.lanes, c->uses.generation) &&
             sl_now_ns() < sl_lanes_trusted_ns(c->conf.lanes));
    return rc;
}

/* Moves a lane of this turn, with all that is known of it, to the place of another. */
static void swap_uses(lanes_claim *c, size_t i, size_t k)
{
    sl_lane_use u = c->uses.v[i];
    c->uses.v[i] = c->uses.v[k];
    c->uses.v[k] = u;
    c->lanes[k] = c->lanes[i];
    c->epochs[k] = c->epochs[i];
    c->quotas[k] = c->quotas[i];
}

/* All that lives below, of lanes that are not in the batch, has gone: up to the last one that was not held. */
static int64_t read_below(const sl_batch *b)
{
    for (size_t i = b->count; i-- > 0;)
        if (!b->msgs[i].held)
            return b->msgs[i].id + 1;
    return 0;
}

/* Lanes that gave nothing are for other workers, while this one sends. */
static void put_back_quiet(lanes_claim *c, const sl_batch *b)
{
    size_t kept = 0;
    if (sl_ordered_found(&c->found))
        return; /* the settle writes what waits, in any of them */
    memset(c->firsts, 0, c->uses.count * sizeof *c->firsts);
    for (size_t i = 0; i < b->count; i++)
        c->firsts[use_of(c, b->msgs[i].lane) - c->uses.v] = b->msgs[i].id;
    for (size_t i = 0; i < c->uses.count; i++) {
        if (c->firsts[i]) {
            swap_uses(c, i, kept++); /* those that are kept stay in their order */
            continue;
        }
        c->uses.v[i].hungry = false;
        if (c->marks.able)
            sl_marks_raise(&c->marks, &c->uses.v[i].floor, read_below(b));
        else
            sl_floor_propose(&c->uses.v[i].floor, sl_lanes_tickets(c->conf.lanes),
                             c->last + 1);
    }
    sl_lanes_put_early(c->conf.lanes, c->uses.generation, c->uses.v + kept,
                       c->uses.count - kept);
    c->uses.count = kept;
}

/* All that its lanes have up to the last of it was read, nothing of that waits, and nobody can come late. */
static bool may_mark(const lanes_claim *c, const sl_batch *b)
{
    return c->marks.able && b->count > 0 && !c->held && !sl_ordered_found(&c->found) &&
           b->msgs[b->count - 1].id <= c->marks.final;
}

static sl_rc lanes_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    lanes_claim *c = lanes_of(base);
    end_turn(c);
    if (sl_now_ns() >= sl_lanes_trusted_ns(c->conf.lanes) || max <= 0)
        return SL_OK; /* the keeper is trying to reach the database */
    begin_turn(c, max);
    if (c->uses.count == 0) {
        end_turn(c);
        return SL_OK;
    }
    sl_rc rc = sift(c, b, max, err);
    stamp_epochs(c, b);
    sl_batch_sort(b);
    c->mark = may_mark(c, b);
    /* Ids of held ones would stretch the range. */
    c->stretched = c->together && !c->held && b->count > 0 &&
                   sl_stretch_dense(b->msgs[0].id, b->msgs[b->count - 1].id, b->count);
    if (rc == SL_OK && b->count > 0)
        put_back_quiet(c, b);
    if (rc == SL_OK && b->count == 0) {
        for (size_t i = 0; i < c->uses.count; i++)
            c->uses.v[i].hungry = false;
        end_turn(c);
    }
    return rc;
}

/* ---- Holding and settling ---- */

static int64_t lanes_trusted(const sl_claim *base)
{
    const lanes_claim *c = (const lanes_claim *)base;
    return sl_lanes_current(c->conf.lanes, c->uses.generation)
               ? sl_lanes_trusted_ns(c->conf.lanes)
               : 0;
}

static sl_rc lanes_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    (void)b;
    if (sl_now_ns() < lanes_trusted(base))
        return SL_OK;
    return sl_fail(err, SL_AGAIN,
                   "the node's lease could not be renewed in time: its lanes may be another's");
}

/* Of each lane, all below the first message that stays has gone, or all that was taken. Returns that for each; 0:
 * nothing was taken. */
static const int64_t *find_lows(lanes_claim *c, const sl_batch *b)
{
    int64_t *lows = c->firsts;
    for (size_t i = 0; i < c->uses.count; i++) {
        c->uses.v[i].hungry = false;
        lows[i] = 0;
    }
    for (size_t i = b->count; i-- > 0;) { /* each lane's ids fall */
        const sl_msg *m = &b->msgs[i];
        size_t at = (size_t)(use_of(c, m->lane) - c->uses.v);
        if (m->held)
            continue; /* it is found by its key */
        bool gone = m->verdict == SL_SENT || m->verdict == SL_DEAD;
        if (!gone)
            lows[at] = m->id;
        else if (lows[at] == 0)
            lows[at] = m->id + 1;
        c->uses.v[at].hungry |= --c->quotas[at] == 0;
    }
    return lows;
}

static void propose_floors(lanes_claim *c, const int64_t *lows)
{
    for (size_t i = 0; i < c->uses.count; i++)
        if (lows[i])
            sl_floor_propose(&c->uses.v[i].floor, sl_lanes_tickets(c->conf.lanes), lows[i]);
}

/* What a mark will say of each lane, once it is written. A piece of the table has shown more than the lane's own
 * messages. */
static void plan_marks(lanes_claim *c, const sl_batch *b)
{
    c->mark = c->mark && sl_batch_count_of(b, SL_SENT) == b->count;
    memset(c->floors, 0, c->uses.count * sizeof *c->floors);
    for (size_t i = 0; c->mark && i < b->count; i++) {
        size_t at = (size_t)(use_of(c, b->msgs[i].lane) - c->uses.v);
        c->floors[at] = b->msgs[c->together ? b->count - 1 : i].id + 1;
    }
}

static void raise_settled(lanes_claim *c, const int64_t *lows)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_marks_raise(&c->marks, &c->uses.v[i].floor, c->mark ? c->floors[i] : lows[i]);
}

static sl_rc lanes_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    lanes_claim *c = lanes_of(base);
    if (c->marks.able)
        plan_marks(c, b);
    sl_rc rc = settle(c, lost, err);
    if (rc == SL_OK)
        (c->marks.able ? raise_settled : propose_floors)(c, find_lows(c, b));
    if (rc == SL_OK || !c->conf.exact) /* else the lanes stay ours until it is settled */
        end_turn(c);
    return rc;
}

static sl_rc lanes_again(sl_claim *base, sl_db *db, sl_batch *b, size_t *lost, sl_err *err)
{
    lanes_of(base)->db = db;
    return lanes_settle(base, b, lost, err);
}

/* ---- Opening and closing ---- */

static void lanes_close(sl_claim *base)
{
    lanes_claim *c = lanes_of(base);
    end_turn(c);
    sl_ordered_fini(&c->found);
    free(c->uses.v);
    free(c->lanes);
    free(c->floors);
    free(c->quotas);
    free(c->epochs);
    free(c->firsts);
    sl_writers_fini(&c->writers);
    sl_marks_fini(&c->marks);
    free(c);
}

/* The same for a table whose rows stay. */
static sl_rc rehearse_marks(sl_db *db, sl_err *err)
{
    int64_t none;
    sl_val no = sl_ints(&none, 0);
    sl_val take_in[] = { no, sl_int(0), sl_int(0), sl_int(0), sl_int(0) };
    sl_val write_in[] = { no, no, no };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "floor/given") },
        { .stmt = sl_db_stmt(db, "done/take"), .in = take_in, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "done/write"), .in = write_in },
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    db->ops->rollback(db); /* no lanes are always ours */
    return rc;
}

static sl_rc rehearse_stretch(sl_db *db, sl_err *err)
{
    int64_t none;
    sl_val no = sl_ints(&none, 0);
    sl_val take_in[] = { no, sl_int(0), sl_int(0), sl_int(0), sl_int(0) };
    sl_val sent_in[] = { no, no, no };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "lanes/take_stretch"), .in = take_in, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(db, "lanes/sent_stretch"), .in = sent_in },
        { .stmt = sl_db_stmt(db, "lanes/beyond"), .in = &take_in[1] }
    };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}

/* Runs everything once on nothing. */
static sl_rc rehearse(sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    int64_t none;
    sl_val no = sl_ints(&none, 0);
    sl_val due_in[] = { no, sl_int(0), sl_int(0) };
    sl_val take_in[] = { no, no, no, sl_int(0), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "floor/writers") },
        { .stmt = sl_db_stmt(db, "lanes/due"), .in = due_in, .row = sl_ordered_due_row },
        { .stmt = sl_db_stmt(db, "lanes/delayed"),
          .in = due_in,
          .row = sl_ordered_delayed_row },
        { .stmt = sl_db_stmt(db, "lanes/take"), .in = take_in, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(db, "lanes/sent"), .in = take_in },
        { .stmt = sl_db_stmt(db, "lanes/fence"), .in = take_in }
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    if (rc == SL_OK && sl_db_has(db, "lanes/take_stretch"))
        rc = rehearse_stretch(db, err);
    if (rc == SL_OK && conf->rotated)
        rc = rehearse_marks(db, err);
    if (rc == SL_OK && conf->keep)
        rc = sl_ordered_rehearse_keep(db, "lanes/keep", conf->consumes, err);
    return rc == SL_OK ? sl_ordered_rehearse(db, conf->consumes, err) : rc;
}

static sl_rc lanes_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    lanes_claim *c = sl_alloc(sizeof *c);
    *c = (lanes_claim){ .base = { &sl_claim_lanes }, .db = db, .conf = *conf };
    c->found.delays = conf->delays;
    c->stretch.able = sl_db_has(db, "lanes/take_stretch");
    c->marks.able = conf->rotated;
    if (conf->lanes) { /* it outlives connections */
        c->marks.source = sl_lanes_final(conf->lanes);
        sl_final_doubt(c->marks.source);
        sl_tickets_doubt(sl_lanes_tickets(conf->lanes));
    }
    sl_rc rc = rehearse(db, conf, err);
    if (rc == SL_OK)
        rc = sl_consume_begin(db, conf, err);
    if (rc == SL_OK)
        *out = &c->base;
    else
        lanes_close(&c->base);
    return rc;
}

static sl_rc lanes_count(sl_claim *base, sl_batch *b, bool *again, sl_err *err)
{
    (void)again;
    return sl_ordered_count(lanes_of(base)->db, b, err);
}

static sl_rc lanes_consume(sl_claim *base, sl_batch *b, const sl_consume_stamp *stamp,
                           sl_err *err)
{
    lanes_claim *c = lanes_of(base);
    sl_fencing f;
    return sl_ordered_consume(c->db, how_of(c, &f), b, c->conf.worker, stamp, err);
}

static sl_rc lanes_peek(sl_claim *base, bool *any, sl_err *err)
{
    const lanes_claim *c = lanes_of(base);
    sl_val floor = sl_int(0);
    return sl_ordered_peek(c->db, c->marks.able ? "done/peek" : "ordered/peek", &floor, any,
                           err);
}

const sl_claim_ops sl_claim_lanes = {
    .name = "lanes",
    .ordered = true,
    .owns_lanes = true,
    .open = lanes_open,
    .take = lanes_take,
    .hold = lanes_hold,
    .trusted_ns = lanes_trusted,
    .settle = lanes_settle,
    .again = lanes_again,
    .peek = lanes_peek,
    .count = lanes_count,
    .consume = lanes_consume,
    .close = lanes_close,
};
