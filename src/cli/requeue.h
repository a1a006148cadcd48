/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a side table that become messages again, or go for good. What it is about is found first, all of it, and then
 * taken in small transactions in the order of the old ids. So the number is known before anything happens, what comes
 * meanwhile is left alone, and no transaction is large.
 */
#ifndef SL_CLI_REQUEUE_H
#define SL_CLI_REQUEUE_H

#include "db/db.h"

typedef struct sl_ref {
    int64_t row_id; /* its own, in the side table */
    int64_t id;     /* of the message that it was */
    int64_t bytes;  /* of the payload */
    bool unknown;   /* of a dead letter: it may have been delivered */
    bool there;     /* in the transaction that takes it: it is ours, and may go */
} sl_ref;

typedef struct sl_refs {
    sl_ref *v;
    size_t count, cap;
} sl_refs; /* zero-initialise */

/* An sl_row_fn that appends: row_id, id, bytes. */
SL_CHECK sl_rc sl_refs_row(void *refs, const sl_val *cols, sl_err *err);
/* By the old id; one that is there twice stays once. */
void sl_refs_sort(sl_refs *refs);
/* Which of these, sorted and each once, are no row_id of the refs: into `missing`, which has room for all. How many. */
size_t sl_refs_missing(const sl_refs *refs, const int64_t *row_ids, size_t n, int64_t *missing);
void sl_refs_fini(sl_refs *refs);

/* The statements of a transaction, in this order; all take the rows' own ids and their old ones. */
typedef struct sl_requeue_how {
    const char *lock; /* those that are still there */
    const char *
        taken; /* NULL, or those that cannot be inserted: row_id, id in the way, its idempotency key */
    const char *unregister; /* NULL, or lets go of what the insert registers again */
    const char *insert;     /* NULL, or into the outbox */
    const char *drop;       /* NULL, or out of the side table */
    const char *noun;       /* what a row is called, for people: "dead letter" */
    bool by_row; /* and its number is the row's own; else that of the message that it was */
} sl_requeue_how;

typedef struct sl_requeue {
    sl_db *db;
    sl_requeue_how how;
    void (*stays)(void *ctx, const sl_ref *ref, const char *why);
    void (*step)(void *ctx, size_t seen); /* of all refs, so many are through */
    void *ctx;
    /* out: */
    size_t done;
    size_t gone;   /* someone else took them away meanwhile */
    size_t stayed; /* could not be inserted: stays() was told why */
    bool left_out; /* in the last transaction, the table took less than it was given */
} sl_requeue;

/* Safe beside nodes, producers and others who do the same. A failure leaves what was done as it is, and the rest where
 * it was. */
SL_CHECK sl_rc sl_requeue_run(sl_requeue *job, sl_refs *refs, sl_err *err);

#endif
