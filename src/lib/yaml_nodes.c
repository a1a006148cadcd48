/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/yaml_nodes.h"

const yaml_node_t *sl_yaml_node(const sl_yaml *y, int index)
{
    return yaml_document_get_node(y->doc, index);
}

const char *sl_yaml_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

size_t sl_yaml_line(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

sl_rc sl_yaml_fail_at(const sl_yaml *y, const yaml_node_t *node, sl_err *err)
{
    return sl_fail_in(err, "%s:%zu", y->path, sl_yaml_line(node));
}

const char *sl_yaml_kind(const yaml_node_t *node)
{
    return node->type == YAML_SEQUENCE_NODE  ? "a list"
           : node->type == YAML_MAPPING_NODE ? "a mapping"
                                             : "a single value";
}

bool sl_yaml_is_null(const yaml_node_t *node)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };

    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(sl_yaml_text(node), words[i]) == 0)
            return true;
    return false;
}

sl_rc sl_yaml_scalar(const sl_yaml *y, const yaml_node_t *node, const char *name, sl_err *err)
{
    if (node->type != YAML_SCALAR_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s takes a single value, not %s", y->path,
                       sl_yaml_line(node), name, sl_yaml_kind(node));
    if (sl_yaml_is_null(node))
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: %s has no value\nhint: without the line the default holds",
                       y->path, sl_yaml_line(node), name);
    if (strlen(sl_yaml_text(node)) != node->data.scalar.length)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s holds a NUL character", y->path,
                       sl_yaml_line(node), name);
    return SL_OK;
}

sl_rc sl_yaml_key(const sl_yaml *y, const yaml_node_t *key, sl_err *err)
{
    if (key->type != YAML_SCALAR_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: a name is expected, not %s", y->path,
                       sl_yaml_line(key), sl_yaml_kind(key));
    if (strcmp(sl_yaml_text(key), "<<") == 0)
        return sl_fail(err, SL_REFUSED, "%s:%zu: merging with << is not supported", y->path,
                       sl_yaml_line(key));
    return SL_OK;
}

static sl_rc put_entry(const sl_yaml *y, const char *name, const yaml_node_pair_t *pair,
                       sl_opt_map *map, sl_err *err)
{
    const yaml_node_t *key = sl_yaml_node(y, pair->key);
    const yaml_node_t *value = sl_yaml_node(y, pair->value);

    sl_rc rc = sl_yaml_key(y, key, err);
    if (rc == SL_OK)
        rc = sl_yaml_scalar(y, key, name, err);
    if (rc == SL_OK)
        rc = sl_yaml_scalar(y, value, sl_yaml_text(key), err);
    if (rc != SL_OK)
        return rc;
    if (sl_opt_map_get(map, sl_yaml_text(key)))
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s has '%.80s' twice", y->path,
                       sl_yaml_line(key), name, sl_yaml_text(key));
    sl_opt_map_put(map, sl_yaml_text(key), sl_yaml_text(value));
    return SL_OK;
}

sl_rc sl_yaml_map(const sl_yaml *y, const yaml_node_t *node, const char *name, sl_opt_map *map,
                  sl_err *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return sl_fail(
            err, SL_REFUSED,
            "%s:%zu: %s takes a mapping, not %s\nhint: write its entries as NAME: VALUE "
            "on indented lines below it",
            y->path, sl_yaml_line(node), name,
            sl_yaml_is_null(node) ? "nothing" : sl_yaml_kind(node));
    sl_rc rc = SL_OK;
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
         rc == SL_OK && p < node->data.mapping.pairs.top; p++)
        rc = put_entry(y, name, p, map, err);
    return rc;
}
