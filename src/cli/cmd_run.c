/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "node/node.h"

/* One write per line: lines of several processes on one terminal or file stay whole. */
static void log_to_stderr(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

/* HUP: the same command line again, on top of what file and environment say now. */
static sl_rc reload(void *ctx, sl_settings *out, sl_err *err)
{
    const sl_cli *cli = ctx;
    sl_cli again = { 0 };
    sl_rc rc = sl_cli_parse(&again, cli->cmd, cli->flag_argc, cli->flag_argv, err);
    if (rc == SL_OK)
        rc = sl_settings_check(&again.settings, err);
    if (rc == SL_OK) {
        sl_settings old = *out;
        *out = again.settings;
        again.settings = old;
    }
    sl_cli_fini(&again);
    return rc;
}

static int run(sl_cli *cli)
{
    sl_settings *s = &cli->settings;
    sl_log log;
    sl_err err = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "run takes no argument '%s'", cli->argv[0]);
    if (!s->sink && !s->route_count)
        return sl_cli_usage(cli, "where should messages go?\nhint: --sink file:out.jsonl, or "
                                 "routes: in a file (-c)");
    sl_log_init(&log, log_to_stderr, NULL);
    log.level = (sl_log_level)s->log_level;
    log.json = s->log_format == 1;
    log.timestamps = true;
    sl_rc rc = sl_node_run(
        &(sl_node_conf){ .settings = s, .log = &log, .reload = reload, .ctx = cli }, &err);
    sl_log_fini(&log);
    if (rc == SL_REFUSED) /* the sink's URL */
        return sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_run = {
    .name = "run",
    .summary = "the node: take, deliver, settle",
    .synopsis = "sluice run --sink URL [--workers N] [--hold lease|transaction] [--drain] ...",
    .details = "Starts worker threads that take messages from the table, deliver them to the "
               "sink and settle "
               "them, until it is stopped. TERM or INT: finish the batches in hand and leave; "
               "a second one: "
               "give back what is in hand and leave now. HUP: read the settings again and "
               "reopen the sink.\n"
               "\n"
               "A database that goes away while the node runs is waited for. One that cannot "
               "be reached at "
               "the start is exit status 3.\n"
               "\n"
               "A file (-c) may have routes: instead of a sink, which send topics to several "
               "sinks, each on its own "
               "terms; see sluice.yaml(5).\n"
               "\n"
               "Examples:\n"
               "  sluice run --sink file:out.jsonl --drain\n"
               "  sluice run --db postgresql://relay@db/shop --sink stdout: --workers 8\n",
    .groups = SL_FOR_DB | SL_FOR_RUN | SL_FOR_LOG,
    .run = run,
};
