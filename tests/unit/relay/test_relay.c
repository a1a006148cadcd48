/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relay.h"

#include "core/clock.h"
#include "unit/unit.h"

enum { MOST = 20 };

/* ---- A claim and a sink that do as they are told, and write down what they were asked ---- */

typedef struct fake_claim {
    sl_claim base;
    size_t gives; /* messages at each take */
    sl_rc take_rc, hold_rc, settle_rc;
    int hold_fails_at; /* the n-th hold; 0: never */
    int trust_calls;   /* trusted for so many questions, then no more; -1: always */
    size_t lost;
    int takes, holds, settles;
    int64_t max;
    sl_verdict verdicts[MOST]; /* as settled */
    size_t settled;
} fake_claim;

typedef enum style { AT_SUBMIT, AT_POLL, AT_RECALL, NEVER } style;

typedef struct fake_sink {
    sl_sink base;
    style style;
    sl_verdict verdict;
    size_t per_poll;
    sl_stop *stops; /* asked for by the first poll */
    sl_stop_level level;
    sl_batch *batch;
    sl_msg *held[MOST];
    size_t nheld;
    int submits, polls, recalls;
    int64_t longest_ns; /* poll */
    useconds_t delay_us;
} fake_sink;

/* One that need not wait for the answer to a settle. */
static struct {
    bool refuses;
    sl_rc rc;
    int posts, answers;
    size_t lost;
    const sl_batch *batch; /* that is on its way; or NULL */
    size_t count;          /* of its messages */
    bool behind;           /* the last take came behind it */
} mail;

static sl_rc claim_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    fake_claim *c = (fake_claim *)base;
    c->takes++;
    c->max = max;
    mail.behind = mail.batch != NULL;
    assert_int_equal(b->count, 0);
    for (size_t i = 0; i < c->gives; i++)
        sl_batch_add(b)->id = (int64_t)i + 1;
    return c->take_rc == SL_OK ? SL_OK : sl_fail(err, c->take_rc, "take failed");
}

static sl_rc claim_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    fake_claim *c = (fake_claim *)base;
    assert_int_equal(b->count, c->gives);
    if (++c->holds == c->hold_fails_at)
        return sl_fail(err, c->hold_rc, "hold failed");
    return SL_OK;
}

static int64_t claim_trusted(const sl_claim *base)
{
    fake_claim *c = (fake_claim *)(uintptr_t)base;
    if (c->trust_calls > 0)
        c->trust_calls--;
    else if (c->trust_calls == 0)
        return 0;
    return INT64_MAX;
}

static sl_rc claim_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    fake_claim *c = (fake_claim *)base;
    c->settles++;
    c->settled = b->count;
    for (size_t i = 0; i < b->count; i++)
        c->verdicts[i] = b->msgs[i].verdict;
    *lost = c->lost;
    return c->settle_rc == SL_OK ? SL_OK : sl_fail(err, c->settle_rc, "settle failed");
}

static sl_rc claim_post(sl_claim *base, sl_batch *b, bool *posted, sl_err *err)
{
    (void)base;
    (void)err;
    assert_null(mail.batch);
    assert_int_equal(sl_batch_count_of(b, SL_SENT), b->count);
    *posted = !mail.refuses;
    mail.posts += *posted;
    mail.batch = *posted ? b : NULL;
    mail.count = b->count;
    return SL_OK;
}

static sl_rc claim_answered(sl_claim *base, size_t *lost, sl_err *err)
{
    (void)base;
    assert_non_null(mail.batch);
    assert_int_equal(mail.batch->count, mail.count); /* it lived until now */
    mail.batch = NULL;
    mail.answers++;
    *lost = mail.lost;
    return mail.rc == SL_OK ? SL_OK : sl_fail(err, mail.rc, "not settled");
}

static const sl_claim_ops posting_ops = { .name = "posts",
                                          .take = claim_take,
                                          .hold = claim_hold,
                                          .trusted_ns = claim_trusted,
                                          .settle = claim_settle,
                                          .post = claim_post,
                                          .answered = claim_answered };

static const sl_claim_ops claim_ops = { .name = "fake",
                                        .take = claim_take,
                                        .hold = claim_hold,
                                        .trusted_ns = claim_trusted,
                                        .settle = claim_settle };

static void sink_submit(sl_sink *base, sl_batch *b, sl_msg *m)
{
    fake_sink *s = (fake_sink *)base;
    s->submits++;
    s->batch = b;
    if (s->style == AT_SUBMIT)
        sl_msg_settle(b, m, s->verdict, SL_NONE);
    else
        s->held[s->nheld++] = m;
}

