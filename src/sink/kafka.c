/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink kafka:, on librdkafka. Each worker has a producer of its own: idempotent, all replicas in sync, in order.
 *
 * Either all that is under way is delivered, or from some point on nothing is: librdkafka is told never to give up a
 * single message by itself (message.timeout.ms 0, enable.gapless.guarantee), since those behind it would overtake it.
 * When the cluster does not answer, or the relay wants its messages back, everything is purged at once. What was
 * under way to a broker is unknown then; what librdkafka calls unsent is not sent, but see settle_unsent. After that, as
 * after any failure, the next messages go by a new producer, and only when the last of the old ones has its verdict.
 *
 * A request of an old producer that a broker has, and has not answered, may be carried out later than what the new
 * one sends: then the same messages are in the log twice, each time in their order.
 *
 * With a fence all that is under way together is one transaction (sink/kafka_txn.h), and the verdict comes with its commit:
 * all of it is sent, or nothing of it. Then a producer is made and initialised between two turns only.
 *
 * A broker refuses a whole request for the sake of one message. Then they come again one at a time, so that it is
 * known which. The first one to a partition always goes alone: see sl_kafka_proof.
 *
 * Reports are fetched on the worker's thread; librdkafka's own threads come here only to log. It copies each message,
 * so that nothing of ours is borrowed.
 */
#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"
#include "sink/kafka_doctor.h"
#include "sink/kafka_position.h"
#include "sink/kafka_record.h"
#include "sink/kafka_txn.h"
#include "sink/kafka_verdict.h"

extern const sl_sink_ops sl_sink_kafka;

#define LOOK_MAX_NS (5 * SL_SEC) /* for the brokers to tell whether a topic is there */
#define PURGE_NS (5 * SL_SEC)    /* reports of purged messages come at once */
#define ABORT_NS (2 * SL_SEC)    /* else the next one to initialise ends it */

enum { WHY_BYTES = 160 };

typedef struct kafka_sink {
    sl_sink base;
    sl_kafka_conf conf;
    sl_encoder *encoder;
    sl_log *log;
    rd_kafka_t *rk; /* NULL: to be made */
    rd_kafka_queue_t *reports;
    sl_kafka_topics topics;
    sl_kafka_txn txn; /* with conf.fence */
    bool full;        /* the rest of this turn has no room in its position */
    sl_batch *batch;
    sl_msg **under_way; /* handed over in this turn, some of them settled */
    size_t count, cap;
    size_t produced;  /* the first so many of them were; the others wait for room */
    size_t flying;    /* of these, those without a report */
    size_t proving;   /* of these, those that are the first to their partition */
    bool failed;      /* one of them: the others are settled first, then comes a new producer */
    bool refused;     /* one of them is, with all that it was sent with */
    size_t alone;     /* so many messages more go one at a time */
    int64_t heard_ns; /* the last report, or when the first of those under way was produced */
    char why[WHY_BYTES];   /* the last trouble; empty since one was delivered */
    const char *purged_as; /* the reason of what is purged now; NULL: another one has failed */
} kafka_sink;

static kafka_sink *kafka_of(sl_sink *s)
{
    return (kafka_sink *)s;
}

static void settle(kafka_sink *k, sl_msg *m, sl_verdict v, const char *why)
{
    sl_msg_settle(k->batch, m, v, sl_str_of(why));
}

/* ---- The producer ---- */

static void log_of(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
    const kafka_sink *k = rd_kafka_opaque(rk);
    if (strstr(text, "enable.gapless.guarantee is experimental")) /* for years */
        return;
    sl_log_level as = level <= 3 ? SL_LOG_WARN : level <= 6 ? SL_LOG_INFO : SL_LOG_DEBUG;
    sl_log_line(k->log, as, "librdkafka", "facility", fac, "error", text, NULL);
}

static void drop_producer(kafka_sink *k)
{
    if (!k->rk)
        return;
    sl_kafka_topics_detach(&k->topics);
    rd_kafka_queue_destroy(k->reports);
    rd_kafka_set_log_level(k->rk, -1); /* it may outlive us: k is its opaque */
    if (!k->txn.stuck || sl_kafka_put_leave(k->txn.stuck))
        rd_kafka_destroy(k->rk);
    k->txn.stuck = NULL;
    k->rk = k->txn.rk = NULL;
    k->txn.ready = false;
    k->reports = NULL;
}

