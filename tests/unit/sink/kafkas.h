/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the Kafka sink: librdkafka's cluster in the same process, a relay in small that hands messages over
 * as the real one does, and what is in the log then.
 *
 * That cluster appends what it gets, without a look at sequence numbers, and puts a message that is sent twice into
 * the log twice. So where it is told to fail, only one request at a time is under way.
 */
#ifndef TESTS_UNIT_SINK_KAFKAS_H
#define TESTS_UNIT_SINK_KAFKAS_H

#include "unit/sink/sinks.h"

#include "sink/kafka_topic.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

enum { PRODUCE = 0, INIT_PRODUCER_ID = 22, MSGS_MAX = 600, PARTITIONS = 4 };

static char topic_name[16]; /* each test has one of its own */

/* ---- The cluster ---- */

static sl_batch batch;
static rd_kafka_t *cluster_rk;
static rd_kafka_mock_cluster_t *cluster;

static void no_log(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
    (void)rk, (void)level, (void)fac, (void)text;
}

static rd_kafka_t *client(rd_kafka_type_t type)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, no_log);
    if (type == RD_KAFKA_CONSUMER) {
        rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster),
                          why, sizeof why);
        rd_kafka_conf_set(conf, "group.id", "test", why, sizeof why);
        rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof why);
        rd_kafka_conf_set(conf, "fetch.wait.max.ms", "5", why, sizeof why);
    }
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (!rk)
        fail_msg("%s", why);
    return rk;
}

static inline int make_cluster(void **state)
{
    (void)state;
    cluster_rk = client(RD_KAFKA_PRODUCER);
    cluster = rd_kafka_mock_cluster_new(cluster_rk, 1);
    sl_batch_init(&batch);
    return 0;
}

static inline int drop_cluster(void **state)
{
    (void)state;
    sl_batch_fini(&batch);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(cluster_rk);
    return 0;
}

/* Has the broker had all the requests that it was told how to answer? */
static inline bool all_answered(void)
{
    size_t n = 0;
    rd_kafka_mock_broker_error_stack_cnt(cluster, 1, PRODUCE, &n);
    return n == 0;
}

static inline int make_topic(void **state)
{
    static int number;
    if (!all_answered() && (drop_cluster(state) || make_cluster(state)))
        return -1;
    rd_kafka_mock_clear_request_errors(cluster, INIT_PRODUCER_ID);
    rd_kafka_mock_broker_set_up(cluster, 1);
    sl_kafka_grace_ns = 3600 * SL_SEC;
    snprintf(topic_name, sizeof topic_name, "t%d", ++number);
    return rd_kafka_mock_topic_create(cluster, topic_name, PARTITIONS, 1);
}

static inline void answer(size_t count, const rd_kafka_resp_err_t *errors)
{
    for (size_t i = 0; i < count; i++)
        rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1, errors[i], 0);
}

/* The answers to the next produce requests; 0 is a good one. */
#define ANSWER(...)                                                                            \
    answer(COUNT(((rd_kafka_resp_err_t[]){ __VA_ARGS__ })),                                    \
           (rd_kafka_resp_err_t[]){ __VA_ARGS__ })

/* A request that was made before its answer came is sent all the same. Brokers refuse it, for it comes behind a gap;
 * this one has to be told. If there is none, the next producer's first request is answered so. */
#define ANSWER_AND_GAP(error) ANSWER(error, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER)

/* The next produce request is carried out at once, and answered when it is too late. */
static inline void answer_too_late(void)
{
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, PRODUCE, 1, 0, 3600 * 1000);
}

/* ---- The sink ---- */

static sl_opt_map props_of_test;

static inline void set(const char *name, const char *value)
{
    sl_opt_map_put(&props_of_test, name, value);
}

static inline void unset_all(void)
{
    for (size_t i = 0; i < props_of_test.count; i++) {
        free(props_of_test.names[i]);
        free(props_of_test.values[i]);
    }
    free(props_of_test.names);
    free(props_of_test.values);
    props_of_test = (sl_opt_map){ 0 };
}

