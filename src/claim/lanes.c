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
#include "claim/lanes.h"
#include "claim/consume.h"
#include "core/clock.h"
#include "core/mem.h"

#define SIFT_MAX_NS (SL_SEC)

extern const sl_claim_ops sl_claim_lanes;

static sl_lanes_claim *lanes_of(sl_claim *c)
{
    return (sl_lanes_claim *)c;
}

/* ---- A turn's lanes ---- */

static void make_room(sl_lanes_claim *c)
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

/* Rows of lanes are locked in their order. */
static int by_lane(const void *a, const void *b)
{
    int64_t x = ((const sl_lane_use *)a)->lane;
    int64_t y = ((const sl_lane_use *)b)->lane;
    return (x > y) - (x < y);
}

static void begin_turn(sl_lanes_claim *c, int64_t max)
{
    int64_t now_ns = sl_now_ns();
    if (c->posted)
        sl_lanes_pick_more(c->conf.lanes, (size_t)c->conf.workers, &c->uses);
    else
        sl_lanes_pick(c->conf.lanes, (size_t)c->conf.workers, &c->uses);
    c->using = true;
    c->forgot = c->looks = false;
    c->mark = false;
    make_room(c);
    if (c->uses.count)
        qsort(c->uses.v, c->uses.count, sizeof *c->uses.v, by_lane);
    sl_lanes_plan_places(c);
    sl_lanes_plan_quotas(c, max);
    for (size_t i = 0; i < c->uses.count; i++) {
        sl_lane_use *u = &c->uses.v[i];
        bool due = !c->marks.able && now_ns >= u->forget_ns;
        bool forget = u->below || (due && (u->floor.at == 0 || !c->can_look));
        u->below = false;
        c->forgot |= forget;
        c->looks |= due && !forget;
        c->lanes[i] = u->lane;
        c->epochs[i] = u->epoch;
        c->floors[i] = forget ? 0 : u->floor.at;
    }
}

static void end_turn(sl_lanes_claim *c)
{
    if (c->using)
        sl_lanes_put(c->conf.lanes, &c->uses);
    c->using = false;
}

/* ---- Taking ---- */

static void stamp_epochs(sl_lanes_claim *c, sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->msgs[i].epoch = c->uses.v[sl_lanes_place(c, b->msgs[i].lane)].epoch;
}

/* How the lanes of this turn are fenced. */
static const sl_ordered_how *how_of(const sl_lanes_claim *c, sl_fencing *f)
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

static sl_rc settle(sl_lanes_claim *c, size_t *lost, sl_err *err)
{
    sl_fencing f;
    return sl_ordered_settle(c->db, &c->found, how_of(c, &f), lost, err);
}

/* Reads until there is something to deliver or nothing at all: what only waits is put aside. */
static sl_rc sift(sl_lanes_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    size_t lost;
    int64_t until_ns = sl_now_ns() + SIFT_MAX_NS;
    sl_rc rc;
    do {
        rc = sl_lanes_read(c, b, max, err);
        if (rc != SL_OK || b->count > 0 || !sl_ordered_found(&c->found))
            return rc;
        rc = settle(c, &lost, err);
    } while (rc == SL_OK && sl_now_ns() < until_ns &&
             sl_lanes_current(c->conf.lanes, c->uses.generation) &&
             sl_now_ns() < sl_lanes_trusted_ns(c->conf.lanes));
    return rc;
}

