/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relay.h"

#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"
#include "core/record.h"

#include <assert.h>

/* So many turns in a row. */
enum { POSTS_MAX = 4 };

void sl_relay_fini(sl_relay *r)
{
    sl_batch_fini(&r->batch);
    sl_batch_fini(&r->posted);
    sl_keymap_fini(&r->last);
    sl_keymap_fini(&r->late);
    free(r->todo);
    free(r->ids);
    free(r->epochs);
}

static void record_all(const sl_relay *r, const sl_batch *b, sl_rec_kind kind, bool attempts)
{
    for (size_t i = 0; i < b->count; i++) {
        const sl_msg *m = &b->msgs[i];
        (void)m;
        SL_RECORD(kind, r->worker, m->id, m->key, m->epoch,
                  attempts ? m->attempt : (int32_t)m->verdict);
    }
    (void)r;
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

/* ---- Breakers ---- */

/* With one way, an open breaker means that nothing is taken; with several, what is for the others is. */
static int64_t begin_ways(sl_relay *r)
{
    r->wait_ns = 0;
    for (size_t i = 0; i < r->way_count; i++) {
        sl_way *w = &r->ways[i];
        w->asked = w->up = w->down = false;
        w->flying = 0;
    }
    if (r->way_count != 1)
        return r->batch_max;
    sl_way *w = &r->ways[0];
    sl_pass pass = sl_way_pass(w);
    if (pass == SL_PASS_NONE)
        r->wait_ns = w->wait_ns;
    return pass == SL_PASS_ALL ? r->batch_max : pass == SL_PASS_ONE ? 1 : 0;
}

static void tell_breakers(sl_relay *r)
{
    for (size_t i = 0; i < r->way_count; i++) {
        sl_way *w = &r->ways[i];
        if (!w->asked || w->pass == SL_PASS_NONE)
            continue;
        sl_came came = w->down ? SL_CAME_DOWN : w->up ? SL_CAME_UP : SL_CAME_NOTHING;
        if (!sl_breaker_tell(w->route->breaker, w->pass, came) || !r->log)
            continue;
        if (w->down)
            sl_log_line(r->log, SL_LOG_ERROR,
                        "sink is down: its messages wait, and lose no attempts", "route",
                        w->route->name, "error", w->why, NULL);
        else
            sl_log_line(r->log, SL_LOG_INFO, "sink is up again", "route", w->route->name, NULL);
    }
}

/* ---- Counting first ---- */

static sl_rc take(sl_relay *r, int64_t max, sl_err *err)
{
    sl_batch_reset(&r->batch);
    return r->claim->ops->take(r->claim, &r->batch, max, err);
}

static sl_rc take_again(sl_relay *r, int64_t max, sl_err *err)
{
    size_t lost;
    for (size_t i = 0; i < r->batch.count; i++)
        r->batch.msgs[i].counted = false; /* what was counted stays so */
    sl_batch_settle_rest(&r->batch, SL_RELEASED, SL_NONE);
    sl_rc rc = r->claim->ops->settle(r->claim, &r->batch, &lost, err);
    return rc == SL_OK ? take(r, max, err) : rc;
}

/* One that was tried before may be what ended the program: such go alone. */
static bool has_suspects(const sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->msgs[i].attempt > 1)
            return true;
    return false;
}

static void note_ids(sl_relay *r)
{
    r->ids = sl_realloc(r->ids, (r->batch.count + 1) * sizeof *r->ids);
    for (size_t i = 0; i < r->batch.count; i++)
        r->ids[i] = r->batch.msgs[i].id;
}

/* Of what was taken again, that which was counted a moment ago. */
static void mark_counted(sl_relay *r, size_t n)
{
    for (size_t i = 0; i < r->batch.count; i++) {
        sl_msg *m = &r->batch.msgs[i];
        for (size_t k = 0; k < n && !m->counted; k++)
            m->counted = r->ids[k] == m->id;
        if (m->counted)
            m->attempt--; /* it was read with one more */
    }
}

/* Where the claim is an open transaction, that has to end before anything is durable: then it is claimed
 * once more. Another node may be quicker; it has the message then, with one attempt too many. */
static sl_rc count_first(sl_relay *r, sl_err *err)
{
    bool again = false;
    sl_rc rc = SL_OK;
    if (r->batch.count > 1 && has_suspects(&r->batch))
        rc = take_again(r, 1, err);
    size_t n = r->batch.count;
    if (rc != SL_OK || n == 0 || !r->claim->ops->count)
        return rc;
    note_ids(r);
    rc = r->claim->ops->count(r->claim, &r->batch, &again, err);
    if (rc == SL_OK && again)
        rc = take_again(r, (int64_t)n, err);
    if (rc == SL_OK && again)
        mark_counted(r, n);
    return rc;
}

/* ---- At most once ---- */

