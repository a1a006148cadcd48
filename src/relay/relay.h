/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's loop body: take, submit, await, recall, settle. It sees interfaces, never an
 * implementation. */
#ifndef SL_RELAY_RELAY_H
#define SL_RELAY_RELAY_H

#include "claim/claim.h"
#include "core/keymap.h"
#include "core/stop.h"
#include "sink/sink.h"

#include <stdatomic.h>

/* What a worker did so far; written by its thread, read by anyone. */
typedef struct sl_counts {
    _Atomic uint64_t taken, sent, retried, dead, unknown, released, lost, turns, reconnects;
} sl_counts;

typedef struct sl_relay {
    sl_claim *claim;
    sl_sink *sink;
    sl_stop *stop;
    sl_counts *counts;
    int64_t batch_max;   /* messages per turn */
    int64_t send_max_ns; /* a sink that has no answer by then is recalled */
    const char *worker;  /* "node/3" */
    sl_batch batch;
    sl_keymap last; /* with an ordered claim: by key, the last message that was handed over */
    size_t *todo;   /* messages that were not handed over yet */
    size_t todo_count, todo_cap;
} sl_relay;

void sl_relay_fini(sl_relay *r); /* the members from `batch` on */

/* One turn. r->batch.count is what was taken: 0 means that there was nothing to do. */
SL_CHECK sl_rc sl_relay_turn(sl_relay *r, sl_err *err);

#endif
