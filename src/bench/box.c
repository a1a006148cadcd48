/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/box.h"

#include "core/clock.h"
#include "core/mem.h"
#include "db/schema.h"
#include "lib/conf.h"

#include <unistd.h>

#define TABLE "sluice_bench.outbox"

enum { CHUNK = 100000 };

bool sl_box_is_postgres(const sl_box *box)
{
    return !box->file;
}

/* Filling and vacuuming take longer than any statement of a node. */
sl_rc sl_box_connect(const sl_box *box, sl_db **out, sl_err *err)
{
    int64_t as_it_was = box->settings->statement_timeout_ns;
    box->settings->statement_timeout_ns = 3600 * SL_SEC;
    sl_rc rc = sl_conf_open_db(out, box->settings, &box->names, true, err);
    box->settings->statement_timeout_ns = as_it_was;
    return rc;
}

void sl_box_close(sl_box *box)
{
    sl_db_close(box->db);
    box->db = NULL;
}

sl_rc sl_box_reopen(sl_box *box, sl_err *err)
{
    return sl_box_connect(box, &box->db, err);
}

/* ---- Making and removing ---- */

static sl_rc read_alone(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)ctx;
    if (!cols[0].i)
        return sl_fail(err, SL_OPERATOR, "another sluice bench is at work in this database");
    if (cols[1].i)
        return sl_fail(err, SL_OPERATOR,
                       "there is a schema sluice_bench that no bench has made\nhint: give "
                       "--db another database");
    return SL_OK;
}

static sl_rc make_schema(sl_box *box, sl_err *err)
{
    sl_rc rc = sl_db_run1(box->db, "bench/alone", NULL, read_alone, box, NULL, err);
    if (rc == SL_OK && sl_box_is_postgres(box))
        rc =
            box->db->ops->script(box->db, sl_script_named("postgres", "bench/make")->text, err);
    return rc;
}

static void unlink_all(const char *file)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *path = sl_asprintf("%s%s", file, ends[i]);
        unlink(path);
        free(path);
    }
}

static sl_rc choose_file(sl_box *box, sl_settings *s, sl_err *err)
{
    const char *path = s->db + strlen("sqlite:");
    box->file = sl_asprintf("%.*s-bench", (int)strcspn(path, "?"), path);
    char *url = sl_asprintf("sqlite:%s", box->file);
    unlink_all(box->file);
    sl_rc rc = sl_settings_set(s, "db", url, err);
    free(url);
    return rc;
}

static sl_rc read_version(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_box *box = ctx;
    (void)err;
    snprintf(box->version, sizeof box->version, "%.*s", (int)cols[3].s.n, cols[3].s.p);
    return SL_OK;
}

sl_rc sl_box_make(sl_box *box, sl_settings *s, sl_err *err)
{
    const sl_db_ops *ops;
    sl_schema_done done;
    box->settings = s;
    sl_rc rc = sl_db_find(&ops, s->db, err);
    if (rc == SL_OK && !strcmp(ops->name, "sqlite"))
        rc = choose_file(box, s, err);
    if (rc == SL_OK)
        rc = sl_settings_set(s, "table", box->file ? "outbox" : TABLE, err);
    if (rc == SL_OK)
        rc = sl_conf_names(&box->names, s, err);
    if (rc == SL_OK)
        rc = sl_box_reopen(box, err);
    if (rc == SL_OK)
        rc = make_schema(box, err);
    if (rc == SL_OK)
        rc = sl_schema_init(box->db, &box->names, &done, err);
    if (rc == SL_OK)
        rc = sl_db_run1(box->db, "bench/facts", NULL, read_version, box, NULL, err);
    return rc;
}

/* What goes wrong here is removed by the next bench. A schema that is not ours was never passed. */
void sl_box_remove(sl_box *box)
{
    sl_err ignored;
    if (box->db && !box->file && *box->version)
        (void)!box->db->ops->script(box->db, sl_script_named("postgres", "bench/drop")->text,
                                    &ignored);
    sl_box_close(box);
    if (box->file)
        unlink_all(box->file);
    free(box->file);
    sl_names_fini(&box->names);
    *box = (sl_box){ 0 };
}

/* ---- Filling and looking ---- */

sl_rc sl_box_empty(sl_box *box, sl_err *err)
{
    return sl_db_run1(box->db, "bench/empty", NULL, NULL, NULL, NULL, err);
}

/* Ids were chosen here, and not drawn. */
static sl_rc note_given(sl_box *box, sl_err *err)
{
    sl_val last = sl_int(box->last_id);
    return sl_db_run1(box->db, "bench/given", &last, NULL, NULL, NULL, err);
}

sl_rc sl_box_fill(sl_box *box, const sl_fill *f, void (*added)(void *, int64_t), void *ctx,
                  sl_err *err)
{
    sl_rc rc = SL_OK;
    for (int64_t n = 0; rc == SL_OK && n < f->rows; n += CHUNK) {
        int64_t rows = f->rows - n < CHUNK ? f->rows - n : CHUNK;
        sl_val in[] = { sl_int(box->last_id + 1),
                        sl_int(rows),
                        sl_text(sl_str_of(f->prefix ? f->prefix : "k")),
                        sl_int(f->keys),
                        sl_int(f->hot),
                        sl_int(f->bytes) };
        rc = sl_db_run1(box->db, "bench/fill", in, NULL, NULL, NULL, err);
        box->last_id += rc == SL_OK ? rows : 0;
        if (rc == SL_OK)
            rc = note_given(box, err);
        if (rc == SL_OK && added)
            added(ctx, n + rows);
    }
    return rc;
}

sl_rc sl_box_block(sl_box *box, int64_t keys, const char *prefix, sl_err *err)
{
    sl_val in[] = { sl_int(box->last_id + 1), sl_int(keys), sl_text(sl_str_of(prefix)) };
    sl_rc rc = sl_db_run1(box->db, "bench/heads", in, NULL, NULL, NULL, err);
    box->last_id += rc == SL_OK ? keys : 0;
    return rc == SL_OK ? note_given(box, err) : rc;
}

/* Who may not write a checkpoint does without one. */
sl_rc sl_box_rest(sl_box *box, bool vacuum, sl_err *err)
{
    sl_err ignored = { 0 };
    sl_rc rc = sl_db_run1(box->db, vacuum ? "bench/vacuum" : "bench/touch", NULL, NULL, NULL,
                          NULL, err);
    if (rc == SL_OK)
        (void)!box->db->ops->script(
            box->db, sl_script_named(box->db->ops->name, "bench/checkpoint")->text, &ignored);
    return rc;
}

static sl_rc read_left(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(sl_box_left *)ctx = (sl_box_left){ cols[0].i, cols[1].i, cols[2].i };
    return SL_OK;
}

sl_rc sl_box_left_of(sl_box *box, sl_box_left *out, sl_err *err)
{
    return sl_db_run1(box->db, "bench/left", NULL, read_left, out, NULL, err);
}

static sl_rc read_facts(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(sl_box_facts *)ctx = (sl_box_facts){ cols[0].i, cols[1].i, cols[2].i };
    return SL_OK;
}

sl_rc sl_box_facts_of(sl_box *box, sl_box_facts *out, sl_err *err)
{
    return sl_db_run1(box->db, "bench/facts", NULL, read_facts, out, NULL, err);
}