/* Moves a lane of this turn, with all that is known of it, to the place of another. */
static void swap_uses(sl_lanes_claim *c, size_t i, size_t k)
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
static void put_back_quiet(sl_lanes_claim *c, const sl_batch *b)
{
    size_t kept = 0;
    if (sl_ordered_found(&c->found))
        return; /* the settle writes what waits, in any of them */
    memset(c->firsts, 0, c->uses.count * sizeof *c->firsts);
    for (size_t i = 0; i < b->count; i++)
        c->firsts[sl_lanes_place(c, b->msgs[i].lane)] = b->msgs[i].id;
    for (size_t i = 0; i < c->uses.count; i++) {
        if (c->firsts[i]) {
            swap_uses(c, i, kept++); /* those that are kept stay in their order */
            continue;
        }
        c->uses.v[i].hungry = false;
        if (c->marks.able)
            sl_marks_raise(&c->marks, &c->uses.v[i].floor, read_below(b));
        else
            sl_floor_propose(&c->uses.v[i].floor, sl_lanes_tickets(c->conf.lanes), c->last + 1);
    }
    sl_lanes_put_early(c->conf.lanes, c->uses.generation, c->uses.v + kept,
                       c->uses.count - kept);
    c->uses.count = kept;
    sl_lanes_plan_places(c);
}

/* All that its lanes have up to the last of it was read, nothing of that waits, and nobody can come late. */
static bool may_mark(const sl_lanes_claim *c, const sl_batch *b)
{
    return c->marks.able && b->count > 0 && !c->held && !sl_ordered_found(&c->found) &&
           b->msgs[b->count - 1].id <= c->marks.final;
}

/* *looked: at so many lanes. */
static sl_rc take_part(sl_lanes_claim *c, sl_batch *b, int64_t max, size_t *looked, sl_err *err)
{
    begin_turn(c, max);
    *looked = c->uses.count;
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

/* What is on the way keeps its lanes until it is answered, and they are read again with that answer. */
static bool goes_on(const sl_lanes_claim *c, int64_t max)
{
    return max > 0 && sl_lanes_current(c->conf.lanes, c->uses.generation) &&
           sl_now_ns() < sl_lanes_trusted_ns(c->conf.lanes);
}

static sl_rc await_posted(sl_lanes_claim *c, sl_err *err)
{
    sl_rc rc = c->db->ops->run(c->db, NULL, 0, err);
    sl_rc after = sl_lanes_conclude(c, rc == SL_OK ? err : &(sl_err){ 0 });
    if (rc != SL_OK)
        c->posted_rc = rc;
    return rc == SL_OK ? after : rc;
}

/* Where there are more lanes than a part may have, all are looked at before it is said that there is nothing. */
static sl_rc lanes_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    sl_lanes_claim *c = lanes_of(base);
    size_t owned = sl_lanes_owned_count(c->conf.lanes);
    size_t looked;
    size_t all = 0;
    sl_rc rc = c->posted && !goes_on(c, max) ? await_posted(c, err) : SL_OK;
    if (rc != SL_OK)
        return rc;
    if (!c->posted)
        end_turn(c);
    do {
        if (sl_now_ns() >= sl_lanes_trusted_ns(c->conf.lanes) || max <= 0)
            return SL_OK; /* the keeper is trying to reach the database */
        rc = take_part(c, b, max, &looked, err);
        all += looked;
    } while (rc == SL_OK && b->count == 0 && looked == SL_LANES_PART && all < owned);
    return rc;
}

/* ---- Holding and settling ---- */

