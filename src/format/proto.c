/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope as proto/sluice/v1/envelope.proto describes it. protobuf-c takes text that ends with a
 * NUL, so that text is copied, and cannot hold one. */
#include "core/utf8.h"
#include "format/encoder.h"

#include <envelope.pb-c.h>

typedef Sluice__V1__Envelope envelope;
typedef Sluice__V1__Header header;

enum { SHOWN_BYTES = 60 };

static bool text_of(sl_encoder *e, sl_str s, char **text)
{
    *text = NULL;
    if (!s.p)
        return true;
    if (!sl_is_utf8(s) || (s.n > 0 && memchr(s.p, '\0', s.n)))
        return false;
    *text = sl_arena_alloc(&e->arena, s.n + 1);
    if (s.n > 0)
        memcpy(*text, s.p, s.n);
    (*text)[s.n] = '\0';
    return true;
}

static ProtobufCBinaryData bytes_of(sl_str s)
{
    return (ProtobufCBinaryData){ .len = s.n, .data = (uint8_t *)(uintptr_t)s.p };
}

static bool fill_text(sl_encoder *e, envelope *env, const sl_msg *m, char *why)
{
    const struct {
        const char *what;
        sl_str s;
        char **text;
    } texts[] = {
        { "topic", m->topic, &env->topic },
        { "type", m->type, &env->type },
        { "content type", m->content_type, &env->content_type },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!text_of(e, texts[i].s, texts[i].text))
            return sl_encode_refuse(why, "the %s is not UTF-8, or holds a NUL character",
                                    texts[i].what);
    return true;
}

static bool fill_header(sl_encoder *e, header *h, const sl_header *from, char *why)
{
    sluice__v1__header__init(h);
    if (text_of(e, from->name, &h->name) && text_of(e, from->value, &h->value))
        return true;
    sl_str shown = { from->name.p, from->name.n < SHOWN_BYTES ? from->name.n : SHOWN_BYTES };
    return sl_encode_refuse(why, "headers: \"%.*s\" holds a NUL character",
                            (int)sl_utf8_prefix(shown), shown.p);
}

static bool fill_headers(sl_encoder *e, envelope *env, char *why)
{
    if (e->count == 0)
        return true;
    header *headers = sl_arena_alloc(&e->arena, e->count * sizeof *headers);
    env->headers = sl_arena_alloc(&e->arena, e->count * sizeof(header *));
    env->n_headers = e->count;
    for (size_t i = 0; i < e->count; i++) {
        env->headers[i] = &headers[i];
        if (!fill_header(e, &headers[i], &e->headers[i], why))
            return false;
    }
    return true;
}

static bool fill(sl_encoder *e, envelope *env, const sl_msg *m, char *why)
{
    sluice__v1__envelope__init(env);
    env->has_id = env->has_epoch = true;
    env->id = m->id;
    env->epoch = m->epoch;
    env->has_created_us = m->created_us != 0;
    env->created_us = m->created_us;
    env->has_key = m->key.p != NULL;
    env->key = bytes_of(m->key);
    env->has_payload = m->payload.p != NULL;
    env->payload = bytes_of(m->payload);
    return fill_text(e, env, m, why) && fill_headers(e, env, why);
}

static bool encode_protobuf(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    envelope env;
    if (!fill(e, &env, m, why))
        return false;
    size_t n = sluice__v1__envelope__get_packed_size(&env);
    char *room = sl_buf_room(&e->value, n);
    sl_buf_took(&e->value, sluice__v1__envelope__pack(&env, (uint8_t *)room));
    *value = (sl_str){ e->value.p, e->value.n };
    sl_headers_put_ours(e, m);
    sl_headers_put(e, SL_STR("content-type"), SL_STR("application/x-protobuf"));
    return true;
}

const sl_encode_ops sl_encode_protobuf = { .name = "protobuf", .encode = encode_protobuf };
