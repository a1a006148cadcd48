/* SPDX-License-Identifier: Apache-2.0 */
#include "db/schema.h"

#include "core/mem.h"
#include "db/capture.h"

#include <assert.h>

/* ---- Reading ---- */

typedef struct columns {
    size_t count;
    char *names[256];
    char *types[256];
} columns;

static sl_rc add_column(void *ctx, const sl_val *cols, sl_err *err)
{
    columns *c = ctx;
    if (c->count == sizeof c->names / sizeof c->names[0])
        return sl_fail(err, SL_OPERATOR, "the table has more than %zu columns", c->count);
    c->names[c->count] = sl_strndup(cols[0].s.p, cols[0].s.n);
    c->types[c->count++] = sl_strndup(cols[1].s.p ? cols[1].s.p : "", cols[1].s.n);
    return SL_OK;
}

static void columns_fini(columns *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->names[i]);
        free(c->types[i]);
    }
    c->count = 0;
}

static const char *column_type(const columns *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->names[i], name))
            return c->types[i];
    return NULL;
}

/* `word` as in the SQL files: "sluice_outbox_meta". */
static sl_rc read_columns(sl_db *db, const sl_names *names, const char *word, columns *out,
                          sl_err *err)
{
    sl_buf quoted = { 0 };
    out->count = 0;
    sl_names_apply(names, word, &quoted);
    sl_rc rc =
        sl_db_run1(db, "schema/columns", (sl_val[]){ sl_text((sl_str){ quoted.p, quoted.n }) },
                   add_column, out, NULL, err);
    sl_buf_fini(&quoted);
    return rc;
}

static sl_rc read_meta(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_schema *s = ctx;
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)cols[1].s.n, cols[1].s.p);
    if (sl_str_eq(cols[0].s, SL_STR("schema_version")))
        s->version = strtoll(text, NULL, 10);
    else if (sl_str_eq(cols[0].s, SL_STR("lanes")))
        s->lanes = strtoll(text, NULL, 10);
    else if (sl_str_eq(cols[0].s, SL_STR("layout")))
        s->rotated = sl_str_eq(cols[1].s, SL_STR("rotated"));
    return SL_OK;
}

sl_rc sl_schema_read(sl_db *db, const sl_names *names, sl_schema *out, sl_err *err)
{
    columns *c = sl_alloc(sizeof *c);
    *out = (sl_schema){ 0 };
    sl_rc rc = read_columns(db, names, "sluice_outbox", c, err);
    out->table = c->count > 0;
    columns_fini(c);
    if (rc == SL_OK)
        rc = read_columns(db, names, "sluice_outbox_meta", c, err);
    bool meta = c->count > 0;
    columns_fini(c);
    free(c);
    if (rc == SL_OK && meta)
        rc = sl_db_run1(db, "meta/all", NULL, read_meta, out, NULL, err);
    return rc;
}

static sl_rc newer(const sl_names *names, const sl_schema *s, sl_err *err)
{
    return sl_fail(
        err, SL_NEWER,
        "table '%s' has schema version %lld, this program knows up to %d\nhint: install a "
        "newer sluice; restarting this one will not help",
        names->table, (long long)s->version, SL_SCHEMA_VERSION);
}

/* What is there stays as it is, and cannot be made into the other. */
static sl_rc not_rotated(const sl_names *names, sl_err *err)
{
    return sl_fail(err, SL_OPERATOR,
                   "table '%s' is there, and not of layout rotated\nhint: make one of another "
                   "name, and let the producers write to that one; or leave the layout out",
                   names->table);
}

static sl_rc no_rotated(sl_err *err)
{
    return sl_fail(err, SL_OPERATOR,
                   "layout rotated is for PostgreSQL only\nhint: leave the layout out");
}

sl_rc sl_schema_check(sl_db *db, const sl_names *names, sl_err *err)
{
    sl_schema s;
    sl_rc rc = sl_schema_read(db, names, &s, err);
    if (rc != SL_OK)
        return rc;
    if (s.version > SL_SCHEMA_VERSION)
        return newer(names, &s, err);
    if (s.version == 0)
        return sl_fail(err, SL_OPERATOR, "table '%s' %s\nhint: run 'sluice init' once",
                       names->table, s.table ? "was not made by sluice init" : "is not there");
    if (s.version < SL_SCHEMA_VERSION)
        return sl_fail(
            err, SL_OPERATOR,
            "table '%s' has schema version %lld, this program needs %d\nhint: run 'sluice "
            "init' to migrate it",
            names->table, (long long)s.version, SL_SCHEMA_VERSION);
    if (names->rotated && !s.rotated)
        return not_rotated(names, err);
    return names->layout ? sl_capture_check(db, names, err) : SL_OK;
}

/* ---- Making ---- */

static sl_rc run_script(sl_db *db, const sl_names *names, const char *text, sl_err *err)
{
    sl_buf sql = { 0 };
    sl_names_apply(names, text, &sql);
    sl_rc rc = db->ops->script(db, sl_buf_text(&sql), err);
    sl_buf_fini(&sql);
    return rc;
}

