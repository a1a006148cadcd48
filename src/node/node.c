/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include "core/mem.h"
#include "db/db.h"
#include "lib/crew.h"
#include "lib/settings_routes.h"
#include "sink/sink.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

typedef struct node {
    const sl_node_conf *conf;
    sl_log *log;
    int signals; /* a signalfd: no handler, nothing asynchronous */
    sl_stop stop;
    sl_crew *crew;
    bool reload; /* the crew is stopped to make room for another */
    sl_settings next;
} node;

static sl_rc make_sink(void *ctx, sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    (void)ctx;
    return sl_sink_open(out, conf, err);
}

/* ---- Reload ---- */

static bool same_value(const sl_opt *o, const sl_settings *a, const sl_settings *b,
                       sl_buf *a_text)
{
    sl_buf b_text = { 0 };
    sl_buf_reset(a_text);
    sl_opt_show(o, a, true, a_text);
    sl_opt_show(o, b, true, &b_text);
    bool same = !strcmp(sl_buf_text(a_text), sl_buf_text(&b_text));
    sl_buf_fini(&b_text);
    return same;
}

/* Keeps the old value of what cannot change while running, and names it. */
static void keep_fixed(node *n)
{
    sl_buf was = { 0 };
    sl_buf kept = { 0 };
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        if ((o->flags & SL_OPT_RELOAD) || same_value(o, n->conf->settings, &n->next, &was))
            continue;
        sl_err ignored;
        sl_buf_printf(&kept, "%s%s", kept.n ? " " : "", o->name);
        (void)!sl_opt_set(o, &n->next, sl_buf_text(&was), &ignored);
    }
    if (!sl_routes_same(n->conf->settings, &n->next)) {
        sl_buf_printf(&kept, "%sroutes", kept.n ? " " : "");
        sl_routes_copy(&n->next, n->conf->settings);
    }
    if (kept.n)
        sl_log_line(n->log, SL_LOG_WARN, "settings that change only with a restart", "settings",
                    sl_buf_text(&kept), NULL);
    sl_buf_fini(&was);
    sl_buf_fini(&kept);
}

static void begin_reload(node *n)
{
    sl_err err = { 0 };
    sl_settings_fini(&n->next);
    sl_settings_init(&n->next);
    if (n->conf->reload(n->conf->ctx, &n->next, &err) != SL_OK) {
        sl_log_line(n->log, SL_LOG_ERROR, "reload refused, going on as before", "error",
                    err.text, NULL);
        return;
    }
    keep_fixed(n);
    n->reload = true;
    sl_stop_ask(&n->stop, SL_STOP_SOON);
}

static void end_reload(node *n)
{
    sl_settings was = *n->conf->settings;
    *n->conf->settings = n->next;
    n->next = was;
    n->log->level = (sl_log_level)n->conf->settings->log_level;
    n->log->json = n->conf->settings->log_format == 1;
    sl_log_line(n->log, SL_LOG_INFO, "settings reloaded", NULL);
}

/* ---- Signals ---- */

static sl_rc catch_signals(node *n, sl_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set,
                    NULL); /* before any thread is made, so that all inherit it */
    n->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return n->signals >= 0
               ? SL_OK
               : sl_fail(err, SL_AGAIN, "cannot watch signals: %s", strerror(errno));
}

static void on_signal(node *n, uint32_t signo)
{
    if (signo == SIGHUP) {
        if (sl_stop_level_of(&n->stop) == SL_GO || n->reload)
            begin_reload(n); /* the last one counts */
        return;
    }
    bool again = sl_stop_level_of(&n->stop) != SL_GO && !n->reload;
    n->reload = false;
    sl_log_line(n->log, SL_LOG_INFO, again ? "stopping now" : "stopping after this turn", NULL);
    sl_stop_ask(&n->stop, again ? SL_STOP_NOW : SL_STOP_SOON);
}

static void read_signals(node *n)
{
    struct signalfd_siginfo info;
    while (read(n->signals, &info, sizeof info) == (ssize_t)sizeof info)
        on_signal(n, info.ssi_signo);
}

/* Until the last worker has ended. */
static void watch(node *n)
{
    struct pollfd fds[] = { { .fd = n->signals, .events = POLLIN },
                            { .fd = sl_crew_ended_fd(n->crew), .events = POLLIN } };
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            abort();
        read_signals(n);
    }
}

/* ---- The node ---- */

