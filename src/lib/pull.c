/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull: one batch at a time, leased, with the caller's verdicts written when asked to. A keeper
 * thread with a connection of its own renews the leases of the messages that have no written
 * verdict yet, so that the caller may take as long as it likes.
 *
 * The caller's thread owns everything but `held`, the list of leases to keep, and `refused`, why this
 * is no node any more, which it shares with the other threads under `lock`.
 */
#include "core/clock.h"
#include "core/mem.h"
#include "core/stop.h"
#include "lib/conf.h"
#include "lib/sent.h"
#include "lib/wake.h"

#include <errno.h>
#include <pthread.h>

typedef enum state { NONE, RECORDED, WRITTEN } state;

typedef struct leases {
    size_t n, cap;
    int64_t *ids, *epochs;
    uint64_t generation; /* grows with each change: the keeper must not judge an old list */
} leases;

struct sl_puller {
    const sl_conf *conf;
    sl_names names;
    char *node;
    sl_db *db;
    const sl_claim_ops *strategy;
    sl_claim *claim;
    sl_wake wake;
    sl_member *member;
    sl_batch batch;
    state *states; /* of each message */
    sl_verdict *verdicts;
    size_t room;

    pthread_t keeper;
    bool keeping;
    sl_janitor *janitor;
    sl_stop stop;
    sl_log log;
    pthread_mutex_t lock;
    leases held;
    sl_err refused; /* rc SL_OK: it is one */
};

/* ---- The keeper ---- */

static void keep_list(sl_puller *p)
{
    pthread_mutex_lock(&p->lock);
    leases *h = &p->held;
    if (h->cap < p->batch.count) {
        h->cap = p->batch.count;
        h->ids = sl_realloc(h->ids, h->cap * sizeof *h->ids);
        h->epochs = sl_realloc(h->epochs, h->cap * sizeof *h->epochs);
    }
    h->n = 0;
    for (size_t i = 0; i < p->batch.count; i++)
        if (p->states[i] != WRITTEN) {
            h->ids[h->n] = p->batch.msgs[i].id;
            h->epochs[h->n++] = p->batch.msgs[i].epoch;
        }
    h->generation++;
    pthread_mutex_unlock(&p->lock);
}

static void copy_list(sl_puller *p, leases *to)
{
    pthread_mutex_lock(&p->lock);
    const leases *h = &p->held;
    if (to->cap < h->n) {
        to->cap = h->n;
        to->ids = sl_realloc(to->ids, to->cap * sizeof *to->ids);
        to->epochs = sl_realloc(to->epochs, to->cap * sizeof *to->epochs);
    }
    to->n = h->n;
    to->generation = h->generation;
    if (h->n) {
        memcpy(to->ids, h->ids, h->n * sizeof *h->ids);
        memcpy(to->epochs, h->epochs, h->n * sizeof *h->epochs);
    }
    pthread_mutex_unlock(&p->lock);
}

static bool still_current(sl_puller *p, uint64_t generation)
{
    pthread_mutex_lock(&p->lock);
    bool same = p->held.generation == generation;
    pthread_mutex_unlock(&p->lock);
    return same;
}

static void renew_held(sl_puller *p, sl_db **db, leases *list)
{
    sl_err err = { 0 };
    const sl_settings *s = &p->conf->settings;
    copy_list(p, list);
    if (list->n == 0)
        return;
    sl_rc rc = *db ? SL_OK : sl_conf_open_node(db, s, &p->names, p->stop.fd_now, &err);
    if (rc == SL_OK)
        rc = p->strategy->renew(*db, list->ids, list->epochs, list->n, s->lease_ns, &err);
    if (rc == SL_OK)
        return;
    /* A lease that is gone because its message was settled meanwhile is no loss. */
    if (still_current(p, list->generation))
        sl_log_line(&p->log, SL_LOG_WARN, "leases were not renewed", "error", err.text, NULL);
    sl_db_close(*db);
    *db = NULL;
}

static void *keeper_main(void *arg)
{
    sl_puller *p = arg;
    sl_db *db = NULL;
    leases list = { 0 };
    while (!sl_stop_sleep(&p->stop, p->conf->settings.lease_ns / 3))
        renew_held(p, &db, &list);
    sl_db_close(db);
    free(list.ids);
    free(list.epochs);
    return NULL;
}

