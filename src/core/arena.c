/* SPDX-License-Identifier: Apache-2.0 */
#include "core/arena.h"

#include "core/err.h"
#include "core/mem.h"

#include <stdalign.h>

enum { BLOCK_BYTES = 256 * 1024, KEEP_BYTES = 4 * 1024 * 1024 };

struct sl_arena_block {
    sl_arena_block *next;
    size_t cap;
    size_t used;
    alignas(max_align_t) char bytes[];
};

void sl_arena_fini(sl_arena *a)
{
    for (sl_arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (sl_arena){ 0 };
}

/* Blocks of the usual size are kept; those made for one huge payload go back, so that a single
 * 100 MB message does not stay in memory for ever. */
void sl_arena_reset(sl_arena *a)
{
    sl_arena_block **at = &a->first;
    size_t kept = 0;
    while (*at) {
        sl_arena_block *b = *at;
        if (b->cap > BLOCK_BYTES || kept + b->cap > KEEP_BYTES) {
            *at = b->next;
            free(b);
            continue;
        }
        b->used = 0;
        kept += b->cap;
        at = &b->next;
    }
    a->current = a->first;
    a->used_bytes = 0;
}

static sl_arena_block *block_for(sl_arena *a, size_t bytes)
{
    sl_arena_block *last = a->current;
    for (sl_arena_block *b = last; b; last = b, b = b->next)
        if (b->cap - b->used >= bytes)
            return a->current = b;

    size_t cap = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    sl_arena_block *b = sl_realloc(NULL, sizeof *b + cap);
    *b = (sl_arena_block){ .next = NULL, .cap = cap, .used = 0 };
    *(last ? &last->next : &a->first) = b;
    return a->current = b;
}

void *sl_arena_alloc(sl_arena *a, size_t bytes)
{
    size_t step = alignof(max_align_t);
    size_t rounded = (bytes + step - 1) / step * step;
    sl_arena_block *b = block_for(a, rounded);
    void *p = b->bytes + b->used;
    b->used += rounded;
    a->used_bytes += bytes;
    return p;
}

sl_str sl_arena_copy(sl_arena *a, sl_str s)
{
    if (!s.p)
        return SL_NONE;
    char *p = sl_arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return (sl_str){ p, s.n };
}
