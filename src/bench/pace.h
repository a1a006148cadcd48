/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rate that several producers share: how much each has to commit by now, and of which keys. All of a key's messages come from one
 * producer, so that they are committed in the order of their ids; between keys there is no order to be kept.
 */
#ifndef SL_BENCH_PACE_H
#define SL_BENCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Messages of a transaction, at most; as many as a node takes at once, if it is not told otherwise. */
enum { SL_PACE_TX = 500 };

typedef struct sl_pace {
    int64_t began_ns;
    int64_t rate, seconds; /* of all together, messages/s */
    int64_t producers;     /* at most `keys` */
    int64_t keys;
} sl_pace;

/* How many there should be for a rate. */
int64_t sl_pace_producers(int64_t rate);

/* Of a producer, 0 .. producers - 1, that has committed `done`: how many its next transaction has. 0: none is due. */
int64_t sl_pace_step(const sl_pace *p, int64_t producer, int64_t done, int64_t now_ns);
/* All is committed, or there was no time for it: a moment after the end is for what a last delay has left. */
bool sl_pace_is_over(const sl_pace *p, int64_t producer, int64_t done, int64_t now_ns);
/* When it looks again. They look each at another time, one after the other. */
int64_t sl_pace_next_ns(const sl_pace *p, int64_t producer, int64_t now_ns);
/* Of its message `n`, counted from 0: its keys take turns. */
int64_t sl_pace_key(const sl_pace *p, int64_t producer, int64_t n);

#endif
