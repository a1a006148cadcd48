/* SPDX-License-Identifier: Apache-2.0 */
/* Notices when somebody writes to a SQLite database: each commit changes its file, or the log beside it. */
#ifndef SL_DB_LITE_WATCH_H
#define SL_DB_LITE_WATCH_H

#include "core/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens a watch on the database file at this path, and on its log, where it has one. -1: *err says why. */
int sl_lite_watch_open(const char *path, sl_err *err);
/* Waits until one of them was written to (*changed), fd is readable, or the time has come; all that was
 * noticed so far is forgotten. */
SL_CHECK sl_rc sl_lite_watch_await(int watch, int fd, int64_t until_ns, bool *changed,
                                   sl_err *err);

#endif
