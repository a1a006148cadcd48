/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts offsets into a transaction, and comes back. librdkafka's own call takes a time-out and may not heed it (its issue
 * 5456; seen for minutes on a young cluster), and a worker that hangs keeps its lanes. So it is made on a thread of its
 * own, and who asked goes on without it when it is long over its time: with a new producer, since the old one is still in
 * that call, and ends with it.
 */
#ifndef SL_SINK_KAFKA_PUT_H
#define SL_SINK_KAFKA_PUT_H

#include "core/buf.h"

#include <librdkafka/rdkafka.h>

typedef struct sl_kafka_put sl_kafka_put; /* a call that has not come back */

/* Takes the list and the group. NULL: it is done. An error whose code is SL_KAFKA_STUCK: *stuck has the producer. */
rd_kafka_error_t *sl_kafka_put_offsets(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *parts,
                                       rd_kafka_consumer_group_metadata_t *group,
                                       int timeout_ms, int64_t patience_ns,
                                       sl_kafka_put **stuck);
#define SL_KAFKA_STUCK RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE

/* Whoever asked has let go of the producer. True: the call is over by now, and the producer is the caller's to destroy;
 * else it goes when the call comes back, if ever. */
bool sl_kafka_put_leave(sl_kafka_put *p);

#endif