/* An id names a message for ever: one that is given again could be deleted by a claim on the message
 * that had it before. And a payload is bytes: text cannot hold all of them. */
#define PG_TEXT "|text|character varying|"
#define PG_TIME "|timestamp with time zone|"
#define PG_INT "|bigint|integer|smallint|"

static const struct {
    const char *dialect, *column, *types, *hint;
    bool needed; /* the others are added when they are missing */
} expected[] = {
    { "postgres", "id", PG_INT, "add a bigint identity column and map it: columns: id=NAME",
      true },
    { "sqlite", "id", "|integer autoincrement|", "it must be INTEGER PRIMARY KEY AUTOINCREMENT",
      true },
    { "postgres", "payload", "|bytea|", "change it: TYPE bytea USING convert_to(..., 'UTF8')",
      true },
    { "sqlite", "payload", "|blob|text|", "it must be BLOB or TEXT", true },
    { "postgres", "topic", PG_TEXT, "it must be text", false },
    { "postgres", "entity_key", PG_TEXT, "it must be text", false },
    { "postgres", "event_type", PG_TEXT, "it must be text", false },
    { "postgres", "content_type", PG_TEXT, "it must be text", false },
    { "postgres", "headers", "|jsonb|", "it must be jsonb", false },
    { "postgres", "idempotency_key", PG_TEXT, "it must be text", false },
    { "postgres", "created_at", PG_TIME "timestamp without time zone|",
      "it must be timestamptz", false },
    { "postgres", "available_at", PG_TIME, "it must be timestamptz", false },
    { "postgres", "attempts", PG_INT, "it must be integer", false },
    { "postgres", "last_error", PG_TEXT, "it must be text", false },
    { "postgres", "leased_until", PG_TIME, "it must be timestamptz", false },
    { "postgres", "epoch", PG_INT, "it must be bigint", false },
    { "postgres", "worker", PG_TEXT, "it must be text", false },
};

/* The versions that brought columns. */
enum { HELD_SINCE = 2, DELAYED_SINCE = 4 };

/* What these mean to someone else cannot be what they mean here: not even a column of the right type
 * will do. */
static sl_rc refuse_theirs(const sl_names *names, const columns *have, const char *ours,
                           sl_err *err)
{
    const char *name = sl_names_column(names, ours);
    if (!column_type(have, name))
        return SL_OK;
    return sl_fail(err, SL_OPERATOR,
                   "column '%s' of table '%s' is not Sluice's own\nhint: map %s to another "
                   "name, which sluice init then adds: columns: %s=NAME",
                   name, names->table, ours, ours);
}

static sl_rc check_adopted(const char *dialect, const sl_names *names, const columns *have,
                           sl_err *err)
{
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const char *name = sl_names_column(names, expected[i].column);
        const char *type = column_type(have, name);
        char word[80];
        if (strcmp(expected[i].dialect, dialect) != 0 || (!type && !expected[i].needed))
            continue;
        if (!type)
            return sl_fail(
                err, SL_OPERATOR,
                "table '%s' is there but has no column '%s'\nhint: say what it is called: "
                "columns: %s=NAME",
                names->table, name, expected[i].column);
        snprintf(word, sizeof word, "|%s|", type);
        if (!strstr(expected[i].types, word))
            return sl_fail(err, SL_OPERATOR, "column '%s' of table '%s' is %s\nhint: %s", name,
                           names->table, type, expected[i].hint);
    }
    return refuse_theirs(names, have, "lane", err);
}

/* The name after "ADD COLUMN". */
static void added_column(const char *stmt, char *name, size_t room)
{
    const char *at = strstr(stmt, "ADD COLUMN ");
    assert(at);
    at += strlen("ADD COLUMN ");
    snprintf(name, room, "%.*s", (int)strcspn(at, " "), at);
}

/* Adds what an existing table lacks, statement by statement. */
static sl_rc adopt(sl_db *db, const sl_names *names, const columns *have, int *added,
                   sl_err *err)
{
    sl_rc rc = check_adopted(db->ops->name, names, have, err);
    const char *p = strstr(sl_script_named(db->ops->name, "schema/adopt")->text, "ALTER");
    while (rc == SL_OK && p) {
        const char *end = strchr(p, ';');
        char column[64];
        added_column(p, column, sizeof column);
        if (!column_type(have, sl_names_column(names, column))) {
            char *stmt = sl_strndup(p, (size_t)(end - p));
            rc = run_script(db, names, stmt, err);
            free(stmt);
            (*added)++;
        }
        p = strstr(end, "ALTER");
    }
    return rc;
}

static const char *migration(const char *dialect, int64_t version)
{
    char name[32];
    snprintf(name, sizeof name, "schema/%03lld", (long long)version);
    return sl_script_named(dialect, name)->text;
}

/* Before the first migration, which then finds the table. */
static sl_rc make_rotated(sl_db *db, const sl_names *names, const sl_schema *before,
                          sl_err *err)
{
    const sl_script *script = sl_script_named(db->ops->name, "schema/rotated");
    if (before->rotated)
        return SL_OK;
    if (!script)
        return no_rotated(err);
    if (before->table || before->version)
        return not_rotated(names, err);
    return run_script(db, names, script->text, err);
}

