/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes that a node owns, shared by its keeper, which gains and gives them up, and its workers,
 * which use them. Any worker may use any lane of its node, one at a time:
 *
 *   NONE -> OWNED       granted by the database, with an epoch
 *   OWNED -> LEAVING    no longer wished: nobody picks it any more
 *   LEAVING -> NONE     once no worker uses it: only then it is released in the database
 *   any -> NONE         void: the node was pruned, or the number of lanes has changed
 *
 * What was picked before a void is stale: the generation tells.
 */
#ifndef SL_MEMBER_LANES_H
#define SL_MEMBER_LANES_H

#include "member/final.h"
#include "member/floor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_lanes sl_lanes;

sl_lanes *sl_lanes_new(void);
void sl_lanes_free(sl_lanes *l);

/* ---- The keeper's side ---- */

/* Nothing is ours; there are `count` lanes. */
void sl_lanes_void(sl_lanes *l, size_t count);
/* Nothing lives below `floor`. */
void sl_lanes_grant(sl_lanes *l, size_t lane, int64_t epoch, int64_t floor);
/* Lanes that are ours and not wished begin to leave; those that leave and are wished again stay. */
void sl_lanes_wish(sl_lanes *l, const bool *wish);
/* Lanes that have left; they are no longer ours. Returns how many. `lanes` has room for all. */
size_t sl_lanes_left(sl_lanes *l, int64_t *lanes);
bool sl_lanes_owned(const sl_lanes *l, size_t lane); /* or leaving */
size_t sl_lanes_count(const sl_lanes *l);
size_t sl_lanes_owned_count(const sl_lanes *l);
/* From now on the node is this session; 0: it is none. */
void sl_lanes_begin(sl_lanes *l, int64_t session);
/* Until when (sl_now_ns) they may be used without asking again. */
void sl_lanes_trust(sl_lanes *l, int64_t until_ns);
/* How many nodes live, this one included, as far as is known. */
void sl_lanes_meet(sl_lanes *l, int64_t peers);
int64_t sl_lanes_peers(const sl_lanes *l);
/* Turns that began before the last void and still run: until they end, nothing should be acquired. */
size_t sl_lanes_stale(const sl_lanes *l);
/* Is what is known of them in doubt, and nobody uses one any more? Then all are to be voided, and acquired anew. Turns that
 * are on their way end first: they have sessions of their own, which tell if the server is another. Made stale they would
 * fail, their workers connect anew, and put all in doubt again. */
bool sl_lanes_doubted(const sl_lanes *l);
/* Becomes readable when the last use of a leaving lane, of any while they are doubted, or a stale turn, ends, or when they
 * are doubted; sl_lanes_left reads it. */
int sl_lanes_fd(const sl_lanes *l);

/* ---- For who looks below the floors, instead of the workers ---- */

typedef struct sl_lane_floors {
    uint64_t generation;
    size_t count, cap;
    int64_t *lanes, *floors;
    int64_t *found; /* lanes in which something lives below */
    size_t founds;
} sl_lane_floors;

void sl_lane_floors_fini(sl_lane_floors *f);
/* The floors of all lanes that are owned, as of the last turn of each; nothing is found. */
void sl_lanes_floors(const sl_lanes *l, sl_lane_floors *out);
/* Somebody has looked below those: what was found is read from the very beginning in its next turn, the others need not
 * be before `until_ns`. */
void sl_lanes_looked(sl_lanes *l, const sl_lane_floors *f, int64_t until_ns);

/* ---- A worker's side ---- */

typedef struct sl_lane_use {
    int64_t lane;
    int64_t epoch;
    sl_floor floor;
    int64_t forget_ns; /* when to look below the floor */
    bool below;        /* something lives there: the next turn reads from the very beginning */
    bool hungry;       /* had more than was taken */
} sl_lane_use;

/* The lanes that a worker took to itself for one turn. */
typedef struct sl_lane_uses {
    uint64_t generation;
    size_t count, cap;
    sl_lane_use *v;
} sl_lane_uses;

/* More lanes in one statement cost more than they bring. */
enum { SL_LANES_PART = 256 };

/* Begins a turn: a fair part, of bounded size, of the lanes that nobody uses: mostly those that had more, in turn, and always some of
 * the others. */
void sl_lanes_pick(sl_lanes *l, size_t workers, sl_lane_uses *out);
/* The turn that has these goes on as the next one, with what nobody uses beside them. */
void sl_lanes_pick_more(sl_lanes *l, size_t workers, sl_lane_uses *out);
/* Ends the turn: what of it is still ours may be picked again. */
void sl_lanes_put(sl_lanes *l, sl_lane_uses *uses);
/* The turn goes on without these. */
void sl_lanes_put_early(sl_lanes *l, uint64_t generation, const sl_lane_use *v, size_t n);
/* A worker has connected anew, perhaps to a server that has forgotten its last moments, and gives out ids again
 * that were below a floor: nothing is picked until the keeper has voided them. For tables whose floors are kept. */
void sl_lanes_doubt(sl_lanes *l);
/* A worker takes no turns for a while, or does again: its part is for the others. */
void sl_lanes_rest(sl_lanes *l, bool rests);
bool sl_lanes_current(const sl_lanes *l, uint64_t generation);
int64_t sl_lanes_trusted_ns(const sl_lanes *l);
int64_t sl_lanes_session(const sl_lanes *l);
sl_tickets *sl_lanes_tickets(const sl_lanes *l); /* for the floors of all lanes */
sl_final *sl_lanes_final(const sl_lanes *l);     /* the same, where ids become final */

#endif
