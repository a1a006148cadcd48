/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a turn hands messages to its sink, and what it does not hand over. */
#include "relay/relay.h"

#include "core/buf.h"
#include "core/clock.h"
#include "unit/unit.h"

/* ---- A claim of messages with keys, and a sink that answers by the book ---- */

typedef struct fake_claim {
    sl_claim base;
    const char *keys; /* a letter for each message; '.': without a key */
    int trust_calls;  /* trusted for so many questions, then no more; -1: always */
    int hold_fails_at;
    int holds;
    char verdicts[64]; /* as settled, a letter each */
} fake_claim;

typedef struct fake_sink {
    sl_sink base;
    bool at_poll;        /* else at once */
    bool newest_first;   /* at poll */
    bool mute;           /* no answer until it is recalled */
    const char *answers; /* by message: s r d u */
    sl_stop *stops;      /* asked for by the first poll */
    sl_batch *batch;
    sl_msg *held[2048];
    size_t nheld;
    sl_buf said; /* "+1 +3 =1 +2": handed over, and answered */
} fake_sink;

static const char letters[] = {
    [SL_SENT] = 's',    [SL_RETRY] = 'r',    [SL_DEAD] = 'd',
    [SL_UNKNOWN] = 'u', [SL_RELEASED] = '-', [SL_HELD] = 'h',
};

static sl_rc claim_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    (void)max;
    (void)err;
    const fake_claim *c = (fake_claim *)base;
    for (size_t i = 0; c->keys[i]; i++) {
        sl_msg *m = sl_batch_add(b);
        m->id = (int64_t)i + 1;
        if (c->keys[i] != '.')
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
    fake_claim *c = (fake_claim *)(uintptr_t)base;
    return c->trust_calls == 0 ? 0 : (c->trust_calls--, INT64_MAX);
}

static sl_rc claim_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    (void)err;
    fake_claim *c = (fake_claim *)base;
    for (size_t i = 0; i < b->count && i < sizeof c->verdicts - 1; i++) {
        c->verdicts[i] = letters[b->msgs[i].verdict];
        c->verdicts[i + 1] = '\0';
    }
    *lost = 0;
    return SL_OK;
}

static const sl_claim_ops ordered_ops = { .name = "fake",
                                          .ordered = true,
                                          .take = claim_take,
                                          .hold = claim_hold,
                                          .trusted_ns = claim_trusted,
                                          .settle = claim_settle };
static const sl_claim_ops unordered_ops = { .name = "fake",
                                            .take = claim_take,
                                            .hold = claim_hold,
                                            .trusted_ns = claim_trusted,
                                            .settle = claim_settle };

static void answer(fake_sink *s, sl_msg *m)
{
    char c = s->answers ? s->answers[m->id - 1] : 's';
    sl_buf_printf(&s->said, "%s=%lld", s->said.n ? " " : "", (long long)m->id);
    sl_msg_settle(s->batch, m,
                  c == 's'   ? SL_SENT
                  : c == 'r' ? SL_RETRY
                  : c == 'd' ? SL_DEAD
                             : SL_UNKNOWN,
                  SL_NONE);
}

static void sink_submit(sl_sink *base, sl_batch *b, sl_msg *m)
{
    fake_sink *s = (fake_sink *)base;
    s->batch = b;
    sl_buf_printf(&s->said, "%s+%lld", s->said.n ? " " : "", (long long)m->id);
    if (s->at_poll)
        s->held[s->nheld++] = m;
    else
        answer(s, m);
}

/* One answer each time. */
static void sink_poll(sl_sink *base, int64_t timeout_ns)
{
    (void)timeout_ns;
    fake_sink *s = (fake_sink *)base;
    if (s->stops)
        sl_stop_ask(s->stops, SL_STOP_NOW);
    if (s->mute || s->nheld == 0) {
        usleep(1000);
        return;
    }
    sl_msg *m = s->newest_first ? s->held[s->nheld - 1] : s->held[0];
    if (!s->newest_first)
        memmove(s->held, s->held + 1, (s->nheld - 1) * sizeof s->held[0]);
    s->nheld--;
    answer(s, m);
}

