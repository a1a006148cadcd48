/* SPDX-License-Identifier: Apache-2.0 */
#include "member/lanes.h"

#include "core/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef enum lane_state { NONE, OWNED, LEAVING } lane_state;

typedef struct lane {
    lane_state state;
    bool used;
    bool below; /* something lives below its floor */
    int64_t
        until_ns; /* or nothing does: then it need not be read from the beginning before that */
    sl_lane_use use;
} lane;

struct sl_lanes {
    pthread_mutex_t lock;
    _Atomic uint64_t generation;
    _Atomic int64_t trusted_ns;
    _Atomic int64_t peers;
    _Atomic int64_t session;
    _Atomic size_t resting; /* workers that take no turn */
    int fd;
    sl_tickets *tickets;
    sl_final *final;
    bool doubted; /* nothing is picked */
    size_t count;
    size_t owned; /* OWNED or LEAVING */
    size_t turns; /* that run: those of this generation, and of older ones */
    size_t stale;
    size_t next[2]; /* where the next pick begins: of quiet lanes, of hungry ones */
    lane *v;
};

sl_lanes *sl_lanes_new(void)
{
    sl_lanes *l = sl_alloc(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->tickets = sl_tickets_new();
    l->final = sl_final_new();
    l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->fd < 0)
        abort(); /* as for memory: nothing sensible can follow */
    return l;
}

void sl_lanes_free(sl_lanes *l)
{
    if (!l)
        return;
    close(l->fd);
    sl_tickets_free(l->tickets);
    sl_final_free(l->final);
    pthread_mutex_destroy(&l->lock);
    free(l->v);
    free(l);
}

static void enter(const sl_lanes *l)
{
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&l->lock);
}

static void leave(const sl_lanes *l)
{
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&l->lock);
}

/* ---- The keeper's side ---- */

void sl_lanes_void(sl_lanes *l, size_t count)
{
    enter(l);
    l->generation++;
    l->stale += l->turns;
    l->turns = 0;
    l->owned = 0;
    l->doubted = false;
    l->next[false] = l->next[true] = 0;
    if (count != l->count)
        l->v = sl_realloc(l->v, (count ? count : 1) * sizeof *l->v);
    l->count = count;
    for (size_t i = 0; i < count; i++)
        l->v[i] = (lane){ .use = { .lane = (int64_t)i } };
    leave(l);
}

void sl_lanes_grant(sl_lanes *l, size_t at, int64_t epoch, int64_t floor)
{
    enter(l);
    assert(at < l->count && l->v[at].state == NONE && !l->v[at].used);
    l->v[at] = (lane){
        .state = OWNED,
        .use = { .lane = (int64_t)at, .epoch = epoch, .floor = { .at = floor } },
    };
    l->owned++;
    leave(l);
}

void sl_lanes_wish(sl_lanes *l, const bool *wish)
{
    enter(l);
    for (size_t i = 0; i < l->count; i++)
        if (l->v[i].state != NONE)
            l->v[i].state = wish[i] ? OWNED : LEAVING;
    leave(l);
}

size_t sl_lanes_left(sl_lanes *l, int64_t *lanes)
{
    size_t n = 0;
    uint64_t ignored;
    (void)!read(l->fd, &ignored, sizeof ignored);
    enter(l);
    for (size_t i = 0; i < l->count; i++)
        if (l->v[i].state == LEAVING && !l->v[i].used) {
            l->v[i].state = NONE;
            l->owned--;
            lanes[n++] = (int64_t)i;
        }
    leave(l);
    return n;
}

bool sl_lanes_owned(const sl_lanes *l, size_t at)
{
    enter(l);
    bool owned = at < l->count && l->v[at].state != NONE;
    leave(l);
    return owned;
}

size_t sl_lanes_count(const sl_lanes *l)
{
    enter(l);
    size_t n = l->count;
    leave(l);
    return n;
}

size_t sl_lanes_owned_count(const sl_lanes *l)
{
    enter(l);
    size_t n = l->owned;
    leave(l);
    return n;
}

size_t sl_lanes_stale(const sl_lanes *l)
{
    enter(l);
    size_t n = l->stale;
    leave(l);
    return n;
}

bool sl_lanes_doubted(const sl_lanes *l)
{
    enter(l);
    bool doubted = l->doubted;
    for (size_t i = 0; i < l->count && doubted; i++)
        doubted = !l->v[i].used;
    leave(l);
    return doubted;
}

void sl_lanes_trust(sl_lanes *l, int64_t until_ns)
{
    l->trusted_ns = until_ns;
}

void sl_lanes_begin(sl_lanes *l, int64_t session)
{
    l->session = session;
}

int64_t sl_lanes_session(const sl_lanes *l)
{
    return l->session;
}

void sl_lanes_meet(sl_lanes *l, int64_t peers)
{
    l->peers = peers;
}

int64_t sl_lanes_peers(const sl_lanes *l)
{
    return l->peers > 0 ? l->peers : 1;
}

int sl_lanes_fd(const sl_lanes *l)
{
    return l->fd;
}

/* ---- Who looks below the floors ---- */

void sl_lane_floors_fini(sl_lane_floors *f)
{
    free(f->lanes);
    free(f->floors);
    free(f->found);
    *f = (sl_lane_floors){ 0 };
}

