/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/worker.h"

#include "core/clock.h"
#include "core/mem.h"
#include "lib/conf.h"
#include "lib/journaled.h"
#include "lib/keep_keys.h"
#include "lib/sent.h"
#include "lib/wake.h"

#include <errno.h>

#define WAKE_TEST_NS (2 * SL_SEC)
/* So long after a node has died messages are sent with care, at most. */
#define CARE_MAX_NS (30 * SL_SEC)

void sl_crew_fail(sl_crew *crew, const sl_err *err)
{
    pthread_mutex_lock(&crew->lock);
    if (crew->failed.rc == SL_OK)
        crew->failed = *err;
    pthread_mutex_unlock(&crew->lock);
    sl_stop_ask(crew->stop, SL_STOP_SOON);
}

/* ---- The node among others ---- */

static sl_rc member_open(void *ctx, sl_db **out, int wake_fd, sl_err *err)
{
    sl_crew *crew = ctx;
    return sl_conf_open_node(out, crew->settings, &crew->names, wake_fd, err);
}

static void member_counts(void *ctx, int64_t *sent, int64_t *failed)
{
    sl_counts c;
    sl_crew_counts(ctx, &c);
    *sent = (int64_t)c.sent;
    *failed = (int64_t)(c.retried + c.dead + c.unknown);
}

static void member_alarm(void *ctx)
{
    const sl_crew *crew = ctx;
    sl_care_alarm(crew->care);
}

static bool member_clean(void *ctx)
{
    const sl_crew *crew = ctx;
    return !crew->unclean;
}

static void member_failed(void *ctx, const sl_err *err)
{
    sl_crew_fail(ctx, err);
}

static sl_rc join(sl_crew *crew, int rehearse_fd, sl_err *err)
{
    int wake_fd;
    sl_member_conf conf;
    sl_conf_member(&conf, crew->settings, crew->node);
    conf.open = member_open;
    conf.counts = member_counts;
    conf.failed = member_failed;
    conf.alarm = member_alarm;
    conf.clean = member_clean;
    conf.places = (sl_places){ crew->places.ways, crew->places.texts, crew->places.count };
    conf.ctx = crew;
    conf.log = crew->log;
    conf.patient = rehearse_fd < 0;
    wake_fd = conf.patient ? crew->stop->fd_now : rehearse_fd;
    return sl_member_join(&crew->member, &conf, wake_fd, err);
}

/* ---- Waking ---- */

/* Notifications must arrive, and a pooler may keep them: else looking has to do. */
static sl_rc test_waking(sl_crew *crew, sl_err *err)
{
    sl_db *sleeper = NULL;
    sl_db *caller = NULL;
    sl_rc rc =
        sl_conf_open_node(&sleeper, crew->settings, &crew->names, crew->stop->fd_now, err);
    if (rc == SL_OK)
        rc = sl_conf_open_node(&caller, crew->settings, &crew->names, crew->stop->fd_now, err);
    if (rc == SL_OK)
        rc = sl_wake_test(sleeper, caller, WAKE_TEST_NS, &crew->notify, err);
    if (rc == SL_OK && !crew->notify)
        sl_log_line(crew->log, SL_LOG_WARN, "notifications do not arrive, polling instead",
                    "hint", "a pooler in transaction mode keeps them: name the server itself",
                    NULL);
    sl_db_close(sleeper);
    sl_db_close(caller);
    return rc;
}

/* ---- The journal ---- */

/* Before the node takes anything: what its earlier life had consumed is finished, or listed. */
static sl_rc open_journal(sl_crew *crew, int wake_fd, sl_err *err)
{
    sl_db *db = NULL;
    sl_reconciled done = { 0 };
    char counts[3][24];
    if (!crew->settings->journal)
        return SL_OK;
    sl_rc rc = sl_conf_open_node(&db, crew->settings, &crew->names, wake_fd, err);
    if (rc == SL_OK)
        rc = sl_journaled_open(&crew->journal, crew->settings, crew->node, db, &done, err);
    sl_db_close(db);
    if (rc != SL_OK || done.sent + done.back + done.unknown == 0)
        return rc;
    snprintf(counts[0], sizeof counts[0], "%zu", done.sent);
    snprintf(counts[1], sizeof counts[1], "%zu", done.back);
    snprintf(counts[2], sizeof counts[2], "%zu", done.unknown);
    sl_log_line(crew->log, SL_LOG_WARN, "what an earlier life had consumed is settled", "sent",
                counts[0], "back", counts[1], "unknown", counts[2], NULL);
    return SL_OK;
}

