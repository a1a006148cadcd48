/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_sink.h"

#include "core/mem.h"
#include "lib/routes.h"
#include "relay/route.h"

/* ---- What waits ---- */

static sl_str copy(sl_str s)
{
    return (sl_str){ sl_strndup(s.p ? s.p : "", s.n), s.n };
}

void sl_waits_add(sl_waits *w, sl_str topic, sl_str type, int64_t count, int64_t keyless,
                  int64_t largest)
{
    w->v = sl_realloc(w->v, (w->count + 1) * sizeof *w->v);
    w->v[w->count++] = (sl_sink_wait){ copy(topic), copy(type), count, keyless, largest };
    w->messages += count;
}

void sl_waits_fini(sl_waits *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free((char *)(uintptr_t)w->v[i].topic.p);
        free((char *)(uintptr_t)w->v[i].type.p);
    }
    free(w->v);
    *w = (sl_waits){ 0 };
}

/* ---- Findings ---- */

/* The same four, in the same order: a sink knows nothing of the program's commands. */
_Static_assert((int)SL_SINK_FINE == SL_FINE && (int)SL_SINK_WARN == SL_WARN &&
                   (int)SL_SINK_BAD == SL_BAD && (int)SL_SINK_UNSEEN == SL_UNSEEN,
               "a sink's states are those of a finding");

static void note(void *ctx, sl_sink_state state, const char *check, const char *found,
                 const char *todo)
{
    sl_found(ctx, (sl_health)state, check, "%s", found);
    if (todo)
        sl_advise(ctx, "%s", todo);
}

static sl_rc look_at(const sl_sink_conf *conf, const sl_waits *waits, sl_findings *out,
                     sl_err *err)
{
    const sl_sink_ops *ops;
    sl_rc rc = sl_sink_find(&ops, conf->url, err);
    if (rc != SL_OK)
        return rc;
    if (ops->describe)
        ops->describe(conf, waits->v, waits->count, note, out);
    else
        sl_found(out, SL_FINE, "sink", "%s: has no other side to look at", ops->scheme);
    return SL_OK;
}

/* ---- Routes ---- */

static bool takes(const sl_routes *r, size_t which, sl_str topic)
{
    for (size_t i = 0; i < which; i++)
        if (sl_route_wants(&r->v[i], topic))
            return false; /* the first that wants it takes it */
    return sl_route_wants(&r->v[which], topic);
}

/* What waits for it, and the topics that it names in full. */
static void waits_of(sl_waits *out, const sl_routes *r, size_t which, const sl_waits *all)
{
    const sl_route *route = &r->v[which];
    for (size_t i = 0; i < all->count; i++) {
        const sl_sink_wait *w = &all->v[i];
        if (takes(r, which, w->topic))
            sl_waits_add(out, w->topic, w->type, w->count, w->keyless, w->largest);
    }
    for (size_t i = 0; i < route->topic_count; i++)
        if (!strchr(route->topics[i], '*'))
            sl_waits_add(out, sl_str_of(route->topics[i]), SL_STR(""), 0, 0, 0);
}

static sl_rc look_at_routes(const sl_settings *s, const sl_waits *waits, sl_findings *out,
                            sl_err *err)
{
    sl_routes r;
    sl_rc rc = SL_OK;
    sl_routes_make(&r, s);
    for (size_t i = 0; rc == SL_OK && i < r.count; i++) {
        sl_waits of = { 0 };
        waits_of(&of, &r, i, waits);
        rc = look_at(&r.sinks[i], &of, out, err);
        sl_waits_fini(&of);
    }
    sl_routes_fini(&r);
    return rc;
}

sl_rc sl_doctor_sinks(const sl_settings *s, const char *url, const sl_waits *waits,
                      sl_findings *out, sl_err *err)
{
    sl_sink_conf given = { .url = url,
                           .format = s->format,
                           .target = s->target,
                           .source = s->source,
                           .props = { &s->kafka } };
    if (url)
        return look_at(&given, waits, out, err);
    return look_at_routes(s, waits, out, err);
}
