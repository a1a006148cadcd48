/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that wait. One is blocked while its first message, which failed or is scheduled, is not due; parked when only an
 * operator lets it go on: by the failure policy, or by hand. A message without a key, and one of strategy skip-locked,
 * is parked alone.
 */
#ifndef SL_CLI_KEYS_H
#define SL_CLI_KEYS_H

#include "core/arena.h"
#include "db/db.h"

typedef enum sl_keys_state { SL_KEYS_ANY, SL_KEYS_BLOCKED, SL_KEYS_PARKED } sl_keys_state;

typedef struct sl_keys_filter {
    sl_str key;
    int64_t message;      /* it, or the key that it belongs to; 0: any */
    sl_str topic, prefix; /* of the first message: it, or how it begins */
    sl_keys_state state;
    int64_t older_us;
} sl_keys_filter; /* absent: anything */

typedef struct sl_keys_counts {
    int64_t blocked, parked; /* keys */
    int64_t alone;           /* messages */
} sl_keys_counts;

SL_CHECK sl_rc sl_keys_count(sl_keys_counts *out, sl_db *db, const sl_keys_filter *f,
                             sl_err *err);

/* The columns of keys/list. */
enum {
    SL_KEYS_KEY,
    SL_KEYS_ALONE,
    SL_KEYS_ID, /* NULL: nothing waits yet */
    SL_KEYS_TOPIC,
    SL_KEYS_IS_PARKED,
    SL_KEYS_BY_HAND,
    SL_KEYS_BEHIND,
    SL_KEYS_ATTEMPTS,
    SL_KEYS_SINCE,
    SL_KEYS_AGE_US,
    SL_KEYS_DUE_US, /* NULL: parked */
    SL_KEYS_REASON
};

/* The longest waiting first. */
SL_CHECK sl_rc sl_keys_list(sl_db *db, const sl_keys_filter *f, int64_t limit, sl_row_fn row,
                            void *ctx, sl_err *err);

typedef struct sl_key_ref {
    sl_str key; /* absent: a message alone, whatever its key */
    int64_t id; /* of the first message; 0: none */
    int64_t attempts, behind;
    bool parked, by_hand;
} sl_key_ref;

typedef struct sl_key_refs {
    sl_key_ref *v;
    size_t count, cap;
    sl_arena arena; /* the keys */
} sl_key_refs;      /* zero-initialise */

SL_CHECK sl_rc sl_keys_find(sl_key_refs *out, sl_db *db, const sl_keys_filter *f, sl_err *err);
void sl_key_refs_fini(sl_key_refs *refs);

typedef struct sl_keys_job {
    sl_db *db;
    bool resume; /* else: retry */
    void (*step)(void *ctx, size_t seen);
    void *ctx;
    /* out: */
    int64_t keys, messages; /* that were still blocked, or parked */
} sl_keys_job;

/* Blocked keys are due now, or parked ones go on: in small transactions, safe beside nodes. */
SL_CHECK sl_rc sl_keys_move(sl_keys_job *job, const sl_key_refs *refs, sl_err *err);

/* Stops a key. *parked: it was not before. Nothing of it is taken from then on; what is in flight is still delivered.
 * SL_OPERATOR where the lane of a key that does not wait is not known. */
SL_CHECK sl_rc sl_keys_park(sl_db *db, const sl_names *names, sl_str key, sl_str reason,
                            bool *parked, sl_err *err);

/* ---- skip-head (keys_skip.c) ---- */

/* The first message of a key that waits, held or not; 0: there is none, or the key does not wait. */
SL_CHECK sl_rc sl_keys_first(sl_db *db, sl_str key, int64_t *id, sl_err *err);

typedef struct sl_key_skip {
    sl_db *db;
    const sl_names *names;
    sl_str key;      /* absent: a message that is parked alone */
    int64_t id;      /* it must be the first of its key */
    int64_t wait_ns; /* for whoever may have it in flight */
    /* out: */
    bool stays; /* the key had been parked by hand, and is still */
} sl_key_skip;

/* The first message of a blocked or parked key becomes a dead letter, and the key goes on. Only when nobody can have
 * the message in flight. */
SL_CHECK sl_rc sl_keys_skip(sl_key_skip *skip, sl_err *err);

#endif
