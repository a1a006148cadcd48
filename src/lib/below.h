/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chore that looks below the floors of a node's lanes, so that its workers need not: a row whose id was not drawn by
 * its own insert may appear there at any time. Who looks passes by all that was delivered since the last look and was not
 * cleaned up yet, and meanwhile a worker would deliver nothing. Where it finds something, the workers read that lane from
 * the very beginning; while it has not looked for a while, and where little is delivered, they look by themselves.
 * PostgreSQL only: elsewhere nothing is left of what was delivered.
 */
#ifndef SL_LIB_BELOW_H
#define SL_LIB_BELOW_H

#include "lib/janitor.h"
#include "member/lanes.h"

typedef struct sl_below {
    int64_t (*written)(void *ctx); /* how many messages this node has settled */
    void *ctx;
    sl_lanes *lanes;
    int64_t base;    /* of them, how many at the last look */
    int64_t next_ns; /* not before that, for the last one took long */
    sl_lane_floors floors;
} sl_below; /* set the first three, the rest zero */

/* b must outlive the janitor, which is the only one to touch it then. */
sl_chore sl_below_chore(sl_below *b);
void sl_below_fini(sl_below *b);

#endif
