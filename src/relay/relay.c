/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relay.h"

#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"
#include "core/record.h"

#include <assert.h>

/* How long the sink may keep the thread before the claim and the stop flag are looked at again.
 */
#define POLL_SLICE_NS (50 * SL_MS)

void sl_relay_fini(sl_relay *r)
{
    sl_batch_fini(&r->batch);
    sl_keymap_fini(&r->last);
    free(r->todo);
}

/* ---- Order ---- */

typedef enum turn_of { GO, LATER, NOT_NOW } turn_of;

/* May message `i` go, as far as those of its key before it are concerned? After one that failed none
 * goes; after one without a verdict only if the sink keeps the order. */
static turn_of order_of(sl_relay *r, size_t i)
{
    const sl_msg *m = &r->batch.msgs[i];
    if (!r->claim->ops->ordered || !m->key.p)
        return GO;
    int64_t *last = sl_keymap_at(&r->last, m->key); /* its index and one; 0: none */
    sl_verdict v = *last ? r->batch.msgs[*last - 1].verdict : SL_SENT;
    if (v == SL_PENDING && !r->sink->ops->in_order)
        return LATER;
    *last = (int64_t)i + 1;
    return v == SL_SENT || v == SL_DEAD || v == SL_PENDING ? GO : NOT_NOW;
}

/* ---- Sending ---- */

/* Right before each send: is the claim still ours, may it be trusted, and are we to go on? Renews
 * the claim when that is due, since a sink may take its time inside submit. */
static sl_rc may_send(sl_relay *r, bool *may, sl_err *err)
{
    sl_rc rc = r->claim->ops->hold(r->claim, &r->batch, err);
    *may = rc == SL_OK && sl_now_ns() < r->claim->ops->trusted_ns(r->claim) &&
           sl_stop_level_of(r->stop) < SL_STOP_NOW;
    return rc;
}

static void send_one(sl_relay *r, sl_msg *m)
{
    SL_RECORD(SL_REC_SEND, r->worker, m->id, m->key, m->epoch, m->attempt);
    r->sink->ops->submit(r->sink, &r->batch, m);
}

/* Hands over what may go now; what may not goes back untried. What has to wait for the one before it
 * stays in r->todo. */
static sl_rc submit(sl_relay *r, sl_err *err)
{
    sl_batch *b = &r->batch;
    sl_rc rc = SL_OK;
    bool may = true;
    size_t left = 0;
    for (size_t k = 0; k < r->todo_count; k++) {
        size_t i = r->todo[k];
        turn_of turn = may ? order_of(r, i) : NOT_NOW;
        if (turn == LATER) {
            r->todo[left++] = i;
            continue;
        }
        if (turn == GO)
            rc = may_send(r, &may, err);
        if (turn == GO && may)
            send_one(r, &b->msgs[i]);
        else
            sl_msg_settle(b, &b->msgs[i], SL_RELEASED, SL_NONE);
    }
    r->todo_count = left;
    return rc;
}

/* What was never handed over goes back untried. */
static void give_back(sl_relay *r)
{
    for (size_t k = 0; k < r->todo_count; k++)
        sl_msg_settle(&r->batch, &r->batch.msgs[r->todo[k]], SL_RELEASED, SL_NONE);
    r->todo_count = 0;
}

static void plan_all(sl_relay *r)
{
    if (r->todo_cap < r->batch.count) {
        r->todo_cap = r->batch.count;
        r->todo = sl_realloc(r->todo, r->todo_cap * sizeof *r->todo);
    }
    for (size_t i = 0; i < r->batch.count; i++)
        r->todo[i] = i;
    r->todo_count = r->batch.count;
    sl_keymap_reset(&r->last);
}

/* Behind one that failed, none was really tried: it is not held against them. */
static void excuse_followers(sl_relay *r)
{
    sl_batch *b = &r->batch;
    if (!r->claim->ops->ordered || b->settled == sl_batch_count_of(b, SL_SENT))
        return;
    sl_keymap_reset(&r->last);
    for (size_t i = 0; i < b->count; i++) {
        sl_msg *m = &b->msgs[i];
        if (!m->key.p || m->verdict == SL_SENT || m->verdict == SL_DEAD)
            continue;
        int64_t *failed = sl_keymap_at(&r->last, m->key);
        if ((*failed)++ && m->verdict == SL_RETRY) {
            sl_msg_unsettle(b, m);
            sl_msg_settle(b, m, SL_RELEASED, SL_NONE);
        }
    }
}

/* Until every message has its verdict, the claim is lost, or there is no more time. */
static sl_rc deliver(sl_relay *r, sl_err *err)
{
    plan_all(r);
    sl_rc rc = submit(r, err);
    int64_t deadline_ns = sl_now_ns() + r->send_max_ns;
    while (rc == SL_OK && r->batch.settled < r->batch.count) {
        rc = r->claim->ops->hold(r->claim, &r->batch, err);
        if (rc != SL_OK || sl_stop_level_of(r->stop) == SL_STOP_NOW ||
            sl_now_ns() >= deadline_ns)
            break;
        r->sink->ops->poll(r->sink, POLL_SLICE_NS);
        if (r->todo_count)
            rc = submit(r, err);
    }
    r->sink->ops->recall(r->sink); /* the sink lets go of every borrowed byte */
    give_back(r);
    excuse_followers(r);
    return rc;
}

/* ---- The turn ---- */

static void record_all(const sl_relay *r, sl_rec_kind kind, bool attempts)
{
    for (size_t i = 0; i < r->batch.count; i++) {
        const sl_msg *m = &r->batch.msgs[i];
        (void)m;
        SL_RECORD(kind, r->worker, m->id, m->key, m->epoch,
                  attempts ? m->attempt : (int32_t)m->verdict);
    }
    (void)kind;
    (void)attempts;
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
    record_all(r, SL_REC_TAKEN, true);
    SL_FAULT("taken");

    sl_rc held = SL_OK;
    if (sl_stop_level_of(r->stop) == SL_GO)
        held = deliver(r, err);
    else
        sl_batch_settle_rest(b, SL_RELEASED,
                             SL_NONE); /* told to stop while it waited for them */
    assert(b->settled == b->count);
    record_all(r, SL_REC_RESULT, false);
    SL_FAULT("sent");

    /* Even when the claim was lost: what was sent should be marked if it can be. */
    rc = r->claim->ops->settle(r->claim, b, &lost, held == SL_OK ? err : &(sl_err){ 0 });
    record_all(r, rc == SL_OK && held == SL_OK ? SL_REC_SETTLED : SL_REC_LOST, false);
    if (rc == SL_OK)
        count(r->counts, b, lost);
    SL_FAULT("settled");
    return held != SL_OK ? held : rc;
}
