/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/open.h"

#include "lib/conf.h"

sl_rc sl_cli_open(sl_cli_db *out, const sl_cli *cli, bool create, sl_err *err)
{
    sl_rc rc = sl_conf_names(&out->names, &cli->settings, err);
    if (rc == SL_OK)
        rc = sl_conf_open_db(&out->db, &cli->settings, &out->names, create, err);
    return rc;
}

void sl_cli_close(sl_cli_db *d)
{
    sl_db_close(d->db);
    sl_names_fini(&d->names);
}
