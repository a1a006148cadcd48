/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/crew.h"

#include "core/clock.h"
#include "core/mem.h"
#include "lib/conf.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

/* A restarted database is found again within seconds, and not hammered meanwhile. */
#define RECONNECT_BASE_NS (100 * SL_MS)
#define RECONNECT_MAX_NS (3 * SL_SEC)
#define IDLE_BASE_NS (5 * SL_MS)

typedef struct worker {
    sl_crew *crew;
    pthread_t thread;
    char *name; /* "node/3" */
    sl_counts counts;
    unsigned failures; /* in a row */
} worker;

struct sl_crew {
    const sl_settings *settings;
    sl_names names;
    sl_sink_maker make;
    void *make_ctx;
    sl_stop *stop;
    sl_log *log;
    pthread_mutex_t lock; /* of failed */
    sl_err failed;        /* the first failure that stopped the crew; rc SL_OK: none */
    sl_stop ended;        /* asked for by the last worker that ends */
    _Atomic size_t alive;
    size_t started;
    size_t count;
    worker workers[];
};

/* ---- One worker's open handles ---- */

typedef struct session {
    sl_db *db;
    sl_relay relay;
} session;

static void session_close(session *s)
{
    if (s->relay.claim)
        s->relay.claim->ops->close(s->relay.claim);
    if (s->relay.sink)
        s->relay.sink->ops->close(s->relay.sink);
    sl_db_close(s->db);
    sl_batch_fini(&s->relay.batch);
}

static sl_rc session_open(session *s, worker *w, int wake_fd, sl_err *err)
{
    sl_crew *crew = w->crew;
    const sl_settings *set = crew->settings;
    sl_claim_conf conf;

    *s = (session){ .relay = { .stop = crew->stop,
                               .counts = &w->counts,
                               .batch_max = set->batch,
                               .send_max_ns = set->lease_ns } };
    sl_batch_init(&s->relay.batch);
    sl_conf_claim(&conf, set, w->name);
    const sl_claim_ops *strategy = sl_claim_named(set->strategy);
    assert(strategy); /* sl_settings_check */
    sl_rc rc = sl_conf_open_db(&s->db, set, &crew->names, false, wake_fd, err);
    if (rc == SL_OK)
        rc = strategy->open(&s->relay.claim, s->db, &conf, err);
    if (rc == SL_OK)
        rc = crew->make(crew->make_ctx, &s->relay.sink,
                        &(sl_sink_conf){ .url = set->sink, .worker = w->name }, err);
    if (rc != SL_OK)
        session_close(s);
    return rc;
}

/* ---- The loop ---- */

/* Turns until told to stop, until nothing is left (drain), or until something fails. An idle
 * worker looks again after growing pauses, up to `poll`. */
static sl_rc turn_until(session *s, worker *w, sl_err *err)
{
    const sl_settings *set = w->crew->settings;
    unsigned idle = 0;
    while (sl_stop_level_of(w->crew->stop) == SL_GO) {
        sl_rc rc = sl_relay_turn(&s->relay, err);
        if (rc != SL_OK)
            return rc;
        w->failures = 0;
        if (s->relay.batch.count > 0)
            idle = 0;
        else if (set->drain)
            return SL_OK;
        else if (sl_stop_sleep(w->crew->stop,
                               sl_backoff_ns(++idle, IDLE_BASE_NS, set->poll_ns)))
            return SL_OK;
    }
    return SL_OK;
}

static sl_rc work(worker *w, sl_err *err)
{
    session s;
    sl_rc rc = session_open(&s, w, w->crew->stop->fd_now, err);
    if (rc != SL_OK)
        return rc;
    if (w->failures)
        sl_log_line(w->crew->log, SL_LOG_INFO, "turns go on", "worker", w->name, NULL);
    rc = turn_until(&s, w, err);
    session_close(&s);
    return rc;
}

