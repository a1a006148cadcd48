/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers: those that the producer wrote as a JSON object, and ours after them. A text without an
 * escape is not copied: the header points into the message.
 *
 * A name that is in the object twice counts once, with its last value. Few names are compared one
 * by one; a hash table takes over where that would let one odd message hold up a worker.
 */
#include "core/err.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "format/encoder.h"
#include "format/format.h"
#include "format/json.h"

#include <strings.h>

enum { NAME_MAX_BYTES = 32767, SHOWN_BYTES = 60, FEW = 16 };

/* As much of a name as an error shows, not cut inside a character. */
static int shown(sl_str name)
{
    return (int)sl_utf8_prefix((sl_str){ name.p, name.n < SHOWN_BYTES ? name.n : SHOWN_BYTES });
}

static bool text_of(sl_encoder *e, sl_str quoted, sl_str *text)
{
    *text = (sl_str){ quoted.p + 1, quoted.n - 2 };
    return !memchr(text->p, '\\', text->n) || sl_json_text(&e->arena, quoted, text);
}

static bool name_of(sl_encoder *e, sl_str quoted, sl_str *name, char *why)
{
    if (!text_of(e, quoted, name))
        return sl_encode_refuse(why, "headers: a name holds half a surrogate pair");
    if (name->n == 0)
        return sl_encode_refuse(why, "headers: a name is empty");
    if (name->n > NAME_MAX_BYTES)
        return sl_encode_refuse(why,
                                "headers: the name \"%.*s...\" has %zu bytes, more than %d",
                                shown(*name), name->p, name->n, NAME_MAX_BYTES);
    return true;
}

/* A string is its text, null is no value, all else is its JSON. */
static bool value_of(sl_encoder *e, sl_str name, sl_str json, sl_str *value, char *why)
{
    *value = json;
    if (json.p[0] == 'n')
        *value = SL_NONE;
    else if (json.p[0] == '"' && !text_of(e, json, value))
        return sl_encode_refuse(why,
                                "headers: the value of \"%.*s\" holds half a surrogate pair",
                                shown(name), name.p);
    return true;
}

static void append(sl_encoder *e, sl_str name, sl_str value)
{
    if (e->count == e->cap) {
        e->cap = e->cap ? 2 * e->cap : FEW;
        e->headers = sl_realloc(e->headers, e->cap * sizeof *e->headers);
    }
    e->headers[e->count++] = (sl_header){ name, value };
}

static void start_hashing(sl_encoder *e)
{
    sl_keymap_reset(&e->seen);
    for (size_t i = 0; i < e->count; i++)
        *sl_keymap_at(&e->seen, e->headers[i].name) = (int64_t)i + 1;
}

/* The place of this name among the producer's; the end of the list if it is new. */
static size_t place_of(sl_encoder *e, sl_str name)
{
    size_t i = 0;
    if (e->count < FEW) {
        while (i < e->count && !sl_str_eq(e->headers[i].name, name))
            i++;
        return i;
    }
    if (e->count == FEW)
        start_hashing(e);
    int64_t *at = sl_keymap_at(&e->seen, name);
    if (*at == 0)
        *at = (int64_t)e->count + 1;
    return (size_t)(*at - 1);
}

static void add(sl_encoder *e, sl_str name, sl_str value)
{
    size_t place = place_of(e, name);
    if (place < e->count)
        e->headers[place].value = value;
    else
        append(e, name, value);
}

static bool take_members(sl_encoder *e, sl_json *j, char *why)
{
    sl_str quoted, json, name, value;
    while (sl_json_member(j, &quoted, &json)) {
        if (!name_of(e, quoted, &name, why) || !value_of(e, name, json, &value, why))
            return false;
        add(e, name, value);
    }
    return true;
}

static bool take(sl_encoder *e, sl_str json, char *why)
{
    size_t good = sl_utf8_prefix(json);
    if (good < json.n)
        return sl_encode_refuse(why, "headers are no JSON object: not UTF-8 at byte %zu",
                                good + 1);
    sl_json j = { .p = json.p, .end = json.p + json.n };
    if (!take_members(e, &j, why))
        return false;
    if (!j.why)
        sl_json_space(&j);
    if (!j.why && j.p < j.end)
        j.why = "something follows the object";
    if (j.why)
        return sl_encode_refuse(why, "headers are no JSON object: %s at byte %zu", j.why,
                                (size_t)(j.p - json.p) + 1);
    return true;
}

/* An adopted table may have an empty text, or JSON's null, where ours has none. */
bool sl_headers_take(sl_encoder *e, sl_str json, char *why)
{
    if (json.n == 0 || sl_str_eq(json, SL_STR("{}")) || sl_str_eq(json, SL_STR("null")))
        return true;
    return take(e, json, why);
}

/* HTTP does not tell upper from lower case, and who reads Kafka's headers often does not either. */
static bool same_name(sl_str a, sl_str b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

const sl_header *sl_headers_find(const sl_encoder *e, sl_str name)
{
    for (size_t i = 0; i < e->count; i++)
        if (same_name(e->headers[i].name, name))
            return &e->headers[i];
    return NULL;
}

void sl_headers_put(sl_encoder *e, sl_str name, sl_str value)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->count; i++)
        if (!same_name(e->headers[i].name, name))
            e->headers[kept++] = e->headers[i];
    e->count = kept;
    append(e, name, value);
}

void sl_headers_put_int(sl_encoder *e, sl_str name, int64_t v)
{
    sl_headers_put(e, name, sl_int_text(sl_arena_alloc(&e->arena, SL_INT_BYTES), v));
}

void sl_headers_put_ours(sl_encoder *e, const sl_msg *m)
{
    sl_headers_put_int(e, SL_STR("sluice-id"), m->id);
    if (m->type.n > 0)
        sl_headers_put(e, SL_STR("sluice-type"), m->type);
    sl_headers_put_int(e, SL_STR("sluice-epoch"), m->epoch);
}
