/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: which there are, and how they leave: back into the outbox, or for good (cli/requeue.h).
 */
#ifndef SL_CLI_DEAD_H
#define SL_CLI_DEAD_H

#include "cli/requeue.h"

typedef struct sl_dead_filter {
    sl_str topic, prefix; /* the topic, or how it begins */
    sl_str key;
    sl_str error;               /* a part of it */
    int64_t older_us, newer_us; /* since it died; 0: whenever */
    bool unknown;               /* only those that may have been delivered */
} sl_dead_filter;               /* absent: anything */

/* A topic as it is written: exact, or with a * at its end. It is borrowed. */
void sl_dead_filter_topic(sl_dead_filter *f, const char *topic);
bool sl_dead_filter_is_empty(const sl_dead_filter *f);

typedef struct sl_dead_counts {
    int64_t matching, total;
} sl_dead_counts;

SL_CHECK sl_rc sl_dead_count(sl_dead_counts *out, sl_db *db, const sl_dead_filter *f,
                             sl_err *err);
/* The newest first; the columns are those of dead/list. */
SL_CHECK sl_rc sl_dead_list(sl_db *db, const sl_dead_filter *f, int64_t limit, sl_row_fn row,
                            void *ctx, sl_err *err);

typedef sl_refs sl_dead_refs; /* the row's own id is dead_id */

/* Both append, and then sort by the old id. Ids of which there is nothing are left out, and so are those that are
 * named twice. */
SL_CHECK sl_rc sl_dead_find(sl_dead_refs *out, sl_db *db, const sl_dead_filter *f, sl_err *err);
SL_CHECK sl_rc sl_dead_pick(sl_dead_refs *out, sl_db *db, const int64_t *dead_ids, size_t n,
                            sl_err *err);

typedef struct sl_dead_job {
    sl_db *db;
    bool resend; /* else: drop */
    void (*stays)(void *ctx, int64_t dead_id, const char *why);
    void (*step)(void *ctx, size_t seen); /* of all refs, so many are through */
    void *ctx;
    /* out: */
    size_t done;   /* resent, or dropped */
    size_t gone;   /* someone else took them away meanwhile */
    size_t stayed; /* could not be resent: stays() was told why */
} sl_dead_job;

/* Safe beside nodes, producers and others who do the same: each dead letter leaves once. A failure leaves what was
 * done as it is, and the rest where it was. */
SL_CHECK sl_rc sl_dead_move(sl_dead_job *job, sl_dead_refs *refs, sl_err *err);

#endif
