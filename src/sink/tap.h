/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sluice bench` sees of a node: which message was delivered when, and in which order. A file that both map is named
 * by SLUICE_TAP; then each sink of the node is wrapped, and everything else is as always. A delivery costs two counters
 * and a clock; nobody waits for anybody.
 */
#ifndef SL_SINK_TAP_H
#define SL_SINK_TAP_H

#include "sink/sink.h"

#include <stdatomic.h>

#define SL_TAP_ENV "SLUICE_TAP"
#define SL_TAP_MAGIC INT64_C(0x7461702e736c7531) /* the shape of this file */

/* Of one message. All zero: not delivered. */
typedef struct sl_tapped {
    _Atomic int64_t at_ns; /* sl_now_ns() of the first delivery */
    _Atomic int64_t turn;  /* counts deliveries, from 1: of two, the later has the higher one */
    _Atomic int64_t times;
} sl_tapped;

typedef struct sl_tap {
    int64_t magic;
    int64_t first_id, count; /* whose messages[] these are */
    int64_t delay_ns;        /* so long the sink takes for each */
    _Atomic int64_t turns;
    _Atomic int64_t strangers; /* deliveries of any other id */
    sl_tapped messages[];
} sl_tap;

static inline size_t sl_tap_bytes(int64_t count)
{
    return sizeof(sl_tap) + (size_t)count * sizeof(sl_tapped);
}

/* Takes an open sink over; *sink is the wrapped one then. */
SL_CHECK sl_rc sl_tap_wrap(sl_sink **sink, const char *path, sl_err *err);

#endif
