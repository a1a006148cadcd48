/* SPDX-License-Identifier: Apache-2.0 */
#include "core/utf8.h"

#include "core/err.h"

typedef unsigned char byte;

#define HIGH_BITS UINT64_C(0x8080808080808080)

static const byte *skip_ascii(const byte *p, const byte *end)
{
    uint64_t word;
    while ((size_t)(end - p) >= sizeof word) {
        memcpy(&word, p, sizeof word);
        if (word & HIGH_BITS)
            break;
        p += sizeof word;
    }
    while (p < end && *p < 0x80)
        p++;
    return p;
}

/*
 * The length of the sequence at p, or 0. Only the second byte has bounds of its own; they keep
 * out overlong forms (e0, f0), surrogates (ed) and what lies beyond U+10FFFF (f4).
 */
static size_t sequence(const byte *p, const byte *end)
{
    byte lead = p[0];
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    size_t n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if ((size_t)(end - p) < n)
        return 0;
    byte low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    byte high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

size_t sl_utf8_prefix(sl_str s)
{
    if (s.n == 0)
        return 0;
    const byte *start = (const byte *)s.p;
    const byte *end = start + s.n;
    const byte *p = start;
    while ((p = skip_ascii(p, end)) < end) {
        size_t n = sequence(p, end);
        if (n == 0)
            break;
        p += n;
    }
    return (size_t)(p - start);
}

bool sl_is_utf8(sl_str s)
{
    return sl_utf8_prefix(s) == s.n;
}
