/* SPDX-License-Identifier: Apache-2.0 */
/* A borrowed run of bytes. p == NULL means absent (SQL NULL), which is not the same as empty. */
#ifndef SL_CORE_BYTES_H
#define SL_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct sl_str {
    const char *p;
    size_t n;
} sl_str;

#define SL_STR(literal) ((sl_str){ "" literal, sizeof(literal) - 1 })
#define SL_NONE ((sl_str){ NULL, 0 })

static inline sl_str sl_str_of(const char *s)
{
    return s ? (sl_str){ s, strlen(s) } : SL_NONE;
}

static inline bool sl_str_eq(sl_str a, sl_str b)
{
    return a.n == b.n && (a.p == NULL) == (b.p == NULL) &&
           (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

#endif
