/* SPDX-License-Identifier: Apache-2.0 */
/* sluice version: which program this is, and what was built into it. */
#include "claim/claim.h"
#include "cli/cli.h"
#include "sink/sink.h"

#include <jansson.h>

typedef struct own {
    bool json;
} own;

static const sl_opt opts[] = {
    { "json", SL_OPT_BOOL, offsetof(own, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object." },
    { .name = NULL },
};

static json_t *databases(void)
{
    json_t *names = json_array();
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        json_array_append_new(names, json_string((*d)->name));
    return names;
}

static json_t *strategies(void)
{
    json_t *names = json_array();
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++)
        json_array_append_new(names, json_string((*c)->name));
    return names;
}

static json_t *sinks(void)
{
    json_t *names = json_array();
    for (const sl_sink_ops *const *s = sl_sink_all; *s; s++)
        json_array_append_new(names, json_string((*s)->scheme));
    return names;
}

static void print_text(const json_t *all)
{
    const char *what;
    json_t *names, *name;
    size_t i;

    printf("sluice %s\n", sl_version());
    json_object_foreach((json_t *)(uintptr_t)all, what, names)
    {
        if (!json_is_array(names))
            continue;
        printf("%s:", what);
        json_array_foreach(names, i, name) printf(" %s", json_string_value(name));
        printf("\n");
    }
}

static int run(sl_cli *cli)
{
    const own *o = cli->own;

    if (cli->argc > 0)
        return sl_cli_usage(cli, "unexpected argument '%.80s'", cli->argv[0]);
    json_t *all = json_pack("{s:s, s:o, s:o, s:o}", "version", sl_version(), "databases",
                            databases(), "strategies", strategies(), "sinks", sinks());
    if (o->json) {
        json_dumpf(all, stdout, JSON_COMPACT);
        printf("\n");
    } else {
        print_text(all);
    }
    json_decref(all);
    return SL_EXIT_OK;
}

const sl_cmd sl_cmd_version = {
    .name = "version",
    .summary = "the version, and what was built in",
    .synopsis = "sluice version [--json]",
    .details =
        "Prints the version, and on further lines the databases, strategies and sinks that "
        "this program was built with.",
    .opts = opts,
    .own_bytes = sizeof(own),
    .run = run,
};
