/* SPDX-License-Identifier: Apache-2.0 */
/* A line of progress on standard error, only when that is a terminal. */
#ifndef SL_CLI_PROGRESS_H
#define SL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct sl_progress {
    const char *verb;
    bool shown;
    uint64_t total_bytes; /* 0: unknown; or the messages that there will be */
    int64_t begun_ns, drawn_ns;
} sl_progress;

/* verb NULL: stay quiet. The input's size, if it is a file, makes a bar. */
void sl_progress_begin(sl_progress *p, const char *verb, FILE *input);
/* The same where it is known how many messages there will be: give their number as bytes, too. */
void sl_progress_begin_of(sl_progress *p, const char *verb, uint64_t messages);
void sl_progress_step(sl_progress *p, uint64_t messages, uint64_t bytes);
void sl_progress_end(sl_progress *p); /* wipes the line */

#endif
