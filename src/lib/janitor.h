/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The janitor of a node: a thread that does chores from time to time, such as deleting what was kept for long enough.
 * It has a connection of its own, so that neither heartbeats nor messages ever wait for it. It opens it when there is
 * something to do, and closes it when there was nothing for a while: under load there is a chore several times a
 * second, and a new session costs the server as much as that. A chore that fails, for whatever reason, is tried again later: it stops nobody.
 */
#ifndef SL_LIB_JANITOR_H
#define SL_LIB_JANITOR_H

#include "core/log.h"
#include "core/stop.h"
#include "db/db.h"
#include "lib/settings.h"

typedef struct sl_chore {
    const char *name;
    int64_t
        every_ns; /* from the end of one run to the next, which comes later if the last one took long */
    /* In small transactions, with pauses between them (sl_janitor_yield). *rows: how many were touched. */
    SL_CHECK sl_rc (*run)(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop,
                          int64_t *rows, sl_err *err);
    /* NULL, or asked when its time has come, without a connection: is there anything to do? `rows` is what the last run
     * told, at first 0. */
    bool (*due)(void *ctx, int64_t rows);
    void *ctx;
} sl_chore;

enum { SL_CHORES_MAX = 8 };

typedef struct sl_janitor_conf {
    const sl_settings *settings;
    const sl_names *names;
    sl_log *log;
    sl_chore chores[SL_CHORES_MAX];
    size_t count;
} sl_janitor_conf;

typedef struct sl_janitor sl_janitor;

/* Without a chore there is no thread: *out is then NULL. Settings, names and log must outlive it. */
SL_CHECK sl_rc sl_janitor_start(sl_janitor **out, const sl_janitor_conf *conf, sl_err *err);
/* Stops at once, in the middle of a statement if need be. NULL is nobody. */
void sl_janitor_end(sl_janitor *j);

/* Between two transactions of a chore: rests for longer than the last one took, so that it takes no more than its share
 * of a busy database. True: stop. */
bool sl_janitor_yield(sl_stop *stop, int64_t began_ns);

#endif
