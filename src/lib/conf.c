/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/conf.h"

#include "core/mem.h"
#include "db/schema.h"
#include "lib/layout.h"

#include <unistd.h>

sl_conf *sl_conf_new(void)
{
    sl_conf *c = sl_alloc(sizeof *c);
    sl_settings_init(&c->settings);
    return c;
}

void sl_conf_free(sl_conf *c)
{
    if (!c)
        return;
    sl_settings_fini(&c->settings);
    free(c);
}

sl_rc sl_conf_set(sl_conf *c, const char *name, const char *value, sl_err *err)
{
    return sl_settings_set(&c->settings, name, value, err);
}

sl_rc sl_conf_load(sl_conf *c, const char *path, sl_err *err)
{
    return sl_settings_load_file(&c->settings, path, err);
}

void sl_conf_log(sl_conf *c, sl_log_fn fn, void *ctx)
{
    c->log_fn = fn;
    c->log_ctx = ctx;
}

void sl_conf_log_write(void *conf, sl_log_level level, const char *line)
{
    const sl_conf *c = conf;
    if (c->log_fn)
        c->log_fn(c->log_ctx, sl_log_level_name(level), line);
}

sl_rc sl_conf_names(sl_names *out, const sl_settings *s, sl_err *err)
{
    sl_rc rc = sl_layout_names(out, s, err);
    if (rc != SL_OK)
        return rc;
    out->lanes = s->lanes;
    rc = sl_names_inbox(out, s->inbox_table, err);
    if (rc != SL_OK)
        sl_names_fini(out);
    return rc;
}

/* Does a worker hold a transaction open while it sends? Then the server bounds it. */
static sl_dsn dsn_of(const sl_settings *s, const sl_names *names)
{
    return (sl_dsn){
        .url = s->db,
        .app = "sluice",
        .names = names,
        .connect_ns = s->connect_timeout_ns,
        .statement_ns = s->statement_timeout_ns,
        /* A process that stands still in the middle of a claim or a settle must not keep the others
         * waiting for its locks any longer than for its lease. */
        .idle_in_tx_ns = s->lease_ns,
        .wake_fd = -1,
    };
}

static sl_rc open_checked(sl_db **out, const sl_dsn *dsn, sl_err *err)
{
    sl_rc rc = sl_db_open(out, dsn, err);
    if (rc != SL_OK || dsn->create)
        return rc;
    rc = sl_schema_check(*out, dsn->names, err);
    if (rc != SL_OK) {
        sl_db_close(*out);
        *out = NULL;
    }
    return rc;
}

sl_rc sl_conf_open_db(sl_db **out, const sl_settings *s, const sl_names *names, bool create,
                      sl_err *err)
{
    sl_dsn dsn = dsn_of(s, names);
    dsn.create = create;
    return open_checked(out, &dsn, err);
}

static sl_dsn node_dsn(const sl_settings *s, const sl_names *names, int wake_fd)
{
    sl_dsn dsn = dsn_of(s, names);
    dsn.steady = true;
    dsn.wake_fd = wake_fd;
    return dsn;
}

sl_rc sl_conf_open_node(sl_db **out, const sl_settings *s, const sl_names *names, int wake_fd,
                        sl_err *err)
{
    sl_dsn dsn = node_dsn(s, names, wake_fd);
    return open_checked(out, &dsn, err);
}

sl_rc sl_conf_open_chores(sl_db **out, const sl_settings *s, const sl_names *names, int wake_fd,
                          sl_err *err)
{
    sl_dsn dsn = node_dsn(s, names, wake_fd);
    dsn.hasty = true;
    return open_checked(out, &dsn, err);
}

sl_rc sl_conf_look_db(sl_db **out, const sl_settings *s, const sl_names *names, sl_err *err)
{
    sl_dsn dsn = dsn_of(s, names);
    dsn.look = true;
    return sl_db_open(out, &dsn, err);
}

void sl_conf_claim(sl_claim_conf *out, const sl_settings *s, const char *worker)
{
    *out = (sl_claim_conf){
        .worker = worker,
        .batch_bytes = s->batch_bytes,
        .lease_ns = s->lease_ns,
        .hold = (sl_hold)s->hold,
        .retry_base_ns = s->retry_base_ns,
        .retry_max_ns = s->retry_max_ns,
        .keep = s->retention_ns > 0,
        .workers = s->workers,
        .consumes = sl_settings_consume(s),
        .delays = s->unordered_delay,
        .exact = sl_settings_exact(s),
    };
}

const sl_claim_ops *sl_conf_pull_strategy(const sl_settings *s, sl_err *err)
{
    const char *name = sl_settings_given(s, "strategy") ? s->strategy : "guard";
    const sl_claim_ops *ops = sl_claim_named(name);
    if (ops && ops->renew)
        return ops;
    (void)!sl_fail(
        err, SL_REFUSED,
        "a pull cannot share a table by strategy '%.80s'\nhint: guard, or skip-locked if "
        "order does not matter",
        name);
    return NULL;
}

void sl_conf_member(sl_member_conf *out, const sl_settings *s, const char *node)
{
    const sl_claim_ops *ops = sl_claim_named(s->strategy);
    *out = (sl_member_conf){
        .node = node,
        .strategy = s->strategy,
        .workers = s->workers,
        .lease_ns = s->lease_ns,
        .own_lanes = ops->owns_lanes,
        .consumes = sl_settings_consume(s),
        .assign = (sl_assign)s->assign,
        .static_lanes = s->static_lanes,
        .lanes = sl_settings_given(s, "lanes") ? s->lanes : 0,
    };
}

char *sl_conf_node(const sl_settings *s)
{
    char host[64] = "node";
    if (s->node)
        return sl_strdup(s->node);
    gethostname(host, sizeof host - 1);
    return sl_asprintf("%s-%ld", host, (long)getpid());
}
