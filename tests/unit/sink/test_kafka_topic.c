/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_topic.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <stdio.h>

static rd_kafka_t *rk;
static sl_kafka_conf conf;
static sl_kafka_topics topics;
static sl_log logger;
static char logged[512];

static void keep_line(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx, (void)level;
    snprintf(logged, sizeof logged, "%s", line);
}

static void no_log(const rd_kafka_t *k, int level, const char *fac, const char *text)
{
    (void)k, (void)level, (void)fac, (void)text;
}

static int setup(void **state)
{
    (void)state;
    char why[256];
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(c, no_log);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, c, why, sizeof why);
    conf = (sl_kafka_conf){ .target = (char *)"{topic}",
                            .partitioner = rd_kafka_msg_partitioner_murmur2 };
    sl_log_init(&logger, keep_line, NULL);
    topics = (sl_kafka_topics){ .rk = rk, .conf = &conf, .log = &logger };
    logged[0] = '\0';
    return rk ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_kafka_topics_fini(&topics);
    sl_log_fini(&logger);
    rd_kafka_destroy(rk);
    return 0;
}

static sl_msg msg_of(const char *topic, const char *type, const char *key)
{
    return (
        sl_msg){ .topic = sl_str_of(topic), .type = sl_str_of(type), .key = sl_str_of(key) };
}

static const char *target(const char *template, const sl_msg *m)
{
    static char why[160];
    conf.target = (char *)template;
    return sl_kafka_target(&topics, m, why) ? sl_buf_text(&topics.name) : why;
}

/* ---- Names ---- */

static void a_target_is_filled_from_the_message(void **state)
{
    (void)state;
    sl_msg m = msg_of("orders", "paid", NULL);
    assert_string_equal(target("{topic}", &m), "orders");
    assert_string_equal(target("fixed", &m), "fixed");
    assert_string_equal(target("a.{topic}-{type}_z", &m), "a.orders-paid_z");
    assert_string_equal(target("{topic}{topic}", &m), "ordersorders");
    m.type = SL_NONE;
    assert_string_equal(target("x{type}", &m), "x");
}

static void what_kafka_has_no_name_for_is_refused(void **state)
{
    (void)state;
    char longest[251];
    static const char *const bad[] = { ".", "..", "a b", "a/b", "a\nb", "\xc3\xa4", "a:b" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        sl_msg m = msg_of(bad[i], "", NULL);
        assert_non_null(strstr(target("{topic}", &m), "no name for a Kafka topic"));
    }
    sl_msg m = { .topic = SL_NONE };
    assert_string_equal(target("{topic}", &m), "no Kafka topic: the message has none");
    m.topic = (sl_str){ "a\0b", 3 };
    assert_non_null(strstr(target("{topic}", &m), "no name"));
    memset(longest, 'a', sizeof longest);
    m.topic = (sl_str){ longest, 249 };
    assert_int_equal(strlen(target("{topic}", &m)), 249);
    m.topic.n = 250;
    assert_non_null(strstr(target("{topic}", &m), "no name"));
}

static void the_same_target_is_known(void **state)
{
    (void)state;
    sl_msg a = msg_of("a", "x", "k");
    sl_msg other_topic = msg_of("b", "x", "k");
    sl_msg other_type = msg_of("a", "y", "k");
    static const struct {
        const char *template;
        bool topic, type;
    } rows[] = { { "fixed", true, true },
                 { "{topic}", false, true },
                 { "{type}", true, false },
                 { "{topic}.{type}", false, false } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        conf.target = (char *)rows[i].template;
        assert_true(sl_kafka_same_target(&conf, &a, &a));
        assert_int_equal(sl_kafka_same_target(&conf, &a, &other_topic), rows[i].topic);
        assert_int_equal(sl_kafka_same_target(&conf, &a, &other_type), rows[i].type);
    }
}

/* ---- Topics ---- */

static sl_kafka_topic *topic_of(const char *name)
{
    sl_msg m = msg_of(name, "", NULL);
    assert_string_equal(target("{topic}", &m), name);
    return sl_kafka_topic_of(&topics);
}

static void many_topics_are_found_again(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static sl_kafka_topic *v[MANY];
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "topic-%d", i);
            sl_kafka_topic *t = topic_of(name);
            assert_non_null(t);
            assert_true(round == 0 || v[i] == t);
            assert_ptr_equal(sl_kafka_topic_named(&topics, name), t);
            v[i] = t;
        }
    assert_int_equal(topics.count, MANY);
    assert_null(sl_kafka_topic_named(&topics, "another"));
    sl_kafka_topics_trim(&topics);
    assert_int_equal(topics.count, MANY);
}

