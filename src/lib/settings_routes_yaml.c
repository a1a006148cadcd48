/* SPDX-License-Identifier: Apache-2.0 */
/* `routes:` in sluice.yaml, a list of mappings. What could never have an effect is refused here, too: a topic
 * that an earlier route takes already. */
#include "lib/settings_routes.h"

#include "core/mem.h"
#include "relay/route.h"
#include "sink/sink.h"

/* ---- Topics ---- */

/* A star in the later pattern can only be matched by one in the earlier: then that takes all that the later
 * could. */
static sl_rc check_taken(const sl_settings *s, const sl_yaml *y, const yaml_node_t *node,
                         sl_err *err)
{
    const char *topic = sl_yaml_text(node);
    for (size_t i = 0; i + 1 < s->route_count; i++)
        for (size_t k = 0; k < s->routes[i].topics.count; k++)
            if (sl_topic_matches(s->routes[i].topics.v[k], sl_str_of(topic)))
                return sl_fail(err, SL_REFUSED,
                               "%s:%zu: topic '%.80s' never comes here: the route at line %s "
                               "takes it\nhint: the first route that wants a message takes it",
                               y->path, sl_yaml_line(node), topic,
                               strrchr(s->routes[i].where, ':') + 1);
    return SL_OK;
}

static sl_rc add_topic(sl_settings *s, const sl_yaml *y, const yaml_node_t *node, sl_err *err)
{
    sl_rc rc = sl_yaml_scalar(y, node, "topics", err);
    if (rc != SL_OK)
        return rc;
    if (!*sl_yaml_text(node))
        return sl_fail(err, SL_REFUSED, "%s:%zu: a topic is empty\nhint: \"*\" is every topic",
                       y->path, sl_yaml_line(node));
    rc = sl_route_put(&s->routes[s->route_count - 1], sl_route_table, sl_yaml_text(node), err);
    return rc == SL_OK ? check_taken(s, y, node, err) : rc;
}

static sl_rc set_topics(sl_settings *s, const sl_yaml *y, const yaml_node_t *node, sl_err *err)
{
    sl_rc rc = SL_OK;
    if (node->type != YAML_SEQUENCE_NODE)
        return add_topic(s, y, node, err);
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         rc == SL_OK && i < node->data.sequence.items.top; i++)
        rc = add_topic(s, y, sl_yaml_node(y, *i), err);
    return rc;
}

/* ---- Fields ---- */

static sl_rc fail_unknown(const sl_yaml *y, const yaml_node_t *key, sl_err *err)
{
    const char *nearest = sl_opt_nearest(sl_route_table, sl_yaml_text(key));
    if (nearest)
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: a route has no '%.80s'\nhint: did you mean %s?", y->path,
                       sl_yaml_line(key), sl_yaml_text(key), nearest);
    sl_buf names = { 0 };
    for (const sl_opt *row = sl_route_table; row->name; row++)
        sl_buf_printf(&names, "%s%s", names.n ? ", " : "", row->name);
    sl_rc rc = sl_fail(err, SL_REFUSED, "%s:%zu: a route has no '%.80s'\nhint: it has %s",
                       y->path, sl_yaml_line(key), sl_yaml_text(key), sl_buf_text(&names));
    sl_buf_fini(&names);
    return rc;
}

static sl_rc set_map(sl_route_conf *c, const sl_opt *row, const sl_yaml *y,
                     const yaml_node_t *value, sl_err *err)
{
    sl_rc rc = sl_route_put(c, row, "", err);
    return rc == SL_OK ? sl_yaml_map(y, value, row->name,
                                     (sl_opt_map *)(void *)((char *)c + row->offset), err)
                       : rc;
}

static sl_rc set_field(sl_route_conf *c, const sl_opt *row, const sl_yaml *y,
                       const yaml_node_t *value, sl_err *err)
{
    const sl_sink_ops *ignored;
    if (row->type == SL_OPT_MAP)
        return set_map(c, row, y, value, err);
    sl_rc rc = sl_yaml_scalar(y, value, row->name, err);
    if (rc != SL_OK)
        return rc;
    rc = sl_route_put(c, row, sl_yaml_text(value), err);
    if (rc == SL_OK && c->sink && row->offset == offsetof(sl_route_conf, sink))
        rc = sl_sink_find(&ignored, c->sink, err);
    return rc == SL_OK ? SL_OK : sl_yaml_fail_at(y, value, err);
}

static sl_rc set_pair(sl_settings *s, const sl_yaml *y, const yaml_node_pair_t *pair,
                      sl_err *err)
{
    const yaml_node_t *key = sl_yaml_node(y, pair->key);
    const yaml_node_t *value = sl_yaml_node(y, pair->value);
    sl_route_conf *c = &s->routes[s->route_count - 1];

    sl_rc rc = sl_yaml_key(y, key, err);
    if (rc != SL_OK)
        return rc;
    const sl_opt *row = sl_opt_find(sl_route_table, sl_yaml_text(key));
    if (!row)
        return fail_unknown(y, key, err);
    if (sl_route_given(c, row))
        return sl_fail(err, SL_REFUSED, "%s:%zu: the route has %s twice", y->path,
                       sl_yaml_line(key), row->name);
    return row == sl_route_table ? set_topics(s, y, value, err)
                                 : set_field(c, row, y, value, err);
}

/* ---- Routes ---- */

static sl_rc check_complete(const sl_route_conf *c, sl_err *err)
{
    if (!c->topics.count)
        return sl_fail(err, SL_REFUSED,
                       "%s: the route has no topics\nhint: topics: \"*\" takes every message",
                       c->where);
    if (!c->sink)
        return sl_fail(err, SL_REFUSED, "%s: the route has no sink\nhint: sink: file:out.jsonl",
                       c->where);
    return SL_OK;
}

static sl_rc read_route(sl_settings *s, const sl_yaml *y, const yaml_node_t *node, sl_err *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: a route is expected, not %s\nhint: - topics: orders, and below "
                       "it sink: URL",
                       y->path, sl_yaml_line(node),
                       sl_yaml_is_null(node) ? "nothing" : sl_yaml_kind(node));
    char *where = sl_asprintf("%s:%zu", y->path, sl_yaml_line(node));
    sl_routes_add(s, where);
    free(where);
    sl_rc rc = SL_OK;
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
         rc == SL_OK && p < node->data.mapping.pairs.top; p++)
        rc = set_pair(s, y, p, err);
    return rc == SL_OK ? check_complete(&s->routes[s->route_count - 1], err) : rc;
}

sl_rc sl_routes_read(sl_settings *s, const sl_yaml *y, const yaml_node_t *node, sl_err *err)
{
    bool list = node->type == YAML_SEQUENCE_NODE;
    if (!list || node->data.sequence.items.start == node->data.sequence.items.top)
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: routes takes a list of routes, not %s\nhint: write each as "
                       "- topics: orders, and below it sink: URL",
                       y->path, sl_yaml_line(node),
                       list                    ? "an empty one"
                       : sl_yaml_is_null(node) ? "nothing"
                                               : sl_yaml_kind(node));
    sl_routes_clear(s);
    sl_rc rc = SL_OK;
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         rc == SL_OK && i < node->data.sequence.items.top; i++)
        rc = read_route(s, y, sl_yaml_node(y, *i), err);
    return rc;
}
