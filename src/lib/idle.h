/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a node that have found nothing for a while: one of them watches the table for all,
 * the others sleep until it rings. So an idle node costs the database the same, however many workers
 * it has. */
#ifndef SL_LIB_IDLE_H
#define SL_LIB_IDLE_H

#include "core/stop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_idle sl_idle;

sl_idle *sl_idle_new(size_t workers); /* NULL: out of descriptors, errno says so */
void sl_idle_free(sl_idle *i);

/* Become the one who watches; false: another does. */
bool sl_idle_watch(sl_idle *i);
/* There is something to do, or this worker watches no longer: all look for themselves. */
void sl_idle_ring(sl_idle *i);
/* This worker watches no longer. Unless it, or another, is back in a moment, one of those that sleep looks for
 * itself, and watches if it finds nothing: a message alone is then delivered without disturbing anybody. */
void sl_idle_hand_over(sl_idle *i);
/* This worker, which does not watch, has found something. If it got up in place of the one who watched, the next one
 * stands by in its turn: else nobody would look while both are at work. */
void sl_idle_pass_on(sl_idle *i);
/* There may be more than one worker can do: one of those that sleep helps. */
void sl_idle_call(sl_idle *i);
/* Sleeps until the bell rings for good or the stop is asked for; not at all if nobody watches. */
void sl_idle_sleep(sl_idle *i, size_t worker, sl_stop *stop);

#endif
