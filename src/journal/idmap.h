/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of some messages, by id. Not for threads by itself. */
#ifndef SL_JOURNAL_IDMAP_H
#define SL_JOURNAL_IDMAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_idmap_slot {
    int64_t id;
    int64_t epoch;
    int state; /* 0: the slot is free */
} sl_idmap_slot;

typedef struct sl_idmap {
    sl_idmap_slot *slots;
    size_t cap; /* 0 or a power of two */
    size_t count;
} sl_idmap; /* zero-initialise */

void sl_idmap_fini(sl_idmap *m); /* empty again, and usable */
/* state is not 0. What was known of the id before is forgotten. */
void sl_idmap_put(sl_idmap *m, int64_t id, int64_t epoch, int state);
/* NULL if there is none; good until the next put or drop. */
sl_idmap_slot *sl_idmap_find(const sl_idmap *m, int64_t id);
void sl_idmap_drop(sl_idmap *m, int64_t id);

#endif
