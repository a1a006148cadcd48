/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chore of a node: idempotency keys are kept for a time after their message is gone, and then forgotten.
 *
 * Producers register a key with its message, and nobody writes anything when the message goes. So this looks, now and
 * then, which of the registered messages are neither in the outbox nor dead letters any more, notes the time, and deletes
 * what was noted `idempotency_keep` ago. A key is therefore kept for that time at least, and for the time between two
 * looks longer.
 *
 * Those whose message is still there are looked at in vain: a run ends after some 100,000 of these, and begins at another
 * place each time, so that the others have their turn.
 */
#ifndef SL_LIB_KEEP_KEYS_H
#define SL_LIB_KEEP_KEYS_H

#include "lib/janitor.h"

/* One run, in small transactions, beside others of the same table; it ends early when a stop is asked for. *rows: how many
 * keys were forgotten. */
SL_CHECK sl_rc sl_keep_keys(sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                            sl_err *err);

sl_chore sl_keep_keys_chore(const sl_settings *s);

#endif
