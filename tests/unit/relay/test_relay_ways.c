/* SPDX-License-Identifier: Apache-2.0 */
/* Several ways: which message goes where, what holds one way up and not the other, and that places, passes and
 * attempts are given back whatever happens. */
#include "relay/relay.h"

#include "core/buf.h"
#include "core/clock.h"
#include "unit/unit.h"

enum { WAYS = 3, MOST = 64 };

/* ---- A claim of messages with topics and keys; sinks that answer by the book ---- */

typedef struct fake_claim {
    sl_claim base;
    const char *topics; /* a letter for each message */
    const char *keys;   /* the same; '.': without a key. NULL: all without */
    int hold_fails_at, holds;
    bool consume_fails;
    sl_msg settled[MOST]; /* as they were */
    char verdicts[MOST];
} fake_claim;

typedef struct fake_sink {
    sl_sink base;
    char name;
    bool at_poll;        /* else at once */
    bool mute;           /* no answer until it is recalled */
    const char *answers; /* by message: s r d u; o: it is out of order. NULL: all are sent */
    sl_route *frees;     /* a poll gives a place of this route back */
    sl_stop *stops;      /* a poll asks for this */
    sl_stop_level level;
    sl_batch *batch;
    sl_msg *held[MOST];
    size_t nheld, most; /* at once */
} fake_sink;

static fake_claim claim;
static fake_sink sinks[WAYS];
static sl_buf said; /* "a+1 a=1 c:1,2": handed over, answered, consumed */

static const char letters[] = {
    [SL_SENT] = 's',    [SL_RETRY] = 'r',    [SL_DEAD] = 'd',
    [SL_UNKNOWN] = 'u', [SL_RELEASED] = '-', [SL_HELD] = 'h',
};

static void say(char who, char what, int64_t id)
{
    sl_buf_printf(&said, "%s%c%c%lld", said.n ? " " : "", who, what, (long long)id);
}

static sl_rc claim_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    (void)err;
    const fake_claim *c = (fake_claim *)base;
    for (size_t i = 0; c->topics[i] && (int64_t)i < max; i++) {
        sl_msg *m = sl_batch_add(b);
        m->id = (int64_t)i + 1;
        m->attempt = 1;
        m->topic = sl_arena_copy(&b->arena, (sl_str){ &c->topics[i], 1 });
        if (c->keys && c->keys[i] != '.')
            m->key = sl_arena_copy(&b->arena, (sl_str){ &c->keys[i], 1 });
    }
    return SL_OK;
}

static sl_rc claim_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    (void)b;
    fake_claim *c = (fake_claim *)base;
    return ++c->holds == c->hold_fails_at ? sl_fail(err, SL_AGAIN, "hold failed") : SL_OK;
}

static int64_t claim_trusted(const sl_claim *base)
{
    (void)base;
    return INT64_MAX;
}

static sl_rc claim_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    (void)err;
    fake_claim *c = (fake_claim *)base;
    for (size_t i = 0; i < b->count; i++) {
        c->settled[i] = b->msgs[i];
        c->verdicts[i] = letters[b->msgs[i].verdict];
        c->verdicts[i + 1] = '\0';
    }
    *lost = 0;
    return SL_OK;
}

static sl_rc claim_consume(sl_claim *base, sl_batch *b, const sl_consume_stamp *stamp,
                           sl_err *err)
{
    (void)stamp;
    const char *before = " c:";
    if (!said.n)
        before++;
    for (size_t i = 0; i < b->count; i++) {
        if (!b->msgs[i].consumed)
            continue;
        sl_buf_printf(&said, "%s%lld", before, (long long)b->msgs[i].id);
        before = ",";
    }
    return ((fake_claim *)base)->consume_fails ? sl_fail(err, SL_AGAIN, "lost") : SL_OK;
}

static const sl_claim_ops claim_ops = { .name = "fake",
                                        .ordered = true,
                                        .take = claim_take,
                                        .hold = claim_hold,
                                        .trusted_ns = claim_trusted,
                                        .settle = claim_settle,
                                        .consume = claim_consume };

static void answer(const fake_sink *s, sl_msg *m)
{
    char c = s->answers ? s->answers[m->id - 1] : 's';
    say(s->name, '=', m->id);
    if (c == 'o')
        sl_msg_settle(s->batch, m, SL_RELEASED, SL_STR("no route to host"));
    else
        sl_msg_settle(s->batch, m,
                      c == 's'   ? SL_SENT
                      : c == 'r' ? SL_RETRY
                      : c == 'd' ? SL_DEAD
                                 : SL_UNKNOWN,
                      SL_STR("said so"));
}

