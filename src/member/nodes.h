/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of nodes and the lanes' owners, as the database keeps them: one function for each
 * thing that can be asked or done, no state. A node is its session, drawn at each start; a lane is
 * free when its owner is no node. All times are on the database's clock. */
#ifndef SL_MEMBER_NODES_H
#define SL_MEMBER_NODES_H

#include "db/db.h"
#include "member/fences.h"

typedef struct sl_node_row {
    int64_t session;
    const char *node, *strategy, *assign; /* in a list: its own */
    int64_t workers;
    int64_t born;
    int64_t left_us; /* until it must have beaten again */
    int64_t age_us;
    int64_t sent, failed, per_second;
    sl_places places; /* of one that joins: where it sends under names of its own */
} sl_node_row;

typedef struct sl_node_list {
    sl_node_row *v;
    size_t count, cap;
} sl_node_list;

void sl_node_list_fini(sl_node_list *l);
/* One that fails leaves the list as it was. */
SL_CHECK sl_rc sl_nodes_list(sl_db *db, sl_node_list *out, sl_err *err);

/* Registers, after pruning those whose time is over (so many; or NULL). SL_OPERATOR: nodes with another strategy live. */
SL_CHECK sl_rc sl_nodes_join(sl_db *db, const sl_node_row *me, int64_t lease_ns, size_t *pruned,
                             sl_err *err);
/* Harmless when it is gone. Its lanes are free. */
SL_CHECK sl_rc sl_nodes_leave(sl_db *db, int64_t session, sl_err *err);
SL_CHECK sl_rc sl_nodes_prune(sl_db *db, size_t *pruned, sl_err *err);

typedef struct sl_beat {
    bool alive;               /* false: it was pruned, and nothing else here is set */
    int64_t peers, last_born; /* change with each join and leave */
    int64_t soonest_us;       /* when the first of the others ends, if it does not beat */
    int64_t lanes;
    bool paused; /* the number of lanes is about to change: own none */
} sl_beat;

SL_CHECK sl_rc sl_nodes_beat(sl_db *db, const sl_node_row *me, int64_t lease_ns, sl_beat *out,
                             sl_err *err);

/* By lane: owner (0 if free) and epoch. *count lanes at most are written, and set to how many there
 * are. */
SL_CHECK sl_rc sl_lanes_list(sl_db *db, int64_t *owners, size_t *count, sl_err *err);

typedef void (*sl_lane_fn)(void *ctx, size_t lane, int64_t epoch, int64_t floor);
/* Takes over those of the lanes that are free. */
SL_CHECK sl_rc sl_lanes_acquire(sl_db *db, const int64_t *lanes, size_t n, int64_t session,
                                sl_lane_fn granted, void *ctx, sl_err *err);
/* The same, but none as long as a node that is gone has not been kept out everywhere (member/fences.h). */
SL_CHECK sl_rc sl_lanes_acquire_fenced(sl_db *db, const int64_t *lanes, size_t n,
                                       int64_t session, sl_lane_fn granted, void *ctx,
                                       sl_err *err);
SL_CHECK sl_rc sl_lanes_release(sl_db *db, const int64_t *lanes, size_t n, int64_t session,
                                sl_err *err);

#endif
