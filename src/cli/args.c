/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags, by getopt_long over an array that is made from the tables. They are only collected
 * while getopt runs and applied at the end, after file and environment: the file's name is
 * itself a flag, wherever it stands.
 *
 * getopt_long takes any unambiguous beginning of a flag for the flag. A script that relies on
 * this breaks when a flag is added, so that such a beginning is refused, with the whole name.
 */
#include "cli/cli.h"

#include "core/mem.h"

#include <getopt.h>
#include <stdarg.h>
#include <unistd.h>

typedef struct sl_given {
    const sl_opt *opt;
    bool own;
    char *text;
} sl_given;

typedef struct flag_set {
    struct option *longs; /* for getopt; ended by a zeroed one */
    const sl_opt **opts;  /* the row behind longs[i]; NULL: --help and --config */
    size_t count;
} flag_set;

enum { VAL_FIRST = 256 }; /* longs[i].val is VAL_FIRST + i, above any letter */

bool sl_cli_takes(const sl_cmd *cmd, const sl_opt *setting)
{
    return (cmd->groups & setting->flags) != 0;
}

char *sl_cli_flag_name(const sl_opt *o)
{
    char *name = sl_strdup(o->name);
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    return name;
}

/* ---- The set of flags ---- */

static void add_flag(flag_set *set, char *name, int has_arg, const sl_opt *o)
{
    size_t n = set->count++;

    set->longs = sl_realloc(set->longs, (n + 2) * sizeof *set->longs);
    set->opts = sl_realloc(set->opts, (n + 1) * sizeof *set->opts);
    set->longs[n] = (struct option){ name, has_arg, NULL, VAL_FIRST + (int)n };
    set->longs[n + 1] = (struct option){ 0 };
    set->opts[n] = o;
}

static void add_option(flag_set *set, const sl_opt *o)
{
    add_flag(set, sl_cli_flag_name(o),
             o->type == SL_OPT_BOOL ? optional_argument : required_argument, o);
}

static void set_init(flag_set *set, const sl_cmd *cmd)
{
    *set = (flag_set){ 0 };
    add_flag(set, sl_strdup("help"), no_argument, NULL);
    if (cmd->groups)
        add_flag(set, sl_strdup("config"), required_argument, NULL);
    for (const sl_opt *o = cmd->opts; o && o->name; o++)
        add_option(set, o);
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        if (sl_cli_takes(cmd, o) && !(cmd->opts && sl_opt_find(cmd->opts, o->name)))
            add_option(set, o);
}

static void set_fini(flag_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free((char *)(uintptr_t)set->longs[i].name);
    free(set->longs);
    free(set->opts);
}

static const struct option *flag_named(const flag_set *set, const char *name, size_t n)
{
    for (size_t i = 0; i < set->count; i++)
        if (strlen(set->longs[i].name) == n && memcmp(set->longs[i].name, name, n) == 0)
            return &set->longs[i];
    return NULL;
}

/* ---- What can be wrong with a flag ---- */

/* The setting exists, but not for this command: say for which. */
static sl_rc fail_elsewhere(const sl_opt *o, const char *flag, sl_err *err)
{
    sl_buf who = { 0 };

    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        if (sl_cli_takes(*c, o))
            sl_buf_printf(&who, "%ssluice %s", who.n ? ", " : "", (*c)->name);
    sl_rc rc = sl_fail(err, SL_REFUSED, "--%s is no flag of this command%s%s", flag,
                       who.n ? "\nhint: it is a flag of " : "", sl_buf_text(&who));
    sl_buf_fini(&who);
    return rc;
}

static sl_rc fail_unknown_long(const flag_set *set, const sl_cmd *cmd, const char *word,
                               sl_err *err)
{
    char *name = sl_strndup(word + 2, strcspn(word + 2, "="));
    const sl_opt *elsewhere = sl_opt_find(sl_settings_table, name);
    sl_near near = { .wanted = name };
    sl_rc rc;

    for (size_t i = 0; i < set->count; i++)
        sl_near_try(&near, set->longs[i].name);
    if (elsewhere && !sl_cli_takes(cmd, elsewhere))
        rc = fail_elsewhere(elsewhere, name, err);
    else if (near.best)
        rc = sl_fail(err, SL_REFUSED, "unknown flag --%.80s\nhint: did you mean --%s?", name,
                     near.best);
    else
        rc = sl_fail(err, SL_REFUSED, "unknown flag --%.80s\nhint: see 'sluice %s --help'",
                     name, cmd->name);
    free(name);
    return rc;
}

