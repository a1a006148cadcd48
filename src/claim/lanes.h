/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of strategy lanes share: claim/lanes.c, which takes and settles, and claim/lanes_read.c. */
#ifndef SL_CLAIM_LANES_H
#define SL_CLAIM_LANES_H

#include "claim/claim.h"
#include "claim/marks.h"
#include "claim/ordered.h"
#include "claim/stretch.h"

#include <assert.h>

typedef struct sl_lanes_claim {
    sl_claim base;
    sl_db *db;
    sl_claim_conf conf;
    sl_lane_uses uses;
    bool using; /* a turn has begun */
    sl_ordered found;
    int64_t due_ns; /* when blocked keys are looked for again */
    bool busy;      /* the last turn found messages that are not held */
    bool forgot;    /* some lanes are read from the very beginning in this turn */
    bool looks;     /* of some it is asked whether anything lives below their floors */
    bool can_look;  /* there is a statement for that; else they are read */
    int64_t *lanes, *floors, *quotas, *epochs; /* of the uses, as parameters */
    int64_t *firsts;                           /* of each, what was read first */
    int64_t last;                              /* of all, what was read last */
    sl_stretch stretch;
    bool together;  /* this turn's messages came in one piece of the table */
    bool held;      /* and some that were held before, by their keys and times */
    bool stretched; /* they are settled as a stretch */
    bool beyond;    /* there is more behind it, or that was not asked */
    bool large;     /* it met one that is too large for a stretch */
    sl_marks marks;
    bool mark; /* what this turn has taken may be marked, if all of it is sent */
    sl_writers writers;
    sl_batch *posted; /* or NULL: its settle is on the way */
    sl_ordered_post post;
    sl_rc posted_rc; /* what became of it */
    size_t posted_lost;
    sl_lane_use *undo; /* its lanes, as they were before */
    size_t undo_count, undo_cap;
    size_t cap;
    size_t *where; /* of each lane of the table, its place among the uses */
    size_t where_cap;
    int64_t *froms; /* of each lane of the table, from which id on a stretch has it */
    size_t froms_cap;
} sl_lanes_claim;

/* The place of a lane of this turn, by the uses as they were when it was last planned; asked for each message. */
static inline size_t sl_lanes_place(const sl_lanes_claim *c, int64_t lane)
{
    assert((size_t)lane < c->where_cap && c->where[lane] < c->uses.count &&
           c->uses.v[c->where[lane]].lane == lane); /* no other lane was asked for */
    return c->where[lane];
}
/* To be called when the uses have changed. */
void sl_lanes_plan_places(sl_lanes_claim *c);
/* How many messages each lane may give. */
void sl_lanes_plan_quotas(sl_lanes_claim *c, int64_t max);
/* After a run that may have brought it (another one brings it to the next of these): finds out what became of a settle that
 * was on the way, and finishes it. */
SL_CHECK sl_rc sl_lanes_conclude(sl_lanes_claim *c, sl_err *err);
/* What the lanes of this turn have, in one round trip or two. What waits is in c->found, and not in the batch. */
SL_CHECK sl_rc sl_lanes_read(sl_lanes_claim *c, sl_batch *b, int64_t max, sl_err *err);

#endif
