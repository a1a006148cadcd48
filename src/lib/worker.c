/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker: its session, one turn after the other, and what it does when there is nothing to do, or when something
 * fails.
 */
#include "lib/worker.h"

#include "core/clock.h"
#include "lib/conf.h"
#include "lib/sent.h"
#include "lib/wake.h"

#include <assert.h>
#include <time.h>

/* A restarted database is found again within seconds, and not hammered meanwhile. */
#define RECONNECT_BASE_NS (100 * SL_MS)
#define RECONNECT_MAX_NS (3 * SL_SEC)
/* A sink that takes longer is no quick one: to wait for a settle, too, is nothing to it. */
#define QUICK_NS (10 * SL_MS)
#define IDLE_BASE_NS (5 * SL_MS)
#define DRAIN_MAX_NS (100 * SL_MS)
/* While a sink is down, a worker looks this often whether that is still so. */
#define WAIT_MAX_NS (100 * SL_MS)
/* With drain it is given up after so many tries: about two seconds. */
enum { DRAIN_PROBES = 4 };
/* When told to stop: so often it is tried to settle what must not be sent again. */
enum { LAST_TRIES = 5 };

/* ---- One worker's open handles ---- */

typedef struct session {
    sl_db *db;
    sl_crew *crew;
    sl_relay relay;
    sl_wake wake;
    bool watching; /* the table, for all workers */
} session;

/* Of a node that sends under names of its own. */
static int64_t session_now(void *ctx)
{
    const session *s = ctx;
    return sl_lanes_session(sl_member_lanes(s->crew->member));
}

static sl_rc session_lives(void *ctx, int64_t id, bool *lives, sl_err *err)
{
    const session *s = ctx;
    return sl_fences_lives(s->db, id, lives, err);
}

/* Somebody else may watch while this one works. */
static void hand_over(void *ctx)
{
    session *s = ctx;
    if (s->watching)
        sl_idle_hand_over(s->crew->idle);
    else
        sl_idle_pass_on(s->crew->idle);
    s->watching = false;
}

static void session_close(session *s)
{
    hand_over(s);
    if (s->relay.claim)
        s->relay.claim->ops->close(s->relay.claim);
    sl_ways_close(s->relay.ways, s->relay.way_count);
    sl_db_close(s->db);
    sl_relay_fini(&s->relay);
}

static sl_rc session_open(session *s, sl_worker *w, int wake_fd, sl_err *err)
{
    sl_crew *crew = w->crew;
    const sl_settings *set = crew->settings;
    sl_claim_conf conf;

    *s = (session){ .crew = crew,
                    .relay = { .took = hand_over,
                               .took_ctx = s,
                               .exact = sl_settings_exact(set),
                               .stop = crew->stop,
                               .counts = &w->counts,
                               .care = crew->care,
                               .journal = crew->journal,
                               .unrouted = crew->unrouted,
                               .log = crew->log,
                               .worker = w->name,
                               .way_count = crew->routes.count,
                               .batch_max = set->batch,
                               .send_max_ns = set->lease_ns,
                               .quick_ns = QUICK_NS } };
    if (crew->places.count && crew->member)
        s->relay.terms = (sl_terms){ s, session_now, session_lives };
    sl_batch_init(&s->relay.batch);
    sl_conf_claim(&conf, set, w->name);
    conf.lanes = crew->member ? sl_member_lanes(crew->member) : NULL; /* NULL: a rehearsal */
    conf.again = w->opened;
    w->opened = crew->member != NULL;
    const sl_claim_ops *strategy = sl_claim_named(set->strategy);
    assert(strategy); /* sl_settings_check */
    sl_rc rc = sl_conf_open_node(&s->db, set, &crew->names, wake_fd, err);
    if (rc == SL_OK)
        rc = sl_claim_open(&s->relay.claim, strategy, s->db, &conf, err);
    if (rc == SL_OK)
        rc = sl_ways_open(&s->relay.ways, &crew->routes, crew->make, crew->make_ctx, w->name,
                          crew->log, err);
    if (rc != SL_OK)
        session_close(s);
    return rc;
}

