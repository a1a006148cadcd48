/* SPDX-License-Identifier: Apache-2.0 */
#include "member/member.h"

#include "core/clock.h"
#include "core/mem.h"
#include "core/record.h"
#include "core/stop.h"
#include "member/nodes.h"
#include "member/orphans.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

/* Others see a join or a leave within a beat; the trust lasts for several. */
#define BEAT_MAX_NS (2 * SL_SEC)
/* How often it is tried to gain a lane that another has to give up first. */
#define PLACE_BASE_NS (20 * SL_MS)
#define PLACE_MAX_NS (500 * SL_MS)
#define RECONNECT_BASE_NS (100 * SL_MS)
#define RECONNECT_MAX_NS (SL_SEC)
enum { STOP_PATIENCE_S = 3 };

struct sl_member {
    sl_member_conf conf;
    sl_lanes *lanes;
    sl_stop stop;
    pthread_t thread;
    bool joined;
    bool gave_up; /* a human must act: it waits until it is told to leave */
    sl_db *db;
    sl_node_row me;
    sl_beat last; /* what the last heartbeat said */
    sl_node_list peers;
    int64_t asked_ns; /* right before it */
    int64_t next_beat_ns;
    int64_t rival_until_ns; /* when a node of the same name ends if it does not beat; 0: none */
    unsigned failures;      /* in a row */
    unsigned tries;         /* of placing, since something changed */
    bool alarmed;           /* one that does not beat has been told of */
    bool moved;   /* who lives has changed, and not all that follows from it is done */
    bool settled; /* the others have what they should, too, when they were listed last */
    bool rest;    /* so it is, and what is wished is owned, and nothing else */
    size_t room;  /* lanes that the arrays below have room for */
    int64_t *owners, *list;
    bool *wish, *fixed;
};

const char *sl_assign_name(sl_assign a)
{
    static const char *const names[] = { [SL_ASSIGN_RING] = "ring",
                                         [SL_ASSIGN_CLAIM] = "claim",
                                         [SL_ASSIGN_STATIC] = "static",
                                         [SL_ASSIGN_BIRTH_ORDER] = "birth-order" };
    return names[a];
}

static int64_t margin_ns(const sl_member *m)
{
    int64_t tenth = m->conf.lease_ns / 10;
    return tenth < 2 * SL_SEC ? tenth : 2 * SL_SEC;
}

static int64_t period_ns(const sl_member *m)
{
    int64_t third = m->conf.lease_ns / 3;
    return third < BEAT_MAX_NS ? third : BEAT_MAX_NS;
}

/* ---- Lanes ---- */

static sl_rc set_lanes(sl_member *m, size_t count, sl_err *err)
{
    m->room = count;
    m->owners = sl_realloc(m->owners, count * sizeof *m->owners);
    m->list = sl_realloc(m->list, count * sizeof *m->list);
    m->wish = sl_realloc(m->wish, count * sizeof *m->wish);
    m->fixed = sl_realloc(m->fixed, count * sizeof *m->fixed);
    memset(m->fixed, 0, count * sizeof *m->fixed);
    sl_lanes_void(m->lanes, count);
    m->rest = false;
    if (m->conf.assign != SL_ASSIGN_STATIC || !m->conf.static_lanes)
        return SL_OK;
    return sl_assign_parse_lanes(m->conf.static_lanes, m->fixed, count, err);
}

static void make_wish(sl_member *m)
{
    sl_peer *peers = sl_alloc((m->peers.count + 1) * sizeof *peers);
    sl_placing p = { .how = m->conf.assign,
                     .peers = peers,
                     .me = m->me.session,
                     .lanes = m->room,
                     .owners = m->owners,
                     .fixed = m->fixed };
    for (size_t i = 0; i < m->peers.count; i++) {
        const sl_node_row *n = &m->peers.v[i];
        /* One of our name is a session of ours that died, or it will notice that it is not. */
        if (n->session == m->me.session || strcmp(n->node, m->me.node) != 0)
            peers[p.count++] = (sl_peer){ n->node, n->session, n->born };
    }
    if (m->last.paused)
        memset(m->wish, 0, m->room * sizeof *m->wish);
    else
        sl_assign_wish(&p, m->wish);
    m->settled = sl_assign_settled(&p);
    free(peers);
}

