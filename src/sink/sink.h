/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where messages go: a sink is one file behind one table of functions. A sink belongs to one
 * worker and is called on its thread only; a library's own threads must not reach in here.
 *
 *   submit  borrows a message until it is settled (sl_msg_settle, exactly once). It never
 *           fails: a refusal is a verdict. It may settle at once, or keep it for `poll`.
 *   poll    makes progress, for at most timeout_ns, and settles what has an answer. SL_SENT
 *           means that the other side confirmed it, not that it was handed over; SL_RETRY that it
 *           cannot have arrived; SL_DEAD that it never will; SL_RELEASED, with a reason, that the
 *           sink as a whole is out of order, and nothing of it is this message's fault; SL_UNKNOWN
 *           and `blameless`, the same of one that may have arrived.
 *   recall  settles what is left: SL_UNKNOWN if it may have gone out, SL_RELEASED if it cannot
 *           have. Afterwards the sink holds no borrowed byte.
 *
 * Messages of one key come in their order. A sink that is `in_order` delivers what it was handed
 * in that order, and once it has failed with one, with all it still has: it is handed the next of a
 * key at once, if it does not say that this one does not `follow` the one before. Any other gets it
 * when the one before has its verdict.
 *
 * With a fence a worker sends under a name of its own; whoever uses that name anew shuts it out (`shut_out`). So the name
 * is made ready before a turn begins, never in the middle of one: who was shut out must not come back with what it had
 * taken before.
 *
 * A sink sees no database.
 */
#ifndef SL_SINK_SINK_H
#define SL_SINK_SINK_H

#include "core/batch.h"
#include "core/err.h"
#include "core/log.h"
#include "core/opt.h"

typedef struct sl_sink_conf {
    const char *url;    /* "file:out.jsonl?sync=off" */
    const char *worker; /* "node/3": travels with each message */
    /* From here on only what sinks use that are told so by `terms`; 0 or NULL: as the sink likes it. */
    const char *format; /* "raw", see format/encode.h */
    const char *target; /* the other side's topic: fixed, or with {topic} and {type} */
    const char *source; /* of CloudEvents */
    bool tombstones;    /* an empty payload is no value */
    bool created_time;  /* the other side's time of a message is its created_at */
    const sl_opt_map
        *props[2];     /* of the library behind it, by their own names; the later counts */
    int64_t answer_ns; /* no answer for so long: it is out of order */
    const char
        *fence;  /* NULL, or this worker's name over there, of which each session has its own */
    bool exact;  /* what was delivered is kept there, too */
    sl_log *log; /* or NULL */
} sl_sink_conf;

/* What a sink finds out about its other side, for `sluice doctor`. */
typedef enum sl_sink_state {
    SL_SINK_FINE,
    SL_SINK_WARN,
    SL_SINK_BAD,
    SL_SINK_UNSEEN /* it could not be looked at */
} sl_sink_state;

/* check: a literal; todo: a remedy, or NULL. */
typedef void (*sl_sink_tell)(void *ctx, sl_sink_state state, const char *check,
                             const char *found, const char *todo);

/* Messages that wait, some of them, by topic and type. */
typedef struct sl_sink_wait {
    sl_str topic, type;
    int64_t count; /* 0: none waits, but the settings name the topic */
    int64_t keyless, largest;
} sl_sink_wait;

/* What became of the wish to be ready for a turn. */
typedef enum sl_readiness {
    SL_READY,
    SL_READY_ANEW, /* under a name that was initialised a moment ago */
    SL_READY_NOT,
} sl_readiness;

/* A message that one who is fenced has delivered in its last turn. */
typedef void (*sl_fenced_fn)(void *ctx, int64_t id);

typedef struct sl_sink_ops sl_sink_ops;

typedef struct sl_sink {
    const sl_sink_ops *ops;
} sl_sink; /* a sink's struct begins with it */

struct sl_sink_ops {
    const char *scheme;  /* "file" in file:PATH */
    const char *example; /* "file:PATH" */
    bool in_order;
    bool terms; /* knows format, target, source and properties */
    const char
        *library; /* NULL, or "librdkafka": what is linked, and its version as it counts */
    int (*library_version)(void);
    SL_CHECK sl_rc (*open)(sl_sink **out, const sl_sink_conf *conf, sl_err *err);
    void (*submit)(sl_sink *s, sl_batch *b, sl_msg *m);
    void (*poll)(sl_sink *s, int64_t timeout_ns);
    void (*recall)(sl_sink *s);
    /* May m be handed over while the one before it, of the same key, has no verdict? NULL: yes. */
    bool (*follows)(sl_sink *s, const sl_msg *before, const sl_msg *m);
    /* Before anything is taken for a turn, and the last one is settled: may be asked again and again. `session`: the
     * node's, not 0. NULL: always. */
    sl_readiness (*ready)(sl_sink *s, int64_t session, int64_t timeout_ns, char why[160]);
    /* Is it unknown what becomes of what was handed over, and can it still be found out, by poll? NULL: never. */
    bool (*in_doubt)(const sl_sink *s);
    /* Shuts out the worker conf->fence, which is gone; from any thread. NULL: that cannot be. */
    SL_CHECK sl_rc (*shut_out)(const sl_sink_conf *conf, int64_t session, sl_fenced_fn fn,
                               void *ctx, sl_err *err);
    void (*close)(sl_sink *s);
    /* Looks at where such messages would go, without a sink that is open, and changes nothing there. NULL: there is
     * nothing to say. */
    void (*describe)(const sl_sink_conf *conf, const sl_sink_wait *waits, size_t count,
                     sl_sink_tell tell, void *ctx);
};

/* The sinks of this build, ended by NULL; written by Meson. */
extern const sl_sink_ops *const sl_sink_all[];

/* By the URL's scheme. SL_REFUSED names the sinks there are. */
SL_CHECK sl_rc sl_sink_find(const sl_sink_ops **out, const char *url, sl_err *err);
SL_CHECK sl_rc sl_sink_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err);

#endif
