/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function per type reads a value, one shows it; both share the tables of units, so that
 * what is shown can be read again. Nothing is guessed: a number without the unit it needs, a
 * word that is nearly right and a number that overflows are refused, each with what would do.
 */
#include "core/opt.h"

#include "core/clock.h"
#include "core/mem.h"

#include <assert.h>
#include <ctype.h>
#include <strings.h>

typedef struct unit {
    const char *name;
    int64_t worth;
} unit; /* from the largest to the smallest */

static const unit times[] = {
    { "d", 86400 * SL_SEC }, { "h", 3600 * SL_SEC }, { "m", 60 * SL_SEC },
    { "s", SL_SEC },         { "ms", SL_MS },        { NULL, 0 },
};

static const unit sizes[] = {
    { "T", INT64_C(1) << 40 }, { "G", 1 << 30 }, { "M", 1 << 20 },
    { "k", 1 << 10 },          { "", 1 },        { NULL, 0 },
};

static const unit plain[] = { { "", 1 }, { NULL, 0 } };

static void *member(const sl_opt *o, void *base)
{
    return (char *)base + o->offset;
}

static const void *member_of(const sl_opt *o, const void *base)
{
    return (const char *)base + o->offset;
}

/* ---- Names ---- */

static char same_case(char c)
{
    return c == '-' ? '_' : c;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && same_case(*a) == same_case(*b))
        a++, b++;
    return *a == *b;
}

const sl_opt *sl_opt_find(const sl_opt *table, const char *name)
{
    for (const sl_opt *o = table; o->name; o++)
        if (same_name(o->name, name))
            return o;
    return NULL;
}

