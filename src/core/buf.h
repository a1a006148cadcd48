/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes, always followed by a NUL that does not count. */
#ifndef SL_CORE_BUF_H
#define SL_CORE_BUF_H

#include "core/bytes.h"

typedef struct sl_buf {
    char *p; /* NULL only before the first byte */
    size_t n;
    size_t cap;
} sl_buf; /* zero-initialise */

void sl_buf_fini(sl_buf *b);
void sl_buf_reset(sl_buf *b); /* forget the bytes, keep the memory */
void sl_buf_put(sl_buf *b, const void *bytes, size_t n);
void sl_buf_puts(sl_buf *b, const char *s);
void sl_buf_putc(sl_buf *b, char c);
void sl_buf_printf(sl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for n more bytes; say with sl_buf_took how many of them were used. */
char *sl_buf_room(sl_buf *b, size_t n);
void sl_buf_took(sl_buf *b, size_t n);
const char *sl_buf_text(const sl_buf *b); /* never NULL */

#endif
