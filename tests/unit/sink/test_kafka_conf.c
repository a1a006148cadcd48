/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_conf.h"

#include "core/clock.h"
#include "unit/sink/sinks.h"

#define CANARY "hunter2-canary"

static sl_kafka_conf got;
static sl_err err;

static sl_rc read_all(const char *url, size_t count, const char *const (*props)[2])
{
    sl_opt_map map = { 0 };
    for (size_t i = 0; i < count; i++)
        sl_opt_map_put(&map, props[i][0], props[i][1]);
    err = (sl_err){ 0 };
    sl_rc rc = sl_kafka_conf_read(&got, &(sl_sink_conf){ .url = url, .props = { &map } }, &err);
    for (size_t i = 0; i < map.count; i++) {
        free(map.names[i]);
        free(map.values[i]);
    }
    free(map.names);
    free(map.values);
    return rc;
}

static sl_rc read_one(const char *name, const char *value)
{
    return read_all("kafka://h", 1, (const char *const[][2]){ { name, value } });
}

static void expect_prop(const char *name, const char *value)
{
    char text[512];
    size_t n = sizeof text;
    assert_int_equal(rd_kafka_conf_get(got.rk, name, text, &n), RD_KAFKA_CONF_OK);
    assert_string_equal(text, value);
}

static void refuse(sl_rc rc, const char *what, const char *part)
{
    if (rc != SL_REFUSED || !strstr(err.text, part))
        fail_msg("%s: %s: %s", what, sl_rc_name(rc), err.text);
    assert_null(got.rk);
}

/* ---- Properties ---- */

static void what_the_promises_need_is_set(void **state)
{
    (void)state;
    assert_int_equal(read_all("kafka://h:1,h2", 0, NULL), SL_OK);
    expect_prop("bootstrap.servers", "h:1,h2");
    expect_prop("linger.ms", "0");
    expect_prop("enable.idempotence", "true");
    expect_prop("enable.gapless.guarantee", "true");
    expect_prop("message.timeout.ms", "0");
    expect_prop("acks", "-1");
    assert_string_equal(got.target, "{topic}");
    assert_ptr_equal(got.partitioner, rd_kafka_msg_partitioner_murmur2);
    sl_kafka_conf_fini(&got);
}

static void what_would_break_a_promise_is_refused(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        { "enable.idempotence", "false", "changes the order" },
        { "acks", "1", "all replicas in sync" },
        { "acks", "0", "all replicas in sync" },
        { "request.required.acks", "1", "all replicas in sync" },
        { "topic.acks", "1", "all replicas in sync" },
        { "topic.request.required.acks", "1", "all replicas in sync" },
        { "enable.gapless.guarantee", "false", "is overtaken" },
        { "queuing.strategy", "lifo", "in their order" },
        { "topic.queuing.strategy", "lifo", "in their order" },
        { "delivery.report.only.error", "true", "could not be taken from the table" },
        { "retries", "3", "is overtaken" },
        { "message.send.max.retries", "0", "is overtaken" },
        { "log.queue", "true", "grow for ever" },
        { "bootstrap.servers", "h", "stand in the URL" },
        { "metadata.broker.list", "h", "stand in the URL" },
        { "transactional.id", "t", "part of the fence" },
        { "partitioner", "random", "no partitioner \"random\"" },
        { "topic.partitioner", "random", "no partitioner \"random\"" },
        { "message.timeout.ms", "0", "from 100 to" },
        { "message.timeout.ms", "99", "from 100 to" },
        { "message.timeout.ms", "1s", "from 100 to" },
        { "message.timeout.ms", "", "from 100 to" },
        { "topic.message.timeout.ms", "5", "from 100 to" },
        { "delivery.timeout.ms", "99999999999", "from 100 to" },
        { "no.such.thing", "1", "no property \"no.such.thing\"" },
        { "topic.no.such.thing", "1", "no property" },
        { "linger.ms", "much", "linger.ms" },
        { "dr_cb", "1", "dr_cb" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        refuse(read_one(rows[i][0], rows[i][1]), rows[i][0], rows[i][2]);
}

static void what_is_so_anyway_may_be_said(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "enable.idempotence", "true" },
        { "enable.idempotence", "1" },
        { "acks", "all" },
        { "acks", "-1" },
        { "request.required.acks", "-1" },
        { "topic.acks", "all" },
        { "enable.gapless.guarantee", "true" },
        { "queuing.strategy", "fifo" },
        { "delivery.report.only.error", "false" },
        { "retries", "2147483647" },
        { "log.queue", "false" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (read_one(rows[i][0], rows[i][1]) != SL_OK)
            fail_msg("%s: %s", rows[i][0], err.text);
        sl_kafka_conf_fini(&got);
    }
}