void sl_lanes_floors(const sl_lanes *l, sl_lane_floors *out)
{
    enter(l);
    if (out->cap < l->count) {
        out->cap = l->count;
        out->lanes = sl_realloc(out->lanes, out->cap * sizeof *out->lanes);
        out->floors = sl_realloc(out->floors, out->cap * sizeof *out->floors);
        out->found = sl_realloc(out->found, out->cap * sizeof *out->found);
    }
    out->generation = l->generation;
    out->count = out->founds = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->v[i].state != NONE) {
            out->lanes[out->count] = (int64_t)i;
            out->floors[out->count++] = l->v[i].use.floor.at;
        }
    leave(l);
}

void sl_lanes_looked(sl_lanes *l, const sl_lane_floors *f, int64_t until_ns)
{
    enter(l);
    bool current = f->generation == l->generation;
    for (size_t i = 0; current && i < f->count; i++)
        l->v[f->lanes[i]].until_ns = until_ns;
    for (size_t i = 0; current && i < f->founds; i++)
        l->v[f->found[i]].below = true;
    leave(l);
}

/* ---- A worker's side ---- */

static void use(sl_lanes *l, size_t at, sl_lane_uses *out)
{
    lane *v = &l->v[at];
    v->used = true;
    v->use.below |= v->below;
    if (v->use.forget_ns < v->until_ns)
        v->use.forget_ns = v->until_ns;
    v->until_ns = 0; /* who reads it may have reason to look sooner */
    v->below = false;
    out->v[out->count++] = v->use;
}

/* Up to `room` lanes, from their cursor on. */
static void pick_some(sl_lanes *l, bool hungry, size_t room, sl_lane_uses *out)
{
    size_t first = l->next[hungry];
    for (size_t i = 0; i < l->count && room > 0 && !l->doubted; i++) {
        size_t at = (first + i) % l->count;
        const lane *v = &l->v[at];
        if (v->state != OWNED || v->used || v->use.hungry != hungry)
            continue;
        use(l, at, out);
        l->next[hungry] = (at + 1) % l->count;
        room--;
    }
}

/* Two at least, so that those which had nothing are looked at, too. */
static size_t fair_part(const sl_lanes *l, size_t workers)
{
    workers = workers > l->resting ? workers - l->resting : 1;
    size_t part = workers ? (l->owned + workers - 1) / workers : l->owned;
    return part < 2 ? 2 : part > SL_LANES_PART ? SL_LANES_PART : part;
}

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

static void pick(sl_lanes *l, size_t workers, sl_lane_uses *out)
{
    size_t part = fair_part(l, workers);
    size_t quiet = part / 4 ? part / 4 : 1;
    if (out->cap < l->count) {
        out->cap = l->count;
        out->v = sl_realloc(out->v, out->cap * sizeof *out->v);
    }
    pick_some(l, true, less(part - quiet, out->count), out);
    pick_some(l, false, less(part, out->count), out);
    pick_some(l, true, less(part, out->count), out);
}

void sl_lanes_pick(sl_lanes *l, size_t workers, sl_lane_uses *out)
{
    enter(l);
    l->turns++;
    out->generation = l->generation;
    out->count = 0;
    pick(l, workers, out);
    leave(l);
}

void sl_lanes_pick_more(sl_lanes *l, size_t workers, sl_lane_uses *out)
{
    enter(l);
    if (out->generation == l->generation)
        pick(l, workers, out);
    leave(l);
}

/* Returns whether one of them was waited for. */
static bool put_some(sl_lanes *l, const sl_lane_use *v, size_t n)
{
    bool left = l->doubted && n > 0;
    for (size_t i = 0; i < n; i++) {
        lane *to = &l->v[v[i].lane];
        assert(to->used && to->use.epoch == v[i].epoch);
        to->used = false;
        to->use = v[i];
        left |= to->state == LEAVING;
    }
    return left;
}

void sl_lanes_put(sl_lanes *l, sl_lane_uses *uses)
{
    enter(l);
    bool stale = uses->generation != l->generation;
    *(stale ? &l->stale : &l->turns) -= 1;
    bool left = stale || put_some(l, uses->v, uses->count);
    uses->count = 0;
    leave(l);
    if (left)
        eventfd_write(l->fd, 1);
}

void sl_lanes_put_early(sl_lanes *l, uint64_t generation, const sl_lane_use *v, size_t n)
{
    enter(l);
    bool left = generation == l->generation && put_some(l, v, n);
    leave(l);
    if (left)
        eventfd_write(l->fd, 1);
}

void sl_lanes_doubt(sl_lanes *l)
{
    enter(l);
    l->doubted = true;
    leave(l);
    eventfd_write(l->fd, 1);
}

void sl_lanes_rest(sl_lanes *l, bool rests)
{
    l->resting += rests ? 1 : (size_t)-1;
}

bool sl_lanes_current(const sl_lanes *l, uint64_t generation)
{
    return l->generation == generation;
}

int64_t sl_lanes_trusted_ns(const sl_lanes *l)
{
    return l->trusted_ns;
}

sl_tickets *sl_lanes_tickets(const sl_lanes *l)
{
    return l->tickets;
}

sl_final *sl_lanes_final(const sl_lanes *l)
{
    return l->final;
}
