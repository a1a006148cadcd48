/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/open.h"
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
    int64_t total, due, leased, scheduled, oldest_us, dead;
} counts;

static sl_rc read_counts(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(counts *)ctx =
        (counts){ cols[0].i, cols[1].i, cols[2].i, cols[3].i, cols[4].i, cols[5].i };
    return SL_OK;
}

/* The workers' rows, written down in both shapes at once. */
typedef struct workers {
    sl_buf json, text;
} workers;

static sl_rc read_worker(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    workers *w = ctx;
    sl_str name = cols[0].null ? SL_STR("?") : cols[0].s;
    double left = (double)cols[2].i / 1e6;
    sl_buf_puts(&w->json, w->json.n ? ",{\"worker\":" : "{\"worker\":");
    sl_json_string(&w->json, name);
    sl_buf_printf(&w->json, ",\"messages\":%lld,\"lease_seconds\":%.3f}", (long long)cols[1].i,
                  left);
    sl_buf_printf(&w->text, "  %-32.*s %10lld %9.1f s\n", (int)name.n, name.p,
                  (long long)cols[1].i, left);
    return SL_OK;
}

static void print_json(const sl_cli *cli, const sl_schema *schema, const counts *c,
                       const workers *w)
{
    sl_buf table = { 0 };
    sl_json_string(&table, sl_str_of(cli->settings.table));
    printf("{\"table\":%s,\"schema_version\":%lld,\"lanes\":%lld,\"total\":%lld,\"due\":%lld,"
           "\"leased\":%lld,\"scheduled\":%lld,\"dead\":%lld,\"lag_seconds\":%.3f,\"workers\":["
           "%s]}\n",
           sl_buf_text(&table), (long long)schema->version, (long long)schema->lanes,
           (long long)c->total, (long long)c->due, (long long)c->leased,
           (long long)c->scheduled, (long long)c->dead, (double)c->oldest_us / 1e6,
           sl_buf_text(&w->json));
    sl_buf_fini(&table);
}

static void print_text(const sl_cli *cli, const sl_schema *schema, const counts *c,
                       const workers *w)
{
    printf("table      %s (schema version %lld, %lld lanes)\n", cli->settings.table,
           (long long)schema->version, (long long)schema->lanes);
    printf("due        %lld\n", (long long)c->due);
    printf("leased     %lld\n", (long long)c->leased);
    printf("scheduled  %lld\n", (long long)c->scheduled);
    printf("dead       %lld\n", (long long)c->dead);
    printf("lag        %.1f s\n", (double)c->oldest_us / 1e6);
    if (w->text.n)
        printf("\n  %-32s %10s %11s\n%s", "worker", "messages", "lease ends",
               sl_buf_text(&w->text));
}

static int run(sl_cli *cli)
{
    const status_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    sl_schema schema;
    counts c = { 0 };
    workers w = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "status takes no argument '%s'", cli->argv[0]);
    sl_rc rc = sl_cli_open(&d, cli, false, &err);
    if (rc == SL_OK)
        rc = sl_schema_read(d.db, &d.names, &schema, &err);
    if (rc == SL_OK)
        rc = sl_db_run1(d.db, "status/counts", NULL, read_counts, &c, NULL, &err);
    if (rc == SL_OK)
        rc = sl_db_run1(d.db, "status/workers", NULL, read_worker, &w, NULL, &err);
    if (rc == SL_OK)
        (own->json ? print_json : print_text)(cli, &schema, &c, &w);
    sl_buf_fini(&w.json);
    sl_buf_fini(&w.text);
    sl_cli_close(&d);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_status = {
    .name = "status",
    .summary = "how much waits, for how long, and who holds what",
    .synopsis = "sluice status [--db URL] [--table NAME] [--json]",
    .details = "due: could be delivered now. leased: held by a worker. scheduled: not before a "
               "later time, "
               "retries included. dead: in the table of dead letters. lag: age of the oldest "
               "message that is "
               "or was due.\n"
               "\n"
               "With --json one object: table, schema_version, lanes, total, due, leased, "
               "scheduled, dead, "
               "lag_seconds, workers (worker, messages, lease_seconds).\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(status_flags),
    .run = run,
};
