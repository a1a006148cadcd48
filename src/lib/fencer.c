/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/fencer.h"

#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"
#include "lib/conf.h"

#include <errno.h>
#include <pthread.h>

/* How often it is looked whether someone is gone: others wait for that. */
#define LOOK_NS (250 * SL_MS)
/* Who is at it has so long; then others try. */
#define BUSY_NS (30 * SL_SEC)
/* After a failure: when it is tried again, by whoever comes first. */
#define AGAIN_NS (2 * SL_SEC)
#define TELL_NS (60 * SL_SEC)

struct sl_fencer {
    sl_fencer_conf conf;
    sl_stop stop;
    pthread_t thread;
    sl_db *db;
    int64_t told_ns;
};

/* ---- Names and places ---- */

/* kafka://HOST:PORT,HOST:PORT/TARGET?...: the brokers. */
static sl_str place_of(const char *url)
{
    const char *begin = strstr(url, "//");
    begin = begin ? begin + 2 : url;
    return (sl_str){ begin, strcspn(begin, "/?") };
}

void sl_fence_places_make(sl_fence_places *p, const sl_routes *r)
{
    *p = (sl_fence_places){ .ways = sl_alloc(r->count * sizeof *p->ways),
                            .texts = sl_alloc(r->count * sizeof *p->texts) };
    for (size_t i = 0; i < r->count; i++) {
        if (!r->v[i].fenced)
            continue;
        p->ways[p->count] = (int64_t)i;
        p->texts[p->count++] = place_of(r->sinks[i].url);
    }
}

void sl_fence_places_fini(sl_fence_places *p)
{
    free(p->ways);
    free(p->texts);
    *p = (sl_fence_places){ 0 };
}

char *sl_fence_name(const char *table, const char *worker, int64_t way)
{
    return sl_asprintf("sluice/%s/%s/%lld", table, worker, (long long)way);
}

/* ---- One node that is gone, at one place ---- */

typedef struct delivered {
    int64_t *ids;
    size_t count, cap;
} delivered;

static void add_id(void *ctx, int64_t id)
{
    delivered *d = ctx;
    if (d->count == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 512;
        d->ids = sl_realloc(d->ids, d->cap * sizeof *d->ids);
    }
    d->ids[d->count++] = id;
}

/* By a route of ours that goes to the same brokers; one that looks at positions if there is any. */
static const sl_sink_conf *way_to(const sl_fencer *f, const char *place)
{
    const sl_routes *r = f->conf.routes;
    const sl_sink_conf *found = NULL;
    for (size_t i = 0; i < r->count; i++)
        if (r->v[i].fenced && sl_str_eq(place_of(r->sinks[i].url), sl_str_of(place)) &&
            (!found || r->v[i].exact))
            found = &r->sinks[i];
    return found;
}

static sl_rc shut_out(sl_fencer *f, const sl_fence_job *j, const sl_sink_conf *way,
                      delivered *d, sl_err *err)
{
    const sl_sink_ops *ops;
    sl_rc rc = sl_sink_find(&ops, way->url, err);
    for (int64_t k = 1; rc == SL_OK && k <= j->workers; k++) {
        if (sl_stop_level_of(&f->stop) != SL_GO)
            return sl_fail(err, SL_STOPPED, "stopped");
        char *worker = sl_asprintf("%s/%lld", j->node, (long long)k);
        char *name = sl_fence_name(f->conf.settings->table, worker, j->way);
        sl_sink_conf conf = *way;
        conf.fence = name;
        conf.log = f->conf.log;
        rc = ops->shut_out(&conf, j->session, add_id, d, err);
        free(worker);
        free(name);
    }
    return rc;
}

static void tell(sl_fencer *f, const sl_fence_job *j, int64_t gone)
{
    char count[24];
    snprintf(count, sizeof count, "%lld", (long long)gone);
    sl_log_line(f->conf.log, SL_LOG_INFO, "a node that is gone is shut out", "node", j->node,
                "place", j->place, "delivered", count, NULL);
}

static sl_rc do_job(sl_fencer *f, const sl_fence_job *j, sl_err *err)
{
    delivered d = { 0 };
    int64_t gone = 0;
    const sl_sink_conf *way = way_to(f, j->place);
    sl_rc rc =
        way ? shut_out(f, j, way, &d, err)
            : sl_fail(err, SL_AGAIN,
                      "node '%.80s' is gone, and no route with a fence of this node goes to "
                      "%.80s, where it has to be shut out\nhint: start a node that has one",
                      j->node, j->place);
    SL_FAULT("shut_out");
    if (rc == SL_OK)
        rc = sl_fences_done(f->db, j, d.ids, d.count, f->conf.settings->retention_ns > 0, &gone,
                            err);
    if (rc == SL_OK)
        tell(f, j, gone);
    free(d.ids);
    return rc;
}

/* ---- The thread ---- */

/* Others may do better: nobody is at it any more. */
static void put_off(sl_fencer *f, const sl_fence_job *j)
{
    sl_err ignored;
    sl_val in[] = { sl_int(j->session), sl_int(j->way), sl_int(AGAIN_NS / 1000) };
    (void)!sl_db_run1(f->db, "fence/again", in, NULL, NULL, NULL, &ignored);
}

static sl_rc look(sl_fencer *f, sl_err *err)
{
    bool any = false;
    sl_fence_jobs jobs = { 0 };
    sl_rc rc =
        f->db ? SL_OK
              : sl_conf_open_node(&f->db, f->conf.settings, f->conf.names, f->stop.fd_now, err);
    if (rc == SL_OK)
        rc = sl_fences_any(f->db, &any, err);
    if (rc == SL_OK && any)
        rc = sl_fences_take(f->db, BUSY_NS, &jobs, err);
    for (size_t i = 0; rc == SL_OK && i < jobs.count; i++) {
        rc = do_job(f, &jobs.v[i], err);
        for (size_t k = i; rc != SL_OK && k < jobs.count; k++)
            put_off(f, &jobs.v[k]);
    }
    sl_fence_jobs_fini(&jobs);
    return rc;
}

static void *fencer_main(void *arg)
{
    sl_fencer *f = arg;
    do {
        sl_err err = { 0 };
        sl_rc rc = look(f, &err);
        if (rc == SL_OK || rc == SL_STOPPED || sl_stop_level_of(&f->stop) != SL_GO)
            continue;
        sl_db_close(f->db);
        f->db = NULL;
        if (f->told_ns && sl_now_ns() - f->told_ns < TELL_NS)
            continue;
        f->told_ns = sl_now_ns();
        sl_log_line(f->conf.log, SL_LOG_WARN, "a node that is gone is not shut out yet",
                    "error", err.text, NULL);
    } while (!sl_stop_sleep(&f->stop, LOOK_NS));
    sl_db_close(f->db);
    return NULL;
}

sl_rc sl_fencer_start(sl_fencer **out, const sl_fencer_conf *conf, sl_err *err)
{
    sl_fencer *f = sl_alloc(sizeof *f);
    f->conf = *conf;
    int e = sl_stop_init(&f->stop) ? pthread_create(&f->thread, NULL, fencer_main, f) : errno;
    if (e == 0) {
        *out = f;
        return SL_OK;
    }
    sl_stop_fini(&f->stop);
    free(f);
    return sl_fail(err, SL_AGAIN, "cannot start a thread: %s", strerror(e));
}

void sl_fencer_end(sl_fencer *f)
{
    if (!f)
        return;
    sl_stop_ask(&f->stop, SL_STOP_NOW);
    pthread_join(f->thread, NULL);
    sl_stop_fini(&f->stop);
    free(f);
}
