/* SPDX-License-Identifier: Apache-2.0 */
/* A list of ids as short text: each as the difference to the one before, five bits a character, the low ones first.
 * Neighbours take one character, what is up to 511 apart two. */
#ifndef SL_SINK_KAFKA_IDS_H
#define SL_SINK_KAFKA_IDS_H

#include "core/buf.h"

#include <stdbool.h>
#include <stdint.h>

void sl_kafka_ids_put(sl_buf *out, int64_t *last, int64_t id);
typedef void (*sl_kafka_id_fn)(void *ctx, int64_t id);
/* False: this is no such text; some ids may have been told. */
bool sl_kafka_ids_each(sl_str text, sl_kafka_id_fn fn, void *ctx);

#endif
