/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/open.h"
#include "cli/table.h"
#include "cli/who.h"
#include "format/format.h"

typedef struct workers_flags {
    bool json;
} workers_flags;

static const sl_opt flags[] = {
    { "json", SL_OPT_BOOL, offsetof(workers_flags, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object; its members are documented in sluice(1) and stay." },
    { .name = NULL },
};

/* Of a list of lanes, where no terminal says otherwise; and however narrow the terminal is. */
enum { RANGES_ROOM = 40, RANGES_LEAST = 12 };

/* ---- JSON ---- */

/* 64 bits: a session is no number for those who read JSON into doubles. */
static void put_node(sl_buf *out, const sl_who *w, const sl_node_row *n)
{
    sl_buf_puts(out, "{\"node\":");
    sl_json_string(out, sl_str_of(n->node));
    sl_buf_printf(out, ",\"session\":\"%lld\",\"strategy\":", (long long)n->session);
    sl_json_string(out, sl_str_of(n->strategy));
    sl_buf_puts(out, ",\"assign\":");
    sl_json_string(out, sl_str_of(n->assign));
    sl_buf_printf(out, ",\"workers\":%lld,\"lanes\":", (long long)n->workers);
    sl_who_lanes_json(w, n->session, out);
    sl_buf_printf(out,
                  ",\"age_seconds\":%.3f,\"lease_seconds\":%.3f,\"sent\":%lld,\"failed\":%lld,"
                  "\"per_second\":%lld}",
                  (double)n->age_us / 1e6, (double)n->left_us / 1e6, (long long)n->sent,
                  (long long)n->failed, (long long)n->per_second);
}

static void print_json(const sl_cli *cli, const sl_who *w)
{
    sl_buf out = { 0 };
    const char *strategy = sl_who_strategy(w);
    sl_buf_puts(&out, "{\"table\":");
    sl_json_string(&out, sl_str_of(cli->settings.table));
    sl_buf_puts(&out, ",\"strategy\":");
    if (strategy)
        sl_json_string(&out, sl_str_of(strategy));
    else
        sl_buf_puts(&out, "null");
    sl_buf_puts(&out, ",\"nodes\":[");
    for (size_t i = 0; i < w->nodes.count; i++) {
        sl_buf_puts(&out, i ? "," : "");
        put_node(&out, w, &w->nodes.v[i]);
    }
    sl_buf_puts(&out, "],\"free_lanes\":");
    sl_who_lanes_json(w, 0, &out);
    sl_buf_printf(&out, ",\"blocked_keys\":%lld,\"workers\":", (long long)w->blocked);
    sl_who_holders_json(w, &out);
    printf("%s}\n", sl_buf_text(&out));
    sl_buf_fini(&out);
}

/* ---- Text ---- */

static void put_time(sl_table *t, int64_t us)
{
    sl_buf text = { 0 };
    sl_who_time(&text, us);
    sl_table_cell(t, "%s", sl_buf_text(&text));
    sl_buf_fini(&text);
}

static void put_ranges(sl_table *t, const sl_who *w, int64_t session, size_t room)
{
    sl_buf text = { 0 };
    sl_who_ranges(w, session, room, &text);
    sl_table_cell(t, "%s", sl_buf_text(&text));
    sl_buf_fini(&text);
}

/* The lanes stand last: of all columns only they may be cut. */
static void fill(sl_table *t, const sl_who *w, size_t room)
{
    sl_table_begin(t, "node|strategy|assign|>workers|>age|>lease|>sent|>failed|>per second|"
                      ">lanes|");
    for (size_t i = 0; i < w->nodes.count; i++) {
        const sl_node_row *n = &w->nodes.v[i];
        sl_table_cell(t, "%s", n->node);
        sl_table_cell(t, "%s", n->strategy);
        sl_table_cell(t, "%s", n->assign);
        sl_table_cell(t, "%lld", (long long)n->workers);
        put_time(t, n->age_us);
        if (n->left_us > 0)
            put_time(t, n->left_us);
        else
            sl_table_cell(t, "over");
        sl_table_cell(t, "%lld", (long long)n->sent);
        sl_table_cell(t, "%lld", (long long)n->failed);
        sl_table_cell(t, "%lld", (long long)n->per_second);
        sl_table_cell(t, "%zu", sl_who_owns(w, n->session));
        put_ranges(t, w, n->session, room);
    }
}

static void print_nodes(const sl_who *w)
{
    sl_table t = { 0 };
    size_t terminal = sl_terminal_width(stdout);
    size_t room = RANGES_ROOM;
    if (terminal) {
        fill(&t, w, 0);
        size_t taken = sl_table_width(&t);
        room = terminal > taken + RANGES_LEAST ? terminal - taken : RANGES_LEAST;
    }
    fill(&t, w, room);
    sl_table_print(&t, stdout);
    sl_table_fini(&t);
    fputc('\n', stdout);
}

static void print_text(const sl_cli *cli, const sl_who *w)
{
    sl_buf ranges = { 0 };
    size_t unowned = sl_who_owns(w, 0);
    sl_who_ranges(w, 0, RANGES_ROOM, &ranges);
    if (w->nodes.count)
        print_nodes(w);
    else
        printf("no node lives on table %s\n", cli->settings.table);
    printf("free lanes    %zu of %zu%s%s%s\n", unowned, w->lanes, unowned ? " (" : "",
           sl_buf_text(&ranges), unowned ? ")" : "");
    printf("blocked keys  %lld\n", (long long)w->blocked);
    sl_who_print_holders(w, stdout);
    sl_buf_fini(&ranges);
}

static int run(sl_cli *cli)
{
    const workers_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    sl_who w = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "workers takes no argument '%s'", cli->argv[0]);
    sl_rc rc = sl_cli_open(&d, cli, false, &err);
    if (rc == SL_OK)
        rc = sl_who_read(&w, d.db, &err);
    if (rc == SL_OK)
        (own->json ? print_json : print_text)(cli, &w);
    sl_who_fini(&w);
    sl_cli_close(&d);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_workers = {
    .name = "workers",
    .summary = "who lives, and who owns what",
    .synopsis = "sluice workers [--db URL] [--table NAME] [--json]",
    .details =
        "The nodes that share the table, oldest first. workers: its threads. age: since it "
        "started. lease: the time within which it must beat again; over: it did not, and the "
        "next node that looks forgets it. sent, failed: deliveries since it started. per "
        "second: "
        "messages that it delivered lately. lanes: how many it owns, and which. Below them "
        "the lanes without an owner, the keys that wait, and the workers that hold messages by "
        "leases or keys by strategy guard.\n"
        "\n"
        "With --json one object: table, strategy (null without nodes), nodes (node, session, "
        "strategy, assign, workers, lanes, age_seconds, lease_seconds, sent, failed, "
        "per_second), free_lanes, blocked_keys, workers (worker, messages, keys, "
        "lease_seconds). lanes and free_lanes are arrays of numbers; session is a string.\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(workers_flags),
    .run = run,
};