/* ---- The crew ---- */

static sl_crew *crew_new(const sl_settings *settings)
{
    size_t count = (size_t)settings->workers;
    sl_crew *crew = sl_alloc(sizeof *crew + count * sizeof crew->workers[0]);
    crew->node = sl_conf_node(settings);
    crew->settings = settings;
    crew->count = count;
    pthread_mutex_init(&crew->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        crew->workers[i].crew = crew;
        crew->workers[i].name = sl_asprintf("%s/%zu", crew->node, i + 1);
    }
    return crew;
}

/* ---- Chores ---- */

static int64_t written(void *ctx)
{
    int64_t sent, failed;
    member_counts(ctx, &sent, &failed);
    return sent + failed;
}

static sl_rc start_janitor(sl_crew *crew, sl_err *err)
{
    sl_janitor_conf conf = { .settings = crew->settings,
                             .names = &crew->names,
                             .log = crew->log };
    if (crew->settings->retention_ns > 0 || crew->kept)
        conf.chores[conf.count++] = sl_sent_chore(crew->settings);
    crew->vacuum = (sl_vacuum){ .written = written, .ctx = crew };
    conf.chores[conf.count++] = sl_vacuum_chore(&crew->vacuum);
    crew->rotate = (sl_rotate){ .written = written, .ctx = crew };
    conf.chores[conf.count++] = sl_rotate_chore(&crew->rotate);
    conf.chores[conf.count++] = sl_keep_keys_chore(crew->settings);
    /* Behind the vacuum there is less to pass by; and beside an old snapshot it may take longer than the server
     * allows, which ends the pass. */
    crew->below =
        (sl_below){ .written = written, .ctx = crew, .lanes = sl_member_lanes(crew->member) };
    if (sl_claim_named(crew->settings->strategy)->owns_lanes)
        conf.chores[conf.count++] = sl_below_chore(&crew->below);
    return sl_janitor_start(&crew->janitor, &conf, err);
}

static sl_rc start_threads(sl_crew *crew, sl_err *err)
{
    crew->alive = crew->count;
    for (size_t i = 0; i < crew->count; i++) {
        int e =
            pthread_create(&crew->workers[i].thread, NULL, sl_worker_main, &crew->workers[i]);
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
    crew->kept = rehearse_fd < 0; /* else the rehearsal looks */
    crew->idle = sl_idle_new(crew->count);
    crew->care = sl_care_new(CARE_MAX_NS);
    crew->unrouted = sl_unrouted_new();
    sl_routes_make(&crew->routes, settings);
    sl_fence_places_make(&crew->places, &crew->routes);
    sl_rc rc = crew->idle && sl_stop_init(&crew->ended)
                   ? sl_conf_names(&crew->names, settings, err)
                   : sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    if (rc == SL_OK && rehearse_fd >= 0)
        rc = sl_worker_rehearse(&crew->workers[0], rehearse_fd, err);
    if (rc == SL_OK)
        rc = open_journal(crew, rehearse_fd, err);
    if (rc == SL_OK)
        rc = join(crew, rehearse_fd, err);
    if (rc == SL_OK && settings->wake)
        rc = test_waking(crew, err);
    if (rc == SL_AGAIN && settings->wake && rehearse_fd < 0) {
        crew->notify = true; /* the database is away: it cannot be tested, and is waited for */
        rc = SL_OK;
    }
    if (rc == SL_OK)
        rc = start_janitor(crew, err);
    if (rc == SL_OK && crew->places.count)
        rc = sl_fencer_start(&crew->fencer,
                             &(sl_fencer_conf){ settings, &crew->names, &crew->routes, log },
                             err);
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
    sl_janitor_end(crew->janitor);
    crew->janitor = NULL;
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
    sl_below_fini(&crew->below);
    sl_fencer_end(crew->fencer);
    sl_member_leave(crew->member);
    sl_journal_close(crew->journal);
    sl_idle_free(crew->idle);
    sl_care_free(crew->care);
    sl_unrouted_free(crew->unrouted);
    sl_fence_places_fini(&crew->places);
    sl_routes_fini(&crew->routes);
    free(crew->node);
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