static int64_t lanes_trusted(const sl_claim *base)
{
    const sl_lanes_claim *c = (const sl_lanes_claim *)base;
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
static const int64_t *find_lows(sl_lanes_claim *c, const sl_batch *b)
{
    int64_t *lows = c->firsts;
    for (size_t i = 0; i < c->uses.count; i++) {
        c->uses.v[i].hungry = false;
        lows[i] = 0;
    }
    for (size_t i = b->count; i-- > 0;) { /* each lane's ids fall */
        const sl_msg *m = &b->msgs[i];
        size_t at = sl_lanes_place(c, m->lane);
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

static void propose_floors(sl_lanes_claim *c, const int64_t *lows)
{
    for (size_t i = 0; i < c->uses.count; i++)
        if (lows[i])
            sl_floor_propose(&c->uses.v[i].floor, sl_lanes_tickets(c->conf.lanes), lows[i]);
}

/* What a mark will say of each lane, once it is written. A piece of the table has shown more than the lane's own
 * messages. */
static void plan_marks(sl_lanes_claim *c, const sl_batch *b)
{
    c->mark = c->mark && sl_batch_count_of(b, SL_SENT) == b->count;
    memset(c->floors, 0, c->uses.count * sizeof *c->floors);
    for (size_t i = 0; c->mark && i < b->count; i++) {
        size_t at = sl_lanes_place(c, b->msgs[i].lane);
        c->floors[at] = b->msgs[c->together ? b->count - 1 : i].id + 1;
    }
}

static void raise_settled(sl_lanes_claim *c, const int64_t *lows)
{
    for (size_t i = 0; i < c->uses.count; i++)
        sl_marks_raise(&c->marks, &c->uses.v[i].floor, c->mark ? c->floors[i] : lows[i]);
}

/* What was settled says of the lanes' floors. */
static void move_floors(sl_lanes_claim *c, const sl_batch *b)
{
    const int64_t *lows = find_lows(c, b);
    if (c->marks.able)
        raise_settled(c, lows);
    else
        propose_floors(c, lows);
}

static sl_rc lanes_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    sl_lanes_claim *c = lanes_of(base);
    if (c->marks.able)
        plan_marks(c, b);
    sl_rc rc = settle(c, lost, err);
    if (rc == SL_OK)
        move_floors(c, b);
    if (rc == SL_OK || !c->conf.exact) /* else the lanes stay ours until it is settled */
        end_turn(c);
    return rc;
}

/* ---- Settling without waiting ---- */

static void remember_floors(sl_lanes_claim *c)
{
    if (c->undo_cap < c->uses.count) {
        c->undo_cap = c->uses.count;
        c->undo = sl_realloc(c->undo, c->undo_cap * sizeof *c->undo);
    }
    c->undo_count = c->uses.count;
    memcpy(c->undo, c->uses.v, c->undo_count * sizeof *c->undo);
}

/* What was on the way did not arrive, or nobody knows: nothing below has gone. */
static void restore_floors(sl_lanes_claim *c)
{
    for (size_t i = 0; i < c->undo_count; i++)
        for (size_t k = 0; k < c->uses.count; k++)
            if (c->uses.v[k].lane == c->undo[i].lane)
                c->uses.v[k].floor = c->undo[i].floor;
}

static sl_rc lanes_post(sl_claim *base, sl_batch *b, bool *posted, sl_err *err)
{
    sl_lanes_claim *c = lanes_of(base);
    sl_fencing f;
    *posted = false;
    if (c->marks.able)
        plan_marks(c, b);
    sl_rc rc = sl_ordered_post_sent(c->db, &c->found, b, how_of(c, &f), &c->post, posted, err);
    if (!*posted)
        return rc;
    c->posted = b;
    remember_floors(c);
    move_floors(c, b);
    return rc;
}

/* Some of the lanes are another's, and nothing was marked: what was sent of the others goes row by row. */
static sl_rc settle_unmarked(sl_lanes_claim *c, sl_batch *b, sl_err *err)
{
    sl_ordered rest = { .batch = b };
    sl_ordered_how how = { .sent = "lanes/sent" };
    sl_rc rc = sl_ordered_settle(c->db, &rest, &how, &c->posted_lost, err);
    sl_ordered_fini(&rest);
    return rc;
}

sl_rc sl_lanes_conclude(sl_lanes_claim *c, sl_err *err)
{
    bool written = true;
    sl_batch *b = c->posted;
    if (!b)
        return SL_OK;
    c->posted = NULL;
    c->posted_lost = 0;
    c->posted_rc =
        c->post.post.answered ? SL_OK : sl_fail(err, SL_AGAIN, "no answer to what was settled");
    if (c->posted_rc == SL_OK)
        c->posted_lost = sl_ordered_post_lost(&c->post, &written);
    if (!written)
        c->posted_rc = settle_unmarked(c, b, err);
    if (c->posted_rc != SL_OK)
        restore_floors(c);
    return c->posted_rc;
}

static sl_rc lanes_answered(sl_claim *base, size_t *lost, sl_err *err)
{
    sl_lanes_claim *c = lanes_of(base);
    if (c->posted) { /* else a take has brought it, and these are its lanes */
        sl_rc rc = await_posted(c, err);
        (void)rc; /* it is kept */
        end_turn(c);
    }
    *lost = c->posted_lost;
    return c->posted_rc;
}

static sl_rc lanes_again(sl_claim *base, sl_db *db, sl_batch *b, size_t *lost, sl_err *err)
{
    lanes_of(base)->db = db;
    return lanes_settle(base, b, lost, err);
}

/* ---- Opening and closing ---- */

/* Nobody asked for the answer; it may have come all the same. */
static bool posted_is_written(const sl_lanes_claim *c)
{
    bool written;
    (void)sl_ordered_post_lost(&c->post, &written);
    return c->post.post.answered && written;
}

static void lanes_close(sl_claim *base)
{
    sl_lanes_claim *c = lanes_of(base);
    if (c->posted && !posted_is_written(c))
        restore_floors(c);
    end_turn(c);
    sl_ordered_fini(&c->found);
    free(c->uses.v);
    free(c->lanes);
    free(c->floors);
    free(c->quotas);
    free(c->epochs);
    free(c->firsts);
    free(c->where);
    free(c->froms);
    free(c->undo);
    sl_writers_fini(&c->writers);
    sl_marks_fini(&c->marks);
    free(c);
}

/* The same for a table whose rows stay. */
static sl_rc rehearse_marks(sl_db *db, sl_err *err)
{
    int64_t none;
    sl_val no = sl_ints(&none, 0);
    sl_val write_in[] = { no, no, no };
    sl_val nothing = sl_int(INT64_MAX);
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "floor/given") },
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "done/write"), .in = write_in },
        { .stmt = sl_db_stmt(db, "done/fold"), .in = &nothing }, /* the janitor's */
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    db->ops->rollback(db); /* no lanes are always ours */
    return rc;
}

