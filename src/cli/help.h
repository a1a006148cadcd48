/* SPDX-License-Identifier: Apache-2.0 */
/* What `sluice --help` and `sluice CMD --help` print, made from the tables of commands and
 * settings. */
#ifndef SL_CLI_HELP_H
#define SL_CLI_HELP_H

#include "cli/cli.h"

void sl_help_program(FILE *out);
void sl_help_command(const sl_cmd *cmd, FILE *out);

/* Appends the words of `text`, the first at `column`, broken before `width`; each further line
 * begins with `prefix`. */
void sl_help_wrap(sl_buf *out, const char *text, size_t column, const char *prefix,
                  size_t width);

#endif
