/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_position.h"

#include "core/clock.h"
#include "core/mem.h"

#include <time.h>

enum { ANSWER_MS = 10000 };
#define YOUNG_NS (50 * SL_MS)
/* Beyond the time-out that librdkafka was given. */
#define PATIENCE_NS (3 * SL_SEC)

/* ---- The topic ---- */

static bool is_there(rd_kafka_t *rk, const char *topic, int64_t timeout_ns, bool *missing,
                     char why[160])
{
    const struct rd_kafka_metadata *md = NULL;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, rkt, &md, (int)(timeout_ns / SL_MS) + 1);
    if (!err)
        err = md->topic_cnt == 1 ? md->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    *missing = err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (err)
        snprintf(why, 160, "Kafka: topic %.60s: %s", topic, rd_kafka_err2str(err));
    if (md)
        rd_kafka_metadata_destroy(md);
    rd_kafka_topic_destroy(rkt);
    return !err;
}

/* One partition, with as many replicas as the brokers think right. That it is there already is no error. */
static void make(rd_kafka_t *rk, const char *topic)
{
    char ignored[128];
    rd_kafka_NewTopic_t *new = rd_kafka_NewTopic_new(topic, 1, -1, ignored, sizeof ignored);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_CreateTopics(rk, &new, 1, NULL, queue);
    rd_kafka_event_t *e = rd_kafka_queue_poll(queue, ANSWER_MS);
    if (e)
        rd_kafka_event_destroy(e);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(new);
}

bool sl_kafka_position_topic(rd_kafka_t *rk, const char *topic, int64_t timeout_ns,
                             char why[160])
{
    int64_t until_ns = sl_now_ns() + timeout_ns;
    bool missing = false, made = false;
    while (!is_there(rk, topic, timeout_ns, &missing, why)) {
        if (missing && !made)
            make(rk, topic);
        made |= missing;
        if (sl_now_ns() > until_ns)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = YOUNG_NS }, NULL);
    }
    return true;
}

/* ---- The offset ---- */

rd_kafka_error_t *sl_kafka_position_put(rd_kafka_t *rk, const char *group, const char *topic,
                                        int64_t number, const sl_buf *text, int timeout_ms,
                                        sl_kafka_put **stuck)
{
    rd_kafka_consumer_group_metadata_t *gm = rd_kafka_consumer_group_metadata_new(group);
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *part = rd_kafka_topic_partition_list_add(parts, topic, 0);
    part->offset = number;
    part->metadata = sl_strndup(sl_buf_text(text), text->n); /* freed with the list */
    part->metadata_size = text->n;
    return sl_kafka_put_offsets(rk, parts, gm, timeout_ms, PATIENCE_NS, stuck);
}

static bool read_part(const rd_kafka_topic_partition_t *part, int64_t *number, sl_buf *text,
                      char why[160])
{
    if (part->err) {
        snprintf(why, 160, "Kafka: %s", rd_kafka_err2str(part->err));
        return false;
    }
    *number = part->offset < 0 ? 0 : part->offset;
    if (text && part->offset >= 0 && part->metadata)
        sl_buf_put(text, part->metadata, part->metadata_size);
    return true;
}

/* Not by the producer, which could ask, too: librdkafka 2.0 crashes when the answer is that another broker is in charge
 * of the group, since only a consumer knows of groups. */
static rd_kafka_t *reader_of(const sl_kafka_conf *c, const char *group, char why[160])
{
    char text[512] = "", ignored[128];
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(c->rk);
    rd_kafka_conf_set(conf, "group.id", group, ignored, sizeof ignored);
    rd_kafka_conf_set(conf, "isolation.level", "read_committed", ignored, sizeof ignored);
    rd_kafka_conf_set(conf, "log_level", "0", ignored, sizeof ignored);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (rk)
        return rk;
    rd_kafka_conf_destroy(conf);
    snprintf(why, 160, "Kafka: %.150s", text);
    return NULL;
}

bool sl_kafka_position_get(const sl_kafka_conf *c, const char *group, int64_t *number,
                           sl_buf *text, char why[160])
{
    rd_kafka_t *rk = reader_of(c, group, why);
    if (!rk)
        return false;
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, c->positions, 0);
    *number = 0;
    rd_kafka_resp_err_t err = rd_kafka_committed(rk, parts, ANSWER_MS);
    bool ok = !err && read_part(&parts->elems[0], number, text, why);
    if (err)
        snprintf(why, 160, "Kafka: %s", rd_kafka_err2str(err));
    rd_kafka_topic_partition_list_destroy(parts);
    rd_kafka_destroy(rk);
    return ok;
}
