/* SPDX-License-Identifier: Apache-2.0 */
#include "member/nodes.h"

#include "core/mem.h"

/* ---- Nodes ---- */

void sl_node_list_fini(sl_node_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free((char *)(uintptr_t)l->v[i].node);
        free((char *)(uintptr_t)l->v[i].strategy);
        free((char *)(uintptr_t)l->v[i].assign);
    }
    free(l->v);
    *l = (sl_node_list){ 0 };
}

static sl_rc add_node(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_node_list *l = ctx;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 8;
        l->v = sl_realloc(l->v, l->cap * sizeof *l->v);
    }
    l->v[l->count++] = (sl_node_row){
        .session = cols[0].i,
        .node = sl_strndup(cols[1].s.p, cols[1].s.n),
        .strategy = sl_strndup(cols[2].s.p, cols[2].s.n),
        .assign = sl_strndup(cols[3].s.p, cols[3].s.n),
        .workers = cols[4].i,
        .born = cols[5].i,
        .left_us = cols[6].i,
        .age_us = cols[7].i,
        .sent = cols[8].i,
        .failed = cols[9].i,
        .per_second = cols[10].i,
    };
    return SL_OK;
}

sl_rc sl_nodes_list(sl_db *db, sl_node_list *out, sl_err *err)
{
    sl_node_list now = { 0 };
    sl_rc rc = sl_db_run1(db, "nodes/list", NULL, add_node, &now, NULL, err);
    sl_node_list *old = rc == SL_OK ? out : &now;
    sl_node_list_fini(old);
    if (rc == SL_OK)
        *out = now;
    return rc;
}

static sl_rc other_strategy(const sl_node_row *me, const sl_node_list *all, sl_err *err)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->v[i].strategy, me->strategy) != 0)
            return sl_fail(
                err, SL_OPERATOR,
                "node '%.80s' lives and shares this table by strategy %s, not %s: together "
                "they "
                "would keep neither's promise\nhint: stop all nodes of the one before starting "
                "the other; one that crashed is forgotten in %.1f s",
                all->v[i].node, all->v[i].strategy, me->strategy,
                (double)all->v[i].left_us / 1e6);
    return sl_fail(
        err, SL_OPERATOR,
        "keys are still leased, to a pull or to a node that crashed\n"
        "hint: settle what was pulled, or wait until the leases end; 'sluice workers' "
        "shows them");
}

sl_rc sl_nodes_join(sl_db *db, const sl_node_row *me, int64_t lease_ns, size_t *pruned,
                    sl_err *err)
{
    sl_node_list all = { 0 };
    sl_val in[] = { sl_int(me->session),
                    sl_text(sl_str_of(me->node)),
                    sl_text(sl_str_of(me->strategy)),
                    sl_text(sl_str_of(me->assign)),
                    sl_int(me->workers),
                    sl_int(lease_ns / 1000) };
    sl_val void_in[] = { in[0], in[2] };
    sl_val fence_in[] = { in[0], in[1], in[4], sl_ints(me->places.ways, me->places.count),
                          sl_texts(me->places.texts, me->places.count) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "nodes/lock") },
        { .stmt = sl_db_stmt(db, "nodes/prune") },
        { .stmt = sl_db_stmt(db, "epoch/next") },
        { .stmt = sl_db_stmt(db, "nodes/void_turns"), .in = &in[2] },
        { .stmt = sl_db_stmt(db, "nodes/join"), .in = in },
        { .stmt = sl_db_stmt(db, "nodes/void_lanes"), .in = void_in },
        { .stmt = sl_db_stmt(db, "nodes/list"), .row = add_node, .ctx = &all },
        { .stmt = sl_db_stmt(db, "tx/commit") },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    size_t count = sizeof calls / sizeof calls[0] - 1;
    if (me->places.count) { /* before anything can be owned, and sent */
        calls[count - 1] =
            (sl_call){ .stmt = sl_db_stmt(db, "fence/register"), .in = fence_in };
        count++;
    }
    sl_rc rc = db->ops->run(db, calls, count, err);
    if (pruned)
        *pruned = rc == SL_OK ? (size_t)calls[2].affected : 0;
    if (rc == SL_OK && calls[5].affected == 0)
        rc = other_strategy(me, &all, err);
    sl_node_list_fini(&all);
    return rc;
}

sl_rc sl_nodes_leave(sl_db *db, int64_t session, sl_err *err)
{
    return sl_db_run1(db, "nodes/leave", (sl_val[]){ sl_int(session) }, NULL, NULL, NULL, err);
}

sl_rc sl_nodes_prune(sl_db *db, size_t *pruned, sl_err *err)
{
    int64_t n = 0;
    sl_rc rc = sl_db_run1(db, "nodes/prune", NULL, NULL, NULL, &n, err);
    *pruned = (size_t)n;
    return rc;
}

static sl_rc read_beat(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(sl_beat *)ctx = (sl_beat){
        .alive = true,
        .peers = cols[0].i,
        .last_born = cols[1].i,
        .soonest_us = cols[2].i,
        .lanes = cols[3].i,
        .paused = !cols[4].null && cols[4].i,
    };
    return SL_OK;
}