static void sink_submit(sl_sink *base, sl_batch *b, sl_msg *m)
{
    fake_sink *s = (fake_sink *)base;
    s->batch = b;
    say(s->name, '+', m->id);
    if (!s->at_poll) {
        answer(s, m);
        return;
    }
    s->held[s->nheld++] = m;
    s->most = s->nheld > s->most ? s->nheld : s->most;
}

static void sink_poll(sl_sink *base, int64_t timeout_ns)
{
    (void)timeout_ns;
    fake_sink *s = (fake_sink *)base;
    if (s->frees) {
        sl_route_leave(s->frees);
        s->frees = NULL;
    }
    if (s->stops)
        sl_stop_ask(s->stops, s->level);
    if (s->mute)
        usleep(1000);
    if (s->mute || s->nheld == 0)
        return;
    sl_msg *m = s->held[0]; /* one answer each time */
    memmove(s->held, s->held + 1, --s->nheld * sizeof s->held[0]);
    answer(s, m);
}

static void sink_recall(sl_sink *base)
{
    fake_sink *s = (fake_sink *)base;
    while (s->nheld > 0)
        sl_msg_settle(s->batch, s->held[--s->nheld], SL_RELEASED, SL_STR("not written"));
}

static const sl_sink_ops in_order = { .scheme = "fake",
                                      .in_order = true,
                                      .submit = sink_submit,
                                      .poll = sink_poll,
                                      .recall = sink_recall };
static const sl_sink_ops any_order = {
    .scheme = "fake", .submit = sink_submit, .poll = sink_poll, .recall = sink_recall
};

/* ---- Around each test ---- */

static const char *const topics[WAYS][1] = { { "a" }, { "b" }, { "c*" } };
static sl_route routes[WAYS];
static sl_way ways[WAYS];
static sl_stop stop;
static sl_counts counts;
static sl_relay relay;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    claim = (fake_claim){ .base = { &claim_ops } };
    memset(&counts, 0, sizeof counts);
    for (size_t i = 0; i < WAYS; i++) {
        sinks[i] = (fake_sink){ .base = { &in_order }, .name = (char)('a' + i) };
        routes[i] = (sl_route){ .name = topics[i][0],
                                .topics = topics[i],
                                .topic_count = 1,
                                .policy = { SL_BLOCK, 10, SL_SEC, 10 * SL_SEC },
                                .breaker = sl_breaker_new(3600 * SL_SEC, 3600 * SL_SEC) };
        ways[i] = (sl_way){ .route = &routes[i], .sink = &sinks[i].base };
    }
    relay = (sl_relay){ .claim = &claim.base,
                        .ways = ways,
                        .way_count = WAYS,
                        .stop = &stop,
                        .counts = &counts,
                        .batch_max = MOST,
                        .send_max_ns = 20 * SL_SEC };
    sl_batch_init(&relay.batch);
    return sl_stop_init(&stop) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_relay_fini(&relay);
    for (size_t i = 0; i < WAYS; i++)
        sl_breaker_free(routes[i].breaker);
    sl_stop_fini(&stop);
    sl_buf_fini(&said);
    return 0;
}

/* A turn; and in the end nobody is inside. */
static void expect_turn(sl_rc rc, const char *words, const char *verdicts)
{
    sl_buf_reset(&said);
    assert_int_equal(sl_relay_turn(&relay, &err), rc);
    assert_string_equal(sl_buf_text(&said), words);
    assert_string_equal(claim.verdicts, verdicts);
    for (size_t i = 0; i < WAYS; i++)
        assert_int_equal(routes[i].users, 0);
}

static void expect_put_off(size_t i, const char *reason)
{
    const sl_msg *m = &claim.settled[i];
    assert_int_equal(m->verdict, SL_RETRY);
    assert_true(m->untried);
    assert_false(m->consumed);
    if (reason)
        assert_string_equal(m->reason.p, reason);
}

/* ---- Who goes where ---- */

static void each_topic_goes_its_way(void **state)
{
    (void)state;
    claim.topics = "abcab";
    expect_turn(SL_OK, "a+1 a=1 b+2 b=2 c+3 c=3 a+4 a=4 b+5 b=5", "sssss");
    assert_int_equal(counts.sent, 5);
}

