/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice resend`: which delivered messages are to be sent again, whether they may, and what became of it. How it is done
 * is in cli/resend.h. */
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/dead.h"
#include "cli/open.h"
#include "cli/progress.h"
#include "cli/resend.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "format/format.h"

#include <errno.h>

#define AGE_MAX_NS (INT64_C(100) * 365 * 86400 * SL_SEC)

typedef struct resend_flags {
    sl_opt_list ids;
    char *key, *topic;
    int64_t since_ns, until_ns;
    bool json, yes, dry_run;
} resend_flags;

#define AT(member) offsetof(resend_flags, member)

static const sl_opt flags[] = {
    { "id", SL_OPT_LIST, AT(ids), NULL, 0, 0, SL_OPT_CLI_ONLY, "ID",
      "These messages, by the ids that they had: several times, with commas, or more of them "
      "at "
      "the end." },
    { "key", SL_OPT_TEXT, AT(key), NULL, 0, 0, SL_OPT_CLI_ONLY, "K", "Those of this key." },
    { "topic", SL_OPT_TEXT, AT(topic), NULL, 0, 0, SL_OPT_CLI_ONLY, "T",
      "Those of this topic; with a * at the end, of all that begin so." },
    { "since", SL_OPT_TIME, AT(since_ns), NULL, SL_MS, AGE_MAX_NS, SL_OPT_CLI_ONLY, "TIME",
      "Only those that were delivered within this time, on the database's clock." },
    { "until", SL_OPT_TIME, AT(until_ns), NULL, SL_MS, AGE_MAX_NS, SL_OPT_CLI_ONLY, "TIME",
      "Only those that were delivered longer ago than this." },
    { "json", SL_OPT_BOOL, AT(json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object; its members are documented in sluice(1) and stay." },
    { "yes", SL_OPT_BOOL, AT(yes), "false", 0, 0, SL_OPT_CLI_ONLY, NULL, "Do not ask." },
    { "dry_run", SL_OPT_BOOL, AT(dry_run), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Only say how many there are." },
    { .name = NULL },
};

typedef struct work {
    const sl_cli *cli;
    int64_t *ids; /* as they were named */
    size_t id_count;
    sl_resend_filter filter;
    sl_resend_found found;
    sl_requeue job;
    sl_notes missing, stays;
    sl_progress progress;
} work;

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- Telling ---- */

/* With --json only the object is on standard output. */
static FILE *people(const work *w)
{
    return ((const resend_flags *)w->cli->own)->json ? stderr : stdout;
}

static void note_stay(void *ctx, const sl_ref *ref, const char *why)
{
    work *w = ctx;
    char head[64];
    snprintf(head, sizeof head, "message %lld is not resent", (long long)ref->id);
    sl_notes_add(&w->stays, head, why);
}

static void note_step(void *ctx, size_t seen)
{
    work *w = ctx;
    sl_progress_step(&w->progress, seen, seen);
}

static void note_missing(work *w)
{
    for (size_t i = 0; i < w->id_count; i++) {
        char head[64];
        if (sl_resend_has(&w->found, w->ids[i]))
            continue;
        snprintf(head, sizeof head, "message %lld", (long long)w->ids[i]);
        sl_notes_add(&w->missing, head, "it is not kept");
    }
    sl_notes_print(&w->missing, stderr);
}

static void announce(const work *w)
{
    const resend_flags *own = w->cli->own;
    FILE *out = people(w);
    size_t n = w->found.refs.count;
    size_t keys = w->found.keys.count;
    fprintf(out, "%zu message%s of %zu key%s of table %s %s be sent again", n, plural(n), keys,
            plural(keys), w->cli->settings.table, own->dry_run ? "would" : "will");
    if (w->found.keyless)
        fprintf(out, ", %zu of them without a key", w->found.keyless);
    fputc('\n', out);
    fflush(out);
}

static void summarise(const work *w)
{
    FILE *out = people(w);
    fprintf(out, "resent %zu message%s", w->job.done, plural(w->job.done));
    if (w->job.gone)
        fprintf(out, ", %zu had been purged meanwhile", w->job.gone);
    fputc('\n', out);
    fflush(out);
    sl_notes_print(&w->stays, stderr);
}

static void print_json(const work *w)
{
    sl_buf out = { 0 };
    sl_buf_puts(&out, "{\"table\":");
    sl_json_string(&out, sl_str_of(w->cli->settings.table));
    sl_buf_printf(&out,
                  ",\"messages\":%zu,\"keys\":%zu,\"keyless\":%zu,\"missing\":%zu,"
                  "\"resent\":%zu,\"purged\":%zu,\"refused\":%zu}\n",
                  w->found.refs.count, w->found.keys.count, w->found.keyless, w->missing.count,
                  w->job.done, w->job.gone, w->job.stayed);
    fwrite(sl_buf_text(&out), 1, out.n, stdout);
    sl_buf_fini(&out);
}

/* ---- Doing ---- */

/* What was done stays done, also when the rest failed. */
static sl_rc act(work *w, sl_db *db, sl_err *err)
{
    size_t n = w->found.refs.count;
    w->job = (sl_requeue){
        .db = db, .how = sl_resend_how, .stays = note_stay, .step = note_step, .ctx = w
    };
    sl_progress_begin_of(&w->progress, "resending", n);
    sl_rc rc = sl_requeue_run(&w->job, &w->found.refs, err);
    sl_progress_end(&w->progress);
    summarise(w);
    if (rc != SL_OK)
        return sl_fail_in(err, "after %zu of %zu", w->job.done, n);
    if (w->job.stayed)
        return sl_fail(
            err, SL_OPERATOR,
            "%zu of %zu messages were not resent\nhint: the table refuses them: is a "
            "constraint younger than they are?",
            w->job.stayed, n);
    return SL_OK;
}

static sl_rc confirm_and_act(work *w, sl_db *db, sl_err *err)
{
    const resend_flags *own = w->cli->own;
    if (w->found.refs.count == 0) {
        fprintf(people(w), "no kept message of table %s %s\n", w->cli->settings.table,
                w->id_count ? "was named" : "matches");
        return SL_OK;
    }
    announce(w);
    if (own->dry_run)
        return SL_OK;
    if (!own->yes && !sl_ask("resend", w->found.refs.count == 1))
        return sl_fail(err, SL_OPERATOR, "nothing was resent");
    return act(w, db, err);
}

static sl_rc resend(work *w, sl_db *db, sl_err *err)
{
    const resend_flags *own = w->cli->own;
    sl_rc rc = w->id_count ? sl_resend_pick(&w->found, db, w->ids, w->id_count, err)
                           : sl_resend_find(&w->found, db, &w->filter, err);
    if (rc != SL_OK)
        return rc;
    note_missing(w);
    rc = confirm_and_act(w, db, err);
    if (own->json)
        print_json(w);
    if (rc == SL_OK && w->missing.count)
        rc = sl_fail(err, SL_OPERATOR,
                     "%zu of %zu messages are not kept\nhint: only what was delivered with "
                     "retention is, and only for that time",
                     w->missing.count, w->id_count);
    return rc;
}

/* ---- Wrong use ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static int read_id(const sl_cli *cli, work *w, const char *text)
{
    char *end;
    errno = 0;
    long long id = strtoll(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9')
        return sl_cli_usage(cli, "'%.60s' is no id of a message\nhint: --id 7,8,9", text);
    w->ids = sl_realloc(w->ids, (w->id_count + 1) * sizeof *w->ids);
    w->ids[w->id_count++] = id;
    return SL_EXIT_OK;
}

static int read_some(const sl_cli *cli, work *w, const char *text)
{
    int status = SL_EXIT_OK;
    char *rest = NULL;
    char *words = sl_strdup(text);
    for (char *c = strtok_r(words, ",", &rest); c && status == SL_EXIT_OK;
         c = strtok_r(NULL, ",", &rest))
        status = read_id(cli, w, c);
    free(words);
    return status;
}

static int read_ids(const sl_cli *cli, work *w)
{
    const resend_flags *own = cli->own;
    int status = SL_EXIT_OK;
    size_t kept = 0;
    if (!own->ids.count)
        return SL_EXIT_OK;
    for (size_t i = 0; i < own->ids.count && status == SL_EXIT_OK; i++)
        status = read_some(cli, w, own->ids.v[i]);
    for (int i = 0; i < cli->argc && status == SL_EXIT_OK; i++)
        status = read_id(cli, w, cli->argv[i]);
    if (status == SL_EXIT_OK && w->id_count == 0)
        return sl_cli_usage(cli, "--id is empty");
    if (w->id_count) /* sorted, and each once */
        qsort(w->ids, w->id_count, sizeof *w->ids, by_number);
    for (size_t i = 0; i < w->id_count; i++)
        if (kept == 0 || w->ids[kept - 1] != w->ids[i])
            w->ids[kept++] = w->ids[i];
    w->id_count = kept;
    return status;
}

static int check_flags(const sl_cli *cli)
{
    const resend_flags *own = cli->own;
    bool filtered = own->key || own->topic;
    bool timed = own->since_ns || own->until_ns;
    if ((own->key && !sl_is_utf8(sl_str_of(own->key))) ||
        (own->topic && !sl_is_utf8(sl_str_of(own->topic))))
        return sl_cli_usage(cli, "--%s is not UTF-8",
                            own->key && !sl_is_utf8(sl_str_of(own->key)) ? "key" : "topic");
    /* A variable of a script that is not set must not mean everything. */
    if (own->topic && !*own->topic)
        return sl_cli_usage(cli, "--topic is empty\nhint: --topic '*' for every topic");
    if (own->ids.count && (filtered || timed))
        return sl_cli_usage(cli, "messages by id or by filter, not both");
    if (cli->argc && !own->ids.count)
        return sl_cli_usage(cli, "what is '%.60s'?\nhint: --id %.60s", cli->argv[0],
                            cli->argv[0]);
    if (!own->ids.count && !filtered)
        return sl_cli_usage(cli, "which messages are to be resent?\nhint: --id ID, --key K or "
                                 "--topic T; --topic '*' is every topic");
    if (own->since_ns && own->until_ns && own->since_ns <= own->until_ns)
        return sl_cli_usage(cli, "--since is not before --until\nhint: both are times ago: "
                                 "--since 2h --until 1h");
    return SL_EXIT_OK;
}

static int read_wish(const sl_cli *cli, work *w)
{
    const resend_flags *own = cli->own;
    sl_dead_filter topic = { 0 };
    int status = check_flags(cli);
    if (status == SL_EXIT_OK)
        status = read_ids(cli, w);
    if (status != SL_EXIT_OK)
        return status;
    sl_dead_filter_topic(&topic, own->topic);
    w->filter = (sl_resend_filter){ .topic = topic.topic,
                                    .prefix = topic.prefix,
                                    .key = sl_str_of(own->key),
                                    .since_us = own->since_ns / 1000,
                                    .until_us = own->until_ns / 1000 };
    return own->yes || own->dry_run ? SL_EXIT_OK : sl_ask_check(cli, "resend");
}

/* ---- The command ---- */

static int run(sl_cli *cli)
{
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    work w = { .cli = cli };
    int status = read_wish(cli, &w);
    if (status == SL_EXIT_OK) {
        sl_rc rc = sl_cli_open(&d, cli, false, &err);
        if (rc == SL_OK)
            rc = resend(&w, d.db, &err);
        if (rc != SL_OK)
            status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    }
    sl_cli_close(&d);
    sl_resend_found_fini(&w.found);
    sl_notes_fini(&w.missing);
    sl_notes_fini(&w.stays);
    free(w.ids);
    return status;
}

const sl_cmd sl_cmd_resend = {
    .name = "resend",
    .summary = "queue delivered messages again, in key order",
    .synopsis = "sluice resend --id ID... [--yes | --dry-run] [--json]\n"
                "sluice resend --key K | --topic T [--since TIME] [--until TIME] [--yes | "
                "--dry-run] [--json]",
    .details =
        "Delivered messages are kept for the time that nodes have as their retention. 'resend' "
        "puts them into the outbox again, as new messages that were never tried: new ids in "
        "the "
        "order of the old ones, so that those of a key keep their order; they come behind what "
        "waits already. What the producer wrote is kept, but for the idempotency key. They "
        "stay "
        "kept, too.\n"
        "\n"
        "It says how many messages of how many keys there are and asks; without a terminal it "
        "needs --yes. It works in transactions of at most 500, and may be interrupted and run "
        "beside nodes; what was resent before it was interrupted is resent again when it is "
        "repeated.\n"
        "\n"
        "Examples:\n"
        "  sluice resend --id 7 8 9\n"
        "  sluice resend --key order:9182 --since 2h\n"
        "  sluice resend --topic 'orders.*' --since 2h --until 1h --yes\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(resend_flags),
    .run = run,
};
