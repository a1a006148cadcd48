/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks with a fence: in which order a turn asks the sink, the database and the table. */
#include "relay/relay.h"

#include "core/buf.h"
#include "core/clock.h"
#include "unit/unit.h"

static sl_buf said; /* "ready lives take send" */
static sl_readiness readiness;
static int doubts; /* polls until it is known */
static bool lives;
static int64_t session;
static int64_t session_later; /* once something was taken; 0: the same */
static bool database_fails;
static sl_stop stop;
static sl_counts counts;
static sl_relay relay;
static sl_route route;
static sl_err err;
static sl_verdict settled;
static bool takes_nothing;

static void say(const char *word)
{
    sl_buf_printf(&said, "%s%s", said.n ? " " : "", word);
}

/* ---- A claim of one message ---- */

static sl_rc claim_take(sl_claim *c, sl_batch *b, int64_t max, sl_err *e)
{
    (void)c, (void)max, (void)e;
    say("take");
    if (takes_nothing)
        return SL_OK;
    sl_msg *m = sl_batch_add(b);
    m->id = m->attempt = 1;
    session = session_later ? session_later : session;
    return SL_OK;
}

static sl_rc claim_hold(sl_claim *c, const sl_batch *b, sl_err *e)
{
    (void)c, (void)b, (void)e;
    return SL_OK;
}

static int64_t claim_trusted(const sl_claim *c)
{
    (void)c;
    return INT64_MAX;
}

static sl_rc claim_settle(sl_claim *c, sl_batch *b, size_t *lost, sl_err *e)
{
    (void)c;
    *lost = 0;
    settled = b->msgs[0].verdict;
    return database_fails ? sl_fail(e, SL_AGAIN, "gone") : SL_OK;
}

static const sl_claim_ops claim_ops = { .name = "fake",
                                        .take = claim_take,
                                        .hold = claim_hold,
                                        .trusted_ns = claim_trusted,
                                        .settle = claim_settle };

/* ---- A sink ---- */

static sl_batch *batch;
static sl_msg *held;

static sl_readiness sink_ready(sl_sink *s, int64_t for_session, int64_t timeout_ns,
                               char why[160])
{
    (void)s, (void)timeout_ns;
    assert_int_equal(for_session, session);
    say("ready");
    if (readiness == SL_READY_NOT) {
        snprintf(why, 160, "no brokers");
        sl_stop_ask(&stop, SL_STOP_SOON); /* else it is asked for seconds */
    }
    return readiness;
}

static void sink_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    (void)s;
    say("send");
    batch = b;
    held = m;
}

static void sink_poll(sl_sink *s, int64_t timeout_ns)
{
    (void)s, (void)timeout_ns;
    if (doubts > 0) {
        say("poll");
        relay.send_max_ns = 0;
        doubts--;
        return;
    }
    if (held)
        sl_msg_settle(batch, held, SL_SENT, SL_NONE);
    held = NULL;
}

static bool sink_in_doubt(const sl_sink *s)
{
    (void)s;
    return held && relay.send_max_ns == 0;
}

static void sink_recall(sl_sink *s)
{
    (void)s;
    if (held)
        sl_msg_settle(batch, held, SL_UNKNOWN, SL_NONE);
    held = NULL;
}

static const sl_sink_ops sink_ops = { .scheme = "fake",
                                      .in_order = true,
                                      .submit = sink_submit,
                                      .poll = sink_poll,
                                      .recall = sink_recall,
                                      .ready = sink_ready,
                                      .in_doubt = sink_in_doubt };

/* ---- The node ---- */

static int64_t node_session(void *ctx)
{
    (void)ctx;
    return session;
}

static sl_rc node_lives(void *ctx, int64_t asked, bool *yes, sl_err *e)
{
    (void)ctx, (void)e;
    assert_int_equal(asked, session);
    say("lives");
    *yes = lives;
    return SL_OK;
}

static sl_claim claim = { &claim_ops };
static sl_sink sink = { &sink_ops };
static sl_way way;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    readiness = SL_READY;
    doubts = 0;
    lives = true;
    session = 7;
    session_later = 0;
    database_fails = takes_nothing = false;
    held = NULL;
    memset(&counts, 0, sizeof counts);
    route = (sl_route){ .name = "*",
                        .policy = { SL_BLOCK, 10, SL_SEC, 10 * SL_SEC },
                        .breaker = sl_breaker_new(3600 * SL_SEC, 3600 * SL_SEC) };
    way = (sl_way){ .route = &route, .sink = &sink };
    relay = (sl_relay){ .claim = &claim,
                        .ways = &way,
                        .way_count = 1,
                        .terms = { NULL, node_session, node_lives },
                        .stop = &stop,
                        .counts = &counts,
                        .batch_max = 10,
                        .send_max_ns = 20 * SL_SEC };
    sl_batch_init(&relay.batch);
    return sl_stop_init(&stop) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_relay_fini(&relay);
    sl_breaker_free(route.breaker);
    sl_stop_fini(&stop);
    sl_buf_fini(&said);
    return 0;
}