/* Of what is consumed, that with such a verdict; SL_PENDING: all. */
static size_t consumed_of(sl_relay *r, sl_verdict v)
{
    size_t n = 0;
    r->ids = sl_realloc(r->ids, (r->batch.count + 1) * sizeof *r->ids);
    r->epochs = sl_realloc(r->epochs, (r->batch.count + 1) * sizeof *r->epochs);
    for (size_t i = 0; i < r->batch.count; i++) {
        const sl_msg *m = &r->batch.msgs[i];
        if (!m->consumed || (v != SL_PENDING && m->verdict != v))
            continue;
        r->ids[n] = m->id;
        r->epochs[n++] = m->epoch;
    }
    return n;
}

/* A disk that is full, or worse: the node stops before it breaks the promise. */
static sl_rc no_journal(sl_rc rc, sl_err *err)
{
    if (rc == SL_OK || rc == SL_STOPPED)
        return rc;
    if (err)
        err->rc = SL_OPERATOR;
    return SL_OPERATOR;
}

/* From here on these messages are in nobody's way, and nobody but an operator sends them again. Nothing of them
 * may leave unless the journal, if one is kept, has it on disk. */
static sl_rc consume_all(sl_relay *r, size_t n, sl_err *err)
{
    sl_consume_stamp stamp = { 0 };
    sl_rc rc = r->journal ? no_journal(sl_journal_room(r->journal, n, err), err) : SL_OK;
    if (rc == SL_OK && r->journal) {
        sl_journal_stamp now = sl_journal_stamp_now(r->journal);
        stamp = (sl_consume_stamp){ now.journal, now.session, now.position };
    }
    if (rc == SL_OK)
        rc = r->claim->ops->consume(r->claim, &r->batch, &stamp, err);
    for (size_t i = 0; rc != SL_OK && i < r->batch.count; i++)
        r->batch.msgs[i].consumed = false;
    SL_FAULT("consumed");
    if (rc != SL_OK || !r->journal)
        return rc;
    n = consumed_of(r, SL_PENDING);
    return no_journal(sl_journal_sending(r->journal, r->ids, r->epochs, n, err), err);
}

/* Only what can be sent now: with a sink that is down none, to try one a single one. */
static bool to_consume(const sl_relay *r, sl_way *w)
{
    if (!w || !w->route->at_most_once || sl_way_pass(w) == SL_PASS_NONE)
        return false;
    if (w->pass == SL_PASS_ALL)
        return true;
    for (size_t i = 0; i < r->batch.count; i++)
        if (r->batch.msgs[i].consumed && &r->ways[r->batch.msgs[i].route] == w)
            return false;
    return true;
}

static sl_rc consume(sl_relay *r, sl_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->batch.count; i++) {
        sl_msg *m = &r->batch.msgs[i];
        m->consumed = to_consume(r, sl_relay_way(r, m));
        n += m->consumed;
    }
    return n ? consume_all(r, n, err) : SL_OK;
}

/* Those that were never handed over surely did not go out. */
static void tell_journal(sl_relay *r)
{
    if (!r->journal)
        return;
    size_t n = consumed_of(r, SL_SENT);
    if (n)
        sl_journal_verdict(r->journal, r->ids, n, SL_JOURNAL_SENT);
    n = consumed_of(r, SL_RELEASED);
    if (n)
        sl_journal_verdict(r->journal, r->ids, n, SL_JOURNAL_FAILED);
}

static void forget_in_journal(sl_relay *r)
{
    size_t n = r->journal ? consumed_of(r, SL_PENDING) : 0;
    if (n)
        sl_journal_settled(r->journal, r->ids, n);
}

/* ---- The turn ---- */

static sl_rc deliver(sl_relay *r, sl_err *err)
{
    sl_relay_route(r);
    sl_rc rc = SL_OK;
    if (sl_stop_level_of(r->stop) == SL_GO)
        rc = consume(r, err);
    if (rc == SL_OK && sl_stop_level_of(r->stop) == SL_GO && sl_relay_same(r))
        return sl_relay_deliver(r, err);
    sl_batch_settle_rest(&r->batch, SL_RELEASED,
                         SL_NONE); /* told to stop while it waited for them */
    return rc;
}

/* ---- Settling ---- */

/* A turn whose settle need not be waited for: the next one follows at once, and asks. A sink that takes its time has
 * to, and whoever waits for our lanes gets them after some turns. */
static bool may_post(const sl_relay *r, bool careful, int64_t began_ns)
{
    return r->claim->ops->post && r->posts < POSTS_MAX && !careful && !r->journal &&
           !r->exact && !r->terms.session &&
           sl_batch_count_of(&r->batch, SL_SENT) == r->batch.count &&
           sl_stop_level_of(r->stop) == SL_GO && sl_now_ns() - began_ns < r->quick_ns;
}

