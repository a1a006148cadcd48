/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client is a consumer that consumes nothing: a producer that asks for a topic may make the brokers create it,
 * and doctor changes nothing. Replicas and leaders are metadata; the settings of topics and brokers are asked for by
 * the admin interface, for which a role may lack the right: then that is a finding, and the rest is told.
 */
#include "sink/kafka_doctor.h"

#include "core/clock.h"
#include "core/mem.h"
#include "sink/kafka_judge.h"
#include "sink/kafka_topic.h"

enum { TOPICS_MAX = 50, TRIES = 10, TRY_MS = 1000, ASK_MS = 5000, WHY_BYTES = 256 };

typedef struct place {
    char *name;
    sl_kafka_need need;
} place; /* a topic, and what waits for it */

typedef struct looking {
    sl_kafka_conf conf;
    rd_kafka_t *rk;
    rd_kafka_queue_t *events;
    sl_sink_tell tell;
    void *ctx;
    place *places;
    size_t count, left_out;
    int64_t message_max;
    sl_kafka_makes makes;
    int32_t broker;      /* one that answers */
    char why[WHY_BYTES]; /* the last error that librdkafka told */
    bool deaf;           /* to questions about settings: they are not asked again */
    bool hopeless;       /* waiting longer does not help */
} looking;

static void tell(const looking *l, sl_sink_state state, const char *check, const char *found,
                 const char *todo)
{
    l->tell(l->ctx, state, check, found, todo);
}

/* ---- Which topics ---- */

static place *place_of(looking *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->places[i].name, name))
            return &l->places[i];
    if (l->count == TOPICS_MAX) {
        l->left_out++;
        return NULL;
    }
    l->places = sl_realloc(l->places, (l->count + 1) * sizeof *l->places);
    l->places[l->count] = (place){ sl_strdup(name), { .message_max = l->message_max } };
    return &l->places[l->count++];
}

static void add_wait(looking *l, sl_kafka_topics *names, const sl_sink_wait *w)
{
    char why[160];
    sl_msg m = { .topic = w->topic, .type = w->type };
    if (w->count == 0 && strstr(l->conf.target, "{type}"))
        return; /* which types there will be is not known */
    if (!sl_kafka_target(names, &m, why)) {
        tell(l, SL_SINK_BAD, "topic", why,
             "messages for it are refused: set target, or mend the producer");
        return;
    }
    place *p = place_of(l, sl_buf_text(&names->name));
    if (!p)
        return;
    p->need.count += w->count;
    p->need.keyless += w->keyless;
    p->need.largest = w->largest > p->need.largest ? w->largest : p->need.largest;
}

static void find_places(looking *l, const sl_sink_wait *waits, size_t count)
{
    sl_kafka_topics names = { .conf = &l->conf };
    if (!strchr(l->conf.target, '{'))
        place_of(l, l->conf.target);
    for (size_t i = 0; i < count; i++)
        add_wait(l, &names, &waits[i]);
    sl_buf_fini(&names.name);
}

/* ---- The client ---- */

static void no_log(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
    (void)rk;
    (void)level;
    (void)fac;
    (void)text; /* what matters comes as an event */
}

static bool open_client(looking *l)
{
    char why[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(l->conf.rk);
    rd_kafka_conf_set_log_cb(conf, no_log);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
    l->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!l->rk) {
        rd_kafka_conf_destroy(conf);
        tell(l, SL_SINK_BAD, "brokers", why, "mend the properties in kafka:");
        return false;
    }
    l->events = rd_kafka_queue_get_main(l->rk);
    return true;
}

static void close_client(looking *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->places[i].name);
    free(l->places);
    if (l->events)
        rd_kafka_queue_destroy(l->events);
    if (l->rk)
        rd_kafka_destroy(l->rk);
    sl_kafka_conf_fini(&l->conf);
}

/* Why brokers cannot be reached is told beside the calls that fail for it. */
static void hear(looking *l)
{
    rd_kafka_event_t *e;
    while ((e = rd_kafka_queue_poll(l->events, 0))) {
        rd_kafka_resp_err_t err = rd_kafka_event_error(e);
        if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || err == RD_KAFKA_RESP_ERR__RESOLVE ||
            err == RD_KAFKA_RESP_ERR__AUTHENTICATION || err == RD_KAFKA_RESP_ERR__SSL)
            l->hopeless = true;
        if (err && err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
            snprintf(l->why, sizeof l->why, "%s", rd_kafka_event_error_string(e));
        rd_kafka_event_destroy(e);
    }
}

/* ---- The brokers ---- */