/* ---- The loop ---- */

/* Until there may be something to do. Those who are awake share what is there. */
static void rest(sl_worker *w)
{
    sl_crew *crew = w->crew;
    sl_lanes *lanes = sl_member_lanes(crew->member);
    sl_lanes_rest(lanes, true);
    sl_idle_sleep(crew->idle, (size_t)(w - crew->workers), crew->stop);
    sl_lanes_rest(lanes, false);
}

/* One watches the table for all until there is something, the others sleep. */
static sl_rc watch(session *s, sl_worker *w, sl_err *err)
{
    sl_crew *crew = w->crew;
    bool any = false;
    sl_rc rc = SL_OK;
    if (!sl_idle_watch(crew->idle)) {
        rest(w);
        return SL_OK;
    }
    while (rc == SL_OK && !any &&
           !sl_stop_sleep(crew->stop, sl_backoff_ns(1, crew->settings->poll_ns, INT64_MAX)))
        rc = s->relay.claim->ops->peek(s->relay.claim, &any, err);
    sl_idle_ring(crew->idle);
    return rc;
}

/* What is there and not for us to take now, since others deliver it, is looked at again after growing
 * pauses. Whether there is any is not known before it is quiet. */
static int64_t doze_ns(const sl_worker *w, unsigned tries, bool any, unsigned pauses)
{
    int64_t poll_ns = w->crew->settings->poll_ns;
    if (!sl_rhythm_quiet(&w->crew->rhythm, sl_now_ns()))
        return sl_backoff_ns(tries, IDLE_BASE_NS,
                             poll_ns < SL_RHYTHM_QUIET_NS ? poll_ns : SL_RHYTHM_QUIET_NS);
    return any ? sl_backoff_ns(pauses, IDLE_BASE_NS, poll_ns)
               : sl_backoff_ns(1, poll_ns, INT64_MAX);
}

/* A node that the others may have forgotten takes nothing, whatever the strategy. */
static sl_rc take_turn(session *s, const sl_worker *w, sl_err *err)
{
    bool trusted = sl_now_ns() < sl_lanes_trusted_ns(sl_member_lanes(w->crew->member));
    sl_rc rc = trusted ? sl_relay_turn(&s->relay, err) : sl_relay_rest(&s->relay, err);
    if (s->relay.found > 0)
        sl_rhythm_found(&w->crew->rhythm, sl_now_ns());
    return rc;
}

/* The next commit is a moment away: producers need not tell. */
static sl_rc nap(session *s, const sl_worker *w, sl_err *err)
{
    sl_rc rc = sl_wake_disarm(&s->wake, s->db, err);
    if (rc == SL_OK)
        sl_stop_sleep(w->crew->stop, SL_RHYTHM_NAP_NS);
    return rc;
}

/* Between arming and sleeping. Who peeks at the whole table passes by all that has gone of late and is not cleaned up
 * yet, which may take long; a turn knows where to go on. *done: something was found. */
static sl_rc look(session *s, sl_worker *w, bool *any, bool *done, sl_err *err)
{
    if (sl_rhythm_quiet(&w->crew->rhythm, sl_now_ns()))
        return s->relay.claim->ops->peek(s->relay.claim, any, err);
    sl_rc rc = take_turn(s, w, err);
    *done = s->relay.found > 0 || s->relay.wait_ns > 0;
    return rc;
}

/* Armed first, then a look, then sleep: what was committed before is seen, and what is committed after that
 * is heard of. Who wakes up stays armed for one turn: it may be all that there is to do, and if so it was the look. */
static sl_rc doze_armed(session *s, sl_worker *w, unsigned *pauses, sl_err *err)
{
    bool any = false;
    bool done = false;
    sl_rc rc = SL_OK;
    s->wake.woken = false;
    for (unsigned tries = 1; rc == SL_OK && !any && !done && !s->wake.woken &&
                             sl_stop_level_of(w->crew->stop) == SL_GO;
         tries++) {
        bool looked =
            tries == 1 && s->wake.mine && !sl_rhythm_quiet(&w->crew->rhythm, sl_now_ns());
        rc = sl_wake_arm(&s->wake, s->db, err);
        if (rc == SL_OK && !looked)
            rc = look(s, w, &any, &done, err);
        if (rc == SL_OK && !done && !(any && *pauses == 0))
            rc = sl_wake_wait(&s->wake, s->db, w->crew->stop->fd_soon, tries,
                              doze_ns(w, tries, any, *pauses), err);
    }
    *pauses = s->wake.woken || done ? 0 : *pauses + any;
    return rc;
}

