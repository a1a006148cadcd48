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

#include "claim/window.h"

typedef struct sl_keyed {
    sl_db *db;
    sl_claim_conf conf;
    bool leases;
    sl_ordered found;
    sl_window window;
    sl_str_list chosen; /* keys of it that are to be locked */
    sl_id_list ids; /* messages of the keys that were locked; of blocked keys: the first held */
    sl_id_list heads; /* the first message of each key */
    sl_str_list
        due; /* names of blocked keys that were locked: 'k' and the key, 'i' and the id */
    sl_str_list empty; /* those of them that wait for nothing */
    sl_arena names;    /* their bytes */
    int64_t keys_max;
    sl_floor floor; /* where the living begin */
    sl_tickets *tickets;
    sl_writers writers;
    int64_t wide;      /* how many times as many messages as usual are looked at */
    bool was_due;      /* the last turn served blocked keys */
    int64_t due_ns;    /* when they are looked for again */
    int64_t forget_ns; /* when to look from the very beginning */
} sl_keyed;

/* `leases`: keys may be leased, not only locked. */
SL_CHECK sl_rc sl_keyed_open(sl_keyed *k, sl_db *db, const sl_claim_conf *conf, bool leases,
                             sl_err *err);
void sl_keyed_fini(sl_keyed *k);

/* Begins a transaction and locks. *locked false: there was nothing, and the transaction is over. */
SL_CHECK sl_rc sl_keyed_lock(sl_keyed *k, int64_t max, bool *locked, sl_err *err);

/* The calls that read what is locked, to be run in the same transaction; returns how many, at most two.
 * `in` has room for their parameters. */
size_t sl_keyed_read(sl_keyed *k, sl_batch *b, int64_t max, sl_call calls[2], sl_val in[2][2]);

/* Is there anything to do? */
SL_CHECK sl_rc sl_keyed_peek(const sl_keyed *k, const char *stmt, bool *any, sl_err *err);

#endif
