/* SPDX-License-Identifier: Apache-2.0 */
/* sluice config: what the settings are and where they come from; are they right; what there
 * are. */
#include "cli/cli.h"
#include "cli/docs.h"
#include "core/mem.h"
#include "db/db.h"
#include "lib/settings_routes.h"

#include <jansson.h>

typedef struct own {
    bool json;
} own;

static const sl_opt opts[] = {
    { "json", SL_OPT_BOOL, offsetof(own, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With show: print one JSON object, {\"NAME\": {\"value\": ..., \"from\": ...}}." },
    { .name = NULL },
};

/* ---- show ---- */

static sl_from from_of(const sl_cli *cli, const sl_opt *o)
{
    return (sl_from)cli->settings.from[o - sl_settings_table];
}

static size_t longest_name(void)
{
    size_t longest = 0;
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        longest = strlen(o->name) > longest ? strlen(o->name) : longest;
    return longest;
}

static bool is_set(const sl_settings *s, size_t i, const sl_opt *row)
{
    return row->flags & SL_ROUTE_SHARED || sl_route_given(&s->routes[i], row);
}

static void print_line(const char *name, sl_from from, const sl_buf *value)
{
    printf("%-*s  %-12s  %s\n", (int)longest_name(), name, sl_from_name(from),
           value->n ? value->p : "-");
}

/* With what it takes from the top level. */
static void show_route(const sl_settings *s, size_t i)
{
    sl_route_conf c = sl_route_of(s, i);
    sl_buf value = { 0 };
    printf("\nroute %zu\n", i + 1);
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        sl_opt field = sl_route_field(row);
        char *name = sl_asprintf("  %s", row->name);
        sl_buf_reset(&value);
        if (is_set(s, i, row))
            sl_opt_show(&field, &c, false, &value);
        print_line(name, sl_route_from(s, i, row), &value);
        free(name);
    }
    sl_buf_fini(&value);
}

static void show_text(const sl_cli *cli)
{
    sl_buf value = { 0 };

    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        sl_buf_reset(&value);
        sl_opt_show(o, &cli->settings, false, &value);
        print_line(o->name, from_of(cli, o), &value);
    }
    for (size_t i = 0; i < cli->settings.route_count; i++)
        show_route(&cli->settings, i);
    sl_buf_fini(&value);
}

static json_t *json_of_map(const sl_opt *o, const sl_opt_map *map)
{
    json_t *object = json_object();
    for (size_t i = 0; i < map->count; i++)
        json_object_set_new(
            object, map->names[i],
            json_string(sl_opt_is_secret(o, map->names[i]) ? "***" : map->values[i]));
    return object;
}

static json_t *json_of_list(const sl_opt_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, json_string(list->v[i]));
    return array;
}

/* Times and sizes stay text with their unit, as they can be given again. */
static json_t *json_of(const void *base, const sl_opt *o)
{
    const void *at = (const char *)base + o->offset;
    sl_buf text = { 0 };
    json_t *value;

    if (o->type == SL_OPT_BOOL)
        return json_boolean(*(const bool *)at);
    if (o->type == SL_OPT_INT)
        return json_integer(*(const int64_t *)at);
    if (o->type == SL_OPT_MAP)
        return json_of_map(o, at);
    if (o->type == SL_OPT_LIST)
        return json_of_list(at);
    sl_opt_show(o, base, false, &text);
    value = text.n ? json_string(text.p) : json_null();
    sl_buf_fini(&text);
    return value;
}

static json_t *json_of_route(const sl_settings *s, size_t i)
{
    sl_route_conf c = sl_route_of(s, i);
    json_t *route = json_object();
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        sl_opt field = sl_route_field(row);
        json_object_set_new(route, row->name,
                            is_set(s, i, row) ? json_of(&c, &field) : json_null());
    }
    return route;
}

static json_t *json_of_routes(const sl_settings *s)
{
    json_t *routes = json_array();
    for (size_t i = 0; i < s->route_count; i++)
        json_array_append_new(routes, json_of_route(s, i));
    return json_pack("{s:o, s:s}", "value", routes, "from", sl_from_name(SL_FROM_FILE));
}

