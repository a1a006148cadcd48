/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another number of lanes for a table with messages in it, and with nodes that share it by lanes.
 * With another number a key is in another lane, with another owner: so nobody may own any while it
 * changes, and what was taken before must be settled, or never can be.
 *
 *   1. sl_relane_pause, and again before it ends: nodes give up their lanes at their next beat and
 *      acquire none. A courtesy, which ends by itself: safety does not rest on it.
 *   2. The caller waits until no lane has an owner; nodes that died are pruned meanwhile.
 *   3. sl_relane, in one transaction: locks every lane, looks once more whether anyone owns one,
 *      and only then changes the number. Whoever is interrupted has changed nothing.
 */
#ifndef SL_DB_RELANE_H
#define SL_DB_RELANE_H

#include "db/db.h"

/* 0 lifts it. */
SL_CHECK sl_rc sl_relane_pause(sl_db *db, int64_t pause_ns, sl_err *err);

/* *owned: someone owns lanes again, and nothing was done. SL_AGAIN may mean that a lock could not be
 * had in time. SL_OPERATOR: there are so many already, or the column is not ours to change. On
 * success the pause is lifted. */
SL_CHECK sl_rc sl_relane(sl_db *db, const sl_names *names, int64_t lanes, bool *owned,
                         sl_err *err);

#endif
