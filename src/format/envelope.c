/* SPDX-License-Identifier: Apache-2.0 */
/* The line of `file:` as a value. It leaves out what is of a delivery, not of the message: the
 * attempt and the worker. */
#include "format/encoder.h"
#include "format/format.h"

static void put_member(sl_buf *out, const char *start, int64_t v)
{
    char room[SL_INT_BYTES];
    sl_str digits = sl_int_text(room, v);
    sl_buf_puts(out, start);
    sl_buf_put(out, digits.p, digits.n);
}

static bool encode_json(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    (void)why;
    put_member(&e->value, "{\"id\":", m->id);
    sl_buf_putc(&e->value, ',');
    sl_format_members(&e->value, m);
    put_member(&e->value, ",\"epoch\":", m->epoch);
    sl_buf_putc(&e->value, '}');
    *value = (sl_str){ e->value.p, e->value.n };
    sl_headers_put_ours(e, m);
    sl_headers_put(e, SL_STR("content-type"), SL_STR("application/json"));
    return true;
}

const sl_encode_ops sl_encode_json = { .name = "json", .encode = encode_json };
