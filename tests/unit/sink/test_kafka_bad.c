/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Would the scenes notice? The sink is compiled once more, with one thing wrong in it at a time, and each must be
 * caught; with nothing wrong in it, the same scenes show nothing.
 */
#include "unit/sink/kafka_scenes.h"

#include "sink/kafka_conf.h"
#include "sink/kafka_verdict.h"

static struct wrong {
    bool not_idempotent;     /* and so without gaps being noticed */
    bool late_is_failed;     /* no answer in time: taken for "it did not arrive" */
    bool queued_go_on;       /* after a failure, those that are queued are sent all the same */
    bool first_is_not_alone; /* the first message to a partition goes with others */
} wrong;

static sl_rc wrong_conf(sl_kafka_conf *c, const sl_sink_conf *from, sl_err *err)
{
    char why[256];
    sl_rc rc = sl_kafka_conf_read(c, from, err);
    if (wrong.not_idempotent || wrong.queued_go_on)
        rd_kafka_conf_set(c->rk, "enable.gapless.guarantee", "false", why, sizeof why);
    if (wrong.not_idempotent)
        rd_kafka_conf_set(c->rk, "enable.idempotence", "false", why, sizeof why);
    return rc;
}

static sl_kafka_came wrong_verdict(rd_kafka_resp_err_t err, rd_kafka_msg_status_t status)
{
    sl_kafka_came came = sl_kafka_verdict(err, status);
    return came == SL_KAFKA_UNKNOWN && wrong.late_is_failed ? SL_KAFKA_DOWN : came;
}

static rd_kafka_resp_err_t wrong_purge(rd_kafka_t *rk, int flags)
{
    return wrong.queued_go_on ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_purge(rk, flags);
}

static void wrong_look(sl_kafka_topics *t, sl_kafka_topic *topic, int64_t timeout_ns)
{
    sl_kafka_topic_look(t, topic, timeout_ns);
    if (wrong.first_is_not_alone && topic->proof)
        memset(topic->proof, SL_KAFKA_PROVEN, (size_t)topic->partitions);
}

#define sl_sink_kafka wrong_kafka
#define sl_kafka_conf_read wrong_conf
#define sl_kafka_verdict wrong_verdict
#define rd_kafka_purge wrong_purge
#define sl_kafka_topic_look wrong_look
#include "sink/kafka.c"

/* ---- The scenes ---- */

static const struct scene {
    const char *name;
    const char *(*play)(const sl_sink_ops *ops);
    struct wrong wrong;
} scenes[] = {
    { "idempotence off", scene_no_producer_id, { .not_idempotent = true } },
    { "a time-out taken for a failure", scene_no_answer, { .late_is_failed = true } },
    { "sent again while others of the key are queued",
      scene_refused,
      { .queued_go_on = true } },
    { "the first one not alone", scene_first_refused, { .first_is_not_alone = true } },
};

static const char *play(const struct scene *s, struct wrong how)
{
    wrong = how;
    make_topic(NULL);
    return s->play(&wrong_kafka);
}

/* Whether a wrong sink shows it is up to librdkafka's threads, too: each has a few tries. */
static void what_is_wrong_is_caught(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++) {
        const char *found = NULL;
        for (int tries = 0; tries < 10 && !found; tries++)
            found = play(&scenes[i], scenes[i].wrong);
        if (!found)
            fail_msg("%s: went unnoticed", scenes[i].name);
        print_message("%s: %s\n", scenes[i].name, found);
    }
}

static void what_is_right_shows_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++) {
        const char *found = play(&scenes[i], (struct wrong){ 0 });
        if (found)
            fail_msg("%s: %s", scenes[i].name, found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_caught),
        cmocka_unit_test(what_is_right_shows_nothing),
    };
    return cmocka_run_group_tests(tests, make_cluster, drop_cluster);
}
