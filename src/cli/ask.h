/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked before something is done to many messages, and what is told of those to which it was not done. */
#ifndef SL_CLI_ASK_H
#define SL_CLI_ASK_H

#include "core/buf.h"

#include <stdbool.h>
#include <stdio.h>

/* Yes or no, from the terminal: "verb it? [y/N]", or "verb them?" where there are several. */
bool sl_ask(const char *verb, size_t count);

/* Lines for people, of which the first ten are shown. */
typedef struct sl_notes {
    sl_buf text;
    size_t count;
} sl_notes; /* zero-initialise */

/* "head: why"; what a terminal would obey becomes a question mark. */
void sl_notes_add(sl_notes *n, const char *head, const char *why);
void sl_notes_print(const sl_notes *n, FILE *out);
void sl_notes_fini(sl_notes *n);

#endif
