/* SPDX-License-Identifier: Apache-2.0 */
/* First the line is cut into its members, whatever their order; then each one found is taken,
 * in the order of the table below: the content type before the payload, whose meaning depends
 * on it. What is copied is copied into the arena, so the line may go. */
#include "core/err.h"
#include "core/opt.h"
#include "format/format.h"
#include "format/json.h"

enum { KEY_MAX_BYTES = 512, SHOWN_BYTES = 60 };

#define TIME_MAX_US INT64_C(253402300799999999) /* the end of the year 9999 */

typedef struct parse {
    sl_draft *out;
    sl_arena *arena;
    sl_err *err;
    const char *member; /* the one being taken */
} parse;

static const char *kind(sl_str value)
{
    switch (value.p[0]) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case 't':
    case 'f':
        return "a boolean";
    case 'n':
        return "null";
    default:
        return "a number";
    }
}

/* Names and values are quoted in errors up to a length, and never cut inside a character. */
static sl_str shown(parse *p, sl_str s)
{
    sl_str cut = { s.p, s.n < SHOWN_BYTES ? s.n : SHOWN_BYTES };
    cut.n = sl_utf8_prefix(cut);
    return sl_arena_copy(p->arena, cut);
}

/* ---- Text ---- */

static sl_rc text_of(parse *p, sl_str value, sl_str *text)
{
    if (value.p[0] != '"')
        return sl_fail(p->err, SL_REFUSED, "member \"%s\" is %s, not a string", p->member,
                       kind(value));
    if (!sl_json_text(p->arena, value, text))
        return sl_fail(p->err, SL_REFUSED, "member \"%s\" holds half a surrogate pair",
                       p->member);
    return SL_OK;
}

/* For what is kept in a text column, which cannot hold a NUL. */
static sl_rc column_text(parse *p, sl_str value, sl_str *text)
{
    sl_rc rc = text_of(p, value, text);
    if (rc == SL_OK && memchr(text->p, '\0', text->n))
        return sl_fail(
            p->err, SL_REFUSED,
            "member \"%s\" holds a NUL character, which a database cannot keep in text",
            p->member);
    return rc;
}

static sl_rc not_empty(parse *p, sl_str value, sl_str *text)
{
    sl_rc rc = column_text(p, value, text);
    if (rc == SL_OK && text->n == 0)
        return sl_fail(p->err, SL_REFUSED, "member \"%s\" is empty", p->member);
    return rc;
}

static sl_rc take_topic(parse *p, sl_str value)
{
    sl_str text;
    sl_rc rc = not_empty(p, value, &text);
    if (rc == SL_OK)
        p->out->topic = text.p;
    return rc;
}

static sl_rc take_key(parse *p, sl_str value)
{
    sl_str text;
    sl_rc rc = column_text(p, value, &text);
    if (rc != SL_OK)
        return rc;
    if (text.n > KEY_MAX_BYTES)
        return sl_fail(p->err, SL_REFUSED, "member \"key\" has %zu bytes, more than %d", text.n,
                       KEY_MAX_BYTES);
    p->out->key = text.p;
    p->out->key_bytes = text.n;
    return SL_OK;
}

static sl_rc take_type(parse *p, sl_str value)
{
    sl_str text;
    sl_rc rc = column_text(p, value, &text);
    if (rc == SL_OK)
        p->out->type = text.p;
    return rc;
}

/* An empty one says as little as none. */
static sl_rc take_content_type(parse *p, sl_str value)
{
    sl_str text;
    sl_rc rc = column_text(p, value, &text);
    if (rc == SL_OK && text.n > 0)
        p->out->content_type = text.p;
    return rc;
}

/* An empty one is refused: every message that carried it but the first would vanish. */
static sl_rc take_idempotency_key(parse *p, sl_str value)
{
    sl_str text;
    sl_rc rc = not_empty(p, value, &text);
    if (rc == SL_OK)
        p->out->idempotency_key = text.p;
    return rc;
}

/* ---- Headers ---- */

static sl_rc check_header(parse *p, sl_str name, sl_str value)
{
    sl_str text;
    sl_rc rc = column_text(p, name, &text);
    if (rc != SL_OK)
        return rc;
    if (value.p[0] != '"')
        return sl_fail(p->err, SL_REFUSED, "header \"%s\" is %s, not a string",
                       shown(p, text).p, kind(value));
    return column_text(p, value, &text);
}

/* The object is kept as it was spelled; an empty one, which is what a message without headers
 * is printed with, is none. */
