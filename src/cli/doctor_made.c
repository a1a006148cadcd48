/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of what `sluice init` made: is all of it still there, and may this role use it? */
#include "cli/doctor_look.h"
#include "core/mem.h"
#include "db/capture.h"

#include <stdlib.h>

sl_rc sl_look_schema(sl_looking *l, sl_err *err)
{
    sl_rc rc = sl_schema_read(l->db, l->look->names, &l->schema, err);
    l->ours = l->schema.version > 0 || (rc != SL_OK && l->schema.table);
    if (rc != SL_OK)
        return rc;
    if (l->schema.version > SL_SCHEMA_VERSION)
        return sl_schema_check(l->db, l->look->names, err); /* SL_NEWER, in the usual words */
    sl_judge_schema(l->out, l->look->settings->table, &l->schema);
    return SL_OK;
}

/* What each table must have; beside the sequence, which is read in the same way. */
static const struct {
    const char *dialect, *table, *columns; /* dialect NULL: all; columns NULL: sl_columns */
} parts[] = {
    { NULL, "sluice_outbox", NULL },
    { NULL, "sluice_outbox_dead",
      "dead_id id topic entity_key event_type payload content_type headers idempotency_key "
      "created_at died_at attempts last_error epoch unknown" },
    { NULL, "sluice_outbox_sent",
      "sent_id id topic entity_key event_type payload content_type headers idempotency_key "
      "created_at sent_at attempts epoch" },
    { NULL, "sluice_outbox_consumed",
      "id topic entity_key event_type payload content_type headers idempotency_key created_at "
      "consumed_at attempts last_error epoch worker journal opened_by synced_to" },
    { NULL, "sluice_outbox_keys",
      "entity_key lane head due_at since reason fence doubt tried" },
    { "postgres", "sluice_outbox_claims", "epoch ends_at holder held_by keys" },
    { "sqlite", "sluice_outbox_claims", "claim epoch ends_at holder held_by" },
    { NULL, "sluice_outbox_nodes",
      "session node strategy assign workers born started_at lives_until sent failed "
      "per_second" },
    { NULL, "sluice_outbox_idempotency", "idempotency_key seq since gone_at" },
    { NULL, "sluice_outbox_fences", "session way node workers place busy_until" },
    { NULL, "sluice_outbox_lanes", "lane owner epoch since" },
    { NULL, "sluice_outbox_meta", "name value" },
    { "postgres", "sluice_outbox_epoch", "last_value" },
};

/* "|id|topic|": of one table. */
static sl_rc note_column(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_buf_put(ctx, cols[0].s.p, cols[0].s.n);
    sl_buf_putc(ctx, '|');
    return SL_OK;
}

static void miss(sl_buf *missing, const char *table, const char *column)
{
    sl_buf_printf(missing, "%s%s%s%s", missing->n ? ", " : "", table, column ? "." : "",
                  column ? column : "");
}

static void want_column(const sl_looking *l, const char *ours, const char *table,
                        const sl_buf *have, sl_buf *missing)
{
    const char *name = sl_names_column(l->look->names, ours);
    char *word = sl_asprintf("|%s|", name);
    if (!strstr(sl_buf_text(have), word))
        miss(missing, table, name);
    free(word);
}

static void want_columns(const sl_looking *l, size_t part, const char *table,
                         const sl_buf *have, sl_buf *missing)
{
    if (!parts[part].columns) {
        for (const char *const *c = sl_columns; *c; c++)
            want_column(l, *c, table, have, missing);
        return;
    }
    char *words = sl_strdup(parts[part].columns);
    char *rest = NULL;
    for (char *c = strtok_r(words, " ", &rest); c; c = strtok_r(NULL, " ", &rest))
        want_column(l, c, table, have, missing);
    free(words);
}

static sl_rc look_part(sl_looking *l, size_t part, sl_buf *missing, sl_err *err)
{
    sl_buf have = { 0 }, quoted = { 0 };
    char *table =
        sl_asprintf("%s%s", l->look->names->table, parts[part].table + strlen("sluice_outbox"));
    sl_names_apply(l->look->names, parts[part].table, &quoted);
    sl_buf_putc(&have, '|');
    sl_rc rc = sl_db_run1(l->db, "schema/columns",
                          (sl_val[]){ sl_text((sl_str){ quoted.p, quoted.n }) }, note_column,
                          &have, NULL, err);
    if (rc == SL_OK && have.n == 1)
        miss(missing, table, NULL);
    else if (rc == SL_OK)
        want_columns(l, part, table, &have, missing);
    free(table);
    sl_buf_fini(&have);
    sl_buf_fini(&quoted);
    return rc;
}

sl_rc sl_look_columns(sl_looking *l, sl_err *err)
{
    sl_buf missing = { 0 };
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < sizeof parts / sizeof parts[0]; i++)
        if (!parts[i].dialect || !strcmp(parts[i].dialect, l->db->ops->name))
            rc = look_part(l, i, &missing, err);
    if (rc == SL_OK)
        sl_judge_columns(l->out, sl_buf_text(&missing));
    sl_buf_fini(&missing);
    return rc;
}