static void the_first_that_wants_it_takes_it(void **state)
{
    (void)state;
    static const char *const all[] = { "*" };
    claim.topics = "abcz";
    routes[1].topics = all;
    expect_turn(SL_OK, "a+1 a=1 b+2 b=2 b+3 b=3 b+4 b=4", "ssss");
}

/* ---- Order ---- */

static void a_key_waits_for_the_verdict_of_the_other_way(void **state)
{
    (void)state;
    sinks[0].at_poll = sinks[1].at_poll = true;
    claim.topics = "abab";
    claim.keys = "xxxx";
    expect_turn(SL_OK, "a+1 a=1 b+2 b=2 a+3 a=3 b+4 b=4", "ssss");
    claim.topics = "aabb"; /* the same way, and it keeps the order: at once */
    expect_turn(SL_OK, "a+1 a+2 a=1 a=2 b+3 b+4 b=3 b=4", "ssss");
    claim.topics = "abab";
    claim.keys = "xyx.";
    expect_turn(SL_OK, "a+1 b+2 a+3 b+4 a=1 b=2 a=3 b=4", "ssss");
}

/* Also when there is another one between them. */
static void it_waits_behind_one_that_waits(void **state)
{
    (void)state;
    sinks[0].base.ops = &any_order;
    sinks[0].at_poll = sinks[1].at_poll = true;
    claim.topics = "aaba";
    claim.keys = "xxxx";
    expect_turn(SL_OK, "a+1 a=1 a+2 a=2 b+3 b=3 a+4 a=4", "ssss");
}

static void behind_a_failure_on_one_way_nothing_goes_on_the_other(void **state)
{
    (void)state;
    claim.topics = "abba";
    claim.keys = "xxyy";
    sinks[0].answers = "rsss";
    expect_turn(SL_OK, "a+1 a=1 b+3 b=3 a+4 a=4", "r-ss");
    sinks[0].at_poll = true;
    expect_turn(SL_OK, "a+1 b+3 b=3 a+4 a=1 a=4", "r-ss");
}

/* It is the policy of the message that failed, not of the one behind it. */
static void each_route_has_its_policy(void **state)
{
    (void)state;
    routes[0].policy.on_failure = SL_SKIP;
    routes[1].policy.on_failure = SL_PARK;
    claim.topics = "abba";
    claim.keys = "xxyy";
    sinks[0].answers = sinks[1].answers = "dsds";
    expect_turn(SL_OK, "a+1 a=1 b+2 b=2 b+3 b=3", "dsr-");
    assert_true(claim.settled[2].delay_ns == SL_FOREVER);
    routes[0].policy.max_attempts = 1;
    sinks[0].answers = sinks[1].answers = "rsrs";
    expect_turn(SL_OK, "a+1 a=1 b+3 b=3", "d-r-"); /* its key goes on in the next turn */
    assert_true(claim.settled[2].delay_ns <= 2 * SL_SEC);
}

/* ---- A sink that is out of order ---- */

static void a_sink_that_is_down_stops_nobody_else(void **state)
{
    (void)state;
    claim.topics = "abab";
    claim.keys = "wxyz";
    sinks[0].answers = "ooss";
    expect_turn(SL_OK, "a+1 a=1 b+2 b=2 b+4 b=4", "-s-s");
    for (int i = 0; i < 2; i++) {
        expect_turn(SL_OK, "b+2 b=2 b+4 b=4", "rsrs");
        expect_put_off(0, "its sink is down");
        expect_put_off(2, "its sink is down");
        assert_true(claim.settled[0].delay_ns > 1000 * SL_SEC);
    }
}

static void neither_does_one_that_says_so_later(void **state)
{
    (void)state;
    sinks[0].at_poll = sinks[1].at_poll = true;
    routes[0].batch = 1;
    claim.topics = "abab";
    sinks[0].answers = "osss";
    expect_turn(SL_OK, "a+1 b+2 b+4 a=1 b=2 b=4", "-s-s");
    expect_turn(SL_OK, "b+2 b+4 b=2 b=4", "rsrs");
}

/* Its key waits on every way. */
static void behind_one_that_is_put_off_nothing_goes(void **state)
{
    (void)state;
    claim.topics = "a";
    sinks[0].answers = "ooooo";
    expect_turn(SL_OK, "a+1 a=1", "-");
    claim.topics = "abbab";
    claim.keys = "xxy.y";
    expect_turn(SL_OK, "b+3 b=3 b+5 b=5", "r-srs");
    assert_false(claim.settled[1].untried);
}

