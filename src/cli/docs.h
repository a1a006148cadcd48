/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation that is made from the tables of commands and settings, so that it cannot differ
 * from them. Each function appends a whole text. */
#ifndef SL_CLI_DOCS_H
#define SL_CLI_DOCS_H

#include "cli/cli.h"

void sl_docs_man(sl_buf *out);        /* scdoc: the settings section of sluice.yaml(5) */
void sl_docs_yaml(sl_buf *out);       /* a sluice.yaml with every setting commented out */
void sl_docs_markdown(sl_buf *out);   /* a table of all settings */
void sl_docs_completion(sl_buf *out); /* a bash completion script */

#endif
