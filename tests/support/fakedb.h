/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database that only writes down what it is asked, for tests of what stands above db/db.h: in
 * which order, with which parameters, in how many round trips. One line per `run`:
 *
 *   tx/begin settle/sent({1,2},{7,7}) tx/commit
 *
 * It answers that all went well and that every element of the arrays was found, unless told
 * otherwise.
 */
#ifndef TESTS_SUPPORT_FAKEDB_H
#define TESTS_SUPPORT_FAKEDB_H

#include "core/buf.h"
#include "core/clock.h"
#include "db/db.h"

#include "unit/unit.h"

typedef struct fakedb {
    sl_db base;
    sl_db_ops ops;
    sl_buf said;
    int rollbacks;
    unsigned slow_us;  /* how long each run takes */
    int64_t began_ns;  /* when the last run came */
    int fail_at;       /* the n-th run from now fails; 0: none */
    sl_rc rc;          /* with this */
    const char *lossy; /* a statement that finds `missing` rows fewer */
    int64_t missing;
    const sl_val (*rows)[SL_STMT_MAX]; /* what a statement with columns gives */
    size_t nrows;
} fakedb;

static inline void fakedb_put_str(sl_buf *out, sl_str s)
{
    if (s.p)
        sl_buf_printf(out, "'%.*s'", (int)s.n, s.p);
    else
        sl_buf_puts(out, "NULL");
}

static inline void fakedb_put(sl_buf *out, const sl_val *v)
{
    switch (v->type) {
    case SL_T_INT8S:
        sl_buf_putc(out, '{');
        for (size_t i = 0; i < v->ints.n; i++)
            sl_buf_printf(out, "%s%lld", i ? "," : "", (long long)v->ints.v[i]);
        sl_buf_putc(out, '}');
        break;
    case SL_T_TEXTS:
    case SL_T_BYTESS:
        sl_buf_putc(out, '{');
        for (size_t i = 0; i < v->strs.n; i++) {
            sl_buf_puts(out, i ? "," : "");
            fakedb_put_str(out, v->strs.v[i]);
        }
        sl_buf_putc(out, '}');
        break;
    case SL_T_TEXT:
    case SL_T_BYTES:
        fakedb_put_str(out, v->s);
        break;
    default:
        sl_buf_printf(out, "%lld", (long long)v->i);
    }
}

static inline int64_t fakedb_found(const fakedb *f, const sl_call *c)
{
    int64_t n = 0;
    if (c->stmt->nparams && c->in[0].type == SL_T_INT8S)
        n = (int64_t)c->in[0].ints.n;
    else if (c->stmt->nparams && c->in[0].type == SL_T_TEXTS)
        n = (int64_t)c->in[0].strs.n;
    return f->lossy && !strcmp(f->lossy, c->stmt->name) ? n - f->missing : n;
}

static inline sl_rc fakedb_call(fakedb *f, sl_call *c, sl_err *err)
{
    sl_rc rc = SL_OK;
    sl_buf_puts(&f->said, c->stmt->name);
    for (int i = 0; i < c->stmt->nparams; i++) {
        assert_int_equal(c->in[i].type, c->stmt->params[i]);
        sl_buf_putc(&f->said, i ? ',' : '(');
        fakedb_put(&f->said, &c->in[i]);
    }
    if (c->stmt->nparams)
        sl_buf_putc(&f->said, ')');
    c->affected = fakedb_found(f, c);
    for (size_t i = 0; c->row && i < f->nrows && rc == SL_OK; i++)
        rc = c->row(c->ctx, f->rows[i], err);
    return rc;
}

static inline sl_rc fakedb_run(sl_db *db, sl_call *calls, size_t count, sl_err *err)
{
    fakedb *f = (fakedb *)db;
    sl_rc rc = SL_OK;
    f->began_ns = sl_now_ns();
    if (f->slow_us)
        usleep(f->slow_us);
    if (f->said.n)
        sl_buf_putc(&f->said, '\n');
    for (size_t i = 0; i < count && rc == SL_OK; i++) {
        sl_buf_puts(&f->said, i ? " " : "");
        rc = fakedb_call(f, &calls[i], err);
    }
    if (f->fail_at && --f->fail_at == 0)
        rc = sl_fail(err, f->rc, "fake: failed as told");
    return rc;
}

static inline void fakedb_rollback(sl_db *db)
{
    ((fakedb *)db)->rollbacks++;
}

/* It speaks the first dialect of this build: statements are looked up by it. */
static inline void fakedb_init(fakedb *f)
{
    *f = (fakedb){
        .ops = { .name = sl_db_all[0]->name, .run = fakedb_run, .rollback = fakedb_rollback }
    };
    f->base.ops = &f->ops;
}

static inline void fakedb_fini(fakedb *f)
{
    sl_buf_fini(&f->said);
}

/* All that was asked since the last time; good until the next question. */
static inline const char *fakedb_said(fakedb *f)
{
    static char text[8192];
    snprintf(text, sizeof text, "%s", sl_buf_text(&f->said));
    sl_buf_reset(&f->said);
    return text;
}

#endif