static void granted(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    sl_member *m = ctx;
    sl_lanes_grant(m->lanes, lane, epoch, floor);
    SL_RECORD(SL_REC_GRANTED, m->me.node, (int64_t)lane, SL_NONE, epoch, 0);
}

/* Lanes that leave and that nobody uses any more go back to the database. */
static sl_rc release(sl_member *m, sl_err *err)
{
    size_t n = sl_lanes_left(m->lanes, m->list);
    for (size_t i = 0; i < n; i++)
        SL_RECORD(SL_REC_RELEASED, m->me.node, m->list[i], SL_NONE, 0, 0);
    return n ? sl_lanes_release(m->db, m->list, n, m->me.session, err) : SL_OK;
}

static sl_rc acquire(sl_member *m, sl_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < m->room; i++)
        if (m->wish[i] && !sl_lanes_owned(m->lanes, i) &&
            (m->owners[i] == 0 || m->owners[i] == m->me.session))
            m->list[n++] = (int64_t)i;
    /* A turn of an earlier life may still send: not beside it. */
    if (n == 0 || sl_lanes_stale(m->lanes) > 0)
        return SL_OK;
    return (m->conf.places.count ? sl_lanes_acquire_fenced : sl_lanes_acquire)(
        m->db, m->list, n, m->me.session, granted, m, err);
}

/* Lanes that are ours in the database only: the answer was lost, or they were acquired while their
 * number changed. Nobody uses them, once the turns of an earlier life have ended. */
static sl_rc disown(sl_member *m, sl_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < m->room; i++)
        if (m->owners[i] == m->me.session && !m->wish[i] && !sl_lanes_owned(m->lanes, i))
            m->list[n++] = (int64_t)i;
    if (n == 0 || sl_lanes_stale(m->lanes) > 0)
        return SL_OK;
    for (size_t i = 0; i < n; i++)
        SL_RECORD(SL_REC_RELEASED, m->me.node, m->list[i], SL_NONE, 0, 0);
    return sl_lanes_release(m->db, m->list, n, m->me.session, err);
}

static bool at_rest(const sl_member *m)
{
    for (size_t i = 0; i < m->room; i++)
        if (sl_lanes_owned(m->lanes, i) != m->wish[i])
            return false;
    return m->settled;
}

static sl_rc place(sl_member *m, sl_err *err)
{
    size_t count = m->room;
    sl_rc rc = sl_lanes_list(m->db, m->owners, &count, err);
    if (rc != SL_OK || count != m->room)
        return rc; /* their number has just changed: the next beat tells */
    make_wish(m);
    sl_lanes_wish(m->lanes, m->wish);
    rc = disown(m, err);
    if (rc == SL_OK)
        rc = release(m, err);
    if (rc == SL_OK)
        rc = acquire(m, err);
    m->rest = rc == SL_OK && sl_lanes_stale(m->lanes) == 0 && at_rest(m);
    return rc;
}

/* ---- Life ---- */

static void alarm_all(const sl_member *m)
{
    if (m->conf.alarm)
        m->conf.alarm(m->conf.ctx);
}

/* One that missed its last beats has most likely died: told once, before the lanes and keys that it had can be
 * taken over. */
static void look_for_dying(sl_member *m, int64_t soonest_us)
{
    bool dying = soonest_us < m->conf.lease_ns / 1000 / 3;
    if (dying && !m->alarmed)
        alarm_all(m);
    m->alarmed = dying;
}

static sl_rc join(sl_member *m, sl_err *err)
{
    size_t pruned = 0;
    m->me.session = (int64_t)(sl_random() >> 2) | 1;
    m->last = (sl_beat){ .alive = false };
    m->rival_until_ns = 0;
    m->next_beat_ns = 0;
    m->joined = false;
    sl_lanes_begin(m->lanes, 0);
    sl_rc rc = sl_nodes_join(m->db, &m->me, m->conf.lease_ns, &pruned, err);
    m->joined = rc == SL_OK;
    if (m->joined)
        sl_lanes_begin(m->lanes, m->me.session);
    if (pruned)
        alarm_all(m);
    return rc;
}

/* Two processes of one name: of a restarted node the old row stays for a while and ends; one that is
 * renewed lives. The younger gives way. */
