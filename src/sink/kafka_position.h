/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a worker, as Kafka keeps it: the committed offset of a group, with metadata. */
#ifndef SL_SINK_KAFKA_POSITION_H
#define SL_SINK_KAFKA_POSITION_H

#include "sink/kafka_conf.h"
#include "sink/kafka_put.h"

/* The topic that it stands for: it is made if it is missing. False: `why`. */
bool sl_kafka_position_topic(rd_kafka_t *rk, const char *topic, int64_t timeout_ns,
                             char why[160]);
/* As a part of the open transaction. NULL: it is. *stuck: see sink/kafka_put.h. */
rd_kafka_error_t *sl_kafka_position_put(rd_kafka_t *rk, const char *group, const char *topic,
                                        int64_t number, const sl_buf *text, int timeout_ms,
                                        sl_kafka_put **stuck);
/* What was committed last, once no transaction of it is open; 0 and nothing: never. False: not known, `why`. */
bool sl_kafka_position_get(const sl_kafka_conf *c, const char *group, int64_t *number,
                           sl_buf *text, char why[160]);

#endif
