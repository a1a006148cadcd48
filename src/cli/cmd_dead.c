/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice dead`: what is wanted, whether it may be done, and what became of it. How it is done is in cli/dead.h, how it
 * looks in cli/dead_print.h. */
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/dead.h"
#include "cli/dead_print.h"
#include "cli/open.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "member/orphans.h"

#include <errno.h>

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 100000, MISSING_SHOWN = 10 };
#define AGE_MAX_NS (INT64_C(100) * 365 * 86400 * SL_SEC)

typedef struct dead_flags {
    char *topic, *key, *error;
    int64_t older_ns, newer_ns;
    int64_t limit; /* 0: not given */
    bool unknown, all, json, yes, dry_run;
} dead_flags;

#define AT(member) offsetof(dead_flags, member)

static const sl_opt flags[] = {
    { "topic", SL_OPT_TEXT, AT(topic), NULL, 0, 0, SL_OPT_CLI_ONLY, "T",
      "Only this topic; with a * at the end, all that begin so." },
    { "key", SL_OPT_TEXT, AT(key), NULL, 0, 0, SL_OPT_CLI_ONLY, "K", "Only this key." },
    { "older_than", SL_OPT_TIME, AT(older_ns), NULL, SL_MS, AGE_MAX_NS, SL_OPT_CLI_ONLY, "TIME",
      "Only those that died longer ago than this, on the database's clock." },
    { "newer_than", SL_OPT_TIME, AT(newer_ns), NULL, SL_MS, AGE_MAX_NS, SL_OPT_CLI_ONLY, "TIME",
      "Only those that died within this time." },
    { "error", SL_OPT_TEXT, AT(error), NULL, 0, 0, SL_OPT_CLI_ONLY, "TEXT",
      "Only those whose error has this text in it; upper and lower case differ." },
    { "unknown", SL_OPT_BOOL, AT(unknown), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Only those that may have been delivered: with delivery at-most-once, what the sink did "
      "not "
      "confirm." },
    { "all", SL_OPT_BOOL, AT(all), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "All dead letters of the table; resend and drop do that only when told so." },
    { "limit", SL_OPT_INT, AT(limit), NULL, 1, LIMIT_MAX, SL_OPT_CLI_ONLY, "N",
      "With list: show no more than the newest N, 100 if it is not given." },
    { "json", SL_OPT_BOOL, AT(json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With list and show: print one JSON object; its members are documented in sluice(1) and "
      "stay." },
    { "yes", SL_OPT_BOOL, AT(yes), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With resend and drop: do not ask." },
    { "dry_run", SL_OPT_BOOL, AT(dry_run), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With resend and drop: only say how many there are." },
    { .name = NULL },
};

/* ---- list and show ---- */

static sl_rc list(const sl_cli *cli, sl_db *db, const sl_dead_filter *f, sl_err *err)
{
    const dead_flags *own = cli->own;
    sl_dead_page p = { .table = cli->settings.table, .filtered = !sl_dead_filter_is_empty(f) };
    sl_rc rc = sl_dead_count(&p.counts, db, f, err);
    sl_dead_page_begin(&p, own->json);
    if (rc == SL_OK)
        rc = sl_dead_list(db, f, own->limit ? own->limit : LIMIT_DEFAULT, sl_dead_page_row, &p,
                          err);
    if (rc == SL_OK)
        sl_dead_page_print(&p, stdout);
    sl_dead_page_fini(&p);
    return rc;
}

static sl_rc fail_missing(const sl_cli *cli, int64_t dead_id, sl_err *err)
{
    return sl_fail(err, SL_OPERATOR,
                   "table '%.60s' has no dead letter %lld\nhint: the first column of 'sluice "
                   "dead list' names them",
                   cli->settings.table, (long long)dead_id);
}

static sl_rc show(const sl_cli *cli, sl_db *db, int64_t dead_id, sl_err *err)
{
    const dead_flags *own = cli->own;
    int64_t found = 0;
    sl_buf out = { 0 };
    sl_rc rc = sl_db_run1(db, "dead/show", (sl_val[]){ sl_int(dead_id) },
                          own->json ? sl_dead_show_json : sl_dead_show_text, &out, &found, err);
    if (rc == SL_OK && !found)
        rc = fail_missing(cli, dead_id, err);
    if (rc == SL_OK)
        fwrite(sl_buf_text(&out), 1, out.n, stdout);
    sl_buf_fini(&out);
    return rc;
}

/* ---- resend and drop ---- */

typedef struct work {
    const sl_cli *cli;
    bool resend;
    sl_dead_refs refs;
    size_t missing; /* of those that were named */
    sl_dead_job job;
    sl_progress progress;
    sl_notes stays;
} work;

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void note_stay(void *ctx, int64_t dead_id, const char *why)
{
    work *w = ctx;
    char head[64];
    snprintf(head, sizeof head, "dead letter %lld stays", (long long)dead_id);
    sl_notes_add(&w->stays, head, why);
}

static void note_step(void *ctx, size_t seen)
{
    work *w = ctx;
    sl_progress_step(&w->progress, seen, seen);
}

static void note_missing(work *w, const int64_t *ids, size_t n)
{
    int64_t *missing = sl_alloc((n + 1) * sizeof *missing);
    w->missing = sl_refs_missing(&w->refs, ids, n, missing);
    for (size_t i = 0; i < w->missing && i < MISSING_SHOWN; i++)
        fprintf(stderr, "there is no dead letter %lld\n", (long long)missing[i]);
    if (w->missing > MISSING_SHOWN)
        fprintf(stderr, "... and %zu more\n", w->missing - MISSING_SHOWN);
    free(missing);
}

static size_t count_unknown(const sl_dead_refs *refs)
{
    size_t n = 0;
    for (size_t i = 0; i < refs->count; i++)
        n += refs->v[i].unknown;
    return n;
}

static bool ask(const work *w)
{
    size_t unknown = w->resend ? count_unknown(&w->refs) : 0;
    if (unknown)
        fprintf(stderr, "%zu of them may have been delivered, and would be twice\n", unknown);
    return sl_ask(w->resend ? "resend" : "drop", w->refs.count == 1);
}

static void announce(const work *w)
{
    const dead_flags *own = w->cli->own;
    printf("%zu dead letter%s of table %s %s be %s\n", w->refs.count, plural(w->refs.count),
           w->cli->settings.table, own->dry_run ? "would" : "will",
           w->resend ? "resent" : "dropped");
    fflush(stdout);
}

static void summarise(const work *w)
{
    const char *verb = w->resend ? "resent" : "dropped";
    printf("%s %zu dead letter%s", verb, w->job.done, plural(w->job.done));
    if (w->job.gone)
        printf(", %zu had gone meanwhile", w->job.gone);
    printf("\n");
    fflush(stdout);
    sl_notes_print(&w->stays, stderr);
}

/* What was done stays done, also when the rest failed. */
static sl_rc act(work *w, sl_db *db, sl_err *err)
{
    w->job = (sl_dead_job){
        .db = db, .resend = w->resend, .stays = note_stay, .step = note_step, .ctx = w
    };
    sl_progress_begin_of(&w->progress, w->resend ? "resending" : "dropping", w->refs.count);
    sl_rc rc = sl_dead_move(&w->job, &w->refs, err);
    sl_progress_end(&w->progress);
    summarise(w);
    if (rc != SL_OK)
        return sl_fail_in(err, "after %zu of %zu", w->job.done, w->refs.count);
    if (w->job.stayed)
        return sl_fail(err, SL_OPERATOR,
                       "%zu of %zu dead letters were not resent\nhint: wait until the messages "
                       "in their way are delivered, or drop them",
                       w->job.stayed, w->refs.count);
    return SL_OK;
}

static sl_rc confirm_and_act(work *w, sl_db *db, sl_err *err)
{
    const dead_flags *own = w->cli->own;
    if (w->refs.count == 0) {
        printf("no dead letter of table %s %s\n", w->cli->settings.table,
               w->missing ? "was named" : "matches");
        return SL_OK;
    }
    announce(w);
    if (own->dry_run)
        return SL_OK;
    if (!own->yes && !ask(w))
        return sl_fail(err, SL_OPERATOR, "nothing was %s", w->resend ? "resent" : "dropped");
    return act(w, db, err);
}

typedef struct wish {
    const char *verb;
    sl_dead_filter filter;
    int64_t *ids;
    size_t id_count;
} wish;

static sl_rc move(const sl_cli *cli, sl_db *db, const wish *x, sl_err *err)
{
    work w = { .cli = cli, .resend = strcmp(x->verb, "resend") == 0 };
    sl_rc rc = x->id_count ? sl_dead_pick(&w.refs, db, x->ids, x->id_count, err)
                           : sl_dead_find(&w.refs, db, &x->filter, err);
    if (rc == SL_OK) {
        note_missing(&w, x->ids, x->id_count);
        rc = confirm_and_act(&w, db, err);
    }
    if (rc == SL_OK && w.missing)
        rc = sl_fail(err, SL_OPERATOR,
                     "%zu of %zu dead letters were not there\nhint: the first column of "
                     "'sluice dead list' names them",
                     w.missing, x->id_count);
    sl_refs_fini(&w.refs);
    sl_notes_fini(&w.stays);
    return rc;
}

/* ---- Wrong use ---- */

static int check_texts(const sl_cli *cli)
{
    const dead_flags *own = cli->own;
    const struct {
        const char *name, *text;
    } texts[] = { { "topic", own->topic }, { "key", own->key }, { "error", own->error } };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].text && !sl_is_utf8(sl_str_of(texts[i].text)))
            return sl_cli_usage(cli, "--%s is not UTF-8", texts[i].name);
    /* A variable of a script that is not set must not mean everything. */
    if (own->topic && !*own->topic)
        return sl_cli_usage(cli, "--topic is empty\nhint: leave it out for every topic");
    if (own->error && !*own->error)
        return sl_cli_usage(cli, "--error is empty\nhint: leave it out for every error");
    return SL_EXIT_OK;
}

static int check_flags(const sl_cli *cli, const wish *x)
{
    const dead_flags *own = cli->own;
    bool moves = strcmp(x->verb, "resend") == 0 || strcmp(x->verb, "drop") == 0;
    bool lists = strcmp(x->verb, "list") == 0;
    bool filtered = own->all || !sl_dead_filter_is_empty(&x->filter);
    if ((own->yes || own->dry_run) && !moves)
        return sl_cli_usage(cli, "%s is for resend and drop", own->yes ? "--yes" : "--dry-run");
    if (own->limit && !lists)
        return sl_cli_usage(cli, "--limit is for list");
    if (own->json && moves)
        return sl_cli_usage(cli, "--json is for list and show");
    if (filtered && x->id_count)
        return sl_cli_usage(cli, "dead letters by number or by filter, not both");
    if (own->all && !sl_dead_filter_is_empty(&x->filter))
        return sl_cli_usage(cli, "--all and another filter\nhint: leave --all out");
    if (moves && !filtered && !x->id_count)
        return sl_cli_usage(cli,
                            "which dead letters are to be %s?\nhint: name them, give a filter "
                            "such as --topic T, or --all",
                            strcmp(x->verb, "drop") ? "resent" : "dropped");
    return SL_EXIT_OK;
}

static int check_terminal(const sl_cli *cli, const wish *x)
{
    const dead_flags *own = cli->own;
    bool asks = strcmp(x->verb, "resend") == 0 || strcmp(x->verb, "drop") == 0;
    return !asks || own->yes || own->dry_run ? SL_EXIT_OK : sl_ask_check(cli, x->verb);
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorted, and each once. */
static void tidy_ids(wish *x)
{
    size_t kept = 0;
    qsort(x->ids, x->id_count, sizeof *x->ids, by_number);
    for (size_t i = 0; i < x->id_count; i++)
        if (kept == 0 || x->ids[kept - 1] != x->ids[i])
            x->ids[kept++] = x->ids[i];
    x->id_count = kept;
}

static int read_ids(const sl_cli *cli, wish *x)
{
    x->ids = sl_alloc((size_t)cli->argc * sizeof *x->ids);
    for (int i = 1; i < cli->argc; i++) {
        char *end;
        errno = 0;
        long long id = strtoll(cli->argv[i], &end, 10);
        if (errno || *end || id < 1 || *cli->argv[i] < '0' || *cli->argv[i] > '9')
            return sl_cli_usage(cli,
                                "'%.60s' is no number of a dead letter\nhint: the first column "
                                "of 'sluice dead list' names them",
                                cli->argv[i]);
        x->ids[x->id_count++] = id;
    }
    if (strcmp(x->verb, "show") == 0 && x->id_count != 1)
        return sl_cli_usage(cli, "show takes the number of one dead letter\nhint: sluice dead "
                                 "show DEAD_ID");
    tidy_ids(x);
    if (strcmp(x->verb, "list") == 0 && x->id_count)
        return sl_cli_usage(cli, "list takes no argument '%.60s'\nhint: sluice dead show %.60s",
                            cli->argv[1], cli->argv[1]);
    return SL_EXIT_OK;
}

static const char *const verbs[] = { "list", "show", "resend", "drop" };

static int read_verb(const sl_cli *cli, wish *x)
{
    sl_near near = { .wanted = cli->argc ? cli->argv[0] : "" };
    if (!cli->argc)
        return sl_cli_usage(cli,
                            "what is to be done is missing\nhint: list, show, resend or drop");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(cli->argv[0], verbs[i]) == 0)
            x->verb = verbs[i];
        sl_near_try(&near, verbs[i]);
    }
    if (x->verb)
        return SL_EXIT_OK;
    if (near.best)
        return sl_cli_usage(cli, "'%.60s' cannot be done\nhint: did you mean %s?", cli->argv[0],
                            near.best);
    return sl_cli_usage(cli, "'%.60s' cannot be done\nhint: list, show, resend or drop",
                        cli->argv[0]);
}

static int read_wish(const sl_cli *cli, wish *x)
{
    const dead_flags *own = cli->own;
    int status = read_verb(cli, x);
    if (status == SL_EXIT_OK)
        status = check_texts(cli);
    if (status == SL_EXIT_OK)
        status = read_ids(cli, x);
    if (status != SL_EXIT_OK)
        return status;
    sl_dead_filter_topic(&x->filter, own->topic);
    x->filter.key = sl_str_of(own->key);
    x->filter.error = sl_str_of(own->error);
    x->filter.unknown = own->unknown;
    x->filter.older_us = own->older_ns / 1000;
    x->filter.newer_us = own->newer_ns / 1000;
    status = check_flags(cli, x);
    return status == SL_EXIT_OK ? check_terminal(cli, x) : status;
}

/* ---- What nodes left behind ---- */

/* At most once: what a node that is gone did not come to settle becomes dead letters before we look. Who may not do that
 * sees the others all the same. */
static sl_rc gather(const sl_cli *cli, sl_db *db, sl_err *err)
{
    const dead_flags *own = cli->own;
    bool may_count;
    bool may_list;
    int64_t orphans = 0;
    sl_rc rc = sl_orphans_may(db, &may_count, &may_list, err);
    if (rc == SL_OK && may_count)
        rc = sl_orphans_count(db, &orphans, err);
    if (rc == SL_OK && orphans && may_list)
        return sl_orphans_list(db, NULL, &orphans, err);
    if (rc == SL_OK && orphans)
        fprintf(stderr,
                "%lld messages of nodes that are gone may have been delivered, and are not "
                "listed yet\nhint: this role may not make dead letters of them; the operator "
                "may\n",
                (long long)orphans);
    else if (rc == SL_OK && own->unknown && !may_count)
        fprintf(stderr, "messages of nodes that are gone may be missing here\nhint: this role "
                        "may not look for them, see docs/operating.md; the operator may\n");
    return rc;
}

/* ---- The command ---- */

static sl_rc do_it(const sl_cli *cli, sl_db *db, const wish *x, sl_err *err)
{
    sl_rc rc = gather(cli, db, err);
    if (rc != SL_OK)
        return rc;
    if (strcmp(x->verb, "list") == 0)
        return list(cli, db, &x->filter, err);
    if (strcmp(x->verb, "show") == 0)
        return show(cli, db, x->ids[0], err);
    return move(cli, db, x, err);
}

static int run(sl_cli *cli)
{
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    wish x = { 0 };
    int status = read_wish(cli, &x);
    if (status == SL_EXIT_OK) {
        sl_rc rc = sl_cli_open(&d, cli, false, &err);
        if (rc == SL_OK)
            rc = do_it(cli, d.db, &x, &err);
        if (rc != SL_OK)
            status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    }
    sl_cli_close(&d);
    free(x.ids);
    return status;
}

const sl_cmd sl_cmd_dead = {
    .name = "dead",
    .summary = "list, show, resend, drop dead letters",
    .synopsis = "sluice dead list [FILTERS] [--limit N] [--json]\n"
                "sluice dead show DEAD_ID [--json]\n"
                "sluice dead resend FILTERS | --all | DEAD_ID... [--yes | --dry-run]\n"
                "sluice dead drop FILTERS | --all | DEAD_ID... [--yes | --dry-run]",
    .details =
        "'list' shows the dead letters, the newest first, and how many there are in all. "
        "'show' prints all there is of one, with its payload.\n"
        "\n"
        "'resend' puts them back into the outbox, as new messages that were never tried: new "
        "ids in the order of the old ones, so that those of a key keep their order; they come "
        "behind what waits already. What the producer wrote is kept. Where a message in the "
        "outbox has the same idempotency key, the dead letter stays, and the status is 1. "
        "'drop' deletes them for good.\n"
        "\n"
        "Both say how many there are and ask; without a terminal they need --yes. They work in "
        "transactions of at most 500, and may be interrupted, repeated, and run beside nodes "
        "and each other: each dead letter leaves once.\n"
        "\n"
        "With delivery at-most-once, what the sink did not confirm is a dead letter that may "
        "have "
        "been delivered: 'maybe' in the column 'sent'. --unknown picks those, and resending "
        "one "
        "may deliver it twice. What was in flight when its node died is listed with the first "
        "command that looks, once the lease of that node is over.\n"
        "\n"
        "The filters --topic, --key, --older-than, --newer-than, --error and --unknown may be "
        "combined.\n"
        "\n"
        "Examples:\n"
        "  sluice dead list --topic 'orders.*' --newer-than 1h\n"
        "  sluice dead resend --error 'connection refused' --yes\n"
        "  sluice dead drop 7 8 9\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(dead_flags),
    .run = run,
    .words = "list|show|resend|drop",
};
