/* SPDX-License-Identifier: Apache-2.0 */
#include "core/err.h"
#include "format/format.h"

#define PUT(out, literal) sl_buf_put(out, "" literal, sizeof(literal) - 1)

sl_str sl_int_text(char room[SL_INT_BYTES], int64_t v)
{
    char *end = room + SL_INT_BYTES;
    char *p = end;
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--p = '-';
    return (sl_str){ p, (size_t)(end - p) };
}

static void put_int(sl_buf *out, int64_t v)
{
    char room[SL_INT_BYTES];
    sl_str text = sl_int_text(room, v);
    sl_buf_put(out, text.p, text.n);
}

void sl_json_one_line(sl_buf *out, sl_str json)
{
    size_t start = out->n;
    sl_buf_put(out, json.p, json.n);
    if (!memchr(json.p, '\n', json.n) && !memchr(json.p, '\r', json.n))
        return;
    for (char *p = out->p + start; p < out->p + out->n; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
}

/* An adopted table may have no column for the content type: then it is the default one. */
static bool has_default_type(const sl_msg *m)
{
    return m->content_type.n == 0 || sl_str_eq(m->content_type, SL_STR("application/json"));
}

void sl_format_payload(sl_buf *out, const sl_msg *m)
{
    if (!m->payload.p) {
        PUT(out, "\"payload\":null");
        return;
    }
    bool json = has_default_type(m) || sl_is_json_type(m->content_type);
    if (json && sl_is_json(m->payload)) {
        PUT(out, "\"payload\":");
        sl_json_one_line(out, m->payload);
    } else if (sl_is_utf8(m->payload)) {
        PUT(out, "\"payload\":");
        sl_json_string(out, m->payload);
    } else {
        PUT(out, "\"payload_base64\":\"");
        sl_base64_encode(out, m->payload);
        PUT(out, "\"");
    }
}

static bool is_object(sl_str json)
{
    size_t i = 0;
    while (i < json.n && strchr(" \t\r\n", json.p[i]))
        i++;
    return i < json.n && json.p[i] == '{' && sl_is_json(json);
}

/* Not every database checks what a producer wrote into this column. What is not an object goes
 * out as a string: nothing is lost, and the line is still JSON. */
static void put_headers(sl_buf *out, sl_str headers)
{
    PUT(out, ",\"headers\":");
    if (headers.n == 0)
        PUT(out, "{}");
    else if (is_object(headers))
        sl_json_one_line(out, headers);
    else
        sl_json_string(out, headers);
}

void sl_format_members(sl_buf *out, const sl_msg *m)
{
    PUT(out, "\"topic\":");
    sl_json_string(out, m->topic);
    PUT(out, ",\"key\":");
    if (m->key.p)
        sl_json_string(out, m->key);
    else
        PUT(out, "null");
    PUT(out, ",\"type\":");
    sl_json_string(out, m->type);
    if (!has_default_type(m)) {
        PUT(out, ",\"content_type\":");
        sl_json_string(out, m->content_type);
    }
    PUT(out, ",");
    sl_format_payload(out, m);
    put_headers(out, m->headers);
}

void sl_format_line(sl_buf *out, const sl_msg *m, const char *worker, const char *extra)
{
    PUT(out, "{\"id\":");
    put_int(out, m->id);
    PUT(out, ",");
    sl_format_members(out, m);
    PUT(out, ",\"attempt\":");
    put_int(out, m->attempt);
    PUT(out, ",\"worker\":");
    sl_json_string(out, sl_str_of(worker));
    PUT(out, ",\"epoch\":");
    put_int(out, m->epoch);
    sl_buf_puts(out, extra ? extra : "");
    PUT(out, "}\n");
}