static sl_rc look_for_rival(sl_member *m, int64_t asked_ns, sl_err *err)
{
    int64_t born = 0;
    const sl_node_row *rival = NULL;
    for (size_t i = 0; i < m->peers.count; i++) {
        const sl_node_row *n = &m->peers.v[i];
        if (n->session == m->me.session)
            born = n->born;
        else if (!strcmp(n->node, m->me.node))
            rival = n;
    }
    int64_t was_ns = m->rival_until_ns;
    m->rival_until_ns = rival ? sl_now_ns() + rival->left_us * 1000 : 0;
    if (rival && !was_ns)
        alarm_all(m);
    /* Counted from before the question: an answer that was slow to come must not look like a beat. */
    if (!rival || !was_ns || asked_ns + rival->left_us * 1000 < was_ns + 200 * SL_MS)
        return SL_OK;
    if (born > rival->born)
        return sl_fail(err, SL_OPERATOR,
                       "node name '%.80s' is taken: another process beats under it\nhint: give "
                       "each node a --node of its own",
                       m->me.node);
    sl_log_line(m->conf.log, SL_LOG_WARN, "another process has this node's name", "node",
                m->me.node, NULL);
    return SL_OK;
}

/* Of nodes that are gone, whoever has pruned them. */
static sl_rc list_orphans(sl_member *m, sl_err *err)
{
    char count[24];
    int64_t listed = 0;
    sl_rc rc = m->conf.consumes ? sl_orphans_list(m->db, NULL, &listed, err) : SL_OK;
    snprintf(count, sizeof count, "%lld", (long long)listed);
    if (listed)
        sl_log_line(m->conf.log, SL_LOG_WARN,
                    "messages of a node that is gone may have been delivered, and are dead "
                    "letters now",
                    "messages", count, NULL);
    return rc;
}

/* Do these differ from those that were listed last? Not from the last beat's: who joined between that beat and its list,
 * and has left since, would be taken for one that lives, and its lanes be left to it for ever. */
static bool others_live(const sl_member *m, const sl_beat *now)
{
    int64_t last_born = 0;
    for (size_t i = 0; i < m->peers.count; i++)
        last_born = m->peers.v[i].born > last_born ? m->peers.v[i].born : last_born;
    return now->peers != (int64_t)m->peers.count || now->last_born != last_born;
}

/* A part of it may fail, after the list was read: then the rest of it is still to be done, though nothing has changed
 * since that list. */
static sl_rc look_around(sl_member *m, const sl_beat *now, sl_err *err)
{
    size_t pruned = 0;
    m->moved |= !m->last.alive || others_live(m, now) || now->paused != m->last.paused;
    sl_rc rc = SL_OK;
    if (now->soonest_us <= 0) {
        rc = sl_nodes_prune(m->db, &pruned, err);
        if (pruned)
            sl_log_line(m->conf.log, SL_LOG_WARN, "nodes that did not beat are forgotten",
                        NULL);
    }
    m->moved |= pruned > 0;
    int64_t asked_ns = sl_now_ns();
    bool look = m->moved || m->rival_until_ns;
    if (rc == SL_OK && look)
        rc = sl_nodes_list(m->db, &m->peers, err);
    if (rc == SL_OK && look) {
        m->moved |= others_live(m, now); /* since the beat */
        rc = look_for_rival(m, asked_ns, err);
    }
    if (rc == SL_OK && m->moved)
        rc = list_orphans(m, err);
    if (rc == SL_OK && m->moved) {
        m->moved = m->rest = false;
        m->tries = 0;
    }
    return rc;
}

static sl_rc check_lanes(sl_member *m, int64_t lanes, sl_err *err)
{
    if (!m->last.alive && m->conf.lanes && lanes != m->conf.lanes)
        return sl_fail(
            err, SL_OPERATOR,
            "the table has %lld lanes, this node is told %lld\nhint: leave 'lanes' out, "
            "or change the table with 'sluice lanes --set %lld'",
            (long long)lanes, (long long)m->conf.lanes, (long long)m->conf.lanes);
    return (size_t)lanes == m->room ? SL_OK : set_lanes(m, (size_t)lanes, err);
}

static void count_up(sl_member *m)
{
    int64_t sent = 0;
    int64_t failed = 0;
    int64_t now_ns = sl_now_ns();
    if (!m->conf.counts)
        return;
    m->conf.counts(m->conf.ctx, &sent, &failed);
    if (now_ns > m->asked_ns)
        m->me.per_second =
            (int64_t)((double)(sent - m->me.sent) * 1e9 / (double)(now_ns - m->asked_ns));
    m->me.sent = sent;
    m->me.failed = failed;
}

