/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, at most half full. A slot that is freed is filled with one from behind that may stand
 * there, so that no search ends too early and no graves pile up. */
#include "journal/idmap.h"

#include "core/mem.h"

#include <stdlib.h>

enum { CAP_MIN = 64 };

void sl_idmap_fini(sl_idmap *m)
{
    free(m->slots);
    *m = (sl_idmap){ 0 };
}

static size_t home_of(const sl_idmap *m, int64_t id)
{
    return (size_t)(((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (m->cap - 1);
}

/* Where it is, or the free slot where it would be. */
static size_t place_of(const sl_idmap *m, int64_t id)
{
    size_t at = home_of(m, id);
    while (m->slots[at].state && m->slots[at].id != id)
        at = (at + 1) & (m->cap - 1);
    return at;
}

static void grow(sl_idmap *m)
{
    sl_idmap was = *m;
    m->cap = was.cap ? was.cap * 2 : CAP_MIN;
    m->slots = sl_alloc(m->cap * sizeof *m->slots);
    for (size_t i = 0; i < was.cap; i++)
        if (was.slots[i].state)
            m->slots[place_of(m, was.slots[i].id)] = was.slots[i];
    free(was.slots);
}

void sl_idmap_put(sl_idmap *m, int64_t id, int64_t epoch, int state)
{
    if (m->count * 2 >= m->cap)
        grow(m);
    sl_idmap_slot *s = &m->slots[place_of(m, id)];
    m->count += s->state == 0;
    *s = (sl_idmap_slot){ id, epoch, state };
}

sl_idmap_slot *sl_idmap_find(const sl_idmap *m, int64_t id)
{
    if (m->count == 0)
        return NULL;
    sl_idmap_slot *s = &m->slots[place_of(m, id)];
    return s->state ? s : NULL;
}

void sl_idmap_drop(sl_idmap *m, int64_t id)
{
    sl_idmap_slot *s = sl_idmap_find(m, id);
    if (!s)
        return;
    size_t mask = m->cap - 1, hole = (size_t)(s - m->slots);
    for (size_t at = (hole + 1) & mask; m->slots[at].state; at = (at + 1) & mask) {
        size_t home = home_of(m, m->slots[at].id);
        if (((at - home) & mask) >= ((at - hole) & mask)) { /* its way leads over the hole */
            m->slots[hole] = m->slots[at];
            hole = at;
        }
    }
    m->slots[hole].state = 0;
    m->count--;
}