static void with_a_new_producer_all_is_looked_up_but_what_is_missing_stays_so(void **state)
{
    (void)state;
    sl_kafka_topic *t = topic_of("a");
    sl_kafka_topic_found(&topics, t, 4);
    t->proof[2] = SL_KAFKA_PROVEN;
    sl_kafka_topic_missing(topic_of("b"));
    int64_t since_ns = topic_of("b")->missing_ns;
    sl_kafka_topics_detach(&topics);
    topics.rk = rk;
    assert_ptr_equal(topic_of("a"), t);
    assert_non_null(t->rkt);
    assert_int_equal(t->partitions, 0);
    assert_null(t->proof);
    assert_int_equal(t->look_ns, 0);
    assert_true(since_ns > 0);
    assert_int_equal(topic_of("b")->missing_ns, since_ns);
}

static void a_missing_topic_is_given_up_in_the_end(void **state)
{
    (void)state;
    sl_kafka_topic *t = topic_of("a");
    sl_kafka_grace_ns = 3600 * SL_SEC;
    assert_false(sl_kafka_topic_given_up(t));
    sl_kafka_topic_missing(t);
    int64_t since_ns = t->missing_ns;
    sl_kafka_topic_missing(t);
    assert_int_equal(t->missing_ns, since_ns);
    assert_false(sl_kafka_topic_given_up(t));
    sl_kafka_grace_ns = -1;
    assert_true(sl_kafka_topic_given_up(t));
    sl_kafka_topic_found(&topics, t, 1);
    assert_false(sl_kafka_topic_given_up(t));
}

/* Nobody is there to ask: it ends in time, and says nothing of the topic. */
static void a_look_without_brokers_ends(void **state)
{
    (void)state;
    sl_kafka_topic *t = topic_of("a");
    int64_t start_ns = sl_now_ns();
    sl_kafka_topic_look(&topics, t, 20 * SL_MS);
    sl_kafka_topic_look(&topics, t, -5 * SL_SEC); /* not "for ever" */
    assert_true(sl_now_ns() - start_ns < 10 * SL_SEC);
    assert_int_not_equal(t->err, 0);
    assert_int_equal(t->missing_ns, 0);
    assert_true(t->look_ns > start_ns);
}

/* ---- Partitions ---- */

/* Java's, by the vectors of Kafka's own test of Utils.murmur2. */
static void keys_go_where_java_puts_them(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int32_t hash;
    } rows[] = { { "21", -973932308 },
                 { "foobar", -790332482 },
                 { "a-little-bit-long-string", -985981536 },
                 { "a-little-bit-longer-string", -1486304829 },
                 { "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 } };
    static const int32_t partitions[] = { 1, 2, 3, 12, 13, 1000 };
    sl_kafka_topic *t = topic_of("a");
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < COUNT(partitions); k++) {
            sl_msg m = msg_of("a", "", rows[i].key);
            sl_kafka_topic_found(&topics, t, partitions[k]);
            assert_int_equal(sl_kafka_partition(&topics, t, &m),
                             (rows[i].hash & 0x7fffffff) % partitions[k]);
        }
}

static void without_a_key_they_stay_together_for_a_while(void **state)
{
    (void)state;
    sl_kafka_topic *t = topic_of("a");
    sl_msg m = msg_of("a", "", NULL);
    bool seen[3] = { false };
    sl_kafka_topic_found(&topics, t, 3);
    int changes = 0;
    int32_t last = -1;
    for (m.id = 1; m.id <= 640; m.id++) {
        int32_t p = sl_kafka_partition(&topics, t, &m);
        assert_in_range(p, 0, 2);
        changes += p != last;
        last = p;
        seen[p] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    assert_true(changes <= 12);
}

static void another_number_of_partitions_is_told(void **state)
{
    (void)state;
    sl_kafka_topic *t = topic_of("a");
    sl_kafka_topic_found(&topics, t, 12);
    memset(t->proof, SL_KAFKA_PROVEN, 12);
    sl_kafka_topic_found(&topics, t, 12);
    assert_string_equal(logged, "");
    sl_kafka_topic_found(&topics, t, 13);
    assert_non_null(strstr(logged, "keys move"));
    assert_non_null(strstr(logged, "before=12"));
    assert_non_null(strstr(logged, "now=13"));
    assert_int_equal(t->partitions, 13);
    assert_int_equal(t->proof[11], SL_KAFKA_PROVEN);
    assert_int_equal(t->proof[12], SL_KAFKA_NO_PROOF);
    sl_kafka_topic_found(&topics, t, 3);
    assert_int_equal(t->partitions, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_target_is_filled_from_the_message),
        TEST(what_kafka_has_no_name_for_is_refused),
        TEST(the_same_target_is_known),
        TEST(many_topics_are_found_again),
        TEST(with_a_new_producer_all_is_looked_up_but_what_is_missing_stays_so),
        TEST(a_missing_topic_is_given_up_in_the_end),
        TEST(a_look_without_brokers_ends),
        TEST(keys_go_where_java_puts_them),
        TEST(without_a_key_they_stay_together_for_a_while),
        TEST(another_number_of_partitions_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
