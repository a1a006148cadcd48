/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks with a fence, before and after a turn. What keeps a node out that was paused and woke up is that the others have
 * used its names anew since. So a worker must not do that itself and then go on with what it had taken before: names are
 * made ready before anything is taken, and the database confirms *after* that that this node is still one. Then whoever
 * takes over from it comes later, and shuts it out.
 */
#include "core/clock.h"
#include "relay/relay.h"

/* A cluster that does not make a name ready within this time is down. */
#define READY_NS (5 * SL_SEC)
#define SLICE_NS (100 * SL_MS)

static sl_readiness make_ready(sl_relay *r, sl_way *w)
{
    int64_t until_ns = sl_now_ns() + READY_NS;
    sl_readiness came;
    do
        came = w->sink->ops->ready(w->sink, r->session, SLICE_NS, w->why);
    while (came == SL_READY_NOT && sl_now_ns() < until_ns &&
           sl_stop_level_of(r->stop) == SL_GO);
    return came;
}

/* *anew: under a name that nobody can have used since. */
static void ready_way(sl_relay *r, sl_way *w, bool *anew)
{
    if (!w->sink->ops->ready || sl_way_pass(w) == SL_PASS_NONE)
        return;
    sl_readiness came = make_ready(r, w);
    *anew |= came == SL_READY_ANEW;
    w->down |= came == SL_READY_NOT;
}

sl_rc sl_relay_ready(sl_relay *r, bool *may, sl_err *err)
{
    bool anew = false;
    sl_rc rc = SL_OK;
    *may = true;
    if (!r->terms.session)
        return SL_OK;
    r->session = r->terms.session(r->terms.ctx);
    *may = r->session != 0;
    for (size_t i = 0; *may && i < r->way_count; i++)
        ready_way(r, &r->ways[i], &anew);
    r->unvouched |= anew;
    if (*may && r->unvouched) {
        rc = r->terms.lives(r->terms.ctx, r->session, may, err);
        r->unvouched = rc != SL_OK || !*may;
    }
    if (r->way_count == 1 && r->ways[0].down)
        *may = false;
    return rc;
}

bool sl_relay_same(const sl_relay *r)
{
    return !r->terms.session || r->terms.session(r->terms.ctx) == r->session;
}

static sl_way *in_doubt(sl_relay *r)
{
    for (size_t i = 0; i < r->way_count; i++) {
        sl_way *w = &r->ways[i];
        if (w->sink->ops->in_doubt && w->sink->ops->in_doubt(w->sink))
            return w;
    }
    return NULL;
}

/* Nothing of this batch may be given to others until then: what was sent might come true behind their backs. */
void sl_relay_find_out(sl_relay *r)
{
    sl_way *w;
    while ((w = in_doubt(r)) && sl_stop_level_of(r->stop) < SL_STOP_NOW)
        w->sink->ops->poll(w->sink, SLICE_NS);
    r->unclean |= w != NULL;
}
