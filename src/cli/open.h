/* SPDX-License-Identifier: Apache-2.0 */
/* The database of a command, opened and checked. */
#ifndef SL_CLI_OPEN_H
#define SL_CLI_OPEN_H

#include "cli/cli.h"
#include "db/db.h"

typedef struct sl_cli_db {
    sl_names names;
    sl_db *db;
} sl_cli_db; /* zero-initialise */

SL_CHECK sl_rc sl_cli_open(sl_cli_db *out, const sl_cli *cli, bool create, sl_err *err);
void sl_cli_close(sl_cli_db *d);

#endif
