/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"
#include "core/mem.h"
#include "core/record.h"
#include "relay/relay.h"

/* How long the sinks may keep the thread before the claim and the stop flag are looked at again. */
#define POLL_SLICE_NS (50 * SL_MS)
/* With nothing under way: how long until it is looked again whether a route has a place. */
#define PLACE_NS (2 * SL_MS)
/* Without a route: it is looked again whether there is one this often at least. */
#define NO_ROUTE_NS (60 * SL_SEC)
/* With a sink that is down, for one route of several: each time is a write for each message. */
#define DOWN_MIN_NS SL_SEC

typedef enum turn_of { GO, LATER, NOT_NOW, SETTLED } turn_of;

/* ---- Routes ---- */

static int32_t way_for(const sl_relay *r, sl_str topic)
{
    for (size_t i = 0; i < r->way_count; i++)
        if (sl_route_wants(r->ways[i].route, topic))
            return (int32_t)i;
    return -1;
}

void sl_relay_route(sl_relay *r)
{
    const sl_msg *before = NULL;
    for (size_t i = 0; i < r->batch.count; i++) {
        sl_msg *m = &r->batch.msgs[i];
        m->route =
            before && sl_str_eq(before->topic, m->topic) ? before->route : way_for(r, m->topic);
        before = m;
    }
}

/* Not tried, and that is not held against it: it comes back after this time. */
static turn_of put_off(sl_relay *r, sl_msg *m, int64_t delay_ns, const char *reason)
{
    sl_msg_settle(&r->batch, m, SL_RETRY, sl_str_of(reason));
    m->delay_ns = delay_ns;
    m->untried = true;
    return SETTLED;
}

static turn_of no_route(sl_relay *r, sl_msg *m)
{
    char reason[160];
    snprintf(reason, sizeof reason, "no route wants topic '%.*s'",
             (int)(m->topic.n < 100 ? m->topic.n : 100), m->topic.p ? m->topic.p : "");
    if (r->log && sl_unrouted_news(r->unrouted, m->topic, sl_now_ns()))
        sl_log_line(r->log, SL_LOG_ERROR, "message not delivered", "worker", r->worker, "error",
                    reason, "hint",
                    "add the topic to a route and restart; until then its key waits", NULL);
    int64_t retry_max_ns = r->ways[0].route->policy.retry_max_ns;
    return put_off(r, m, retry_max_ns < NO_ROUTE_NS ? retry_max_ns : NO_ROUTE_NS, reason);
}

sl_pass sl_way_pass(sl_way *w)
{
    if (!w->asked)
        w->pass = sl_breaker_ask(w->route->breaker, &w->wait_ns);
    w->asked = true;
    return w->pass;
}

/* An open breaker: where it is the only way, the turn has not begun. With a pass for one, the others wait for
 * what becomes of that. What should have been consumed before, and was not, does not go in this turn. */
static turn_of pass_of(sl_relay *r, sl_way *w, sl_msg *m)
{
    sl_pass pass = sl_way_pass(w);
    if (w->down)
        return NOT_NOW;
    if (pass == SL_PASS_NONE)
        return put_off(r, m, w->wait_ns > DOWN_MIN_NS ? w->wait_ns : DOWN_MIN_NS,
                       "its sink is down");
    if (w->route->at_most_once && !m->consumed)
        return NOT_NOW;
    return pass == SL_PASS_ONE && w->flying > 0 && !w->up ? LATER : GO;
}

static turn_of room_of(sl_way *w)
{
    if (w->route->batch > 0 && (int64_t)w->flying >= w->route->batch)
        return LATER;
    if (!w->inside)
        w->inside = sl_route_enter(w->route);
    return w->inside ? GO : LATER;
}

static turn_of way_of(sl_relay *r, sl_msg *m)
{
    sl_way *w = sl_relay_way(r, m);
    if (!w)
        return no_route(r, m);
    turn_of turn = pass_of(r, w, m);
    return turn == GO ? room_of(w) : turn;
}

