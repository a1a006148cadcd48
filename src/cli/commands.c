/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-commands, in the order of `sluice --help`. A new one is a file and two lines here. */
#include "cli/cli.h"

extern const sl_cmd sl_cmd_init, sl_cmd_push, sl_cmd_run, sl_cmd_pull, sl_cmd_status,
    sl_cmd_workers, sl_cmd_lanes, sl_cmd_keys, sl_cmd_dead, sl_cmd_resend, sl_cmd_doctor,
    sl_cmd_journal, sl_cmd_bench, sl_cmd_config, sl_cmd_version;

const sl_cmd *const sl_cmd_all[] = {
    &sl_cmd_init,   &sl_cmd_push,    &sl_cmd_run,     &sl_cmd_pull,
    &sl_cmd_status, &sl_cmd_workers, &sl_cmd_lanes,   &sl_cmd_keys,
    &sl_cmd_dead,   &sl_cmd_resend,  &sl_cmd_doctor,  &sl_cmd_journal,
    &sl_cmd_bench,  &sl_cmd_config,  &sl_cmd_version, NULL,
};

const sl_cmd *sl_cmd_named(const char *name)
{
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}
