/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a node, made from its settings and shared by its workers. */
#ifndef SL_LIB_ROUTES_H
#define SL_LIB_ROUTES_H

#include "lib/layout.h"
#include "relay/relay.h"

/* Opens a sink for one worker: sl_sink_open, or a handler of the program. */
typedef sl_rc (*sl_sink_maker)(void *ctx, sl_sink **out, const sl_sink_conf *conf, sl_err *err);

typedef struct sl_routes {
    sl_route *v;
    sl_sink_conf *sinks; /* without the worker */
    size_t count;
    sl_layout_terms terms;
    const char *table;
} sl_routes;

/* The settings must outlive them. */
void sl_routes_make(sl_routes *r, const sl_settings *s);
void sl_routes_fini(sl_routes *r);

/* The ways of one worker, each with a sink of its own. */
SL_CHECK sl_rc sl_ways_open(sl_way **out, const sl_routes *r, sl_sink_maker make, void *ctx,
                            const char *worker, sl_log *log, sl_err *err);
void sl_ways_close(sl_way *ways, size_t count);

#endif