static void show_json(const sl_cli *cli)
{
    json_t *all = json_object();

    for (const sl_opt *o = sl_settings_table; o->name; o++)
        json_object_set_new(all, o->name,
                            json_pack("{s:o, s:s}", "value", json_of(&cli->settings, o), "from",
                                      sl_from_name(from_of(cli, o))));
    if (cli->settings.route_count)
        json_object_set_new(all, "routes", json_of_routes(&cli->settings));
    json_dumpf(all, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(all);
}

static int show(sl_cli *cli)
{
    const own *o = cli->own;
    sl_err err = { 0 };

    if (sl_cli_load(cli, &err) != SL_OK)
        return sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    if (o->json)
        show_json(cli);
    else
        show_text(cli);
    return SL_EXIT_OK;
}

/* ---- check ---- */

static int check(sl_cli *cli)
{
    sl_err err = { 0 };
    const sl_db_ops *ignored;

    if (sl_cli_load(cli, &err) != SL_OK ||
        sl_db_find(&ignored, cli->settings.db, &err) != SL_OK)
        return sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    if (cli->config_path)
        printf("%s: ", cli->config_path);
    printf("OK\n");
    return SL_EXIT_OK;
}

/* ---- docs ---- */

static const struct {
    const char *name;
    void (*put)(sl_buf *out);
} kinds[] = {
    { "man", sl_docs_man },
    { "yaml", sl_docs_yaml },
    { "markdown", sl_docs_markdown },
    { "completion", sl_docs_completion },
};

static int docs(sl_cli *cli)
{
    const char *kind = cli->argc > 1 ? cli->argv[1] : NULL;

    if (!kind)
        return sl_cli_usage(cli,
                            "the kind of documentation is missing\nhint: man, yaml, markdown "
                            "or completion");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            sl_buf text = { 0 };
            kinds[i].put(&text);
            fputs(sl_buf_text(&text), stdout);
            sl_buf_fini(&text);
            return SL_EXIT_OK;
        }
    }
    return sl_cli_usage(cli,
                        "'%.80s' is no kind of documentation\nhint: man, yaml, markdown or "
                        "completion",
                        kind);
}

static int run(sl_cli *cli)
{
    const char *what = cli->argc > 0 ? cli->argv[0] : "";
    bool is_docs = strcmp(what, "docs") == 0;

    if (cli->argc > 1 + is_docs)
        return sl_cli_usage(cli, "unexpected argument '%.80s'", cli->argv[1 + is_docs]);
    if (is_docs)
        return docs(cli);
    if (strcmp(what, "show") == 0)
        return show(cli);
    if (strcmp(what, "check") == 0)
        return check(cli);
    if (!*what)
        return sl_cli_usage(cli, "what is to be done is missing\nhint: show, check or docs");
    return sl_cli_usage(cli, "'%.80s' cannot be done\nhint: show, check or docs", what);
}

const sl_cmd sl_cmd_config = {
    .name = "config",
    .summary = "show, check, document the settings",
    .synopsis = "sluice config show [--json]\n"
                "sluice config check\n"
                "sluice config docs man|yaml|markdown|completion",
    .details =
        "'show' prints every setting, where it came from (flag, environment, file, "
        "DATABASE_URL or "
        "default) and its value; passwords are masked. 'check' says OK, or what is wrong and "
        "ends "
        "with status 2. Both take the same flags, variables and file as the other commands.\n"
        "\n"
        "'docs' prints what is made from the same table: a section for sluice.yaml(5), a "
        "sample "
        "file, a table, or a completion script for bash:\n"
        "\n"
        "  sluice config docs yaml > sluice.yaml\n"
        "  source <(sluice config docs completion)",
    .groups = SL_FOR_DB | SL_FOR_INIT | SL_FOR_RUN | SL_FOR_PULL | SL_FOR_LOG,
    .opts = opts,
    .own_bytes = sizeof(own),
    .run = run,
    .words = "show|check|docs",
    .late = true,
};
