/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one look at the oldest messages has shown, key by key, and which of the keys are to be had. All
 * messages of a key go together, the key with the oldest first: a claim that took a message of every
 * key would leave none to the other workers. Knows nothing of databases.
 */
#ifndef SL_CLAIM_WINDOW_H
#define SL_CLAIM_WINDOW_H

#include "claim/ordered.h"

typedef struct sl_window {
    struct sl_window_row *rows;
    size_t count, cap;
    struct sl_window_key *keys; /* by their oldest message */
    size_t nkeys, keys_cap;
    size_t next; /* the first key that was not chosen yet */
    sl_keymap map;
    sl_arena names;
    int64_t ours, ours_bytes, ours_keys; /* what is ours: messages, their bytes, keys */
} sl_window;

/* How much fits into a claim. */
typedef struct sl_room {
    int64_t messages, bytes, keys;
} sl_room;

void sl_window_fini(sl_window *w);
void sl_window_reset(sl_window *w);
/* In the order of ids. What is not free is another's. */
void sl_window_add(sl_window *w, sl_str key, int64_t id, int64_t bytes, bool free);
int64_t sl_window_first(const sl_window *w); /* the oldest of its messages; 0: there are none */
/* Keys to be locked, as many as there is still room for; each is chosen once. Returns whether there are
 * any. The names are good until the reset. */
bool sl_window_choose(sl_window *w, const sl_room *room, sl_str_list *out);
/* One that was chosen is ours; the others stay another's. */
void sl_window_got(sl_window *w, sl_str key);
/* The messages of the keys that are ours, up to the room, and those keys: their names are good until the
 * reset. */
void sl_window_take(const sl_window *w, const sl_room *room, sl_id_list *ids,
                    sl_str_list *keys);

#endif