/* ---- Opening and closing ---- */

static void puller_free(sl_puller *p)
{
    sl_janitor_end(p->janitor);
    if (p->keeping) {
        sl_stop_ask(&p->stop, SL_STOP_NOW);
        pthread_join(p->keeper, NULL);
    }
    sl_member_leave(p->member);
    if (p->claim)
        p->claim->ops->close(p->claim);
    sl_db_close(p->db);
    sl_batch_fini(&p->batch);
    sl_names_fini(&p->names);
    sl_stop_fini(&p->stop);
    sl_log_fini(&p->log);
    pthread_mutex_destroy(&p->lock);
    free(p->held.ids);
    free(p->held.epochs);
    free(p->states);
    free(p->verdicts);
    free(p->node);
    free(p);
}

static sl_rc connect_puller(sl_puller *p, sl_err *err)
{
    const sl_settings *s = &p->conf->settings;
    sl_claim_conf conf;
    sl_conf_claim(&conf, s, p->node);
    conf.hold = SL_HOLD_LEASE;
    sl_rc rc = sl_conf_open_node(&p->db, s, &p->names, -1, err);
    return rc == SL_OK ? sl_claim_open(&p->claim, p->strategy, p->db, &conf, err) : rc;
}

/* ---- A node among others ---- */

static sl_rc member_open(void *ctx, sl_db **out, int wake_fd, sl_err *err)
{
    sl_puller *p = ctx;
    return sl_conf_open_node(out, &p->conf->settings, &p->names, wake_fd, err);
}

/* What it holds is safe by its leases, but it takes nothing more. */
static void member_failed(void *ctx, const sl_err *err)
{
    sl_puller *p = ctx;
    pthread_mutex_lock(&p->lock);
    p->refused = *err;
    pthread_mutex_unlock(&p->lock);
    sl_log_line(&p->log, SL_LOG_ERROR, "no node any more", "error", err->text, NULL);
}

static sl_rc join(sl_puller *p, sl_err *err)
{
    sl_member_conf conf;
    sl_conf_member(&conf, &p->conf->settings, p->node);
    conf.strategy = p->strategy->name;
    conf.own_lanes = false;
    conf.consumes = false;
    conf.open = member_open;
    conf.failed = member_failed;
    conf.ctx = p;
    conf.log = &p->log;
    conf.workers = 1;
    return sl_member_join(&p->member, &conf, -1, err);
}

static sl_rc choose_strategy(sl_puller *p, sl_err *err)
{
    p->strategy = sl_conf_pull_strategy(&p->conf->settings, err);
    return p->strategy ? SL_OK : err->rc;
}

static sl_rc start_keeper(sl_puller *p, sl_err *err)
{
    int e = pthread_create(&p->keeper, NULL, keeper_main, p);
    p->keeping = e == 0;
    return e == 0 ? SL_OK : sl_fail(err, SL_AGAIN, "cannot start a thread: %s", strerror(e));
}

/* Who keeps delivered messages purges them. */
static sl_rc start_janitor(sl_puller *p, sl_err *err)
{
    const sl_settings *s = &p->conf->settings;
    sl_janitor_conf conf = { .settings = s, .names = &p->names, .log = &p->log };
    if (s->retention_ns == 0)
        return SL_OK;
    conf.chores[conf.count++] = sl_sent_chore(s);
    sl_rc rc = sl_sent_rehearse(p->db, err);
    return rc == SL_OK ? sl_janitor_start(&p->janitor, &conf, err) : rc;
}