static void sink_poll(sl_sink *base, int64_t timeout_ns)
{
    fake_sink *s = (fake_sink *)base;
    s->polls++;
    if (timeout_ns > s->longest_ns)
        s->longest_ns = timeout_ns;
    if (s->stops)
        sl_stop_ask(s->stops, s->level ? s->level : SL_STOP_NOW);
    if (s->style != AT_POLL)
        usleep(1000);
    usleep(s->delay_us);
    for (size_t i = 0; s->style == AT_POLL && i < s->per_poll && s->nheld > 0; i++)
        sl_msg_settle(s->batch, s->held[--s->nheld], s->verdict, SL_NONE);
}

static void sink_recall(sl_sink *base)
{
    fake_sink *s = (fake_sink *)base;
    s->recalls++;
    while (s->style != NEVER && s->nheld > 0)
        sl_msg_settle(s->batch, s->held[--s->nheld], SL_UNKNOWN, SL_STR("recalled"));
}

static const sl_sink_ops sink_ops = {
    .scheme = "fake", .submit = sink_submit, .poll = sink_poll, .recall = sink_recall
};

/* ---- Around each test ---- */

static fake_claim claim;
static fake_sink sink;
static sl_stop stop;
static sl_counts counts;
static sl_relay relay;
static sl_route route;
static sl_way way;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    claim = (fake_claim){ .base = { &claim_ops }, .gives = 3, .trust_calls = -1 };
    sink = (fake_sink){ .base = { &sink_ops }, .verdict = SL_SENT, .per_poll = 1 };
    memset(&counts, 0, sizeof counts);
    route = (sl_route){ .name = "all",
                        .policy = { SL_SKIP, 10, SL_SEC, SL_SEC },
                        .breaker = sl_breaker_new(SL_SEC, SL_SEC) };
    way = (sl_way){ .route = &route, .sink = &sink.base };
    relay = (sl_relay){ .claim = &claim.base,
                        .ways = &way,
                        .way_count = 1,
                        .stop = &stop,
                        .counts = &counts,
                        .batch_max = 12,
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
    return 0;
}

static void turn(sl_rc want)
{
    sl_rc rc = sl_relay_turn(&relay, &err);
    if (rc != want)
        fail_msg("%s: %s", sl_rc_name(rc), err.text);
}

static void expect_verdicts(sl_verdict first, size_t n, sl_verdict rest)
{
    assert_int_equal(claim.settles, 1);
    assert_int_equal(claim.settled, claim.gives);
    for (size_t i = 0; i < claim.gives; i++)
        assert_int_equal(claim.verdicts[i], i < n ? first : rest);
}

/* ---- Turns in which all goes well ---- */

static void nothing_there_is_nothing_done(void **state)
{
    (void)state;
    claim.gives = 0;
    turn(SL_OK);
    assert_int_equal(relay.batch.count, 0);
    assert_int_equal(claim.max, 12);
    assert_int_equal(claim.settles + sink.submits + sink.recalls, 0);
    assert_int_equal(sink.polls, 1); /* what its library has to say must not pile up */
    assert_int_equal(sink.longest_ns, 0);
    assert_int_equal(counts.turns, 0);
}

static void a_quick_sink_is_not_polled(void **state)
{
    (void)state;
    turn(SL_OK);
    expect_verdicts(SL_SENT, 3, SL_SENT);
    assert_int_equal(sink.submits, 3);
    assert_int_equal(sink.polls, 0);
    assert_int_equal(sink.recalls, 1); /* always: it may not keep a byte */
    assert_int_equal(relay.batch.count, 3);
    assert_int_equal(counts.taken, 3);
    assert_int_equal(counts.sent, 3);
    assert_int_equal(counts.turns, 1);
}

static void a_slow_sink_is_polled_until_all_is_settled(void **state)
{
    (void)state;
    claim.gives = MOST;
    sink.style = AT_POLL;
    sink.per_poll = 3;
    turn(SL_OK);
    expect_verdicts(SL_SENT, MOST, SL_SENT);
    assert_int_equal(sink.polls, 7);
    assert_true(claim.holds >= 7); /* the claim is looked at as often */
    assert_in_range(sink.longest_ns, 1, 100 * SL_MS);
    assert_int_equal(counts.sent, MOST);
}

static void each_turn_begins_with_an_empty_batch(void **state)
{
    (void)state;
    for (int i = 1; i <= 5; i++) {
        turn(SL_OK);
        assert_int_equal(claim.settles, i);
        assert_int_equal(claim.settled, 3);
    }
    assert_int_equal(counts.taken, 15);
    assert_int_equal(counts.turns, 5);
}

