/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can go wrong with Kafka, played through with any table of functions: test_kafka.c with the sink, which must
 * show nothing; test_kafka_bad.c with sinks that are known to be wrong, which must be caught. Each returns what was
 * wrong, or NULL.
 */
#ifndef TESTS_UNIT_SINK_KAFKA_SCENES_H
#define TESTS_UNIT_SINK_KAFKA_SCENES_H

#include "unit/sink/kafkas.h"

/* Some messages of one key, of which the first is delivered: the partition knows the producer. */
static inline sl_sink *begin_scene(const sl_sink_ops *ops, size_t count)
{
    sl_sink *s = open_kafka_as(ops);
    order_all(count, 1);
    order_count = 1;
    deliver(s);
    order_count = count;
    return s;
}

/* All is well again: is everything delivered, and in order? */
static inline const char *end_scene(sl_sink *s, const char *wrong)
{
    rd_kafka_mock_clear_request_errors(cluster, INIT_PRODUCER_ID);
    if (!wrong)
        deliver(s);
    close_sink(s);
    return wrong ? wrong : fault();
}

/* To more producers than a test makes. */
static inline void refuse_producer_ids(void)
{
    for (int i = 0; i < 20; i++)
        rd_kafka_mock_push_request_errors(cluster, INIT_PRODUCER_ID, 1,
                                          RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
}

/* Without an id of its own a producer is not idempotent, and a retry may change the order: none is sent. */
static inline const char *scene_no_producer_id(const sl_sink_ops *ops)
{
    refuse_producer_ids();
    sl_sink *s = open_kafka_as(ops);
    order_all(5, 1);
    turn(s);
    return end_scene(s, orders_with(SL_SENT) ? "sent without a producer id" : NULL);
}

/* It is in the log, and nobody says so. */
static inline const char *scene_no_answer(const sl_sink_ops *ops)
{
    set("message.timeout.ms", "1000");
    set("max.in.flight", "1");
    sl_sink *s = begin_scene(ops, 6);
    answer_too_late();
    turn(s);
    read_log();
    return end_scene(s, fault_of_verdicts());
}

/* The second is refused while those behind it are queued. */
static inline const char *scene_refused(const sl_sink_ops *ops)
{
    set("max.in.flight", "1");
    set("batch.num.messages", "1");
    sl_sink *s = begin_scene(ops, 8);
    ANSWER_AND_GAP(RD_KAFKA_RESP_ERR_INVALID_RECORD);
    turn(s);
    return end_scene(s, NULL);
}

/* The first that a partition gets of a producer is refused, after a while in which more could be on their way. */
static inline const char *scene_first_refused(const sl_sink_ops *ops)
{
    set("batch.num.messages", "1");
    set("linger.ms", "0");
    sl_sink *s = open_kafka_as(ops);
    order_all(4, 1);
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1,
                                                 RD_KAFKA_RESP_ERR_INVALID_RECORD, 1000);
    turn(s);
    return end_scene(s, NULL);
}

#endif
