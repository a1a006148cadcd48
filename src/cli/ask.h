/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that say what they are about to do, and ask. */
#ifndef SL_CLI_ASK_H
#define SL_CLI_ASK_H

#include "cli/cli.h"

/* Before anything else: is there a terminal to ask on? If not, wrong use. */
int sl_ask_check(const sl_cli *cli, const char *verb);
/* "resend them? [y/N]": yes or no, from the terminal. */
bool sl_ask(const char *verb, bool one);

#endif
