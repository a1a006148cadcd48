/* SPDX-License-Identifier: Apache-2.0 */
/* What a report of librdkafka means for a message: a pure function of the error and of what is known of the log. */
#ifndef SL_SINK_KAFKA_VERDICT_H
#define SL_SINK_KAFKA_VERDICT_H

#include <librdkafka/rdkafka.h>

typedef enum sl_kafka_came {
    SL_KAFKA_SENT,    /* in the log, on all replicas in sync */
    SL_KAFKA_PURGED,  /* never left: it was called back */
    SL_KAFKA_DOWN,    /* never arrived, and no fault of its own */
    SL_KAFKA_UNKNOWN, /* it may be in the log */
    SL_KAFKA_BATCH,   /* refused with all that it was sent with: one of them is at fault */
    SL_KAFKA_TOPIC,   /* the topic, or its partition, is not there, or not for us */
    SL_KAFKA_REFUSED, /* and always will be: Kafka has no such topics */
} sl_kafka_came;

sl_kafka_came sl_kafka_verdict(rd_kafka_resp_err_t err, rd_kafka_msg_status_t status);

#endif
