/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once. The blocks are kept over a reset, so that a worker which has
 * seen its largest batch allocates no more. */
#ifndef SL_CORE_ARENA_H
#define SL_CORE_ARENA_H

#include "core/bytes.h"

#include <stdint.h>

typedef struct sl_arena_block sl_arena_block;

typedef struct sl_arena {
    sl_arena_block *first;
    sl_arena_block *current;
    size_t used_bytes; /* handed out since the last reset */
} sl_arena;            /* zero-initialise */

void sl_arena_fini(sl_arena *a);
void sl_arena_reset(sl_arena *a);
void *sl_arena_alloc(sl_arena *a, size_t bytes); /* aligned for any type, not zeroed */
/* A copy followed by a NUL that does not count, so that text can be read as a C string; absent
 * stays absent. */
sl_str sl_arena_copy(sl_arena *a, sl_str s);

#endif
