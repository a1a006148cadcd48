/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/routes.h"

#include "core/clock.h"
#include "core/mem.h"
#include "lib/fencer.h"
#include "lib/settings_routes.h"

/* A sink that is down is tried this soon, and at least this often. */
#define PROBE_BASE_NS (200 * SL_MS)
#define PROBE_MAX_NS (30 * SL_SEC)

static void make_route(sl_route *r, const sl_route_conf *c)
{
    *r = (sl_route){
        .name = c->topics.count ? c->topics.v[0] : "*",
        .topics = (const char *const *)c->topics.v,
        .topic_count = c->topics.count,
        .policy = { .on_failure = (sl_on_failure)c->on_failure,
                    .max_attempts = c->max_attempts,
                    .retry_base_ns = c->retry_base_ns,
                    .retry_max_ns = c->retry_max_ns },
        .at_most_once = c->delivery == SL_DELIVERY_AT_MOST_ONCE,
        .fenced = sl_route_fenced(c),
        .exact = c->delivery == SL_DELIVERY_EXACTLY_ONCE,
        .batch = c->batch,
        .concurrency = c->concurrency,
        .breaker = sl_breaker_new(PROBE_BASE_NS, PROBE_MAX_NS),
    };
}

/* A sink that has no answer has to say so before the claim is over. */
static sl_sink_conf sink_of(const sl_settings *s, const sl_layout_terms *l,
                            const sl_route_conf *c)
{
    return (sl_sink_conf){ .url = c->sink,
                           .format = c->format ? c->format : l->format,
                           .target = c->target ? c->target : l->target,
                           .source = c->source,
                           .tombstones = c->tombstones,
                           .props = { &s->kafka },
                           .created_time = l->created_time,
                           .exact = c->delivery == SL_DELIVERY_EXACTLY_ONCE,
                           .answer_ns = s->lease_ns * 2 / 3 };
}

void sl_routes_make(sl_routes *r, const sl_settings *s)
{
    sl_route_conf all = { .sink = s->sink,
                          .delivery = s->delivery,
                          .fence = s->fence,
                          .retry_base_ns = s->retry_base_ns,
                          .retry_max_ns = s->retry_max_ns,
                          .max_attempts = s->max_attempts,
                          .on_failure = s->on_failure,
                          .format = s->format,
                          .target = s->target,
                          .source = s->source,
                          .tombstones = s->tombstones };
    r->terms = sl_layout_terms_of(s);
    r->table = s->table;
    r->count = s->route_count ? s->route_count : 1;
    r->v = sl_alloc(r->count * sizeof *r->v);
    r->sinks = sl_alloc(r->count * sizeof *r->sinks);
    for (size_t i = 0; i < r->count; i++) {
        sl_route_conf conf = s->route_count ? sl_route_of(s, i) : all;
        make_route(&r->v[i], &conf);
        r->sinks[i] = sink_of(s, &r->terms, &conf);
        r->sinks[i].props[1] = s->route_count ? &s->routes[i].kafka : NULL;
    }
}

void sl_routes_fini(sl_routes *r)
{
    for (size_t i = 0; i < r->count; i++)
        sl_breaker_free(r->v[i].breaker);
    free(r->v);
    free(r->sinks);
    free(r->terms.target);
    *r = (sl_routes){ 0 };
}

sl_rc sl_ways_open(sl_way **out, const sl_routes *r, sl_sink_maker make, void *ctx,
                   const char *worker, sl_log *log, sl_err *err)
{
    sl_way *ways = sl_alloc(r->count * sizeof *ways);
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < r->count; i++) {
        sl_sink_conf conf = r->sinks[i];
        char *name = r->v[i].fenced ? sl_fence_name(r->table, worker, (int64_t)i) : NULL;
        conf.worker = worker;
        conf.fence = name;
        conf.log = log;
        ways[i].route = &r->v[i];
        rc = make(ctx, &ways[i].sink, &conf, err);
        free(name);
    }
    if (rc == SL_OK)
        *out = ways;
    else
        sl_ways_close(ways, r->count);
    return rc;
}

void sl_ways_close(sl_way *ways, size_t count)
{
    for (size_t i = 0; ways && i < count; i++)
        if (ways[i].sink)
            ways[i].sink->ops->close(ways[i].sink);
    free(ways);
}