sl_rc sl_pull_open(sl_puller **out, const sl_conf *conf, sl_err *err)
{
    sl_rc rc = sl_settings_check(&conf->settings, err);
    if (rc != SL_OK)
        return rc;
    sl_puller *p = sl_alloc(sizeof *p);
    p->conf = conf;
    p->node = sl_conf_node(&conf->settings);
    pthread_mutex_init(&p->lock, NULL);
    sl_batch_init(&p->batch);
    sl_log_init(&p->log, sl_conf_log_write, (void *)(uintptr_t)conf);
    rc = sl_stop_init(&p->stop)
             ? choose_strategy(p, err)
             : sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    if (rc == SL_OK)
        rc = sl_conf_names(&p->names, &conf->settings, err);
    if (rc == SL_OK)
        rc = connect_puller(p, err);
    if (rc == SL_OK)
        rc = join(p, err);
    if (rc == SL_OK)
        rc = start_keeper(p, err);
    if (rc == SL_OK)
        rc = start_janitor(p, err);
    if (rc == SL_OK)
        *out = p;
    else
        puller_free(p);
    return rc;
}

void sl_pull_close(sl_puller *p)
{
    sl_err ignored;
    if (!p)
        return;
    (void)!sl_pull_end(p, &ignored); /* what cannot be given back now comes back by itself */
    puller_free(p);
}

/* ---- Taking ---- */

/* After a failure the claim is void: connect anew. */
static sl_rc reconnect(sl_puller *p, sl_err *err)
{
    if (p->claim)
        return SL_OK;
    sl_rc rc = connect_puller(p, err);
    if (rc == SL_OK && p->batch.count > 0 && p->strategy->adopt)
        rc = p->strategy->adopt(p->claim, &p->batch, err);
    return rc;
}

static void disconnect(sl_puller *p)
{
    if (p->claim)
        p->claim->ops->close(p->claim);
    sl_db_close(p->db);
    p->claim = NULL;
    p->db = NULL;
    p->wake = (sl_wake){ 0 };
}

/* A node that the others may have forgotten takes nothing; when it is known again, all goes on. */
static sl_rc check_trust(sl_puller *p, sl_err *err)
{
    pthread_mutex_lock(&p->lock);
    sl_err refused = p->refused;
    pthread_mutex_unlock(&p->lock);
    if (refused.rc != SL_OK) {
        *err = refused;
        return err->rc;
    }
    if (sl_now_ns() < sl_lanes_trusted_ns(sl_member_lanes(p->member)))
        return SL_OK;
    return sl_fail(
        err, SL_AGAIN,
        "the last heartbeat of node '%.80s' is too old: others may have forgotten it", p->node);
}

static void give_back(sl_puller *p)
{
    sl_err ignored; /* what cannot be given back now comes back by itself */
    size_t lost;
    sl_batch_settle_rest(&p->batch, SL_RELEASED, SL_NONE);
    (void)!p->claim->ops->settle(p->claim, &p->batch, &lost, &ignored);
}

static sl_rc take(sl_puller *p, size_t max, bool waits, sl_err *err)
{
    sl_rc rc = check_trust(p, err);
    if (rc != SL_OK)
        return rc;
    rc = reconnect(p, err);
    if (rc == SL_OK && waits)
        rc = sl_wake_arm(&p->wake, p->db, err); /* before it looks */
    if (rc == SL_OK)
        rc = p->claim->ops->take(p->claim, &p->batch, (int64_t)max, err);
    if (rc == SL_OK && p->batch.count > 0 && check_trust(p, err) != SL_OK) {
        give_back(p); /* it took so long that others may have other plans */
        rc = err->rc;
    }
    if (rc != SL_OK) {
        sl_batch_reset(&p->batch);
        disconnect(p);
        return rc;
    }
    if (p->room < p->batch.count) {
        p->room = p->batch.count;
        p->states = sl_realloc(p->states, p->room * sizeof *p->states);
        p->verdicts = sl_realloc(p->verdicts, p->room * sizeof *p->verdicts);
    }
    for (size_t i = 0; i < p->batch.count; i++)
        p->states[i] = NONE;
    keep_list(p);
    return SL_OK;
}

/* Until there may be something, or for so long. */
static sl_rc rest(sl_puller *p, unsigned tries, bool waits, int64_t left_ns, sl_err *err)
{
    int64_t poll_ns = p->conf->settings.poll_ns;
    int64_t ns = waits ? poll_ns : sl_backoff_ns(tries, 5 * SL_MS, poll_ns);
    ns = ns < left_ns ? ns : left_ns;
    if (waits)
        return sl_wake_wait(&p->wake, p->db, p->stop.fd_soon, tries, ns, err);
    sl_stop_sleep(&p->stop, ns);
    return SL_OK;
}

