/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mem.h"

#include "core/err.h"

#include <stdarg.h>

static void *or_die(void *p)
{
    if (!p) {
        fputs("sluice: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *sl_alloc(size_t bytes)
{
    return or_die(calloc(1, bytes ? bytes : 1));
}

void *sl_realloc(void *p, size_t bytes)
{
    return or_die(realloc(p, bytes ? bytes : 1));
}

char *sl_strdup(const char *s)
{
    return s ? sl_strndup(s, strlen(s)) : NULL;
}

char *sl_strndup(const char *s, size_t bytes)
{
    char *copy = sl_alloc(bytes + 1);
    memcpy(copy, s, bytes);
    return copy;
}

char *sl_asprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = sl_alloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}