static void swap_posted(sl_relay *r)
{
    sl_batch b = r->batch;
    r->batch = r->posted;
    r->posted = b;
}

static sl_rc post(sl_relay *r, bool *posted, sl_err *err)
{
    swap_posted(r);
    sl_rc rc = r->claim->ops->post(r->claim, &r->posted, posted, err);
    if (!*posted) {
        swap_posted(r);
        return rc;
    }
    r->posts++;
    SL_FAULT("posted");
    return rc;
}

/* What became of the turn before. */
static sl_rc end_posted(sl_relay *r, sl_err *err)
{
    size_t lost = 0;
    if (r->posted.count == 0)
        return SL_OK;
    sl_rc rc = r->claim->ops->answered(r->claim, &lost, err);
    record_all(r, &r->posted, rc == SL_OK ? SL_REC_SETTLED : SL_REC_LOST, false);
    if (rc == SL_OK)
        count(r->counts, &r->posted, lost);
    sl_batch_reset(&r->posted);
    SL_FAULT("settled");
    return rc;
}

sl_rc sl_relay_rest(sl_relay *r, sl_err *err)
{
    r->found = 0;
    return end_posted(r, err);
}

/* Even when the claim was lost: what was sent should be marked if it can be. */
static sl_rc settle(sl_relay *r, sl_rc held, sl_err *err)
{
    size_t lost = 0;
    sl_batch *b = &r->batch;
    r->posts = 0;
    sl_rc rc = r->claim->ops->settle(r->claim, b, &lost, held == SL_OK ? err : &(sl_err){ 0 });
    record_all(r, b, rc == SL_OK && held == SL_OK ? SL_REC_SETTLED : SL_REC_LOST, false);
    r->unsettled = rc != SL_OK && r->exact && sl_batch_count_of(b, SL_SENT) > 0;
    if (rc == SL_OK) {
        count(r->counts, b, lost);
        forget_in_journal(r);
    }
    SL_FAULT("settled");
    return rc;
}

/* With nothing to send, too: what their libraries tell must not pile up. */
static void look_after_sinks(sl_relay *r)
{
    for (size_t i = 0; i < r->way_count; i++)
        r->ways[i].sink->ops->poll(r->ways[i].sink, 0);
}

/* Takes, delivers and settles at most `max`. *settled: something was, and the verdicts are written. */
static sl_rc turn(sl_relay *r, int64_t max, bool careful, bool *settled, sl_err *err)
{
    sl_batch *b = &r->batch;
    sl_rc rc = take(r, max, err);
    sl_rc before = end_posted(r, rc == SL_OK ? err : &(sl_err){ 0 });
    rc = rc == SL_OK ? before : rc;
    if (rc == SL_OK && b->count > 0 && careful)
        rc = count_first(r, err);
    if (rc == SL_OK && b->count == 0)
        look_after_sinks(r);
    r->found = rc == SL_OK ? b->count : 0;
    if (r->found == 0)
        return rc;
    r->counts->taken += b->count;
    if (r->took)
        r->took(r->took_ctx);
    record_all(r, b, SL_REC_TAKEN, true);
    SL_FAULT("taken");

    int64_t began_ns = sl_now_ns();
    sl_rc held = deliver(r, err);
    assert(b->settled == b->count);
    tell_journal(r);
    record_all(r, b, SL_REC_RESULT, false);
    SL_FAULT("sent");

    bool posted = false;
    if (held == SL_OK && may_post(r, careful, began_ns))
        rc = post(r, &posted, err);
    if (posted || rc != SL_OK)
        return rc;
    rc = settle(r, held, err);
    *settled = rc == SL_OK && held == SL_OK;
    return held != SL_OK ? held : rc;
}

sl_rc sl_relay_turn(sl_relay *r, sl_err *err)
{
    bool careful = false;
    bool settled = false;
    sl_batch_reset(&r->batch);
    r->found = 0;
    /* To enter care may mean to wait for others. And this may fail: so it comes before a breaker is asked, which has to be
     * told how it ended. */
    sl_rc rc = sl_care_taken(r->care) ? end_posted(r, err) : SL_OK;
    if (rc != SL_OK)
        return rc;
    int64_t max = begin_ways(r);
    if (max == 0)
        return end_posted(r, err);
    bool may = true;
    sl_rc ready = sl_relay_ready(r, &may, err);
    if (ready != SL_OK || !may) {
        tell_breakers(r);
        return ready;
    }
    max = sl_care_enter(r->care, max, &careful);
    rc = turn(r, max, careful, &settled, err);
    if (careful)
        sl_care_leave(r->care, !settled                  ? SL_STEP_STAY
                               : has_suspects(&r->batch) ? SL_STEP_SINGLE
                                                         : SL_STEP_LARGER);
    tell_breakers(r);
    return rc;
}