/* While someone tries it, there is little time left until the next look: a write for each message each time
 * would be a storm. */
static void put_off_is_for_a_second_at_least(void **state)
{
    (void)state;
    int64_t wait_ns;
    sl_breaker_free(routes[0].breaker);
    routes[0].breaker = sl_breaker_new(1, 1);
    sl_breaker_tell(routes[0].breaker, SL_PASS_ALL, SL_CAME_DOWN);
    usleep(1);
    assert_int_equal(sl_breaker_ask(routes[0].breaker, &wait_ns),
                     SL_PASS_ONE); /* another worker */
    claim.topics = "ab";
    expect_turn(SL_OK, "b+2 b=2", "rs");
    assert_true(claim.settled[0].delay_ns >= SL_SEC);
}

/* ---- Probes ---- */

static void shut(size_t i)
{
    sl_breaker_free(routes[i].breaker);
    routes[i].breaker = sl_breaker_new(1, 1); /* the next may try at once */
    sl_breaker_tell(routes[i].breaker, SL_PASS_ALL, SL_CAME_DOWN);
    usleep(1);
}

static void one_tries_and_the_rest_follows(void **state)
{
    (void)state;
    shut(0);
    sinks[0].at_poll = true;
    claim.topics = "aaba";
    expect_turn(SL_OK, "a+1 b+3 b=3 a=1 a+2 a+4 a=2 a=4", "ssss");
    expect_turn(SL_OK, "a+1 a+2 b+3 b=3 a+4 a=1 a=2 a=4", "ssss"); /* closed */
}

static void one_tries_and_the_rest_goes_back(void **state)
{
    (void)state;
    shut(0);
    sinks[0].at_poll = true;
    sinks[0].answers = "osss";
    claim.topics = "aaba";
    expect_turn(SL_OK, "a+1 b+3 b=3 a=1", "--s-");
    sinks[0].at_poll = false;
    usleep(1);
    expect_turn(SL_OK, "a+1 a=1 b+3 b=3", "--s-");
}

/* A pass that nobody used must not be lost. */
static void a_pass_that_was_not_used_is_given_back(void **state)
{
    (void)state;
    int64_t wait_ns;
    shut(0);
    claim.topics = "ba";
    claim.keys = "xx";
    sinks[1].answers = "rs";
    expect_turn(SL_OK, "b+1 b=1", "r-");
    routes[0].concurrency = 1;
    routes[0].users = 1;
    relay.send_max_ns = 10 * SL_MS;
    claim.keys = NULL;
    sl_buf_reset(&said);
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_string_equal(claim.verdicts, "r-");
    assert_int_equal(sl_breaker_ask(routes[0].breaker, &wait_ns), SL_PASS_ONE);
}

/* ---- Limits ---- */

static void no_more_are_under_way_than_its_batch(void **state)
{
    (void)state;
    sinks[0].at_poll = sinks[1].at_poll = true;
    routes[0].batch = 2;
    claim.topics = "aaabaa";
    expect_turn(SL_OK, "a+1 a+2 b+4 a=1 b=4 a+3 a=2 a+5 a=3 a+6 a=5 a=6", "ssssss");
    assert_int_equal(sinks[0].most, 2);
    claim.topics = "aaaaaaaa";
    claim.keys = "xyxyxyxy"; /* and in order */
    expect_turn(SL_OK, "a+1 a+2 a=1 a+3 a=2 a+4 a=3 a+5 a=4 a+6 a=5 a+7 a=6 a+8 a=7 a=8",
                "ssssssss");
    sinks[0].at_poll = false; /* what has its answer at once is not under way */
    claim.topics = "aaa";
    expect_turn(SL_OK, "a+1 a=1 a+2 a=2 a+3 a=3", "sss");
}

static void without_a_place_it_waits_and_the_others_go(void **state)
{
    (void)state;
    routes[0].concurrency = 2;
    routes[0].users = 2;
    sinks[1].at_poll = true;
    sinks[1].frees = &routes[0];
    claim.topics = "abaab";
    claim.keys = "xyxzx";
    sl_buf_reset(&said);
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_string_equal(sl_buf_text(&said), "b+2 b=2 a+1 a=1 a+3 a=3 a+4 a=4 b+5 b=5");
    assert_string_equal(claim.verdicts, "sssss");
    assert_int_equal(routes[0].users, 1); /* the other one's */
}

