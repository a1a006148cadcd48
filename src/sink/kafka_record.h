/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a record of Kafka, handed to librdkafka, which copies it. */
#ifndef SL_SINK_KAFKA_RECORD_H
#define SL_SINK_KAFKA_RECORD_H

#include "format/encode.h"
#include "sink/kafka_topic.h"

/* m comes back as the opaque of its report. */
rd_kafka_resp_err_t sl_kafka_produce(rd_kafka_t *rk, const sl_kafka_conf *c,
                                     const sl_kafka_topic *t, int32_t partition, sl_msg *m,
                                     const sl_encoded *e);

#endif
