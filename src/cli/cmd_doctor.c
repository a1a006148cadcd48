/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice doctor`: what in this database will hurt. It changes nothing. */
#include "cli/cli.h"
#include "cli/doctor_look.h"
#include "cli/table.h"
#include "core/clock.h"
#include "lib/conf.h"
#include "sink/sink.h"

typedef struct doctor_flags {
    bool json, deep, sink;
    int64_t old_ns;
} doctor_flags;

static const sl_opt flags[] = {
    { "json", SL_OPT_BOOL, offsetof(doctor_flags, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object; its members are documented in sluice(1) and stay." },
    { "deep", SL_OPT_BOOL, offsetof(doctor_flags, deep), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "SQLite: read the whole file, too, and look whether it is intact." },
    { "sink", SL_OPT_BOOL, offsetof(doctor_flags, sink), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Ask the sinks of the settings, too, about where messages would go; or the one whose URL "
      "follows." },
    { "old", SL_OPT_TIME, offsetof(doctor_flags, old_ns), "5m", SL_MS, 365 * 86400 * SL_SEC,
      SL_OPT_CLI_ONLY, "TIME",
      "From this age on a transaction, or a message that waits, is old; ten times as old is "
      "bad." },
    { .name = NULL },
};

static void print(const sl_cli *cli, const sl_findings *all)
{
    const doctor_flags *own = cli->own;
    sl_buf out = { 0 };
    if (own->json) {
        sl_findings_json(all, cli->settings.table, &out);
        printf("%s\n", sl_buf_text(&out));
    } else {
        sl_findings_print(all, sl_terminal_width(stdout), stdout);
    }
    sl_buf_fini(&out);
}

static sl_rc look(const sl_cli *cli, sl_cli_db *d, sl_findings *all, sl_err *err)
{
    const doctor_flags *own = cli->own;
    const sl_settings *s = &cli->settings;
    sl_rc rc = sl_conf_names(&d->names, s, err);
    if (rc == SL_OK)
        rc = sl_conf_look_db(&d->db, s, &d->names, err);
    if (rc != SL_OK)
        return rc;
    sl_look what = {
        .settings = s,
        .names = &d->names,
        .db = d->db,
        .norms = { .old_us = own->old_ns / 1000,
                   .poll_us = s->poll_ns / 1000,
                   .workers = s->workers,
                   .batch = s->batch },
        .deep = own->deep,
        .sinks = own->sink,
        .sink_url = cli->argc > 0 ? cli->argv[0] : NULL,
    };
    return sl_look_all(&what, all, err);
}

/* Before anything is opened: is there a sink to ask? */
static sl_rc check_sink(const sl_cli *cli, sl_err *err)
{
    const sl_sink_ops *ignored;
    if (cli->argc > 0)
        return sl_sink_find(&ignored, cli->argv[0], err);
    if (cli->settings.sink || cli->settings.route_count)
        return SL_OK;
    return sl_fail(
        err, SL_REFUSED,
        "no sink is set\nhint: sluice doctor --sink kafka://HOST:PORT, or set sink or "
        "routes in the file");
}

static int run(sl_cli *cli)
{
    const doctor_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    sl_findings all = { 0 };

    if (cli->argc > own->sink)
        return sl_cli_usage(cli, "doctor takes no argument '%s'", cli->argv[own->sink]);
    if (own->sink && check_sink(cli, &err) != SL_OK)
        return sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    sl_rc rc = look(cli, &d, &all, &err);
    if (rc == SL_OK)
        print(cli, &all);
    int status = sl_findings_worst(&all) == SL_BAD ? SL_EXIT_FAILED : SL_EXIT_OK;
    sl_findings_fini(&all);
    sl_cli_close(&d);
    return rc == SL_OK ? status : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_doctor = {
    .name = "doctor",
    .summary = "what in this database will hurt",
    .synopsis =
        "sluice doctor [--old TIME] [--deep] [--sink [URL]] [--json] [--db URL] [--table NAME]",
    .details =
        "Looks at the tables, the server and the nodes, and says what will hurt, with a "
        "remedy: "
        "tables, columns, indexes or grants that are missing; transactions, prepared "
        "transactions and replicas that keep dead rows alive; autovacuum that is off, late or "
        "starved, and tables far larger than their rows need; a pooler in transaction mode, "
        "versions with known faults, clocks that differ, settings that lose data, too few "
        "locks "
        "or connections; nodes that do not beat, lanes without an owner, keys that are blocked "
        "for long, and messages that nobody takes. Of a SQLite file: where it lies, who may "
        "write it, its journal and its unused pages. Nothing is changed, and no table is read "
        "as a whole.\n"
        "\n"
        "With --sink the other side is looked at, too, by the settings of a node, or at the "
        "URL: "
        "brokers that do not answer, topics that are missing, without a leader or with too few "
        "replicas, and what of the messages that wait they would refuse. Topics are those that "
        "the settings name, and those of the 5000 messages with the lowest ids.\n"
        "\n"
        "state: ok; warn, it will hurt if nothing changes; bad, it hurts now; unknown, it "
        "could "
        "not be looked at. Exit status: 1 if something is bad, else 0. Run it as the nodes' "
        "role "
        "and with their settings: what a node needs depends on strategy, workers and batch.\n"
        "\n"
        "With --json one object: table, state (the worst), ok, warn, bad, unknown (how many), "
        "findings (state, check, found, do).\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(doctor_flags),
    .run = run,
};