enum { NAME_MAX_BYTES = 64 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Letters to insert, drop, change or swap with their neighbour to make b of a. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NAME_MAX_BYTES + 1];
    size_t na = strlen(a), nb = strlen(b);

    if (na > NAME_MAX_BYTES || nb > NAME_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = same_case(a[i - 1]) != same_case(b[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], row[j], two_above[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

static bool begins_with(const char *name, const char *prefix)
{
    for (; *prefix; name++, prefix++)
        if (same_case(*name) != same_case(*prefix))
            return false;
    return true;
}

/* Near is one slip in three letters, at most three, or the beginning of the name. */
void sl_near_try(sl_near *near, const char *candidate)
{
    size_t n = strlen(near->wanted);
    size_t d = distance(near->wanted, candidate);
    size_t limit = n < 3 ? 1 : n / 3 < 3 ? n / 3 : 3;

    if (d > limit && n >= 2 && begins_with(candidate, near->wanted))
        d = limit;
    if (d > limit || d >= strlen(candidate))
        return;
    if (!near->best || d < near->distance) {
        near->best = candidate;
        near->distance = d;
    }
}

const char *sl_opt_nearest(const sl_opt *table, const char *name)
{
    sl_near near = { .wanted = name };
    for (const sl_opt *o = table; o->name; o++)
        sl_near_try(&near, o->name);
    return near.best;
}

/* ---- Numbers with units ---- */

typedef enum parsed { GOOD, NO_NUMBER, NO_UNIT, TOO_SMALL, TOO_LARGE } parsed;

/* Digits only: strtoll would take blanks, a plus sign and, for another base, letters. */
static parsed read_digits(const char **text, int64_t *value)
{
    const char *p = *text;
    bool negative = *p == '-';
    bool over = false;

    p += negative;
    if (!isdigit((unsigned char)*p))
        return NO_NUMBER;
    for (*value = 0; isdigit((unsigned char)*p); p++) {
        int digit = negative ? '0' - *p : *p - '0';
        over |= __builtin_mul_overflow(*value, 10, value);
        over |= __builtin_add_overflow(*value, digit, value);
    }
    *text = p;
    if (over)
        return negative ? TOO_SMALL : TOO_LARGE;
    return GOOD;
}

static const unit *unit_named(const unit *units, const char *name)
{
    for (const unit *u = units; u->name; u++)
        if (strcasecmp(u->name, name) == 0)
            return u;
    return NULL;
}

static parsed read_number(const unit *units, const char *text, int64_t *value)
{
    parsed result = read_digits(&text, value);
    if (result == NO_NUMBER)
        return result;

    const unit *u = unit_named(units, text);
    if (!u && *text == '\0' && result == GOOD && *value == 0)
        return GOOD; /* nothing is nothing in any unit */
    if (!u)
        return NO_UNIT;
    bool negative = *value < 0;
    if (result == GOOD && __builtin_mul_overflow(*value, u->worth, value))
        return negative ? TOO_SMALL : TOO_LARGE;
    return result;
}

static void show_number(const unit *units, int64_t value, sl_buf *out)
{
    const unit *u = units;
    if (value == 0)
        u = unit_named(units, units == times ? "s" : "");
    while (u[1].name && value % u->worth != 0)
        u++;
    sl_buf_printf(out, "%lld%s", (long long)(value / u->worth), u->name);
}

static const unit *units_of(const sl_opt *o)
{
    return o->type == SL_OPT_TIME ? times : o->type == SL_OPT_SIZE ? sizes : plain;
}

/* ---- Reading a value ---- */

static sl_rc fail_bounds(const sl_opt *o, const char *text, const char *how, sl_err *err)
{
    sl_buf range = { 0 };

    if (o->min != o->max) {
        sl_buf_puts(&range, "\nhint: from ");
        show_number(units_of(o), o->min, &range);
        sl_buf_puts(&range, " to ");
        show_number(units_of(o), o->max, &range);
    }
    sl_rc rc = sl_fail(err, SL_REFUSED, "'%.80s' is too %s for %s%s", text, how, o->name,
                       sl_buf_text(&range));
    sl_buf_fini(&range);
    return rc;
}

static sl_rc fail_number(const sl_opt *o, const char *text, sl_err *err)
{
    static const char *const wanted[] = {
        [SL_OPT_INT] = "a whole number",
        [SL_OPT_TIME] = "a whole number with a unit: 250ms, 30s, 5m, 2h or 7d",
        [SL_OPT_SIZE] = "a number of bytes, as 512, 64k, 8M or 1G",
    };
    return sl_fail(err, SL_REFUSED, "'%.80s' will not do for %s\nhint: give %s", text, o->name,
                   wanted[o->type]);
}

static sl_rc set_number(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    int64_t value = 0;
    parsed result = read_number(units_of(o), text, &value);
    bool bounded = o->min != o->max;

    if (result == NO_NUMBER || result == NO_UNIT)
        return fail_number(o, text, err);
    if (result == TOO_SMALL || (result == GOOD && bounded && value < o->min))
        return fail_bounds(o, text, "small", err);
    if (result == TOO_LARGE || (bounded && value > o->max))
        return fail_bounds(o, text, "large", err);
    *(int64_t *)member(o, base) = value;
    return SL_OK;
}

static sl_rc set_bool(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *(bool *)member(o, base) = i % 2 == 1;
            return SL_OK;
        }
    }
    return sl_fail(err, SL_REFUSED, "'%.80s' will not do for %s\nhint: give true or false",
                   text, o->name);
}

static sl_rc set_text(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    char **slot = member(o, base);
    size_t n = strlen(text);

    /* The text itself stays out of these: it may be a secret. */
    if (n == 0 && o->min > 0 && o->def)
        return sl_fail(err, SL_REFUSED, "%s must not be empty", o->name);
    if (n > 0 && n < (size_t)o->min)
        return sl_fail(err, SL_REFUSED, "%s is shorter than %lld bytes", o->name,
                       (long long)o->min);
    if (o->max > 0 && n > (size_t)o->max)
        return sl_fail(err, SL_REFUSED, "%s is longer than %lld bytes", o->name,
                       (long long)o->max);
    char *copy = n == 0 && o->min > 0 ? NULL : sl_strdup(text);
    free(*slot);
    *slot = copy;
    return SL_OK;
}

/* The next word of "a|b|c"; *words moves on and becomes NULL after the last. */
static sl_str next_word(const char **words)
{
    const char *p = *words;
    size_t n = strcspn(p, "|");
    *words = p[n] ? p + n + 1 : NULL;
    return (sl_str){ p, n };
}

static sl_rc set_choice(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    const char *rest = o->arg;

    for (int i = 0; rest; i++) {
        if (sl_str_eq(next_word(&rest), sl_str_of(text))) {
            *(int *)member(o, base) = i;
            return SL_OK;
        }
    }
    return sl_fail(err, SL_REFUSED, "'%.80s' will not do for %s\nhint: give one of %s", text,
                   o->name, o->arg);
}

/* ---- Maps ---- */

static void map_fini(sl_opt_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        free(map->names[i]);
        free(map->values[i]);
    }
    free(map->names);
    free(map->values);
    *map = (sl_opt_map){ 0 };
}

