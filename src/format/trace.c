/* SPDX-License-Identifier: Apache-2.0 */
#include "format/trace.h"

#include "core/err.h"

/* version-traceid-parentid-flags; a later version may have more after these, behind a dash. */
enum { VERSION = 0, TRACE = 3, PARENT = 36, FLAGS = 53, END = 55 };

static bool is_hex(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
            return false;
    return true;
}

static bool is_id(const char *p, size_t n)
{
    bool zeros = true;
    for (size_t i = 0; i < n; i++)
        zeros = zeros && p[i] == '0';
    return !zeros && is_hex(p, n);
}

static bool has_known_length(sl_str s)
{
    if (s.n == END)
        return true;
    return s.n > END && s.p[END] == '-' && memcmp(s.p, "00", 2) != 0;
}

bool sl_is_traceparent(sl_str s)
{
    return has_known_length(s) && is_hex(s.p + VERSION, 2) && memcmp(s.p, "ff", 2) != 0 &&
           s.p[TRACE - 1] == '-' && is_id(s.p + TRACE, 32) && s.p[PARENT - 1] == '-' &&
           is_id(s.p + PARENT, 16) && s.p[FLAGS - 1] == '-' && is_hex(s.p + FLAGS, 2);
}