static void sink_recall(sl_sink *base)
{
    fake_sink *s = (fake_sink *)base;
    while (s->nheld > 0)
        sl_msg_settle(s->batch, s->held[--s->nheld], SL_UNKNOWN, SL_NONE);
}

static const sl_sink_ops any_order = {
    .scheme = "fake", .submit = sink_submit, .poll = sink_poll, .recall = sink_recall
};
static const sl_sink_ops in_order = { .scheme = "fake",
                                      .in_order = true,
                                      .submit = sink_submit,
                                      .poll = sink_poll,
                                      .recall = sink_recall };

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
    claim = (fake_claim){ .base = { &ordered_ops }, .trust_calls = -1 };
    sink = (fake_sink){ .base = { &any_order } };
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
                        .batch_max = 1000,
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
    sl_buf_fini(&sink.said);
    return 0;
}

static void expect_turn(sl_rc rc, const char *said, const char *verdicts)
{
    sl_buf_reset(&sink.said);
    assert_int_equal(sl_relay_turn(&relay, &err), rc);
    assert_string_equal(sl_buf_text(&sink.said), said);
    assert_string_equal(claim.verdicts, verdicts);
}

/* ---- A sink that answers at once ---- */

static void after_a_failure_the_rest_of_its_key_goes_back(void **state)
{
    (void)state;
    claim.keys = "xyxyx";
    sink.answers = "rssss";
    expect_turn(SL_OK, "+1 =1 +2 =2 +4 =4", "rs-s-");
    assert_int_equal(counts.released, 2);
    assert_int_equal(counts.retried, 1);
}

static void so_it_is_when_nobody_knows(void **state)
{
    (void)state;
    claim.keys = "xxy";
    sink.answers = "uss";
    expect_turn(SL_OK, "+1 =1 +3 =3", "u-s");
}

static void behind_a_dead_one_the_next_goes(void **state)
{
    (void)state;
    claim.keys = "xxx";
    sink.answers = "dsd";
    expect_turn(SL_OK, "+1 =1 +2 =2 +3 =3", "dsd");
}

static void what_has_no_key_waits_for_nobody(void **state)
{
    (void)state;
    claim.keys = ".x..";
    sink.answers = "rrrs";
    expect_turn(SL_OK, "+1 =1 +2 =2 +3 =3 +4 =4", "rrrs");
}

/* It belongs to a batch: in the next one the key may go. */
static void each_turn_begins_anew(void **state)
{
    (void)state;
    claim.keys = "xx";
    sink.answers = "rs";
    for (int i = 0; i < 3; i++)
        expect_turn(SL_OK, "+1 =1", "r-");
    sink.answers = NULL;
    expect_turn(SL_OK, "+1 =1 +2 =2", "ss");
    claim.keys = "yxxyz";
    expect_turn(SL_OK, "+1 =1 +2 =2 +3 =3 +4 =4 +5 =5", "sssss");
}

static void a_claim_without_order_sends_all(void **state)
{
    (void)state;
    claim.base.ops = &unordered_ops;
    claim.keys = "xxx";
    sink.answers = "rrs";
    expect_turn(SL_OK, "+1 =1 +2 =2 +3 =3", "rrs");
    sink.at_poll = true;
    sink.newest_first = true;
    expect_turn(SL_OK, "+1 +2 +3 =3 =2 =1", "rrs");
}

/* ---- A sink that answers later ---- */

static void the_next_of_a_key_waits_for_the_verdict(void **state)
{
    (void)state;
    sink.at_poll = true;
    claim.keys = "xxyx.";
    expect_turn(SL_OK, "+1 +3 +5 =1 +2 =3 =5 =2 +4 =4", "sssss");
}

static void other_keys_do_not(void **state)
{
    (void)state;
    sink.at_poll = true;
    sink.newest_first = true;
    claim.keys = "xxyyz";
    expect_turn(SL_OK, "+1 +3 +5 =5 =3 +4 =4 =1 +2 =2", "sssss");
}