sl_rc sl_pull(sl_puller *p, size_t max, int64_t wait_ms, size_t *count, sl_err *err)
{
    int64_t until_ns;
    int64_t wait_ns = sl_conf_ns_of_ms(wait_ms > 0 ? wait_ms : 0);
    if (__builtin_add_overflow(sl_now_ns(), wait_ns, &until_ns))
        until_ns = INT64_MAX;
    bool waits = p->conf->settings.wake && wait_ns > 0;
    *count = 0;
    sl_rc rc = sl_pull_end(p, err);
    for (unsigned idle = 1; rc == SL_OK; idle++) {
        rc = take(p, max, waits, err);
        *count = p->batch.count;
        int64_t left_ns = until_ns - sl_now_ns();
        if (rc != SL_OK || *count > 0 || left_ns <= 0)
            break;
        rc = rest(p, idle, waits, left_ns, err);
    }
    if (rc == SL_OK && waits)
        rc = sl_wake_disarm(&p->wake, p->db, err);
    return rc;
}

const sl_msg *sl_pull_msg(const sl_puller *p, size_t i)
{
    return i < p->batch.count ? &p->batch.msgs[i] : NULL;
}

/* ---- Verdicts ---- */

static void record(sl_puller *p, size_t i, sl_verdict v, int64_t delay_ns, const char *reason)
{
    if (i >= p->batch.count || p->states[i] == WRITTEN)
        return;
    sl_msg *m = &p->batch.msgs[i];
    p->states[i] = RECORDED;
    p->verdicts[i] = v;
    m->delay_ns = delay_ns;
    m->reason = sl_arena_copy(&p->batch.arena, sl_str_of(reason));
}

void sl_pull_ack(sl_puller *p, size_t i)
{
    record(p, i, SL_SENT, -1, NULL);
}

void sl_pull_retry(sl_puller *p, size_t i, int64_t delay_ms, const char *reason)
{
    record(p, i, SL_RETRY, delay_ms < 0 ? -1 : sl_conf_ns_of_ms(delay_ms), reason);
}

void sl_pull_bury(sl_puller *p, size_t i, const char *reason)
{
    record(p, i, SL_DEAD, -1, reason);
}

/* Writes what is recorded; `rest` is the verdict of what is not. */
static sl_rc write_verdicts(sl_puller *p, sl_verdict rest, sl_err *err)
{
    size_t lost = 0;
    for (size_t i = 0; i < p->batch.count; i++)
        p->batch.msgs[i].verdict = p->states[i] == RECORDED ? p->verdicts[i]
                                   : p->states[i] == NONE   ? rest
                                                            : SL_HELD;
    sl_rc rc = reconnect(p, err);
    if (rc == SL_OK)
        rc = p->claim->ops->settle(p->claim, &p->batch, &lost, err);
    if (rc != SL_OK) {
        disconnect(p);
        return rc;
    }
    for (size_t i = 0; i < p->batch.count; i++)
        if (p->batch.msgs[i].verdict != SL_HELD)
            p->states[i] = WRITTEN;
    keep_list(p);
    if (lost == 0)
        return SL_OK;
    return sl_fail(err, SL_AGAIN, "lease lost: %zu messages were taken over by someone else",
                   lost);
}

sl_rc sl_pull_settle(sl_puller *p, sl_err *err)
{
    return p->batch.count ? write_verdicts(p, SL_HELD, err) : SL_OK;
}

static bool all_written(const sl_puller *p)
{
    for (size_t i = 0; i < p->batch.count; i++)
        if (p->states[i] != WRITTEN)
            return false;
    return true;
}

sl_rc sl_pull_end(sl_puller *p, sl_err *err)
{
    if (p->batch.count == 0)
        return SL_OK;
    sl_rc rc = write_verdicts(p, SL_RELEASED, err);
    if (!all_written(p))
        return rc; /* the database is away: the verdicts are kept for another try */
    sl_batch_reset(&p->batch);
    keep_list(p);
    return rc;
}
