/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DESIGN of `claim`. Every node works out the shares of all nodes from who owns how much, not only
 * its own: the lanes that remain after floor(lanes / nodes) for each go, one a node, first to those
 * which own more than that already, then to the others, in the order of their sessions. A node
 * that owns more than its share gives back, one that owns less takes.
 *
 * So somebody at ceil is asked to go down to floor only if there are more such nodes than
 * remaining lanes, which is when someone is below floor and the free lanes do not suffice for it;
 * and only as many are asked as are needed. Giving back and taking do not change the shares: who
 * reached ceil was given it first, and stays first. Hence two rounds settle everything, one to
 * give back and one to take, and after that shares are what is owned. But a node that has not
 * heard of another yet may take more than its share, and so change everybody's: so nobody stops
 * looking before all own what they should.
 *
 * Free lanes are dealt out like cards, in the order of the sessions: nodes that see the same
 * ownership never wish the same free lane. Starting the search at a hash of the session, which was
 * the first idea, has them collide and try again.
 */
#include "member/assign.h"

#include "core/bytes.h"
#include "core/mem.h"
#include "member/ring.h"

#include <assert.h>
#include <ctype.h>

/* ---- ring ---- */

static int by_name_newest_first(const void *left, const void *right)
{
    const sl_peer *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order != 0)
        return order;
    if (a->born != b->born)
        return a->born > b->born ? -1 : 1;
    return (b->session > a->session) - (b->session < a->session);
}

static void wish_ring(const sl_placing *p, bool *wish)
{
    sl_peer *peers = sl_alloc(p->count * sizeof *peers);
    const char **names = sl_alloc(p->count * sizeof *names);
    size_t count = 0, mine = SIZE_MAX;

    for (size_t i = 0; i < p->count; i++)
        peers[i] = p->peers[i];
    qsort(peers, p->count, sizeof *peers, by_name_newest_first);
    for (size_t i = 0; i < p->count; i++) {
        if (i > 0 && strcmp(peers[i].name, peers[i - 1].name) == 0)
            continue;
        if (peers[i].session == p->me)
            mine = count;
        names[count++] = peers[i].name;
    }
    if (mine != SIZE_MAX) {
        sl_ring *ring = sl_ring_new(names, count);
        for (size_t lane = 0; lane < p->lanes; lane++)
            wish[lane] = sl_ring_find(ring, lane) == mine;
        sl_ring_free(ring);
    }
    free(names);
    free(peers);
}

/* ---- claim ---- */

typedef struct load {
    int64_t session;
    size_t owned, share;
} load; /* a node's lanes: how many it has, how many it should have */

static int by_session(const void *left, const void *right)
{
    const load *a = left, *b = right;
    return (a->session > b->session) - (a->session < b->session);
}

/* NULL if there is no such peer. */
static load *find_load(load *loads, size_t count, int64_t session)
{
    return bsearch(&(load){ .session = session }, loads, count, sizeof *loads, by_session);
}

static load *count_loads(const sl_placing *p)
{
    load *loads = sl_alloc(p->count * sizeof *loads);

    for (size_t i = 0; i < p->count; i++)
        loads[i].session = p->peers[i].session;
    qsort(loads, p->count, sizeof *loads, by_session);
    for (size_t lane = 0; lane < p->lanes; lane++) {
        load *l = find_load(loads, p->count, p->owners[lane]);
        if (l)
            l->owned++;
    }
    return loads;
}

static void share_out(load *loads, size_t count, size_t lanes)
{
    size_t floor = lanes / count, rest = lanes % count;

    for (size_t i = 0; i < count; i++) {
        bool above = loads[i].owned > floor && rest > 0;
        loads[i].share = floor + above;
        rest -= above;
    }
    for (size_t i = 0; i < count && rest > 0; i++) {
        if (loads[i].share == floor) {
            loads[i].share++;
            rest--;
        }
    }
}

static size_t lacks(const load *l)
{
    return l->share > l->owned ? l->share - l->owned : 0;
}

static void wish_claim(const sl_placing *p, bool *wish)
{
    load *loads = count_loads(p);
    share_out(loads, p->count, p->lanes);

    const load *mine = find_load(loads, p->count, p->me);
    size_t keep = mine->share, take = lacks(mine);
    size_t pass = 0; /* free lanes that are dealt to others before me */
    for (const load *l = loads; l < mine; l++)
        pass += lacks(l);

    for (size_t lane = 0; lane < p->lanes; lane++) {
        if (p->owners[lane] == p->me) {
            wish[lane] = keep > 0;
            keep -= wish[lane];
        } else if (find_load(loads, p->count, p->owners[lane])) {
            continue;
        } else if (pass > 0) {
            pass--;
        } else {
            wish[lane] = take > 0;
            take -= wish[lane];
        }
    }
    free(loads);
}