static void what_waits_for_a_failed_one_goes_back(void **state)
{
    (void)state;
    sink.at_poll = true;
    claim.keys = "xxyxy";
    sink.answers = "rssss";
    expect_turn(SL_OK, "+1 +3 =1 =3 +5 =5", "r-s-s");
    sink.answers = "ssuss";
    expect_turn(SL_OK, "+1 +3 =1 +2 =3 =2 +4 =4", "ssus-");
}

/* Such a sink keeps the order itself, and fails with all that it still has. */
static void a_sink_in_order_gets_all_at_once(void **state)
{
    (void)state;
    sink.base.ops = &in_order;
    sink.at_poll = true;
    claim.keys = "xxyx";
    expect_turn(SL_OK, "+1 +2 +3 +4 =1 =2 =3 =4", "ssss");
    sink.at_poll = false; /* a failure that is known already is no less one */
    sink.answers = "rsss";
    expect_turn(SL_OK, "+1 =1 +3 =3", "r-s-");
}

/* ---- When it has to end ---- */

static void a_stop_now_gives_back_what_was_not_handed_over(void **state)
{
    (void)state;
    sink.at_poll = sink.mute = true;
    sink.stops = &stop;
    claim.keys = "xxyx";
    expect_turn(SL_OK, "+1 +3", "u-u-");
    assert_int_equal(counts.released, 2);
    assert_int_equal(counts.unknown, 2);
}

static void so_does_the_end_of_its_time(void **state)
{
    (void)state;
    sink.at_poll = sink.mute = true;
    relay.send_max_ns = 20 * SL_MS;
    claim.keys = "xx.";
    expect_turn(SL_OK, "+1 +3", "u-u");
}

static void so_does_the_end_of_the_trust(void **state)
{
    (void)state;
    sink.at_poll = true;
    claim.keys = "xxx";
    claim.trust_calls = 2; /* for 1 and 2 */
    expect_turn(SL_OK, "+1 =1 +2 =2", "ss-");
}

static void so_does_a_lost_claim(void **state)
{
    (void)state;
    sink.at_poll = true;
    claim.keys = "xxyx";
    claim.hold_fails_at = 2 + 1 + 1; /* two sends, a poll, and before the next send */
    expect_turn(SL_AGAIN, "+1 +3 =1", "s-u-");
    assert_string_equal(err.text, "hold failed");
}

/* ---- Many ---- */

static void a_large_batch_keeps_the_order_of_each_key(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    static char keys[MANY + 1];
    int64_t last[26] = { 0 }, out[26] = { 0 }; /* by key: answered last, and handed over */
    for (size_t i = 0; i < MANY; i++)
        keys[i] = (char)('a' + (i * i + 7 * i) % 26);
    claim.keys = keys;
    sink.at_poll = true;
    sink.newest_first = true;
    assert_int_equal(sl_relay_turn(&relay, &err), SL_OK);
    assert_int_equal(counts.sent, MANY);
    char *rest;
    char *text = (char *)(uintptr_t)sl_buf_text(&sink.said);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        int64_t id = strtoll(word + 1, NULL, 10);
        size_t k = (size_t)(keys[id - 1] - 'a');
        if (word[0] == '+') {
            assert_true(out[k] == 0 && id > last[k]);
            out[k] = id;
        } else {
            assert_int_equal(out[k], id);
            last[k] = id;
            out[k] = 0;
        }
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(after_a_failure_the_rest_of_its_key_goes_back),
        TEST(so_it_is_when_nobody_knows),
        TEST(behind_a_dead_one_the_next_goes),
        TEST(what_has_no_key_waits_for_nobody),
        TEST(each_turn_begins_anew),
        TEST(a_claim_without_order_sends_all),
        TEST(the_next_of_a_key_waits_for_the_verdict),
        TEST(other_keys_do_not),
        TEST(what_waits_for_a_failed_one_goes_back),
        TEST(a_sink_in_order_gets_all_at_once),
        TEST(a_stop_now_gives_back_what_was_not_handed_over),
        TEST(so_does_the_end_of_its_time),
        TEST(so_does_the_end_of_the_trust),
        TEST(so_does_a_lost_claim),
        TEST(a_large_batch_keeps_the_order_of_each_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