static void note_down(sl_way *w, const sl_msg *m)
{
    bool down = m->verdict == SL_RELEASED || (m->verdict == SL_UNKNOWN && m->blameless);
    if (!down || !m->reason.p || w->down)
        return;
    w->down = true;
    snprintf(w->why, sizeof w->why, "%.*s", (int)m->reason.n, m->reason.p);
}

/* What has become of what was handed over. A sink gives something back, with a reason, when it is out of
 * order as a whole. */
static void see(sl_relay *r)
{
    for (size_t i = 0; i < r->way_count; i++)
        r->ways[i].flying = 0;
    for (size_t i = 0; i < r->batch.count; i++) {
        const sl_msg *m = &r->batch.msgs[i];
        sl_way *w = m->handed ? sl_relay_way(r, m) : NULL;
        if (!w)
            continue;
        w->flying += m->verdict == SL_PENDING;
        note_down(w, m);
        w->up |= m->verdict == SL_SENT || m->verdict == SL_DEAD || m->verdict == SL_RETRY;
    }
    for (size_t i = 0; i < r->way_count; i++) {
        sl_way *w = &r->ways[i];
        if (w->inside && w->flying == 0 && w->route->concurrency > 0) {
            sl_route_leave(w->route);
            w->inside = false;
        }
    }
}

/* ---- Order ---- */

/* Handed over behind the one before it, this one arrives after it, or not at all. */
static bool follows(const sl_way *w, const sl_msg *before, const sl_msg *m)
{
    return before->handed && before->route == m->route && w->sink->ops->in_order &&
           (!w->sink->ops->follows || w->sink->ops->follows(w->sink, before, m));
}

/* May a message go, as far as those of its key before it are concerned? After one that the key waits for
 * none goes; after one without a verdict only if they go the same way and the sink keeps the order. */
static turn_of order_of(sl_relay *r, size_t i)
{
    const sl_msg *m = &r->batch.msgs[i];
    r->at = NULL;
    if (!r->claim->ops->ordered || !m->key.p)
        return GO;
    if (r->late.count && sl_keymap_find(&r->late, m->key))
        return LATER;
    r->at = sl_keymap_at(&r->last, m->key); /* its index and one; 0: none */
    const sl_msg *before = *r->at ? &r->batch.msgs[*r->at - 1] : NULL;
    const sl_way *w = before ? sl_relay_way(r, before) : NULL;
    if (before && before->verdict == SL_PENDING && !follows(w, before, m))
        return LATER;
    if (!before || before->verdict == SL_PENDING)
        return GO;
    return !w || sl_policy_waits(&w->route->policy, before) ? NOT_NOW : GO;
}

/* Those of its key that follow are behind this one: until it has gone, or because it has. */
static void note_order(sl_relay *r, size_t i, turn_of turn)
{
    if (!r->at)
        return; /* order does not matter, or one before it is late */
    if (turn == LATER)
        *sl_keymap_at(&r->late, r->batch.msgs[i].key) = 1;
    else
        *r->at = (int64_t)i + 1;
}

/* Behind one that its key waits for, none was really tried: it is not held against them. */
static void excuse_followers(sl_relay *r)
{
    sl_batch *b = &r->batch;
    if (!r->claim->ops->ordered || b->settled == sl_batch_count_of(b, SL_SENT))
        return;
    sl_keymap_reset(&r->last);
    for (size_t i = 0; i < b->count; i++) {
        sl_msg *m = &b->msgs[i];
        sl_way *w = sl_relay_way(r, m);
        if (!m->key.p || m->consumed || (w && !sl_policy_waits(&w->route->policy, m)))
            continue;
        int64_t *failed = sl_keymap_at(&r->last, m->key);
        if ((*failed)++ && (m->verdict == SL_RETRY || m->verdict == SL_DEAD)) {
            sl_msg_unsettle(b, m);
            sl_msg_settle(b, m, SL_RELEASED, SL_NONE);
        }
    }
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
    sl_way *w = sl_relay_way(r, m);
    SL_RECORD(SL_REC_SEND, r->worker, m->id, m->key, m->epoch, m->attempt);
    m->handed = true;
    w->flying++;
    w->sink->ops->submit(w->sink, &r->batch, m);
    if (m->verdict != SL_PENDING)
        w->flying--;
    note_down(w, m);
}

