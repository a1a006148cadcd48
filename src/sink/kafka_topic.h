/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics that a producer writes to: found by a message's target, looked up at the brokers before the first
 * message, and again from time to time. The partition of a message is computed from what was found then, so that
 * the messages of a key that are under way together go to one partition, also while an operator adds some.
 */
#ifndef SL_SINK_KAFKA_TOPIC_H
#define SL_SINK_KAFKA_TOPIC_H

#include "core/buf.h"
#include "sink/kafka_conf.h"

typedef struct sl_kafka_topic {
    char *name;
    rd_kafka_topic_t *rkt;
    int32_t partitions;      /* 0: not looked up */
    int32_t sticky;          /* where messages without a key go for now */
    int64_t look_ns;         /* when it is looked up again */
    int64_t missing_ns;      /* since when it is not there; 0: it is */
    rd_kafka_resp_err_t err; /* of the last look */
} sl_kafka_topic;

typedef struct sl_kafka_topics {
    rd_kafka_t *rk;
    const sl_kafka_conf *conf;
    sl_log *log;
    sl_kafka_topic *v;
    size_t count, cap;
    sl_buf name; /* of the target that was asked for last */
} sl_kafka_topics;

void sl_kafka_topics_fini(sl_kafka_topics *t);

/* Where a message goes by the template; false: Kafka has no such names, `why` says so. */
bool sl_kafka_target(sl_kafka_topics *t, const sl_msg *m, char why[160]);
/* Would both go to the same one? */
bool sl_kafka_same_target(const sl_kafka_conf *c, const sl_msg *a, const sl_msg *b);
/* The topic of that name, as it was found or not; NULL: out of memory, or no name for librdkafka. Good until the
 * next call. */
sl_kafka_topic *sl_kafka_topic_of(sl_kafka_topics *t);
/* Asks the brokers, for so long at most. */
void sl_kafka_topic_look(sl_kafka_topics *t, sl_kafka_topic *topic, int64_t timeout_ns);
int32_t sl_kafka_partition(const sl_kafka_topics *t, sl_kafka_topic *topic, const sl_msg *m);

#endif
