/* SPDX-License-Identifier: Apache-2.0 */
/* A route: which topics go to a sink, and on what terms. What the workers of a node share of it. */
#ifndef SL_RELAY_ROUTE_H
#define SL_RELAY_ROUTE_H

#include "core/bytes.h"
#include "relay/breaker.h"
#include "relay/policy.h"

#include <stdatomic.h>

typedef struct sl_route {
    const char *name; /* for people */
    const char *const *topics;
    size_t topic_count; /* 0: every topic */
    sl_policy policy;
    bool at_most_once;
    bool fenced;   /* its sink shuts out who is gone */
    bool exact;    /* and knows what was delivered */
    int64_t batch; /* messages that a worker may have under way at once; 0: all that it has */
    int64_t concurrency; /* workers that may use it at once; 0: all */
    sl_breaker *breaker;
    _Atomic int64_t users;
} sl_route;

/* `*` stands for any characters, also none. */
bool sl_topic_matches(const char *pattern, sl_str topic);
bool sl_route_wants(const sl_route *r, sl_str topic);

/* One of the places that `concurrency` leaves. */
bool sl_route_enter(sl_route *r);
void sl_route_leave(sl_route *r);

#endif
