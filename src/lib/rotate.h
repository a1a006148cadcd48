/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chore of a table of layout `rotated`: what nodes have written of their positions is folded into one row, and
 * segments in which nothing is left to do are emptied; where something is held, what is done around it is deleted. In
 * place of a vacuum: there is nothing to vacuum.
 */
#ifndef SL_LIB_ROTATE_H
#define SL_LIB_ROTATE_H

#include "lib/janitor.h"

enum { SL_ROTATE_SEGMENTS = 16 }; /* at most */

/* A segment that could go, but for somebody who reads it or writes to it. */
typedef struct sl_rotate_busy {
    int64_t segment; /* 0: none */
    unsigned tries;
    int64_t next_ns; /* not before that, for who tries makes others wait */
} sl_rotate_busy;

typedef struct sl_rotate {
    int64_t (*written)(void *ctx); /* how many messages this node has settled */
    void *ctx;
    int64_t base;    /* of them, how many when the chore was last due */
    bool idle;       /* none since the time before */
    int64_t low;     /* rows of positions below were folded */
    int64_t full_ns; /* when all of them are folded again */
    sl_rotate_busy busy[SL_ROTATE_SEGMENTS];
} sl_rotate;

sl_chore sl_rotate_chore(sl_rotate *r);

/* Is it such a table at all? */
SL_CHECK sl_rc sl_rotate_is(sl_db *db, bool *rotated, sl_err *err);

#endif
