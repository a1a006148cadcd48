/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices when somebody writes to a SQLite database: each commit changes its file, or the log beside it. The
 * change comes first: a commit writes, waits for the disk, and only then can be seen. So whoever was woken is
 * woken again a few times, after growing pauses.
 */
#ifndef SL_DB_LITE_WATCH_H
#define SL_DB_LITE_WATCH_H

#include "core/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_lite_watch {
    int fd;             /* 0: not open */
    int64_t changed_ns; /* the last change that was noticed; 0: none */
} sl_lite_watch;

/* On the database file at this path, and on its log, where it has one. */
SL_CHECK sl_rc sl_lite_watch_open(sl_lite_watch *w, const char *path, sl_err *err);
void sl_lite_watch_close(sl_lite_watch *w);
/* Waits until something may have been committed (*changed), fd is readable, or the time has come. */
SL_CHECK sl_rc sl_lite_watch_await(sl_lite_watch *w, int fd, int64_t until_ns, bool *changed,
                                   sl_err *err);

#endif