void sl_opt_map_put(sl_opt_map *map, const char *name, const char *value)
{
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->names[i], name) == 0) {
            char *copy = sl_strdup(value);
            free(map->values[i]);
            map->values[i] = copy;
            return;
        }
    }
    map->names = sl_realloc(map->names, (map->count + 1) * sizeof *map->names);
    map->values = sl_realloc(map->values, (map->count + 1) * sizeof *map->values);
    map->names[map->count] = sl_strdup(name);
    map->values[map->count] = sl_strdup(value);
    map->count++;
}

const char *sl_opt_map_get(const sl_opt_map *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->names[i], name) == 0)
            return map->values[i];
    return NULL;
}

/* Copies up to one of the characters in `ends`, without the backslashes that guard them. */
static const char *take_until(const char *p, const char *ends, sl_buf *out)
{
    sl_buf_reset(out);
    while (*p && !strchr(ends, *p)) {
        if (*p == '\\' && p[1])
            p++;
        sl_buf_putc(out, *p++);
    }
    return p;
}

static sl_rc read_map(const sl_opt *o, const char *text, sl_opt_map *map, sl_err *err)
{
    sl_buf name = { 0 }, value = { 0 };
    sl_rc rc = SL_OK;

    for (const char *p = text; *p && rc == SL_OK;) {
        p = take_until(p, "=,", &name);
        if (*p != '=' || name.n == 0) {
            rc = sl_fail(err, SL_REFUSED, "'%.80s' will not do for %s\nhint: give %s", text,
                         o->name, o->arg ? o->arg : "NAME=VALUE,...");
            break;
        }
        p = take_until(p + 1, ",", &value);
        if (sl_opt_map_get(map, name.p))
            rc = sl_fail(err, SL_REFUSED, "%s has '%.80s' twice", o->name, name.p);
        sl_opt_map_put(map, name.p, sl_buf_text(&value));
        p += *p == ',';
    }
    sl_buf_fini(&name);
    sl_buf_fini(&value);
    return rc;
}

/* The new map takes the place of the old one: a flag does not add to what a file says. */
static sl_rc set_map(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    sl_opt_map *map = member(o, base);
    sl_opt_map fresh = { 0 };

    sl_rc rc = read_map(o, text, &fresh, err);
    if (rc != SL_OK) {
        map_fini(&fresh);
        return rc;
    }
    map_fini(map);
    *map = fresh;
    return SL_OK;
}

static void put_guarded(sl_buf *out, const char *text, const char *ends)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\\' || strchr(ends, *p))
            sl_buf_putc(out, '\\');
        sl_buf_putc(out, *p);
    }
}

bool sl_opt_is_secret(const sl_opt *o, const char *name)
{
    static const char *const words[] = { "password", "secret", "pem",
                                         "token",    "jaas",   "oauthbearer.config" };
    for (size_t i = 0; o->flags & SL_OPT_SECRET && i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void show_map(const sl_opt *o, const sl_opt_map *map, bool reveal, sl_buf *out)
{
    for (size_t i = 0; i < map->count; i++) {
        if (i > 0)
            sl_buf_putc(out, ',');
        put_guarded(out, map->names[i], "=,");
        sl_buf_putc(out, '=');
        bool masked = !reveal && sl_opt_is_secret(o, map->names[i]);
        put_guarded(out, masked ? "***" : map->values[i], ",");
    }
}

static sl_rc add_text(sl_opt_list *list, const char *text)
{
    list->v = sl_realloc(list->v, (list->count + 1) * sizeof *list->v);
    list->v[list->count++] = sl_strdup(text);
    return SL_OK;
}

static void list_fini(sl_opt_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->v[i]);
    free(list->v);
    *list = (sl_opt_list){ 0 };
}

static void show_list(const sl_opt_list *list, sl_buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            sl_buf_putc(out, ',');
        put_guarded(out, list->v[i], ",");
    }
}

