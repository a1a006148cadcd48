/* SPDX-License-Identifier: Apache-2.0 */
#include "core/err.h"

#include <stdarg.h>

sl_rc sl_fail(sl_err *err, sl_rc rc, const char *fmt, ...)
{
    if (!err)
        return rc;
    err->rc = rc;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    /* Texts of other libraries come with a line end; ours have none. */
    size_t n = strlen(err->text);
    while (n > 0 && (err->text[n - 1] == '\n' || err->text[n - 1] == ' '))
        err->text[--n] = '\0';
    return rc;
}

sl_rc sl_fail_in(sl_err *err, const char *fmt, ...)
{
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);

    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", text);
    return err->rc;
}

const char *sl_rc_name(sl_rc rc)
{
    static const char *const names[] = {
        [SL_OK] = "ok",           [SL_AGAIN] = "again",
        [SL_REFUSED] = "refused", [SL_OPERATOR] = "operator",
        [SL_NEWER] = "newer",     [SL_STOPPED] = "stopped",
    };
    return (size_t)rc < sizeof names / sizeof names[0] ? names[rc] : "?";
}
