/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consistent-hash ring: every node stands on a circle of 2^64 places at SL_RING_POINTS points,
 * given by its name alone, and a lane belongs to the node whose point comes first clockwise from
 * the lane's own place. So a node that joins takes lanes from the others and gives none to them,
 * a node that leaves only gives, and no lane moves between two nodes that stay. Every node
 * computes the same ring from the same names; what is hashed, and how, must never change, or
 * nodes of two versions would wish the same lanes.
 */
#ifndef SL_MEMBER_RING_H
#define SL_MEMBER_RING_H

#include <stddef.h>

/* A node. The fewer, the less even: a node's part of the circle varies by about 1/sqrt(points),
 * which is 6 % here. More would cost time and gain little, as 1024 lanes on 16 nodes vary by
 * 12 % whatever the circle looks like. */
enum { SL_RING_POINTS = 256 };

typedef struct sl_ring sl_ring;

/* The names must differ; their order makes no difference. They are borrowed until the end of the
 * ring. */
sl_ring *sl_ring_new(const char *const *names, size_t count);
void sl_ring_free(sl_ring *r);

/* The index, in `names`, of the node that the lane belongs to; the ring must not be empty. */
size_t sl_ring_find(const sl_ring *r, size_t lane);

#endif
