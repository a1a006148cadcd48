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
    const sl_opt_map
        *props[2];     /* of the library behind it, by their own names; the later counts */
    int64_t answer_ns; /* no answer for so long: it is out of order */
    sl_log *log;       /* or NULL */
} sl_sink_conf;

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
    void (*close)(sl_sink *s);
};

/* The sinks of this build, ended by NULL; written by Meson. */
extern const sl_sink_ops *const sl_sink_all[];

/* By the URL's scheme. SL_REFUSED names the sinks there are. */
SL_CHECK sl_rc sl_sink_find(const sl_sink_ops **out, const char *url, sl_err *err);
SL_CHECK sl_rc sl_sink_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err);

#endif