static bool reach(looking *l)
{
    const struct rd_kafka_metadata *md = NULL;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TRANSPORT;
    char text[WHY_BYTES + 60];
    for (int i = 0; err && i < TRIES && !l->hopeless; i++) {
        err = rd_kafka_metadata(l->rk, 0, NULL, &md, TRY_MS);
        hear(l);
    }
    if (err) {
        snprintf(text, sizeof text, "no answer: %s",
                 l->why[0] ? l->why : rd_kafka_err2str(err));
        tell(l, SL_SINK_BAD, "brokers", text,
             "check the URL, the network and the security properties in kafka:");
        return false;
    }
    l->broker = md->broker_cnt > 0 ? md->brokers[0].id : -1;
    snprintf(text, sizeof text, "%d answer%s", md->broker_cnt, md->broker_cnt == 1 ? "s" : "");
    tell(l, SL_SINK_FINE, "brokers", text, NULL);
    rd_kafka_metadata_destroy(md);
    return true;
}

/* ---- Settings of a topic, or of a broker ---- */

typedef void (*setting_fn)(void *ctx, const char *name, const char *value);

static const char *take_settings(rd_kafka_event_t *e, setting_fn fn, void *ctx)
{
    size_t n = 0, m = 0;
    if (rd_kafka_event_error(e))
        return rd_kafka_event_error_string(e);
    const rd_kafka_ConfigResource_t **all =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(e), &n);
    if (n != 1)
        return "no answer";
    if (rd_kafka_ConfigResource_error(all[0]))
        return rd_kafka_err2str(rd_kafka_ConfigResource_error(all[0]));
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(all[0], &m);
    for (size_t i = 0; i < m; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        fn(ctx, rd_kafka_ConfigEntry_name(entries[i]), value ? value : "");
    }
    return NULL;
}

static int settings_ms(const looking *l)
{
    int64_t ms = l->conf.answer_ns / SL_MS;
    return (int)(ms < ASK_MS ? ms : ASK_MS);
}

/* False: l->why says why not. */
static bool ask_settings(looking *l, rd_kafka_ResourceType_t type, const char *name,
                         setting_fn fn, void *ctx)
{
    char ignored[128];
    if (l->deaf)
        return false;
    rd_kafka_queue_t *q = rd_kafka_queue_new(l->rk);
    rd_kafka_ConfigResource_t *what = rd_kafka_ConfigResource_new(type, name);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(l->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_AdminOptions_set_request_timeout(options, settings_ms(l), ignored, sizeof ignored);
    rd_kafka_DescribeConfigs(l->rk, &what, 1, options, q);
    rd_kafka_event_t *e = rd_kafka_queue_poll(q, settings_ms(l) + TRY_MS);
    const char *why = e ? take_settings(e, fn, ctx) : "no answer";
    l->deaf = !e || rd_kafka_event_error(e) == RD_KAFKA_RESP_ERR__TIMED_OUT ||
              rd_kafka_event_error(e) == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
    if (why)
        snprintf(l->why, sizeof l->why, "%s", why);
    if (e)
        rd_kafka_event_destroy(e);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(what);
    rd_kafka_queue_destroy(q);
    return !why;
}

static void note_topic(void *ctx, const char *name, const char *value)
{
    sl_kafka_fact *f = ctx;
    if (!strcmp(name, "min.insync.replicas"))
        f->min_in_sync = strtoll(value, NULL, 10);
    else if (!strcmp(name, "max.message.bytes"))
        f->message_max = strtoll(value, NULL, 10);
    else if (!strcmp(name, "cleanup.policy"))
        f->compacted = strstr(value, "compact") != NULL;
    else if (!strcmp(name, "unclean.leader.election.enable"))
        f->unclean = !strcmp(value, "true");
}

static void note_broker(void *ctx, const char *name, const char *value)
{
    sl_kafka_makes *m = ctx;
    if (!strcmp(name, "auto.create.topics.enable"))
        m->makes = !strcmp(value, "true");
    else if (!strcmp(name, "num.partitions"))
        m->partitions = strtoll(value, NULL, 10);
    else if (!strcmp(name, "default.replication.factor"))
        m->replicas = strtoll(value, NULL, 10);
}

/* Asked when the first topic is missing. */
static const sl_kafka_makes *who_makes(looking *l)
{
    char id[16];
    snprintf(id, sizeof id, "%d", l->broker);
    if (!l->makes.known)
        l->makes.known = ask_settings(l, RD_KAFKA_RESOURCE_BROKER, id, note_broker, &l->makes);
    return &l->makes;
}

/* ---- Topics ---- */

static void read_partitions(sl_kafka_fact *f, const rd_kafka_metadata_topic_t *t)
{
    f->partitions = t->partition_cnt;
    f->replicas = f->in_sync = INT32_MAX;
    for (int i = 0; i < t->partition_cnt; i++) {
        const rd_kafka_metadata_partition_t *p = &t->partitions[i];
        f->leaderless += p->leader < 0;
        f->lagging += p->isr_cnt < p->replica_cnt;
        f->replicas = p->replica_cnt < f->replicas ? p->replica_cnt : f->replicas;
        f->in_sync = p->isr_cnt < f->in_sync ? p->isr_cnt : f->in_sync;
    }
}

static void look_at_settings(looking *l, sl_kafka_fact *f)
{
    char text[WHY_BYTES + 300];
    f->configs = ask_settings(l, RD_KAFKA_RESOURCE_TOPIC, f->name, note_topic, f);
    if (f->configs)
        return;
    snprintf(text, sizeof text, "%.249s: its settings cannot be read: %s", f->name, l->why);
    tell(l, SL_SINK_UNSEEN, "topic", text,
         "allow DescribeConfigs on the topic, or look at min.insync.replicas by hand");
}

static void tell_refusal(looking *l, const place *p, rd_kafka_resp_err_t err)
{
    char text[WHY_BYTES + 300];
    snprintf(text, sizeof text, "%.249s: %s", p->name, rd_kafka_err2str(err));
    tell(l, err == RD_KAFKA_RESP_ERR__TIMED_OUT ? SL_SINK_UNSEEN : SL_SINK_BAD, "topic", text,
         "allow Describe and Write on the topic, or see the brokers' logs");
}

static void look_at(looking *l, const place *p)
{
    const struct rd_kafka_metadata *md = NULL;
    sl_kafka_fact f = { .name = p->name };
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(l->rk, p->name, NULL);
    rd_kafka_resp_err_t err =
        rkt ? rd_kafka_metadata(l->rk, 0, rkt, &md, ASK_MS) : rd_kafka_last_error();
    if (!err)
        err = md->topic_cnt == 1 ? md->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    /* Then it says of each partition whether it has one. */
    if (err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE && md->topics[0].partition_cnt > 0)
        err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
        sl_kafka_judge_missing(p->name, who_makes(l), p->need.count, l->tell, l->ctx);
    } else if (err) {
        tell_refusal(l, p, err);
    } else {
        read_partitions(&f, &md->topics[0]);
        look_at_settings(l, &f);
        sl_kafka_judge(&f, &p->need, l->tell, l->ctx);
    }
    if (md)
        rd_kafka_metadata_destroy(md);
    if (rkt)
        rd_kafka_topic_destroy(rkt);
}

