/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sluice run`: a crew of workers under signals. TERM or INT: finish the turn and leave; a
 * second one: give back what is in hand and leave now. HUP: read the settings again and, if
 * they are good, put a new crew in place of the old one; settings that cannot change while
 * running keep their value and are named in the log.
 */
#ifndef SL_NODE_NODE_H
#define SL_NODE_NODE_H

#include "core/log.h"
#include "lib/settings.h"

typedef struct sl_node_conf {
    sl_settings *settings; /* changed by a reload */
    sl_log *log;
    /* Reads file, environment and flags again into an initialised *out. */
    sl_rc (*reload)(void *ctx, sl_settings *out, sl_err *err);
    void *ctx;
} sl_node_conf;

/* Returns SL_OK when stopped or drained. */
SL_CHECK sl_rc sl_node_run(const sl_node_conf *conf, sl_err *err);

#endif
