/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the living begin. Messages go at the low end of the ids, and what is left of them, until it is
 * cleaned up, is read again with each claim; an old snapshot anywhere makes that worse and worse. So a
 * claim remembers a floor, and reads nothing below.
 *
 * Ids are given out in another order than they are committed: below what was delivered, messages may
 * still appear, and the next message of their key must not go first. So a floor is only *proposed* when
 * all that was seen below it has gone. It counts once every transaction that was writing to the table
 * after the proposal has ended, and a read after that found nothing below it. Which transactions those
 * are is asked in turns: a ticket is opened with the writers of that moment, and is ripe when they are
 * gone.
 *
 * Ids that were not drawn by the insert itself may appear anywhere at any time; so now and then a claim
 * reads from the very beginning.
 */
#ifndef SL_MEMBER_FLOOR_H
#define SL_MEMBER_FLOOR_H

#include "core/arena.h"
#include "core/keymap.h"
#include "db/db.h"

typedef struct sl_floor {
    int64_t at;
    int64_t next;   /* proposed; 0: nothing is */
    int64_t ticket; /* from which on it counts */
} sl_floor;

typedef struct sl_tickets sl_tickets; /* may be shared by threads */

sl_tickets *sl_tickets_new(void);
void sl_tickets_free(sl_tickets *t);
/* The server may have been started anew, after which a prepared transaction has another name: whom the open
 * ticket waits for is asked again. */
void sl_tickets_doubt(sl_tickets *t);
/* This one and those before are ripe. To be read before what is read from the table. */
int64_t sl_tickets_ripe(sl_tickets *t);

/* The writers of one moment. */
typedef struct sl_writers {
    sl_keymap map;
    sl_arena names;
    bool asked;
} sl_writers;

void sl_writers_fini(sl_writers *w);
/* Asks for those of the moment in which it is run. */
sl_call sl_writers_call(sl_writers *w, sl_db *db);
/* Is it time to ask? Then `call` is to be run, and sl_tickets_answered to be called, whatever happens. */
bool sl_tickets_ask(sl_tickets *t, sl_db *db, sl_writers *w, sl_call *call);
void sl_tickets_answered(sl_tickets *t, sl_writers *w, bool ok);

/* Nothing lives below, now or later: without a proposal. */
void sl_floor_raise(sl_floor *f, int64_t at);
/* All that was seen below `low` has gone. */
void sl_floor_propose(sl_floor *f, sl_tickets *t, int64_t low);
/* A read from f->at, or from the very beginning, found `first` as the first that lives; 0: none. `ripe`
 * is what was ripe before it. */
void sl_floor_seen(sl_floor *f, int64_t ripe, int64_t first);

#endif
