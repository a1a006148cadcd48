/* SPDX-License-Identifier: Apache-2.0 */
/* sluice: finds the command and runs it. */
#include "cli/help.h"

#include <errno.h>
#include <signal.h>

static int fail_unknown(const char *name)
{
    sl_near near = { .wanted = name };

    if (*name == '-')
        return sl_cli_usage(NULL,
                            "unknown flag '%.80s'\nhint: flags follow a command, as in "
                            "'sluice run --sink stdout:'",
                            name);
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        sl_near_try(&near, (*c)->name);
    if (near.best)
        return sl_cli_usage(NULL, "unknown command '%.80s'\nhint: did you mean '%s'?", name,
                            near.best);
    return sl_cli_usage(NULL, "unknown command '%.80s'", name);
}

static int help(const char *name)
{
    const sl_cmd *cmd = name ? sl_cmd_named(name) : NULL;

    if (name && !cmd)
        return fail_unknown(name);
    if (cmd)
        sl_help_command(cmd, stdout);
    else
        sl_help_program(stdout);
    return SL_EXIT_OK;
}

static int run(const sl_cmd *cmd, int argc, char **argv)
{
    sl_cli cli;
    sl_err err = { 0 };
    int status = SL_EXIT_OK;

    if (sl_cli_parse(&cli, cmd, argc, argv, &err) != SL_OK)
        status = sl_cli_fail(&cli, SL_EXIT_USAGE, &err);
    else if (cli.help)
        sl_help_command(cmd, stdout);
    else
        status = cmd->run(&cli);
    sl_cli_fini(&cli);
    return status;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (!name) {
        sl_help_program(stderr);
        return SL_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const sl_cmd *cmd = sl_cmd_named(name);
    return cmd ? run(cmd, argc - 1, argv + 1) : fail_unknown(name);
}

/* Output that did not reach the disk is a failure, as `sluice pull > full-disk` should show. */
static int flush(int status)
{
    bool failed = ferror(stdout) != 0;

    if (fflush(stdout) == 0 && !failed)
        return status;
    fprintf(stderr, "sluice: cannot write to standard output: %s\n", strerror(errno));
    return status == SL_EXIT_OK ? SL_EXIT_FAILED : status;
}

/* A reader that left and a file-size limit are errors that the writer handles, not deaths. */
static void ignore_signals(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    ignore_signals();
    return flush(dispatch(argc, argv));
}
