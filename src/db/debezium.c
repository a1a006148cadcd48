/* SPDX-License-Identifier: Apache-2.0 */
#include "db/debezium.h"

#include "core/mem.h"

#include <strings.h>

enum { NAME_MAX_BYTES = 63, ALIAS_MAX_BYTES = 255 };

#define ROUTED "${routedByValue}"

/* ---- The options there are ---- */

#define AT(member) offsetof(sl_debezium, member)

static const struct {
    const char *name;
    size_t at;
    const char *usual;
} columns[] = {
    { "table.field.event.id", AT(id), "id" },
    { "table.field.event.key", AT(key), "aggregateid" },
    { "table.field.event.type", AT(type), "type" },
    { "table.field.event.payload", AT(payload), "payload" },
    { "table.field.event.timestamp", AT(timestamp), NULL },
    { "route.by.field", AT(topic), "aggregatetype" },
    { "tracing.span.context.field", AT(tracing), "tracingspancontext" },
};

/* Taken as they are by default, and not otherwise. */
static const struct {
    const char *name, *usual, *why;
} fixed[] = {
    { "table.expand.json.payload", "false",
      "the value is the payload as it is stored, which of a JSON column is JSON" },
    { "table.json.payload.null.behavior", "ignore", "payloads are not expanded" },
    { "table.field.event.schema.version", "", "there are no schemas" },
    { "table.op.invalid.behavior", "warn", "updates of the table are not seen" },
    { "route.topic.regex", "(?<routedByValue>.*)",
      "the topic is route.topic.replacement with the whole value in it" },
    { "tracing.operation.name", "debezium-read", "Sluice makes no span of its own" },
    { "tracing.with.context.field.only", "false", "Sluice makes no span of its own" },
};

#define PLACEMENT "table.fields.additional.placement"
#define ON_MISSING "table.fields.additional.error.on.missing"
#define REPLACEMENT "route.topic.replacement"
#define TOMBSTONE "route.tombstone.on.empty.payload"

static const char *const others[] = { PLACEMENT, ON_MISSING, REPLACEMENT, TOMBSTONE };

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static sl_rc fail_unknown(const char *name, sl_err *err)
{
    sl_near near = { .wanted = name };
    for (size_t i = 0; i < COUNT(columns); i++)
        sl_near_try(&near, columns[i].name);
    for (size_t i = 0; i < COUNT(fixed); i++)
        sl_near_try(&near, fixed[i].name);
    for (size_t i = 0; i < COUNT(others); i++)
        sl_near_try(&near, others[i]);
    return sl_fail(err, SL_REFUSED, "debezium: unknown option '%.80s'\nhint: %s%s%s", name,
                   near.best ? "did you mean " : "options of Debezium's outbox event router, ",
                   near.best ? near.best : "by their own names: docs/debezium.md",
                   near.best ? "?" : "");
}

/* ---- Names and values ---- */

/* They are quoted wherever they stand; but no quotes help against what ends the text of a function. */
static bool is_name(const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n == 0 || n > most || strstr(text, "$sluice"))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f || text[i] == '\\')
            return false;
    return true;
}

static sl_rc set_column(sl_debezium *d, size_t i, const char *value, sl_err *err)
{
    if (!is_name(value, NAME_MAX_BYTES))
        return sl_fail(err, SL_REFUSED,
                       "debezium: %s: '%.80s' is no name of a column\nhint: at most %d bytes",
                       columns[i].name, value, NAME_MAX_BYTES);
    memcpy((char *)d + columns[i].at, &value, sizeof value);
    d->type_given |= columns[i].at == AT(type);
    return SL_OK;
}

static sl_rc check_fixed(size_t i, const char *value, sl_err *err)
{
    if (!strcasecmp(value, fixed[i].usual))
        return SL_OK;
    return sl_fail(err, SL_REFUSED, "debezium: %s=%.80s is not supported: %s", fixed[i].name,
                   value, fixed[i].why);
}

static sl_rc set_bool(bool *out, const char *name, const char *value, sl_err *err)
{
    *out = !strcasecmp(value, "true");
    if (*out || !strcasecmp(value, "false"))
        return SL_OK;
    return sl_fail(err, SL_REFUSED, "debezium: %s: '%.80s' is neither true nor false", name,
                   value);
}

/* A replacement of Java's regular expressions, of which only this much has a meaning here. */
static sl_rc set_replacement(sl_debezium *d, const char *value, sl_err *err)
{
    const size_t routed = sizeof ROUTED - 1;
    const char *p = value;
    while (*p && (!strncmp(p, ROUTED, routed) || !strchr("$\\{}", *p)))
        p += *p == '$' ? routed : 1;
    if (*p || !*value)
        return sl_fail(err, SL_REFUSED,
                       "debezium: " REPLACEMENT
                       ": '%.80s' is not supported\nhint: text, with " ROUTED " in it",
                       value);
    d->replacement = value;
    return SL_OK;
}

/* ---- Placement ---- */

static sl_rc fail_placement(const char *item, size_t n, const char *why, sl_err *err)
{
    return sl_fail(err, SL_REFUSED, "debezium: " PLACEMENT ": '%.*s' %s", n > 80 ? 80 : (int)n,
                   item, why);
}

static void trim(const char **p, size_t *n)
{
    for (; *n && **p == ' '; (*p)++)
        (*n)--;
    while (*n && (*p)[*n - 1] == ' ')
        (*n)--;
}

