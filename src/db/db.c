/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include <stdatomic.h>

const sl_db_ops *sl_db_named(const char *name)
{
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        if (!strcmp((*d)->name, name))
            return *d;
    return NULL;
}

static sl_rc unknown_url(const char *url, sl_err *err)
{
    sl_buf have = { 0 };
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        sl_buf_printf(&have, "%s%s", have.n ? ", " : "", (*d)->example);
    /* Only the scheme: what follows may hold a password. */
    int scheme = (int)strcspn(url, ":/=@ ");
    sl_rc rc =
        sl_fail(err, SL_OPERATOR,
                "no database of this build takes a URL that begins with '%.*s'\nhint: %s",
                scheme > 20 ? 20 : scheme, url, sl_buf_text(&have));
    sl_buf_fini(&have);
    return rc;
}

sl_rc sl_db_find(const sl_db_ops **out, const char *url, sl_err *err)
{
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        if ((*d)->accepts(url)) {
            *out = *d;
            return SL_OK;
        }
    return unknown_url(url, err);
}

sl_rc sl_db_open(sl_db **out, const sl_dsn *dsn, sl_err *err)
{
    const sl_db_ops *ops;
    sl_rc rc = sl_db_find(&ops, dsn->url, err);
    return rc == SL_OK ? ops->open(out, dsn, err) : rc;
}

void sl_db_close(sl_db *db)
{
    if (db)
        db->ops->close(db);
}

static const sl_stmt *find(const sl_db *db, const char *name)
{
    for (int i = 0; i < sl_stmts_count; i++)
        if (!strcmp(sl_stmts[i].name, name) && !strcmp(sl_stmts[i].dialect, db->ops->name))
            return &sl_stmts[i];
    return NULL;
}

bool sl_db_has(const sl_db *db, const char *name)
{
    return find(db, name) != NULL;
}

const sl_stmt *sl_db_stmt(const sl_db *db, const char *name)
{
    const sl_stmt *s = find(db, name);
    if (s)
        return s;
    fprintf(stderr, "sluice: no statement %s/%s\n", db->ops->name, name);
    abort(); /* every dialect has every statement: tests/sql */
}

const sl_script *sl_script_named(const char *dialect, const char *name)
{
    for (int i = 0; i < sl_scripts_count; i++)
        if (!strcmp(sl_scripts[i].name, name) && !strcmp(sl_scripts[i].dialect, dialect))
            return &sl_scripts[i];
    return NULL;
}

static _Atomic uint64_t statements;

uint64_t sl_db_statements(void)
{
    return statements;
}

void sl_db_count(size_t n)
{
    atomic_fetch_add_explicit(&statements, n, memory_order_relaxed);
}

sl_rc sl_db_run1(sl_db *db, const char *stmt, const sl_val *in, sl_row_fn row, void *ctx,
                 int64_t *affected, sl_err *err)
{
    sl_call call = { .stmt = sl_db_stmt(db, stmt), .in = in, .row = row, .ctx = ctx };
    sl_rc rc = db->ops->run(db, &call, 1, err);
    if (affected)
        *affected = call.affected;
    return rc;
}
