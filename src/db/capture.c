/* SPDX-License-Identifier: Apache-2.0 */
#include "db/capture.h"

#include "core/mem.h"

#define LOCK_MS "3000" /* whoever comes behind a lock that is waited for waits as well */

/* ---- Their columns ---- */

typedef struct theirs {
    const sl_debezium *d;
    const char *table;
    bool postgres;
    size_t count;
    char **names, **types;
} theirs;

static sl_rc add_column(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    theirs *t = ctx;
    t->names = sl_realloc(t->names, (t->count + 1) * sizeof *t->names);
    t->types = sl_realloc(t->types, (t->count + 1) * sizeof *t->types);
    t->names[t->count] = sl_strndup(cols[0].s.p, cols[0].s.n);
    t->types[t->count++] = sl_strndup(cols[1].s.p ? cols[1].s.p : "", cols[1].s.n);
    return SL_OK;
}

static void theirs_fini(theirs *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->names[i]);
        free(t->types[i]);
    }
    free(t->names);
    free(t->types);
}

static const char *type_of(const theirs *t, const char *column)
{
    for (size_t i = 0; column && i < t->count; i++)
        if (!strcmp(t->names[i], column))
            return t->types[i];
    return NULL;
}

/* What has a text that is the same for Debezium and Kafka Connect: a time, say, has not. SQLite has no types to go by. */
#define TEXTS "|text|character varying|citext|uuid|smallint|integer|bigint|boolean|json|jsonb|"
#define PAYLOADS "|text|character varying|json|jsonb|bytea|"
#define TIMES "|timestamp without time zone|timestamp with time zone|"

static sl_rc check_column(const theirs *t, const char *column, const char *option,
                          const char *types, sl_err *err)
{
    const char *type = type_of(t, column);
    char word[80];
    if (!type)
        return sl_fail(err, SL_OPERATOR,
                       "table '%s' has no column '%s'\nhint: say what it is called: debezium: "
                       "%s",
                       t->table, column, option);
    snprintf(word, sizeof word, "|%s|", type);
    if (!t->postgres || strstr(types, word))
        return SL_OK;
    return sl_fail(
        err, SL_OPERATOR,
        "column '%s' of table '%s' is %s, which debezium: %s cannot be\nhint: one of "
        "%.*s",
        column, t->table, type, option, (int)strlen(types) - 2, types + 1);
}

static bool is_placed(const theirs *t, size_t i)
{
    return t->d->error_on_missing || type_of(t, t->d->headers[i].column);
}

static sl_rc check_columns(const theirs *t, sl_err *err)
{
    const sl_debezium *d = t->d;
    const struct {
        const char *column, *option, *types;
    } wanted[] = {
        { d->id, "table.field.event.id", TEXTS },
        { d->key, "table.field.event.key", TEXTS },
        { d->payload, "table.field.event.payload", PAYLOADS },
        { d->topic, "route.by.field", TEXTS },
        { d->timestamp, "table.field.event.timestamp", TIMES },
        { d->type_given || type_of(t, d->type) ? d->type : NULL, "table.field.event.type",
          TEXTS },
        { type_of(t, d->tracing) ? d->tracing : NULL, "tracing.span.context.field", TEXTS },
    };
    sl_rc rc = SL_OK;
    if (!t->count)
        return sl_fail(err, SL_OPERATOR,
                       "table '%s' is not there\nhint: with layout debezium it is the table of "
                       "your application: make it first",
                       t->table);
    for (size_t i = 0; rc == SL_OK && i < sizeof wanted / sizeof wanted[0]; i++)
        if (wanted[i].column)
            rc = check_column(t, wanted[i].column, wanted[i].option, wanted[i].types, err);
    for (size_t i = 0; rc == SL_OK && i < d->header_count; i++)
        if (is_placed(t, i))
            rc = check_column(t, d->headers[i].column, "table.fields.additional.placement",
                              TEXTS, err);
    return rc;
}

