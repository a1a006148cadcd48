/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Kafka sink is told: its URL and librdkafka's properties by their own names. Read and checked once; each
 * producer is made from a copy.
 *
 *     kafka://HOST:PORT[,HOST:PORT ...][/TARGET][?NAME=VALUE&...]
 */
#ifndef SL_SINK_KAFKA_CONF_H
#define SL_SINK_KAFKA_CONF_H

#include "sink/sink.h"

#include <librdkafka/rdkafka.h>

typedef int32_t (*sl_kafka_partitioner)(const rd_kafka_topic_t *rkt, const void *key,
                                        size_t keylen, int32_t partition_cnt, void *opaque,
                                        void *msg_opaque);

typedef struct sl_kafka_conf {
    rd_kafka_conf_t *rk;
    char *brokers;
    char *target; /* "{topic}" */
    char *format;
    char *source;
    bool created_time; /* a record's time is that of the message, else that of sending it */
    sl_kafka_partitioner partitioner; /* of messages with a key */
    char *fence;                      /* or NULL: messages are not sent in transactions */
    bool exact;
    char *positions;   /* the topic of positions */
    int64_t answer_ns; /* no answer for so long: the cluster is out of order */
} sl_kafka_conf;

SL_CHECK sl_rc sl_kafka_conf_read(sl_kafka_conf *c, const sl_sink_conf *from, sl_err *err);
void sl_kafka_conf_fini(sl_kafka_conf *c);
bool sl_kafka_is_name(sl_str s); /* of a topic */

#endif