static sl_rc rehearse_below(sl_db *db, sl_err *err)
{
    int64_t none;
    sl_val in[] = { sl_ints(&none, 0), sl_ints(&none, 0) };
    return sl_db_run1(db, "lanes/below", in, NULL, NULL, NULL, err);
}

static sl_rc rehearse_stretch(sl_db *db, sl_err *err)
{
    int64_t none;
    sl_val no = sl_ints(&none, 0);
    sl_val take_in[] = { no, sl_int(0), sl_int(0), sl_int(0), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "lanes/take_stretch"), .in = take_in, .row = sl_ordered_row },
        { .stmt = sl_db_stmt(db, "lanes/beyond"), .in = &take_in[1] }
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    return rc == SL_OK ? sl_ordered_rehearse_sent(db, "lanes/sent_stretch", err) : rc;
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
    else if (rc == SL_OK && sl_db_has(db, "lanes/below"))
        rc = rehearse_below(db, err);
    if (rc == SL_OK && conf->keep)
        rc = sl_ordered_rehearse_keep(db, "lanes/keep", conf->consumes, err);
    return rc == SL_OK ? sl_ordered_rehearse(db, conf->consumes, err) : rc;
}

static sl_rc lanes_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    sl_lanes_claim *c = sl_alloc(sizeof *c);
    *c = (sl_lanes_claim){ .base = { &sl_claim_lanes }, .db = db, .conf = *conf };
    c->found.delays = conf->delays;
    c->stretch.able = sl_db_has(db, "lanes/take_stretch");
    c->can_look = sl_db_has(db, "lanes/below");
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
    sl_lanes_claim *c = lanes_of(base);
    sl_fencing f;
    return sl_ordered_consume(c->db, how_of(c, &f), b, c->conf.worker, stamp, err);
}

static sl_rc lanes_peek(sl_claim *base, bool *any, sl_err *err)
{
    const sl_lanes_claim *c = lanes_of(base);
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
    .post = lanes_post,
    .answered = lanes_answered,
    .again = lanes_again,
    .peek = lanes_peek,
    .count = lanes_count,
    .consume = lanes_consume,
    .close = lanes_close,
};
