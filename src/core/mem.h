/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there or ends the process: outside the batches' arenas the program holds little,
 * and a relay without memory cannot keep a promise better than one that is restarted. */
#ifndef SL_CORE_MEM_H
#define SL_CORE_MEM_H

#include <stddef.h>

void *sl_alloc(size_t bytes); /* zeroed */
void *sl_realloc(void *p, size_t bytes);
char *sl_strdup(const char *s); /* NULL gives NULL */
char *sl_strndup(const char *s, size_t bytes);
char *sl_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
