/* SPDX-License-Identifier: Apache-2.0 */
#include "core/keymap.h"

#include "core/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_CAP = 64 };

struct sl_keymap_slot {
    uint64_t hash;
    sl_str key; /* p NULL: empty */
    int64_t value;
};

void sl_keymap_fini(sl_keymap *m)
{
    free(m->slots);
    *m = (sl_keymap){ 0 };
}

void sl_keymap_reset(sl_keymap *m)
{
    if (m->count)
        memset(m->slots, 0, m->cap * sizeof *m->slots);
    m->count = 0;
}

/* Where the key is, or where it would be. */
static struct sl_keymap_slot *slot_of(const sl_keymap *m, uint64_t hash, sl_str key)
{
    size_t i = (size_t)hash & (m->cap - 1);
    while (m->slots[i].key.p && (m->slots[i].hash != hash || !sl_str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void grow(sl_keymap *m)
{
    sl_keymap bigger = { .cap = m->cap ? 2 * m->cap : FIRST_CAP, .count = m->count };
    bigger.slots = sl_alloc(bigger.cap * sizeof *bigger.slots);
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key.p)
            *slot_of(&bigger, m->slots[i].hash, m->slots[i].key) = m->slots[i];
    free(m->slots);
    *m = bigger;
}

int64_t *sl_keymap_at(sl_keymap *m, sl_str key)
{
    assert(key.p);
    if (2 * (m->count + 1) > m->cap)
        grow(m);
    uint64_t hash = XXH3_64bits(key.p, key.n);
    struct sl_keymap_slot *s = slot_of(m, hash, key);
    if (!s->key.p) {
        *s = (struct sl_keymap_slot){ .hash = hash, .key = key };
        m->count++;
    }
    return &s->value;
}

const int64_t *sl_keymap_find(const sl_keymap *m, sl_str key)
{
    if (m->count == 0)
        return NULL;
    const struct sl_keymap_slot *s = slot_of(m, XXH3_64bits(key.p, key.n), key);
    return s->key.p ? &s->value : NULL;
}

bool sl_keymap_meet(const sl_keymap *a, const sl_keymap *b)
{
    for (size_t i = 0; a->count && b->count && i < a->cap; i++)
        if (a->slots[i].key.p && sl_keymap_find(b, a->slots[i].key))
            return true;
    return false;
}
