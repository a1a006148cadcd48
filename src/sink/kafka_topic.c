/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_topic.h"

#include "core/clock.h"
#include "core/mem.h"
#include "sink/kafka_verdict.h"

/* How often it is looked whether a topic has more partitions, and whether a missing one is there. */
#define LOOK_NS (30 * SL_SEC)
#define MISSING_NS SL_SEC
#define YOUNG_NS (50 * SL_MS)

enum { TOPICS_MAX = 20000 };

int64_t sl_kafka_grace_ns = 120 * SL_SEC;

static void let_go(sl_kafka_topic *topic)
{
    if (topic->rkt)
        rd_kafka_topic_destroy(topic->rkt);
    free(topic->proof);
    topic->rkt = NULL;
    topic->proof = NULL;
    topic->partitions = 0;
    topic->look_ns = 0;
    topic->err = RD_KAFKA_RESP_ERR_NO_ERROR;
}

void sl_kafka_topics_detach(sl_kafka_topics *t)
{
    for (size_t i = 0; i < t->count; i++)
        let_go(t->v[i]);
    t->rk = NULL;
}

static void forget_all(sl_kafka_topics *t)
{
    for (size_t i = 0; i < t->count; i++) {
        let_go(t->v[i]);
        free(t->v[i]->name);
        free(t->v[i]);
    }
    t->count = 0;
    sl_keymap_reset(&t->by_name);
}

void sl_kafka_topics_trim(sl_kafka_topics *t)
{
    if (t->count > TOPICS_MAX)
        forget_all(t);
}

void sl_kafka_topics_fini(sl_kafka_topics *t)
{
    forget_all(t);
    free(t->v);
    sl_keymap_fini(&t->by_name);
    sl_buf_fini(&t->name);
    *t = (sl_kafka_topics){ 0 };
}

/* ---- Names ---- */

static void fill(sl_buf *out, const char *template, const sl_msg *m)
{
    sl_buf_reset(out);
    for (const char *p = template; *p; p++) {
        sl_str value = !strncmp(p, "{topic}", 7)  ? m->topic
                       : !strncmp(p, "{type}", 6) ? m->type
                                                  : (sl_str){ p, 1 };
        if (value.p)
            sl_buf_put(out, value.p, value.n);
        if (value.p != p)
            p = strchr(p, '}');
    }
}

bool sl_kafka_target(sl_kafka_topics *t, const sl_msg *m, char why[160])
{
    fill(&t->name, t->conf->target, m);
    if (sl_kafka_is_name((sl_str){ t->name.p, t->name.n }))
        return true;
    if (t->name.n == 0)
        snprintf(why, 160, "no Kafka topic: the message has none");
    else
        snprintf(why, 160, "no name for a Kafka topic: '%.*s'",
                 (int)(t->name.n < 100 ? t->name.n : 100), t->name.p);
    return false;
}

bool sl_kafka_same_target(const sl_kafka_conf *c, const sl_msg *a, const sl_msg *b)
{
    return (!strstr(c->target, "{topic}") || sl_str_eq(a->topic, b->topic)) &&
           (!strstr(c->target, "{type}") || sl_str_eq(a->type, b->type));
}

/* ---- Topics ---- */

sl_kafka_topic *sl_kafka_topic_named(const sl_kafka_topics *t, const char *name)
{
    const int64_t *at = t->count ? sl_keymap_find(&t->by_name, sl_str_of(name)) : NULL;
    return at ? t->v[*at - 1] : NULL;
}

static sl_kafka_topic *add(sl_kafka_topics *t, const char *name)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->v = sl_realloc(t->v, t->cap * sizeof(sl_kafka_topic *));
    }
    sl_kafka_topic *topic = sl_alloc(sizeof *topic);
    topic->name = sl_strdup(name);
    t->v[t->count++] = topic;
    *sl_keymap_at(&t->by_name, sl_str_of(topic->name)) = (int64_t)t->count;
    return topic;
}

sl_kafka_topic *sl_kafka_topic_of(sl_kafka_topics *t)
{
    const char *name = sl_buf_text(&t->name);
    sl_kafka_topic *topic = sl_kafka_topic_named(t, name);
    if (!topic)
        topic = add(t, name);
    if (!topic->rkt)
        topic->rkt = rd_kafka_topic_new(t->rk, name, NULL);
    return topic->rkt ? topic : NULL;
}

