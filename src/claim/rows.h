/* SPDX-License-Identifier: Apache-2.0 */
/* The row that every claim statement returns, made into a message:
 *   id, epoch, attempt, created_at, topic, entity_key, event_type, content_type, headers,
 * payload */
#ifndef SL_CLAIM_ROWS_H
#define SL_CLAIM_ROWS_H

#include "core/batch.h"
#include "db/db.h"

/* An sl_row_fn; ctx is the sl_batch. Copies all bytes into its arena. */
sl_rc sl_claim_row(void *batch, const sl_val *cols, sl_err *err);

#endif
