/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/open.h"
#include "cli/who.h"
#include "db/schema.h"
#include "format/format.h"

typedef struct status_flags {
    bool json;
} status_flags;

static const sl_opt flags[] = {
    { "json", SL_OPT_BOOL, offsetof(status_flags, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object; its members are documented in sluice(1) and stay." },
    { .name = NULL },
};

typedef struct counts {
    int64_t total, due, leased, scheduled, held, oldest_us, dead;
} counts;

static sl_rc read_counts(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(counts *)ctx =
        (counts){ cols[0].i, cols[1].i, cols[2].i, cols[3].i, cols[4].i, cols[5].i, cols[6].i };
    return SL_OK;
}

static void print_json(const sl_cli *cli, const sl_schema *schema, const counts *c,
                       const sl_who *w)
{
    sl_buf out = { 0 };
    const char *strategy = sl_who_strategy(w);
    sl_buf_puts(&out, "{\"table\":");
    sl_json_string(&out, sl_str_of(cli->settings.table));
    sl_buf_printf(&out,
                  ",\"schema_version\":%lld,\"lanes\":%lld,\"total\":%lld,\"due\":%lld,"
                  "\"leased\":%lld,\"scheduled\":%lld,\"held\":%lld,\"blocked_keys\":%lld,"
                  "\"parked_keys\":%lld,\"dead\":%lld,\"lag_seconds\":%.3f,\"strategy\":",
                  (long long)schema->version, (long long)schema->lanes, (long long)c->total,
                  (long long)c->due, (long long)c->leased, (long long)c->scheduled,
                  (long long)c->held, (long long)w->blocked, (long long)w->parked,
                  (long long)c->dead, (double)c->oldest_us / 1e6);
    if (strategy)
        sl_json_string(&out, sl_str_of(strategy));
    else
        sl_buf_puts(&out, "null");
    sl_buf_printf(&out, ",\"nodes\":%zu,\"per_second\":%lld,\"free_lanes\":%zu,\"workers\":",
                  sl_who_alive(w), (long long)sl_who_per_second(w), sl_who_owns(w, 0));
    sl_who_holders_json(w, &out);
    printf("%s}\n", sl_buf_text(&out));
    sl_buf_fini(&out);
}

static void print_text(const sl_cli *cli, const sl_schema *schema, const counts *c,
                       const sl_who *w)
{
    size_t alive = sl_who_alive(w);
    printf("table      %s (schema version %lld, %lld lanes)\n", cli->settings.table,
           (long long)schema->version, (long long)schema->lanes);
    printf("due        %lld\n", (long long)c->due);
    printf("leased     %lld\n", (long long)c->leased);
    printf("scheduled  %lld\n", (long long)c->scheduled);
    printf("held       %lld\n", (long long)c->held);
    printf("blocked    %lld keys\n", (long long)w->blocked);
    printf("parked     %lld of them\n", (long long)w->parked);
    printf("dead       %lld\n", (long long)c->dead);
    printf("lag        %.1f s\n", (double)c->oldest_us / 1e6);
    if (alive)
        printf("nodes      %zu by strategy %s, %lld messages/s\n", alive, sl_who_strategy(w),
               (long long)sl_who_per_second(w));
    else
        printf("nodes      0\n");
    printf("lanes      %zu owned, %zu free\n", w->lanes - sl_who_owns(w, 0), sl_who_owns(w, 0));
    sl_who_print_holders(w, stdout);
}

static int run(sl_cli *cli)
{
    const status_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    sl_schema schema;
    counts c = { 0 };
    sl_who w = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "status takes no argument '%s'", cli->argv[0]);
    sl_rc rc = sl_cli_open(&d, cli, false, &err);
    if (rc == SL_OK)
        rc = sl_schema_read(d.db, &d.names, &schema, &err);
    if (rc == SL_OK)
        rc = sl_db_run1(d.db, "status/counts", NULL, read_counts, &c, NULL, &err);
    if (rc == SL_OK)
        rc = sl_who_read(&w, d.db, &err);
    if (rc == SL_OK)
        (own->json ? print_json : print_text)(cli, &schema, &c, &w);
    sl_who_fini(&w);
    sl_cli_close(&d);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_status = {
    .name = "status",
    .summary = "how much waits, for how long, and who holds what",
    .synopsis = "sluice status [--db URL] [--table NAME] [--json]",
    .details =
        "due: could be delivered now; what a strategy other than skip-locked has in flight is "
        "among them. leased: held by a worker's or a puller's lease, message by message; with "
        "strategy lanes nothing is leased that way, and leased stays 0. scheduled: not before "
        "a "
        "later time, retries included. held: set aside, because their time has not come or "
        "because they stand behind such a message of their key. blocked: keys that wait for "
        "such a message, or for an operator. parked: those of them that wait for an operator; "
        "sluice keys lists them. dead: in the table of dead letters. lag: age of "
        "the "
        "oldest message that is or was due. nodes: those that live; sluice workers lists them. "
        "lanes: those with an owner, and those without.\n"
        "\n"
        "With --json one object: table, schema_version, lanes, total, due, leased, scheduled, "
        "held, blocked_keys, parked_keys, dead, lag_seconds, strategy (null without nodes), "
        "nodes, "
        "per_second (messages that all nodes delivered lately), free_lanes, workers (worker, "
        "messages, keys, lease_seconds).\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(status_flags),
    .run = run,
};