/* getopt returned '?': a flag that it does not know, or --help=yes. */
static sl_rc fail_flag(const flag_set *set, const sl_cmd *cmd, char **args, sl_err *err)
{
    if (optopt >= VAL_FIRST)
        return sl_fail(err, SL_REFUSED, "--%s takes no value",
                       set->longs[optopt - VAL_FIRST].name);
    if (optopt)
        return sl_fail(err, SL_REFUSED, "unknown flag -%c\nhint: see 'sluice %s --help'",
                       optopt, cmd->name);
    return fail_unknown_long(set, cmd, args[optind - 1], err);
}

static sl_rc fail_no_value(const flag_set *set, int val, sl_err *err)
{
    if (val == 'c')
        return sl_fail(err, SL_REFUSED, "-c needs the name of a file");
    size_t i = (size_t)(val - VAL_FIRST);
    const sl_opt *o = set->opts[i];
    return sl_fail(err, SL_REFUSED, "--%s needs a value\nhint: --%s %s", set->longs[i].name,
                   set->longs[i].name, o ? o->arg ? o->arg : "VALUE" : "FILE");
}

/* Was the flag that getopt took written out, and is its value no flag itself? */
static sl_rc check_written(const flag_set *set, size_t i, char **args, sl_err *err)
{
    bool apart = optarg == args[optind - 1]; /* --flag VALUE, not --flag=VALUE */
    const char *word = args[optind - (apart ? 2 : 1)] + 2;

    if (strcspn(word, "=") != strlen(set->longs[i].name))
        return sl_fail(err, SL_REFUSED, "unknown flag --%.*s\nhint: did you mean --%s?",
                       (int)strcspn(word, "="), word, set->longs[i].name);
    if (apart && strncmp(optarg, "--", 2) == 0 &&
        flag_named(set, optarg + 2, strlen(optarg + 2)))
        return fail_no_value(set, set->longs[i].val, err);
    return SL_OK;
}

/* ---- Collecting ---- */

/* A map may be given in pieces, --header a=b --header c=d, and of a list each one counts; of all else the last. */
static void give(sl_cli *cli, const sl_opt *o, const char *text)
{
    for (size_t i = 0; i < cli->given_count; i++) {
        sl_given *g = &cli->given[i];
        if (g->opt == o && o->type != SL_OPT_LIST) {
            char *before = g->text;
            g->text =
                o->type == SL_OPT_MAP ? sl_asprintf("%s,%s", before, text) : sl_strdup(text);
            free(before);
            return;
        }
    }
    const sl_opt *own = cli->cmd->opts ? sl_opt_find(cli->cmd->opts, o->name) : NULL;
    cli->given = sl_realloc(cli->given, (cli->given_count + 1) * sizeof *cli->given);
    cli->given[cli->given_count++] = (sl_given){ o, own == o, sl_strdup(text) };
}

static sl_rc take_flag(sl_cli *cli, const flag_set *set, int val, sl_err *err)
{
    if (val == 'h')
        cli->help = true;
    else if (val == 'c')
        cli->config_path = optarg;
    else if (val == ':')
        return fail_no_value(set, optopt, err);
    else if (val < VAL_FIRST)
        return fail_flag(set, cli->cmd, cli->args, err);
    if (val < VAL_FIRST)
        return SL_OK;

    size_t i = (size_t)(val - VAL_FIRST);
    sl_rc rc = check_written(set, i, cli->args, err);
    if (rc != SL_OK)
        return rc;
    if (set->opts[i])
        give(cli, set->opts[i], optarg ? optarg : "true");
    else if (set->longs[i].has_arg)
        cli->config_path = optarg;
    else
        cli->help = true;
    return SL_OK;
}