/* What librdkafka itself says to that. */
static bool librdkafka_takes(const char *name, const char *value)
{
    char why[256];
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    bool takes = rd_kafka_conf_set(c, name, value, why, sizeof why) == RD_KAFKA_CONF_OK;
    rd_kafka_conf_destroy(c);
    return takes;
}

static bool is_ours(const char *name)
{
    return !strcmp(name, "message.timeout.ms") || !strcmp(name, "partitioner") ||
           !strcmp(name, "enable.idempotence") || !strcmp(name, "enable.gapless.guarantee");
}

static size_t pass_all(const char **dump, size_t count)
{
    size_t passed = 0;
    for (size_t i = 0; i < count; i += 2) {
        if (is_ours(dump[i]))
            continue;
        bool takes = librdkafka_takes(dump[i], dump[i + 1]);
        if ((read_one(dump[i], dump[i + 1]) == SL_OK) != takes)
            fail_msg("%s=%s: %s", dump[i], dump[i + 1], err.text);
        if (takes)
            expect_prop(dump[i], dump[i + 1]);
        sl_kafka_conf_fini(&got);
        passed += takes;
    }
    rd_kafka_conf_dump_free(dump, count);
    return passed;
}

static void every_property_of_librdkafka_passes(void **state)
{
    (void)state;
    size_t count;
    rd_kafka_conf_t *global = rd_kafka_conf_new();
    const char **dump = rd_kafka_conf_dump(global, &count);
    assert_true(pass_all(dump, count) > 60);
    rd_kafka_conf_destroy(global);
    rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();
    dump = rd_kafka_topic_conf_dump(topic, &count);
    assert_true(pass_all(dump, count) > 8);
    rd_kafka_topic_conf_destroy(topic);
}

static void their_values_arrive(void **state)
{
    (void)state;
    static const char *const props[][2] = { { "linger.ms", "7" },
                                            { "compression.type", "zstd" },
                                            { "message.max.bytes", "2000000" },
                                            { "topic.request.timeout.ms", "1234" },
                                            { "topic.metadata.refresh.interval.ms", "4321" },
                                            { "delivery.timeout.ms", "2500" },
                                            { "partitioner", "consistent_random" },
                                            { "client.id", "mine" } };
    assert_int_equal(read_all("kafka://h", COUNT(props), props), SL_OK);
    expect_prop("linger.ms", "7");
    expect_prop("compression.codec", "zstd");
    expect_prop("message.max.bytes", "2000000");
    expect_prop("request.timeout.ms", "1234");
    expect_prop("topic.metadata.refresh.interval.ms", "4321");
    expect_prop("message.timeout.ms", "0"); /* it is ours to measure */
    assert_int_equal(got.answer_ns, 2500 * SL_MS);
    assert_ptr_equal(got.partitioner, rd_kafka_msg_partitioner_consistent);
    expect_prop("client.id", "mine");
    sl_kafka_conf_fini(&got);
}

