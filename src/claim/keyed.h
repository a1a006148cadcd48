/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding keys with work and locking them, for strategies that claim keys. Each worker looks at a
 * window of the oldest messages, locks as many of its keys as fit into a batch, and then, in a later
 * statement that sees what the last holder committed, reads their messages. Where others hold most keys
 * of a window it looks at a larger one. Each begins at the floor (member/floor.h): a window that began further on could
 * show a key without its oldest message.
 */
#ifndef SL_CLAIM_KEYED_H
#define SL_CLAIM_KEYED_H

#include "claim/stretch.h"
#include "claim/window.h"

typedef struct sl_keyed {
    sl_db *db;
    sl_claim_conf conf;
    bool leases; /* keys may be leased, by turns, not only locked */
    sl_ordered found;
    sl_window window;
    sl_str_list chosen; /* keys of it that are to be locked */
    sl_str_list
        claims;     /* names of the keys that were locked: 'k' and the key, 'i' and the id */
    sl_id_list ids; /* their messages; none: they are keys with held messages that are due */
    bool
        together; /* those stand close to each other: a range of the table is read, and deleted */
    sl_id_list delayed; /* those of them that are delayed */
    sl_str_list empty;  /* blocked keys that were locked and wait for nothing */
    sl_arena names;     /* bytes of names of blocked keys */
    bool over;          /* a turn that is over may have one of them */
    int64_t oldest;     /* of the turns that were seen; 0: there are none */
    int64_t keys_max;
    sl_floor floor; /* where the living begin */
    sl_floor turns; /* the same for the epochs of turns */
    int64_t turn;   /* the last one of this worker */
    sl_tickets *tickets;
    sl_writers writers;
    int64_t wide;      /* how many times as many messages as usual are looked at */
    bool was_due;      /* the last turn served blocked keys */
    int64_t due_ns;    /* when they are looked for again */
    int64_t forget_ns; /* when to look from the very beginning */
    int64_t expire_ns; /* when to look for turns that nobody else would find */
} sl_keyed;

SL_CHECK sl_rc sl_keyed_open(sl_keyed *k, sl_db *db, const sl_claim_conf *conf, bool leases,
                             sl_err *err);
void sl_keyed_fini(sl_keyed *k);

/* Begins a transaction and locks. *locked false: there was nothing, and the transaction is over. */
SL_CHECK sl_rc sl_keyed_lock(sl_keyed *k, int64_t max, bool *locked, sl_err *err);

/* A turn whose keys have no messages any more is looked for by nobody: once a day is over it goes. Looked at now and then,
 * between two turns. */
SL_CHECK sl_rc sl_keyed_expire(sl_keyed *k, sl_err *err);

/* No turn that could have one of the keys has an epoch below; to be asked before what looks for turns. */
int64_t sl_keyed_turns(const sl_keyed *k);

/* The calls that read what is locked, to be run in the same transaction; returns how many, at most
 * three. `in` has room for their parameters. */
size_t sl_keyed_read(sl_keyed *k, sl_batch *b, int64_t max, sl_call calls[3], sl_val in[3][3]);

/* The statement that deletes them: in the transaction that has the locks, or by the leases. */
static inline const char *sl_keyed_sent(const sl_keyed *k, bool in_transaction)
{
    if (in_transaction)
        return k->together ? "ordered/sent_stretch" : "ordered/sent";
    return k->together ? "guard/sent_stretch" : "guard/sent";
}

/* The turn ends with these verdicts. Where nothing was tried, the next one looks at the same kind of keys again. */
static inline void sl_keyed_ends(sl_keyed *k, const sl_batch *b)
{
    k->was_due &= !sl_ordered_untried(b);
}

/* Is there anything to do? */
SL_CHECK sl_rc sl_keyed_peek(const sl_keyed *k, const char *stmt, bool *any, sl_err *err);

#endif