static sl_rc migrate(sl_db *db, const sl_names *names, sl_schema_done *done, sl_err *err)
{
    sl_rc rc = sl_schema_read(db, names, &done->before, err);
    if (rc == SL_OK && done->before.version > SL_SCHEMA_VERSION)
        return newer(names, &done->before, err);
    if (rc == SL_OK && names->rotated)
        rc = make_rotated(db, names, &done->before, err);
    if (rc == SL_OK && done->before.table && done->before.version < DELAYED_SINCE) {
        columns *have = sl_alloc(sizeof *have);
        rc = read_columns(db, names, "sluice_outbox", have, err);
        if (rc == SL_OK && done->before.version < HELD_SINCE)
            rc = refuse_theirs(names, have, "held", err);
        if (rc == SL_OK)
            rc = refuse_theirs(names, have, "delayed", err);
        if (rc == SL_OK && done->before.version == 0)
            rc = adopt(db, names, have, &done->columns_added, err);
        columns_fini(have);
        free(have);
    }
    for (int64_t v = done->before.version + 1; rc == SL_OK && v <= SL_SCHEMA_VERSION; v++)
        rc = run_script(db, names, migration(db->ops->name, v), err);
    return rc == SL_OK ? sl_schema_read(db, names, &done->after, err) : rc;
}

sl_rc sl_schema_init(sl_db *db, const sl_names *names, sl_schema_done *done, sl_err *err)
{
    sl_buf quoted = { 0 };
    *done = (sl_schema_done){ 0 };
    sl_names_apply(names, "sluice_outbox", &quoted);
    sl_val table = sl_text((sl_str){ quoted.p, quoted.n });
    sl_call begin[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "schema/lock"), .in = &table } };
    sl_rc rc = db->ops->run(db, begin, 2, err);
    if (rc == SL_OK)
        rc = migrate(db, names, done, err);
    if (rc == SL_OK)
        rc = sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err);
    if (rc != SL_OK)
        db->ops->rollback(db);
    sl_buf_fini(&quoted);
    return rc;
}

static const char *const inbox_columns[] = { "consumer", "message_id", "seen_at" };

/* A table of that name which is something else must not pass for one. */
static sl_rc check_inbox(const sl_names *names, const columns *have, sl_err *err)
{
    for (size_t i = 0; i < sizeof inbox_columns / sizeof inbox_columns[0]; i++)
        if (!column_type(have, inbox_columns[i]))
            return sl_fail(err, SL_OPERATOR,
                           "table '%s' is there, but it is no inbox: it has no column '%s'\n"
                           "hint: give another name: --inbox-table NAME",
                           names->inbox ? names->inbox : SL_INBOX_DEFAULT, inbox_columns[i]);
    return SL_OK;
}

static sl_rc make_inbox(sl_db *db, const sl_names *names, bool *created, sl_err *err)
{
    columns *have = sl_alloc(sizeof *have);
    sl_rc rc = read_columns(db, names, "sluice_inbox", have, err);
    *created = have->count == 0;
    if (rc == SL_OK && !*created)
        rc = check_inbox(names, have, err);
    columns_fini(have);
    free(have);
    if (rc == SL_OK && *created)
        rc = run_script(db, names, sl_script_named(db->ops->name, "schema/inbox")->text, err);
    return rc == SL_OK ? sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err) : rc;
}

sl_rc sl_schema_inbox(sl_db *db, const sl_names *names, bool *created, sl_err *err)
{
    sl_buf quoted = { 0 };
    sl_names_apply(names, "sluice_inbox", &quoted);
    sl_val table = sl_text((sl_str){ quoted.p, quoted.n });
    sl_call begin[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "schema/lock"), .in = &table } };
    sl_rc rc = db->ops->run(db, begin, 2, err);
    if (rc == SL_OK)
        rc = make_inbox(db, names, created, err);
    if (rc != SL_OK)
        db->ops->rollback(db);
    sl_buf_fini(&quoted);
    return rc;
}

sl_rc sl_schema_print(const char *dialect, const sl_names *names, sl_buf *out, sl_err *err)
{
    if (!sl_db_named(dialect))
        return sl_fail(err, SL_OPERATOR, "no dialect '%s' in this build", dialect);
    const sl_script *rotated = sl_script_named(dialect, "schema/rotated");
    if (names->rotated && !rotated)
        return no_rotated(err);
    sl_buf_puts(out, "BEGIN;\n\n");
    if (names->rotated)
        sl_names_apply(names, rotated->text, out);
    for (int v = 1; v <= SL_SCHEMA_VERSION; v++)
        sl_names_apply(names, migration(dialect, v), out);
    sl_buf_puts(out, "\nCOMMIT;\n");
    return SL_OK;
}

sl_rc sl_schema_print_inbox(const char *dialect, const sl_names *names, sl_buf *out,
                            sl_err *err)
{
    if (!sl_db_named(dialect))
        return sl_fail(err, SL_OPERATOR, "no dialect '%s' in this build", dialect);
    sl_names_apply(names, sl_script_named(dialect, "schema/inbox")->text, out);
    return SL_OK;
}