/* What others could use is not kept while something else is waited for. */
static void a_place_is_left_when_nothing_is_under_way(void **state)
{
    (void)state;
    sl_route *other = &routes[1];
    routes[0].concurrency = other->concurrency = 1;
    sinks[0].at_poll = sinks[2].at_poll = true;
    claim.topics = "abc";
    other->users = 1;
    sinks[2].frees = other; /* by the third poll, which waits for the first way to be free */
    sl_buf_reset(&said);
    sinks[0].frees = NULL;
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_string_equal(sl_buf_text(&said), "a+1 c+3 a=1 c=3 b+2 b=2");
    assert_int_equal(routes[0].users + other->users, 0);
}

static void no_place_until_its_time_is_over(void **state)
{
    (void)state;
    routes[0].concurrency = 1;
    routes[0].users = 1;
    relay.send_max_ns = 20 * SL_MS;
    claim.topics = "aba";
    sl_buf_reset(&said);
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_string_equal(sl_buf_text(&said), "b+2 b=2");
    assert_string_equal(claim.verdicts, "-s-");
    assert_int_equal(routes[0].users, 1);
    assert_int_equal(counts.released, 2);
}

/* It does not wait for a place, and does not spin either. */
static void no_place_and_told_to_end(void **state)
{
    (void)state;
    routes[0].concurrency = 1;
    routes[0].users = 1;
    sinks[1].at_poll = true;
    sinks[1].stops = &stop;
    sinks[1].level = SL_STOP_SOON;
    claim.topics = "abab";
    sl_buf_reset(&said);
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_string_equal(sl_buf_text(&said), "b+2 b+4 b=2 b=4"); /* what is in hand ends */
    assert_string_equal(claim.verdicts, "-s-s");
    assert_true(claim.holds < 10);
}

/* ---- When it has to end ---- */

static void all_ways_are_recalled_and_left(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAYS; i++) {
        sinks[i].at_poll = sinks[i].mute = true;
        routes[i].concurrency = 1;
    }
    relay.send_max_ns = 20 * SL_MS;
    claim.topics = "abca";
    claim.keys = "xyzy";
    expect_turn(SL_OK, "a+1 b+2 c+3", "----");
    claim.topics = "abc";
    expect_turn(SL_OK, "a+1 b+2 c+3",
                "---"); /* that tells nothing of the sinks: none is down */
    claim.hold_fails_at = claim.holds + 4;
    expect_turn(SL_AGAIN, "a+1 b+2 c+3", "---");
    claim.hold_fails_at = claim.holds + 2;
    expect_turn(SL_AGAIN, "a+1", "---");
    relay.send_max_ns = 20 * SL_SEC;
    sinks[1].stops = &stop;
    sinks[1].level = SL_STOP_NOW;
    expect_turn(SL_OK, "a+1 b+2 c+3", "---");
}

/* ---- No route ---- */

static void what_no_route_wants_waits(void **state)
{
    (void)state;
    claim.topics = "aza";
    claim.keys = "xyz";
    expect_turn(SL_OK, "a+1 a=1 a+3 a=3", "srs");
    expect_put_off(1, "no route wants topic 'z'");
    assert_true(claim.settled[1].delay_ns == 10 * SL_SEC); /* retry_max */
    claim.topics = "zbab";
    claim.keys = "xxy.";
    expect_turn(SL_OK, "a+3 a=3 b+4 b=4", "r-ss");
    claim.topics = "bza";
    claim.keys = "xxx";
    sinks[1].answers = "rss";
    expect_turn(SL_OK, "b+1 b=1", "r--"); /* nor is it touched behind one that failed */
}

static void it_is_looked_at_again_each_minute(void **state)
{
    (void)state;
    routes[0].policy.retry_max_ns = 86400 * SL_SEC;
    claim.topics = "z";
    expect_turn(SL_OK, "", "r");
    assert_true(claim.settled[0].delay_ns == 60 * SL_SEC);
}

static int lines;

static void count_line(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    assert_int_equal(level, SL_LOG_ERROR);
    assert_non_null(strstr(line, "no route wants topic '"));
    lines++;
}

static void the_log_names_the_topic_once(void **state)
{
    (void)state;
    sl_log log;
    sl_unrouted *unrouted = sl_unrouted_new();
    sl_log_init(&log, count_line, NULL);
    lines = 0;
    relay.log = &log;
    relay.unrouted = unrouted;
    claim.topics = "zyzyzx";
    for (int i = 0; i < 3; i++)
        expect_turn(SL_OK, "", "rrrrrr");
    assert_int_equal(lines, 3);
    sl_log_fini(&log);
    sl_unrouted_free(unrouted);
}