static rd_kafka_resp_err_t ask(sl_kafka_topics *t, sl_kafka_topic *topic, int64_t timeout_ns,
                               int32_t *partitions)
{
    const struct rd_kafka_metadata *md = NULL;
    int ms = timeout_ns > 0 ? (int)(timeout_ns / SL_MS) + 1 : 1; /* below 0 is for ever */
    rd_kafka_resp_err_t err = rd_kafka_metadata(t->rk, 0, topic->rkt, &md, ms);
    if (!err && md->topic_cnt == 1) {
        err = md->topics[0].err;
        *partitions = md->topics[0].partition_cnt;
    }
    if (md)
        rd_kafka_metadata_destroy(md);
    return !err && *partitions <= 0 ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : err;
}

static void tell_change(const sl_kafka_topics *t, const sl_kafka_topic *topic, int32_t now)
{
    char before[16], after[16];
    if (topic->partitions == 0 || topic->partitions == now)
        return;
    snprintf(before, sizeof before, "%d", topic->partitions);
    snprintf(after, sizeof after, "%d", now);
    sl_log_line(t->log, SL_LOG_WARN, "topic has another number of partitions: keys move",
                "topic", topic->name, "before", before, "now", after, NULL);
}

/* One that was made a moment ago has no leader yet. */
static rd_kafka_resp_err_t ask_until(sl_kafka_topics *t, sl_kafka_topic *topic,
                                     int64_t deadline_ns, int32_t *partitions)
{
    for (;;) {
        rd_kafka_resp_err_t err = ask(t, topic, deadline_ns - sl_now_ns(), partitions);
        if (err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
            sl_now_ns() + YOUNG_NS > deadline_ns)
            return err;
        nanosleep(&(struct timespec){ .tv_nsec = YOUNG_NS }, NULL);
    }
}

void sl_kafka_topic_found(sl_kafka_topics *t, sl_kafka_topic *topic, int32_t partitions)
{
    int64_t now_ns = sl_now_ns();
    tell_change(t, topic, partitions);
    topic->proof = sl_realloc(topic->proof, (size_t)partitions);
    if (partitions > topic->partitions)
        memset(topic->proof + topic->partitions, SL_KAFKA_NO_PROOF,
               (size_t)(partitions - topic->partitions));
    topic->err = RD_KAFKA_RESP_ERR_NO_ERROR;
    topic->partitions = partitions;
    topic->missing_ns = 0;
    topic->look_ns = now_ns + LOOK_NS;
    topic->sticky = (int32_t)(now_ns / SL_MS % partitions);
}

void sl_kafka_topic_missing(sl_kafka_topic *topic)
{
    topic->missing_ns = topic->missing_ns ? topic->missing_ns : sl_now_ns();
}

bool sl_kafka_topic_given_up(const sl_kafka_topic *topic)
{
    return topic->missing_ns && sl_now_ns() - topic->missing_ns > sl_kafka_grace_ns;
}

void sl_kafka_topic_look(sl_kafka_topics *t, sl_kafka_topic *topic, int64_t timeout_ns)
{
    int32_t partitions = 0;
    rd_kafka_resp_err_t err = ask_until(t, topic, sl_now_ns() + timeout_ns, &partitions);
    if (!err) {
        sl_kafka_topic_found(t, topic, partitions);
        return;
    }
    topic->err = err;
    topic->look_ns = sl_now_ns() + MISSING_NS;
    if (sl_kafka_verdict(err, RD_KAFKA_MSG_STATUS_NOT_PERSISTED) == SL_KAFKA_TOPIC) {
        topic->partitions = 0;
        sl_kafka_topic_missing(topic);
    }
}

/* Without a key a message may go anywhere: one after the other to the same place, so that they share a request. */
int32_t sl_kafka_partition(const sl_kafka_topics *t, sl_kafka_topic *topic, const sl_msg *m)
{
    if (!m->key.p) {
        topic->sticky = (topic->sticky + (m->id % 64 == 0)) % topic->partitions;
        return topic->sticky;
    }
    return t->conf->partitioner(topic->rkt, m->key.p, m->key.n, topic->partitions, NULL, NULL);
}
