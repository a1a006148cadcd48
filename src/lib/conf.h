/* SPDX-License-Identifier: Apache-2.0 */
/* The public handle of settings, and how settings become the small structs of the modules
 * below. */
#ifndef SL_LIB_CONF_H
#define SL_LIB_CONF_H

#include "claim/claim.h"
#include "core/clock.h"
#include "core/log.h"
#include "db/db.h"
#include "lib/settings.h"
#include "member/member.h"

struct sl_conf {
    sl_settings settings;
    sl_log_fn log_fn;
    void *log_ctx;
};

/* Validated names of the settings' table. */
SL_CHECK sl_rc sl_conf_names(sl_names *out, const sl_settings *s, sl_err *err);

/* Opens the settings' database and, unless `create`, checks its schema. */
SL_CHECK sl_rc sl_conf_open_db(sl_db **out, const sl_settings *s, const sl_names *names,
                               bool create, sl_err *err);

/* The same for a part of a node: a session that lasts. wake_fd as in sl_dsn. */
SL_CHECK sl_rc sl_conf_open_node(sl_db **out, const sl_settings *s, const sl_names *names,
                                 int wake_fd, sl_err *err);

/* The same for the janitor: what it was doing when the node is told to end is done again by whoever comes next. */
SL_CHECK sl_rc sl_conf_open_chores(sl_db **out, const sl_settings *s, const sl_names *names,
                                   int wake_fd, sl_err *err);

/* The same without any check, only to look: see sl_dsn. */
SL_CHECK sl_rc sl_conf_look_db(sl_db **out, const sl_settings *s, const sl_names *names,
                               sl_err *err);

void sl_conf_claim(sl_claim_conf *out, const sl_settings *s, const char *worker);

/* Whoever keeps messages for long needs a lease that another connection can renew. NULL: SL_REFUSED. */
const sl_claim_ops *sl_conf_pull_strategy(const sl_settings *s, sl_err *err);

/* All but the functions, their context and the log. */
void sl_conf_member(sl_member_conf *out, const sl_settings *s, const char *node);

/* The node's name: as set, or host and process id. The caller frees it. */
char *sl_conf_node(const sl_settings *s);

/* Milliseconds of a caller, who may well mean for ever: the ends instead of an overflow. Not SL_FOREVER: only
 * the policy parks. */
static inline int64_t sl_conf_ns_of_ms(int64_t ms)
{
    return ms > INT64_MAX / SL_MS   ? INT64_MAX - SL_MS
           : ms < INT64_MIN / SL_MS ? INT64_MIN
                                    : ms * SL_MS;
}

/* An sl_log_write that hands lines to the conf's own function; ctx is the sl_conf. */
void sl_conf_log_write(void *conf, sl_log_level level, const char *line);

#endif