static bool all_have_their_shares(const sl_placing *p)
{
    if (p->count == 0)
        return false;
    load *loads = count_loads(p);
    share_out(loads, p->count, p->lanes);
    bool all = true;
    for (size_t i = 0; i < p->count; i++)
        all &= loads[i].owned == loads[i].share;
    free(loads);
    return all;
}

/* ---- static and birth-order ---- */

static void wish_static(const sl_placing *p, bool *wish)
{
    for (size_t lane = 0; lane < p->lanes; lane++)
        wish[lane] = p->fixed[lane];
}

static void wish_birth_order(const sl_placing *p, const sl_peer *me, bool *wish)
{
    size_t rank = 0;

    for (size_t i = 0; i < p->count; i++) {
        const sl_peer *peer = &p->peers[i];
        if (peer->born != me->born)
            rank += peer->born < me->born;
        else
            rank += peer->session < me->session;
    }
    for (size_t lane = 0; lane < p->lanes; lane++)
        wish[lane] = lane % p->count == rank;
}

/* ---- All of them ---- */

static const sl_peer *find_me(const sl_placing *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->peers[i].session == p->me)
            return &p->peers[i];
    return NULL;
}

void sl_assign_wish(const sl_placing *p, bool *wish)
{
    const sl_peer *me = find_me(p);

    memset(wish, 0, p->lanes * sizeof *wish);
    if (!me && p->how != SL_ASSIGN_STATIC)
        return;
    switch (p->how) {
    case SL_ASSIGN_RING:
        wish_ring(p, wish);
        break;
    case SL_ASSIGN_CLAIM:
        wish_claim(p, wish);
        break;
    case SL_ASSIGN_STATIC:
        wish_static(p, wish);
        break;
    case SL_ASSIGN_BIRTH_ORDER:
        wish_birth_order(p, me, wish);
        break;
    }
}

bool sl_assign_settled(const sl_placing *p)
{
    return p->how != SL_ASSIGN_CLAIM || all_have_their_shares(p);
}

/* ---- Lanes as text ---- */

static bool read_lane(const char **p, const char *end, size_t *lane)
{
    const char *start = *p;

    for (*lane = 0; *p < end && isdigit((unsigned char)**p); (*p)++) {
        size_t digit = (size_t)(**p - '0');
        *lane = *lane > (SIZE_MAX - digit) / 10 ? SIZE_MAX : *lane * 10 + digit;
    }
    return *p > start;
}

/* "7" or "0-15". */
static sl_rc read_piece(sl_str piece, size_t lanes, size_t range[2], sl_err *err)
{
    const char *p = piece.p, *end = piece.p + piece.n;
    int shown = piece.n < 40 ? (int)piece.n : 40;

    bool good = read_lane(&p, end, &range[0]);
    range[1] = range[0];
    if (good && p < end && *p == '-') {
        p++;
        good = read_lane(&p, end, &range[1]);
    }
    if (!good || p < end)
        return sl_fail(err, SL_REFUSED, "'%.*s' is no lane\nhint: give lanes as 0-15,32", shown,
                       piece.p);
    if (range[0] >= lanes || range[1] >= lanes)
        return sl_fail(err, SL_REFUSED,
                       "'%.*s' is out of range: there are %zu lanes\nhint: from 0 to %zu",
                       shown, piece.p, lanes, lanes - 1);
    if (range[0] > range[1])
        return sl_fail(err, SL_REFUSED, "'%.*s' is a reversed range of lanes\nhint: %zu-%zu",
                       shown, piece.p, range[1], range[0]);
    return SL_OK;
}

static sl_str without_blanks(const char *p, size_t n)
{
    while (n > 0 && isspace((unsigned char)*p))
        p++, n--;
    while (n > 0 && isspace((unsigned char)p[n - 1]))
        n--;
    return (sl_str){ p, n };
}

/* Without `fixed`, only looks whether the text will do. */
static sl_rc read_lanes(const char *text, bool *fixed, size_t lanes, sl_err *err)
{
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        size_t range[2];
        sl_rc rc = read_piece(without_blanks(p, n), lanes, range, err);
        if (rc != SL_OK)
            return rc;
        for (size_t lane = range[0]; fixed && lane <= range[1]; lane++)
            fixed[lane] = true;
        p += n;
        if (*p == '\0')
            return SL_OK;
    }
}

sl_rc sl_assign_parse_lanes(const char *text, bool *fixed, size_t lanes, sl_err *err)
{
    assert(lanes > 0);
    sl_rc rc = read_lanes(text, NULL, lanes, err);
    return rc == SL_OK ? read_lanes(text, fixed, lanes, err) : rc;
}