static void expect_turn(sl_rc rc, const char *words)
{
    sl_buf_reset(&said);
    sl_batch_reset(&relay.batch);
    assert_int_equal(sl_relay_turn(&relay, &err), rc);
    assert_string_equal(sl_buf_text(&said), words);
}

static void the_sink_is_ready_before_anything_is_taken(void **state)
{
    (void)state;
    expect_turn(SL_OK, "ready take send");
    assert_int_equal(settled, SL_SENT);
}

static void say_took(void *ctx)
{
    (void)ctx;
    say("took");
}

/* Whoever watches for others must know before a sink keeps the thread. */
static void it_is_told_what_is_taken_before_it_is_sent(void **state)
{
    (void)state;
    relay.took = say_took;
    expect_turn(SL_OK, "ready take took send");
    takes_nothing = true;
    expect_turn(SL_OK, "ready take");
}

static void a_new_name_is_confirmed_by_the_database(void **state)
{
    (void)state;
    readiness = SL_READY_ANEW;
    expect_turn(SL_OK, "ready lives take send");
    readiness = SL_READY;
    expect_turn(SL_OK, "ready take send");
}

/* It woke up, and others have taken over: to use its name anew must not let it in. */
static void who_is_no_node_takes_nothing(void **state)
{
    (void)state;
    readiness = SL_READY_ANEW;
    lives = false;
    expect_turn(SL_OK, "ready lives");
    readiness = SL_READY; /* the name is, but was never confirmed */
    expect_turn(SL_OK, "ready lives");
    lives = true;
    expect_turn(SL_OK, "ready lives take send");
}

static void without_a_session_nothing_is_asked(void **state)
{
    (void)state;
    session = 0;
    expect_turn(SL_OK, "");
}

/* The name is that of a session that is over. */
static void what_was_taken_as_another_is_not_sent(void **state)
{
    (void)state;
    session_later = 8;
    expect_turn(SL_OK, "ready take");
    assert_int_equal(settled, SL_RELEASED);
}

static void a_sink_that_is_not_ready_is_down(void **state)
{
    (void)state;
    readiness = SL_READY_NOT;
    expect_turn(SL_OK, "ready");
    assert_string_equal(way.why, "no brokers");
    expect_turn(SL_OK, ""); /* the breaker is open */
    assert_true(relay.wait_ns > 0);
}

static void without_a_fence_nothing_is_asked(void **state)
{
    (void)state;
    relay.terms = (sl_terms){ 0 };
    expect_turn(SL_OK, "take send");
}

static void doubt_is_waited_for_whatever_the_time(void **state)
{
    (void)state;
    doubts = 3;
    expect_turn(SL_OK, "ready take send poll poll poll");
    assert_int_equal(settled, SL_SENT);
    assert_false(relay.unclean);
}

static void who_stops_now_leaves_doubt_behind(void **state)
{
    (void)state;
    doubts = 1000;
    relay.send_max_ns = 0;
    sl_stop_ask(&stop, SL_STOP_NOW);
    relay.session = session;
    held = sl_batch_add(&relay.batch);
    sl_relay_find_out(&relay);
    assert_true(relay.unclean);
    held = NULL;
}

static void what_must_not_be_sent_again_is_told_of(void **state)
{
    (void)state;
    database_fails = true;
    expect_turn(SL_AGAIN, "ready take send");
    assert_false(relay.unsettled);
    relay.exact = true;
    expect_turn(SL_AGAIN, "ready take send");
    assert_true(relay.unsettled);
    database_fails = false;
    expect_turn(SL_OK, "ready take send");
    assert_false(relay.unsettled);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_told_what_is_taken_before_it_is_sent),
        TEST(the_sink_is_ready_before_anything_is_taken),
        TEST(a_new_name_is_confirmed_by_the_database),
        TEST(who_is_no_node_takes_nothing),
        TEST(without_a_session_nothing_is_asked),
        TEST(what_was_taken_as_another_is_not_sent),
        TEST(a_sink_that_is_not_ready_is_down),
        TEST(without_a_fence_nothing_is_asked),
        TEST(doubt_is_waited_for_whatever_the_time),
        TEST(who_stops_now_leaves_doubt_behind),
        TEST(what_must_not_be_sent_again_is_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
