/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_verdict.h"

#include "unit/unit.h"

enum { NOT, MAYBE, IS }; /* in the log */

static const rd_kafka_msg_status_t statuses[] = { RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
                                                  RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED,
                                                  RD_KAFKA_MSG_STATUS_PERSISTED };

static const struct row {
    rd_kafka_resp_err_t err;
    sl_kafka_came came; /* of what is not in the log */
} rows[] = {
    { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_INVALID_RECORD, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_INVALID_MSG, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_POLICY_VIOLATION, SL_KAFKA_BATCH },
    { RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, SL_KAFKA_TOPIC },
    { RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, SL_KAFKA_TOPIC },
    { RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, SL_KAFKA_TOPIC },
    { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, SL_KAFKA_TOPIC },
    { RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, SL_KAFKA_TOPIC },
    { RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, SL_KAFKA_REFUSED },
    { RD_KAFKA_RESP_ERR__PURGE_QUEUE, SL_KAFKA_PURGED },
    { RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, SL_KAFKA_PURGED },
    { RD_KAFKA_RESP_ERR__FATAL, SL_KAFKA_PURGED },
    { RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, SL_KAFKA_PURGED },
    { RD_KAFKA_RESP_ERR__DESTROY, SL_KAFKA_PURGED },
    /* no fault of the message */
    { RD_KAFKA_RESP_ERR__TRANSPORT, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR__TIMED_OUT, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR__AUTHENTICATION, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, SL_KAFKA_DOWN }, /* a clock is wrong */
    { RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, SL_KAFKA_DOWN },
    { RD_KAFKA_RESP_ERR_UNKNOWN, SL_KAFKA_DOWN },
};

static void without_an_error_it_is_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(statuses); i++)
        assert_int_equal(sl_kafka_verdict(RD_KAFKA_RESP_ERR_NO_ERROR, statuses[i]),
                         SL_KAFKA_SENT);
}

static void an_error_says_why_it_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (sl_kafka_verdict(rows[i].err, statuses[NOT]) != rows[i].came)
            fail_msg("%s: %d", rd_kafka_err2name(rows[i].err),
                     sl_kafka_verdict(rows[i].err, statuses[NOT]));
}

/* Whatever the error: for at most once it matters that "not sent" is never said of what may be there. */
static void what_may_be_in_the_log_is_unknown(void **state)
{
    (void)state;
    const struct rd_kafka_err_desc *all;
    size_t count, errors = 0;
    rd_kafka_get_err_descs(&all, &count);
    for (size_t i = 0; i < count; i++) {
        if (!all[i].desc || !all[i].code)
            continue;
        errors++;
        assert_int_equal(sl_kafka_verdict(all[i].code, statuses[MAYBE]), SL_KAFKA_UNKNOWN);
        assert_int_equal(sl_kafka_verdict(all[i].code, statuses[IS]), SL_KAFKA_SENT);
        assert_int_not_equal(sl_kafka_verdict(all[i].code, statuses[NOT]), SL_KAFKA_SENT);
        assert_int_not_equal(sl_kafka_verdict(all[i].code, statuses[NOT]), SL_KAFKA_UNKNOWN);
    }
    assert_true(errors > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_error_it_is_sent),
        cmocka_unit_test(an_error_says_why_it_is_not),
        cmocka_unit_test(what_may_be_in_the_log_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
