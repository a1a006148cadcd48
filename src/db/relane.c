/* SPDX-License-Identifier: Apache-2.0 */
#include "db/relane.h"

#include "core/mem.h"
#include "db/schema.h"

#include <assert.h>

/* Producers wait behind a lock on the table that is waited for: not for long, rather again. */
#define LOCK_MS "3000"

sl_rc sl_relane_pause(sl_db *db, int64_t pause_ns, sl_err *err)
{
    sl_val in[] = { sl_int(pause_ns / 1000) };
    return sl_db_run1(db, "lanes/pause", in, NULL, NULL, NULL, err);
}

/* ---- Nobody else ---- */

static sl_rc read_bool(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = !cols[0].null && cols[0].i;
    return SL_OK;
}

/* A column that was there when the table was adopted may hold what only its owner can compute. */
static sl_rc check_column(sl_db *db, const sl_names *names, sl_str table, sl_err *err)
{
    bool computed = false;
    const char *column = sl_names_column(names, "lane");
    sl_val in[] = { sl_text(table), sl_text(sl_str_of(column)) };
    sl_rc rc = sl_db_run1(db, "schema/computed", in, read_bool, &computed, NULL, err);
    if (rc != SL_OK || computed)
        return rc;
    return sl_fail(
        err, SL_OPERATOR,
        "column '%s' of table '%s' is not computed by the database\nhint: it was there "
        "before 'sluice init' and stays as it is",
        column, names->table);
}

/* One change at a time, and none beside `sluice init`. */
static sl_rc begin(sl_db *db, const sl_names *names, int64_t lanes, int64_t *before,
                   sl_err *err)
{
    sl_buf quoted = { 0 };
    sl_schema schema;
    sl_names_apply(names, "sluice_outbox", &quoted);
    sl_str name = { quoted.p, quoted.n };
    sl_val table = sl_text(name);
    sl_val patience = sl_text(SL_STR(LOCK_MS));
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "schema/patience"), .in = &patience },
                        { .stmt = sl_db_stmt(db, "schema/lock"), .in = &table } };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    if (rc == SL_OK)
        rc = check_column(db, names, name, err);
    if (rc == SL_OK)
        rc = sl_schema_read(db, names, &schema, err);
    if (rc == SL_OK && schema.rotated)
        rc = sl_fail(err, SL_OPERATOR,
                     "the number of lanes of table '%s' cannot be changed: it is of layout "
                     "rotated, and has a position for each\nhint: choose it when the table is "
                     "made",
                     names->table);
    if (rc == SL_OK && schema.lanes == lanes)
        rc = sl_fail(err, SL_OPERATOR, "table '%s' has %lld lanes already", names->table,
                     (long long)lanes);
    if (rc == SL_OK)
        *before = schema.lanes;
    sl_buf_fini(&quoted);
    return rc;
}

static sl_rc note_owner(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx |= cols[1].i != 0;
    return SL_OK;
}

/* Whoever settles or acquires now waits for us, or we for it: before the table, since that is the
 * order in which a worker locks. Only a later statement sees what was committed meanwhile. */
static sl_rc lock_lanes(sl_db *db, int64_t count, bool *owned, sl_err *err)
{
    int64_t *all = sl_alloc((size_t)(count + 1) * sizeof *all);
    for (int64_t i = 0; i < count; i++)
        all[i] = i;
    sl_val in = sl_ints(all, (size_t)count);
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "lanes/lock"), .in = &in },
        { .stmt = sl_db_stmt(db, "lanes/list"), .row = note_owner, .ctx = owned },
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    free(all);
    return rc;
}

/* ---- The change ---- */

static sl_rc run_text(sl_db *db, const sl_names *names, const char *text, size_t n, sl_err *err)
{
    sl_buf sql = { 0 };
    char *copy = sl_strndup(text, n);
    sl_names_apply(names, copy, &sql);
    sl_rc rc = db->ops->script(db, sl_buf_text(&sql), err);
    sl_buf_fini(&sql);
    free(copy);
    return rc;
}

static sl_rc run_script(sl_db *db, const sl_names *names, const char *script, sl_err *err)
{
    const char *text = sl_script_named(db->ops->name, script)->text;
    return run_text(db, names, text, strlen(text), err);
}

/* The statement of a script that has these words in it, from its verb on. What a lane is and how it
 * is found is written once, where the tables are made. */
static sl_rc run_part(sl_db *db, const sl_names *names, const char *script, const char *verb,
                      const char *words, sl_err *err)
{
    const char *text = sl_script_named(db->ops->name, script)->text;
    const char *at = strstr(text, words);
    assert(at);
    while (at > text && strncmp(at, verb, strlen(verb)) != 0)
        at--;
    assert(at > text);
    return run_text(db, names, at, strcspn(at, ";"), err);
}

static sl_rc change(sl_db *db, const sl_names *old, int64_t lanes, sl_err *err)
{
    sl_names names = *old; /* borrowed, but for the number */
    names.lanes = lanes;
    sl_rc rc = run_script(db, &names, "schema/relane_drop", err);
    if (rc == SL_OK)
        rc = run_part(db, &names, "schema/adopt", "ALTER", " ADD COLUMN lane ", err);
    if (rc == SL_OK)
        rc = run_part(db, &names, "schema/002", "CREATE", " sluice_outbox_ix_lane ", err);
    if (rc == SL_OK)
        rc = run_script(db, &names, "schema/relane_fill", err);
    return rc;
}

sl_rc sl_relane(sl_db *db, const sl_names *names, int64_t lanes, bool *owned, sl_err *err)
{
    int64_t before = 0;
    *owned = false;
    sl_rc rc = begin(db, names, lanes, &before, err);
    if (rc == SL_OK)
        rc = lock_lanes(db, before, owned, err);
    if (rc == SL_OK && !*owned)
        rc = change(db, names, lanes, err);
    if (rc == SL_OK && !*owned)
        rc = sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err);
    if (rc != SL_OK || *owned)
        db->ops->rollback(db);
    return rc;
}
