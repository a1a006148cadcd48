/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A route says what differs from the top level, and nothing is copied when it is read: the environment and
 * the flags come after the file. Whoever uses a route asks for it as a whole, when all is known.
 */
#include "lib/settings_routes.h"

#include "core/mem.h"

#include <strings.h>

#define AT(member) offsetof(sl_route_conf, member)

const sl_opt sl_route_table[] = {
    { "topics", SL_OPT_LIST, AT(topics), NULL, 0, 0, 0, "LIST",
      "The topics that it takes, a list or one; * stands for any characters, also none. The "
      "first "
      "route that wants a message takes it. Required." },
    { "sink", SL_OPT_TEXT, AT(sink), NULL, 1, 0, SL_OPT_SECRET, "URL",
      "Where they go. Required." },
    { .name = "delivery", .offset = AT(delivery), .flags = SL_ROUTE_SHARED },
    { .name = "fence", .offset = AT(fence), .flags = SL_ROUTE_SHARED },
    { .name = "on_failure", .offset = AT(on_failure), .flags = SL_ROUTE_SHARED },
    { .name = "max_attempts", .offset = AT(max_attempts), .flags = SL_ROUTE_SHARED },
    { .name = "retry_base", .offset = AT(retry_base_ns), .flags = SL_ROUTE_SHARED },
    { .name = "retry_max", .offset = AT(retry_max_ns), .flags = SL_ROUTE_SHARED },
    { "batch", SL_OPT_INT, AT(batch), NULL, 1, 10000, 0, "N",
      "Messages that a worker may have under way to the sink at once. Without it, all that it "
      "has taken." },
    { "concurrency", SL_OPT_INT, AT(concurrency), NULL, 1, 256, 0, "N",
      "Workers of a node that may use the sink at once; the others wait for a place. Without "
      "it, all." },
    { .name = "target", .offset = AT(target), .flags = SL_ROUTE_SHARED },
    { .name = "format", .offset = AT(format), .flags = SL_ROUTE_SHARED },
    { .name = "source", .offset = AT(source), .flags = SL_ROUTE_SHARED },
    { .name = "tombstones", .offset = AT(tombstones), .flags = SL_ROUTE_SHARED },
    { "kafka", SL_OPT_MAP, AT(kafka), NULL, 0, 0, SL_OPT_SECRET, "NAME=VALUE,...",
      "Properties of librdkafka for this route, beside those of the top level." },
    { .name = NULL },
};

sl_opt sl_route_field(const sl_opt *row)
{
    if (!(row->flags & SL_ROUTE_SHARED))
        return *row;
    sl_opt full = *sl_opt_find(sl_settings_table, row->name);
    full.offset = row->offset;
    full.flags = row->flags;
    return full;
}

/* ---- As a whole ---- */

static const sl_opt *top_row(const sl_opt *row)
{
    return sl_opt_find(sl_settings_table, row->name);
}

static size_t bytes_of(const sl_opt *o)
{
    return o->type == SL_OPT_CHOICE ? sizeof(int)
           : o->type == SL_OPT_TEXT ? sizeof(char *)
           : o->type == SL_OPT_BOOL ? sizeof(bool)
                                    : sizeof(int64_t);
}

sl_route_conf sl_route_of(const sl_settings *s, size_t i)
{
    sl_route_conf c = s->routes[i];
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        if (!(row->flags & SL_ROUTE_SHARED) || sl_route_given(&c, row))
            continue;
        const sl_opt *top = top_row(row);
        memcpy((char *)&c + row->offset, (const char *)s + top->offset, bytes_of(top));
    }
    return c;
}

sl_from sl_route_from(const sl_settings *s, size_t i, const sl_opt *row)
{
    if (sl_route_given(&s->routes[i], row))
        return SL_FROM_FILE;
    return row->flags & SL_ROUTE_SHARED ? (sl_from)s->from[top_row(row) - sl_settings_table]
                                        : SL_FROM_DEFAULT;
}

/* ---- Making and comparing ---- */

sl_route_conf *sl_routes_add(sl_settings *s, const char *where)
{
    s->routes = sl_realloc(s->routes, (s->route_count + 1) * sizeof *s->routes);
    sl_route_conf *c = &s->routes[s->route_count++];
    *c = (sl_route_conf){ .where = sl_strdup(where) };
    return c;
}

