/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include "core/err.h"
#include "core/mem.h"

#include <assert.h>

void sl_batch_init(sl_batch *b)
{
    *b = (sl_batch){ 0 };
}

void sl_batch_fini(sl_batch *b)
{
    sl_arena_fini(&b->arena);
    free(b->msgs);
    *b = (sl_batch){ 0 };
}

void sl_batch_reset(sl_batch *b)
{
    b->count = 0;
    b->settled = 0;
    sl_arena_reset(&b->arena);
}

sl_msg *sl_batch_add(sl_batch *b)
{
    if (b->count == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->msgs = sl_realloc(b->msgs, b->cap * sizeof *b->msgs);
    }
    sl_msg *m = &b->msgs[b->count++];
    *m = (sl_msg){ .verdict = SL_PENDING, .delay_ns = -1 };
    return m;
}

static int by_id(const void *a, const void *b)
{
    const sl_msg *x = a;
    const sl_msg *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

void sl_batch_sort(sl_batch *b)
{
    for (size_t i = 1; i < b->count; i++)
        if (b->msgs[i - 1].id > b->msgs[i].id) {
            qsort(b->msgs, b->count, sizeof *b->msgs, by_id);
            return;
        }
}

void sl_msg_settle(sl_batch *b, sl_msg *m, sl_verdict v, sl_str reason)
{
    assert(m->verdict == SL_PENDING && v != SL_PENDING);
    m->verdict = v;
    m->reason = sl_arena_copy(&b->arena, reason);
    b->settled++;
}

void sl_msg_unsettle(sl_batch *b, sl_msg *m)
{
    assert(m->verdict != SL_PENDING);
    m->verdict = SL_PENDING;
    m->delay_ns = -1;
    b->settled--;
}

void sl_batch_settle_rest(sl_batch *b, sl_verdict v, sl_str reason)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->msgs[i].verdict == SL_PENDING)
            sl_msg_settle(b, &b->msgs[i], v, reason);
}

size_t sl_batch_count_of(const sl_batch *b, sl_verdict v)
{
    size_t n = 0;
    for (size_t i = 0; i < b->count; i++)
        n += b->msgs[i].verdict == v;
    return n;
}
