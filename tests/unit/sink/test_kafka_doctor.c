/* SPDX-License-Identifier: Apache-2.0 */
/* Against librdkafka's mock cluster, which knows no settings: those are read from a real broker by
 * tests/e2e/test_doctor_sink.py. */
#include "sink/kafka_doctor.h"

#include "core/buf.h"
#include "core/mem.h"

#include "unit/unit.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

typedef struct cluster {
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *mock;
    sl_buf found;
} cluster;

static int start(void **state)
{
    char why[256];
    cluster *c = sl_alloc(sizeof *c);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
    c->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    c->mock = rd_kafka_mock_cluster_new(c->rk, 3);
    *state = c;
    return c->mock ? 0 : -1;
}

static int stop(void **state)
{
    cluster *c = *state;
    rd_kafka_mock_cluster_destroy(c->mock);
    rd_kafka_destroy(c->rk);
    sl_buf_fini(&c->found);
    free(c);
    return 0;
}

static void note(void *ctx, sl_sink_state state, const char *check, const char *found,
                 const char *todo)
{
    static const char *const words[] = { "ok", "warn", "bad", "unknown" };
    (void)todo;
    sl_buf_printf(ctx, "%s %s: %s\n", words[state], check, found);
}

static const char *describe(cluster *c, const char *rest, const sl_sink_wait *waits, size_t n)
{
    char url[256]; /* it never tells its settings: there is no use in waiting for them */
    snprintf(url, sizeof url, "kafka://%s%s%cmessage.timeout.ms=200",
             rd_kafka_mock_cluster_bootstraps(c->mock), rest, strchr(rest, '?') ? '&' : '?');
    sl_buf_reset(&c->found);
    sl_kafka_describe(&(sl_sink_conf){ .url = url }, waits, n, note, &c->found);
    return sl_buf_text(&c->found);
}

static void expect(const char *found, const char *part)
{
    if (!strstr(found, part))
        fail_msg("no \"%s\" in:\n%s", part, found);
}

static void refuse(const char *found, const char *part)
{
    if (strstr(found, part))
        fail_msg("\"%s\" in:\n%s", part, found);
}

static void topics_of_what_waits(void **state)
{
    cluster *c = *state;
    sl_sink_wait waits[] = { { SL_STR("orders"), SL_STR("paid"), 3, 0, 10 },
                             { SL_STR("orders"), SL_STR("sent"), 2, 0, 10 },
                             { SL_STR("mails"), SL_STR(""), 1, 1, 10 } };
    rd_kafka_mock_topic_create(c->mock, "orders", 2, 3);
    rd_kafka_mock_topic_create(c->mock, "mails", 1, 3);
    const char *found = describe(c, "", waits, 3);
    expect(found, "ok brokers: 3 answer\n");
    expect(found, "ok topic: orders: 2 partitions, 3 replicas, all in sync\n");
    expect(found, "ok topic: mails: 1 partitions, 3 replicas");
    expect(found, "unknown topic: orders: its settings cannot be read");
    assert_null(strstr(strstr(found, "ok topic: orders") + 1, "ok topic: orders")); /* once */
}

static void the_target_says_which(void **state)
{
    cluster *c = *state;
    sl_sink_wait waits[] = { { SL_STR("orders"), SL_STR("paid"), 3, 0, 10 },
                             { SL_STR("named"), SL_STR(""), 0, 0, 0 } };
    rd_kafka_mock_topic_create(c->mock, "all", 5, 3);
    rd_kafka_mock_topic_create(c->mock, "orders.paid", 7, 3);
    const char *found = describe(c, "/all", NULL, 0);
    expect(found, "ok topic: all: 5 partitions");
    found = describe(c, "/{topic}.{type}", waits, 2);
    expect(found, "ok topic: orders.paid: 7 partitions");
    refuse(found, "named"); /* of which type is not known */
}

static void no_topic_is_known(void **state)
{
    expect(describe(*state, "", NULL, 0), "unknown topic: no message waits");
}

static void a_name_that_kafka_has_not(void **state)
{
    sl_sink_wait waits[] = { { SL_STR("or ders"), SL_STR(""), 3, 0, 10 } };
    expect(describe(*state, "", waits, 1), "bad topic: no name for a Kafka topic: 'or ders'");
}

static void a_partition_without_a_leader(void **state)
{
    cluster *c = *state;
    rd_kafka_mock_topic_create(c->mock, "orders", 3, 3);
    rd_kafka_mock_partition_set_leader(c->mock, "orders", 1, -1);
    expect(describe(c, "/orders", NULL, 0),
           "bad topic: orders: 1 of 3 partitions have no leader");
}

static void a_topic_that_is_missing(void **state)
{
    cluster *c = *state;
    rd_kafka_mock_topic_set_error(c->mock, "gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    expect(describe(c, "/gone", NULL, 0), "warn topic: gone is not there");
}

static void a_topic_that_is_not_ours(void **state)
{
    cluster *c = *state;
    rd_kafka_mock_topic_set_error(c->mock, "secret",
                                  RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    expect(describe(c, "/secret", NULL, 0), "bad topic: secret: Broker: Topic authorization");
}

static void another_partitioner(void **state)
{
    cluster *c = *state;
    rd_kafka_mock_topic_create(c->mock, "orders", 3, 3);
    refuse(describe(c, "/orders", NULL, 0), "partitioner");
    refuse(describe(c, "/orders?partitioner=murmur2", NULL, 0), "partitioner");
    expect(describe(c, "/orders?partitioner=consistent_random", NULL, 0), "warn partitioner:");
}

static void nobody_answers(void **state)
{
    sl_buf found = { 0 };
    (void)state;
    /* Port 1 of this machine: nothing listens there. */
    sl_kafka_describe(&(sl_sink_conf){ .url = "kafka://127.0.0.1:1/orders" }, NULL, 0, note,
                      &found);
    expect(sl_buf_text(&found), "bad brokers: no answer: ");
    expect(sl_buf_text(&found), "Connection refused");
    refuse(sl_buf_text(&found), "topic:");
    sl_buf_fini(&found);
}

static void settings_that_are_refused(void **state)
{
    sl_buf found = { 0 };
    (void)state;
    sl_kafka_describe(&(sl_sink_conf){ .url = "kafka://h:1?acks=1" }, NULL, 0, note, &found);
    expect(sl_buf_text(&found), "bad sink: sink kafka: acks cannot be 1");
    sl_buf_reset(&found);
    sl_kafka_describe(&(sl_sink_conf){ .url = "kafka://h:1?security.protocol=ssl&"
                                              "ssl.ca.location=/there/is/no/such" },
                      NULL, 0, note, &found);
    expect(sl_buf_text(&found), "bad brokers: ");
    sl_buf_fini(&found);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(topics_of_what_waits),
        WITH(the_target_says_which),
        WITH(no_topic_is_known),
        WITH(a_name_that_kafka_has_not),
        WITH(a_partition_without_a_leader),
        WITH(a_topic_that_is_missing),
        WITH(a_topic_that_is_not_ours),
        WITH(another_partitioner),
        cmocka_unit_test(nobody_answers),
        cmocka_unit_test(settings_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