sl_rc sl_nodes_beat(sl_db *db, const sl_node_row *me, int64_t lease_ns, sl_beat *out,
                    sl_err *err)
{
    sl_val in[] = { sl_int(me->session), sl_int(lease_ns / 1000), sl_int(me->sent),
                    sl_int(me->failed), sl_int(me->per_second) };
    *out = (sl_beat){ .alive = false };
    return sl_db_run1(db, "nodes/beat", in, read_beat, out, NULL, err);
}

/* ---- Lanes ---- */

typedef struct owners {
    int64_t *v;
    size_t room, count;
} owners;

static sl_rc add_owner(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    owners *o = ctx;
    if (cols[0].i >= 0 && (size_t)cols[0].i < o->room)
        o->v[cols[0].i] = cols[1].i;
    o->count++;
    return SL_OK;
}

sl_rc sl_lanes_list(sl_db *db, int64_t *to, size_t *count, sl_err *err)
{
    owners o = { .v = to, .room = *count };
    sl_rc rc = sl_db_run1(db, "lanes/list", NULL, add_owner, &o, NULL, err);
    *count = o.count;
    return rc;
}

typedef struct granting {
    size_t n;
    int64_t *lanes, *epochs, *floors;
} granting;

static sl_rc add_grant(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    granting *g = ctx;
    g->lanes[g->n] = cols[0].i;
    g->floors[g->n] = 0;
    g->epochs[g->n++] = cols[1].i;
    return SL_OK;
}

/* Where the one who had it before has got to. */
static sl_rc add_floor(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    granting *g = ctx;
    for (size_t i = 0; i < g->n; i++)
        if (g->lanes[i] == cols[0].i)
            g->floors[i] = cols[1].i;
    return SL_OK;
}

static sl_rc add_lane(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    granting *g = ctx;
    g->lanes[g->n++] = cols[0].i;
    return SL_OK;
}

static sl_rc acquire(sl_db *db, const int64_t *lanes, size_t n, int64_t session, bool fenced,
                     granting *to, sl_err *err)
{
    granting g = *to;
    sl_val wanted = sl_ints(lanes, n);
    sl_call lock[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "lanes/try"), .in = &wanted, .row = add_lane, .ctx = &g },
    };
    sl_rc rc = db->ops->run(db, lock, sizeof lock / sizeof lock[0], err);
    int64_t *locked = sl_alloc((g.n + 1) * sizeof *locked);
    memcpy(locked, g.lanes, g.n * sizeof *locked);
    sl_val in[] = { sl_ints(locked, g.n), sl_int(session) };
    sl_call calls[4] = {
        { .stmt = sl_db_stmt(db, "epoch/next") },
        { .stmt = sl_db_stmt(db, "lanes/acquire"), .in = in, .row = add_grant, .ctx = &g },
    };
    size_t count = 2;
    if (sl_db_has(db, "done/read"))
        calls[count++] =
            (sl_call){ .stmt = sl_db_stmt(db, "done/read"), .row = add_floor, .ctx = &g };
    const sl_call *last = &calls[count];
    calls[count++] = (sl_call){ .stmt = sl_db_stmt(db, fenced ? "fence/open" : "tx/commit") };
    g.n = 0;
    if (rc == SL_OK)
        rc = db->ops->run(db, calls, count, err);
    free(locked);
    if (rc == SL_OK && fenced && last->affected > 0) {
        db->ops->rollback(db);
        g.n = 0;
    } else if (rc == SL_OK && fenced)
        rc = sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err);
    to->n = rc == SL_OK ? g.n : 0; /* only once it is committed */
    return rc;
}

static sl_rc acquire_all(sl_db *db, const int64_t *lanes, size_t n, int64_t session,
                         bool fenced, sl_lane_fn granted, void *ctx, sl_err *err)
{
    granting g = { 0 };
    g.lanes = sl_alloc((3 * n + 1) * sizeof *g.lanes);
    g.epochs = g.lanes + n;
    g.floors = g.epochs + n;
    sl_rc rc = acquire(db, lanes, n, session, fenced, &g, err);
    for (size_t i = 0; i < g.n; i++)
        granted(ctx, (size_t)g.lanes[i], g.epochs[i], g.floors[i]);
    free(g.lanes);
    return rc;
}

sl_rc sl_lanes_acquire(sl_db *db, const int64_t *lanes, size_t n, int64_t session,
                       sl_lane_fn granted, void *ctx, sl_err *err)
{
    return acquire_all(db, lanes, n, session, false, granted, ctx, err);
}

sl_rc sl_lanes_acquire_fenced(sl_db *db, const int64_t *lanes, size_t n, int64_t session,
                              sl_lane_fn granted, void *ctx, sl_err *err)
{
    return acquire_all(db, lanes, n, session, true, granted, ctx, err);
}

sl_rc sl_lanes_release(sl_db *db, const int64_t *lanes, size_t n, int64_t session, sl_err *err)
{
    sl_val in[] = { sl_ints(lanes, n), sl_int(session) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "lanes/release"), .in = in },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}
