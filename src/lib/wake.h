/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping until somebody commits a message. Whoever finds nothing arms, looks again, and waits: from the
 * moment it is armed no commit goes unheard, and what was committed before is seen by that look. Producers
 * notify only while somebody is armed (sql/postgres/schema/003.sql), so they pay nothing for it while the
 * nodes are busy. Notifications can be lost all the same, with a pooler in between for instance: there is
 * always a poll behind it.
 */
#ifndef SL_LIB_WAKE_H
#define SL_LIB_WAKE_H

#include "db/db.h"

/* Of one connection; all zero at first. */
typedef struct sl_wake {
    bool listening;
    bool mine;  /* it is this session that producers look at */
    bool armed; /* this one, or another on which it can rely */
    bool woken; /* by a commit, or by one who was relied on */
} sl_wake;

/* w->armed false: a producer is at work that would not notify. Ask again soon. */
SL_CHECK sl_rc sl_wake_arm(sl_wake *w, sl_db *db, sl_err *err);
/* Sleeps until somebody commits (w->woken), fd is readable, or for so long. */
SL_CHECK sl_rc sl_wake_sleep(sl_wake *w, sl_db *db, int fd, int64_t ns, sl_err *err);
/* Awake: producers need not notify any more. Others that sleep relied on it, and are told. */
SL_CHECK sl_rc sl_wake_disarm(sl_wake *w, sl_db *db, sl_err *err);

/* Sleeps as above where it is armed, and for a growing pause where nobody would tell. */
SL_CHECK sl_rc sl_wake_wait(sl_wake *w, sl_db *db, int fd, unsigned tries, int64_t ns,
                            sl_err *err);

/* Does what one session says reach the other, within so long? */
SL_CHECK sl_rc sl_wake_test(sl_db *sleeper, sl_db *caller, int64_t ns, bool *works,
                            sl_err *err);

#endif