static sl_rc take_headers(parse *p, sl_str value)
{
    if (value.p[0] != '{')
        return sl_fail(p->err, SL_REFUSED, "member \"headers\" is %s, not an object of strings",
                       kind(value));
    sl_json j = { .p = value.p, .end = value.p + value.n };
    sl_str name, header;
    bool any = false;
    while (sl_json_member(&j, &name, &header)) {
        sl_rc rc = check_header(p, name, header);
        if (rc != SL_OK)
            return rc;
        any = true;
    }
    if (any)
        p->out->headers = sl_arena_copy(p->arena, value).p;
    return SL_OK;
}

/* ---- Payload ---- */

static void set_payload(parse *p, sl_str bytes)
{
    p->out->payload = bytes.p;
    p->out->payload_bytes = bytes.n;
}

static sl_rc take_payload(parse *p, sl_str value)
{
    const char *type = p->out->content_type;
    if (value.p[0] != '"' || !type || sl_is_json_type(sl_str_of(type))) {
        set_payload(p, sl_arena_copy(p->arena, value));
        return SL_OK;
    }
    sl_str text;
    sl_rc rc = text_of(p, value, &text);
    if (rc == SL_OK)
        set_payload(p, text);
    return rc;
}

static sl_rc take_payload_base64(parse *p, sl_str value)
{
    if (p->out->payload)
        return sl_fail(p->err, SL_REFUSED,
                       "members \"payload\" and \"payload_base64\" exclude each other");
    sl_str text;
    sl_rc rc = text_of(p, value, &text);
    if (rc != SL_OK)
        return rc;
    sl_buf bytes = { 0 };
    bool good = sl_base64_decode(&bytes, text);
    if (good)
        set_payload(p, sl_arena_copy(p->arena, (sl_str){ sl_buf_text(&bytes), bytes.n }));
    sl_buf_fini(&bytes);
    return good ? SL_OK
                : sl_fail(
                      p->err, SL_REFUSED,
                      "member \"payload_base64\" is not base64\n"
                      "hint: with + and /, padded by = to a multiple of four, no line breaks");
}

/* ---- Time ---- */

/* A number of so many digits, within bounds; moves on. */
static bool read_number(const char **s, int digits, int min, int max, int *out)
{
    int v = 0;
    for (int i = 0; i < digits; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return false;
        v = v * 10 + (**s - '0');
    }
    *out = v;
    return v >= min && v <= max;
}

static bool read_one_of(const char **s, const char *set)
{
    return **s && strchr(set, **s) && (*s)++;
}

/* Days since 1970-01-01 of the Gregorian calendar: years begin in March, so that a leap day
 * comes last. */