static void each_verdict_is_counted(void **state)
{
    (void)state;
    static const sl_verdict all[] = { SL_SENT, SL_RETRY, SL_DEAD, SL_UNKNOWN };
    for (size_t i = 0; i < COUNT(all); i++) {
        sink.verdict = all[i];
        claim.gives = i + 1;
        claim.lost = i;
        turn(SL_OK);
    }
    assert_int_equal(counts.sent, 1);
    assert_int_equal(counts.retried, 2);
    assert_int_equal(counts.dead, 3);
    assert_int_equal(counts.unknown, 4);
    assert_int_equal(counts.released, 0);
    assert_int_equal(counts.taken, 10);
    assert_int_equal(counts.lost, 6);
}

/* ---- Trust and stops ---- */

static void without_trust_nothing_is_sent(void **state)
{
    (void)state;
    claim.trust_calls = 0;
    turn(SL_OK);
    expect_verdicts(SL_RELEASED, 3, SL_RELEASED);
    assert_int_equal(sink.submits, 0);
    assert_int_equal(counts.released, 3);
}

/* It is asked right before each message, not once for all. */
static void trust_that_ends_midway_releases_the_rest(void **state)
{
    (void)state;
    claim.gives = 5;
    claim.trust_calls = 2;
    turn(SL_OK);
    expect_verdicts(SL_SENT, 2, SL_RELEASED);
    assert_int_equal(sink.submits, 2);
    assert_int_equal(counts.sent, 2);
    assert_int_equal(counts.released, 3);
}

static void a_stop_now_releases_what_was_not_sent(void **state)
{
    (void)state;
    sl_stop_ask(&stop, SL_STOP_NOW);
    turn(SL_OK);
    expect_verdicts(SL_RELEASED, 3, SL_RELEASED);
    assert_int_equal(sink.submits, 0);
}

static void a_stop_now_recalls_what_was(void **state)
{
    (void)state;
    sink.style = AT_RECALL;
    sink.stops = &stop;
    turn(SL_OK);
    expect_verdicts(SL_UNKNOWN, 3, SL_UNKNOWN);
    assert_int_equal(sink.polls, 1);
    assert_int_equal(counts.unknown, 3);
}

static void a_stop_soon_finishes_the_turn(void **state)
{
    (void)state;
    sink.stops = &stop;
    sink.level = SL_STOP_SOON;
    sink.style = AT_POLL;
    turn(SL_OK);
    expect_verdicts(SL_SENT, 3, SL_SENT);
}

/* A claim may wait for others for long. */
static void a_stop_before_the_turn_has_messages_gives_them_back(void **state)
{
    (void)state;
    sl_stop_ask(&stop, SL_STOP_SOON);
    turn(SL_OK);
    expect_verdicts(SL_RELEASED, 3, SL_RELEASED);
    assert_int_equal(sink.submits + sink.polls, 0);
}

static void a_sink_that_never_answers_is_recalled(void **state)
{
    (void)state;
    sink.style = AT_RECALL;
    relay.send_max_ns = 30 * SL_MS;
    int64_t before = sl_now_ns();
    turn(SL_OK);
    assert_true(sl_now_ns() - before >= 30 * SL_MS);
    assert_true(sl_now_ns() - before < 10 * SL_SEC);
    expect_verdicts(SL_UNKNOWN, 3, SL_UNKNOWN);
}

/* ---- Failures ---- */

static void a_failed_take_is_passed_on(void **state)
{
    (void)state;
    claim.take_rc = SL_OPERATOR; /* after it has filled the batch */
    turn(SL_OPERATOR);
    assert_string_equal(err.text, "take failed");
    assert_int_equal(sink.submits + sink.recalls + claim.settles, 0);
    assert_int_equal(counts.taken, 0);
    claim.take_rc = SL_OK;
    turn(SL_OK); /* begins anew */
    assert_int_equal(counts.taken, 3);
}

/* What was sent should be marked if it can be. */
static void a_lost_claim_is_settled_all_the_same(void **state)
{
    (void)state;
    claim.gives = 4;
    claim.hold_fails_at = 4 + 2; /* before each send, and then once per poll */
    claim.hold_rc = SL_AGAIN;
    claim.lost = 3;
    sink.style = AT_POLL;
    turn(SL_AGAIN);
    assert_string_equal(err.text, "hold failed");
    assert_int_equal(claim.settles, 1);
    assert_int_equal(sink.recalls, 1);
    assert_int_equal(counts.sent, 1);
    assert_int_equal(counts.unknown, 3);
    assert_int_equal(counts.lost, 3);
}

