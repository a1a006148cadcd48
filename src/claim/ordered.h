/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all strategies that keep order share: the rows of a claim are sorted into messages that may go
 * and messages that must wait, and the settle writes both.
 *
 * A message waits when it failed, when its time has not come, or behind one of its key that waits.
 * It is then *held*, and its key, if it has one, is *blocked* until its head is due. Held messages
 * are looked for by key and by time only, so that they cost the others nothing. A key that is due is
 * served from its held messages, in order, until none is left: then it is as any other.
 *
 * With `delays`, a scheduled message that was never tried is *delayed* instead: it is held, its key is
 * not blocked for it, and it is found by its time. When that has come it goes, if its key is not blocked;
 * else it rejoins the held ones of the key. So a held message is always found: by its key, or delayed.
 */
#ifndef SL_CLAIM_ORDERED_H
#define SL_CLAIM_ORDERED_H

#include "claim/claim.h"
#include "core/keymap.h"

typedef struct sl_id_list {
    int64_t *v;
    size_t count, cap;
} sl_id_list;

void sl_id_list_add(sl_id_list *l, int64_t id);

typedef struct sl_str_list {
    sl_str *v;
    size_t count, cap;
} sl_str_list;

void sl_str_list_add(sl_str_list *l, sl_str s);

/* What one turn found beside the messages that may go. */
typedef struct sl_ordered {
    sl_batch *batch;
    int64_t max, bytes_max;
    int64_t bytes;
    bool over;            /* the batch is full: what comes now is left */
    sl_keymap closed;     /* keys of which nothing more may be taken in this turn */
    sl_id_list behind;    /* to be held */
    sl_id_list scheduled; /* to be held, and their keys blocked until they are due */
    bool delays;          /* keys do not wait for scheduled messages that were never tried */
    sl_id_list delayed;   /* those: to be held alone */
    sl_id_list rejoining; /* delayed ones that are due, and whose keys are blocked */
    sl_str_list served;   /* blocked keys that were due */
} sl_ordered;

void sl_ordered_begin(sl_ordered *o, sl_batch *b, int64_t max, int64_t bytes_max);
void sl_ordered_fini(sl_ordered *o);

enum { SL_COL_LANE = 10, SL_COL_WAIT };
/* Why a message may not go: its key is blocked; it is not yet due; the same, and it was never tried; its
 * payload did not come with it. */
enum { SL_WAIT_NOT, SL_WAIT_KEY, SL_WAIT_TIME, SL_WAIT_DELAY, SL_WAIT_LARGE };

/* An sl_row_fn for the rows of claim/rows.h, with two more columns:
 *   lane, wait (SL_WAIT_NOT and so on, but SL_WAIT_LARGE)
 * A row without id is a key that is due and has nothing held. */
sl_rc sl_ordered_row(void *ordered, const sl_val *cols, sl_err *err);
/* The same for rows that are held already. */
sl_rc sl_ordered_due_row(void *ordered, const sl_val *cols, sl_err *err);
/* The same for rows that are delayed, and due. */
sl_rc sl_ordered_delayed_row(void *ordered, const sl_val *cols, sl_err *err);

typedef struct sl_ordered_how {
    bool in_transaction; /* one is open that only this worker can end: it is the fence */
    const char *
        mark; /* NULL, or statement: says of all below its floor in each lane that it is done, by `claims` */
    const char
        *sent; /* statement: deletes by id and epoch, for what has nothing else to write */
    const sl_val
        *claims; /* NULL, or what it takes instead of each message's: lanes, epochs; floors */
    const char *keep;     /* NULL, or statement: copies by the same what is to be kept */
    const sl_call *fence; /* locks the claims, and returns those that are still ours */
    int64_t fenced;       /* so many should be */
    const sl_call *done;  /* let go of the claims: so many, or none */
    size_t dones;
    int64_t retry_base_ns, retry_max_ns;
} sl_ordered_how;

/* The same, with room for what it points to. */
typedef struct sl_fencing {
    sl_val in[3];
    sl_call fence;
    sl_ordered_how how;
} sl_fencing;

/* Writes every verdict of the batch, and what the turn found; with an empty batch, only that. When a
 * claim was lost, only deletions are written, where the claim on that message still holds. */
SL_CHECK sl_rc sl_ordered_settle(sl_db *db, sl_ordered *o, const sl_ordered_how *how,
                                 size_t *lost, sl_err *err);

/* The same of a batch all of which was sent, when nothing else has to be written, without waiting for the answer.
 * *posted: so it was; a run answers it. */
typedef struct sl_ordered_post {
    sl_call call;
    sl_post post;
    size_t sent;
    bool marked;
} sl_ordered_post;

SL_CHECK sl_rc sl_ordered_post_sent(sl_db *db, const sl_ordered *o, sl_batch *b,
                                    const sl_ordered_how *how, sl_ordered_post *p, bool *posted,
                                    sl_err *err);
/* What was answered: so many were lost; *written false: a mark was not written, and nothing else either. */
size_t sl_ordered_post_lost(const sl_ordered_post *p, bool *written);
/* Moves what is to be consumed out of the table, durably; SL_AGAIN: the claim is lost, and nothing was. */
SL_CHECK sl_rc sl_ordered_consume(sl_db *db, const sl_ordered_how *how, sl_batch *b,
                                  const char *worker, const sl_consume_stamp *stamp,
                                  sl_err *err);
/* The same, but for the commit: that is for the caller to do. */
SL_CHECK sl_rc sl_ordered_move(sl_db *db, const sl_ordered_how *how, sl_batch *b,
                               const char *worker, const sl_consume_stamp *stamp, sl_err *err);
/* Counts the attempts of all messages, and marks them so. */
SL_CHECK sl_rc sl_ordered_count(sl_db *db, sl_batch *b, sl_err *err);

/* Is there anything to do? By a statement that says so. */
SL_CHECK sl_rc sl_ordered_peek(sl_db *db, const char *stmt, const sl_val *in, bool *any,
                               sl_err *err);

/* Runs the statements that keep delivered messages on nothing; `own` is that of the strategy. */
SL_CHECK sl_rc sl_ordered_rehearse_keep(sl_db *db, const char *own, bool consumes, sl_err *err);

/* Runs a statement that deletes what was sent on nothing. */
SL_CHECK sl_rc sl_ordered_rehearse_sent(sl_db *db, const char *sent, sl_err *err);

/* Runs every statement of the settle on nothing; and those of at most once, if that is wanted. */
SL_CHECK sl_rc sl_ordered_rehearse(sl_db *db, bool consumes, sl_err *err);

/* Was nothing of it tried? */
static inline bool sl_ordered_untried(const sl_batch *b)
{
    return b->count > 0 && sl_batch_count_of(b, SL_RELEASED) == b->count;
}

/* Has the turn found anything that waits? */
static inline bool sl_ordered_found(const sl_ordered *o)
{
    return o->behind.count || o->scheduled.count || o->delayed.count || o->rejoining.count ||
           o->served.count;
}

#endif