static void look_at_topics(looking *l)
{
    char text[80];
    for (size_t i = 0; i < l->count; i++)
        look_at(l, &l->places[i]);
    if (l->left_out > 0) {
        snprintf(text, sizeof text, "%d were looked at, there are more", TOPICS_MAX);
        tell(l, SL_SINK_UNSEEN, "topic", text, NULL);
    }
    if (l->count == 0)
        tell(l, SL_SINK_UNSEEN, "topic", "no message waits, and no setting names a topic",
             "give one: target, or a route's topics without *, or kafka://HOST:PORT/TOPIC");
}

/* ---- All of it ---- */

static void look_at_partitioner(const looking *l)
{
    if (l->conf.partitioner != rd_kafka_msg_partitioner_murmur2)
        tell(l, SL_SINK_WARN, "partitioner",
             "not murmur2: producers in Java put the same key into another partition",
             "leave partitioner out, unless all that write to these topics use the same");
}

static int64_t message_max_of(const sl_kafka_conf *c)
{
    char text[32] = "";
    size_t n = sizeof text;
    if (rd_kafka_conf_get(c->rk, "message.max.bytes", text, &n) != RD_KAFKA_CONF_OK)
        return 0;
    return strtoll(text, NULL, 10);
}

void sl_kafka_describe(const sl_sink_conf *conf, const sl_sink_wait *waits, size_t count,
                       sl_sink_tell tell_, void *ctx)
{
    looking l = { .tell = tell_, .ctx = ctx };
    sl_err err = { 0 };
    if (sl_kafka_conf_read(&l.conf, conf, &err) != SL_OK) {
        err.text[strcspn(err.text, "\n")] = '\0';
        tell(&l, SL_SINK_BAD, "sink", err.text, "mend sink: and kafka: of the settings");
        return;
    }
    l.message_max = message_max_of(&l.conf);
    look_at_partitioner(&l);
    if (open_client(&l) && reach(&l)) {
        find_places(&l, waits, count);
        look_at_topics(&l);
    }
    close_client(&l);
}