static void quoted_source(const sl_names *names, sl_buf *out)
{
    sl_names_apply(names, "sluice_source", out);
}

static sl_rc read_theirs(sl_db *db, const sl_names *names, const sl_debezium *d, theirs *t,
                         sl_err *err)
{
    sl_buf quoted = { 0 };
    *t = (theirs){ .d = d, .table = names->source };
    t->postgres = !strcmp(db->ops->name, "postgres");
    quoted_source(names, &quoted);
    sl_rc rc =
        sl_db_run1(db, "schema/columns", (sl_val[]){ sl_text((sl_str){ quoted.p, quoted.n }) },
                   add_column, t, NULL, err);
    sl_buf_fini(&quoted);
    return rc == SL_OK ? check_columns(t, err) : rc;
}

sl_rc sl_capture_look(sl_db *db, const sl_names *names, const sl_debezium *d, sl_err *err)
{
    theirs t;
    sl_rc rc = read_theirs(db, names, d, &t, err);
    theirs_fini(&t);
    return rc;
}

/* ---- A row of theirs as a message ---- */

static void put_quoted(sl_buf *out, const char *text, char quote)
{
    sl_buf_putc(out, quote);
    for (; *text; text++) {
        if (*text == quote)
            sl_buf_putc(out, quote);
        sl_buf_putc(out, *text);
    }
    sl_buf_putc(out, quote);
}

static void put_column(sl_buf *out, const char *column)
{
    sl_buf_puts(out, "new.");
    put_quoted(out, column, '"');
}

static void put_text(const theirs *t, sl_buf *out, const char *column)
{
    sl_buf_puts(out, t->postgres ? "" : "CAST(");
    put_column(out, column);
    sl_buf_puts(out, t->postgres ? "::text" : " AS TEXT)");
}

static bool is_binary(const theirs *t)
{
    return t->postgres && !strcmp(type_of(t, t->d->payload), "bytea");
}

/* Java's trim takes away what is not above a blank. */
static void put_empty_test(const theirs *t, sl_buf *out)
{
    if (t->postgres) {
        put_text(t, out, t->d->payload);
        sl_buf_puts(out, " ~ E'^[\\\\x01-\\\\x20]*$'");
        return;
    }
    sl_buf_puts(out, "typeof(");
    put_column(out, t->d->payload);
    sl_buf_puts(out, ") = 'text' AND trim(");
    put_column(out, t->d->payload);
    sl_buf_puts(out, ", char(1");
    for (int c = 2; c <= 32; c++)
        sl_buf_printf(out, ",%d", c);
    sl_buf_puts(out, ")) = ''");
}

static void put_bytes(const theirs *t, sl_buf *out)
{
    sl_buf_puts(out, is_binary(t) ? "" : t->postgres ? "convert_to(" : "CAST(");
    if (t->postgres && !is_binary(t))
        put_text(t, out, t->d->payload);
    else
        put_column(out, t->d->payload);
    sl_buf_puts(out, is_binary(t) ? "" : t->postgres ? ", 'UTF8')" : " AS BLOB)");
}

static void put_payload(const theirs *t, sl_buf *out)
{
    bool test = t->d->tombstone && !is_binary(t);
    if (test) {
        sl_buf_puts(out, "CASE WHEN ");
        put_empty_test(t, out);
        sl_buf_puts(out, " THEN NULL ELSE ");
    }
    put_bytes(t, out);
    sl_buf_puts(out, test ? " END" : "");
}

static void put_content_type(const theirs *t, sl_buf *out)
{
    if (t->postgres) {
        sl_buf_puts(out, is_binary(t) ? "'application/octet-stream'" : "'application/json'");
        return;
    }
    sl_buf_puts(out, "CASE typeof(");
    put_column(out, t->d->payload);
    sl_buf_puts(out,
                ") WHEN 'blob' THEN 'application/octet-stream' ELSE 'application/json' END");
}