/* A sink may take its time inside submit: the claim is looked at before each message. */
static void a_claim_lost_while_sending_releases_the_rest(void **state)
{
    (void)state;
    claim.gives = 5;
    claim.hold_fails_at = 3;
    claim.hold_rc = SL_AGAIN;
    turn(SL_AGAIN);
    expect_verdicts(SL_SENT, 2, SL_RELEASED);
    assert_int_equal(sink.submits, 2);
    assert_int_equal(sink.polls, 0);
    assert_int_equal(sink.recalls, 1);
    assert_int_equal(counts.sent, 2);
    assert_int_equal(counts.released, 3);
}

static void the_first_failure_is_told(void **state)
{
    (void)state;
    claim.hold_fails_at = 3 + 1;
    claim.hold_rc = SL_AGAIN;
    claim.settle_rc = SL_OPERATOR;
    sink.style = AT_POLL;
    turn(SL_AGAIN);
    assert_string_equal(err.text, "hold failed");
    assert_int_equal(err.rc, SL_AGAIN);
    assert_int_equal(counts.unknown, 0); /* nothing was written */
    assert_int_equal(counts.turns, 0);
}

static void a_failed_settle_is_passed_on(void **state)
{
    (void)state;
    claim.settle_rc = SL_AGAIN;
    turn(SL_AGAIN);
    assert_string_equal(err.text, "settle failed");
    assert_int_equal(counts.taken, 3);
    assert_int_equal(counts.sent, 0); /* they will be taken again */
}

/* ---- Settling without waiting for the answer ---- */

static int setup_posting(void **state)
{
    memset(&mail, 0, sizeof mail);
    int rc = setup(state);
    claim.base.ops = &posting_ops;
    relay.quick_ns = 20 * SL_SEC; /* this machine may be slow */
    return rc;
}

static void a_settle_is_answered_by_the_next_take(void **state)
{
    (void)state;
    turn(SL_OK);
    assert_int_equal(relay.found, 3);
    assert_int_equal(mail.posts, 1);
    assert_int_equal(mail.answers + claim.settles, 0);
    assert_int_equal(counts.sent, 0);
    turn(SL_OK);
    assert_int_equal(mail.posts, 2);
    assert_int_equal(mail.answers, 1);
    assert_int_equal(counts.sent, 3);
    mail.lost = 1;
    claim.gives = 0;
    turn(SL_OK);
    assert_int_equal(relay.found, 0);
    assert_int_equal(mail.answers, 2);
    assert_int_equal(counts.sent, 6);
    assert_int_equal(counts.lost, 1);
    assert_int_equal(counts.turns, 2);
    turn(SL_OK);
    assert_int_equal(mail.answers, 2);
}

static void at_rest_nothing_is_on_its_way(void **state)
{
    (void)state;
    turn(SL_OK);
    assert_int_equal(sl_relay_rest(&relay, &err), SL_OK);
    assert_int_equal(relay.found, 0);
    assert_int_equal(mail.answers, 1);
    assert_int_equal(counts.sent, 3);
    assert_int_equal(sl_relay_rest(&relay, &err), SL_OK);
    assert_int_equal(mail.answers, 1);
}

/* So that lanes that others wish for are given up now and then. */
static void now_and_then_a_settle_is_waited_for(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        turn(SL_OK);
    assert_in_range(claim.settles, 5, 50);
    assert_int_equal(claim.settles + mail.posts, 100);
}

/* What the next take has brought is not sent while nobody knows what became of the last. */
static void an_answer_that_is_bad_ends_the_turn(void **state)
{
    (void)state;
    turn(SL_OK);
    mail.rc = SL_AGAIN;
    turn(SL_AGAIN);
    assert_string_equal(err.text, "not settled");
    assert_int_equal(sink.submits, 3);
    assert_int_equal(relay.found, 0);
    assert_int_equal(counts.sent, 0);
    assert_int_equal(counts.taken, 3);
}

static void a_take_that_fails_may_bring_a_good_answer(void **state)
{
    (void)state;
    turn(SL_OK);
    claim.take_rc = SL_AGAIN;
    turn(SL_AGAIN);
    assert_string_equal(err.text, "take failed");
    assert_int_equal(counts.sent, 3);
}

