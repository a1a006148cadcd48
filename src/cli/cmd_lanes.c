/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice lanes`: how many there are and who owns them; and another number of them while nodes run
 * (db/relane.h). */
#include "cli/cli.h"
#include "cli/open.h"
#include "cli/table.h"
#include "cli/who.h"
#include "core/clock.h"
#include "db/relane.h"
#include "db/schema.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

typedef struct lanes_flags {
    int64_t set; /* 0: only show */
    int64_t wait_ns;
} lanes_flags;

static const sl_opt flags[] = {
    { "set", SL_OPT_INT, offsetof(lanes_flags, set), NULL, 1, 32768, SL_OPT_CLI_ONLY, "N",
      "Change the number of lanes to N." },
    { "wait", SL_OPT_TIME, offsetof(lanes_flags, wait_ns), "60s", SL_SEC, 86400 * SL_SEC,
      SL_OPT_CLI_ONLY, "TIME",
      "With --set: wait this long for the nodes to give up their lanes, then leave all as it "
      "was." },
    { .name = NULL },
};

/* If this command dies, the nodes go on after so long; while it lives, it renews the pause early. */
#define PAUSE_NS (30 * SL_SEC)
#define RENEW_NS (5 * SL_SEC)
enum { LOOK_MS = 100, RANGES_ROOM = 40 };

/* ---- Showing ---- */

static void print_lanes(const sl_cli *cli, const sl_who *w)
{
    sl_table t = { 0 };
    sl_table_begin(&t, "node|>lanes|");
    for (size_t i = 0; i <= w->nodes.count; i++) {
        bool node = i < w->nodes.count;
        int64_t session = node ? w->nodes.v[i].session : 0;
        sl_buf ranges = { 0 };
        sl_who_ranges(w, session, RANGES_ROOM, &ranges);
        sl_table_cell(&t, "%s", node ? w->nodes.v[i].node : "(free)");
        sl_table_cell(&t, "%zu", sl_who_owns(w, session));
        sl_table_cell(&t, "%s", sl_buf_text(&ranges));
        sl_buf_fini(&ranges);
    }
    printf("table %s has %zu lanes\n\n", cli->settings.table, w->lanes);
    sl_table_print(&t, stdout);
    sl_table_fini(&t);
}

static sl_rc show(const sl_cli *cli, sl_db *db, sl_err *err)
{
    sl_who w = { 0 };
    sl_rc rc = sl_who_read_lanes(&w, db, err);
    if (rc == SL_OK)
        print_lanes(cli, &w);
    sl_who_fini(&w);
    return rc;
}

/* ---- Changing ---- */

typedef struct change {
    sl_cli_db *d;
    int64_t from, to;
    int64_t begun_ns, wait_ns, renew_ns;
    sl_who who;
    sl_err busy; /* why the table could not be locked the last time, if that was so */
} change;

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
    interrupted = signo;
}

/* The first one ends the waiting and lifts the pause; another one kills. */
static void catch_signals(void)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* "n1 (12 lanes), n2 (3 lanes)": those that own some. */
static size_t put_owners(const sl_who *w, sl_buf *out)
{
    size_t sum = 0;
    for (size_t i = 0; i < w->nodes.count; i++) {
        size_t n = sl_who_owns(w, w->nodes.v[i].session);
        if (n)
            sl_buf_printf(out, "%snode '%.80s' (%zu lane%s)", sum ? ", " : "",
                          w->nodes.v[i].node, n, n > 1 ? "s" : "");
        sum += n;
    }
    return sum;
}

static void draw(const change *c)
{
    sl_buf owners = { 0 };
    if (!isatty(STDERR_FILENO))
        return;
    size_t n = put_owners(&c->who, &owners);
    fprintf(stderr, "\r\033[Kwaiting for %.150s, %.0f s",
            n ? sl_buf_text(&owners) : "the table", (double)(sl_now_ns() - c->begun_ns) / 1e9);
    fflush(stderr);
    sl_buf_fini(&owners);
}

static void wipe(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static sl_rc give_up(const change *c, sl_err *err)
{
    sl_buf owners = { 0 };
    sl_rc rc;
    if (interrupted)
        rc = sl_fail(err, SL_OPERATOR, "interrupted; the table still has %lld lanes",
                     (long long)c->from);
    else if (put_owners(&c->who, &owners))
        rc = sl_fail(
            err, SL_OPERATOR,
            "still in use after %lld s: %.600s; the table still has %lld lanes\nhint: what "
            "is in flight must end first; wait longer with --wait, or stop the node",
            (long long)(c->wait_ns / SL_SEC), sl_buf_text(&owners), (long long)c->from);
    else
        rc = sl_fail(err, SL_OPERATOR,
                     "the table could not be locked within %lld s: %.*s\nhint: end the "
                     "transactions that use it, or wait longer with --wait",
                     (long long)(c->wait_ns / SL_SEC), (int)strcspn(c->busy.text, "\n"),
                     c->busy.text);
    sl_buf_fini(&owners);
    return rc;
}

/* Nodes that are dead own nothing, once they are pruned. That writes: only when there is one. */
static sl_rc prune(change *c, sl_err *err)
{
    size_t pruned = 0;
    sl_rc rc = SL_OK;
    if (sl_who_alive(&c->who) < c->who.nodes.count)
        rc = sl_nodes_prune(c->d->db, &pruned, err);
    return rc == SL_OK && pruned ? sl_who_read_lanes(&c->who, c->d->db, err) : rc;
}

/* Who still owns something? */
static sl_rc look(change *c, sl_err *err)
{
    sl_rc rc = SL_OK;
    if (sl_now_ns() >= c->renew_ns) {
        rc = sl_relane_pause(c->d->db, PAUSE_NS, err);
        c->renew_ns = sl_now_ns() + RENEW_NS;
    }
    if (rc == SL_OK)
        rc = sl_who_read_lanes(&c->who, c->d->db, err);
    return rc == SL_OK ? prune(c, err) : rc;
}

/* *done, or it is to be tried again. A lock that could not be had and a lost connection look alike:
 * the next look tells. */
static sl_rc try_now(change *c, bool *done, sl_err *err)
{
    bool owned = true;
    sl_rc rc = sl_relane(c->d->db, &c->d->names, c->to, &owned, err);
    *done = rc == SL_OK && !owned;
    if (rc != SL_AGAIN)
        return rc;
    c->busy = *err;
    c->renew_ns = 0;
    return SL_OK;
}

static sl_rc change_lanes(change *c, sl_err *err)
{
    bool done = false;
    sl_rc rc = SL_OK;
    c->begun_ns = sl_now_ns();
    while (rc == SL_OK && !done) {
        rc = look(c, err);
        if (rc == SL_OK && sl_who_owns(&c->who, 0) == c->who.lanes)
            rc = try_now(c, &done, err);
        if (rc != SL_OK || done)
            break;
        if (interrupted || sl_now_ns() - c->begun_ns >= c->wait_ns) {
            rc = give_up(c, err);
            break;
        }
        draw(c);
        poll(NULL, 0, LOOK_MS);
    }
    wipe();
    return rc;
}

static sl_rc set(const sl_cli *cli, sl_cli_db *d, sl_err *err)
{
    const lanes_flags *own = cli->own;
    sl_schema schema;
    sl_rc rc = sl_schema_read(d->db, &d->names, &schema, err);
    if (rc != SL_OK)
        return rc;
    if (schema.lanes == own->set)
        return sl_fail(err, SL_OPERATOR, "table '%s' has %lld lanes already",
                       cli->settings.table, (long long)own->set);
    change c = { .d = d, .from = schema.lanes, .to = own->set, .wait_ns = own->wait_ns };
    catch_signals();
    rc = change_lanes(&c, err);
    if (rc == SL_OK) {
        printf("table %s has %lld lanes now, %lld before\n", cli->settings.table,
               (long long)c.to, (long long)c.from);
    } else {
        sl_err ignored;
        (void)!sl_relane_pause(d->db, 0, &ignored); /* else it ends by itself */
    }
    sl_who_fini(&c.who);
    return rc;
}

static int run(sl_cli *cli)
{
    const lanes_flags *own = cli->own;
    sl_err err = { 0 };
    sl_cli_db d = { 0 };

    if (cli->argc > 0)
        return sl_cli_usage(cli, "lanes takes no argument '%s'\nhint: sluice lanes --set N",
                            cli->argv[0]);
    sl_rc rc = sl_cli_open(&d, cli, false, &err);
    if (rc == SL_OK)
        rc = own->set ? set(cli, &d, &err) : show(cli, d.db, &err);
    sl_cli_close(&d);
    return rc == SL_OK ? SL_EXIT_OK : sl_cli_fail(cli, sl_cli_status_of(&err), &err);
}

const sl_cmd sl_cmd_lanes = {
    .name = "lanes",
    .summary = "how many lanes there are, and how to have more or fewer",
    .synopsis = "sluice lanes [--db URL] [--table NAME]\n"
                "sluice lanes --set N [--wait TIME] [--db URL] [--table NAME]",
    .details =
        "Without --set: the number of lanes, and who owns how many.\n"
        "\n"
        "With --set the number changes while nodes run. First they are asked to pause: each "
        "finishes what it has in flight and gives up its lanes. A node that crashed is waited "
        "for until its lease ends. Then the table is changed, in one transaction, and the "
        "nodes "
        "go on with the new lanes. No message is lost, and no key is delivered by two nodes at "
        "once. If this command is killed, nothing has changed and the nodes go on within "
        "half a minute.\n"
        "\n"
        "Producers wait while the table is changed; in PostgreSQL that writes all of it anew, "
        "so "
        "do it while few messages wait. Indexes of your own on the column lane go with it. The "
        "owner of the table must do it.\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(lanes_flags),
    .run = run,
};