/* With the properties that were set; they are forgotten. */
static inline sl_sink *open_kafka_as(const sl_sink_ops *ops)
{
    char url[256];
    sl_sink *s = NULL;
    sl_err err = { 0 };
    snprintf(url, sizeof url, "kafka://%s", rd_kafka_mock_cluster_bootstraps(cluster));
    sl_sink_conf conf = { .url = url,
                          .worker = "node/1",
                          .format = "raw",
                          .props = { &props_of_test },
                          .answer_ns = 20 * SL_SEC };
    sl_rc rc = ops->open(&s, &conf, &err);
    unset_all();
    if (rc != SL_OK)
        fail_msg("%s: %s", url, err.text);
    return s;
}

/* ---- A relay in small ---- */

typedef struct order {
    char key[16]; /* "": none */
    char value[24];
    sl_verdict verdict; /* the last one; of a message that was not handed over SL_PENDING */
    unsigned tries;
    bool reason;
    size_t payload_bytes; /* 0: as the value */
} order;

static order orders[MSGS_MAX];
static size_t order_count;
static size_t order_at[MSGS_MAX]; /* of each message of the batch */

static inline void order_all(size_t count, unsigned keys)
{
    memset(orders, 0, sizeof orders);
    order_count = count;
    for (size_t i = 0; i < count; i++) {
        if (keys)
            snprintf(orders[i].key, sizeof orders[i].key, "k%u", (unsigned)(i % keys));
        snprintf(orders[i].value, sizeof orders[i].value, "%zu", i);
    }
}

static inline void take_orders(void)
{
    sl_batch_reset(&batch);
    for (size_t i = 0; i < order_count; i++) {
        order *o = &orders[i];
        if (o->verdict == SL_SENT || o->verdict == SL_DEAD)
            continue;
        order_at[batch.count] = i;
        sl_msg *m = sl_batch_add(&batch);
        size_t n = strlen(o->value);
        char *payload = sl_arena_alloc(&batch.arena, n + o->payload_bytes);
        memcpy(payload, o->value, n);
        memset(payload + n, 'x', o->payload_bytes);
        m->id = (int64_t)i;
        m->attempt = (int32_t)o->tries + 1;
        m->topic = sl_str_of(topic_name);
        m->type = SL_STR("");
        m->content_type = SL_STR("text/plain");
        m->payload = (sl_str){ payload, n + o->payload_bytes };
        if (o->key[0])
            m->key = sl_str_of(o->key);
    }
}

/* Has one before it, of its key, come to nothing? Then it does not go: as in relay/deliver.c. */
static inline bool waits(size_t at)
{
    const sl_msg *m = &batch.msgs[at];
    for (size_t i = 0; m->key.p && i < at; i++) {
        const sl_msg *before = &batch.msgs[i];
        bool went = before->verdict == SL_PENDING || before->verdict == SL_SENT ||
                    before->verdict == SL_DEAD;
        if (before->key.p && sl_str_eq(before->key, m->key) && !went)
            return true;
    }
    return false;
}

static inline void hand_over(sl_sink *s)
{
    take_orders();
    for (size_t i = 0; i < batch.count; i++) {
        sl_msg *m = &batch.msgs[i];
        if (waits(i)) {
            sl_msg_settle(&batch, m, SL_RELEASED, SL_NONE);
            continue;
        }
        m->handed = true;
        orders[order_at[i]].tries++;
        s->ops->submit(s, &batch, m);
    }
}

static inline void note_verdicts(void)
{
    for (size_t i = 0; i < batch.count; i++) {
        orders[order_at[i]].verdict = batch.msgs[i].verdict;
        orders[order_at[i]].reason = batch.msgs[i].reason.n > 0;
    }
}

static inline void turn(sl_sink *s)
{
    hand_over(s);
    poll_all(s, &batch);
    s->ops->recall(s);
    note_verdicts();
}

static inline size_t orders_with(sl_verdict v)
{
    size_t n = 0;
    for (size_t i = 0; i < order_count; i++)
        n += orders[i].verdict == v;
    return n;
}

static inline bool all_done(void)
{
    return orders_with(SL_SENT) + orders_with(SL_DEAD) == order_count;
}

