/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lanes should a node own? Four answers, `--assign`, each a pure function of what the node
 * knows: nodes agree without talking, because they compute the same from the same. **Placement is
 * a wish; the lane's lease is the safety**: nodes which know different things wish wrongly for a
 * while, and that costs time, never order.
 *
 *   ring         a lane belongs to the first point clockwise (member/ring.h). Of several peers of
 *                one name, only the one born last counts: the others are sessions of a node that
 *                was restarted, and have not expired yet.
 *   claim        fair shares: floor or ceil of lanes / nodes. A node keeps what it owns up to its
 *                share, gives back the rest, its highest lanes first, and wishes free lanes up to
 *                its share. From any ownership this settles, and then nothing moves any more.
 *   static       what is configured, whoever lives.
 *   birth-order  the lane modulo the number of nodes is the node's rank by birth.
 *
 * A node which is not among its own peers wishes nothing, except with `static`.
 */
#ifndef SL_MEMBER_ASSIGN_H
#define SL_MEMBER_ASSIGN_H

#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sl_assign {
    SL_ASSIGN_RING,
    SL_ASSIGN_CLAIM,
    SL_ASSIGN_STATIC,
    SL_ASSIGN_BIRTH_ORDER
} sl_assign;

typedef struct sl_peer {
    const char *name; /* needed by SL_ASSIGN_RING only */
    int64_t session;  /* not 0, and no other peer's */
    int64_t born;     /* grows with each start */
} sl_peer;            /* a live node */

typedef struct sl_placing {
    sl_assign how;
    const sl_peer *peers; /* the live nodes, this one included, in any order */
    size_t count;
    int64_t me; /* this node's session */
    size_t lanes;
    const int64_t *owners; /* by lane: the session that owns it, 0 or one that is not among the
                              peers if it is free; needed by SL_ASSIGN_CLAIM only */
    const bool *fixed;     /* by lane; needed by SL_ASSIGN_STATIC only */
} sl_placing;              /* what a node knows when it makes its wish */

/* wish[lane]: should this node own it? */
void sl_assign_wish(const sl_placing *p, bool *wish);

/* Is nothing left to do for anyone, if this node owns what it wishes? With `claim` all nodes must have their shares: until
 * then the others' may change, and with them its own. */
bool sl_assign_settled(const sl_placing *p);

/* Reads "0-15,32": marks these lanes and leaves the others as they are. SL_REFUSED names the piece
 * that is no lane, out of range or a reversed range; then nothing is marked. */
SL_CHECK sl_rc sl_assign_parse_lanes(const char *text, bool *fixed, size_t lanes, sl_err *err);

#endif
