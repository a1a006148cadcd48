/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner keeps its nesting in a bit per level instead of recursing, and passes over the
 * plain part of a string eight bytes at a time: every message with a JSON payload goes through
 * it. */
#include "format/json.h"

#include "core/err.h"
#include "format/format.h"

#include <strings.h>

#define ONES UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Nonzero if some byte of the word is below `limit`, which is at most 128. */
static inline uint64_t any_below(uint64_t word, unsigned char limit)
{
    return (word - ONES * limit) & ~word & HIGH_BITS;
}

static inline bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* Passes over what stands for itself inside a string. */
static const char *skip_plain(const char *p, const char *end)
{
    uint64_t word;
    while ((size_t)(end - p) >= sizeof word) {
        memcpy(&word, p, sizeof word);
        if (any_below(word, 0x20) | any_below(word ^ ONES * '"', 1) |
            any_below(word ^ ONES * '\\', 1))
            break;
        p += sizeof word;
    }
    while (p < end && is_plain(*p))
        p++;
    return p;
}

static bool wrong(sl_json *j, const char *why)
{
    j->why = why;
    return false;
}

/* The byte at p, or -1 at the end. */
static inline int peek(const sl_json *j)
{
    return j->p < j->end ? (unsigned char)*j->p : -1;
}

static inline bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