static void log_route(const node *n, size_t i)
{
    static const char *const shown[] = { "topics", "sink", "delivery", "on_failure" };
    enum { SHOWN = 4 };
    sl_route_conf c = sl_route_of(n->conf->settings, i);
    sl_buf texts[SHOWN] = { { 0 } };
    for (size_t k = 0; k < SHOWN; k++) {
        sl_opt field = sl_route_field(sl_opt_find(sl_route_table, shown[k]));
        sl_opt_show(&field, &c, false, &texts[k]);
    }
    sl_log_line(n->log, SL_LOG_INFO, "route", shown[0], texts[0].p, shown[1], texts[1].p,
                shown[2], texts[2].p, shown[3], texts[3].p, NULL);
    for (size_t k = 0; k < SHOWN; k++)
        sl_buf_fini(&texts[k]);
}

static void log_start(const node *n)
{
    const sl_settings *s = n->conf->settings;
    sl_buf db = { 0 };
    sl_buf sink = { 0 };
    char workers[32];
    char routes[32];
    sl_opt_mask(s->db, &db);
    if (s->sink)
        sl_opt_mask(s->sink, &sink);
    snprintf(routes, sizeof routes, "%zu", s->route_count);
    snprintf(workers, sizeof workers, "%lld", (long long)s->workers);
    sl_log_line(n->log, SL_LOG_INFO, "node started", "version", sl_version(), "db",
                sl_buf_text(&db), "table", s->table, s->route_count ? "routes" : "sink",
                s->route_count ? routes : sl_buf_text(&sink), "strategy", s->strategy,
                "workers", workers, NULL);
    for (size_t i = 0; i < s->route_count; i++)
        log_route(n, i);
    sl_buf_fini(&db);
    sl_buf_fini(&sink);
}

static void log_end(const node *n)
{
    sl_counts c;
    char sent[24], retried[24], dead[24], unknown[24], lost[24], statements[24];
    sl_crew_counts(n->crew, &c);
    snprintf(sent, sizeof sent, "%llu", (unsigned long long)c.sent);
    snprintf(retried, sizeof retried, "%llu", (unsigned long long)c.retried);
    snprintf(dead, sizeof dead, "%llu", (unsigned long long)c.dead);
    snprintf(unknown, sizeof unknown, "%llu", (unsigned long long)c.unknown);
    snprintf(lost, sizeof lost, "%llu", (unsigned long long)c.lost);
    snprintf(statements, sizeof statements, "%llu", (unsigned long long)sl_db_statements());
    sl_log_line(n->log, SL_LOG_INFO, "workers ended", "sent", sent, "retried", retried, "dead",
                dead, "unknown", unknown, "lost_leases", lost, "statements", statements, NULL);
}

/* A signal during the rehearsal ends it: TERM and INT the node with it, HUP begins it anew. */
static sl_rc start_crew(node *n, bool first, sl_err *err)
{
    sl_rc rc;
    do {
        rc = sl_crew_start(&n->crew, n->conf->settings, make_sink, NULL, &n->stop, n->log,
                           first ? n->signals : -1, err);
        if (rc == SL_STOPPED)
            read_signals(n);
    } while (rc == SL_STOPPED && sl_stop_level_of(&n->stop) == SL_GO); /* HUP, refused */
    return rc;
}

/* One crew from start to end. */
static sl_rc run_crew(node *n, bool first, sl_err *err)
{
    n->reload = false;
    if (!sl_stop_init(&n->stop))
        return sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    sl_rc rc = start_crew(n, first, err);
    if (rc == SL_OK) {
        log_start(n);
        watch(n);
        rc = sl_crew_wait(n->crew, err);
        log_end(n);
        sl_crew_free(n->crew);
    }
    sl_stop_fini(&n->stop);
    return rc;
}

sl_rc sl_node_run(const sl_node_conf *conf, sl_err *err)
{
    node n = { .conf = conf, .log = conf->log };
    sl_settings_init(&n.next);
    sl_rc rc = catch_signals(&n, err);
    for (bool first = true; rc == SL_OK; first = false) {
        rc = run_crew(&n, first, err);
        if (rc == SL_STOPPED)
            rc = SL_OK; /* by a signal, before the crew was there */
        if (rc != SL_OK || !n.reload)
            break;
        end_reload(&n);
    }
    if (n.signals >= 0)
        close(n.signals);
    sl_settings_fini(&n.next);
    return rc;
}
