/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a crew share: lib/crew.c, which starts and ends it, and lib/worker.c, in which each worker takes its
 * turns. */
#ifndef SL_LIB_WORKER_H
#define SL_LIB_WORKER_H

#include "lib/below.h"
#include "lib/crew.h"
#include "lib/fencer.h"
#include "lib/idle.h"
#include "lib/janitor.h"
#include "lib/rhythm.h"
#include "lib/rotate.h"
#include "lib/vacuum.h"
#include "member/member.h"

#include <pthread.h>

typedef struct sl_worker {
    sl_crew *crew;
    pthread_t thread;
    char *name; /* "node/3" */
    sl_counts counts;
    unsigned failures; /* in a row */
    bool opened;       /* a session, of whatever end */
} sl_worker;

struct sl_crew {
    const sl_settings *settings;
    sl_names names;
    char *node;
    sl_member *member;
    sl_idle *idle;
    sl_rhythm rhythm;
    sl_janitor *janitor;
    sl_vacuum vacuum;
    sl_below below;
    sl_rotate rotate;
    bool kept; /* delivered messages may be there that nobody keeps any more */
    sl_care *care;
    sl_unrouted *unrouted;
    sl_routes routes;
    sl_journal *journal;
    sl_fence_places places;
    sl_fencer *fencer;
    _Atomic bool
        unclean; /* something may still come true, or is not settled: others have to see to it */
    bool notify; /* wake: notify, and it works */
    sl_sink_maker make;
    void *make_ctx;
    sl_stop *stop;
    sl_log *log;
    pthread_mutex_t lock; /* of failed */
    sl_err failed;        /* the first failure that stopped the crew; rc SL_OK: none */
    sl_stop ended;        /* asked for by the last worker that ends */
    _Atomic size_t alive;
    size_t started;
    size_t count;
    sl_worker workers[];
};

/* The thread of a worker; `arg` is the worker. */
void *sl_worker_main(void *arg);
/* Everything once on nothing: so that what is wrong is told before the node starts. */
SL_CHECK sl_rc sl_worker_rehearse(sl_worker *w, int wake_fd, sl_err *err);

/* All stop, and this is why, unless there was another reason before. (lib/crew.c) */
void sl_crew_fail(sl_crew *crew, const sl_err *err);

#endif