/* One waits for all, the others sleep. Who naps goes on watching, until a turn has taken something. */
static sl_rc doze(session *s, sl_worker *w, unsigned *pauses, sl_err *err)
{
    s->watching = s->watching || sl_idle_watch(w->crew->idle);
    if (!s->watching) { /* who watches arms, or naps */
        sl_rc rc = sl_wake_disarm(&s->wake, s->db, err);
        if (rc == SL_OK)
            rest(w);
        return rc;
    }
    if (sl_rhythm_soon(&w->crew->rhythm, sl_now_ns()))
        return nap(s, w, err);
    sl_rc rc = doze_armed(s, w, pauses, err);
    hand_over(s);
    return rc;
}

/* With one turn after the other there is no need to be woken. What one worker took in a turn that was not full
 * was all that it could take: nobody has to help. */
static sl_rc stay_awake(session *s, sl_worker *w, unsigned turns, sl_err *err)
{
    if (turns > 1 || (int64_t)s->relay.found >= s->relay.batch_max)
        sl_idle_call(w->crew->idle);
    return turns > 1 ? sl_wake_disarm(&s->wake, s->db, err) : SL_OK;
}

/* Nothing was found: look again after growing pauses, up to `poll`. *done: and nothing is left. */
static sl_rc idle(session *s, sl_worker *w, unsigned *pauses, bool *done, sl_err *err)
{
    const sl_settings *set = w->crew->settings;
    bool any = true;
    if (set->drain) {
        sl_rc rc = s->relay.claim->ops->peek(s->relay.claim, &any, err);
        *done = rc == SL_OK && !any;
        if (rc != SL_OK || *done)
            return rc;
    }
    if (w->crew->notify && !set->drain)
        return doze(s, w, pauses, err);
    int64_t pause_ns = sl_backoff_ns(++*pauses, IDLE_BASE_NS, set->poll_ns);
    if (pause_ns > set->poll_ns / 2 && !set->drain)
        return watch(s, w, err);
    sl_stop_sleep(w->crew->stop,
                  pause_ns < DRAIN_MAX_NS || !set->drain ? pause_ns : DRAIN_MAX_NS);
    return SL_OK;
}

/* The sink is down. Who was to deliver what is there and end does not wait for long. */
static sl_rc wait_for_sink(session *s, sl_worker *w, sl_err *err)
{
    const sl_way *way = &s->relay.ways[0];
    int64_t wait_ns = s->relay.wait_ns < WAIT_MAX_NS ? s->relay.wait_ns : WAIT_MAX_NS;
    if (w->crew->settings->drain && sl_breaker_failures(way->route->breaker) >= DRAIN_PROBES)
        return sl_fail(err, SL_OPERATOR,
                       "the sink is down%s%s\nhint: what is left stays in the table",
                       way->why[0] ? ": " : "", way->why);
    sl_stop_sleep(w->crew->stop, wait_ns);
    return SL_OK;
}

/* Turns until told to stop, until nothing is left (drain), or until something fails. */
static sl_rc turn_until(session *s, sl_worker *w, sl_err *err)
{
    unsigned pauses = 0;
    unsigned turns = 0; /* in a row that found something */
    bool done = false;
    sl_rc rc = SL_OK;
    while (rc == SL_OK && !done && sl_stop_level_of(w->crew->stop) == SL_GO) {
        rc = take_turn(s, w, err);
        if (rc != SL_OK)
            return rc;
        w->failures = 0;
        if (s->relay.wait_ns) {
            rc = wait_for_sink(s, w, err);
            continue;
        }
        turns = s->relay.found > 0 ? turns + 1 : 0;
        if (turns > 0)
            pauses = 0;
        if (turns > 0 && w->crew->notify)
            rc = stay_awake(s, w, turns, err);
        else if (turns == 0)
            rc = idle(s, w, &pauses, &done, err);
    }
    if (rc == SL_OK)
        rc = sl_relay_rest(&s->relay, err);
    if (rc == SL_OK)
        rc = sl_wake_disarm(&s->wake, s->db, err);
    return rc;
}

