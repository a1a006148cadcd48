/* SPDX-License-Identifier: Apache-2.0 */
/* Delivered messages that were kept: purging those that were kept for long enough. */
#ifndef SL_LIB_SENT_H
#define SL_LIB_SENT_H

#include "lib/janitor.h"

/* The chore that purges them. With retention 0 it purges all. */
sl_chore sl_sent_chore(const sl_settings *s);

/* Is anything kept? A role that may not look need not know. */
SL_CHECK sl_rc sl_sent_any(sl_db *db, bool *any, sl_err *err);

/* Purges nothing: a missing table or grant is found at the start. */
SL_CHECK sl_rc sl_sent_rehearse(sl_db *db, sl_err *err);

/* One batch, for those that have no janitor. */
SL_CHECK sl_rc sl_sent_purge_some(sl_db *db, const sl_settings *s, sl_err *err);

#endif
