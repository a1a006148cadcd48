/* SPDX-License-Identifier: Apache-2.0 */
/* sl_run: a crew whose sink is the caller's handler. */
#include "core/mem.h"
#include "lib/conf.h"
#include "lib/crew.h"

#include <errno.h>

struct sl_reply {
    char reason[256];
    int64_t delay_ms; /* -1: the growing default */
};

struct sl_runner {
    const sl_conf *conf; /* the caller's; outlives us */
    sl_handler fn;
    void *ctx;
    sl_stop stop;
    sl_log log;
};

/* ---- The handler as a sink ---- */

typedef struct handler_sink {
    sl_sink base;
    const sl_runner *runner;
} handler_sink;

void sl_reply_reason(sl_reply *reply, const char *reason)
{
    snprintf(reply->reason, sizeof reply->reason, "%s", reason ? reason : "");
}

void sl_reply_delay(sl_reply *reply, int64_t delay_ms)
{
    reply->delay_ms = delay_ms;
}

static void handler_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    const sl_runner *r = ((handler_sink *)s)->runner;
    sl_reply reply = { .delay_ms = -1 };
    sl_verdict v = r->fn(r->ctx, m, &reply);
    if (v != SL_SENT && v != SL_RETRY && v != SL_DEAD && v != SL_RELEASED)
        v = SL_UNKNOWN;
    if (v == SL_RELEASED && !*reply.reason)
        sl_reply_reason(&reply, "the handler is out of order");
    m->buried = v == SL_DEAD;
    if (v == SL_RETRY && reply.delay_ms >= 0)
        m->delay_ns = sl_conf_ns_of_ms(reply.delay_ms);
    sl_msg_settle(b, m, v, *reply.reason ? sl_str_of(reply.reason) : SL_NONE);
}

static void handler_poll(sl_sink *s, int64_t timeout_ns)
{
    (void)s;
    (void)timeout_ns;
}

static void handler_recall(sl_sink *s)
{
    (void)s; /* submit has settled everything */
}

static void handler_close(sl_sink *s)
{
    free(s);
}

static const sl_sink_ops handler_ops = {
    .scheme = "handler",
    .example = "",
    .in_order = true, /* each has its verdict when submit returns */
    .submit = handler_submit,
    .poll = handler_poll,
    .recall = handler_recall,
    .close = handler_close,
};

static sl_rc make_handler(void *runner, sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    (void)conf;
    (void)err;
    handler_sink *h = sl_alloc(sizeof *h);
    h->base.ops = &handler_ops;
    h->runner = runner;
    *out = &h->base;
    return SL_OK;
}

/* ---- The public calls ---- */

sl_rc sl_run_open(sl_runner **out, const sl_conf *conf, sl_handler fn, void *ctx, sl_err *err)
{
    sl_rc rc = sl_settings_check(&conf->settings, err);
    if (rc != SL_OK)
        return rc;
    sl_runner *r = sl_alloc(sizeof *r);
    r->conf = conf;
    r->fn = fn;
    r->ctx = ctx;
    if (!sl_stop_init(&r->stop)) {
        free(r);
        return sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    }
    sl_log_init(&r->log, sl_conf_log_write, (void *)(uintptr_t)conf);
    *out = r;
    return SL_OK;
}

sl_rc sl_run(sl_runner *r, sl_err *err)
{
    sl_crew *crew;
    sl_rc rc = sl_crew_start(&crew, &r->conf->settings, make_handler, r, &r->stop, &r->log,
                             r->stop.fd_soon, err);
    if (rc == SL_STOPPED)
        return SL_OK;
    if (rc != SL_OK)
        return rc;
    rc = sl_crew_wait(crew, err);
    sl_crew_free(crew);
    return rc;
}

void sl_run_stop(sl_runner *r)
{
    sl_stop_ask(&r->stop, SL_STOP_SOON);
}

void sl_run_close(sl_runner *r)
{
    if (!r)
        return;
    sl_stop_fini(&r->stop);
    sl_log_fini(&r->log);
    free(r);
}