static void the_later_map_and_the_url_count(void **state)
{
    (void)state;
    sl_opt_map all = { 0 }, route = { 0 };
    sl_opt_map *maps[] = { &all, &route };
    sl_opt_map_put(&all, "linger.ms", "1");
    sl_opt_map_put(&all, "batch.size", "11");
    sl_opt_map_put(&all, "client.id", "all");
    sl_opt_map_put(&route, "linger.ms", "2");
    sl_opt_map_put(&route, "batch.size", "12");
    sl_sink_conf conf = { .url = "kafka://h?linger.ms=3", .props = { &all, &route } };
    assert_int_equal(sl_kafka_conf_read(&got, &conf, &err), SL_OK);
    expect_prop("linger.ms", "3");
    expect_prop("batch.size", "12");
    expect_prop("client.id", "all");
    sl_kafka_conf_fini(&got);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < maps[k]->count; i++) {
            free(maps[k]->names[i]);
            free(maps[k]->values[i]);
        }
        free(maps[k]->names);
        free(maps[k]->values);
    }
}

static void the_answer_time_is_bounded(void **state)
{
    (void)state;
    static const int64_t rows[][2] = { { 0, 20 * SL_SEC },
                                       { 5 * SL_SEC, 5 * SL_SEC },
                                       { 60 * SL_SEC, 20 * SL_SEC },
                                       { SL_MS, SL_SEC } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_sink_conf conf = { .url = "kafka://h", .answer_ns = rows[i][0] };
        assert_int_equal(sl_kafka_conf_read(&got, &conf, &err), SL_OK);
        assert_int_equal(got.answer_ns, rows[i][1]);
        sl_kafka_conf_fini(&got);
    }
}

/* ---- Secrets ---- */

static void secrets_come_from_a_file_or_the_environment(void **state)
{
    (void)state;
    FILE *f = fopen(in_folder("", "secret"), "w");
    fputs(CANARY "\r\n", f);
    fclose(f);
    assert_int_equal(read_one("sasl.password", in_folder("file:", "secret")), SL_OK);
    expect_prop("sasl.password", CANARY);
    sl_kafka_conf_fini(&got);
    setenv("SL_TEST_SECRET", CANARY, 1);
    assert_int_equal(read_one("ssl.key.password", "env:SL_TEST_SECRET"), SL_OK);
    expect_prop("ssl.key.password", CANARY);
    sl_kafka_conf_fini(&got);
    unsetenv("SL_TEST_SECRET");
    refuse(read_one("sasl.password", "env:SL_TEST_SECRET"), "env",
           "sasl.password is to come from the environment, and SL_TEST_SECRET is not set");
    assert_int_equal(read_one("sasl.password", in_folder("file:", "none")), SL_OPERATOR);
    assert_non_null(strstr(err.text, "cannot read sasl.password from"));
    assert_int_equal(read_one("client.id", "env:HOME"), SL_OK); /* no secret: as it stands */
    expect_prop("client.id", "env:HOME");
    sl_kafka_conf_fini(&got);
}

static void no_text_repeats_a_secret(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "kafka://user:" CANARY "@h:9092",
        "kafka://h?sasl.password=a&" CANARY,
        "kafka://h?sasl.password=a&" CANARY "=b",
        "kafka://h?topic.sasl.password=" CANARY "&" CANARY "=b",
        "kafka://h?sasl.password=a&acks=" CANARY,
        "kafka://h?sasl.password:" CANARY,
    };
    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_int_equal(read_all(urls[i], 0, NULL), SL_REFUSED);
        if (strstr(err.text, CANARY))
            fail_msg("%s", err.text);
    }
    sl_sink *s = NULL;
    extern const sl_sink_ops sl_sink_kafka;
    sl_sink_conf bad_key = { .url = "kafka://h?security.protocol=ssl&ssl.key.pem=" CANARY };
    assert_int_not_equal(sl_sink_kafka.open(&s, &bad_key, &err), SL_OK);
    assert_null(strstr(err.text, CANARY));
}

/* ---- URLs ---- */