/* One part of `column:placement:alias`; the rest is behind it. */
static char *take_part(const char **p, size_t *n)
{
    const char *colon = memchr(*p, ':', *n);
    const char *part = *p;
    size_t bytes = colon ? (size_t)(colon - *p) : *n;
    *p += bytes + (colon != NULL);
    *n -= bytes + (colon != NULL);
    trim(&part, &bytes);
    return sl_strndup(part, bytes);
}

static sl_rc check_placed(const sl_placed *f, const char *placement, const char *item, size_t n,
                          sl_err *err)
{
    if (!strcasecmp(placement, "envelope"))
        return fail_placement(item, n,
                              "is not supported: the value would be a structure, and it is the "
                              "payload alone\nhint: place it in a header",
                              err);
    if (!strcasecmp(placement, "partition"))
        return fail_placement(item, n,
                              "is not supported: the key decides on the partition\nhint: leave "
                              "it out; the partitioner is Kafka's own, murmur2",
                              err);
    if (strcasecmp(placement, "header") != 0)
        return fail_placement(item, n, "is not column:header or column:header:alias", err);
    if (!is_name(f->column, NAME_MAX_BYTES))
        return fail_placement(item, n, "has no name of a column before it", err);
    if (!is_name(f->alias, ALIAS_MAX_BYTES))
        return fail_placement(item, n, "has an alias that is no name of a header", err);
    return SL_OK;
}

static sl_rc place(sl_debezium *d, const char *item, size_t n, sl_err *err)
{
    const char *p = item;
    size_t rest = n;
    size_t colons = 0;
    for (size_t i = 0; i < n; i++)
        colons += item[i] == ':';
    if (colons < 1 || colons > 2)
        return fail_placement(item, n, "is not column:header or column:header:alias", err);
    sl_placed f = { .column = take_part(&p, &rest) };
    char *placement = take_part(&p, &rest);
    f.alias = colons == 2 ? take_part(&p, &rest) : sl_strdup(f.column);
    sl_rc rc = check_placed(&f, placement, item, n, err);
    free(placement);
    d->headers = sl_realloc(d->headers, (d->header_count + 1) * sizeof *d->headers);
    d->headers[d->header_count++] = f;
    return rc;
}

static sl_rc set_placement(sl_debezium *d, const char *value, sl_err *err)
{
    sl_rc rc = SL_OK;
    while (rc == SL_OK && *value) {
        const char *item = value;
        size_t n = strcspn(value, ",");
        value += n + (value[n] == ',');
        trim(&item, &n);
        rc = place(d, item, n, err);
    }
    return rc;
}

/* ---- All of them ---- */

static sl_rc set(sl_debezium *d, const char *name, const char *value, sl_err *err)
{
    for (size_t i = 0; i < COUNT(columns); i++)
        if (!strcmp(name, columns[i].name))
            return set_column(d, i, value, err);
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (!strcmp(name, fixed[i].name))
            return check_fixed(i, value, err);
    if (!strcmp(name, PLACEMENT))
        return set_placement(d, value, err);
    if (!strcmp(name, REPLACEMENT))
        return set_replacement(d, value, err);
    if (!strcmp(name, TOMBSTONE))
        return set_bool(&d->tombstone, name, value, err);
    if (!strcmp(name, ON_MISSING))
        return set_bool(&d->error_on_missing, name, value, err);
    return fail_unknown(name, err);
}

sl_rc sl_debezium_read(sl_debezium *out, const sl_opt_map *options, sl_err *err)
{
    sl_rc rc = SL_OK;
    *out = (sl_debezium){ .replacement = "outbox.event." ROUTED, .error_on_missing = true };
    for (size_t i = 0; i < COUNT(columns); i++)
        memcpy((char *)out + columns[i].at, &columns[i].usual, sizeof columns[i].usual);
    for (size_t i = 0; rc == SL_OK && i < options->count; i++)
        rc = set(out, options->names[i], options->values[i], err);
    if (rc != SL_OK)
        sl_debezium_fini(out);
    return rc;
}

void sl_debezium_fini(sl_debezium *d)
{
    for (size_t i = 0; i < d->header_count; i++) {
        free(d->headers[i].column);
        free(d->headers[i].alias);
    }
    free(d->headers);
    d->headers = NULL;
    d->header_count = 0;
}

void sl_debezium_target(const sl_debezium *d, sl_buf *out)
{
    const char *p = d->replacement;
    for (const char *at; (at = strstr(p, ROUTED)); p = at + sizeof ROUTED - 1) {
        sl_buf_put(out, p, (size_t)(at - p));
        sl_buf_puts(out, "{topic}");
    }
    sl_buf_puts(out, p);
}

void sl_debezium_text(const sl_debezium *d, sl_buf *out)
{
    for (size_t i = 0; i < COUNT(columns); i++) {
        const char *value;
        memcpy(&value, (const char *)d + columns[i].at, sizeof value);
        if (value)
            sl_buf_printf(out, "%s=%s\n", columns[i].name, value);
    }
    for (size_t i = 0; i < d->header_count; i++)
        sl_buf_printf(out, PLACEMENT "=%s:header:%s\n", d->headers[i].column,
                      d->headers[i].alias);
    sl_buf_printf(out, TOMBSTONE "=%s\n", d->tombstone ? "true" : "false");
}
