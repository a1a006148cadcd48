/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4648, section 4: the ordinary alphabet, padded, no line breaks. Decoding takes only what
 * encoding gives, so that equal bytes have one spelling. */
#include "core/err.h"
#include "format/format.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sl_base64_encode(sl_buf *out, sl_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t left = s.n;
    char *start = sl_buf_room(out, (s.n + 2) / 3 * 4);
    char *at = start;
    for (; left > 0; at += 4) {
        size_t n = left < 3 ? left : 3;
        unsigned v = (unsigned)p[0] << 16;
        v |= n > 1 ? (unsigned)p[1] << 8 : 0;
        v |= n > 2 ? (unsigned)p[2] : 0;
        at[0] = alphabet[v >> 18];
        at[1] = alphabet[v >> 12 & 63];
        at[2] = n > 1 ? alphabet[v >> 6 & 63] : '=';
        at[3] = n > 2 ? alphabet[v & 63] : '=';
        p += n;
        left -= n;
    }
    sl_buf_took(out, (size_t)(at - start));
}

/* Six bits, or 64 and more for what is not of the alphabet. */
static unsigned sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (unsigned)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Turns four characters, the last `pad` of them '=', into 3 - pad bytes. */
static bool decode_group(const char *p, size_t pad, char *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < 4 - pad; i++) {
        unsigned six = sextet(p[i]);
        if (six > 63)
            return false;
        v |= six << (18 - 6 * i);
    }
    for (size_t i = 0; i < 3 - pad; i++)
        out[i] = (char)(v >> (16 - 8 * i) & 0xff);
    /* Bits beyond the last byte would be lost. */
    return pad == 0 || (v & (pad == 1 ? 0xffU : 0xffffU)) == 0;
}

bool sl_base64_decode(sl_buf *out, sl_str s)
{
    if (s.n % 4 != 0)
        return false;
    char *start = sl_buf_room(out, s.n / 4 * 3);
    char *at = start;
    for (size_t i = 0; i < s.n; i += 4) {
        size_t pad = 0;
        if (i + 4 == s.n && s.p[i + 3] == '=')
            pad = s.p[i + 2] == '=' ? 2 : 1;
        if (!decode_group(s.p + i, pad, at)) {
            *start = '\0';
            return false;
        }
        at += 3 - pad;
    }
    sl_buf_took(out, (size_t)(at - start));
    return true;
}
