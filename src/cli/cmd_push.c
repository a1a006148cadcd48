/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice push`: one message from the arguments, or many from JSON lines. Lines are pushed in
 * chunks, each a transaction; a wrong line stops it, and the message says what was pushed. */
#include "cli/cli.h"
#include "cli/open.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/mem.h"
#include "format/format.h"
#include "lib/push.h"

#include <errno.h>
#include <unistd.h>

enum { CHUNK_LINES = 1000, CHUNK_BYTES = 8 << 20 };

typedef struct push_flags {
    char *topic, *key, *type, *content_type, *idempotency_key, *lines;
    sl_opt_map headers;
    int64_t delay_ns;
    bool quiet;
} push_flags;

#define AT(member) offsetof(push_flags, member)

static const sl_opt flags[] = {
    { "topic", SL_OPT_TEXT, AT(topic), NULL, 0, 0, SL_OPT_CLI_ONLY, "T",
      "The message's topic." },
    { "key", SL_OPT_TEXT, AT(key), NULL, 0, 0, SL_OPT_CLI_ONLY, "K",
      "The entity that it belongs to; without it no order is kept." },
    { "type", SL_OPT_TEXT, AT(type), NULL, 0, 0, SL_OPT_CLI_ONLY, "TYPE", "The event's type." },
    { "content_type", SL_OPT_TEXT, AT(content_type), NULL, 0, 0, SL_OPT_CLI_ONLY, "TYPE",
      "What the payload is; by default application/json for JSON, text/plain for other text, "
      "application/octet-stream for other bytes." },
    { "headers", SL_OPT_MAP, AT(headers), NULL, 0, 0, SL_OPT_CLI_ONLY, "NAME=VALUE,...",
      "Headers that travel with the message." },
    { "idempotency_key", SL_OPT_TEXT, AT(idempotency_key), NULL, 0, 0, SL_OPT_CLI_ONLY, "KEY",
      "Left out if a message with this key is there, or was within idempotency_keep." },
    { "delay", SL_OPT_TIME, AT(delay_ns), "0s", 0, 3650 * 86400 * SL_SEC, SL_OPT_CLI_ONLY,
      "TIME", "Not to be delivered before this time has passed." },
    { "lines", SL_OPT_TEXT, AT(lines), NULL, 0, 0, SL_OPT_CLI_ONLY, "FILE",
      "Push every line of FILE (- for standard input), a JSON object each." },
    { "quiet", SL_OPT_BOOL, AT(quiet), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "No progress and no summary." },
    { .name = NULL },
};

/* ---- One message ---- */

static bool read_stdin(sl_buf *out)
{
    size_t n;
    do {
        char *room = sl_buf_room(out, 65536);
        n = fread(room, 1, 65536, stdin);
        sl_buf_took(out, n);
    } while (n > 0);
    return !ferror(stdin);
}

static const char *guess_content_type(sl_str payload)
{
    return sl_is_json(payload)   ? "application/json"
           : sl_is_utf8(payload) ? "text/plain"
                                 : "application/octet-stream";
}

static char *headers_json(const sl_opt_map *map)
{
    if (map->count == 0)
        return NULL;
    sl_buf out = { 0 };
    for (size_t i = 0; i < map->count; i++) {
        sl_buf_putc(&out, i ? ',' : '{');
        sl_json_string(&out, sl_str_of(map->names[i]));
        sl_buf_putc(&out, ':');
        sl_json_string(&out, sl_str_of(map->values[i]));
    }
    sl_buf_putc(&out, '}');
    return out.p;
}

static sl_draft draft_of(const push_flags *f, sl_str payload, const char *headers)
{
    return (sl_draft){
        .topic = f->topic,
        .key = f->key,
        .key_bytes = f->key ? strlen(f->key) : 0,
        .payload = payload.p,
        .payload_bytes = payload.n,
        .type = f->type,
        .content_type = f->content_type ? f->content_type : guess_content_type(payload),
        .headers = headers,
        .idempotency_key = f->idempotency_key,
        .available_at_us = f->delay_ns ? sl_wall_us() + f->delay_ns / 1000 : 0,
    };
}

static void summarise(const push_flags *f, const sl_pushed *sum)
{
    if (f->quiet)
        return;
    printf("pushed %zu message%s", sum->inserted, sum->inserted == 1 ? "" : "s");
    if (sum->duplicates)
        printf(", %zu duplicate%s left out", sum->duplicates, sum->duplicates == 1 ? "" : "s");
    printf("\n");
}

static int push_one(sl_cli *cli, sl_db *db)
{
    const push_flags *f = cli->own;
    sl_err err = { 0 };
    sl_pushed sum = { 0 };
    sl_buf input = { 0 };
    sl_str payload = sl_str_of(cli->argv[0]);
    sl_rc rc = SL_OK;

    if (!strcmp(cli->argv[0], "-")) {
        if (!read_stdin(&input))
            rc = sl_fail(&err, SL_OPERATOR, "cannot read standard input: %s", strerror(errno));
        payload = (sl_str){ sl_buf_text(&input), input.n };
    }
    for (size_t i = 0; rc == SL_OK && i < f->headers.count; i++)
        if (!sl_is_utf8(sl_str_of(f->headers.names[i])) ||
            !sl_is_utf8(sl_str_of(f->headers.values[i])))
            rc = sl_fail(&err, SL_REFUSED, "a header is not UTF-8");
    char *headers = headers_json(&f->headers);
    sl_draft d = draft_of(f, payload, headers);
    if (rc == SL_OK)
        rc = sl_push_db(db, &d, 1, &sum, &err);
    if (rc == SL_OK)
        summarise(f, &sum);
    free(headers);
    sl_buf_fini(&input);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

/* ---- Many ---- */

typedef struct reader {
    FILE *file;
    const char *name;
    char *line;
    size_t room;
    uint64_t number;      /* of the line read last */
    uint64_t pushed_upto; /* last line that is in the database */
    uint64_t bytes;
    sl_arena arena; /* of the chunk */
    sl_draft *drafts;
    size_t count;
    sl_pushed sum;
} reader;

/* Reads lines until the chunk is full, the input ends, or a line is wrong. *more: not at the
 * end. */
static sl_rc read_chunk(reader *r, bool *more, sl_err *err)
{
    size_t bytes = 0;
    sl_arena_reset(&r->arena);
    r->count = 0;
    while (r->count < CHUNK_LINES && bytes < CHUNK_BYTES) {
        ssize_t n = getline(&r->line, &r->room, r->file);
        if (n < 0) {
            *more = false;
            return ferror(r->file)
                       ? sl_fail(err, SL_OPERATOR, "%s: %s", r->name, strerror(errno))
                       : SL_OK;
        }
        r->number++;
        r->bytes += (size_t)n;
        bytes += (size_t)n;
        while (n > 0 && (r->line[n - 1] == '\n' || r->line[n - 1] == '\r'))
            n--;
        sl_rc rc = sl_line_parse(&r->drafts[r->count], r->line, (size_t)n, &r->arena, err);
        if (rc != SL_OK)
            return sl_fail_in(err, "%s, line %llu", r->name, (unsigned long long)r->number);
        r->count++;
    }
    return SL_OK;
}

static sl_rc push_chunk(reader *r, sl_db *db, sl_err *err)
{
    sl_pushed some;
    sl_rc rc = sl_push_db(db, r->drafts, r->count, &some, err);
    if (rc != SL_OK)
        return sl_fail_in(err, "%s, lines %llu to %llu", r->name,
                          (unsigned long long)(r->pushed_upto + 1),
                          (unsigned long long)r->number);
    r->sum.inserted += some.inserted;
    r->sum.duplicates += some.duplicates;
    r->pushed_upto = r->number;
    return SL_OK;
}

/* Says how far it came, so that the rest can be pushed after mending. */
static int fail_lines(const sl_cli *cli, const reader *r, const sl_err *err)
{
    int status = sl_cli_fail(cli, sl_cli_status_of(err), err);
    if (r->pushed_upto > 0)
        fprintf(stderr, "lines 1 to %llu are pushed; go on with line %llu\n",
                (unsigned long long)r->pushed_upto, (unsigned long long)(r->pushed_upto + 1));
    else
        fprintf(stderr, "nothing was pushed\n");
    return status;
}

static int push_lines(sl_cli *cli, sl_db *db)
{
    const push_flags *f = cli->own;
    bool standard = !strcmp(f->lines, "-");
    reader r = { .file = standard ? stdin : fopen(f->lines, "re"),
                 .name = standard ? "standard input" : f->lines };
    sl_err err = { 0 };
    if (!r.file) {
        sl_fail(&err, SL_OPERATOR, "cannot read %.200s: %s", f->lines, strerror(errno));
        return sl_cli_fail(cli, SL_EXIT_FAILED, &err);
    }
    r.drafts = sl_alloc(CHUNK_LINES * sizeof *r.drafts);
    sl_progress progress;
    sl_progress_begin(&progress, f->quiet ? NULL : "pushing", r.file);
    sl_rc rc = SL_OK;
    for (bool more = true; rc == SL_OK && more;) {
        rc = read_chunk(&r, &more, &err);
        if (rc == SL_OK && r.count)
            rc = push_chunk(&r, db, &err);
        sl_progress_step(&progress, r.sum.inserted + r.sum.duplicates, r.bytes);
    }
    sl_progress_end(&progress);
    int status = rc == SL_OK ? SL_EXIT_OK : fail_lines(cli, &r, &err);
    if (rc == SL_OK)
        summarise(f, &r.sum);
    sl_arena_fini(&r.arena);
    free(r.drafts);
    free(r.line);
    if (!standard)
        fclose(r.file);
    return status;
}

/* ---- The command ---- */

static int check_use(sl_cli *cli)
{
    const push_flags *f = cli->own;
    bool one = f->topic || f->key || f->type || f->content_type || f->idempotency_key ||
               f->headers.count || f->delay_ns;
    if (f->lines && (one || cli->argc > 0))
        return sl_cli_usage(
            cli, "--lines takes everything from its lines: no other flag and no payload "
                 "beside it");
    if (f->lines)
        return SL_EXIT_OK;
    if (!f->topic || !*f->topic)
        return sl_cli_usage(cli,
                            "which topic?\nhint: --topic T, or --lines FILE for many messages");
    if (cli->argc != 1)
        return sl_cli_usage(cli,
                            cli->argc
                                ? "one payload, not %d\nhint: quote it"
                                : "no payload\nhint: give it as the argument, or - to read "
                                  "standard input",
                            cli->argc);
    return SL_EXIT_OK;
}

static int run(sl_cli *cli)
{
    const push_flags *f = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    int status = check_use(cli);
    if (status != SL_EXIT_OK)
        return status;
    if (sl_cli_open(&d, cli, false, &err) != SL_OK)
        status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    else
        status = f->lines ? push_lines(cli, d.db) : push_one(cli, d.db);
    sl_cli_close(&d);
    return status;
}

const sl_cmd sl_cmd_push = {
    .name = "push",
    .summary = "insert messages (one, or JSON lines)",
    .synopsis =
        "sluice push --topic T [--key K] [--type TYPE] [--headers N=V,...] PAYLOAD | -\n"
        "sluice push --lines FILE | -",
    .details =
        "A line is {\"topic\":..,\"key\":..,\"payload\":<any JSON>} with \"payload_base64\" in "
        "place of "
        "\"payload\" for other bytes, and optionally \"type\", \"headers\", \"content_type\", "
        "\"idempotency_key\" and \"available_at\". Lines are pushed in chunks of a thousand, "
        "each in a "
        "transaction of its own. A wrong line is named, and so is the line to go on with.\n"
        "\n"
        "Examples:\n"
        "  sluice push --topic orders --key order:9182 '{\"paid\":true}'\n"
        "  gzip -dc orders.jsonl.gz | sluice push --lines -\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(push_flags),
    .run = run,
};
