/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice.yaml: one mapping from settings to values. YAML allows much more than that; what has
 * no meaning here is refused with its line, never skipped: a setting that silently does nothing
 * is found by an outage.
 */
#include "lib/settings_routes.h"
#include "lib/yaml_nodes.h"

typedef struct loader {
    sl_settings *settings;
    sl_yaml yaml;
    bool seen[SL_SETTINGS_MAX];
    bool routes_seen;
} loader;

static sl_rc fail_unknown(const loader *l, const yaml_node_t *key, sl_err *err)
{
    sl_near near = { .wanted = sl_yaml_text(key) };
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        sl_near_try(&near, o->name);
    sl_near_try(&near, "routes");
    if (near.best)
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: unknown setting '%.80s'\nhint: did you mean %s?", l->yaml.path,
                       sl_yaml_line(key), sl_yaml_text(key), near.best);
    return sl_fail(
        err, SL_REFUSED,
        "%s:%zu: unknown setting '%.80s'\nhint: 'sluice config docs yaml' lists them all",
        l->yaml.path, sl_yaml_line(key), sl_yaml_text(key));
}

static sl_rc set_map(loader *l, const sl_opt *o, const yaml_node_t *node, sl_err *err)
{
    sl_opt_map *map = (sl_opt_map *)(void *)((char *)l->settings + o->offset);
    sl_rc rc = sl_settings_put(l->settings, o, "", SL_FROM_FILE, err);
    return rc == SL_OK ? sl_yaml_map(&l->yaml, node, o->name, map, err) : rc;
}

static sl_rc set_scalar(loader *l, const sl_opt *o, const yaml_node_t *node, sl_err *err)
{
    sl_rc rc = sl_yaml_scalar(&l->yaml, node, o->name, err);
    if (rc != SL_OK)
        return rc;
    rc = sl_settings_put(l->settings, o, sl_yaml_text(node), SL_FROM_FILE, err);
    return rc == SL_OK ? SL_OK : sl_yaml_fail_at(&l->yaml, node, err);
}

static sl_rc fail_twice(const loader *l, const yaml_node_t *key, const char *name, sl_err *err)
{
    return sl_fail(err, SL_REFUSED, "%s:%zu: %s is set twice", l->yaml.path, sl_yaml_line(key),
                   name);
}

static sl_rc set_routes(loader *l, const yaml_node_t *key, const yaml_node_t *value,
                        sl_err *err)
{
    if (l->routes_seen)
        return fail_twice(l, key, "routes", err);
    l->routes_seen = true;
    return sl_routes_read(l->settings, &l->yaml, value, err);
}

static sl_rc set_pair(loader *l, const yaml_node_pair_t *pair, sl_err *err)
{
    const yaml_node_t *key = sl_yaml_node(&l->yaml, pair->key);
    const yaml_node_t *value = sl_yaml_node(&l->yaml, pair->value);

    sl_rc rc = sl_yaml_key(&l->yaml, key, err);
    if (rc != SL_OK)
        return rc;
    if (!strcmp(sl_yaml_text(key), "routes"))
        return set_routes(l, key, value, err);
    const sl_opt *o = sl_opt_find(sl_settings_table, sl_yaml_text(key));
    if (!o)
        return fail_unknown(l, key, err);
    if (o->flags & SL_OPT_CLI_ONLY)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s can only be a flag", l->yaml.path,
                       sl_yaml_line(key), o->name);
    bool *seen = &l->seen[o - sl_settings_table];
    if (*seen)
        return fail_twice(l, key, o->name, err);
    *seen = true;
    return o->type == SL_OPT_MAP ? set_map(l, o, value, err) : set_scalar(l, o, value, err);
}

static sl_rc set_document(loader *l, sl_err *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(l->yaml.doc);

    if (!root || sl_yaml_is_null(root))
        return SL_OK; /* nothing but comments */
    if (root->type != YAML_MAPPING_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: settings are expected as NAME: VALUE, not %s",
                       l->yaml.path, sl_yaml_line(root), sl_yaml_kind(root));

    sl_rc rc = SL_OK;
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
         rc == SL_OK && p < root->data.mapping.pairs.top; p++)
        rc = set_pair(l, p, err);
    return rc;
}

static sl_rc fail_syntax(const yaml_parser_t *parser, const char *path, sl_err *err)
{
    const char *problem = parser->problem ? parser->problem : "no YAML";

    if (parser->error == YAML_READER_ERROR)
        return sl_fail(err, SL_REFUSED, "%s: %s at byte %zu", path, problem,
                       parser->problem_offset);
    if (parser->error == YAML_SCANNER_ERROR && strstr(problem, "cannot start any token"))
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: %s\nhint: YAML indents with blanks, not with tabs", path,
                       parser->problem_mark.line + 1, problem);
    const char *hint = strstr(problem, "mapping values")
                           ? "\nhint: a value with a colon at its end, or "
                             "before a space, wants quotes: \"null:\""
                           : "";
    return sl_fail(err, SL_REFUSED, "%s:%zu: %s%s", path, parser->problem_mark.line + 1,
                   problem, hint);
}

/* Loads the next document of the stream and sets what it says; *more is false at the end. */
static sl_rc load_one(yaml_parser_t *parser, loader *l, bool *more, sl_err *err)
{
    yaml_document_t doc;

    if (!yaml_parser_load(parser, &doc))
        return fail_syntax(parser, l->yaml.path, err);
    l->yaml.doc = &doc;
    *more = yaml_document_get_root_node(&doc) != NULL;
    sl_rc rc = set_document(l, err);
    yaml_document_delete(&doc);
    return rc;
}

static sl_rc load_stream(yaml_parser_t *parser, loader *l, sl_err *err)
{
    bool more = false;

    sl_rc rc = load_one(parser, l, &more, err);
    if (rc != SL_OK || !more)
        return rc;
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second))
        return fail_syntax(parser, l->yaml.path, err);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        rc = sl_fail(err, SL_REFUSED,
                     "%s:%zu: a second document begins here\nhint: settings are "
                     "one document; drop the line with ---",
                     l->yaml.path, sl_yaml_line(root));
    yaml_document_delete(&second);
    return rc;
}

sl_rc sl_settings_load_file(sl_settings *s, const char *path, sl_err *err)
{
    sl_err unseen = { 0 };
    loader l = { .settings = s, .yaml = { .path = path } };
    sl_buf bytes = { 0 };
    yaml_parser_t parser;

    err = err ? err : &unseen; /* the line is put before a text that must be there */
    sl_rc rc = sl_settings_read(path, &bytes, err);
    if (rc == SL_OK && !yaml_parser_initialize(&parser))
        rc = sl_fail(err, SL_AGAIN, "%s: out of memory", path);
    else if (rc == SL_OK) {
        yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.p, bytes.n);
        rc = load_stream(&parser, &l, err);
        yaml_parser_delete(&parser);
    }
    sl_buf_fini(&bytes);
    return rc;
}