static void put_placed(const theirs *t, sl_buf *out)
{
    sl_buf_puts(out, t->postgres ? "jsonb_build_object('id', " : "json_object('id', ");
    put_text(t, out, t->d->id);
    for (size_t i = 0; i < t->d->header_count; i++) {
        if (!is_placed(t, i))
            continue;
        sl_buf_puts(out, ", ");
        put_quoted(out, t->d->headers[i].alias, '\'');
        sl_buf_puts(out, ", ");
        put_text(t, out, t->d->headers[i].column);
    }
    sl_buf_putc(out, ')');
}

/* The line of a text as java.util.Properties writes it, where = and : of a value have a backslash before them. */
static void put_property(const theirs *t, sl_buf *out, const char *name)
{
    sl_buf column = { 0 };
    put_column(&column, t->d->tracing);
    const char *c = sl_buf_text(&column);
    if (t->postgres)
        sl_buf_printf(out,
                      "regexp_replace(substring(%s::text from "
                      "E'(?n)^[ \\\\t]*%s[ \\\\t]*[=:][ \\\\t]*([^\\\\r\\\\n]*)'), "
                      "E'\\\\\\\\(.)', E'\\\\1', 'g')",
                      c, name);
    else
        sl_buf_printf(out,
                      "(SELECT replace(substr(p.rest, 1, instr(p.rest, char(10)) - 1), "
                      "char(92), '') FROM (SELECT substr(l.lines, instr(l.lines, "
                      "char(10) || '%s=') + %zu) AS rest FROM (SELECT char(10) || "
                      "replace(%s, char(13), '') || char(10) AS lines) l "
                      "WHERE instr(l.lines, char(10) || '%s=') > 0) p)",
                      name, strlen(name) + 2, c, name);
    sl_buf_fini(&column);
}

/* What is placed under one of these names counts. */
static void put_headers(const theirs *t, sl_buf *out)
{
    static const char *const trace[] = { "traceparent", "tracestate" };
    if (!type_of(t, t->d->tracing)) {
        put_placed(t, out);
        return;
    }
    if (t->postgres) {
        sl_buf_puts(out, "jsonb_strip_nulls(jsonb_build_object('traceparent', ");
        put_property(t, out, trace[0]);
        sl_buf_puts(out, ", 'tracestate', ");
        put_property(t, out, trace[1]);
        sl_buf_puts(out, ")) || ");
        put_placed(t, out);
        return;
    }
    sl_buf_puts(out, "json_insert(json_insert(");
    put_placed(t, out);
    for (size_t i = 0; i < 2; i++) { /* 'id' is there: nothing is inserted */
        sl_buf_puts(out, ", CASE WHEN ");
        put_property(t, out, trace[i]);
        sl_buf_printf(out, " IS NULL THEN '$.id' ELSE '$.%s' END, ", trace[i]);
        put_property(t, out, trace[i]);
        sl_buf_putc(out, ')');
    }
}

static void put_time(const theirs *t, sl_buf *out)
{
    const char *column = t->d->timestamp;
    sl_buf_puts(out, t->postgres ? "coalesce(" : "coalesce(strftime('%Y-%m-%d %H:%M:%f', ");
    if (column)
        put_column(out, column);
    else
        sl_buf_puts(out, "NULL");
    if (column && t->postgres && strstr(type_of(t, column), "without"))
        sl_buf_puts(out, " AT TIME ZONE 'UTC'"); /* as Debezium takes it */
    sl_buf_puts(out, t->postgres ? ", clock_timestamp())"
                                 : "), strftime('%Y-%m-%d %H:%M:%f', 'now'))");
}

