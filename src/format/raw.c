/* SPDX-License-Identifier: Apache-2.0 */
/* The payload as it is: with what a consumer needs to tell messages apart beside it, or without. */
#include "core/err.h"
#include "format/encoder.h"

static bool encode_raw(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    (void)why;
    bool usual =
        m->content_type.n == 0 || sl_str_eq(m->content_type, SL_STR("application/json"));
    sl_headers_put_ours(e, m);
    if (!usual && !sl_headers_find(e, SL_STR("content-type")))
        sl_headers_put(e, SL_STR("content-type"), m->content_type);
    *value = m->payload;
    return true;
}

static bool encode_plain(sl_encoder *e, const sl_msg *m, sl_str *value, char *why)
{
    (void)e;
    (void)why;
    *value = m->payload;
    return true;
}

const sl_encode_ops sl_encode_raw = { .name = "raw", .encode = encode_raw };
const sl_encode_ops sl_encode_plain = { .name = "plain", .encode = encode_plain };
