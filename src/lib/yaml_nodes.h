/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of sluice.yaml ask of a node, and how they refuse one: with FILE:LINE. */
#ifndef SL_LIB_YAML_NODES_H
#define SL_LIB_YAML_NODES_H

#include "core/err.h"
#include "core/opt.h"

#include <stdbool.h>
#include <yaml.h>

typedef struct sl_yaml {
    yaml_document_t *doc;
    const char *path;
} sl_yaml;

const yaml_node_t *sl_yaml_node(const sl_yaml *y, int index);
const char *sl_yaml_text(const yaml_node_t *node); /* of a single value */
size_t sl_yaml_line(const yaml_node_t *node);
const char *sl_yaml_kind(const yaml_node_t *node); /* "a list" */
/* `sink:` with nothing behind it, or null: YAML's absent value. */
bool sl_yaml_is_null(const yaml_node_t *node);

/* A single value, for the setting of that name. */
SL_CHECK sl_rc sl_yaml_scalar(const sl_yaml *y, const yaml_node_t *node, const char *name,
                              sl_err *err);
/* A key must be text, and no merge: "<<" would look as if it had worked. */
SL_CHECK sl_rc sl_yaml_key(const sl_yaml *y, const yaml_node_t *key, sl_err *err);
/* A mapping of single values, for the setting of that name. */
SL_CHECK sl_rc sl_yaml_map(const sl_yaml *y, const yaml_node_t *node, const char *name,
                           sl_opt_map *map, sl_err *err);
/* Puts FILE:LINE before what err says. */
sl_rc sl_yaml_fail_at(const sl_yaml *y, const yaml_node_t *node, sl_err *err);

#endif