void sl_json_space(sl_json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\r' || *j->p == '\t'))
        j->p++;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of \uXXXX, or -1. */
static int hex4(const char *p, const char *end)
{
    if (end - p < 4)
        return -1;
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static bool escape(sl_json *j)
{
    const char *p = j->p + 1;
    if (p < j->end && *p == 'u' && hex4(p + 1, j->end) >= 0) {
        j->p += 6;
        return true;
    }
    if (p == j->end || *p == '\0' || !strchr("\"\\/bfnrt", *p))
        return wrong(j, "bad escape in a string");
    j->p += 2;
    return true;
}

static bool string(sl_json *j)
{
    if (peek(j) != '"')
        return wrong(j, "expected a string");
    j->p++;
    for (;;) {
        j->p = skip_plain(j->p, j->end);
        switch (peek(j)) {
        case '"':
            j->p++;
            return true;
        case '\\':
            if (!escape(j))
                return false;
            break;
        case -1:
            return wrong(j, "string without an end");
        default:
            return wrong(j, "control character in a string, which must be escaped");
        }
    }
}

static bool digits(sl_json *j)
{
    if (!is_digit(peek(j)))
        return wrong(j, "expected a digit");
    while (is_digit(peek(j)))
        j->p++;
    return true;
}

static bool number(sl_json *j)
{
    if (peek(j) == '-')
        j->p++;
    if (peek(j) == '0') {
        j->p++;
        if (is_digit(peek(j)))
            return wrong(j, "number with a leading zero");
    } else if (!digits(j)) {
        return false;
    }
    if (peek(j) == '.') {
        j->p++;
        if (!digits(j))
            return false;
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        j->p++;
        if (peek(j) == '+' || peek(j) == '-')
            j->p++;
        return digits(j);
    }
    return true;
}

static bool literal(sl_json *j, sl_str word)
{
    if ((size_t)(j->end - j->p) < word.n || memcmp(j->p, word.p, word.n) != 0)
        return wrong(j, "expected a value");
    j->p += word.n;
    return true;
}

static bool scalar(sl_json *j)
{
    switch (peek(j)) {
    case '"':
        return string(j);
    case 't':
        return literal(j, SL_STR("true"));
    case 'f':
        return literal(j, SL_STR("false"));
    case 'n':
        return literal(j, SL_STR("null"));
    case -1:
        return wrong(j, "expected a value, found the end");
    default:
        return is_digit(peek(j)) || peek(j) == '-' ? number(j) : wrong(j, "expected a value");
    }
}

static bool name_and_colon(sl_json *j)
{
    sl_json_space(j);
    if (peek(j) != '"')
        return wrong(j, "expected a member name in quotes");
    if (!string(j))
        return false;
    sl_json_space(j);
    if (peek(j) != ':')
        return wrong(j, "expected ':'");
    j->p++;
    return true;
}

/* The brackets that are open: a bit each, set for an object. */
typedef struct nesting {
    unsigned depth;
    uint64_t objects[SL_JSON_DEPTH / 64];
} nesting;

static inline bool in_object(const nesting *n)
{
    return n->objects[(n->depth - 1) / 64] >> (n->depth - 1) % 64 & 1;
}

static bool push(sl_json *j, nesting *n, bool object)
{
    if (n->depth == SL_JSON_DEPTH)
        return wrong(j, "nested deeper than 512 levels");
    uint64_t bit = UINT64_C(1) << n->depth % 64;
    uint64_t *word = &n->objects[n->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    n->depth++;
    j->p++;
    return true;
}

/* Goes down to the first value that is not the beginning of an object or array with content,
 * and passes over it. */
static bool descend(sl_json *j, nesting *n)
{
    for (;;) {
        sl_json_space(j);
        int c = peek(j);
        if (c != '{' && c != '[')
            return scalar(j);
        if (!push(j, n, c == '{'))
            return false;
        sl_json_space(j);
        if (peek(j) == (c == '{' ? '}' : ']')) {
            n->depth--;
            j->p++;
            return true;
        }
        if (c == '{' && !name_and_colon(j))
            return false;
    }
}

/* After a value: closes what ends here, up to the next comma or the outermost end. */
static bool ascend(sl_json *j, nesting *n)
{
    while (n->depth > 0) {
        bool object = in_object(n);
        sl_json_space(j);
        int c = peek(j);
        if (c == ',') {
            j->p++;
            return !object || name_and_colon(j);
        }
        if (c != (object ? '}' : ']'))
            return wrong(j, object ? "expected ',' or '}'" : "expected ',' or ']'");
        n->depth--;
        j->p++;
    }
    return true;
}

bool sl_json_value(sl_json *j, sl_str *value)
{
    nesting n = { 0 };
    sl_json_space(j);
    const char *start = j->p;
    do {
        if (!descend(j, &n) || !ascend(j, &n))
            return false;
    } while (n.depth > 0);
    *value = (sl_str){ start, (size_t)(j->p - start) };
    return true;
}

bool sl_json_member(sl_json *j, sl_str *name, sl_str *value)
{
    sl_json_space(j);
    int c = peek(j);
    if (!j->inside && c != '{')
        return wrong(j, "expected an object");
    if (j->inside && c != ',' && c != '}')
        return wrong(j, "expected ',' or '}'");
    j->p++;
    if (c == '{')
        sl_json_space(j);
    if (c == '}' || (c == '{' && peek(j) == '}')) {
        j->p += c == '{';
        j->inside = false;
        return false;
    }
    j->inside = true;
    sl_json_space(j);
    const char *start = j->p;
    if (!name_and_colon(j))
        return false;
    const char *quote = memrchr(start, '"', (size_t)(j->p - start));
    *name = (sl_str){ start, (size_t)(quote + 1 - start) };
    return sl_json_value(j, value);
}

static char *put_code_point(char *at, unsigned c)
{
    if (c < 0x80) {
        *at++ = (char)c;
        return at;
    }
    if (c < 0x800) {
        *at++ = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        *at++ = (char)(0xe0 | c >> 12);
        *at++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *at++ = (char)(0xf0 | c >> 18);
        *at++ = (char)(0x80 | (c >> 12 & 0x3f));
        *at++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *at++ = (char)(0x80 | (c & 0x3f));
    return at;
}

/* Reads \uXXXX, or two of them that make a pair, at *p. False: half a pair. */
static bool read_code_point(const char **p, const char *end, unsigned *c)
{
    int high = hex4(*p + 2, end);
    *p += 6;
    *c = (unsigned)high;
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high > 0xdbff || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
        return false;
    int low = hex4(*p + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return false;
    *p += 6;
    *c = 0x10000U + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00);
    return true;
}

static char unescaped(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

bool sl_json_text(sl_arena *a, sl_str quoted, sl_str *text)
{
    const char *p = quoted.p + 1;
    const char *end = quoted.p + quoted.n - 1;
    char *start =
        sl_arena_alloc(a, quoted.n); /* no escape is shorter than what it stands for */
    char *at = start;
    while (p < end) {
        const char *run = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((run ? run : end) - p);
        memcpy(at, p, n);
        at += n;
        p += n;
        if (p == end)
            break;
        if (p[1] == 'u') {
            unsigned c;
            if (!read_code_point(&p, end, &c))
                return false;
            at = put_code_point(at, c);
        } else {
            *at++ = unescaped(p[1]);
            p += 2;
        }
    }
    *at = '\0';
    *text = (sl_str){ start, (size_t)(at - start) };
    return true;
}

bool sl_is_json(sl_str s)
{
    if (s.n == 0 || !sl_is_utf8(s))
        return false;
    sl_json j = { .p = s.p, .end = s.p + s.n };
    sl_str value;
    if (!sl_json_value(&j, &value))
        return false;
    sl_json_space(&j);
    return j.p == j.end;
}

static bool is_word(sl_str s, sl_str word)
{
    return s.n == word.n && strncasecmp(s.p, word.p, word.n) == 0;
}

bool sl_is_json_type(sl_str content_type)
{
    sl_str s = content_type;
    if (!s.p)
        return false;
    const char *parameters = memchr(s.p, ';', s.n);
    if (parameters)
        s.n = (size_t)(parameters - s.p);
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (sl_str){ s.p + 1, s.n - 1 };
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    if (is_word(s, SL_STR("application/json")) || is_word(s, SL_STR("text/json")))
        return true;
    return s.n > 5 && is_word((sl_str){ s.p + s.n - 5, 5 }, SL_STR("+json"));
}

static void put_escape(sl_buf *out, char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof named; i += 2)
        if (named[i] == c) {
            sl_buf_put(out, (char[]){ '\\', named[i + 1] }, 2);
            return;
        }
    sl_buf_put(out, (char[]){ '\\', 'u', '0', '0', hex[c >> 4 & 15], hex[c & 15] }, 6);
}

static void put_escaped(sl_buf *out, sl_str s)
{
    if (s.n == 0)
        return;
    const char *p = s.p;
    const char *end = s.p + s.n;
    while (p < end) {
        const char *run = skip_plain(p, end);
        sl_buf_put(out, p, (size_t)(run - p));
        p = run;
        if (p < end)
            put_escape(out, *p++);
    }
}

void sl_json_string(sl_buf *out, sl_str s)
{
    sl_buf_putc(out, '"');
    for (;;) {
        size_t good = sl_utf8_prefix(s);
        put_escaped(out, (sl_str){ s.p, good });
        if (good == s.n)
            break;
        sl_buf_puts(out, "\xef\xbf\xbd");
        s = (sl_str){ s.p + good + 1, s.n - good - 1 };
    }
    sl_buf_putc(out, '"');
}