/* ---- All types ---- */

sl_rc sl_opt_set(const sl_opt *o, void *base, const char *text, sl_err *err)
{
    switch (o->type) {
    case SL_OPT_BOOL:
        return set_bool(o, base, text, err);
    case SL_OPT_INT:
    case SL_OPT_TIME:
    case SL_OPT_SIZE:
        return set_number(o, base, text, err);
    case SL_OPT_TEXT:
        return set_text(o, base, text, err);
    case SL_OPT_CHOICE:
        return set_choice(o, base, text, err);
    case SL_OPT_MAP:
        return set_map(o, base, text, err);
    case SL_OPT_LIST:
        return add_text(member(o, base), text);
    }
    return sl_fail(err, SL_OPERATOR, "%s has a type that is not known", o->name);
}

void sl_opt_defaults(const sl_opt *table, void *base)
{
    for (const sl_opt *o = table; o->name; o++) {
        sl_err err = { 0 };
        sl_rc rc = o->def ? sl_opt_set(o, base, o->def, &err) : SL_OK;
        if (rc != SL_OK)
            fprintf(stderr, "default of %s: %s\n", o->name, err.text);
        assert(rc == SL_OK);
    }
}

void sl_opt_free(const sl_opt *table, void *base)
{
    for (const sl_opt *o = table; o->name; o++) {
        if (o->type == SL_OPT_TEXT) {
            char **slot = member(o, base);
            free(*slot);
            *slot = NULL;
        } else if (o->type == SL_OPT_MAP) {
            map_fini(member(o, base));
        } else if (o->type == SL_OPT_LIST) {
            list_fini(member(o, base));
        }
    }
}

static void show_choice(const sl_opt *o, int index, sl_buf *out)
{
    const char *rest = o->arg;
    sl_str word = next_word(&rest);

    for (int i = 0; i < index && rest; i++)
        word = next_word(&rest);
    sl_buf_put(out, word.p, word.n);
}

static void show_text(const sl_opt *o, const char *text, bool reveal, sl_buf *out)
{
    bool secret = (o->flags & SL_OPT_SECRET) && !reveal;
    bool url = o->arg && strcmp(o->arg, "URL") == 0;

    if (!text)
        return;
    if (secret && url)
        sl_opt_mask(text, out);
    else
        sl_buf_puts(out, secret ? "***" : text);
}

void sl_opt_show(const sl_opt *o, const void *base, bool reveal, sl_buf *out)
{
    const void *at = member_of(o, base);

    switch (o->type) {
    case SL_OPT_BOOL:
        sl_buf_puts(out, *(const bool *)at ? "true" : "false");
        break;
    case SL_OPT_INT:
    case SL_OPT_TIME:
    case SL_OPT_SIZE:
        show_number(units_of(o), *(const int64_t *)at, out);
        break;
    case SL_OPT_TEXT:
        show_text(o, *(char *const *)at, reveal, out);
        break;
    case SL_OPT_CHOICE:
        show_choice(o, *(const int *)at, out);
        break;
    case SL_OPT_MAP:
        show_map(o, at, reveal, out);
        break;
    case SL_OPT_LIST:
        show_list(at, out);
        break;
    }
}

/* ---- Masking: rather too much than too little ---- */

/* Digits and then the path, or the next host of a list: "h:5432/db", "h1:1,h2:2/db". */
static bool is_port(const char *p)
{
    size_t n = strspn(p, "0123456789");
    return n > 0 && (p[n] == '/' || p[n] == ',');
}

