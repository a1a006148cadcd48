/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics that a producer writes to: found by a message's target, looked up at the brokers before the first
 * message, and again from time to time. The partition of a message is computed from what was found then, so that
 * the messages of a key that are under way together go to one partition, also while an operator adds some.
 */
#ifndef SL_SINK_KAFKA_TOPIC_H
#define SL_SINK_KAFKA_TOPIC_H

#include "core/buf.h"
#include "core/keymap.h"
#include "sink/kafka_conf.h"

/*
 * What this producer has had confirmed by a partition. A broker that knows a producer refuses what comes behind a
 * gap; of one that it does not know it takes anything. So the first message to a partition goes alone: if it were
 * refused, one in the next request would not be.
 */
typedef enum sl_kafka_proof {
    SL_KAFKA_NO_PROOF,
    SL_KAFKA_FIRST, /* the first message is under way */
    SL_KAFKA_PROVEN,
} sl_kafka_proof;

typedef struct sl_kafka_topic {
    char *name;
    rd_kafka_topic_t *rkt;   /* NULL: the producer is gone */
    int32_t partitions;      /* 0: not looked up */
    uint8_t *proof;          /* sl_kafka_proof, of each of them */
    int32_t sticky;          /* where messages without a key go for now */
    int64_t look_ns;         /* when it is looked up again */
    int64_t missing_ns;      /* since when it is not there; 0: it is, as far as is known */
    rd_kafka_resp_err_t err; /* of the last look */
} sl_kafka_topic;

typedef struct sl_kafka_topics {
    rd_kafka_t *rk;
    const sl_kafka_conf *conf;
    sl_log *log;
    sl_kafka_topic **v;
    size_t count, cap;
    sl_keymap by_name; /* index and one; the names are those of v */
    sl_buf name;       /* of the target that was asked for last */
} sl_kafka_topics;

/* A topic that is missing may be about to be made: so long its messages are tried again. Tests do not wait. */
extern int64_t sl_kafka_grace_ns;

void sl_kafka_topics_fini(sl_kafka_topics *t);
/* The producer is about to go, or nothing is under way and there are too many of them: all are looked up anew. Since
 * when one is missing is not forgotten. */
void sl_kafka_topics_detach(sl_kafka_topics *t);
void sl_kafka_topics_trim(sl_kafka_topics *t);

/* Where a message goes by the template; false: Kafka has no such names, `why` says so. */
bool sl_kafka_target(sl_kafka_topics *t, const sl_msg *m, char why[160]);
/* Would both go to the same one? */
bool sl_kafka_same_target(const sl_kafka_conf *c, const sl_msg *a, const sl_msg *b);
/* The topic of the target asked for last, as it was found or not; NULL: librdkafka refuses it. */
sl_kafka_topic *sl_kafka_topic_of(sl_kafka_topics *t);
sl_kafka_topic *sl_kafka_topic_named(const sl_kafka_topics *t, const char *name); /* or NULL */
/* Asks the brokers, for so long at most. */
void sl_kafka_topic_look(sl_kafka_topics *t, sl_kafka_topic *topic, int64_t timeout_ns);
/* What a look, or a report, told. */
void sl_kafka_topic_found(sl_kafka_topics *t, sl_kafka_topic *topic, int32_t partitions);
void sl_kafka_topic_missing(sl_kafka_topic *topic);
/* It has been missing for so long that nobody will make it. */
bool sl_kafka_topic_given_up(const sl_kafka_topic *topic);
int32_t sl_kafka_partition(const sl_kafka_topics *t, sl_kafka_topic *topic, const sl_msg *m);

#endif