static void what_the_claim_cannot_post_is_settled(void **state)
{
    (void)state;
    mail.refuses = true;
    turn(SL_OK);
    expect_verdicts(SL_SENT, 3, SL_SENT);
    assert_int_equal(counts.sent, 3);
}

static void expect_waited(void)
{
    turn(SL_OK);
    assert_int_equal(mail.posts, 0);
    assert_int_equal(claim.settles, 1);
}

static void what_was_not_sent_is_waited_for(void **state)
{
    (void)state;
    sink.verdict = SL_RETRY;
    expect_waited();
}

static void what_must_not_be_sent_again_is_waited_for(void **state)
{
    (void)state;
    relay.exact = true;
    expect_waited();
}

/* They may take their time, and nobody else gets at what is on its way meanwhile. */
static void who_may_have_to_wait_for_others_has_nothing_on_its_way(void **state)
{
    (void)state;
    relay.care = sl_care_new(3600 * SL_SEC);
    turn(SL_OK);
    turn(SL_OK);
    assert_true(mail.behind);
    sl_care_alarm(relay.care);
    turn(SL_OK);
    assert_false(mail.behind);
    assert_int_equal(mail.answers, 2);
    mail.rc = SL_AGAIN;
    turn(SL_OK); /* a careful turn has posted nothing */
    sl_care_free(relay.care);
}

static void before_a_stop_it_is_waited_for(void **state)
{
    (void)state;
    sink.style = AT_POLL;
    sink.per_poll = MOST;
    sink.stops = &stop;
    sink.level = SL_STOP_SOON;
    expect_waited();
}

/* A moment more or less is nothing to it, but its lanes may be wanted. */
static void with_a_slow_sink_it_is_waited_for(void **state)
{
    (void)state;
    claim.gives = MOST;
    sink.style = AT_POLL;
    sink.delay_us = 1000;
    relay.quick_ns = SL_MS;
    expect_waited();
}

static void while_the_sink_is_down_nothing_is_on_its_way(void **state)
{
    (void)state;
    turn(SL_OK);
    sl_breaker_tell(route.breaker, SL_PASS_ALL, SL_CAME_DOWN);
    turn(SL_OK);
    assert_true(relay.wait_ns > 0);
    assert_int_equal(claim.takes, 1);
    assert_int_equal(mail.answers, 1);
    assert_int_equal(counts.sent, 3);
}

static void turn_with_a_forgetful_sink(void)
{
    sink.style = NEVER;
    relay.send_max_ns = 0;
    (void)!sl_relay_turn(&relay, &err);
}

static void a_sink_that_forgets_a_message_is_a_bug(void **state)
{
    (void)state;
    assert_true(aborts(turn_with_a_forgetful_sink));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_there_is_nothing_done),
        TEST(a_quick_sink_is_not_polled),
        TEST(a_slow_sink_is_polled_until_all_is_settled),
        TEST(each_turn_begins_with_an_empty_batch),
        TEST(each_verdict_is_counted),
        TEST(without_trust_nothing_is_sent),
        TEST(trust_that_ends_midway_releases_the_rest),
        TEST(a_stop_now_releases_what_was_not_sent),
        TEST(a_stop_now_recalls_what_was),
        TEST(a_stop_soon_finishes_the_turn),
        TEST(a_stop_before_the_turn_has_messages_gives_them_back),
        TEST(a_sink_that_never_answers_is_recalled),
        TEST(a_failed_take_is_passed_on),
        TEST(a_lost_claim_is_settled_all_the_same),
        TEST(a_claim_lost_while_sending_releases_the_rest),
        TEST(the_first_failure_is_told),
        TEST(a_failed_settle_is_passed_on),
        TEST(a_sink_that_forgets_a_message_is_a_bug),
#define POSTING(fn) cmocka_unit_test_setup_teardown(fn, setup_posting, teardown)
        POSTING(a_settle_is_answered_by_the_next_take),
        POSTING(at_rest_nothing_is_on_its_way),
        POSTING(now_and_then_a_settle_is_waited_for),
        POSTING(an_answer_that_is_bad_ends_the_turn),
        POSTING(a_take_that_fails_may_bring_a_good_answer),
        POSTING(what_the_claim_cannot_post_is_settled),
        POSTING(what_was_not_sent_is_waited_for),
        POSTING(what_must_not_be_sent_again_is_waited_for),
        POSTING(who_may_have_to_wait_for_others_has_nothing_on_its_way),
        POSTING(before_a_stop_it_is_waited_for),
        POSTING(with_a_slow_sink_it_is_waited_for),
        POSTING(while_the_sink_is_down_nothing_is_on_its_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