/* Layout debezium: is what is inserted into their table a message? */
sl_rc sl_look_capture(sl_looking *l, sl_err *err)
{
    const sl_names *names = l->look->names;
    if (!names->layout)
        return SL_OK;
    sl_rc rc = sl_capture_check(l->db, names, err);
    if (rc == SL_OK)
        sl_found(l->out, SL_FINE, "capture", "what is inserted into %s is a message of %s",
                 names->source, names->table);
    if (rc != SL_OPERATOR || !l->db->ops->alive(l->db))
        return rc;
    sl_found(l->out, SL_BAD, "capture", "%.*s", (int)strcspn(err->text, "\n"), err->text);
    sl_advise(l->out, "run 'sluice init'");
    return SL_OK;
}

/* Each run of blanks and line ends becomes one blank. */
static void one_line(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        bool blank = *p == ' ' || *p == '\n';
        if (!blank || (to > text && to[-1] != ' '))
            *to++ = blank ? ' ' : *p;
    }
    *to = '\0';
}

/* The statement of the schema's scripts that makes this index, with the names that are configured. */
static char *making_of(const sl_looking *l, const char *index)
{
    const char *table = l->look->names->table;
    char *text = NULL;
    if (strncmp(index, table, strlen(table)) != 0)
        return NULL;
    char *head = sl_asprintf(" INDEX IF NOT EXISTS sluice_outbox%s", index + strlen(table));
    for (int i = 0; i < sl_scripts_count && !text; i++) {
        const char *at = strcmp(sl_scripts[i].dialect, l->db->ops->name) == 0
                             ? strstr(sl_scripts[i].text, head)
                             : NULL;
        if (!at || (at[strlen(head)] != ' ' && at[strlen(head)] != '\n'))
            continue;
        while (strncmp(at, "CREATE", 6) != 0)
            at--;
        char *stmt = sl_strndup(at, strcspn(at, ";"));
        sl_buf named = { 0 };
        sl_names_apply(l->look->names, stmt, &named);
        free(stmt);
        text = named.p;
    }
    free(head);
    if (text)
        one_line(text);
    return text;
}

typedef struct index_rows {
    sl_looking *l;
    size_t seen;
} index_rows;

static sl_rc judge_index(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    index_rows *rows = ctx;
    char *name = sl_look_text(cols[0]), *state = sl_look_text(cols[1]);
    char *remedy = making_of(rows->l, name);
    rows->seen++;
    sl_judge_index(rows->l->out, name, state, remedy);
    free(remedy);
    free(name);
    free(state);
    return SL_OK;
}

sl_rc sl_look_indexes(sl_looking *l, sl_err *err)
{
    index_rows rows = { .l = l };
    size_t before = l->out->count;
    sl_rc rc = sl_look_ask(l, "doctor/indexes", judge_index, &rows, err);
    if (rc == SL_OK && l->out->count == before)
        sl_found(l->out, SL_FINE, "indexes", "%zu, all there and valid", rows.seen);
    return rc;
}

typedef struct grant_rows {
    char *role;
    sl_buf object; /* of the rights in `missing` that stand last */
    sl_buf missing;
    size_t seen;
} grant_rows;

static void end_grant(grant_rows *g)
{
    if (g->object.n)
        sl_buf_printf(&g->missing, " ON %s TO \"%s\"", sl_buf_text(&g->object), g->role);
}

/* Rows of one object stand together. */
static sl_rc note_grant(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    grant_rows *g = ctx;
    char *privilege = sl_look_text(cols[1]), *object = sl_look_text(cols[2]);
    if (!g->role)
        g->role = sl_look_text(cols[0]);
    g->seen++;
    if (!cols[3].i && strcmp(object, sl_buf_text(&g->object)) == 0) {
        sl_buf_printf(&g->missing, ", %s", privilege);
    } else if (!cols[3].i) {
        end_grant(g);
        sl_buf_printf(&g->missing, "%sGRANT %s", g->missing.n ? "; " : "", privilege);
        sl_buf_reset(&g->object);
        sl_buf_puts(&g->object, object);
    }
    free(privilege);
    free(object);
    return SL_OK;
}

sl_rc sl_look_grants(sl_looking *l, sl_err *err)
{
    grant_rows g = { 0 };
    const char *strategy = l->look->settings->strategy;
    bool consumes = sl_settings_consume(l->look->settings);
    sl_val in[] = { sl_text(sl_str_of(strategy)), sl_int(l->look->settings->retention_ns > 0),
                    sl_text(consumes ? SL_STR("at-most-once") : SL_STR("at-least-once")),
                    sl_int(sl_settings_fence(l->look->settings)) };
    sl_rc rc = sl_db_run1(l->db, "doctor/grants", in, note_grant, &g, NULL, err);
    if (rc == SL_OK && g.seen) {
        end_grant(&g);
        sl_judge_grants(l->out, g.role, strategy, sl_buf_text(&g.missing));
    }
    free(g.role);
    sl_buf_fini(&g.object);
    sl_buf_fini(&g.missing);
    return rc;
}
