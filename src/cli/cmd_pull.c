/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sluice pull`: messages for a script. They are printed as JSON lines with a receipt and stay
 * leased; a second call with the receipts acknowledges, retries or buries them. What is never
 * settled comes back when its lease ends.
 */
#include "claim/claim.h"
#include "cli/cli.h"
#include "cli/open.h"
#include "core/clock.h"
#include "core/fault.h"
#include "format/format.h"
#include "lib/conf.h"
#include "lib/sent.h"
#include "lib/wake.h"
#include "member/nodes.h"

#include <errno.h>
#include <inttypes.h>

typedef struct pull_flags {
    int64_t wait_ns, delay_ns;
    bool auto_ack, ack, retry, bury;
    char *reason;
} pull_flags;

#define AT(member) offsetof(pull_flags, member)

static const sl_opt flags[] = {
    { "wait", SL_OPT_TIME, AT(wait_ns), "0s", 0, 86400 * SL_SEC, SL_OPT_CLI_ONLY, "TIME",
      "Wait this long for the first message." },
    { "auto_ack", SL_OPT_BOOL, AT(auto_ack), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Acknowledge as soon as the lines are written." },
    { "ack", SL_OPT_BOOL, AT(ack), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "The messages of these receipts are done." },
    { "retry", SL_OPT_BOOL, AT(retry), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Deliver the messages of these receipts again, after --delay." },
    { "bury", SL_OPT_BOOL, AT(bury), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Move the messages of these receipts to the dead letters." },
    { "delay", SL_OPT_TIME, AT(delay_ns), "0s", 0, 365 * 86400 * SL_SEC, SL_OPT_CLI_ONLY,
      "TIME", "With --retry: not before this time has passed." },
    { "reason", SL_OPT_TEXT, AT(reason), NULL, 0, 0, SL_OPT_CLI_ONLY, "TEXT",
      "With --retry or --bury: why, for the operator." },
    { .name = NULL },
};

/* ---- Settling by receipt ---- */

/* A receipt ends as its strategy wants it: ordered ones say whether the key may go to others with it. */
enum { LAST_OF_KEY = '.', MORE_OF_KEY = '+' };

typedef struct receipts {
    sl_batch ordered, plain;
} receipts;

static bool add_receipt(receipts *r, const char *text)
{
    int64_t id, epoch;
    int end = 0;
    if (sscanf(text, "%" SCNd64 ":%" SCNd64 "%n", &id, &epoch, &end) != 2)
        return false;
    bool last = text[end] == LAST_OF_KEY;
    bool ordered = last || text[end] == MORE_OF_KEY;
    if (text[end + ordered] != '\0')
        return false;
    sl_msg *m = sl_batch_add(ordered ? &r->ordered : &r->plain);
    m->last = last;
    m->id = id;
    m->epoch = epoch;
    m->attempt = 1;
    return true;
}

/* Receipts as arguments, or one a line on standard input. */
static int read_receipts(sl_cli *cli, receipts *b)
{
    char line[128];
    for (int i = 0; i < cli->argc; i++) {
        if (strcmp(cli->argv[i], "-") != 0) {
            if (!add_receipt(b, cli->argv[i]))
                return sl_cli_usage(cli, "'%.60s' is not a receipt\nhint: ID:EPOCH, as printed",
                                    cli->argv[i]);
            continue;
        }
        for (long n = 1; fgets(line, sizeof line, stdin); n++) {
            line[strcspn(line, "\r\n")] = '\0';
            if (*line && !add_receipt(b, line))
                return sl_cli_usage(
                    cli, "standard input, line %ld: not a receipt\nhint: ID:EPOCH", n);
        }
    }
    return b->ordered.count + b->plain.count
               ? SL_EXIT_OK
               : sl_cli_usage(cli, "which messages?\nhint: give their receipts, or -");
}

static void judge(sl_batch *b, const pull_flags *f)
{
    sl_verdict v = f->ack ? SL_SENT : f->retry ? SL_RETRY : SL_DEAD;
    for (size_t i = 0; i < b->count; i++) {
        b->msgs[i].delay_ns = f->delay_ns;
        sl_msg_settle(b, &b->msgs[i], v, sl_str_of(f->reason));
    }
}

static int by_epoch(const void *a, const void *b)
{
    const sl_msg *x = a;
    const sl_msg *y = b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The receipts of one pull, that is of one epoch. */
static sl_rc settle_some(sl_claim *claim, const sl_msg *v, size_t n, const pull_flags *f,
                         size_t *lost, sl_err *err)
{
    sl_batch part;
    size_t missing = 0;
    sl_batch_init(&part);
    for (size_t i = 0; i < n; i++)
        *sl_batch_add(&part) = v[i];
    sl_rc rc = claim->ops->adopt ? claim->ops->adopt(claim, &part, err) : SL_OK;
    judge(&part, f);
    if (rc == SL_OK)
        rc = claim->ops->settle(claim, &part, &missing, err);
    *lost += missing;
    sl_batch_fini(&part);
    return rc;
}

/* All receipts of one strategy. */
static sl_rc settle_by(const sl_claim_ops *strategy, const sl_claim_conf *conf, sl_db *db,
                       sl_batch *b, const pull_flags *f, size_t *lost, sl_err *err)
{
    sl_claim *claim = NULL;
    if (b->count == 0)
        return SL_OK;
    sl_rc rc = sl_claim_open(&claim, strategy, db, conf, err);
    qsort(b->msgs, b->count, sizeof *b->msgs, by_epoch);
    for (size_t i = 0, end; rc == SL_OK && i < b->count; i = end) {
        for (end = i + 1; end < b->count && b->msgs[end].epoch == b->msgs[i].epoch; end++)
            ;
        rc = settle_some(claim, &b->msgs[i], end - i, f, lost, err);
    }
    if (claim)
        claim->ops->close(claim);
    return rc;
}

static sl_rc settle_receipts(const sl_claim_conf *conf, sl_db *db, receipts *r,
                             const pull_flags *f, sl_err *err)
{
    size_t lost = 0;
    sl_rc rc = settle_by(sl_claim_named("guard"), conf, db, &r->ordered, f, &lost, err);
    if (rc == SL_OK)
        rc = settle_by(sl_claim_named("skip-locked"), conf, db, &r->plain, f, &lost, err);
    if (rc == SL_OK && lost > 0)
        return sl_fail(
            err, SL_REFUSED,
            "%zu of %zu messages are no longer yours: their lease ended and someone else "
            "took them, or they were settled before; the others are settled",
            lost, r->ordered.count + r->plain.count);
    return rc;
}

/* ---- Taking ---- */

/* Whoever takes is a node while it does so: it must not do that beside nodes that share the table in
 * another way. */
typedef struct taker {
    const sl_cli *cli;
    sl_db *db;
    sl_claim *claim;
    sl_node_row me;
    int64_t next_beat_ns;
    int64_t trusted_ns; /* until then the others know of it */
    sl_wake wake;
    sl_batch batch;
} taker;

static void beats_now(taker *t)
{
    int64_t lease_ns = t->cli->settings.lease_ns;
    t->next_beat_ns = sl_now_ns() + lease_ns / 3;
    t->trusted_ns = sl_now_ns() + lease_ns - lease_ns / 10;
}

static sl_rc join(taker *t, sl_err *err)
{
    int64_t lease_ns = t->cli->settings.lease_ns;
    beats_now(t);
    t->me.session = (int64_t)(sl_random() >> 2) | 1;
    return sl_nodes_join(t->db, &t->me, lease_ns, NULL, err);
}

/* One that was forgotten meanwhile joins anew, unless others share the table in another way now. */
static sl_rc beat(taker *t, sl_err *err)
{
    sl_beat now;
    int64_t lease_ns = t->cli->settings.lease_ns;
    if (sl_now_ns() < t->next_beat_ns)
        return SL_OK;
    beats_now(t);
    sl_rc rc = sl_nodes_beat(t->db, &t->me, lease_ns, &now, err);
    return rc == SL_OK && !now.alive ? join(t, err) : rc;
}

/* When that took so long that the others may have forgotten it, and may share the table in another way by
 * now, all goes back. */
static sl_rc take_once(taker *t, sl_err *err)
{
    size_t lost;
    sl_batch_reset(&t->batch);
    sl_rc rc = t->claim->ops->take(t->claim, &t->batch, t->cli->settings.batch, err);
    SL_FAULT("pulled");
    if (rc != SL_OK || sl_now_ns() < t->trusted_ns)
        return rc;
    sl_batch_settle_rest(&t->batch, SL_RELEASED, SL_NONE);
    rc = t->claim->ops->settle(t->claim, &t->batch, &lost, err);
    sl_batch_reset(&t->batch);
    return rc;
}

static bool waits_for_news(const taker *t)
{
    const pull_flags *f = t->cli->own;
    return t->cli->settings.wake && f->wait_ns > 0;
}

static sl_rc sleep_for(taker *t, unsigned tries, int64_t ns, sl_err *err)
{
    if (waits_for_news(t))
        return sl_wake_wait(&t->wake, t->db, -1, tries, ns, err);
    nanosleep(&(struct timespec){ ns / SL_SEC, ns % SL_SEC }, NULL);
    return SL_OK;
}

static sl_rc take(taker *t, sl_err *err)
{
    const pull_flags *f = t->cli->own;
    int64_t until_ns = sl_now_ns() + f->wait_ns;
    for (unsigned idle = 1;; idle++) {
        sl_rc rc = beat(t, err);
        if (rc == SL_OK && waits_for_news(t))
            rc = sl_wake_arm(&t->wake, t->db, err); /* before it looks */
        if (rc == SL_OK)
            rc = take_once(t, err);
        int64_t now_ns = sl_now_ns();
        int64_t left_ns = until_ns - now_ns;
        if (rc != SL_OK || t->batch.count > 0 || left_ns <= 0)
            return rc;
        int64_t poll_ns = t->cli->settings.poll_ns;
        int64_t pause_ns =
            waits_for_news(t) ? poll_ns : sl_backoff_ns(idle, 5 * SL_MS, poll_ns);
        pause_ns = pause_ns < left_ns ? pause_ns : left_ns;
        if (pause_ns > t->next_beat_ns - now_ns)
            pause_ns = t->next_beat_ns > now_ns ? t->next_beat_ns - now_ns : 0;
        rc = sleep_for(t, idle, pause_ns, err);
        if (rc != SL_OK)
            return rc;
    }
}

static sl_rc print_lines(const sl_batch *b, const char *worker, bool ordered, sl_err *err)
{
    sl_buf out = { 0 };
    for (size_t i = 0; i < b->count; i++) {
        char extra[80];
        char end[] = { ordered ? b->msgs[i].last ? LAST_OF_KEY : MORE_OF_KEY : '\0', '\0' };
        snprintf(extra, sizeof extra, ",\"receipt\":\"%" PRId64 ":%" PRId64 "%s\"",
                 b->msgs[i].id, b->msgs[i].epoch, end);
        sl_format_line(&out, &b->msgs[i], worker, extra);
    }
    fwrite(sl_buf_text(&out), 1, out.n, stdout);
    sl_buf_fini(&out);
    if (fflush(stdout) != 0)
        return sl_fail(err, SL_OPERATOR, "cannot write to standard output: %s",
                       strerror(errno));
    return SL_OK;
}

static sl_rc take_and_print(taker *t, sl_err *err)
{
    const pull_flags *f = t->cli->own;
    sl_err ignored;
    size_t lost;
    sl_rc rc = take(t, err);
    if (rc != SL_OK)
        return rc;
    rc = print_lines(&t->batch, t->me.node, t->claim->ops->ordered, err);
    if (rc == SL_OK && !f->auto_ack)
        return SL_OK;
    sl_batch_settle_rest(&t->batch, rc == SL_OK ? SL_SENT : SL_RELEASED, SL_NONE);
    sl_rc settled =
        t->claim->ops->settle(t->claim, &t->batch, &lost, rc == SL_OK ? err : &ignored);
    return rc != SL_OK ? rc : settled;
}

static sl_rc take_as_node(taker *t, sl_err *err)
{
    sl_err ignored;
    sl_rc rc = join(t, err);
    if (rc != SL_OK)
        return rc;
    rc = take_and_print(t, err);
    if (rc == SL_OK)
        rc = sl_wake_disarm(&t->wake, t->db, err);
    (void)!sl_nodes_leave(t->db, t->me.session, &ignored); /* else it is forgotten in time */
    return rc;
}

static sl_rc take_by(const sl_claim_ops *strategy, const sl_claim_conf *conf, sl_db *db,
                     const sl_cli *cli, const char *node, sl_err *err)
{
    taker t = { .cli = cli,
                .db = db,
                .me = {
                    .node = node, .strategy = strategy->name, .assign = "", .workers = 1 } };
    sl_batch_init(&t.batch);
    sl_rc rc = sl_claim_open(&t.claim, strategy, db, conf, err);
    if (rc == SL_OK)
        rc = take_as_node(&t, err);
    if (t.claim)
        t.claim->ops->close(t.claim);
    sl_batch_fini(&t.batch);
    return rc;
}

/* ---- The command ---- */

static int check_use(sl_cli *cli, receipts *given)
{
    const pull_flags *f = cli->own;
    int modes = f->ack + f->retry + f->bury;
    if (modes > 1 || (modes && f->auto_ack))
        return sl_cli_usage(cli, "one of --ack, --retry, --bury and --auto-ack at a time");
    if (modes)
        return read_receipts(cli, given);
    if (cli->argc > 0)
        return sl_cli_usage(cli, "what to do with '%.60s'?\nhint: --ack, --retry or --bury",
                            cli->argv[0]);
    return SL_EXIT_OK;
}

static sl_rc pull(sl_cli *cli, const sl_claim_ops *strategy, receipts *r, sl_err *err)
{
    sl_err ignored;
    sl_cli_db d = { 0 };
    sl_claim_conf conf;
    char *node = sl_conf_node(&cli->settings);

    sl_conf_claim(&conf, &cli->settings, node);
    conf.hold = SL_HOLD_LEASE;
    sl_rc rc = sl_cli_open(&d, cli, false, err);
    if (rc == SL_OK)
        rc = r->ordered.count + r->plain.count ? settle_receipts(&conf, d.db, r, cli->own, err)
                                               : take_by(strategy, &conf, d.db, cli, node, err);
    if (rc == SL_OK &&
        conf.keep) /* there may be no node that does it; else it is the next one's */
        (void)!sl_sent_purge_some(d.db, &cli->settings, &ignored);
    sl_cli_close(&d);
    free(node);
    return rc;
}

static int run(sl_cli *cli)
{
    sl_err err = { 0 };
    receipts r;
    sl_batch_init(&r.ordered);
    sl_batch_init(&r.plain);
    int status = check_use(cli, &r);
    const sl_claim_ops *strategy = sl_conf_pull_strategy(&cli->settings, &err);
    if (status == SL_EXIT_OK && !strategy)
        status = sl_cli_fail(cli, SL_EXIT_USAGE, &err);
    if (status == SL_EXIT_OK && pull(cli, strategy, &r, &err) != SL_OK)
        status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    sl_batch_fini(&r.ordered);
    sl_batch_fini(&r.plain);
    return status;
}

const sl_cmd sl_cmd_pull = {
    .name = "pull",
    .summary = "hand messages to a script, then ack",
    .synopsis = "sluice pull [--batch N] [--wait TIME] [--lease TIME] [--auto-ack]\n"
                "sluice pull --ack | --retry [--delay TIME] | --bury RECEIPT... | -",
    .details = "Without receipts: takes up to --batch messages, prints them as JSON lines, "
               "each with a "
               "\"receipt\", and leaves them leased to you. Then say what became of them, by "
               "receipt: --ack, "
               "--retry or --bury. What you never settle is delivered again when its lease has "
               "ended.\n"
               "\n"
               "Examples:\n"
               "  sluice pull --batch 1 --wait 10s\n"
               "  sluice pull --ack 12:7+ 13:7.\n"
               "  sluice pull | while read -r line; do handle \"$line\" && jq -r .receipt "
               "<<<\"$line\"; done |\n"
               "    sluice pull --ack -\n",
    .groups = SL_FOR_DB | SL_FOR_PULL,
    .opts = flags,
    .own_bytes = sizeof(pull_flags),
    .run = run,
};