sl_rc sl_route_put(sl_route_conf *c, const sl_opt *row, const char *value, sl_err *err)
{
    sl_opt field = sl_route_field(row);
    sl_rc rc = sl_opt_set(&field, c, value, err);
    if (rc == SL_OK)
        c->given |= 1U << (row - sl_route_table);
    return rc;
}

void sl_routes_clear(sl_settings *s)
{
    for (size_t i = 0; i < s->route_count; i++) {
        free(s->routes[i].where);
        for (const sl_opt *row = sl_route_table; row->name; row++)
            sl_opt_free((sl_opt[]){ sl_route_field(row), { .name = NULL } }, &s->routes[i]);
    }
    free(s->routes);
    s->routes = NULL;
    s->route_count = 0;
}

static char *text_of(const sl_route_conf *c, const sl_opt *row)
{
    sl_buf text = { 0 };
    sl_opt field = sl_route_field(row);
    sl_opt_show(&field, c, true, &text);
    return text.p ? text.p : sl_strdup("");
}

static bool same_route(const sl_route_conf *a, const sl_route_conf *b)
{
    bool same = a->given == b->given;
    for (const sl_opt *row = sl_route_table; same && row->name; row++) {
        char *x = text_of(a, row);
        char *y = text_of(b, row);
        same = !sl_route_given(a, row) || !strcmp(x, y);
        free(x);
        free(y);
    }
    return same;
}

bool sl_routes_same(const sl_settings *a, const sl_settings *b)
{
    bool same = a->route_count == b->route_count;
    for (size_t i = 0; same && i < a->route_count; i++)
        same = same_route(&a->routes[i], &b->routes[i]);
    return same;
}

void sl_routes_copy(sl_settings *to, const sl_settings *from)
{
    sl_err ignored;
    sl_routes_clear(to);
    for (size_t i = 0; i < from->route_count; i++) {
        const sl_route_conf *c = &from->routes[i];
        sl_route_conf *copy = sl_routes_add(to, c->where);
        for (size_t k = 0; k < c->topics.count; k++)
            (void)!sl_route_put(copy, sl_route_table, c->topics.v[k], &ignored);
        for (const sl_opt *row = sl_route_table + 1; row->name; row++) {
            char *text = text_of(c, row);
            if (sl_route_given(c, row))
                (void)!sl_route_put(copy, row, text, &ignored);
            free(text);
        }
    }
}

/* ---- Checking ---- */

bool sl_route_fenced(const sl_route_conf *c)
{
    return (c->fence || c->delivery == SL_DELIVERY_EXACTLY_ONCE) && c->sink &&
           !strncasecmp(c->sink, "kafka:", 6);
}

sl_rc sl_route_check_fence(const sl_route_conf *c, bool wanted, const char *where, sl_err *err)
{
    bool exact = c->delivery == SL_DELIVERY_EXACTLY_ONCE;
    if ((!exact && !wanted) || sl_route_fenced(c))
        return SL_OK;
    return sl_fail(
        err, SL_REFUSED, "%s%sonly a sink kafka: has it\nhint: %s", where,
        exact ? "delivery: exactly-once: " : "fence: kafka: ",
        exact ? "at-least-once, and consumers that leave out what they know (docs/inbox.md)"
              : "fence: none");
}

static sl_rc check_route(const sl_settings *s, size_t i, sl_err *err)
{
    sl_route_conf c = sl_route_of(s, i);
    if (c.retry_base_ns > c.retry_max_ns)
        return sl_fail(err, SL_REFUSED,
                       "%s: retry_base of this route is longer than retry_max\n"
                       "hint: what a route does not say it takes from the top level",
                       c.where);
    char *where = sl_asprintf("%s: ", c.where);
    bool given = sl_route_given(&c, sl_opt_find(sl_route_table, "fence")) && c.fence;
    sl_rc rc = sl_route_check_fence(&c, given, where, err);
    free(where);
    return rc;
}

sl_rc sl_routes_check(const sl_settings *s, sl_err *err)
{
    if (s->route_count && s->sink)
        return sl_fail(
            err, SL_REFUSED,
            "there are routes and a sink, and the routes would count\n"
            "hint: drop sink (%s); a last route with topics: \"*\" takes the rest",
            sl_from_name(
                (sl_from)s->from[sl_opt_find(sl_settings_table, "sink") - sl_settings_table]));
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < s->route_count; i++)
        rc = check_route(s, i, err);
    return rc;
}
