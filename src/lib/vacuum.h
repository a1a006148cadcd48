/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chore that keeps the outbox small while much goes through it. Each delivered message leaves a dead row and dead
 * index entries. Autovacuum comes once a minute by default: at 40,000 messages a second that is 600 MB, and an index never
 * gives it back. So a node that has delivered many vacuums by itself, if its role may: only an owner may. PostgreSQL only.
 */
#ifndef SL_LIB_VACUUM_H
#define SL_LIB_VACUUM_H

#include "lib/janitor.h"

typedef struct sl_vacuum {
    int64_t (*written)(void *ctx); /* so many rows were deleted or changed so far */
    void *ctx;
    int64_t base; /* as of the last vacuum */
    int64_t dead; /* what has gone between that and the one before it */
    int64_t step; /* so many more, and it is due again */
    bool ran, asked;
} sl_vacuum; /* set the first two, the rest zero */

/* v must outlive the janitor, which is the only one to touch it then. */
sl_chore sl_vacuum_chore(sl_vacuum *v);

#endif
