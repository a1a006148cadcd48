/* SPDX-License-Identifier: Apache-2.0 */
/* What a record has in it, tests/unit/sink/test_kafka.c reads back from a broker. Here is no broker. */
#include "sink/kafka_record.h"

#include "unit/unit.h"

static rd_kafka_resp_err_t produce(rd_kafka_t *rk, rd_kafka_topic_t *rkt)
{
    sl_kafka_conf conf = { 0 };
    sl_kafka_topic topic = { .rkt = rkt };
    static sl_msg m;
    sl_encoded e = { .value = SL_STR("x") };
    return sl_kafka_produce(rk, &conf, &topic, 0, &m, &e);
}

/* A fatal error comes from a thread of the library at any time. After it producing fails with that error's own code, which must not be
 * taken for the message's fault. */
static void a_fatal_error_is_not_the_message_s(void **state)
{
    (void)state;
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "enable.idempotence", "true", text, sizeof text),
                     RD_KAFKA_CONF_OK);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(rk);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, "t", NULL);
    assert_int_equal(produce(rk, rkt), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(
        rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "test"),
        RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(produce(rk, rkt), RD_KAFKA_RESP_ERR__FATAL);
    rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_fatal_error_is_not_the_message_s) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