static sl_rc collect(sl_cli *cli, const flag_set *set, sl_err *err)
{
    const char *letters = cli->cmd->groups ? ":hc:" : ":h";
    sl_rc rc = SL_OK;
    int val;

    opterr = 0;
    optind = 0; /* glibc: start anew, also in the middle of another list */
    while (rc == SL_OK && !cli->help &&
           (val = getopt_long(cli->flag_argc, cli->args, letters, set->longs, NULL)) != -1)
        rc = take_flag(cli, set, val, err);
    cli->argc = cli->flag_argc - optind;
    cli->argv = cli->args + optind;
    return rc;
}

/* ---- Applying ---- */

static sl_rc apply_given(sl_cli *cli, bool own, sl_err *err)
{
    for (size_t i = 0; i < cli->given_count; i++) {
        const sl_given *g = &cli->given[i];
        if (g->own != own)
            continue;
        sl_rc rc = own ? sl_opt_set(g->opt, cli->own, g->text, err)
                       : sl_settings_put(&cli->settings, g->opt, g->text, SL_FROM_FLAG, err);
        if (rc != SL_OK)
            return rc;
    }
    return SL_OK;
}

sl_rc sl_cli_load(sl_cli *cli, sl_err *err)
{
    sl_settings *s = &cli->settings;
    const char *path = cli->config_path ? cli->config_path : getenv("SLUICE_CONFIG");

    sl_rc rc = sl_settings_load_database_url(s, err);
    if (rc == SL_OK && path && *path) {
        cli->config_path = path;
        rc = sl_settings_load_file(s, path, err);
    }
    if (rc == SL_OK)
        rc = sl_settings_load_env(s, environ, err);
    if (rc == SL_OK)
        rc = apply_given(cli, false, err);
    if (rc == SL_OK)
        rc = sl_settings_check(s, err);
    return rc;
}

static void start(sl_cli *cli, const sl_cmd *cmd, int argc, char **argv)
{
    *cli = (sl_cli){ .cmd = cmd, .flag_argc = argc, .flag_argv = argv };
    sl_settings_init(&cli->settings);
    cli->own = sl_alloc(cmd->own_bytes);
    if (cmd->opts)
        sl_opt_defaults(cmd->opts, cli->own);
    cli->args = sl_alloc(((size_t)argc + 1) * sizeof *cli->args);
    memcpy(cli->args, argv, (size_t)argc * sizeof *cli->args);
}

sl_rc sl_cli_parse(sl_cli *cli, const sl_cmd *cmd, int argc, char **argv, sl_err *err)
{
    flag_set set;

    start(cli, cmd, argc, argv);
    set_init(&set, cmd);
    sl_rc rc = collect(cli, &set, err);
    set_fini(&set);
    if (rc != SL_OK || cli->help)
        return rc;
    rc = apply_given(cli, true, err);
    if (rc == SL_OK && cmd->groups && !cmd->late)
        rc = sl_cli_load(cli, err);
    return rc;
}

void sl_cli_fini(sl_cli *cli)
{
    sl_settings_fini(&cli->settings);
    if (cli->cmd && cli->cmd->opts)
        sl_opt_free(cli->cmd->opts, cli->own);
    for (size_t i = 0; i < cli->given_count; i++)
        free(cli->given[i].text);
    free(cli->given);
    free(cli->own);
    free(cli->args);
    *cli = (sl_cli){ 0 };
}

/* ---- Failing ---- */

int sl_cli_fail(const sl_cli *cli, int status, const sl_err *err)
{
    fflush(stdout);
    if (cli && cli->cmd)
        fprintf(stderr, "sluice %s: %s\n", cli->cmd->name, err->text);
    else
        fprintf(stderr, "sluice: %s\n", err->text);
    return status;
}

int sl_cli_usage(const sl_cli *cli, const char *fmt, ...)
{
    sl_err err = { SL_REFUSED, "" };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err.text, sizeof err.text, fmt, ap);
    va_end(ap);
    sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    if (!strstr(err.text, "\nhint: "))
        fprintf(stderr, "hint: see 'sluice %s%s--help'\n",
                cli && cli->cmd ? cli->cmd->name : "", cli && cli->cmd ? " " : "");
    return SL_EXIT_USAGE;
}

int sl_cli_status_of(const sl_err *err)
{
    return err->rc == SL_AGAIN   ? SL_EXIT_UNREACHABLE
           : err->rc == SL_NEWER ? SL_EXIT_NEWER
                                 : SL_EXIT_FAILED;
}
