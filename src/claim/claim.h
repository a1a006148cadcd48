/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers share one table: a strategy is one file behind one table of functions. It is
 * mostly SQL; the C only orders the statements. A claim belongs to one worker, that is to one
 * thread and one connection.
 *
 *   take     fills an empty batch with at most `max` messages that this worker, and nobody
 *            else, may deliver now; none is no error. Messages come in the order of their ids.
 *   hold     are they still ours? Called before each send and while the sink works; renews
 *            when that is due, and otherwise costs nothing. SL_AGAIN: the claim is lost or can
 *            no longer be trusted.
 *   trusted  until when (sl_now_ns) messages of the batch may be sent without asking again;
 *            counted from before the request that gained the claim.
 *   settle   writes every verdict and lets go of the claim. SL_SENT goes from the table, and with
 *            `keep` into that of delivered messages, in the same transaction;
 *            SL_RETRY and SL_UNKNOWN come back after their delay, SL_DEAD moves to the dead
 *            letters, SL_RELEASED comes back as if never taken, SL_HELD stays as it is. What
 *            someone else has taken over meanwhile is left alone, and counted in *lost.
 *
 *   post     settles a batch that was sent as a whole without waiting for the answer: the next take brings it, in the
 *            same round trip, and gives nothing if it is bad. *posted false: it cannot be done so now, and nothing was
 *            written. Until it is answered the batch has to live, and nothing else may be done with the claim.
 *   answered what became of it: after that take, or instead of it, when it waits for the answer.
 *   peek     is there anything to do, for anyone? For those that have found nothing.
 *   count    counts the attempts of the batch in the table, durably, before they are made; otherwise they
 *            are counted when they have failed. *again: for that the claim has to be settled and taken anew.
 *   consume  moves those that are to be `consumed` out of the table, into the list of what may have been
 *            sent, durably. They stay claimed as far as the order of their keys is concerned. SL_AGAIN: the
 *            claim is lost, and none was, unless the connection was lost, too: then those that were are listed
 *            when the worker begins anew. What cannot be claimed any more beside them is released.
 *
 * After any failure the claim is void: close it, and the connection; what was taken comes back
 * by itself.
 */
#ifndef SL_CLAIM_CLAIM_H
#define SL_CLAIM_CLAIM_H

#include "core/batch.h"
#include "core/clock.h"
#include "core/err.h"
#include "db/db.h"
#include "member/lanes.h"

typedef enum sl_hold { SL_HOLD_LEASE, SL_HOLD_TRANSACTION } sl_hold;

typedef struct sl_claim_conf {
    const char *worker; /* "node/3": who holds it, for people */
    int64_t batch_bytes;
    int64_t lease_ns;
    sl_hold hold;
    int64_t retry_base_ns; /* delay after the first failure; doubles */
    int64_t retry_max_ns;
    bool keep;       /* delivered messages */
    bool exact;      /* what was sent must be settled before anyone else has it */
    bool consumes;   /* some of it is delivered at most once */
    bool rotated;    /* the table's rows stay, and are marked as done: claim/marks.h */
    bool again;      /* by a worker that had a connection before */
    bool delays;     /* a key does not wait for a scheduled message that was never tried */
    sl_lanes *lanes; /* what the node owns, and until when it is trusted; or NULL */
    int64_t workers; /* that share them */
} sl_claim_conf;

/* What goes into the table with a consumption, of the node's journal; all 0: none is kept. */
typedef struct sl_consume_stamp {
    int64_t journal, opened_by, position;
} sl_consume_stamp;

typedef struct sl_claim_ops sl_claim_ops;

typedef struct sl_claim {
    const sl_claim_ops *ops;
} sl_claim; /* a strategy's struct begins with it */

struct sl_claim_ops {
    const char *name;    /* "skip-locked" */
    bool ordered;        /* keeps the order of a key */
    bool owns_lanes;     /* the claim is on lanes, and the node's */
    bool in_transaction; /* holds its claim by an open transaction, whatever `hold` says */
    /* Prepares every statement it will need: a wrong schema fails here, not at 3 a.m. The
     * connection stays the caller's. */
    SL_CHECK sl_rc (*open)(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err);
    SL_CHECK sl_rc (*take)(sl_claim *c, sl_batch *b, int64_t max, sl_err *err);
    SL_CHECK sl_rc (*hold)(sl_claim *c, const sl_batch *b, sl_err *err);
    int64_t (*trusted_ns)(const sl_claim *c);
    SL_CHECK sl_rc (*settle)(sl_claim *c, sl_batch *b, size_t *lost, sl_err *err);
    /* Both NULL: an answer is always waited for. */
    SL_CHECK sl_rc (*post)(sl_claim *c, sl_batch *b, bool *posted, sl_err *err);
    SL_CHECK sl_rc (*answered)(sl_claim *c, size_t *lost, sl_err *err);
    /* Renews claims by id and epoch from another connection, for a caller who keeps them for long;
     * NULL: that cannot be. SL_AGAIN: lost. */
    SL_CHECK sl_rc (*renew)(sl_db *db, const int64_t *ids, const int64_t *epochs, size_t n,
                            int64_t lease_ns, sl_err *err);
    /* For a batch that was taken over another connection, and of which at least id, epoch and `last`
     * are known; one epoch only. To be called before its settle. NULL: not needed. */
    SL_CHECK sl_rc (*adopt)(sl_claim *c, sl_batch *b, sl_err *err);
    SL_CHECK sl_rc (*peek)(sl_claim *c, bool *any, sl_err *err);
    SL_CHECK sl_rc (*count)(sl_claim *c, sl_batch *b, bool *again,
                            sl_err *err); /* NULL: take did */
    SL_CHECK sl_rc (*consume)(sl_claim *c, sl_batch *b, const sl_consume_stamp *stamp,
                              sl_err *err);
    /* Settles once more, over another connection from now on, what a lost one may or may not have; until then nobody
     * else gets hold of it, while the claim lasts. NULL: that cannot be. */
    SL_CHECK sl_rc (*again)(sl_claim *c, sl_db *db, sl_batch *b, size_t *lost, sl_err *err);
    void (*close)(sl_claim *c);
};

/* The end of a claim that was asked for then, less what a send may still take when that has just been looked
 * at. */
static inline int64_t sl_claim_ends_ns(const sl_claim_conf *conf, int64_t asked_ns)
{
    int64_t tenth_ns = conf->lease_ns / 10;
    return asked_ns + conf->lease_ns - (tenth_ns < 2 * SL_SEC ? tenth_ns : 2 * SL_SEC);
}

/* It may be trusted until then, but no longer than its node: a node that the others may have forgotten does
 * not know what they agree on by now. */
static inline int64_t sl_claim_trusted_ns(const sl_claim_conf *conf, int64_t asked_ns)
{
    int64_t until_ns = sl_claim_ends_ns(conf, asked_ns);
    int64_t node_ns = conf->lanes ? sl_lanes_trusted_ns(conf->lanes) : INT64_MAX;
    return node_ns < until_ns ? node_ns : until_ns;
}

/* All strategies, ended by NULL. */
extern const sl_claim_ops *const sl_claim_all[];
/* Opens a claim on a table of whatever layout; refuses one by which it cannot be shared. */
SL_CHECK sl_rc sl_claim_open(sl_claim **out, const sl_claim_ops *strategy, sl_db *db,
                             const sl_claim_conf *conf, sl_err *err);
const sl_claim_ops *sl_claim_named(const char *name);

#endif