/* Until each message is sent or dead. */
static inline void deliver(sl_sink *s)
{
    int64_t until = sl_now_ns() + 60 * SL_SEC;
    while (!all_done()) {
        assert_true(sl_now_ns() < until);
        turn(s);
        nanosleep(&(struct timespec){ .tv_nsec = SL_MS }, NULL); /* as a breaker would */
    }
}

/* ---- The log ---- */

typedef struct logged {
    int32_t partition;
    long id; /* which begins the value; -1: it does not */
    char key[16];
    bool keyless;
} logged;

typedef struct loglist {
    logged v[4 * MSGS_MAX];
    size_t count;
} loglist;

static loglist in_log;

static inline void add_to_log(const rd_kafka_message_t *m)
{
    char text[16] = "";
    assert_true(in_log.count < COUNT(in_log.v));
    logged *l = &in_log.v[in_log.count++];
    snprintf(text, sizeof text, "%.*s", (int)(m->len < 15 ? m->len : 15),
             m->payload ? (const char *)m->payload : "");
    *l = (logged){ .partition = m->partition,
                   .id = text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1,
                   .keyless = !m->key };
    snprintf(l->key, sizeof l->key, "%.*s", (int)m->key_len,
             m->key ? (const char *)m->key : "");
}

/* Of each partition all that is there now, one after the other. `see` may be NULL. */
static inline void read_log_with(void (*see)(const rd_kafka_message_t *m))
{
    int64_t until = sl_now_ns() + 60 * SL_SEC;
    int64_t low, high, left = 0;
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    in_log.count = 0;
    for (int32_t p = 0; p < PARTITIONS; p++) {
        rd_kafka_topic_partition_list_add(list, topic_name, p)->offset = 0;
        while (rd_kafka_query_watermark_offsets(rk, topic_name, p, &low, &high, 5000))
            assert_true(sl_now_ns() < until);
        left += high;
    }
    assert_int_equal(rd_kafka_assign(rk, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    while (left > 0) {
        assert_true(sl_now_ns() < until);
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);
        if (m && !m->err) {
            add_to_log(m);
            left--;
            if (see)
                see(m);
        }
        if (m)
            rd_kafka_message_destroy(m);
    }
    rd_kafka_assign(rk, NULL);
    rd_kafka_destroy(rk);
}

static inline void read_log(void)
{
    read_log_with(NULL);
}

static inline size_t times_in_log(long id)
{
    size_t n = 0;
    for (size_t i = 0; i < in_log.count; i++)
        n += in_log.v[i].id == id;
    return n;
}

/* What is wrong; NULL: nothing. What is in the log a second time counts as if it were not. */
static inline const char *fault_of_order(void)
{
    for (size_t i = 0; i < in_log.count; i++) {
        const logged *l = &in_log.v[i];
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= in_log.v[k].id == l->id;
        for (size_t k = 0; k < i && !again && !l->keyless; k++) {
            const logged *before = &in_log.v[k];
            if (before->keyless || strcmp(before->key, l->key) != 0)
                continue;
            if (before->partition != l->partition)
                return "a key is in two partitions";
            if (before->id > l->id)
                return "a message was overtaken";
        }
    }
    return NULL;
}

/* No verdict may say more than is known. */
static inline const char *fault_of_verdicts(void)
{
    for (size_t i = 0; i < order_count; i++) {
        size_t times = times_in_log((long)i);
        if (orders[i].verdict == SL_SENT && times == 0)
            return "what was called sent is not there";
        if (orders[i].verdict != SL_SENT && orders[i].verdict != SL_UNKNOWN && times > 0)
            return "what was called not sent is there";
    }
    return NULL;
}

static inline const char *fault(void)
{
    read_log();
    const char *wrong = fault_of_verdicts();
    return wrong ? wrong : fault_of_order();
}

static inline void expect_no_fault(void)
{
    const char *wrong = fault();
    if (wrong)
        fail_msg("%s", wrong);
}

static inline void expect_once(void)
{
    for (size_t i = 0; i < order_count; i++)
        assert_int_equal(times_in_log((long)i), orders[i].verdict == SL_SENT);
}

#endif
