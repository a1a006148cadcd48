/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: one file per sub-command, each exporting one const sl_cmd, listed in
 * commands.c. Flags come from two tables: the settings that the command's `groups` name, and the
 * command's own. Precedence: flag, environment, file (-c FILE or SLUICE_CONFIG), DATABASE_URL (for
 * db), default.
 */
#ifndef SL_CLI_CLI_H
#define SL_CLI_CLI_H

#include "lib/settings.h"

enum {
    SL_EXIT_OK = 0,
    SL_EXIT_FAILED = 1,
    SL_EXIT_USAGE = 2,
    SL_EXIT_UNREACHABLE = 3,
    SL_EXIT_NEWER = 4
};

typedef struct sl_cmd sl_cmd;

typedef struct sl_cli {
    const sl_cmd *cmd;
    sl_settings settings;
    void *own; /* the command's own flags: cmd->own_bytes, described by cmd->opts */
    int argc;  /* what is left: arguments that are no flags */
    char **argv;
    const char *config_path; /* NULL: none given */
    int flag_argc; /* the command's whole argument list, to apply again after a reload */
    char **flag_argv;
    bool help;              /* --help was given: nothing else is filled in */
    struct sl_given *given; /* flags in the order of the command line, until they are applied */
    size_t given_count;
    char **args; /* copy of flag_argv that getopt may reorder */
} sl_cli;

struct sl_cmd {
    const char *name;
    const char *summary;  /* one line in `sluice --help` */
    const char *synopsis; /* "sluice push --topic T [--key K] [PAYLOAD | -]", may have lines */
    const char *details;  /* paragraphs and examples for `sluice CMD --help` and the man page */
    unsigned groups;      /* SL_FOR_... */
    const sl_opt *opts;   /* own flags, or NULL */
    size_t own_bytes;
    int (*run)(sl_cli *cli); /* returns the exit status */
    const char *words;       /* "show|check|docs": what the first argument may be, or NULL */
    bool late;               /* run() calls sl_cli_load itself, or does without */
};

extern const sl_cmd *const sl_cmd_all[]; /* ended by NULL; in the order of `sluice --help` */
const sl_cmd *sl_cmd_named(const char *name); /* or NULL */

/* Fills `cli` from file, environment and flags; argv[0] is the command's name. Also used again
 * on HUP, with flag_argc and flag_argv. argv must outlive cli. After a failure, too, call fini. */
SL_CHECK sl_rc sl_cli_parse(sl_cli *cli, const sl_cmd *cmd, int argc, char **argv, sl_err *err);
void sl_cli_fini(sl_cli *cli);
/* The second half of sl_cli_parse, for commands that are `late`: fills cli->settings. */
SL_CHECK sl_rc sl_cli_load(sl_cli *cli, sl_err *err);

/* Is this setting a flag of this command? */
bool sl_cli_takes(const sl_cmd *cmd, const sl_opt *setting);
/* "batch_bytes" as it is written behind "--"; free it. */
char *sl_cli_flag_name(const sl_opt *o);

/* Prints "sluice CMD: text" on standard error, the hint on a line of its own, and returns status. */
int sl_cli_fail(const sl_cli *cli, int status, const sl_err *err);
int sl_cli_usage(const sl_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 1, 3 or 4 for a failed database call. */
int sl_cli_status_of(const sl_err *err);

#endif
