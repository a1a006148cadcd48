/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon after each other the turns of a node find something, whichever worker takes them. While one commit follows the
 * other within a millisecond and a half, a worker that naps for one costs the database less than one that asks to be woken
 * for each: it would have to be armed and disarmed each time, and producers that notify commit one after the other.
 */
#ifndef SL_LIB_RHYTHM_H
#define SL_LIB_RHYTHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

/* So long is a nap; and after so long it is quiet. */
#define SL_RHYTHM_NAP_NS (SL_MS)
#define SL_RHYTHM_QUIET_NS (100 * SL_MS)

/* All zero at first. Shared by threads: what one of two at once notes may be lost, for it is a guess. */
typedef struct sl_rhythm {
    _Atomic int64_t found_ns; /* the last time */
    _Atomic int64_t gap_ns;   /* between two of them, of late */
} sl_rhythm;

/* A turn found something. */
void sl_rhythm_found(sl_rhythm *r, int64_t now_ns);

/* The next one is likely to, within a moment. */
bool sl_rhythm_soon(const sl_rhythm *r, int64_t now_ns);

/* Nothing was found for a while. */
bool sl_rhythm_quiet(const sl_rhythm *r, int64_t now_ns);

#endif
