/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/routes.h"

#include "core/clock.h"
#include "core/mem.h"

/* A sink that is down is tried this soon, and at least this often. */
#define PROBE_BASE_NS (200 * SL_MS)
#define PROBE_MAX_NS (30 * SL_SEC)

static void make_route(sl_route *r, const sl_route_conf *c)
{
    *r = (sl_route){
        .name = c->topic_count ? c->topics[0] : "*",
        .topics = (const char *const *)c->topics,
        .topic_count = c->topic_count,
        .policy = { .on_failure = (sl_on_failure)c->on_failure,
                    .max_attempts = c->max_attempts,
                    .retry_base_ns = c->retry_base_ns,
                    .retry_max_ns = c->retry_max_ns },
        .at_most_once = c->delivery == 1,
        .batch = c->batch,
        .concurrency = c->concurrency,
        .breaker = sl_breaker_new(PROBE_BASE_NS, PROBE_MAX_NS),
    };
}

void sl_routes_make(sl_routes *r, const sl_settings *s)
{
    sl_route_conf all = { .sink = s->sink,
                          .delivery = s->delivery,
                          .retry_base_ns = s->retry_base_ns,
                          .retry_max_ns = s->retry_max_ns,
                          .max_attempts = s->max_attempts,
                          .on_failure = s->on_failure };
    const sl_route_conf *confs = s->route_count ? s->routes : &all;
    r->count = s->route_count ? s->route_count : 1;
    r->v = sl_alloc(r->count * sizeof *r->v);
    r->sinks = sl_alloc(r->count * sizeof *r->sinks);
    for (size_t i = 0; i < r->count; i++) {
        make_route(&r->v[i], &confs[i]);
        r->sinks[i] = confs[i].sink;
    }
}

void sl_routes_fini(sl_routes *r)
{
    for (size_t i = 0; i < r->count; i++)
        sl_breaker_free(r->v[i].breaker);
    free(r->v);
    free((void *)r->sinks);
    *r = (sl_routes){ 0 };
}

sl_rc sl_ways_open(sl_way **out, const sl_routes *r, sl_sink_maker make, void *ctx,
                   const char *worker, sl_err *err)
{
    sl_way *ways = sl_alloc(r->count * sizeof *ways);
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < r->count; i++) {
        ways[i].route = &r->v[i];
        rc = make(ctx, &ways[i].sink, &(sl_sink_conf){ .url = r->sinks[i], .worker = worker },
                  err);
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