/* What is to become of this message now. */
static turn_of turn_for(sl_relay *r, size_t i)
{
    sl_msg *m = &r->batch.msgs[i];
    turn_of turn = order_of(r, i);
    if (turn == GO && m->route >= 0 && !m->consumed &&
        sl_policy_spent(&sl_relay_way(r, m)->route->policy, &r->batch, m))
        return SETTLED;
    return turn == GO ? way_of(r, m) : turn;
}

/* Hands over what may go now; what may not goes back untried. What has to wait for the one before it, or for
 * a place, stays in r->todo; of its key then all that follows does, too. */
static sl_rc submit(sl_relay *r, sl_err *err)
{
    sl_batch *b = &r->batch;
    sl_rc rc = SL_OK;
    bool may = true;
    size_t left = 0;
    sl_keymap_reset(&r->late);
    for (size_t k = 0; k < r->todo_count; k++) {
        size_t i = r->todo[k];
        turn_of turn = may ? turn_for(r, i) : NOT_NOW;
        if (may)
            note_order(r, i, turn);
        if (turn == LATER) {
            r->todo[left++] = i;
            continue;
        }
        if (turn == GO)
            rc = may_send(r, &may, err);
        if (turn == GO && may)
            send_one(r, &b->msgs[i]);
        else if (turn != SETTLED)
            sl_msg_settle(b, &b->msgs[i], SL_RELEASED, SL_NONE);
    }
    r->todo_count = left;
    return rc;
}

/* False: nothing is under way, what is left waits for a place, and it is time to end. */
static bool poll_all(sl_relay *r)
{
    int64_t active = 0;
    for (size_t i = 0; i < r->way_count; i++)
        active += r->ways[i].flying > 0;
    if (active == 0)
        return !sl_stop_sleep(r->stop, PLACE_NS);
    for (size_t i = 0; i < r->way_count; i++)
        if (r->ways[i].flying > 0)
            r->ways[i].sink->ops->poll(r->ways[i].sink, POLL_SLICE_NS / active);
    return true;
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
    r->todo_count = 0;
    for (size_t i = 0; i < r->batch.count; i++)
        if (r->batch.msgs[i].verdict == SL_PENDING)
            r->todo[r->todo_count++] = i;
    sl_keymap_reset(&r->last);
}

static sl_rc send_all(sl_relay *r, sl_err *err)
{
    sl_rc rc = submit(r, err);
    int64_t deadline_ns = sl_now_ns() + r->send_max_ns;
    while (rc == SL_OK && r->batch.settled < r->batch.count) {
        rc = r->claim->ops->hold(r->claim, &r->batch, err);
        if (rc != SL_OK || sl_stop_level_of(r->stop) == SL_STOP_NOW ||
            sl_now_ns() >= deadline_ns || !poll_all(r))
            break;
        see(r);
        if (r->todo_count)
            rc = submit(r, err);
    }
    return rc;
}

/* The sinks let go of every borrowed byte. */
static void recall(sl_relay *r)
{
    see(r); /* what is given back from here on tells nothing of the sink */
    for (size_t i = 0; i < r->way_count; i++) {
        sl_way *w = &r->ways[i];
        w->sink->ops->recall(w->sink);
        if (w->inside)
            sl_route_leave(w->route);
        w->inside = false;
    }
}

sl_rc sl_relay_deliver(sl_relay *r, sl_err *err)
{
    plan_all(r);
    sl_rc rc = send_all(r, err);
    sl_relay_find_out(r);
    recall(r);
    give_back(r);
    excuse_followers(r);
    for (size_t i = 0; i < r->batch.count; i++) {
        sl_msg *m = &r->batch.msgs[i];
        if (m->route >= 0 && !m->consumed)
            sl_policy_judge(&sl_relay_way(r, m)->route->policy, &r->batch, m);
    }
    return rc;
}
