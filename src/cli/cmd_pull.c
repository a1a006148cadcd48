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
#include "format/format.h"
#include "lib/conf.h"

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

static bool add_receipt(sl_batch *b, const char *text)
{
    int64_t id, epoch;
    int end = 0;
    if (sscanf(text, "%" SCNd64 ":%" SCNd64 "%n", &id, &epoch, &end) != 2 || text[end] != '\0')
        return false;
    sl_msg *m = sl_batch_add(b);
    m->id = id;
    m->epoch = epoch;
    m->attempt = 1;
    return true;
}

/* Receipts as arguments, or one a line on standard input. */
static int read_receipts(sl_cli *cli, sl_batch *b)
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
    return b->count ? SL_EXIT_OK
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

static sl_rc settle_receipts(sl_claim *claim, sl_batch *b, const pull_flags *f, sl_err *err)
{
    size_t lost = 0;
    judge(b, f);
    sl_rc rc = claim->ops->settle(claim, b, &lost, err);
    if (rc == SL_OK && lost > 0)
        return sl_fail(
            err, SL_REFUSED,
            "%zu of %zu messages are no longer yours: their lease ended and someone else "
            "took them, or they were settled before; the others are settled",
            lost, b->count);
    return rc;
}

/* ---- Taking ---- */

static sl_rc take(sl_claim *claim, sl_batch *b, const sl_cli *cli, sl_err *err)
{
    const pull_flags *f = cli->own;
    int64_t until_ns = sl_now_ns() + f->wait_ns;
    for (unsigned idle = 1;; idle++) {
        sl_rc rc = claim->ops->take(claim, b, cli->settings.batch, err);
        int64_t left_ns = until_ns - sl_now_ns();
        if (rc != SL_OK || b->count > 0 || left_ns <= 0)
            return rc;
        int64_t pause_ns = sl_backoff_ns(idle, 5 * SL_MS, cli->settings.poll_ns);
        pause_ns = pause_ns < left_ns ? pause_ns : left_ns;
        nanosleep(&(struct timespec){ pause_ns / SL_SEC, pause_ns % SL_SEC }, NULL);
    }
}

static sl_rc print_lines(const sl_batch *b, const char *worker, sl_err *err)
{
    sl_buf out = { 0 };
    for (size_t i = 0; i < b->count; i++) {
        char extra[80];
        snprintf(extra, sizeof extra, ",\"receipt\":\"%" PRId64 ":%" PRId64 "\"", b->msgs[i].id,
                 b->msgs[i].epoch);
        sl_format_line(&out, &b->msgs[i], worker, extra);
    }
    fwrite(sl_buf_text(&out), 1, out.n, stdout);
    sl_buf_fini(&out);
    if (fflush(stdout) != 0)
        return sl_fail(err, SL_OPERATOR, "cannot write to standard output: %s",
                       strerror(errno));
    return SL_OK;
}

static sl_rc take_and_print(sl_claim *claim, sl_batch *b, const sl_cli *cli, const char *worker,
                            sl_err *err)
{
    const pull_flags *f = cli->own;
    sl_err ignored;
    size_t lost;
    sl_rc rc = take(claim, b, cli, err);
    if (rc != SL_OK)
        return rc;
    rc = print_lines(b, worker, err);
    if (rc == SL_OK && !f->auto_ack)
        return SL_OK;
    sl_batch_settle_rest(b, rc == SL_OK ? SL_SENT : SL_RELEASED, SL_NONE);
    sl_rc settled = claim->ops->settle(claim, b, &lost, rc == SL_OK ? err : &ignored);
    return rc != SL_OK ? rc : settled;
}

/* ---- The command ---- */

static int check_use(sl_cli *cli, sl_batch *receipts)
{
    const pull_flags *f = cli->own;
    int modes = f->ack + f->retry + f->bury;
    if (modes > 1 || (modes && f->auto_ack))
        return sl_cli_usage(cli, "one of --ack, --retry, --bury and --auto-ack at a time");
    if (modes)
        return read_receipts(cli, receipts);
    if (cli->argc > 0)
        return sl_cli_usage(cli, "what to do with '%.60s'?\nhint: --ack, --retry or --bury",
                            cli->argv[0]);
    return SL_EXIT_OK;
}

static sl_rc pull(sl_cli *cli, sl_batch *b, sl_err *err)
{
    const pull_flags *f = cli->own;
    sl_cli_db d = { 0 };
    sl_claim_conf conf;
    sl_claim *claim = NULL;
    char *node = sl_conf_node(&cli->settings);

    sl_conf_claim(&conf, &cli->settings, node);
    conf.hold = SL_HOLD_LEASE;
    sl_rc rc = sl_cli_open(&d, cli, false, err);
    if (rc == SL_OK)
        rc = sl_claim_named(cli->settings.strategy)->open(&claim, d.db, &conf, err);
    if (rc == SL_OK)
        rc = b->count ? settle_receipts(claim, b, f, err)
                      : take_and_print(claim, b, cli, node, err);
    if (claim)
        claim->ops->close(claim);
    sl_cli_close(&d);
    free(node);
    return rc;
}

static int run(sl_cli *cli)
{
    sl_err err = { 0 };
    sl_batch b;
    sl_batch_init(&b);
    int status = check_use(cli, &b);
    if (status == SL_EXIT_OK && pull(cli, &b, &err) != SL_OK)
        status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    sl_batch_fini(&b);
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
               "  sluice pull --ack 12:1 13:1\n"
               "  sluice pull | while read -r line; do handle \"$line\" && jq -r .receipt "
               "<<<\"$line\"; done |\n"
               "    sluice pull --ack -\n",
    .groups = SL_FOR_DB | SL_FOR_PULL,
    .opts = flags,
    .own_bytes = sizeof(pull_flags),
    .run = run,
};
