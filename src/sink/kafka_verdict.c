/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_verdict.h"

#include <stdbool.h>

/* One message of the request is at fault. */
static bool is_of_batch(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        return true;
    default:
        return false;
    }
}

/* Somebody may be about to make it, or to let us in. */
static bool is_of_topic(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
           err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
           err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           err == RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT;
}

static bool is_purge(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
           err == RD_KAFKA_RESP_ERR__FATAL || err == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE ||
           err == RD_KAFKA_RESP_ERR__DESTROY;
}

sl_kafka_came sl_kafka_verdict(rd_kafka_resp_err_t err, rd_kafka_msg_status_t status)
{
    if (!err || status == RD_KAFKA_MSG_STATUS_PERSISTED)
        return SL_KAFKA_SENT;
    if (status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED)
        return SL_KAFKA_UNKNOWN; /* whatever the last try came to: an earlier one may be there */
    if (is_of_batch(err))
        return SL_KAFKA_BATCH;
    if (err == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)
        return SL_KAFKA_REFUSED;
    if (is_of_topic(err))
        return SL_KAFKA_TOPIC;
    return is_purge(err) ? SL_KAFKA_PURGED : SL_KAFKA_DOWN;
}
