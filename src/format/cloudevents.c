/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CloudEvents 1.0, in both modes: the attributes as headers beside the payload (binary), or all of
 * it as one JSON object (structured).
 *
 * An attribute is text without control characters. A required one that is not makes the message
 * impossible to encode; an optional one is left out.
 */
#include "core/utf8.h"
#include "format/encoder.h"
#include "format/format.h"
#include "format/trace.h"

#include <inttypes.h>
#include <strings.h>

enum { ATTRIBUTES_MAX = 9, TIME_BYTES = 28, SEQUENCE_BYTES = 21 };

#define US_PER_SECOND 1000000

typedef struct event {
    sl_header attributes[ATTRIBUTES_MAX];
    size_t count;
    sl_str content_type;
} event;

static void add(event *ev, sl_str name, sl_str value)
{
    ev->attributes[ev->count++] = (sl_header){ name, value };
}

/* ---- Text ---- */

static bool is_control(const unsigned char *p, size_t left)
{
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && left > 1 && p[1] < 0xa0);
}

/* Code points that Unicode keeps for itself: U+FDD0 to U+FDEF, and the last two of each plane. */
static bool is_noncharacter(const unsigned char *p, size_t left)
{
    if (p[0] == 0xef && left > 2)
        return (p[1] == 0xb7 && p[2] >= 0x90 && p[2] <= 0xaf) || (p[1] == 0xbf && p[2] >= 0xbe);
    return p[0] >= 0xf0 && left > 3 && (p[1] & 0x0f) == 0x0f && p[2] == 0xbf && p[3] >= 0xbe;
}

static bool is_attribute(sl_str s)
{
    if (s.n == 0 || !sl_is_utf8(s))
        return false;
    const unsigned char *p = (const unsigned char *)s.p;
    for (size_t i = 0; i < s.n; i++)
        if (is_control(p + i, s.n - i) || is_noncharacter(p + i, s.n - i))
            return false;
    return true;
}

/* ---- Attributes ---- */

/* The column, unless it says no more than its default and the producer's header does. */
static sl_str content_type_of(const sl_encoder *e, const sl_msg *m)
{
    sl_str usual = SL_STR("application/json");
    if (m->content_type.n > 0 && !sl_str_eq(m->content_type, usual))
        return m->content_type;
    const sl_header *given = sl_headers_find(e, SL_STR("content-type"));
    return given && given->value.n > 0 ? given->value : usual;
}

/* RFC 3339 has years of four digits. An adopted table may have no such column: then it is 0. */
static void add_time(sl_encoder *e, event *ev, int64_t created_us)
{
    int64_t us = created_us % US_PER_SECOND;
    time_t seconds = (time_t)(created_us / US_PER_SECOND);
    if (us < 0) {
        us += US_PER_SECOND;
        seconds--;
    }
    struct tm tm;
    if (created_us == 0 || !gmtime_r(&seconds, &tm) || tm.tm_year < -1900 ||
        tm.tm_year > 9999 - 1900)
        return;
    char *text = sl_arena_alloc(&e->arena, TIME_BYTES);
    snprintf(text, TIME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)us);
    add(ev, SL_STR("time"), sl_str_of(text));
}

/* Texts of one length, so that their order is that of the numbers. */
static void add_sequence(sl_encoder *e, event *ev, int64_t id)
{
    char *text = sl_arena_alloc(&e->arena, SEQUENCE_BYTES);
    snprintf(text, SEQUENCE_BYTES, "%019" PRId64, id);
    add(ev, SL_STR("sequence"), sl_str_of(text));
}

static void add_trace(const sl_encoder *e, event *ev)
{
    const sl_header *parent = sl_headers_find(e, SL_STR("traceparent"));
    if (!parent || !sl_is_traceparent(parent->value) || !is_attribute(parent->value))
        return;
    add(ev, SL_STR("traceparent"), parent->value);
    const sl_header *tracestate = sl_headers_find(e, SL_STR("tracestate"));
    if (tracestate && is_attribute(tracestate->value))
        add(ev, SL_STR("tracestate"), tracestate->value);
}

