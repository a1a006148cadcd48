/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relay.h"

#include "core/clock.h"
#include "core/fault.h"

#include <assert.h>

/* How long the sink may keep the thread before the claim and the stop flag are looked at again.
 */
#define POLL_SLICE_NS (50 * SL_MS)

/* Right before each send: is the claim still ours, may it be trusted, and are we to go on? Renews
 * the claim when that is due, since a sink may take its time inside submit. */
static sl_rc may_send(sl_relay *r, bool *may, sl_err *err)
{
    sl_rc rc = r->claim->ops->hold(r->claim, &r->batch, err);
    *may = rc == SL_OK && sl_now_ns() < r->claim->ops->trusted_ns(r->claim) &&
           sl_stop_level_of(r->stop) < SL_STOP_NOW;
    return rc;
}

/* What may not be handed over goes back untried. */
static sl_rc submit(sl_relay *r, sl_err *err)
{
    sl_batch *b = &r->batch;
    sl_rc rc = SL_OK;
    bool may = true;
    for (size_t i = 0; i < b->count; i++) {
        if (may)
            rc = may_send(r, &may, err);
        if (may)
            r->sink->ops->submit(r->sink, b, &b->msgs[i]);
        else
            sl_msg_settle(b, &b->msgs[i], SL_RELEASED, SL_NONE);
    }
    return rc;
}

/* Until every message has its verdict, the claim is lost, or there is no more time. */
static sl_rc await(sl_relay *r, sl_err *err)
{
    int64_t deadline_ns = sl_now_ns() + r->send_max_ns;
    while (r->batch.settled < r->batch.count) {
        sl_rc rc = r->claim->ops->hold(r->claim, &r->batch, err);
        if (rc != SL_OK)
            return rc;
        if (sl_stop_level_of(r->stop) == SL_STOP_NOW || sl_now_ns() >= deadline_ns)
            return SL_OK;
        r->sink->ops->poll(r->sink, POLL_SLICE_NS);
    }
    return SL_OK;
}

static void count(sl_counts *c, const sl_batch *b, size_t lost)
{
    c->sent += sl_batch_count_of(b, SL_SENT);
    c->retried += sl_batch_count_of(b, SL_RETRY);
    c->dead += sl_batch_count_of(b, SL_DEAD);
    c->unknown += sl_batch_count_of(b, SL_UNKNOWN);
    c->released += sl_batch_count_of(b, SL_RELEASED);
    c->lost += lost;
    c->turns++;
}

sl_rc sl_relay_turn(sl_relay *r, sl_err *err)
{
    sl_batch *b = &r->batch;
    size_t lost = 0;

    sl_batch_reset(b);
    sl_rc rc = r->claim->ops->take(r->claim, b, r->batch_max, err);
    if (rc != SL_OK || b->count == 0)
        return rc;
    r->counts->taken += b->count;
    SL_FAULT("taken");

    sl_rc held = submit(r, err);
    if (held == SL_OK)
        held = await(r, err);      /* poll sink + hold claim, until settled or out of time */
    r->sink->ops->recall(r->sink); /* the sink lets go of every borrowed byte */
    assert(b->settled == b->count);
    SL_FAULT("sent");

    /* Even when the claim was lost: what was sent should be marked if it can be. */
    rc = r->claim->ops->settle(r->claim, b, &lost, held == SL_OK ? err : &(sl_err){ 0 });
    if (rc == SL_OK)
        count(r->counts, b, lost);
    SL_FAULT("settled");
    return held != SL_OK ? held : rc;
}