/* What is delivered and must not be sent again could not be settled, or nobody knows: nobody gets at it until it is. If
 * the node ends before that, whoever takes over finds it out at the sink. */
static void settle_again(session *s, const sl_worker *w, sl_rc rc)
{
    sl_stop *stop = w->crew->stop;
    unsigned last = 0;
    for (unsigned tries = 1;
         rc == SL_AGAIN && sl_stop_level_of(stop) < SL_STOP_NOW && last < LAST_TRIES; tries++) {
        size_t lost;
        sl_err err = { 0 };
        if (sl_stop_sleep(stop, sl_backoff_ns(tries, RECONNECT_BASE_NS, RECONNECT_MAX_NS)) &&
            last++)
            nanosleep(&(struct timespec){ .tv_nsec = RECONNECT_BASE_NS }, NULL);
        sl_db_close(s->db);
        s->db = NULL;
        rc = sl_conf_open_node(&s->db, w->crew->settings, &w->crew->names, stop->fd_now, &err);
        if (rc == SL_OK)
            rc =
                s->relay.claim->ops->again(s->relay.claim, s->db, &s->relay.batch, &lost, &err);
    }
    s->relay.unsettled = rc != SL_OK;
    sl_log_line(w->crew->log, rc == SL_OK ? SL_LOG_INFO : SL_LOG_WARN,
                rc == SL_OK ? "what was delivered is settled"
                            : "what was delivered is not settled: who takes over will",
                "worker", w->name, NULL);
}

static sl_rc work(sl_worker *w, sl_err *err)
{
    session s;
    sl_rc rc = session_open(&s, w, w->crew->stop->fd_now, err);
    if (rc != SL_OK)
        return rc;
    if (w->failures)
        sl_log_line(w->crew->log, SL_LOG_INFO, "turns go on", "worker", w->name, NULL);
    rc = turn_until(&s, w, err);
    if (s.relay.unsettled)
        settle_again(&s, w, rc);
    if (s.relay.unclean || s.relay.unsettled)
        w->crew->unclean = true;
    session_close(&s);
    return rc;
}

void *sl_worker_main(void *arg)
{
    sl_worker *w = arg;
    sl_crew *crew = w->crew;
    for (;;) {
        sl_err err = { 0 };
        sl_rc rc = work(w, &err);
        if (rc == SL_OK || sl_stop_level_of(crew->stop) != SL_GO)
            break;
        if (rc != SL_AGAIN) {
            sl_crew_fail(crew, &err);
            break;
        }
        w->counts.reconnects++;
        sl_log_line(crew->log, SL_LOG_WARN, "turn failed, trying again", "worker", w->name,
                    "error", err.text, NULL);
        if (sl_stop_sleep(crew->stop,
                          sl_backoff_ns(++w->failures, RECONNECT_BASE_NS, RECONNECT_MAX_NS)))
            break;
    }
    sl_idle_ring(crew->idle); /* it may have been the one that watches */
    if (--crew->alive == 0)
        sl_stop_ask(&crew->ended, SL_STOP_SOON);
    return NULL;
}

sl_rc sl_worker_rehearse(sl_worker *w, int wake_fd, sl_err *err)
{
    sl_crew *crew = w->crew;
    session s;
    sl_rc rc = session_open(&s, w, wake_fd, err);
    if (rc != SL_OK)
        return rc;
    rc = crew->settings->retention_ns > 0 ? sl_sent_rehearse(s.db, err)
                                          : sl_sent_any(s.db, &crew->kept, err);
    if (rc == SL_OK && crew->places.count)
        rc = sl_fences_rehearse(s.db, err);
    session_close(&s);
    return rc;
}
