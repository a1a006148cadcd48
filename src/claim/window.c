/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/window.h"

#include "core/mem.h"

#include <assert.h>

struct sl_window_row {
    int64_t id;
    int64_t bytes;
    size_t next; /* of its key: its place and one; 0: it is the last */
};

struct sl_window_key {
    sl_str name;
    size_t first, last; /* places of rows */
    int64_t messages, bytes;
    bool free; /* nobody has it, as far as is known */
    bool ours;
};

void sl_window_fini(sl_window *w)
{
    free(w->rows);
    free(w->keys);
    sl_keymap_fini(&w->map);
    sl_arena_fini(&w->names);
}

void sl_window_reset(sl_window *w)
{
    w->count = w->nkeys = w->next = 0;
    w->ours = w->ours_bytes = w->ours_keys = 0;
    sl_keymap_reset(&w->map);
    sl_arena_reset(&w->names);
}

static struct sl_window_row *add_row(sl_window *w, int64_t id, int64_t bytes)
{
    if (w->count == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 256;
        w->rows = sl_realloc(w->rows, w->cap * sizeof *w->rows);
    }
    w->rows[w->count] = (struct sl_window_row){ .id = id, .bytes = bytes };
    return &w->rows[w->count++];
}

static struct sl_window_key *add_key(sl_window *w, sl_str name, bool free)
{
    if (w->nkeys == w->keys_cap) {
        w->keys_cap = w->keys_cap ? 2 * w->keys_cap : 256;
        w->keys = sl_realloc(w->keys, w->keys_cap * sizeof *w->keys);
    }
    name = sl_arena_copy(&w->names, name);
    *sl_keymap_at(&w->map, name) = (int64_t)w->nkeys;
    w->keys[w->nkeys] = (struct sl_window_key){ .name = name, .first = w->count, .free = free };
    return &w->keys[w->nkeys++];
}

void sl_window_add(sl_window *w, sl_str key, int64_t id, int64_t bytes, bool free)
{
    const int64_t *known = sl_keymap_find(&w->map, key);
    struct sl_window_key *k = known ? &w->keys[*known] : add_key(w, key, free);
    if (known)
        w->rows[k->last].next = w->count + 1;
    k->last = w->count;
    k->messages++;
    k->bytes += bytes;
    add_row(w, id, bytes);
}

int64_t sl_window_first(const sl_window *w)
{
    return w->count ? w->rows[0].id : 0;
}

bool sl_window_choose(sl_window *w, const sl_room *room, sl_str_list *out)
{
    int64_t messages = room->messages - w->ours;
    int64_t bytes = room->bytes - w->ours_bytes;
    int64_t keys = room->keys - w->ours_keys;
    for (out->count = 0; w->next < w->nkeys && messages > 0 && bytes > 0 && keys > 0;
         w->next++) {
        const struct sl_window_key *k = &w->keys[w->next];
        if (!k->free)
            continue;
        sl_str_list_add(out, k->name);
        messages -= k->messages;
        bytes -= k->bytes;
        keys--;
    }
    return out->count > 0;
}

void sl_window_got(sl_window *w, sl_str key)
{
    const int64_t *at = sl_keymap_find(&w->map, key);
    assert(at); /* no other was chosen */
    struct sl_window_key *k = &w->keys[*at];
    k->ours = true;
    w->ours += k->messages;
    w->ours_bytes += k->bytes;
    w->ours_keys++;
}

void sl_window_take(const sl_window *w, const sl_room *room, sl_id_list *ids, sl_str_list *keys)
{
    int64_t messages = room->messages;
    int64_t bytes = room->bytes;
    for (size_t i = 0; i < w->next; i++) {
        const struct sl_window_key *k = &w->keys[i];
        for (size_t at = k->first + 1; k->ours && at; at = w->rows[at - 1].next) {
            const struct sl_window_row *r = &w->rows[at - 1];
            if (messages <= 0 || bytes <= 0)
                return;
            if (at == k->first + 1)
                sl_str_list_add(keys, k->name);
            sl_id_list_add(ids, r->id);
            messages--;
            bytes -= r->bytes;
        }
    }
}
