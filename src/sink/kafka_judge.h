/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of `sluice doctor --sink` on a Kafka topic: facts in, findings out, without a broker. */
#ifndef SL_SINK_KAFKA_JUDGE_H
#define SL_SINK_KAFKA_JUDGE_H

#include "sink/sink.h"

/* What was read of a topic that is there. */
typedef struct sl_kafka_fact {
    const char *name;
    int partitions, leaderless;
    int replicas, in_sync; /* the fewest of any partition */
    int lagging;           /* partitions of which not all replicas are in sync */
    bool configs;          /* the rest is known */
    int64_t min_in_sync, message_max;
    bool compacted, unclean;
} sl_kafka_fact;

/* What waits for it, as far as was looked. */
typedef struct sl_kafka_need {
    int64_t count, keyless, largest;
    int64_t message_max; /* of librdkafka, by our settings */
} sl_kafka_need;

/* At least one finding. */
void sl_kafka_judge(const sl_kafka_fact *f, const sl_kafka_need *need, sl_sink_tell tell,
                    void *ctx);

/* Of brokers: do they make topics by themselves? */
typedef struct sl_kafka_makes {
    bool known, makes;
    int64_t partitions, replicas;
} sl_kafka_makes;

/* One that is not there. */
void sl_kafka_judge_missing(const char *name, const sl_kafka_makes *by, int64_t waiting,
                            sl_sink_tell tell, void *ctx);

#endif
