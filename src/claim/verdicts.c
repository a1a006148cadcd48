/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/verdicts.h"

#include "core/clock.h"
#include "core/utf8.h"

#include <assert.h>

enum { REASON_MAX_BYTES = 500 };

/* A reason comes from outside and goes into a text column: bounded, printable, and never the
 * cause of a second failure. */
static sl_str clean_reason(sl_arena *a, sl_str reason)
{
    if (!reason.p)
        return SL_NONE;
    if (reason.n > REASON_MAX_BYTES)
        reason.n = REASON_MAX_BYTES;
    size_t good = sl_utf8_prefix(reason);
    char *p = sl_arena_alloc(a, reason.n + 1);
    for (size_t i = 0; i < reason.n; i++) {
        unsigned char c = (unsigned char)reason.p[i];
        bool control = c < 0x20 || c == 0x7f;
        p[i] = control ? ' ' : c >= 0x80 && i >= good ? '?' : (char)c;
    }
    p[reason.n] = '\0';
    return (sl_str){ p, reason.n };
}

static sl_group *group_of_consumed(sl_groups *g, sl_verdict v)
{
    return v == SL_SENT       ? &g->gone
           : v == SL_RELEASED ? &g->back
           : v == SL_HELD     ? NULL
                              : &g->left;
}

static sl_group *group_of(sl_groups *g, const sl_msg *m)
{
    if (m->consumed)
        return group_of_consumed(g, m->verdict);
    switch (m->verdict) {
    case SL_SENT:
        return &g->sent;
    case SL_RETRY:
    case SL_UNKNOWN:
        return &g->retry;
    case SL_DEAD:
        return &g->dead;
    case SL_RELEASED:
        return m->counted ? &g->counted : &g->released;
    default:
        return NULL; /* held */
    }
}

static void count(sl_groups *g, const sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        assert(b->msgs[i].verdict != SL_PENDING);
        sl_group *to = group_of(g, &b->msgs[i]);
        if (to)
            to->n++;
    }
}

static void make_room(sl_group *g, sl_arena *a)
{
    if (g->n == 0)
        return;
    g->ids = sl_arena_alloc(a, g->n * sizeof *g->ids);
    g->epochs = sl_arena_alloc(a, g->n * sizeof *g->epochs);
    g->lanes = sl_arena_alloc(a, g->n * sizeof *g->lanes);
    g->delays_us = sl_arena_alloc(a, g->n * sizeof *g->delays_us);
    g->counts = sl_arena_alloc(a, g->n * sizeof *g->counts);
    g->reasons = sl_arena_alloc(a, g->n * sizeof *g->reasons);
    g->n = 0;
}

static void make_all_room(sl_groups *g, sl_arena *a)
{
    sl_group *all[] = { &g->sent,    &g->retry, &g->dead, &g->released,
                        &g->counted, &g->gone,  &g->left, &g->back };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        make_room(all[i], a);
}

void sl_groups_make(sl_groups *g, sl_batch *b, int64_t retry_base_ns, int64_t retry_max_ns)
{
    *g = (sl_groups){ 0 };
    count(g, b);
    make_all_room(g, &b->arena);
    for (size_t i = 0; i < b->count; i++) {
        const sl_msg *m = &b->msgs[i];
        sl_group *to = group_of(g, m);
        if (!to)
            continue;
        to->ids[to->n] = m->id;
        to->epochs[to->n] = m->epoch;
        to->lanes[to->n] = m->lane;
        to->counts[to->n] = !m->counted - (int64_t)m->untried;
        if (to == &g->retry)
            to->delays_us[to->n] =
                (m->delay_ns >= 0
                     ? m->delay_ns
                     : sl_backoff_ns((unsigned)m->attempt, retry_base_ns, retry_max_ns)) /
                1000;
        if (to != &g->sent)
            to->reasons[to->n] = clean_reason(&b->arena, m->reason);
        to->n++;
    }
}