/* In the order of debezium/capture.sql. */
static void put_values(const theirs *t, sl_buf *out)
{
    sl_buf_puts(out, "coalesce(");
    put_text(t, out, t->d->topic);
    sl_buf_puts(out, ", ''), ");
    put_text(t, out, t->d->key);
    sl_buf_puts(out, ", ");
    if (type_of(t, t->d->type)) {
        sl_buf_puts(out, "coalesce(");
        put_text(t, out, t->d->type);
        sl_buf_puts(out, ", '')");
    } else {
        sl_buf_puts(out, "''");
    }
    sl_buf_puts(out, ", ");
    put_payload(t, out);
    sl_buf_puts(out, ", ");
    put_content_type(t, out);
    sl_buf_puts(out, ", ");
    put_headers(t, out);
    sl_buf_puts(out, ", ");
    put_time(t, out);
}

static void put_order(const theirs *t, sl_buf *out)
{
    if (t->d->timestamp) {
        put_column(out, t->d->timestamp);
        sl_buf_puts(out, ", ");
    }
    sl_buf_puts(out, t->postgres ? "new.ctid" : "new.rowid");
}

/* ---- Scripts ---- */

/* `text` with a word replaced; percent signs doubled for format(). */
static void fill(const char *text, const char *word, const sl_buf *by, bool format, sl_buf *out)
{
    const char *at = strstr(text, word);
    sl_buf_put(out, text, at ? (size_t)(at - text) : strlen(text));
    if (!at)
        return;
    for (size_t i = 0; i < by->n; i++) {
        if (by->p[i] == '%' && format)
            sl_buf_putc(out, '%');
        sl_buf_putc(out, by->p[i]);
    }
    sl_buf_puts(out, at + strlen(word));
}

/* The names first: what is filled in is not looked at again. */
static sl_rc run_filled(sl_db *db, const sl_names *names, const theirs *t, const char *script,
                        sl_err *err)
{
    sl_buf named = { 0 }, values = { 0 }, order = { 0 }, filled = { 0 }, sql = { 0 };
    sl_names_apply(names, sl_script_named(db->ops->name, script)->text, &named);
    put_values(t, &values);
    put_order(t, &order);
    const char *from = strstr(sl_buf_text(&named), "INSERT INTO"); /* not in the comment */
    sl_buf_put(&filled, named.p, (size_t)(from - named.p));
    fill(from, "sluice_values", &values, strstr(named.p, "format(") != NULL, &filled);
    from = strstr(sl_buf_text(&filled), "INSERT INTO");
    sl_buf_put(&sql, filled.p, (size_t)(from - filled.p));
    fill(from, "sluice_order", &order, false, &sql);
    sl_rc rc = db->ops->script(db, sl_buf_text(&sql), err);
    sl_buf_fini(&named);
    sl_buf_fini(&values);
    sl_buf_fini(&order);
    sl_buf_fini(&filled);
    sl_buf_fini(&sql);
    return rc;
}

/* ---- Making ---- */

static sl_rc begin(sl_db *db, const sl_names *names, sl_err *err)
{
    sl_buf quoted = { 0 };
    sl_names_apply(names, "sluice_outbox", &quoted);
    sl_val table = sl_text((sl_str){ quoted.p, quoted.n });
    sl_val patience = sl_text(SL_STR(LOCK_MS));
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "schema/lock"), .in = &table },
                        { .stmt = sl_db_stmt(db, "schema/patience"), .in = &patience } };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    sl_buf_fini(&quoted);
    return rc;
}

static sl_rc end(sl_db *db, sl_rc rc, sl_err *err)
{
    if (rc == SL_OK)
        rc = sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err);
    if (rc != SL_OK)
        db->ops->rollback(db);
    return rc;
}

sl_rc sl_capture_table(sl_db *db, const sl_names *names, sl_err *err)
{
    sl_buf sql = { 0 };
    sl_names_apply(names, sl_script_named(db->ops->name, "debezium/table")->text, &sql);
    sl_rc rc = begin(db, names, err);
    if (rc == SL_OK)
        rc = db->ops->script(db, sl_buf_text(&sql), err);
    sl_buf_fini(&sql);
    return end(db, rc, err);
}

