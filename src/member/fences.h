/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that send under names of their own, at places where whoever uses a name anew shuts out who used it before. What a
 * node registers here outlives it: before anyone takes over from a node that is gone, its names are used anew, so that
 * nothing of it, however late, gets in. One row for each place; one function for each thing that can be asked or done,
 * no state.
 */
#ifndef SL_MEMBER_FENCES_H
#define SL_MEMBER_FENCES_H

#include "db/db.h"

/* Where a node sends: by route, as it counts them. */
typedef struct sl_places {
    const int64_t *ways;
    const sl_str *texts;
    size_t count;
} sl_places;

/* A node that is gone, and has to be kept out there. */
typedef struct sl_fence_job {
    int64_t session;
    int64_t way;
    char *node;
    int64_t workers;
    char *place;
} sl_fence_job;

typedef struct sl_fence_jobs {
    sl_fence_job *v;
    size_t count, cap;
} sl_fence_jobs;

void sl_fence_jobs_fini(sl_fence_jobs *j);
/* Is there any that nobody is at? */
SL_CHECK sl_rc sl_fences_any(sl_db *db, bool *any, sl_err *err);
/* Those are ours to do for so long. */
SL_CHECK sl_rc sl_fences_take(sl_db *db, int64_t busy_ns, sl_fence_jobs *out, sl_err *err);
/* It is kept out. What it is known to have delivered goes from the table in the same transaction, as by a settle; `keep`:
 * into that of delivered messages. *gone: so many. */
SL_CHECK sl_rc sl_fences_done(sl_db *db, const sl_fence_job *j, const int64_t *ids, size_t n,
                              bool keep, int64_t *gone, sl_err *err);
/* The node's own rows, when it leaves and nothing of it is under way. */
SL_CHECK sl_rc sl_fences_forget(sl_db *db, int64_t session, sl_err *err);
/* Is this session a node? Then nobody has kept it out so far. */
SL_CHECK sl_rc sl_fences_lives(sl_db *db, int64_t session, bool *lives, sl_err *err);
/* Runs every statement once on nothing. */
SL_CHECK sl_rc sl_fences_rehearse(sl_db *db, sl_err *err);

#endif