static bool make_producer(kafka_sink *k, sl_err *err)
{
    char why[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(k->conf.rk);
    rd_kafka_conf_set_opaque(conf, k);
    rd_kafka_conf_set_log_cb(conf, log_of);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    if (k->conf.fence)
        sl_kafka_txn_configure(conf, k->txn.id ? k->txn.id : k->conf.fence);
    k->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!k->rk) {
        rd_kafka_conf_destroy(conf);
        sl_fail(err, SL_REFUSED, "sink kafka: %s", why);
        return false;
    }
    k->txn.rk = k->rk;
    k->reports = rd_kafka_queue_get_main(k->rk);
    k->topics.rk = k->rk;
    return true;
}

/* ---- Reports ---- */

static void note(kafka_sink *k, const char *text)
{
    snprintf(k->why, sizeof k->why, "Kafka: %s", text);
}

/* Once one has failed, those behind it do not go either, until all that is under way has its verdict. */
static void fail_rest(kafka_sink *k)
{
    if (k->failed)
        return;
    k->failed = true;
    rd_kafka_purge(k->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* Why nothing can be delivered by this producer any more; NULL: it can, or it is the fault of a message. */
static const char *fatal_of(kafka_sink *k)
{
    char why[512];
    rd_kafka_resp_err_t err = k->rk ? rd_kafka_fatal_error(k->rk, why, sizeof why) : 0;
    if (!err || err == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE || sl_kafka_is_shut_out(err))
        return NULL;
    note(k, why);
    return k->why;
}

static void topic_is_missing(kafka_sink *k, sl_kafka_topic *t, sl_msg *m, const char *why)
{
    if (t) {
        t->look_ns = 0;
        sl_kafka_topic_missing(t);
    }
    settle(k, m, t && sl_kafka_topic_given_up(t) ? SL_DEAD : SL_RETRY, why);
}

/* It is not known which of them is at fault, unless it was alone. */
static void batch_is_refused(kafka_sink *k, sl_msg *m, const char *why)
{
    if (k->alone > 0) {
        settle(k, m, SL_DEAD, why);
        return;
    }
    settle(k, m, SL_RELEASED, NULL);
    k->refused = true;
}

/* One that waits to be sent once more, after its connection was lost, is reported as if it had never left: seen with 7
 * messages in the log. At least once that is a duplicate like others; at most once it must not be believed. */
static void settle_unsent(kafka_sink *k, sl_msg *m, const char *why)
{
    settle(k, m, m->consumed && (k->purged_as || k->why[0]) ? SL_UNKNOWN : SL_RELEASED, why);
}

static void report_failure(kafka_sink *k, const rd_kafka_message_t *rkm, sl_kafka_came came)
{
    char why[WHY_BYTES];
    sl_msg *m = rkm->_private;
    snprintf(why, sizeof why, "Kafka: %s", rd_kafka_err2str(rkm->err));
    fail_rest(k);
    switch (came) {
    case SL_KAFKA_PURGED:
    case SL_KAFKA_DOWN:
        settle_unsent(k, m,
                      came == SL_KAFKA_DOWN ? why
                      : k->purged_as        ? k->purged_as
                                            : fatal_of(k));
        break;
    case SL_KAFKA_BATCH:
        batch_is_refused(k, m, why);
        break;
    case SL_KAFKA_TOPIC:
        topic_is_missing(k, sl_kafka_topic_named(&k->topics, rd_kafka_topic_name(rkm->rkt)), m,
                         why);
        break;
    case SL_KAFKA_REFUSED:
        settle(k, m, SL_DEAD, why);
        break;
    default: /* what is aborted has not arrived */
        settle(k, m, k->conf.fence ? SL_RELEASED : SL_UNKNOWN,
               k->purged_as ? k->purged_as : why);
        break;
    }
}

static void prove(kafka_sink *k, const rd_kafka_message_t *rkm)
{
    sl_kafka_topic *t = sl_kafka_topic_named(&k->topics, rd_kafka_topic_name(rkm->rkt));
    if (!t || rkm->partition >= t->partitions || t->proof[rkm->partition] != SL_KAFKA_FIRST)
        return;
    t->proof[rkm->partition] = SL_KAFKA_PROVEN;
    k->proving--;
}

static void report(kafka_sink *k, const rd_kafka_message_t *rkm)
{
    sl_msg *m = rkm->_private;
    sl_kafka_came came = sl_kafka_verdict(rkm->err, rd_kafka_message_status(rkm));
    k->flying--;
    if (m->verdict != SL_PENDING)
        return; /* it was given up */
    if (came != SL_KAFKA_SENT) {
        report_failure(k, rkm, came);
        return;
    }
    if (k->proving > 0)
        prove(k, rkm);
    k->alone -= k->alone > 0;
    k->why[0] = '\0';
    if (!k->conf.fence) /* else it is by the commit */
        settle(k, m, SL_SENT, NULL);
}

/* Handles what there is, waiting for the first for so long. */
static void fetch(kafka_sink *k, int64_t timeout_ns)
{
    int ms = (int)((timeout_ns + SL_MS - 1) / SL_MS);
    rd_kafka_event_t *e;
    while ((e = rd_kafka_queue_poll(k->reports, ms))) {
        const rd_kafka_message_t *rkm;
        ms = 0;
        k->heard_ns = rd_kafka_event_type(e) == RD_KAFKA_EVENT_DR ? sl_now_ns() : k->heard_ns;
        if (rd_kafka_event_type(e) == RD_KAFKA_EVENT_ERROR)
            note(k, rd_kafka_event_error_string(e)); /* librdkafka goes on, but see below */
        while ((rkm = rd_kafka_event_message_next(e)))
            report(k, rkm);
        rd_kafka_event_destroy(e);
    }
    if (rd_kafka_fatal_error(k->rk, NULL, 0))
        fail_rest(k);
}

/* ---- The transaction ---- */

/* All of it that has no verdict of its own. */
static void settle_transaction(kafka_sink *k, sl_verdict v, const char *why)
{
    for (size_t i = 0; i < k->produced; i++)
        if (k->under_way[i]->verdict == SL_PENDING)
            settle(k, k->under_way[i], v, why);
}

/* The relay does not wait any longer. Only a commit that was asked for may still come true. */
static void give_up_transaction(kafka_sink *k, const char *why)
{
    bool unknown = k->txn.committing;
    if (!unknown && k->flying == 0)
        sl_kafka_txn_abort(&k->txn, ABORT_NS);
    k->txn.open = k->txn.committing = k->txn.lost = false;
    settle_transaction(k, unknown ? SL_UNKNOWN : SL_RELEASED, why);
}

/* The producer could not tell: a new one finds out. */
static sl_txn_came find_out(kafka_sink *k, int64_t timeout_ns, char why[WHY_BYTES])
{
    sl_err err = { 0 };
    if (!k->txn.fresh)
        drop_producer(k);
    if (!k->rk && !make_producer(k, &err))
        return SL_TXN_GOES_ON;
    k->txn.fresh = true;
    return sl_kafka_txn_find_out(&k->txn, timeout_ns, why);
}

static sl_txn_came end_or_abort(kafka_sink *k, int64_t timeout_ns, char why[WHY_BYTES])
{
    bool give_up = k->failed && !k->txn.committing;
    sl_txn_came came = SL_TXN_GOES_ON;
    if (!give_up)
        came = sl_kafka_txn_commit(&k->txn, timeout_ns, why);
    give_up |= came == SL_TXN_GOES_ON && !k->txn.committing &&
               sl_now_ns() - k->heard_ns > k->conf.answer_ns;
    if (give_up)
        sl_kafka_txn_abort(&k->txn, ABORT_NS);
    return give_up ? SL_TXN_NOT : came;
}

/* Once all of it has its report. A producer that had any trouble is used no more. */
static void end_transaction(kafka_sink *k, int64_t timeout_ns)
{
    char why[WHY_BYTES] = "";
    bool lost = k->txn.lost;
    if (!k->txn.open || k->flying > 0 || (k->produced < k->count && !k->txn.committing))
        return;
    sl_txn_came came = lost ? find_out(k, timeout_ns, why) : end_or_abort(k, timeout_ns, why);
    if (came == SL_TXN_GOES_ON)
        return;
    k->failed |= lost || came != SL_TXN_COMMITTED;
    settle_transaction(k,
                       came == SL_TXN_COMMITTED ? SL_SENT
                       : came == SL_TXN_NOT     ? SL_RELEASED
                                                : SL_UNKNOWN,
                       came == SL_TXN_COMMITTED || !why[0] ? NULL : why);
}

/* ---- Giving up ---- */

/* Everything under way, now. */
static void give_up(kafka_sink *k, const char *why)
{
    int64_t until_ns = sl_now_ns() + PURGE_NS;
    k->failed = true;
    k->purged_as = why;
    for (; k->produced < k->count; k->produced++) /* first, for they are behind the others */
        settle(k, k->under_way[k->produced], SL_RELEASED, why);
    if (k->flying > 0)
        rd_kafka_purge(k->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                  RD_KAFKA_PURGE_F_NON_BLOCKING);
    while (k->flying > 0 && sl_now_ns() < until_ns)
        fetch(k, 10 * SL_MS);
    if (k->conf.fence)
        give_up_transaction(k, why);
    for (size_t i = 0; i < k->count; i++) /* reports that are owed die with the producer */
        if (k->under_way[i]->verdict == SL_PENDING)
            settle(k, k->under_way[i], SL_UNKNOWN, why);
    k->flying = 0;
    k->purged_as = NULL;
}

static void give_up_down(kafka_sink *k)
{
    char why[WHY_BYTES];
    snprintf(why, sizeof why, "%s", k->why[0] ? k->why : "Kafka: no answer");
    give_up(k, why);
    for (size_t i = 0; i < k->count; i++)
        k->under_way[i]->blameless = k->under_way[i]->verdict == SL_UNKNOWN;
}

/* After the last verdict of what was under way. */
static void end_round(kafka_sink *k)
{
    if (k->flying > 0 || k->produced < k->count || k->txn.open)
        return;
    if (k->refused)
        k->alone = 2 * k->count; /* they come back soon, among others */
    k->count = k->produced = k->proving = 0;
    if (k->failed)
        drop_producer(k);
    k->failed = k->refused = false;
    sl_kafka_topics_trim(&k->topics);
}

/* ---- Producing ---- */

/* A topic that cannot be written to: its messages have their verdict without a try. */
static bool settle_unready(kafka_sink *k, const sl_kafka_topic *t, sl_msg *m)
{
    char why[WHY_BYTES];
    if (!t->err && t->partitions > 0)
        return false;
    sl_kafka_came came = sl_kafka_verdict(t->err, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    snprintf(why, sizeof why, "Kafka: topic %.60s: %s", t->name, rd_kafka_err2str(t->err));
    if (came == SL_KAFKA_TOPIC)
        settle(k, m, sl_kafka_topic_given_up(t) ? SL_DEAD : SL_RETRY, why);
    else if (came == SL_KAFKA_REFUSED)
        settle(k, m, SL_DEAD, why);
    else if (t->partitions > 0)
        return false; /* it was there a moment ago: producing shows */
    else
        settle(k, m, SL_RELEASED, k->why[0] ? k->why : why);
    return true;
}

/* It is looked at anew only while nothing is under way, so that no key changes its partition meanwhile. */
static void look_if_due(kafka_sink *k, sl_kafka_topic *t)
{
    int64_t look_ns = k->conf.answer_ns / 2 < LOOK_MAX_NS ? k->conf.answer_ns / 2 : LOOK_MAX_NS;
    if (sl_now_ns() < t->look_ns || (t->partitions > 0 && k->flying > 0))
        return;
    sl_kafka_topic_look(&k->topics, t, look_ns);
    fetch(k, 0);
}

typedef enum went { WENT, FULL, SETTLED } went;

/* As a part of the transaction, which begins with its first message. */
static bool may_produce(kafka_sink *k)
{
    k->full |= k->conf.exact && !sl_kafka_txn_room(&k->txn);
    if (k->full || sl_kafka_txn_begin(&k->txn))
        return !k->full;
    fail_rest(k);
    return false;
}

static went not_produced(kafka_sink *k, sl_kafka_topic *t, sl_msg *m, rd_kafka_resp_err_t err)
{
    char why[WHY_BYTES];
    if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL && k->flying > 0)
        return FULL;
    snprintf(why, sizeof why, "Kafka: %s", rd_kafka_err2str(err));
    if (err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
        topic_is_missing(k, t, m, why);
    else if (err == RD_KAFKA_RESP_ERR__FATAL) {
        settle(k, m, SL_RELEASED, fatal_of(k));
        fail_rest(k);
    } else if (err == RD_KAFKA_RESP_ERR__STATE) { /* its transaction has failed meanwhile */
        settle(k, m, SL_RELEASED, NULL);
        fail_rest(k);
    } else if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        settle(k, m, SL_DEAD, "Kafka: larger than all of queue.buffering.max.kbytes");
    else
        settle(k, m, SL_DEAD, why); /* too large, or no message that Kafka could take */
    return SETTLED;
}

static went produce_to(kafka_sink *k, sl_kafka_topic *t, sl_msg *m)
{
    sl_encoded e;
    char why[WHY_BYTES];
    int32_t partition = sl_kafka_partition(&k->topics, t, m);
    if (t->proof[partition] == SL_KAFKA_FIRST)
        return FULL;
    if (!sl_encode(k->encoder, m, &e, why)) {
        settle(k, m, SL_DEAD, why);
        return SETTLED;
    }
    if (k->conf.fence && !may_produce(k)) {
        settle(k, m, SL_RELEASED, NULL);
        return SETTLED;
    }
    rd_kafka_resp_err_t err = sl_kafka_produce(k->rk, &k->conf, t, partition, m, &e);
    if (err)
        return not_produced(k, t, m, err);
    if (k->conf.exact)
        sl_kafka_txn_note(&k->txn, m->id);
    k->heard_ns = k->flying++ ? k->heard_ns : sl_now_ns();
    if (t->proof[partition] == SL_KAFKA_NO_PROOF) {
        t->proof[partition] = SL_KAFKA_FIRST;
        k->proving++;
    }
    SL_FAULT("produced");
    return WENT;
}

static went produce(kafka_sink *k, sl_msg *m)
{
    char why[WHY_BYTES];
    if (!sl_kafka_target(&k->topics, m, why)) {
        settle(k, m, SL_DEAD, why);
        return SETTLED;
    }
    sl_kafka_topic *t = sl_kafka_topic_of(&k->topics);
    if (!t) {
        settle(k, m, SL_RELEASED, "Kafka: librdkafka has no room for a topic");
        return SETTLED;
    }
    look_if_due(k, t);
    if (k->failed)
        return FULL; /* one before it, meanwhile */
    return settle_unready(k, t, m) ? SETTLED : produce_to(k, t, m);
}

static void release_waiting(kafka_sink *k)
{
    const char *why = fatal_of(k);
    for (; k->produced < k->count; k->produced++)
        settle(k, k->under_way[k->produced], SL_RELEASED, why);
}

/* As many as there is room for. Behind one that could not be produced, none that waited goes. */
static void produce_more(kafka_sink *k)
{
    while (k->produced < k->count && !k->failed && !k->txn.committing &&
           !(k->alone && k->flying > 0)) {
        went how = produce(k, k->under_way[k->produced]);
        if (how == FULL)
            break;
        k->produced++;
        if (how == SETTLED)
            release_waiting(k);
    }
    if (k->failed)
        release_waiting(k);
}

/* ---- The sink ---- */

static void kafka_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    kafka_sink *k = kafka_of(s);
    sl_err err = { 0 };
    k->batch = b;
    if (k->rk && k->count == 0)
        fetch(k, 0); /* what librdkafka told while there was nothing to do */
    if (k->failed)
        end_round(k);
    if (k->failed) {
        settle(k, m, SL_RELEASED, fatal_of(k));
        return;
    }
    if (k->conf.fence && !k->txn.ready) { /* only between turns */
        settle(k, m, SL_RELEASED, NULL);
        return;
    }
    if (!k->rk && !make_producer(k, &err)) {
        settle(k, m, SL_RELEASED, err.text);
        return;
    }
    if (k->count == k->cap) {
        k->cap = k->cap ? k->cap * 2 : 512;
        k->under_way = sl_realloc(k->under_way, k->cap * sizeof(sl_msg *));
    }
    k->under_way[k->count++] = m;
    produce_more(k);
}

static void kafka_poll(sl_sink *s, int64_t timeout_ns)
{
    kafka_sink *k = kafka_of(s);
    if (k->rk)
        fetch(k, k->flying > 0 ? timeout_ns
                               : 0); /* with nothing to do: what it tells must not pile up */
    if (k->rk && k->count > 0) {
        produce_more(k);
        if (k->flying > 0 && sl_now_ns() - k->heard_ns > k->conf.answer_ns)
            give_up_down(k);
    }
    if (k->conf.fence)
        end_transaction(k, timeout_ns);
    end_round(k);
}

static void kafka_recall(sl_sink *s)
{
    kafka_sink *k = kafka_of(s);
    if ((k->rk && k->flying + k->count - k->produced > 0) || k->txn.open)
        give_up(k, "Kafka: called back before it had an answer");
    end_round(k);
}

/* ---- The fence ---- */

static sl_readiness init(kafka_sink *k, int64_t timeout_ns, char why[160])
{
    bool spoiled;
    if (!sl_kafka_txn_init(&k->txn, timeout_ns, &spoiled, why)) {
        if (spoiled)
            drop_producer(k);
        return SL_READY_NOT;
    }
    if (k->conf.exact && !sl_kafka_position_topic(k->rk, k->conf.positions, LOOK_MAX_NS, why)) {
        drop_producer(k);
        return SL_READY_NOT;
    }
    return SL_READY_ANEW;
}

static void begin_session(kafka_sink *k, int64_t session)
{
    drop_producer(k);
    free(k->txn.id);
    k->txn.id = sl_kafka_txn_id(k->conf.fence, session);
    k->txn.session = session;
}

static sl_readiness kafka_ready(sl_sink *s, int64_t session, int64_t timeout_ns, char why[160])
{
    kafka_sink *k = kafka_of(s);
    sl_err err = { 0 };
    if (!k->conf.fence)
        return SL_READY;
    k->full = false;
    sl_kafka_txn_turn(&k->txn);
    if (k->rk)
        fetch(k, 0); /* it may have been shut out, or given up by the brokers */
    end_round(k);
    if (k->txn.session != session)
        begin_session(k, session);
    if (k->txn.ready)
        return SL_READY;
    if (!k->rk && !make_producer(k, &err)) {
        snprintf(why, 160, "%.150s", err.text);
        return SL_READY_NOT;
    }
    return init(k, timeout_ns, why);
}

static bool kafka_in_doubt(const sl_sink *s)
{
    return ((const kafka_sink *)s)->txn.committing;
}

static bool kafka_follows(sl_sink *s, const sl_msg *before, const sl_msg *m)
{
    return sl_kafka_same_target(&kafka_of(s)->conf, before, m);
}

static void kafka_close(sl_sink *s)
{
    kafka_sink *k = kafka_of(s);
    drop_producer(k);
    sl_kafka_txn_fini(&k->txn);
    sl_kafka_topics_fini(&k->topics);
    sl_encoder_free(k->encoder);
    sl_kafka_conf_fini(&k->conf);
    free(k->under_way);
    free(k);
}

/* The brokers need not be there: the breaker deals with that. What librdkafka does not take is said now. */
static sl_rc kafka_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    kafka_sink *k = sl_alloc(sizeof *k);
    k->base.ops = &sl_sink_kafka;
    k->log = conf->log;
    k->txn = (sl_kafka_txn){ .conf = &k->conf, .log = conf->log };
    k->topics = (sl_kafka_topics){ .conf = &k->conf, .log = k->log };
    sl_rc rc = sl_kafka_conf_read(&k->conf, conf, err);
    if (rc == SL_OK)
        rc = sl_encoder_new(&k->encoder,
                            &(sl_encode_conf){ .format = k->conf.format,
                                               .source = k->conf.source,
                                               .ce_prefix = "ce_",
                                               .tombstones = conf->tombstones },
                            err);
    if (rc == SL_OK && !make_producer(k, err))
        rc = err->rc;
    if (rc == SL_OK && k->conf.fence)
        drop_producer(k); /* under which name it sends is not known yet */
    if (rc == SL_OK)
        *out = &k->base;
    else
        kafka_close(&k->base);
    return rc;
}

const sl_sink_ops sl_sink_kafka = {
    .scheme = "kafka",
    .example = "kafka://HOST:PORT",
    .in_order = true,
    .terms = true,
    .library = "librdkafka",
    .library_version = rd_kafka_version,
    .open = kafka_open,
    .submit = kafka_submit,
    .poll = kafka_poll,
    .recall = kafka_recall,
    .follows = kafka_follows,
    .ready = kafka_ready,
    .in_doubt = kafka_in_doubt,
    .shut_out = sl_kafka_fence,
    .close = kafka_close,
    .describe = sl_kafka_describe,
};