static int64_t days_of(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int era = (y >= 0 ? y : y - 399) / 400;
    int year_of_era = y - era * 400;
    int day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

static bool read_date(const char **s, int64_t *days)
{
    int year, month, day;
    if (!read_number(s, 4, 0, 9999, &year) || !read_one_of(s, "-") ||
        !read_number(s, 2, 1, 12, &month) || !read_one_of(s, "-") ||
        !read_number(s, 2, 1, 31, &day))
        return false;
    *days = days_of(year, month, day);
    int next = month == 12 ? 1 : month + 1;
    return *days < days_of(year + (month == 12), next, 1); /* no 30 February */
}

/* hh:mm:ss with a fraction; digits beyond the microseconds are dropped. A leap second is the
 * first of the next minute, as everywhere in Unix time. */
static bool read_clock(const char **s, int64_t *us)
{
    int hour, minute, second;
    if (!read_number(s, 2, 0, 23, &hour) || !read_one_of(s, ":") ||
        !read_number(s, 2, 0, 59, &minute) || !read_one_of(s, ":") ||
        !read_number(s, 2, 0, 60, &second))
        return false;
    *us = (int64_t)(hour * 3600 + minute * 60 + second) * 1000000;
    if (!read_one_of(s, "."))
        return true;
    int digit;
    if (!read_number(s, 1, 0, 9, &digit))
        return false;
    int64_t unit = 100000;
    do {
        *us += digit * unit;
        unit /= 10;
    } while (read_number(s, 1, 0, 9, &digit));
    return true;
}

static bool read_zone(const char **s, int64_t *us)
{
    *us = 0;
    if (read_one_of(s, "Zz"))
        return true;
    int sign = **s == '-' ? -1 : 1;
    int hour, minute;
    if (!read_one_of(s, "+-") || !read_number(s, 2, 0, 23, &hour) || !read_one_of(s, ":") ||
        !read_number(s, 2, 0, 59, &minute))
        return false;
    *us = sign * (int64_t)(hour * 3600 + minute * 60) * 1000000;
    return true;
}

static bool read_rfc3339(const char *s, int64_t *us)
{
    int64_t days, clock_us, zone_us;
    if (!read_date(&s, &days) || !read_one_of(&s, "Tt ") || !read_clock(&s, &clock_us) ||
        !read_zone(&s, &zone_us) || *s)
        return false;
    *us = days * INT64_C(86400000000) + clock_us - zone_us;
    return true;
}

static int read_exponent(const char *p, const char *end)
{
    int sign = p < end && *p == '-' ? -1 : 1;
    int v = 0;
    for (p += p < end && (*p == '-' || *p == '+'); p < end && v < 1000; p++)
        v = v * 10 + (*p - '0');
    return sign * v;
}

/* Seconds to microseconds, digit by digit: a double would round the last ones. False: beyond
 * all bounds. */
static bool read_seconds(sl_str number, int64_t *us)
{
    const char *p = number.p;
    const char *end = number.p + number.n;
    bool negative = *p == '-';
    bool fraction = false;
    int64_t v = 0;
    int64_t scale = 6; /* the value is v * 10^scale microseconds */
    for (p += negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
        } else if (v < INT64_C(100000000000000000)) {
            v = v * 10 + (*p - '0');
            scale -= fraction;
        } else {
            scale += !fraction;
        }
    }
    if (p < end)
        scale += read_exponent(p + 1, end);
    for (; scale > 0 && v > 0; scale--)
        if (__builtin_mul_overflow(v, 10, &v))
            return false;
    for (; scale < 0 && v > 0; scale++)
        v /= 10;
    *us = negative ? -v : v;
    return true;
}

static sl_rc time_of_text(parse *p, sl_str value, int64_t *us)
{
    sl_str text;
    sl_rc rc = column_text(p, value, &text);
    if (rc != SL_OK)
        return rc;
    if (!read_rfc3339(text.p, us))
        return sl_fail(p->err, SL_REFUSED,
                       "member \"available_at\" is \"%s\", which is no RFC 3339 time\n"
                       "hint: for example 2027-01-31T08:30:00Z or 2027-01-31T08:30:00.5+01:00",
                       shown(p, text).p);
    return SL_OK;
}

static sl_rc take_available_at(parse *p, sl_str value)
{
    int64_t us = 0;
    if (value.p[0] == '"') {
        sl_rc rc = time_of_text(p, value, &us);
        if (rc != SL_OK)
            return rc;
    } else if (value.p[0] != '-' && (value.p[0] < '0' || value.p[0] > '9')) {
        return sl_fail(p->err, SL_REFUSED,
                       "member \"available_at\" is %s, not a time\n"
                       "hint: RFC 3339 text or a number of Unix seconds",
                       kind(value));
    } else if (!read_seconds(value, &us)) {
        us = INT64_MAX;
    }
    if (us > TIME_MAX_US)
        return sl_fail(p->err, SL_REFUSED,
                       "member \"available_at\" is beyond the year 9999\n"
                       "hint: a number counts seconds, not milliseconds");
    p->out->available_at_us = us > 0 ? us : 1; /* 0 has a meaning; the past is the past */
    return SL_OK;
}

/* ---- The line ---- */

static const struct member {
    const char *name;
    bool nullable;
    sl_rc (*take)(parse *p, sl_str value); /* NULL: ignored */
} members[] = {
    { "topic", false, take_topic },
    { "key", true, take_key },
    { "type", true, take_type },
    { "content_type", true, take_content_type },
    { "headers", true, take_headers },
    { "idempotency_key", true, take_idempotency_key },
    { "available_at", true, take_available_at },
    { "payload", false, take_payload },
    { "payload_base64", false, take_payload_base64 },
    { "id", true, NULL },
    { "attempt", true, NULL },
    { "worker", true, NULL },
    { "epoch", true, NULL },
    { "receipt", true, NULL },
};

enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static size_t find_member(sl_str name)
{
    size_t i = 0;
    while (i < MEMBER_COUNT && !sl_str_eq(name, sl_str_of(members[i].name)))
        i++;
    return i;
}

