/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: which there are, and how they leave: back into the outbox, or for good. What is to leave is found
 * first, all of it, and then taken in small transactions in the order of the old ids. So the number is known before
 * anything happens, what dies meanwhile is left alone, and no transaction is large.
 */
#ifndef SL_CLI_DEAD_H
#define SL_CLI_DEAD_H

#include "db/db.h"

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

typedef struct sl_dead_ref {
    int64_t dead_id, id;
    int64_t bytes; /* of the payload */
    bool unknown;  /* it may have been delivered */
    bool there;    /* in the transaction that takes it: it is ours, and may go */
} sl_dead_ref;

typedef struct sl_dead_refs {
    sl_dead_ref *v;
    size_t count, cap;
} sl_dead_refs; /* zero-initialise */

/* Both append, and then sort by the old id. Ids of which there is nothing are left out, and so are those that are
 * named twice. */
SL_CHECK sl_rc sl_dead_find(sl_dead_refs *out, sl_db *db, const sl_dead_filter *f, sl_err *err);
SL_CHECK sl_rc sl_dead_pick(sl_dead_refs *out, sl_db *db, const int64_t *dead_ids, size_t n,
                            sl_err *err);
/* Which of these, sorted and each once, are none of the refs: into `missing`, which has room for all. How many. */
size_t sl_dead_missing(const sl_dead_refs *refs, const int64_t *dead_ids, size_t n,
                       int64_t *missing);
void sl_dead_refs_fini(sl_dead_refs *refs);

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
    bool left_out; /* in the last transaction, the table took less than it was given */
} sl_dead_job;

/* Safe beside nodes, producers and others who do the same: each dead letter leaves once. A failure leaves what was
 * done as it is, and the rest where it was. */
SL_CHECK sl_rc sl_dead_move(sl_dead_job *job, sl_dead_refs *refs, sl_err *err);

#endif