/*
 * p stands where the user's name may begin. A password goes from the first colon to the last at
 * sign; libpq takes any character but '/' in between, and people forget to escape even that. Where
 * an at sign may as well belong to the query, no more of the text is shown: what follows could be
 * half a password.
 */
static const char *mask_userinfo(const char *p, sl_buf *out)
{
    size_t user = strcspn(p, ":@/?# \t\n");
    sl_buf_put(out, p, user);
    p += user;

    const char *at = strrchr(p, '@');
    const char *first = strchr(p, '@');
    if (*p != ':' || !at || (is_port(p + 1) && p + strcspn(p, "/") < first))
        return p;
    sl_buf_puts(out, ":***");
    return p + strcspn(p, "?") < at ? p + strlen(p) : at;
}

static bool ends_with_secret(sl_str name)
{
    static const char *const words[] = { "password", "passwd", "secret", "token" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if (name.n >= n && strncasecmp(name.p + name.n - n, words[i], n) == 0)
            return true;
    }
    return false;
}

/* Of a query "?a=b&password=c", p stands on the '?'. */
static void mask_query(const char *p, sl_buf *out)
{
    while (*p) {
        sl_buf_putc(out, *p++); /* ? or & */
        size_t pair = strcspn(p, "&");
        size_t name = strcspn(p, "=&");
        if (name < pair && ends_with_secret((sl_str){ p, name }))
            sl_buf_printf(out, "%.*s=***", (int)name, p);
        else
            sl_buf_put(out, p, pair);
        p += pair;
    }
}

static void mask_url(const char *text, const char *authority, sl_buf *out)
{
    sl_buf_put(out, text, (size_t)(authority - text));
    const char *p = mask_userinfo(authority, out);
    size_t path = strcspn(p, "?");
    sl_buf_put(out, p, path);
    mask_query(p + path, out);
}

/* The end of a conninfo value: quoted or not, a backslash guards the next character. */
static const char *conninfo_end(const char *p)
{
    bool quoted = *p == '\'';

    for (p += quoted; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (quoted ? *p == '\'' : isspace((unsigned char)*p))
            return p + quoted;
    }
    return p;
}

/* A name that is not here may be "password" with a slip in it. */
static bool may_be_shown(sl_str name, sl_str value)
{
    static const char *const names[] = {
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "service",
        "passfile",
        "sslmode",
        "sslrootcert",
        "application_name",
        "options",
        "connect_timeout",
        "target_session_attrs",
    };
    if (memchr(value.p, '@', value.n) || memchr(value.p, '=', value.n))
        return false; /* dbname may be a whole connection string */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (sl_str_eq(name, sl_str_of(names[i])))
            return true;
    return false;
}

/* "host=h password='a b'": only known names keep their value, and stray words are hidden. */
static void mask_conninfo(const char *p, sl_buf *out)
{
    while (*p) {
        while (isspace((unsigned char)*p))
            sl_buf_putc(out, *p++);
        sl_str name = { p, strcspn(p, "= \t\n") };
        p += name.n;
        const char *equals = p + strspn(p, " \t\n");
        if (*equals != '=') {
            sl_buf_puts(out, name.n ? "***" : "");
            continue;
        }
        const char *start = equals + 1 + strspn(equals + 1, " \t\n");
        const char *end = conninfo_end(start);
        sl_buf_put(out, name.p, (size_t)(start - name.p));
        if (may_be_shown(name, (sl_str){ start, (size_t)(end - start) }))
            sl_buf_put(out, start, (size_t)(end - start));
        else
            sl_buf_puts(out, "***");
        p = end;
    }
}

static bool is_conninfo(const char *text)
{
    const char *p = text + strspn(text, " \t\n");
    size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
    return name > 0 && p[name + strspn(p + name, " \t\n")] == '=';
}

void sl_opt_mask(const char *text, sl_buf *out)
{
    const char *slashes = strstr(text, "://");
    if (is_conninfo(text))
        mask_conninfo(text, out);
    else if (slashes)
        mask_url(text, slashes + 3, out);
    else if (strchr(text, '@'))
        mask_url(text, text, out); /* the scheme was forgotten, or is a single word */
    else
        mask_url(text, text + strlen(text), out);
}