/* ---- At most once ---- */

static void all_are_consumed_before_the_first_is_sent(void **state)
{
    (void)state;
    routes[0].at_most_once = routes[2].at_most_once = true;
    claim.topics = "bacab";
    expect_turn(SL_OK, "c:2,3,4 b+1 b=1 a+2 a=2 c+3 c=3 a+4 a=4 b+5 b=5", "sssss");
    claim.topics = "bb";
    expect_turn(SL_OK, "b+1 b=1 b+2 b=2", "ss"); /* none: it is not asked */
}

static void nothing_is_sent_when_that_fails(void **state)
{
    (void)state;
    routes[0].at_most_once = true;
    claim.consume_fails = true;
    claim.topics = "bab";
    expect_turn(SL_AGAIN, "c:2", "---");
    for (size_t i = 0; i < 3; i++)
        assert_false(claim.settled[i].consumed);
}

/* A failure is the end of it, and its key goes on; on another way it is not. */
static void each_route_has_its_delivery(void **state)
{
    (void)state;
    routes[0].at_most_once = true;
    claim.topics = "abba";
    claim.keys = "xxyy";
    sinks[0].answers = sinks[1].answers = "rsrs";
    expect_turn(SL_OK, "c:1,4 a+1 a=1 b+2 b=2 b+3 b=3", "rsr-");
    assert_true(claim.settled[0].consumed);
    assert_false(claim.settled[2].consumed);
    assert_true(claim.settled[3].consumed); /* and never handed over: it goes back */
}

/* What cannot be sent now is not consumed: it would be nobody's. */
static void nothing_is_consumed_for_a_sink_that_is_down(void **state)
{
    (void)state;
    routes[0].at_most_once = routes[1].at_most_once = true;
    sinks[0].answers = "ooooo";
    claim.topics = "ab";
    expect_turn(SL_OK, "c:1,2 a+1 a=1 b+2 b=2", "-s");
    claim.topics = "abab";
    claim.keys = "xxyz";
    expect_turn(SL_OK, "c:2,4 b+4 b=4", "r-rs");
    expect_put_off(0, "its sink is down");
    expect_put_off(2, "its sink is down");
    assert_true(claim.settled[1].consumed); /* its key waits: it goes back */
}

static void one_is_consumed_to_try_a_sink(void **state)
{
    (void)state;
    shut(0);
    routes[0].at_most_once = true;
    sinks[0].answers = "ooo";
    claim.topics = "aaa";
    expect_turn(SL_OK, "c:1 a+1 a=1", "---");
    assert_false(claim.settled[1].consumed);
    sinks[0].answers = NULL;
    usleep(1);
    expect_turn(SL_OK, "c:1 a+1 a=1", "s--");
    expect_turn(SL_OK, "c:1,2,3 a+1 a=1 a+2 a=2 a+3 a=3", "sss");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_topic_goes_its_way),
        TEST(the_first_that_wants_it_takes_it),
        TEST(a_key_waits_for_the_verdict_of_the_other_way),
        TEST(it_waits_behind_one_that_waits),
        TEST(behind_a_failure_on_one_way_nothing_goes_on_the_other),
        TEST(each_route_has_its_policy),
        TEST(a_sink_that_is_down_stops_nobody_else),
        TEST(neither_does_one_that_says_so_later),
        TEST(behind_one_that_is_put_off_nothing_goes),
        TEST(put_off_is_for_a_second_at_least),
        TEST(one_tries_and_the_rest_follows),
        TEST(one_tries_and_the_rest_goes_back),
        TEST(a_pass_that_was_not_used_is_given_back),
        TEST(no_more_are_under_way_than_its_batch),
        TEST(without_a_place_it_waits_and_the_others_go),
        TEST(a_place_is_left_when_nothing_is_under_way),
        TEST(no_place_until_its_time_is_over),
        TEST(no_place_and_told_to_end),
        TEST(all_ways_are_recalled_and_left),
        TEST(what_no_route_wants_waits),
        TEST(it_is_looked_at_again_each_minute),
        TEST(the_log_names_the_topic_once),
        TEST(all_are_consumed_before_the_first_is_sent),
        TEST(nothing_is_sent_when_that_fails),
        TEST(each_route_has_its_delivery),
        TEST(nothing_is_consumed_for_a_sink_that_is_down),
        TEST(one_is_consumed_to_try_a_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
