/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that say what they are about to do, and ask; and that tell of those to which it was not done. */
#ifndef SL_CLI_ASK_H
#define SL_CLI_ASK_H

#include "cli/cli.h"
#include "core/buf.h"

#include <stdio.h>

/* Before anything else: is there a terminal to ask on? If not, wrong use. */
int sl_ask_check(const sl_cli *cli, const char *verb);
/* "resend them? [y/N]": yes or no, from the terminal. */
bool sl_ask(const char *verb, bool one);

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