static sl_rc beat(sl_member *m, sl_err *err)
{
    sl_beat now;
    count_up(m);
    int64_t asked_ns = sl_now_ns();
    sl_rc rc = sl_nodes_beat(m->db, &m->me, m->conf.lease_ns, &now, err);
    if (rc != SL_OK)
        return rc;
    m->next_beat_ns = asked_ns + period_ns(m);
    if (!now.alive) {
        sl_log_line(m->conf.log, SL_LOG_WARN,
                    "this node was forgotten by the others, and begins anew", "node",
                    m->me.node, NULL);
        sl_lanes_trust(m->lanes, 0);
        sl_lanes_void(m->lanes, m->room);
        return join(m, err);
    }
    m->asked_ns = asked_ns;
    sl_lanes_meet(m->lanes, now.peers);
    rc = check_lanes(m, now.lanes, err);
    if (rc == SL_OK)
        sl_lanes_trust(m->lanes, asked_ns + m->conf.lease_ns - margin_ns(m));
    look_for_dying(m, now.soonest_us);
    if (rc == SL_OK)
        rc = look_around(m, &now, err);
    if (rc == SL_OK)
        m->last = now;
    else
        m->next_beat_ns = 0; /* what follows from it is done as soon as it can be */
    if (rc == SL_OK && now.soonest_us < INT64_MAX / 1000 &&
        sl_now_ns() + now.soonest_us * 1000 < m->next_beat_ns)
        m->next_beat_ns =
            sl_now_ns() + (now.soonest_us > 0 ? now.soonest_us * 1000 : 0) + 10 * SL_MS;
    return rc;
}

/* What has been done of each is read again when they are acquired again. They stay ours in the database meanwhile. */
static void void_doubted(sl_member *m)
{
    if (!sl_lanes_doubted(m->lanes))
        return;
    sl_lanes_void(m->lanes, m->room);
    m->rest = false;
    m->tries = 0;
}

/* One round: whatever is due. */
static sl_rc tend(sl_member *m, sl_err *err)
{
    void_doubted(m);
    sl_rc rc = m->db ? SL_OK : m->conf.open(m->conf.ctx, &m->db, m->stop.fd_now, err);
    if (rc == SL_OK && !m->joined)
        rc = join(m, err);
    if (rc == SL_OK && sl_now_ns() >= m->next_beat_ns)
        rc = beat(m, err);
    if (rc == SL_OK && m->conf.own_lanes && m->last.alive && m->room)
        rc = m->rest ? release(m, err) : place(m, err);
    return rc;
}

/* ---- The keeper ---- */

/* Until the next beat, the next try to gain lanes, a lane that has left, or the stop. */
static void rest_until(sl_member *m, int64_t until_ns)
{
    struct pollfd fds[] = { { .fd = m->stop.fd_soon, .events = POLLIN },
                            { .fd = sl_lanes_fd(m->lanes), .events = POLLIN } };
    int64_t left_ns = until_ns - sl_now_ns();
    (void)!poll(fds, m->db && !m->gave_up ? 2 : 1,
                left_ns > 0 ? (int)(left_ns / SL_MS) + 1 : 0);
}

static void give_up(sl_member *m, const sl_err *err)
{
    sl_lanes_trust(m->lanes, 0);
    m->gave_up = true;
    m->conf.failed(m->conf.ctx, err);
}

static int64_t next_ns(sl_member *m)
{
    int64_t until_ns = m->next_beat_ns;
    if (m->rest || !m->conf.own_lanes)
        return until_ns;
    int64_t try_ns = sl_now_ns() + sl_backoff_ns(++m->tries, PLACE_BASE_NS, PLACE_MAX_NS);
    return try_ns < until_ns ? try_ns : until_ns;
}

static void keep(sl_member *m)
{
    sl_err err = { 0 };
    sl_rc rc = tend(m, &err);
    if (rc == SL_OK) {
        m->failures = 0;
        rest_until(m, next_ns(m));
    } else if (rc == SL_AGAIN) {
        sl_log_line(m->conf.log, SL_LOG_WARN, "heartbeat failed, trying again", "error",
                    err.text, NULL);
        sl_db_close(m->db);
        m->db = NULL;
        rest_until(m, sl_now_ns() +
                          sl_backoff_ns(++m->failures, RECONNECT_BASE_NS, RECONNECT_MAX_NS));
    } else if (rc != SL_STOPPED) {
        give_up(m, &err);
    }
}