static bool describe(sl_encoder *e, const sl_msg *m, event *ev, char *why)
{
    bool typed = m->type.n > 0;
    sl_str type = typed ? m->type : m->topic;
    ev->content_type = content_type_of(e, m);
    if (!is_attribute(type))
        return sl_encode_refuse(why, "the %s is no text that CloudEvents allow as a type",
                                typed ? "type" : "topic");
    if (!is_attribute(ev->content_type))
        return sl_encode_refuse(why, "the content type is no text that CloudEvents allow");
    add(ev, SL_STR("specversion"), SL_STR("1.0"));
    add(ev, SL_STR("id"), sl_int_text(sl_arena_alloc(&e->arena, SL_INT_BYTES), m->id));
    add(ev, SL_STR("source"), sl_str_of(e->source));
    add(ev, SL_STR("type"), type);
    add_time(e, ev, m->created_us);
    if (is_attribute(m->key))
        add(ev, SL_STR("partitionkey"), m->key);
    add_sequence(e, ev, m->id);
    add_trace(e, ev);
    return true;
}

/* ---- Binary ---- */

static sl_str prefixed(sl_encoder *e, sl_str name)
{
    size_t n = strlen(e->ce_prefix);
    char *p = sl_arena_alloc(&e->arena, n + name.n);
    memcpy(p, e->ce_prefix, n);
    memcpy(p + n, name.p, name.n);
    return (sl_str){ p, n + name.n };
}

static bool encode_binary(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    event ev = { .count = 0 };
    if (!describe(e, m, &ev, why))
        return false;
    for (size_t i = 0; i < ev.count; i++)
        sl_headers_put(e, prefixed(e, ev.attributes[i].name), ev.attributes[i].value);
    sl_headers_put(e, SL_STR("content-type"), ev.content_type);
    sl_headers_put_int(e, SL_STR("sluice-epoch"), m->epoch);
    *value = m->payload;
    return true;
}

/* ---- Structured ---- */

static bool ends_with(sl_str s, sl_str end)
{
    return s.n >= end.n && strncasecmp(s.p + s.n - end.n, end.p, end.n) == 0;
}

static bool is_text_type(sl_str type)
{
    const char *parameters = memchr(type.p, ';', type.n);
    if (parameters)
        type.n = (size_t)(parameters - type.p);
    while (type.n > 0 && type.p[type.n - 1] == ' ')
        type.n--;
    return (type.n > 5 && strncasecmp(type.p, "text/", 5) == 0) ||
           ends_with(type, SL_STR("/xml")) || ends_with(type, SL_STR("+xml"));
}

/* By its type, so that a consumer finds all data of a type in one member. What calls itself JSON or
 * text and is not goes as bytes: a string would stand for something else. */
static void put_data(sl_buf *out, sl_str payload, sl_str type)
{
    if (!payload.p)
        return;
    bool json = sl_is_json_type(type);
    if (json && sl_is_json(payload)) {
        sl_buf_puts(out, ",\"data\":");
        sl_json_one_line(out, payload);
    } else if (!json && is_text_type(type) && sl_is_utf8(payload)) {
        sl_buf_puts(out, ",\"data\":");
        sl_json_string(out, payload);
    } else {
        sl_buf_puts(out, ",\"data_base64\":\"");
        sl_base64_encode(out, payload);
        sl_buf_putc(out, '"');
    }
}

static void put_attribute(sl_buf *out, sl_header attribute)
{
    sl_buf_putc(out, out->n == 0 ? '{' : ',');
    sl_json_string(out, attribute.name);
    sl_buf_putc(out, ':');
    sl_json_string(out, attribute.value);
}

static bool encode_structured(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    event ev = { .count = 0 };
    if (!describe(e, m, &ev, why))
        return false;
    for (size_t i = 0; i < ev.count; i++)
        put_attribute(&e->value, ev.attributes[i]);
    put_attribute(&e->value, (sl_header){ SL_STR("datacontenttype"), ev.content_type });
    put_data(&e->value, m->payload, ev.content_type);
    sl_buf_putc(&e->value, '}');
    *value = (sl_str){ e->value.p, e->value.n };
    sl_headers_put_int(e, SL_STR("sluice-id"), m->id);
    sl_headers_put_int(e, SL_STR("sluice-epoch"), m->epoch);
    sl_headers_put(e, SL_STR("content-type"),
                   SL_STR("application/cloudevents+json; charset=UTF-8"));
    return true;
}

const sl_encode_ops sl_encode_cloudevents = { .name = "cloudevents", .encode = encode_binary };
const sl_encode_ops sl_encode_cloudevents_json = { .name = "cloudevents-json",
                                                   .encode = encode_structured };
