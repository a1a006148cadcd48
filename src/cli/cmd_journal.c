/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice journal`: what a crash journal says. It only reads, and locks nothing: a node may be writing. */
#include "cli/cli.h"
#include "cli/table.h"
#include "journal/replay.h"

#include <jansson.h>

typedef struct own {
    bool json;
} own;

static const sl_opt opts[] = {
    { "json", SL_OPT_BOOL, offsetof(own, json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object, with all messages that the file names." },
    { .name = NULL },
};

static const char *time_text(char *out, size_t n, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || !strftime(out, n, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(out, n, "?");
    return out;
}

static int by_id(const void *a, const void *b)
{
    const sl_idmap_slot *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* All that the file names, the lowest id first. The map cannot be searched any more afterwards. */
static size_t sort(sl_replay *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->ids.cap; i++)
        if (r->ids.slots[i].state)
            r->ids.slots[n++] = r->ids.slots[i];
    if (n)
        qsort(r->ids.slots, n, sizeof *r->ids.slots, by_id);
    return n;
}

/* ---- For people ---- */

/* What a terminal would obey is not for a terminal. */
static void print_node(const char *name)
{
    printf("node      ");
    for (const char *p = name; *p; p++)
        putchar((unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p);
    putchar('\n');
}

static void print_head(const sl_replay *r)
{
    char at[40];
    printf("journal   %lld\n", (long long)r->head.identity);
    print_node(r->head.node);
    printf("state     %s%s\n", r->whole ? "whole" : "damaged: ", r->why);
    printf("in use    %s\n", r->in_use ? "yes" : "no");
    printf("began     %s\n", time_text(at, sizeof at, r->head.began_us));
    if (r->opened_count) {
        const sl_jb_pair *last = &r->opened[r->opened_count - 1];
        printf("sessions  %zu, the last is %lld, of %s\n", r->opened_count, (long long)last->id,
               time_text(at, sizeof at, last->epoch));
    }
    printf("file      %llu of %llu blocks used, rotated %llu times\n",
           (unsigned long long)(r->end - r->head.first),
           (unsigned long long)(r->head.file_bytes / SL_JB_BYTES),
           (unsigned long long)r->head.rotations);
    printf("messages  %zu sending, %zu sent, %zu failed\n",
           sl_replay_count(r, SL_JOURNAL_SENDING), sl_replay_count(r, SL_JOURNAL_SENT),
           sl_replay_count(r, SL_JOURNAL_FAILED));
}

static void print_sending(sl_replay *r)
{
    sl_table t = { 0 };
    size_t n = sort(r), shown = 0;
    sl_table_begin(&t, ">id|>epoch|state");
    for (size_t i = 0; i < n; i++) {
        const sl_idmap_slot *s = &r->ids.slots[i];
        if (s->state != SL_JOURNAL_SENDING)
            continue;
        sl_table_cell(&t, "%lld", (long long)s->id);
        sl_table_cell(&t, "%lld", (long long)s->epoch);
        sl_table_cell(&t, "%s", r->in_use ? "sending" : "unknown");
        shown++;
    }
    if (shown) {
        putchar('\n');
        sl_table_print(&t, stdout);
    }
    sl_table_fini(&t);
}

/* ---- For programs ---- */

static json_t *sessions_json(const sl_replay *r)
{
    json_t *all = json_array();
    char at[40];
    for (size_t i = 0; i < r->opened_count; i++)
        json_array_append_new(all, json_pack("{s:I, s:s}", "session",
                                             (json_int_t)r->opened[i].id, "opened_at",
                                             time_text(at, sizeof at, r->opened[i].epoch)));
    return all;
}

static json_t *messages_json(sl_replay *r)
{
    json_t *all = json_array();
    size_t n = sort(r);
    for (size_t i = 0; i < n; i++) {
        const sl_idmap_slot *s = &r->ids.slots[i];
        json_array_append_new(all,
                              json_pack("{s:I, s:I, s:s}", "id", (json_int_t)s->id, "epoch",
                                        (json_int_t)s->epoch, "state",
                                        sl_journal_state_name((sl_journal_state)s->state)));
    }
    return all;
}

static void print_json(sl_replay *r)
{
    char at[40];
    json_t *all = json_pack(
        "{s:I, s:s, s:b, s:s?, s:b, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "journal",
        (json_int_t)r->head.identity, "node", r->head.node, "whole", r->whole, "damage",
        r->whole ? NULL : r->why, "in_use", r->in_use, "began_at",
        time_text(at, sizeof at, r->head.began_us), "rotations", (json_int_t)r->head.rotations,
        "file_bytes", (json_int_t)r->head.file_bytes, "used_bytes",
        (json_int_t)((r->end - r->head.first) * SL_JB_BYTES), "position", (json_int_t)r->end,
        "sessions", sessions_json(r), "messages", messages_json(r));
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}

static int run(sl_cli *cli)
{
    const own *o = cli->own;
    sl_replay r = { 0 };
    sl_err err = { 0 };

    if (cli->argc != 1)
        return sl_cli_usage(cli, cli->argc ? "one file at a time" : "which file?");
    sl_rc rc = sl_replay_read(&r, cli->argv[0], &err);
    if (rc == SL_OK && o->json)
        print_json(&r);
    if (rc == SL_OK && !o->json) {
        print_head(&r);
        print_sending(&r);
    }
    bool whole = r.whole;
    sl_replay_fini(&r);
    if (rc != SL_OK)
        return sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    return whole ? SL_EXIT_OK : SL_EXIT_FAILED;
}

const sl_cmd sl_cmd_journal = {
    .name = "journal",
    .summary = "what a node's crash journal says",
    .synopsis = "sluice journal [--json] FILE",
    .details =
        "Prints whose journal it is, whether it is whole, how many messages it names, and "
        "those "
        "that have no verdict: they were being sent when the node died, so that nobody knows "
        "whether they went out; or, if the node lives, are being sent now. What the database "
        "has settled since is still named until the file is rotated.\n"
        "\n"
        "The file is only read, and a node may have it open. The status is 1 if it is damaged: "
        "then what it says of messages as sent is true, but others may be missing.\n",
    .opts = opts,
    .own_bytes = sizeof(own),
    .run = run,
};