typedef struct captured {
    bool there, same;
    const char *options;
} captured;

static sl_rc note_captured(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    captured *c = ctx;
    c->there = cols[0].i != 0;
    c->same = sl_str_eq(cols[1].s, sl_str_of(c->options));
    return SL_OK;
}

static sl_rc ask_captured(sl_db *db, const sl_names *names, captured *c, sl_err *err)
{
    sl_buf quoted = { 0 };
    *c = (captured){ .options = names->layout };
    quoted_source(names, &quoted);
    sl_rc rc = sl_db_run1(db, "debezium/captured",
                          (sl_val[]){ sl_text((sl_str){ quoted.p, quoted.n }) }, note_captured,
                          c, NULL, err);
    sl_buf_fini(&quoted);
    return rc;
}

static sl_rc note_bool(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i != 0;
    return SL_OK;
}

/* Nobody but the operator knows whether Debezium has sent them. */
static sl_rc see_to_existing(sl_db *db, const sl_names *names, const theirs *t,
                             sl_existing existing, bool *sent, sl_err *err)
{
    bool any = false;
    sl_rc rc = sl_db_run1(db, "debezium/rows", NULL, note_bool, &any, NULL, err);
    *sent = any && existing == SL_EXISTING_SEND;
    if (rc != SL_OK || !any || existing == SL_EXISTING_SKIP)
        return rc;
    if (existing == SL_EXISTING_SEND)
        return run_filled(db, names, t, "debezium/existing", err);
    return sl_fail(err, SL_OPERATOR,
                   "table '%s' has rows already: were they sent?\nhint: --existing skip if "
                   "Debezium has sent all of them, --existing send if none",
                   names->source);
}

static sl_rc make(sl_db *db, const sl_names *names, const theirs *t, sl_existing existing,
                  sl_capture_done *done, sl_err *err)
{
    captured c;
    sl_rc rc = ask_captured(db, names, &c, err);
    done->made = !c.there;
    if (rc == SL_OK)
        rc = run_filled(db, names, t, "debezium/capture", err);
    if (rc == SL_OK && done->made) /* behind the trigger's lock: nobody inserts now */
        rc = see_to_existing(db, names, t, existing, &done->sent, err);
    if (rc == SL_OK)
        rc = sl_db_run1(db, "debezium/note", (sl_val[]){ sl_text(sl_str_of(names->layout)) },
                        NULL, NULL, NULL, err);
    return rc;
}

sl_rc sl_capture_init(sl_db *db, const sl_names *names, const sl_debezium *d,
                      sl_existing existing, sl_capture_done *done, sl_err *err)
{
    theirs t = { 0 };
    *done = (sl_capture_done){ 0 };
    sl_rc rc = begin(db, names, err);
    if (rc == SL_OK)
        rc = read_theirs(db, names, d, &t, err);
    if (rc == SL_OK)
        rc = make(db, names, &t, existing, done, err);
    theirs_fini(&t);
    if (rc == SL_AGAIN && db->ops->alive(db)) { /* nothing but the lock is waited for */
        sl_err why = *err;
        rc = sl_fail(err, SL_OPERATOR,
                     "table '%s' could not be locked: %.120s\nhint: end the transaction that "
                     "has written to it, or try again",
                     names->source, why.text);
    }
    return end(db, rc, err);
}

sl_rc sl_capture_check(sl_db *db, const sl_names *names, sl_err *err)
{
    captured c;
    sl_rc rc = ask_captured(db, names, &c, err);
    if (rc != SL_OK || (c.there && c.same))
        return rc;
    return sl_fail(err, SL_OPERATOR, "table '%s' %s\nhint: run 'sluice init'", names->source,
                   c.there ? "was captured by other debezium options than these"
                           : "is not captured: its trigger is missing or disabled");
}
