/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's loop body: take, submit, await, recall, settle. It sees interfaces, never an
 * implementation. */
#ifndef SL_RELAY_RELAY_H
#define SL_RELAY_RELAY_H

#include "claim/claim.h"
#include "core/keymap.h"
#include "core/log.h"
#include "core/stop.h"
#include "journal/journal.h"
#include "relay/care.h"
#include "relay/route.h"
#include "relay/unrouted.h"
#include "sink/sink.h"

#include <stdatomic.h>

/* What a worker did so far; written by its thread, read by anyone. */
typedef struct sl_counts {
    _Atomic uint64_t taken, sent, retried, dead, unknown, released, lost, turns, reconnects;
} sl_counts;

/* A route as one worker uses it: with a sink of its own, and what is known of it in this turn. */
typedef struct sl_way {
    sl_route *route;
    sl_sink *sink;
    bool asked; /* the breaker was */
    sl_pass pass;
    int64_t wait_ns; /* of SL_PASS_NONE */
    bool inside;     /* it has one of the route's places */
    size_t flying;   /* handed over, and without a verdict when it was last looked */
    bool up, down;   /* the sink has answered; it is out of order */
    char why[160];   /* it is */
} sl_way;

/* Of a node that sends under names of its own: which session it is now, and whether the database still knows it. */
typedef struct sl_terms {
    void *ctx;
    int64_t (*session)(void *ctx); /* 0: none */
    SL_CHECK sl_rc (*lives)(void *ctx, int64_t session, bool *lives, sl_err *err);
} sl_terms;

typedef struct sl_relay {
    sl_claim *claim;
    sl_way *ways; /* the first that wants a message's topic takes it */
    size_t way_count;
    sl_care *care;       /* or NULL */
    sl_journal *journal; /* or NULL: none is kept */
    sl_terms terms;      /* of sinks with a fence; else zero */
    int64_t session;     /* for which they were made ready */
    bool unvouched;      /* the database has not confirmed it since */
    bool exact;          /* what they say was sent must not be sent again */
    bool unsettled;      /* such a turn could not be settled: `again` */
    bool unclean; /* it is not known what became of something, and nobody will find out */
    void (*took)(
        void *ctx); /* told when a turn has taken something, before that is sent; or NULL */
    void *took_ctx;
    sl_stop *stop;
    sl_counts *counts;
    sl_log *log;           /* or NULL */
    sl_unrouted *unrouted; /* or NULL: what the log has not named yet */
    int64_t batch_max;     /* messages per turn */
    int64_t send_max_ns;   /* a sink that has no answer by then is recalled */
    int64_t quick_ns;      /* after a turn whose sink took longer its settle is waited for */
    const char *worker;    /* "node/3" */
    int64_t
        wait_ns;  /* after a turn that took nothing since the sink is down: how long to wait */
    size_t found; /* so many messages did the last turn take */
    sl_batch batch;
    sl_batch
        posted; /* what the turn before has sent, while its settle is not answered; or empty */
    unsigned posts; /* turns in a row that did so */
    sl_keymap last; /* with an ordered claim: by key, the last message that was handed over */
    sl_keymap late; /* the same: keys of which one has to wait, while it is gone through them */
    int64_t *at;    /* in `last`, of the key that is looked at; or NULL */
    size_t *todo;   /* messages that were not handed over yet */
    size_t todo_count, todo_cap;
    int64_t *ids,
        *epochs; /* for a while: counted before they were taken again, or for the journal */
} sl_relay;

void sl_relay_fini(sl_relay *r); /* the members from `batch` on */

/* One turn. r->found is what was taken: 0 means that there was nothing to do. */
SL_CHECK sl_rc sl_relay_turn(sl_relay *r, sl_err *err);

/* Waits until what the last turn has sent is settled. To be called when no other turn follows at once. */
SL_CHECK sl_rc sl_relay_rest(sl_relay *r, sl_err *err);

/* Of the batch, all that may go, each by its way, until every message has its verdict, the claim is lost, or
 * there is no more time. (relay/deliver.c) */
SL_CHECK sl_rc sl_relay_deliver(sl_relay *r, sl_err *err);
/* May anything go this way in this turn? The breaker is asked once. */
sl_pass sl_way_pass(sl_way *w);
/* Makes sinks with a fence ready for a turn, before anything is taken. *may: it can begin. (relay/ready.c) */
SL_CHECK sl_rc sl_relay_ready(sl_relay *r, bool *may, sl_err *err);
/* Is the node still what they were made ready for? To be asked when messages have been taken. */
bool sl_relay_same(const sl_relay *r);
/* Waits until the sinks know what became of all that they were handed, unless told to stop now. */
void sl_relay_find_out(sl_relay *r);
/* Which way each message goes. */
void sl_relay_route(sl_relay *r);

static inline sl_way *sl_relay_way(sl_relay *r, const sl_msg *m)
{
    return m->route < 0 ? NULL : &r->ways[m->route];
}

#endif