static void urls_that_are_right(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        { "kafka://h", "h", "{topic}" },
        { "kafka://h:9092/", "h:9092", "{topic}" },
        { "kafka://h-1.example:1,10.0.0.1:65535", "h-1.example:1,10.0.0.1:65535", "{topic}" },
        { "kafka://[::1]:9092,[fe80::1]/all", "[::1]:9092,[fe80::1]", "all" },
        { "KAFKA://h/x.{topic}", "h", "x.{topic}" },
        { "kafka://h/%7Btype%7d", "h", "{type}" },
        { "kafka://h?target=other", "h", "other" },
        { "kafka://h/one?target=other", "h", "other" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (read_all(rows[i][0], 0, NULL) != SL_OK)
            fail_msg("%s: %s", rows[i][0], err.text);
        assert_string_equal(got.brokers, rows[i][1]);
        assert_string_equal(got.target, rows[i][2]);
        sl_kafka_conf_fini(&got);
    }
}

static void options_of_ours_in_the_url(void **state)
{
    (void)state;
    assert_int_equal(
        read_all("kafka://h?format=plain&source=%2Fshop&client.id=a%26b%3Dc&", 0, NULL), SL_OK);
    assert_string_equal(got.format, "plain");
    assert_string_equal(got.source, "/shop");
    expect_prop("client.id", "a&b=c");
    sl_kafka_conf_fini(&got);
}

static void urls_that_are_wrong(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "kafka:", "no broker" },
        { "kafka:h:9092", "no broker" },
        { "kafka:/h", "no broker" },
        { "kafka://", "no broker" },
        { "kafka:///t", "no broker" },
        { "kafka://?x=y", "no broker" },
        { "kafka://,", "not a broker" },
        { "kafka://h,", "not a broker" },
        { "kafka://h,,h", "not a broker" },
        { "kafka://:9092", "not a broker" },
        { "kafka://h:", "not a broker" },
        { "kafka://h:0", "not a broker" },
        { "kafka://h:65536", "not a broker" },
        { "kafka://h:99999999999999999999", "not a broker" },
        { "kafka://h:9092x", "not a broker" },
        { "kafka://h h", "not a broker" },
        { "kafka://h\n", "not a broker" },
        { "kafka://h#x", "not a broker" },
        { "kafka://[::1", "not a broker" },
        { "kafka://[::1]x:9092", "not a broker" },
        { "kafka://u:p@h", "cannot stand in the URL" },
        { "kafka://h/a/b", "no name for a topic" },
        { "kafka://h/{topic", "no name for a topic" },
        { "kafka://h/{key}", "no name for a topic" },
        { "kafka://h/a%20b", "no name for a topic" },
        { "kafka://h/..", "no name for a topic" },
        { "kafka://h?linger.ms", "has no value" },
        { "kafka://h?=5", "no property" },
        { "kafka://h?acks=1", "all replicas in sync" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        refuse(read_all(rows[i][0], 0, NULL), rows[i][0], rows[i][1]);
}

/* librdkafka checks some when a producer is made: that is when the sink is opened, too. */
static void what_does_not_fit_together_is_said_when_it_is_opened(void **state)
{
    (void)state;
    refuse_sink("kafka://h?max.in.flight=6", SL_REFUSED, "max.in.flight");
    refuse_sink("kafka://h?format=nonsense", SL_REFUSED, "nonsense");
    refuse_sink("kafka://h?security.protocol=ssl&ssl.ca.location=/nonsense", SL_REFUSED, "ssl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_promises_need_is_set),
        cmocka_unit_test(what_would_break_a_promise_is_refused),
        cmocka_unit_test(what_is_so_anyway_may_be_said),
        cmocka_unit_test(every_property_of_librdkafka_passes),
        cmocka_unit_test(their_values_arrive),
        cmocka_unit_test(the_later_map_and_the_url_count),
        cmocka_unit_test(the_answer_time_is_bounded),
        cmocka_unit_test_setup_teardown(secrets_come_from_a_file_or_the_environment,
                                        make_folder, remove_folder),
        cmocka_unit_test(no_text_repeats_a_secret),
        cmocka_unit_test(urls_that_are_right),
        cmocka_unit_test(options_of_ours_in_the_url),
        cmocka_unit_test(urls_that_are_wrong),
        cmocka_unit_test(what_does_not_fit_together_is_said_when_it_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
