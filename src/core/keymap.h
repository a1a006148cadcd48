/* SPDX-License-Identifier: Apache-2.0 */
/* A number for each key of a batch. The bytes of the keys are borrowed: reset before they go. */
#ifndef SL_CORE_KEYMAP_H
#define SL_CORE_KEYMAP_H

#include "core/bytes.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_keymap {
    struct sl_keymap_slot *slots;
    size_t cap; /* a power of two */
    size_t count;
} sl_keymap;

void sl_keymap_fini(sl_keymap *m);
void sl_keymap_reset(sl_keymap *m);
/* The number of this key; 0 when it is new. Good until the next call. */
int64_t *sl_keymap_at(sl_keymap *m, sl_str key);
/* The same without adding it: NULL. */
const int64_t *sl_keymap_find(const sl_keymap *m, sl_str key);
bool sl_keymap_meet(const sl_keymap *a, const sl_keymap *b); /* have they a key in common? */

#endif
