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

#if RD_KAFKA_VERSION >= 0x02000000

static bool read_answer(rd_kafka_event_t *e, int64_t *number, sl_buf *text, char why[160])
{
    size_t n = 0;
    if (!e || rd_kafka_event_error(e)) {
        snprintf(why, 160, "Kafka: %s", e ? rd_kafka_event_error_string(e) : "no answer");
        return false;
    }
    const rd_kafka_ListConsumerGroupOffsets_result_t *res =
        rd_kafka_event_ListConsumerGroupOffsets_result(e);
    const rd_kafka_group_result_t **groups =
        rd_kafka_ListConsumerGroupOffsets_result_groups(res, &n);
    const rd_kafka_error_t *error = n == 1 ? rd_kafka_group_result_error(groups[0]) : NULL;
    if (n != 1 || error) {
        snprintf(why, 160, "Kafka: %.150s", error ? rd_kafka_error_string(error) : "no group");
        return false;
    }
    const rd_kafka_topic_partition_list_t *parts = rd_kafka_group_result_partitions(groups[0]);
    return !parts || parts->cnt == 0 || read_part(&parts->elems[0], number, text, why);
}

bool sl_kafka_position_get(rd_kafka_t *rk, const char *group, const char *topic,
                           int64_t *number, sl_buf *text, char why[160])
{
    char ignored[128];
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, topic, 0);
    rd_kafka_ListConsumerGroupOffsets_t *ask =
        rd_kafka_ListConsumerGroupOffsets_new(group, parts);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
    rd_kafka_error_t *error = rd_kafka_AdminOptions_set_require_stable_offsets(options, 1);
    if (error)
        rd_kafka_error_destroy(error);
    rd_kafka_AdminOptions_set_request_timeout(options, ANSWER_MS, ignored, sizeof ignored);
    *number = 0;
    rd_kafka_ListConsumerGroupOffsets(rk, &ask, 1, options, queue);
    rd_kafka_event_t *e = rd_kafka_queue_poll(queue, ANSWER_MS + 1000);
    bool ok = read_answer(e, number, text, why);
    if (e)
        rd_kafka_event_destroy(e);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_ListConsumerGroupOffsets_destroy(ask);
    rd_kafka_topic_partition_list_destroy(parts);
    return ok;
}

#else

/* Never asked: sl_kafka_conf_read has refused it. */
bool sl_kafka_position_get(rd_kafka_t *rk, const char *group, const char *topic,
                           int64_t *number, sl_buf *text, char why[160])
{
    (void)rk, (void)group, (void)topic, (void)number, (void)text, (void)read_part;
    snprintf(why, 160, "librdkafka is too old");
    return false;
}

#endif
