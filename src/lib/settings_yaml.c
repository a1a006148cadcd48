/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sluice.yaml: one mapping from settings to values. YAML allows much more than that; what has
 * no meaning here is refused with its line, never skipped: a setting that silently does nothing
 * is found by an outage.
 */
#include "lib/settings.h"

#include <yaml.h>

typedef struct loader {
    sl_settings *settings;
    yaml_document_t *doc;
    const char *path;
    bool seen[SL_SETTINGS_MAX];
} loader;

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

/* Puts FILE:LINE before what err says. */
static sl_rc fail_at(const loader *l, const yaml_node_t *node, sl_err *err)
{
    return sl_fail_in(err, "%s:%zu", l->path, line_of(node));
}

static const char *kind_of(const yaml_node_t *node)
{
    return node->type == YAML_SEQUENCE_NODE  ? "a list"
           : node->type == YAML_MAPPING_NODE ? "a mapping"
                                             : "a single value";
}

/* `sink:` with nothing behind it, or null: YAML's absent value. */
static bool is_null(const yaml_node_t *node)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };

    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text_of(node), words[i]) == 0)
            return true;
    return false;
}

static sl_rc check_scalar(const loader *l, const yaml_node_t *node, const char *name,
                          sl_err *err)
{
    if (node->type != YAML_SCALAR_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s takes a single value, not %s", l->path,
                       line_of(node), name, kind_of(node));
    if (is_null(node))
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: %s has no value\nhint: without the line the default holds",
                       l->path, line_of(node), name);
    if (strlen(text_of(node)) != node->data.scalar.length)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s holds a NUL character", l->path,
                       line_of(node), name);
    return SL_OK;
}

/* A key must be text, and no merge: "<<" would look as if it had worked. */
static sl_rc check_key(const loader *l, const yaml_node_t *key, sl_err *err)
{
    if (key->type != YAML_SCALAR_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: a name is expected, not %s", l->path,
                       line_of(key), kind_of(key));
    if (strcmp(text_of(key), "<<") == 0)
        return sl_fail(err, SL_REFUSED, "%s:%zu: merging with << is not supported", l->path,
                       line_of(key));
    return SL_OK;
}

static sl_rc fail_unknown(const loader *l, const yaml_node_t *key, sl_err *err)
{
    const char *nearest = sl_opt_nearest(sl_settings_table, text_of(key));
    if (nearest)
        return sl_fail(err, SL_REFUSED,
                       "%s:%zu: unknown setting '%.80s'\nhint: did you mean %s?", l->path,
                       line_of(key), text_of(key), nearest);
    return sl_fail(
        err, SL_REFUSED,
        "%s:%zu: unknown setting '%.80s'\nhint: 'sluice config docs yaml' lists them all",
        l->path, line_of(key), text_of(key));
}

static sl_rc put_entry(loader *l, const sl_opt *o, const yaml_node_pair_t *pair, sl_err *err)
{
    sl_opt_map *map = (sl_opt_map *)(void *)((char *)l->settings + o->offset);
    const yaml_node_t *key = yaml_document_get_node(l->doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(l->doc, pair->value);

    sl_rc rc = check_key(l, key, err);
    if (rc == SL_OK)
        rc = check_scalar(l, key, o->name, err);
    if (rc == SL_OK)
        rc = check_scalar(l, value, text_of(key), err);
    if (rc != SL_OK)
        return rc;
    if (sl_opt_map_get(map, text_of(key)))
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s has '%.80s' twice", l->path, line_of(key),
                       o->name, text_of(key));
    sl_opt_map_put(map, text_of(key), text_of(value));
    return SL_OK;
}

static sl_rc set_map(loader *l, const sl_opt *o, const yaml_node_t *node, sl_err *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return sl_fail(
            err, SL_REFUSED,
            "%s:%zu: %s takes a mapping, not %s\nhint: write its entries as NAME: VALUE "
            "on indented lines below it",
            l->path, line_of(node), o->name, is_null(node) ? "nothing" : kind_of(node));

    sl_rc rc = sl_settings_put(l->settings, o, "", SL_FROM_FILE, err);
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start;
         rc == SL_OK && p < node->data.mapping.pairs.top; p++)
        rc = put_entry(l, o, p, err);
    return rc;
}

static sl_rc set_scalar(loader *l, const sl_opt *o, const yaml_node_t *node, sl_err *err)
{
    sl_rc rc = check_scalar(l, node, o->name, err);
    if (rc != SL_OK)
        return rc;
    rc = sl_settings_put(l->settings, o, text_of(node), SL_FROM_FILE, err);
    return rc == SL_OK ? SL_OK : fail_at(l, node, err);
}

static sl_rc set_pair(loader *l, const yaml_node_pair_t *pair, sl_err *err)
{
    const yaml_node_t *key = yaml_document_get_node(l->doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(l->doc, pair->value);

    sl_rc rc = check_key(l, key, err);
    if (rc != SL_OK)
        return rc;
    const sl_opt *o = sl_opt_find(sl_settings_table, text_of(key));
    if (!o)
        return fail_unknown(l, key, err);
    if (o->flags & SL_OPT_CLI_ONLY)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s can only be a flag", l->path, line_of(key),
                       o->name);
    bool *seen = &l->seen[o - sl_settings_table];
    if (*seen)
        return sl_fail(err, SL_REFUSED, "%s:%zu: %s is set twice", l->path, line_of(key),
                       o->name);
    *seen = true;
    return o->type == SL_OPT_MAP ? set_map(l, o, value, err) : set_scalar(l, o, value, err);
}

static sl_rc set_document(loader *l, sl_err *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(l->doc);

    if (!root || is_null(root))
        return SL_OK; /* nothing but comments */
    if (root->type != YAML_MAPPING_NODE)
        return sl_fail(err, SL_REFUSED, "%s:%zu: settings are expected as NAME: VALUE, not %s",
                       l->path, line_of(root), kind_of(root));

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
        return fail_syntax(parser, l->path, err);
    l->doc = &doc;
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
        return fail_syntax(parser, l->path, err);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        rc = sl_fail(err, SL_REFUSED,
                     "%s:%zu: a second document begins here\nhint: settings are "
                     "one document; drop the line with ---",
                     l->path, line_of(root));
    yaml_document_delete(&second);
    return rc;
}

sl_rc sl_settings_load_file(sl_settings *s, const char *path, sl_err *err)
{
    sl_err unseen = { 0 };
    loader l = { .settings = s, .path = path };
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