static void record_leaving(const sl_member *m)
{
    for (size_t i = 0; i < m->room; i++)
        if (sl_lanes_owned(m->lanes, i))
            SL_RECORD(SL_REC_RELEASED, m->me.node, (int64_t)i, SL_NONE, 0, 0);
}

static sl_rc say_goodbye(sl_member *m, sl_err *err)
{
    sl_rc rc = m->db ? SL_OK : m->conf.open(m->conf.ctx, &m->db, m->stop.fd_now, err);
    if (rc == SL_OK && m->conf.places.count && m->conf.clean(m->conf.ctx))
        (void)!sl_fences_forget(m->db, m->me.session, err); /* else others see to it */
    return rc == SL_OK ? sl_nodes_leave(m->db, m->me.session, err) : rc;
}

/* Since the last beat the database may have gone and come back, and nobody would know: then it is tried once more. Without
 * that others wait for the end of a lease for lanes that nobody uses. */
static void leave(sl_member *m)
{
    sl_err ignored;
    bool old = m->db != NULL;
    record_leaving(m);
    if (!m->joined || say_goodbye(m, &ignored) != SL_AGAIN || !old ||
        sl_stop_level_of(&m->stop) == SL_STOP_NOW)
        return;
    sl_db_close(m->db);
    m->db = NULL;
    (void)!say_goodbye(m, &ignored); /* else it is pruned in time */
}

static void *keeper_main(void *arg)
{
    sl_member *m = arg;
    while (sl_stop_level_of(&m->stop) == SL_GO)
        if (m->gave_up)
            rest_until(m, sl_now_ns() + SL_SEC);
        else
            keep(m);
    leave(m);
    return NULL;
}

/* ---- Joining and leaving ---- */

static void member_free(sl_member *m)
{
    sl_db_close(m->db);
    sl_node_list_fini(&m->peers);
    sl_lanes_free(m->lanes);
    sl_stop_fini(&m->stop);
    free(m->owners);
    free(m->list);
    free(m->wish);
    free(m->fixed);
    free(m);
}

/* The first round on the caller's thread. */
static sl_rc begin(sl_member *m, int wake_fd, sl_err *err)
{
    sl_rc rc = m->conf.open(m->conf.ctx, &m->db, wake_fd, err);
    if (rc == SL_OK)
        rc = tend(m, err);
    if (rc != SL_OK && !(rc == SL_AGAIN && m->conf.patient))
        return rc;
    /* Its own wake-up from now on. */
    sl_db_close(m->db);
    m->db = NULL;
    int e = pthread_create(&m->thread, NULL, keeper_main, m);
    return e == 0 ? SL_OK : sl_fail(err, SL_AGAIN, "cannot start a thread: %s", strerror(e));
}

sl_rc sl_member_join(sl_member **out, const sl_member_conf *conf, int wake_fd, sl_err *err)
{
    sl_member *m = sl_alloc(sizeof *m);
    m->conf = *conf;
    m->me = (sl_node_row){
        .node = conf->node,
        .strategy = conf->strategy,
        .assign = conf->own_lanes ? sl_assign_name(conf->assign) : "",
        .workers = conf->workers,
        .places = conf->places,
    };
    m->lanes = sl_lanes_new();
    sl_rc rc = sl_stop_init(&m->stop)
                   ? begin(m, wake_fd, err)
                   : sl_fail(err, SL_AGAIN, "cannot create a descriptor: %s", strerror(errno));
    if (rc == SL_OK) {
        *out = m;
        return SL_OK;
    }
    sl_err ignored;
    if (m->db && m->joined)
        (void)!sl_nodes_leave(m->db, m->me.session, &ignored);
    member_free(m);
    return rc;
}

/* The keeper leaves. A database that does not answer must not keep the node from ending. */
static void stop_keeper(sl_member *m)
{
    struct timespec until;
    sl_stop_ask(&m->stop, SL_STOP_SOON);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_PATIENCE_S;
    if (pthread_timedjoin_np(m->thread, NULL, &until) == 0)
        return;
    sl_stop_ask(&m->stop, SL_STOP_NOW);
    pthread_join(m->thread, NULL);
}

void sl_member_leave(sl_member *m)
{
    if (!m)
        return;
    stop_keeper(m);
    member_free(m);
}

sl_lanes *sl_member_lanes(const sl_member *m)
{
    return m->lanes;
}