static void stop_crew(worker *w, const sl_err *err)
{
    sl_crew *crew = w->crew;
    pthread_mutex_lock(&crew->lock);
    if (crew->failed.rc == SL_OK)
        crew->failed = *err;
    pthread_mutex_unlock(&crew->lock);
    sl_stop_ask(crew->stop, SL_STOP_SOON);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    sl_crew *crew = w->crew;
    for (;;) {
        sl_err err = { 0 };
        sl_rc rc = work(w, &err);
        if (rc == SL_OK || sl_stop_level_of(crew->stop) != SL_GO)
            break;
        if (rc != SL_AGAIN) {
            stop_crew(w, &err);
            break;
        }
        w->counts.reconnects++;
        sl_log_line(crew->log, SL_LOG_WARN, "turn failed, trying again", "worker", w->name,
                    "error", err.text, NULL);
        if (sl_stop_sleep(crew->stop,
                          sl_backoff_ns(++w->failures, RECONNECT_BASE_NS, RECONNECT_MAX_NS)))
            break;
    }
    if (--crew->alive == 0)
        sl_stop_ask(&crew->ended, SL_STOP_SOON);
    return NULL;
}

/* ---- The crew ---- */

static sl_crew *crew_new(const sl_settings *settings)
{
    size_t count = (size_t)settings->workers;
    sl_crew *crew = sl_alloc(sizeof *crew + count * sizeof crew->workers[0]);
    char *node = sl_conf_node(settings);
    crew->settings = settings;
    crew->count = count;
    pthread_mutex_init(&crew->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        crew->workers[i].crew = crew;
        crew->workers[i].name = sl_asprintf("%s/%zu", node, i + 1);
    }
    free(node);
    return crew;
}

static sl_rc rehearse(sl_crew *crew, int wake_fd, sl_err *err)
{
    session s;
    sl_rc rc = session_open(&s, &crew->workers[0], wake_fd, err);
    if (rc == SL_OK)
        session_close(&s);
    return rc;
}

static sl_rc start_threads(sl_crew *crew, sl_err *err)
{
    crew->alive = crew->count;
    for (size_t i = 0; i < crew->count; i++) {
        int e = pthread_create(&crew->workers[i].thread, NULL, worker_main, &crew->workers[i]);
        if (e != 0) {
            sl_stop_ask(crew->stop, SL_STOP_NOW);
            return sl_fail(err, SL_AGAIN, "cannot start worker thread %zu: %s", i + 1,
                           strerror(e));
        }
        crew->started++;
    }
    return SL_OK;
}

sl_rc sl_crew_start(sl_crew **out, const sl_settings *settings, sl_sink_maker make,
                    void *make_ctx, sl_stop *stop, sl_log *log, int rehearse_fd, sl_err *err)
{
    sl_crew *crew = crew_new(settings);
    crew->make = make;
    crew->make_ctx = make_ctx;
    crew->stop = stop;
    crew->log = log;
    sl_rc rc = sl_stop_init(&crew->ended)
                   ? sl_conf_names(&crew->names, settings, err)
                   : sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    if (rc == SL_OK && rehearse_fd >= 0)
        rc = rehearse(crew, rehearse_fd, err);
    if (rc == SL_OK)
        rc = start_threads(crew, err);
    if (rc == SL_OK)
        *out = crew;
    else
        sl_crew_free(crew);
    return rc;
}

sl_rc sl_crew_wait(sl_crew *crew, sl_err *err)
{
    for (size_t i = 0; i < crew->started; i++)
        pthread_join(crew->workers[i].thread, NULL);
    crew->started = 0;
    if (crew->failed.rc == SL_OK)
        return SL_OK;
    *err = crew->failed;
    return err->rc;
}

void sl_crew_free(sl_crew *crew)
{
    if (!crew)
        return;
    sl_err ignored;
    if (crew->started > 0)
        sl_stop_ask(crew->stop, SL_STOP_NOW);
    (void)!sl_crew_wait(crew, &ignored);
    for (size_t i = 0; i < crew->count; i++)
        free(crew->workers[i].name);
    sl_names_fini(&crew->names);
    sl_stop_fini(&crew->ended);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

void sl_crew_counts(const sl_crew *crew, sl_counts *out)
{
    *out = (sl_counts){ 0 };
    for (size_t i = 0; i < crew->count; i++) {
        const sl_counts *c = &crew->workers[i].counts;
        out->taken += c->taken;
        out->sent += c->sent;
        out->retried += c->retried;
        out->dead += c->dead;
        out->unknown += c->unknown;
        out->released += c->released;
        out->lost += c->lost;
        out->turns += c->turns;
        out->reconnects += c->reconnects;
    }
}

int sl_crew_ended_fd(const sl_crew *crew)
{
    return crew->ended.fd_soon;
}
