/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/open.h"
#include "db/capture.h"
#include "db/schema.h"
#include "lib/conf.h"
#include "lib/layout.h"

typedef struct init_flags {
    bool print, inbox;
    int existing; /* sl_existing */
} init_flags;

static const sl_opt flags[] = {
    { "print", SL_OPT_BOOL, offsetof(init_flags, print), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print the SQL instead of running it, for those who run migrations themselves." },
    { "inbox", SL_OPT_BOOL, offsetof(init_flags, inbox), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Make the inbox of a receiver (inbox_table), and nothing else." },
    { "existing", SL_OPT_CHOICE, offsetof(init_flags, existing), "refuse", 0, 0,
      SL_OPT_CLI_ONLY, "refuse|send|skip",
      "With layout debezium: whether rows that are in the table already become messages. Send "
      "those that Debezium has not sent, skip those that it has." },
    { .name = NULL },
};

static int print_sql(sl_cli *cli, sl_err *err)
{
    const init_flags *own = cli->own;
    sl_names names;
    sl_buf sql = { 0 };
    sl_rc rc = sl_conf_names(&names, &cli->settings, err);
    if (rc != SL_OK)
        return sl_cli_fail(cli, SL_EXIT_USAGE, err);
    const sl_db_ops *dialect;
    rc = sl_db_find(&dialect, cli->settings.db, err);
    if (rc == SL_OK && names.layout && !own->inbox)
        rc =
            sl_fail(err, SL_OPERATOR,
                    "with layout debezium the SQL depends on your table and cannot be printed\n"
                    "hint: run 'sluice init' with a role that owns the table");
    if (rc == SL_OK)
        rc = own->inbox ? sl_schema_print_inbox(dialect->name, &names, &sql, err)
                        : sl_schema_print(dialect->name, &names, &sql, err);
    if (rc == SL_OK)
        fputs(sl_buf_text(&sql), stdout);
    sl_buf_fini(&sql);
    sl_names_fini(&names);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, SL_EXIT_FAILED, err);
}

/* A number that was asked for and that the table has not must not pass for granted. */
static sl_rc check_lanes(const sl_cli *cli, sl_cli_db *d, sl_err *err)
{
    sl_schema have;
    if (!sl_settings_given(&cli->settings, "lanes"))
        return SL_OK;
    sl_rc rc = sl_schema_read(d->db, &d->names, &have, err);
    if (rc != SL_OK || have.version == 0 || have.version > SL_SCHEMA_VERSION ||
        have.lanes == cli->settings.lanes)
        return rc;
    return sl_fail(
        err, SL_OPERATOR,
        "table '%s' has %lld lanes, not %lld\nhint: change their number with 'sluice "
        "lanes --set %lld', or leave 'lanes' out",
        cli->settings.table, (long long)have.lanes, (long long)cli->settings.lanes,
        (long long)cli->settings.lanes);
}

static void report(const sl_cli *cli, const sl_schema_done *d)
{
    const char *table = cli->settings.table;
    if (d->before.version == d->after.version)
        printf("table %s is up to date (schema version %lld, %lld lanes)\n", table,
               (long long)d->after.version, (long long)d->after.lanes);
    else if (d->before.version > 0)
        printf("migrated table %s from schema version %lld to %lld\n", table,
               (long long)d->before.version, (long long)d->after.version);
    else if (d->before.table)
        printf("adopted table %s, %d columns added (schema version %lld, %lld lanes)\n", table,
               d->columns_added, (long long)d->after.version, (long long)d->after.lanes);
    else
        printf("created table %s (schema version %lld, %lld lanes)\n", table,
               (long long)d->after.version, (long long)d->after.lanes);
}

static sl_rc init_inbox(const sl_cli *cli, sl_cli_db *d, sl_err *err)
{
    bool created;
    sl_rc rc = sl_schema_inbox(d->db, &d->names, &created, err);
    if (rc == SL_OK)
        printf("%s inbox %s%s\n", created ? "created" : "the", cli->settings.inbox_table,
               created ? "" : " is there already");
    return rc;
}

static void report_capture(const sl_cli *cli, const sl_cli_db *d, const sl_schema_done *s,
                           const sl_capture_done *c)
{
    printf("table %s is captured: %s is a message of table %s (schema version %lld, %lld "
           "lanes)\n",
           cli->settings.table,
           c->sent ? "each row in it, and each that is inserted," : "each row that is inserted",
           d->names.table, (long long)s->after.version, (long long)s->after.lanes);
}

static sl_rc init_beside(const sl_cli *cli, sl_cli_db *d, sl_err *err)
{
    const init_flags *own = cli->own;
    sl_schema_done made;
    sl_capture_done captured;
    sl_debezium options;
    sl_rc rc = sl_debezium_read(&options, &cli->settings.debezium, err);
    if (rc != SL_OK)
        return rc;
    rc = sl_capture_look(d->db, &d->names, &options, err);
    if (rc == SL_OK)
        rc = sl_capture_table(d->db, &d->names, err);
    if (rc == SL_OK)
        rc = sl_schema_init(d->db, &d->names, &made, err);
    if (rc == SL_OK)
        rc = sl_capture_init(d->db, &d->names, &options, (sl_existing)own->existing, &captured,
                             err);
    if (rc == SL_OK)
        report_capture(cli, d, &made, &captured);
    sl_debezium_fini(&options);
    return rc;
}

static sl_rc init_outbox(const sl_cli *cli, sl_cli_db *d, sl_err *err)
{
    const init_flags *own = cli->own;
    sl_schema_done done;
    sl_rc rc = check_lanes(cli, d, err);
    if (rc == SL_OK && d->names.layout)
        return init_beside(cli, d, err);
    if (rc == SL_OK && own->existing)
        rc =
            sl_fail(err, SL_OPERATOR,
                    "--existing is for layout debezium only\nhint: the rows of a table that is "
                    "adopted are messages");
    if (rc == SL_OK)
        rc = sl_schema_init(d->db, &d->names, &done, err);
    if (rc == SL_OK)
        report(cli, &done);
    return rc;
}

static int run(sl_cli *cli)
{
    const init_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "init takes no argument '%s'", cli->argv[0]);
    if (own->print)
        return print_sql(cli, &err);
    sl_rc rc = sl_cli_open(&d, cli, true, &err);
    if (rc == SL_OK)
        rc = own->inbox ? init_inbox(cli, &d, &err) : init_outbox(cli, &d, &err);
    sl_cli_close(&d);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_init = {
    .name = "init",
    .summary = "create or migrate the tables",
    .synopsis =
        "sluice init [--db URL] [--table NAME] [--lanes N] [--print]\n"
        "sluice init --layout rotated [--db URL] [--table NAME] [--lanes N] [--print]\n"
        "sluice init --layout debezium [--debezium NAME=VALUE,...] [--existing send|skip]\n"
        "sluice init --inbox [--db URL] [--inbox-table NAME] [--print]",
    .details =
        "Creates the outbox table and its side tables, adopts a table that is there "
        "already (adding "
        "the columns that it lacks), or migrates an older one; in one transaction, "
        "harmless when there "
        "is nothing to do and when several nodes do it at once. The number of lanes of a "
        "table that is there stays; sluice lanes --set changes it.\n"
        "\n"
        "With layout rotated (PostgreSQL) the table is a ring of segments: what was delivered "
        "is not deleted one by one, a segment is emptied when nothing in it is left to do. It "
        "is shared by strategy lanes, and ids are given by the table alone. A table that is "
        "there cannot be made into one.\n"
        "\n"
        "With layout debezium the table is that of Debezium's outbox event router, and stays "
        "as "
        "it is: a trigger makes a message of each row that is inserted, in a table beside it. "
        "If "
        "it has rows already, --existing says what becomes of them.\n"
        "\n"
        "With --inbox it makes one table in the database of a receiver, in which that notes "
        "what "
        "it has handled, by sl_inbox_pg, sl_inbox_sqlite or plain SQL.\n"
        "\n"
        "Examples:\n"
        "  sluice init\n"
        "  sluice init --db postgresql://owner@db/shop --table app.outbox\n"
        "  sluice init --db postgresql://owner@db/shop --layout rotated\n"
        "  sluice init --db postgresql: --print > migrations/0042_outbox.sql\n"
        "  sluice init --inbox --db postgresql://owner@db/billing\n",
    .groups = SL_FOR_DB | SL_FOR_INIT,
    .opts = flags,
    .own_bytes = sizeof(init_flags),
    .run = run,
};
