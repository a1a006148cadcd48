/* SPDX-License-Identifier: Apache-2.0 */
/* What `sluice doctor --sink` is told about a Kafka cluster: are the brokers there, and the topics, and how are they
 * made. Asked by a client that cannot create a topic. */
#ifndef SL_SINK_KAFKA_DOCTOR_H
#define SL_SINK_KAFKA_DOCTOR_H

#include "sink/sink.h"

void sl_kafka_describe(const sl_sink_conf *conf, const sl_sink_wait *waits, size_t count,
                       sl_sink_tell tell, void *ctx);

#endif
