/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: a sentence and key=value pairs, in logfmt or JSON, handed whole to one function. The
 * library prints nothing by itself. Never log a payload, a header, or a connection string.
 *
 *   sl_log_line(log, SL_LOG_WARN, "database lost", "worker", name, "error", err.text, NULL);
 *
 * A warning or an error that repeats is folded: the same level, sentence and "error" within FOLD_NS is
 * counted, and the count is written with the next one, or before another sentence, as repeated=N.
 */
#ifndef SL_CORE_LOG_H
#define SL_CORE_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARN, SL_LOG_INFO, SL_LOG_DEBUG } sl_log_level;

/* `line` has no line end. Called with the log's lock held: it must not log. */
typedef void (*sl_log_write)(void *ctx, sl_log_level level, const char *line);

typedef struct sl_log {
    sl_log_level level; /* and what is worse */
    bool json;
    bool timestamps;
    sl_log_write write; /* NULL: nothing is logged */
    void *ctx;
    pthread_mutex_t lock;
    char last[160]; /* the sentence written last, for folding */
    int64_t last_ns;
    uint64_t last_error; /* hash of the pair "error" of that line */
    uint64_t folded;
} sl_log;

void sl_log_init(sl_log *log, sl_log_write write, void *ctx);
void sl_log_fini(sl_log *log);
const char *sl_log_level_name(sl_log_level level);

/* Pairs of C strings follow, ended by NULL; a NULL value leaves its pair out. log may be NULL. */
void sl_log_line(sl_log *log, sl_log_level level, const char *sentence, ...)
    __attribute__((sentinel));

#endif
