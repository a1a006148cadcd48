/* SPDX-License-Identifier: Apache-2.0 */
#include "core/buf.h"

#include "core/err.h"
#include "core/mem.h"

#include <stdarg.h>

void sl_buf_fini(sl_buf *b)
{
    free(b->p);
    *b = (sl_buf){ 0 };
}

void sl_buf_reset(sl_buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

char *sl_buf_room(sl_buf *b, size_t n)
{
    size_t need = b->n + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 128;
        while (cap < need)
            cap *= 2;
        b->p = sl_realloc(b->p, cap);
        b->cap = cap;
    }
    return b->p + b->n;
}

void sl_buf_took(sl_buf *b, size_t n)
{
    b->n += n;
    b->p[b->n] = '\0';
}

void sl_buf_put(sl_buf *b, const void *bytes, size_t n)
{
    char *at = sl_buf_room(b, n);
    if (n)
        memcpy(at, bytes, n);
    sl_buf_took(b, n);
}

void sl_buf_puts(sl_buf *b, const char *s)
{
    sl_buf_put(b, s, strlen(s));
}

void sl_buf_putc(sl_buf *b, char c)
{
    sl_buf_put(b, &c, 1);
}

void sl_buf_printf(sl_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *at = sl_buf_room(b, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(at, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

const char *sl_buf_text(const sl_buf *b)
{
    return b->p ? b->p : "";
}
