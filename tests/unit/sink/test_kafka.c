/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/sink/kafka_scenes.h"

extern const sl_sink_ops sl_sink_kafka;

static sl_sink *open_kafka(void)
{
    return open_kafka_as(&sl_sink_kafka);
}

static void show_nothing(const char *wrong)
{
    if (wrong)
        fail_msg("%s", wrong);
}

static void expect_reason(size_t at, const char *part)
{
    const sl_msg *m = &batch.msgs[at];
    if (!m->reason.p || !memmem(m->reason.p, m->reason.n, part, strlen(part)))
        fail_msg("message %zu: \"%.*s\"", at, (int)m->reason.n, m->reason.p ? m->reason.p : "");
}

static void expect_all_released(void)
{
    for (size_t i = 0; i < batch.count; i++)
        assert_int_equal(batch.msgs[i].verdict, SL_RELEASED);
}

/* ---- All is well ---- */

static void all_is_sent_once_and_in_order(void **state)
{
    (void)state;
    sl_sink *s = open_kafka();
    order_all(500, 7);
    turn(s);
    assert_int_equal(orders_with(SL_SENT), 500);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

static struct {
    bool seen, headers, empty_key, no_key, tombstone, empty;
} kinds;

static void see_kind(const rd_kafka_message_t *m)
{
    rd_kafka_headers_t *h = NULL;
    const void *value = NULL;
    size_t n = 0;
    kinds.seen = true;
    kinds.no_key |= !m->key;
    kinds.empty_key |= m->key && m->key_len == 0;
    kinds.tombstone |= !m->payload;
    kinds.empty |= m->payload && m->len == 0;
    if (rd_kafka_message_headers(m, &h) == 0 &&
        rd_kafka_header_get_last(h, "colour", &value, &n) == 0)
        kinds.headers |= n == 3 && !memcmp(value, "red", 3);
}

static void messages_of_every_kind_arrive_as_they_are(void **state)
{
    (void)state;
    sl_sink *s = open_kafka();
    memset(&kinds, 0, sizeof kinds);
    fill_batch(&batch, 1, 5, 10);
    for (size_t i = 0; i < batch.count; i++)
        batch.msgs[i].topic = sl_str_of(topic_name);
    batch.msgs[0].headers = SL_STR("{\"colour\":\"red\"}");
    batch.msgs[1].key = SL_STR("");
    batch.msgs[2].key = SL_NONE;
    batch.msgs[3].payload = SL_NONE;
    batch.msgs[4].payload = SL_STR("");
    submit_all(s, &batch);
    poll_all(s, &batch);
    expect_all(&batch, SL_SENT);
    close_sink(s);
    read_log_with(see_kind);
    assert_int_equal(in_log.count, 5);
    assert_true(kinds.headers && kinds.empty_key && kinds.no_key && kinds.tombstone &&
                kinds.empty);
}

static void without_a_key_they_arrive_too(void **state)
{
    (void)state;
    sl_sink *s = open_kafka();
    order_all(300, 0);
    deliver(s);
    close_sink(s);
    expect_no_fault();
    expect_once();
    for (size_t i = 0; i < in_log.count; i++)
        assert_true(in_log.v[i].keyless);
}

static void what_does_not_fit_into_the_queue_waits(void **state)
{
    (void)state;
    set("queue.buffering.max.messages", "3");
    sl_sink *s = open_kafka();
    order_all(200, 5);
    turn(s);
    assert_int_equal(orders_with(SL_SENT), 200);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

static void one_after_the_other_only_to_the_same_topic(void **state)
{
    (void)state;
    const sl_msg a = { .topic = SL_STR("a"), .type = SL_STR("x") };
    const sl_msg b = { .topic = SL_STR("b"), .type = SL_STR("x") };
    sl_sink *s = open_kafka();
    assert_true(s->ops->follows(s, &a, &a));
    assert_false(s->ops->follows(s, &a, &b));
    close_sink(s);
}

/* ---- Trouble that passes ---- */

static void what_librdkafka_tries_again_is_sent_once(void **state)
{
    (void)state;
    set("max.in.flight", "1");
    set("retry.backoff.ms", "10");
    sl_sink *s = open_kafka();
    order_all(50, 3);
    ANSWER(RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 0,
           RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
    turn(s);
    assert_int_equal(orders_with(SL_SENT), 50);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

static void a_lost_connection_is_made_again(void **state)
{
    (void)state;
    set("max.in.flight", "1");
    sl_sink *s = open_kafka();
    order_all(30, 3);
    ANSWER(0, RD_KAFKA_RESP_ERR__TRANSPORT, 0, RD_KAFKA_RESP_ERR__TRANSPORT);
    deliver(s);
    assert_int_equal(orders_with(SL_SENT), 30);
    close_sink(s);
    expect_no_fault();
}

static void brokers_that_are_down_are_no_fault_of_the_messages(void **state)
{
    (void)state;
    rd_kafka_mock_broker_set_down(cluster, 1);
    set("message.timeout.ms", "500");
    set("reconnect.backoff.ms", "20");
    set("reconnect.backoff.max.ms", "50");
    sl_sink *s = open_kafka();
    order_all(5, 1);
    turn(s);
    assert_int_equal(orders_with(SL_RELEASED), 5);
    assert_true(orders[0].reason);
    expect_reason(0, "Kafka: ");
    rd_kafka_mock_broker_set_up(cluster, 1);
    deliver(s);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

/* Six messages one after the other: the first has no answer when the broker goes away, the others wait behind it. */
static sl_sink *lose_the_broker(bool consumed)
{
    set("message.timeout.ms", "4000"); /* by then the first has left, on any machine */
    set("reconnect.backoff.ms", "20");
    set("reconnect.backoff.max.ms", "50");
    set("max.in.flight", "1");
    set("batch.num.messages", "1");
    set("linger.ms", "0");
    sl_sink *s = begin_scene(&sl_sink_kafka, 6);
    answer_too_late();
    hand_over(s);
    for (size_t i = 0; i < batch.count; i++)
        batch.msgs[i].consumed = consumed;
    while (!all_answered())
        s->ops->poll(s, SL_MS);
    rd_kafka_mock_broker_set_down(cluster, 1);
    poll_all(s, &batch);
    return s;
}

/* What a broker has is unknown, what waits in the queue is not sent. */
static void brokers_that_go_down_meanwhile(void **state)
{
    (void)state;
    sl_sink *s = lose_the_broker(false);
    assert_int_equal(batch.msgs[0].verdict, SL_UNKNOWN);
    for (size_t i = 1; i < batch.count; i++) {
        assert_int_equal(batch.msgs[i].verdict, SL_RELEASED);
        expect_reason(i, "Kafka: ");
    }
    s->ops->recall(s);
    note_verdicts();
    rd_kafka_mock_broker_set_up(cluster, 1);
    deliver(s);
    close_sink(s);
    expect_no_fault();
}

/* What librdkafka calls unsent may have been sent once, before its connection was lost: it does not go back. */
static void at_most_once_all_of_them_are_unknown(void **state)
{
    (void)state;
    sl_sink *s = lose_the_broker(true);
    assert_true(batch.count > 3); /* the first one had proven its partition */
    for (size_t i = 0; i < batch.count; i++) {
        assert_int_equal(batch.msgs[i].verdict, SL_UNKNOWN);
        assert_true(batch.msgs[i].blameless);
    }
    s->ops->recall(s);
    rd_kafka_mock_broker_set_up(cluster, 1);
    close_sink(s);
}

static void no_answer_is_unknown(void **state)
{
    (void)state;
    show_nothing(scene_no_answer(&sl_sink_kafka));
    assert_int_equal(times_in_log(1), 2); /* at least once */
}

/* ---- A producer that is of no more use ---- */

static void a_producer_that_has_failed_is_made_anew(void **state)
{
    (void)state;
    const rd_kafka_resp_err_t errors[] = { RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
                                           RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH };
    set("max.in.flight", "1");
    set("batch.num.messages", "2");
    sl_sink *s = begin_scene(&sl_sink_kafka, 21);
    for (size_t i = 0; i < COUNT(errors); i++) {
        order_count = 11 + 10 * i;
        ANSWER_AND_GAP(errors[i]);
        turn(s);
        assert_int_equal(orders[1 + 10 * i].verdict, i == 0 ? SL_UNKNOWN : SL_RELEASED);
        assert_true(orders[1 + 10 * i].reason);
        assert_int_equal(orders[10 + 10 * i].verdict, SL_RELEASED);
        deliver(s);
    }
    close_sink(s);
    expect_no_fault();
    expect_once();
}

/* With a reason, so that it is not tried again at once. */
static void without_a_producer_id_none_is_sent(void **state)
{
    (void)state;
    show_nothing(scene_no_producer_id(&sl_sink_kafka));
    refuse_producer_ids();
    sl_sink *s = open_kafka();
    order_all(5, 5);
    hand_over(s);
    poll_all(s, &batch);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(batch.msgs[i].verdict, SL_RELEASED);
        if (i == 0)
            expect_reason(i, "authorization");
    }
    close_sink(s);
}

/* ---- Refusals ---- */

/* Together they are refused; then each is alone, and the third of them is. False: they did not go together. */
static bool find_the_one_at_fault(rd_kafka_resp_err_t error)
{
    const int64_t linger_ns = 100 * SL_MS;
    set("max.in.flight", "1");
    set("linger.ms", "100");
    sl_sink *s = begin_scene(&sl_sink_kafka, 6);
    ANSWER(error, 0, 0, error);
    int64_t start_ns = sl_now_ns();
    hand_over(s);
    bool together = sl_now_ns() - start_ns < linger_ns / 2;
    if (together) {
        poll_all(s, &batch);
        expect_all_released();
        s->ops->recall(s);
        note_verdicts();
        deliver(s);
    }
    close_sink(s);
    return together;
}

static void the_one_at_fault_is_found(void **state)
{
    const rd_kafka_resp_err_t errors[] = { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                           RD_KAFKA_RESP_ERR_INVALID_RECORD };
    for (size_t i = 0; i < COUNT(errors); i++) {
        while (!find_the_one_at_fault(errors[i]))
            make_topic(state);
        for (size_t k = 0; k < order_count; k++)
            assert_int_equal(orders[k].verdict, k == 3 ? SL_DEAD : SL_SENT);
        assert_true(orders[3].reason);
        expect_no_fault();
        expect_once();
        make_topic(state);
    }
}

static void none_overtakes_one_that_is_refused(void **state)
{
    (void)state;
    show_nothing(scene_refused(&sl_sink_kafka));
    expect_once();
}

static void the_first_to_a_partition_goes_alone(void **state)
{
    (void)state;
    show_nothing(scene_first_refused(&sl_sink_kafka));
    expect_once();
}

static void what_is_too_large_does_not_even_leave(void **state)
{
    (void)state;
    set("message.max.bytes", "2000");
    sl_sink *s = begin_scene(&sl_sink_kafka, 5);
    orders[2].payload_bytes = 3000;
    deliver(s);
    for (size_t i = 0; i < order_count; i++)
        assert_int_equal(orders[i].verdict, i == 2 ? SL_DEAD : SL_SENT);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

static void what_is_larger_than_the_queue_does_not_wait_for_ever(void **state)
{
    (void)state;
    set("queue.buffering.max.kbytes", "4");
    sl_sink *s = begin_scene(&sl_sink_kafka, 5);
    orders[2].payload_bytes = 20000;
    deliver(s);
    for (size_t i = 0; i < order_count; i++)
        assert_int_equal(orders[i].verdict, i == 2 ? SL_DEAD : SL_SENT);
    close_sink(s);
    expect_no_fault();
}

/* They were handed over when nothing was known against the one before them. */
static void none_that_waits_goes_behind_one_that_cannot(void **state)
{
    (void)state;
    set("message.max.bytes", "2000");
    sl_sink *s = open_kafka();
    order_all(4, 1);
    orders[1].payload_bytes = 3000;
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1, 0, 300);
    hand_over(s);
    assert_int_equal(batch.settled, 0); /* the first is under way, the others wait for it */
    poll_all(s, &batch);
    assert_int_equal(batch.msgs[0].verdict, SL_SENT);
    assert_int_equal(batch.msgs[1].verdict, SL_DEAD);
    assert_int_equal(batch.msgs[2].verdict, SL_RELEASED);
    assert_int_equal(batch.msgs[3].verdict, SL_RELEASED);
    s->ops->recall(s);
    note_verdicts();
    deliver(s);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

static void no_name_for_a_topic_is_refused(void **state)
{
    (void)state;
    const sl_str odd[] = { SL_STR(""), SL_STR("a b"), SL_STR("."), SL_STR("a/b"), SL_NONE };
    sl_sink *s = open_kafka();
    fill_batch(&batch, 1, COUNT(odd), 10);
    for (size_t i = 0; i < COUNT(odd); i++)
        batch.msgs[i].topic = odd[i];
    submit_all(s, &batch);
    expect_all(&batch, SL_DEAD);
    close_sink(s);
}

/* ---- Topics ---- */

static sl_verdict verdict_now(sl_sink *s)
{
    order_all(1, 1);
    turn(s);
    return orders[0].verdict;
}

/* It is looked at anew every second. */
static void expect_soon(sl_sink *s, sl_verdict v)
{
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (verdict_now(s) != v)
        assert_true(sl_now_ns() < until);
}

static void a_topic_that_is_missing_may_still_be_made(void **state)
{
    (void)state;
    const rd_kafka_resp_err_t errors[] = { RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
                                           RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED };
    for (size_t i = 0; i < COUNT(errors); i++) {
        sl_kafka_grace_ns = 3600 * SL_SEC;
        rd_kafka_mock_topic_set_error(cluster, topic_name, errors[i]);
        sl_sink *s = open_kafka();
        assert_int_equal(verdict_now(s), SL_RETRY);
        expect_reason(0, "topic t");
        sl_kafka_grace_ns = -1;
        assert_int_equal(verdict_now(s), SL_DEAD);
        rd_kafka_mock_topic_set_error(cluster, topic_name, RD_KAFKA_RESP_ERR_NO_ERROR);
        expect_soon(s, SL_SENT);
        close_sink(s);
    }
}

static void a_topic_that_is_closed_to_us_meanwhile(void **state)
{
    (void)state;
    set("max.in.flight", "1");
    sl_sink *s = begin_scene(&sl_sink_kafka, 4);
    ANSWER(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
           RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    turn(s);
    assert_int_equal(orders[1].verdict, SL_RETRY);
    deliver(s);
    close_sink(s);
    expect_no_fault();
    expect_once();
}

/* Brokers that do not answer tell nothing of a topic, however long it is missing. */
static void a_missing_topic_is_not_dead_while_nobody_answers(void **state)
{
    (void)state;
    set("message.timeout.ms", "500");
    rd_kafka_mock_topic_set_error(cluster, topic_name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    sl_sink *s = open_kafka();
    expect_soon(s, SL_RETRY);
    rd_kafka_mock_broker_set_down(cluster, 1);
    expect_soon(s, SL_RELEASED);
    sl_kafka_grace_ns = -1;
    assert_int_equal(verdict_now(s), SL_RELEASED);
    close_sink(s);
}

/* ---- Called back ---- */

static void what_is_called_back_is_unknown_or_not_sent(void **state)
{
    (void)state;
    set("max.in.flight", "1");
    set("batch.num.messages", "1");
    set("linger.ms", "0");
    sl_sink *s = begin_scene(&sl_sink_kafka, 8);
    answer_too_late();
    hand_over(s);
    while (!all_answered())
        s->ops->poll(s, SL_MS);
    s->ops->recall(s);
    assert_int_equal(batch.settled, batch.count);
    for (size_t i = 0; i < batch.count; i++) {
        assert_int_equal(batch.msgs[i].verdict, i == 0 ? SL_UNKNOWN : SL_RELEASED);
        expect_reason(i, "called back");
    }
    note_verdicts();
    sl_batch_fini(&batch); /* nothing of it is borrowed */
    sl_batch_init(&batch);
    s->ops->poll(s, SL_MS);
    s->ops->recall(s);
    deliver(s);
    close_sink(s);
    expect_no_fault();
}

/* Neither brokers that refuse nor such that are silent make it long. */
static void dropping_a_producer_takes_no_time(void **state)
{
    (void)state;
    int64_t longest_ns = 0;
    for (int i = 0; i < 4; i++) {
        sl_sink *s = begin_scene(&sl_sink_kafka, 20);
        if (i % 2)
            rd_kafka_mock_broker_set_down(cluster, 1);
        else
            answer_too_late();
        hand_over(s);
        while (i % 2 == 0 && !all_answered())
            s->ops->poll(s, SL_MS);
        int64_t start_ns = sl_now_ns();
        s->ops->recall(s);
        s->ops->close(s);
        longest_ns = sl_now_ns() - start_ns > longest_ns ? sl_now_ns() - start_ns : longest_ns;
        make_topic(state);
    }
    print_message("%.3f s at most\n", (double)longest_ns / 1e9);
    assert_true(longest_ns < 5 * SL_SEC);
}

#define TEST(name) cmocka_unit_test_setup(name, make_topic)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_is_sent_once_and_in_order),
        TEST(messages_of_every_kind_arrive_as_they_are),
        TEST(without_a_key_they_arrive_too),
        TEST(what_does_not_fit_into_the_queue_waits),
        TEST(one_after_the_other_only_to_the_same_topic),
        TEST(what_librdkafka_tries_again_is_sent_once),
        TEST(a_lost_connection_is_made_again),
        TEST(brokers_that_are_down_are_no_fault_of_the_messages),
        TEST(brokers_that_go_down_meanwhile),
        TEST(at_most_once_all_of_them_are_unknown),
        TEST(no_answer_is_unknown),
        TEST(a_producer_that_has_failed_is_made_anew),
        TEST(without_a_producer_id_none_is_sent),
        TEST(the_one_at_fault_is_found),
        TEST(none_overtakes_one_that_is_refused),
        TEST(the_first_to_a_partition_goes_alone),
        TEST(what_is_too_large_does_not_even_leave),
        TEST(what_is_larger_than_the_queue_does_not_wait_for_ever),
        TEST(none_that_waits_goes_behind_one_that_cannot),
        TEST(no_name_for_a_topic_is_refused),
        TEST(a_topic_that_is_missing_may_still_be_made),
        TEST(a_topic_that_is_closed_to_us_meanwhile),
        TEST(a_missing_topic_is_not_dead_while_nobody_answers),
        TEST(what_is_called_back_is_unknown_or_not_sent),
        TEST(dropping_a_producer_takes_no_time),
    };
    return cmocka_run_group_tests(tests, make_cluster, drop_cluster);
}