/* Near in spelling, or the column's longer name: entity_key, event_type. */
static const char *nearest_member(const char *name)
{
    sl_near near = { .wanted = name };
    for (size_t i = 0; i < MEMBER_COUNT && members[i].take; i++) {
        size_t n = strlen(name), tail = strlen(members[i].name);
        if (n > tail + 1 && name[n - tail - 1] == '_' &&
            strcmp(name + n - tail, members[i].name) == 0)
            return members[i].name;
        sl_near_try(&near, members[i].name);
    }
    return near.best;
}

static sl_rc unknown_member(parse *p, sl_str name)
{
    const char *text = shown(p, name).p;
    const char *near = nearest_member(text);
    if (near)
        return sl_fail(p->err, SL_REFUSED, "unknown member \"%s\"\nhint: did you mean \"%s\"?",
                       text, near);
    return sl_fail(p->err, SL_REFUSED,
                   "unknown member \"%s\"\n"
                   "hint: there are topic, key, payload, payload_base64, type, headers, "
                   "content_type, idempotency_key and available_at",
                   text);
}

static sl_rc cut_member(parse *p, sl_str *found, sl_str quoted, sl_str value)
{
    sl_str name = { quoted.p + 1, quoted.n - 2 };
    if (memchr(name.p, '\\', name.n) && !sl_json_text(p->arena, quoted, &name))
        return sl_fail(p->err, SL_REFUSED, "a member's name holds half a surrogate pair");
    size_t i = find_member(name);
    if (i == MEMBER_COUNT)
        return unknown_member(p, name);
    if (found[i].p)
        return sl_fail(p->err, SL_REFUSED, "member \"%s\" is there twice", members[i].name);
    found[i] = value;
    return SL_OK;
}

static sl_rc cut(parse *p, sl_str line, sl_str *found)
{
    sl_json j = { .p = line.p, .end = line.p + line.n };
    sl_str name, value;
    while (sl_json_member(&j, &name, &value)) {
        sl_rc rc = cut_member(p, found, name, value);
        if (rc != SL_OK)
            return rc;
    }
    if (!j.why)
        sl_json_space(&j);
    if (!j.why && j.p < j.end)
        j.why = "something follows the object";
    if (j.why)
        return sl_fail(p->err, SL_REFUSED, "not a line of JSON at byte %zu: %s",
                       (size_t)(j.p - line.p) + 1, j.why);
    return SL_OK;
}

static sl_rc check_line(parse *p, sl_str line)
{
    size_t good = sl_utf8_prefix(line);
    if (good < line.n)
        return sl_fail(p->err, SL_REFUSED, "not UTF-8 at byte %zu (0x%02x)", good + 1,
                       (unsigned)(unsigned char)line.p[good]);
    sl_json j = { .p = line.p, .end = line.p + line.n };
    sl_json_space(&j);
    if (j.p == j.end)
        return sl_fail(p->err, SL_REFUSED, "the line is empty");
    if (line.n >= 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0)
        return sl_fail(p->err, SL_REFUSED,
                       "the line begins with a byte order mark\n"
                       "hint: save the file as UTF-8 without one");
    sl_str value;
    if (*j.p != '{' && sl_json_value(&j, &value))
        return sl_fail(p->err, SL_REFUSED, "the line is %s, not an object", kind(value));
    return SL_OK;
}

static sl_rc take_all(parse *p, const sl_str *found)
{
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        bool absent = !found[i].p || (members[i].nullable && found[i].p[0] == 'n');
        if (absent || !members[i].take)
            continue;
        p->member = members[i].name;
        sl_rc rc = members[i].take(p, found[i]);
        if (rc != SL_OK)
            return rc;
    }
    if (!p->out->topic)
        return sl_fail(p->err, SL_REFUSED, "member \"topic\" is missing");
    if (!p->out->payload)
        return sl_fail(p->err, SL_REFUSED,
                       "member \"payload\" is missing\n"
                       "hint: any JSON, or payload_base64 for other bytes");
    return SL_OK;
}

sl_rc sl_line_parse(sl_draft *out, const char *line, size_t bytes, sl_arena *arena, sl_err *err)
{
    sl_str found[MEMBER_COUNT] = { { NULL, 0 } };
    sl_str all = { bytes ? line : "", bytes };
    parse p = { .out = out, .arena = arena, .err = err };
    *out = (sl_draft){ 0 };
    sl_rc rc = check_line(&p, all);
    if (rc == SL_OK)
        rc = cut(&p, all, found);
    if (rc == SL_OK)
        rc = take_all(&p, found);
    return rc;
}
