/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_ids.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum { BITS = 5, MORE = 1 << BITS, CHARS_MAX = 13 };

void sl_kafka_ids_put(sl_buf *out, int64_t *last, int64_t id)
{
    uint64_t apart = (uint64_t)id - (uint64_t)*last;
    uint64_t left =
        (apart << 1) ^ (uint64_t) - (int64_t)(apart >> 63); /* the sign comes last */
    *last = id;
    do {
        unsigned low = (unsigned)(left & (MORE - 1));
        left >>= BITS;
        sl_buf_putc(out, digits[low | (left ? MORE : 0)]);
    } while (left);
}

bool sl_kafka_ids_each(sl_str text, sl_kafka_id_fn fn, void *ctx)
{
    uint64_t id = 0, left = 0;
    unsigned chars = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char *at = text.p[i] ? strchr(digits, text.p[i]) : NULL;
        if (!at || chars == CHARS_MAX)
            return false;
        unsigned value = (unsigned)(at - digits);
        left |= (uint64_t)(value & (MORE - 1)) << (BITS * chars++);
        if (value & MORE)
            continue;
        id += (left >> 1) ^ (uint64_t) - (int64_t)(left & 1);
        fn(ctx, (int64_t)id);
        left = chars = 0;
    }
    return chars == 0;
}
