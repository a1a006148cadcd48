/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fencer of a node: a thread that shuts out nodes that are gone (member/fences.h), so that their lanes can be taken
 * over. It has a connection of its own, and no heartbeat waits for it. There is one where some route has a fence.
 */
#ifndef SL_LIB_FENCER_H
#define SL_LIB_FENCER_H

#include "lib/routes.h"
#include "member/fences.h"

/* Where the node sends under names of its own. The texts live as long as the routes. */
typedef struct sl_fence_places {
    int64_t *ways;
    sl_str *texts;
    size_t count;
} sl_fence_places;

void sl_fence_places_make(sl_fence_places *p, const sl_routes *r);
void sl_fence_places_fini(sl_fence_places *p);
/* "sluice/outbox/node/3/0": what a worker is called there, by each of its routes. */
char *sl_fence_name(const char *table, const char *worker, int64_t way);

typedef struct sl_fencer_conf {
    const sl_settings *settings;
    const sl_names *names;
    const sl_routes *routes;
    sl_log *log;
} sl_fencer_conf;

typedef struct sl_fencer sl_fencer;

/* All that conf points to must outlive it. */
SL_CHECK sl_rc sl_fencer_start(sl_fencer **out, const sl_fencer_conf *conf, sl_err *err);
/* NULL is nobody. */
void sl_fencer_end(sl_fencer *f);

#endif
