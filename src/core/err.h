/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the code (sl_rc, in the public header) says what to do, the text says what happened. A
 * function that can fail returns sl_rc, takes `sl_err *err` last, and does not log: the error is
 * logged once, where it is handled. */
#ifndef SL_CORE_ERR_H
#define SL_CORE_ERR_H

#include "core/banned.h"

#include <sluice/sluice.h>

/* Fills err (which may be NULL) and returns rc. */
sl_rc sl_fail(sl_err *err, sl_rc rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there, and returns err->rc. */
sl_rc sl_fail_in(sl_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "again", "refused", ... for logs and tests. */
const char *sl_rc_name(sl_rc rc);

#endif
