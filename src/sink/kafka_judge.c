/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_judge.h"

#include "core/buf.h"

#include <stdarg.h>

typedef struct telling {
    sl_sink_tell tell;
    void *ctx;
    bool silent; /* nothing was told yet */
} telling;

static void say(telling *t, sl_sink_state state, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void say(telling *t, sl_sink_state state, const char *todo, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->tell(t->ctx, state, "topic", text, todo);
    t->silent = false;
}

/* ---- What a broker that is lost means ---- */

static void judge_leaders(telling *t, const sl_kafka_fact *f)
{
    if (f->leaderless > 0)
        say(t, SL_SINK_BAD,
            "start the brokers that have them; their messages wait, those of other partitions "
            "go on",
            "%s: %d of %d partitions have no leader", f->name, f->leaderless, f->partitions);
}

static void judge_in_sync(telling *t, const sl_kafka_fact *f)
{
    if (f->configs && f->in_sync < f->min_in_sync && f->replicas >= f->min_in_sync)
        say(t, SL_SINK_BAD,
            "start the brokers that are missing: until then nothing is accepted there",
            "%s: a partition has %d replicas in sync, min.insync.replicas is %lld", f->name,
            f->in_sync, (long long)f->min_in_sync);
    else if (f->configs && f->replicas < f->min_in_sync)
        say(t, SL_SINK_BAD,
            "lower min.insync.replicas or add replicas: nothing is ever accepted",
            "%s: it has %d replicas, min.insync.replicas is %lld", f->name, f->replicas,
            (long long)f->min_in_sync);
    else if (f->lagging > 0)
        say(t, SL_SINK_WARN, "look for a broker that is down or behind",
            "%s: of %d of %d partitions not all replicas are in sync", f->name, f->lagging,
            f->partitions);
}

static void judge_copies(telling *t, const sl_kafka_fact *f)
{
    if (f->replicas == 1)
        say(t, SL_SINK_WARN,
            "give it three replicas (kafka-reassign-partitions) and min.insync.replicas=2",
            "%s: one replica: what was delivered is lost with the disk of its broker", f->name);
    else if (f->configs && f->min_in_sync < 2)
        say(t, SL_SINK_WARN, "set min.insync.replicas=2 for the topic",
            "%s: min.insync.replicas is %lld of %d replicas: a message that only one broker "
            "has may count as delivered",
            f->name, (long long)f->min_in_sync, f->replicas);
    else if (f->configs && f->min_in_sync == f->replicas)
        say(t, SL_SINK_WARN, "give it one replica more than min.insync.replicas",
            "%s: min.insync.replicas is %lld of %d replicas: deliveries stop with any broker",
            f->name, (long long)f->min_in_sync, f->replicas);
    if (f->configs && f->unclean)
        say(t, SL_SINK_WARN, "set unclean.leader.election.enable=false for the topic",
            "%s: unclean.leader.election.enable is true: a replica that is behind may become "
            "the leader, and what it lacks is lost",
            f->name);
}

/* ---- What waits ---- */

static void judge_need(telling *t, const sl_kafka_fact *f, const sl_kafka_need *need)
{
    if (f->configs && f->compacted && need->keyless > 0)
        say(t, SL_SINK_WARN, "give them keys, or set cleanup.policy=delete",
            "%s: cleanup.policy has compact, and %lld messages without a key wait: brokers "
            "refuse those",
            f->name, (long long)need->keyless);
    if (f->configs && need->largest > f->message_max)
        say(t, SL_SINK_WARN, "raise max.message.bytes of the topic",
            "%s: a message of %lld bytes waits, max.message.bytes is %lld", f->name,
            (long long)need->largest, (long long)f->message_max);
    if (need->message_max > 0 && need->largest > need->message_max)
        say(t, SL_SINK_WARN, "raise message.max.bytes in kafka:",
            "%s: a message of %lld bytes waits, message.max.bytes of the settings is %lld",
            f->name, (long long)need->largest, (long long)need->message_max);
}

void sl_kafka_judge(const sl_kafka_fact *f, const sl_kafka_need *need, sl_sink_tell tell,
                    void *ctx)
{
    telling t = { tell, ctx, true };
    judge_leaders(&t, f);
    judge_in_sync(&t, f);
    judge_copies(&t, f);
    judge_need(&t, f, need);
    if (!t.silent)
        return;
    if (f->configs)
        say(&t, SL_SINK_FINE, NULL,
            "%s: %d partitions, %d replicas, min.insync.replicas %lld, all in sync", f->name,
            f->partitions, f->replicas, (long long)f->min_in_sync);
    else
        say(&t, SL_SINK_FINE, NULL, "%s: %d partitions, %d replicas, all in sync", f->name,
            f->partitions, f->replicas);
}

void sl_kafka_judge_missing(const char *name, const sl_kafka_makes *by, int64_t waiting,
                            sl_sink_tell tell, void *ctx)
{
    telling t = { tell, ctx, true };
    const char *todo = "create it, with the partitions and replicas that you want";
    if (by->known && by->makes)
        say(&t, SL_SINK_WARN, todo,
            "%s is not there; the brokers will make it, with %lld partitions and %lld replicas",
            name, (long long)by->partitions, (long long)by->replicas);
    else if (by->known && waiting > 0)
        say(&t, SL_SINK_BAD, todo,
            "%s is not there, the brokers do not make topics (auto.create.topics.enable), and "
            "messages wait for it",
            name);
    else
        say(&t, SL_SINK_WARN, todo, "%s is not there%s", name,
            by->known ? "" : "; whether the brokers make topics could not be read");
}
