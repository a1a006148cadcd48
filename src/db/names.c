/* SPDX-License-Identifier: Apache-2.0 */
#include "db/names.h"

#include "core/mem.h"

#include <assert.h>
#include <ctype.h>

/* PostgreSQL cuts names at 63 bytes; the longest thing we append is "_ix_idempotency". */
enum { NAME_MAX_BYTES = 63, TABLE_MAX_BYTES = 63 - 16 };

#define TABLE_WORD "sluice_outbox"
#define LANES_WORD "sluice_lanes"
#define INBOX_WORD "sluice_inbox"
#define SOURCE_WORD "sluice_source"
#define BESIDE "_sluice"

const char *const sl_columns[] = {
    "id",           "topic",    "entity_key",      "event_type",   "payload",
    "content_type", "headers",  "idempotency_key", "created_at",   "available_at",
    "lane",         "attempts", "last_error",      "leased_until", "epoch",
    "worker",       "held",     "delayed",         NULL,
};

/* Not isalpha: what a letter is must not depend on the locale of the program around us. */
static bool word_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && (isdigit((unsigned char)c) || c == '$'));
}

static bool is_identifier(const char *s, size_t n, size_t max)
{
    if (n == 0 || n > max || !word_char(s[0], true))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!word_char(s[i], false))
            return false;
    return true;
}

static bool is_column(const char *name)
{
    for (const char *const *c = sl_columns; *c; c++)
        if (!strcmp(*c, name))
            return true;
    return false;
}

static sl_rc check_table(const char *table, sl_err *err)
{
    const char *dot = strchr(table, '.');
    const char *name = dot ? dot + 1 : table;
    if ((!dot || is_identifier(table, (size_t)(dot - table), NAME_MAX_BYTES)) &&
        is_identifier(name, strlen(name), TABLE_MAX_BYTES))
        return SL_OK;
    return sl_fail(
        err, SL_REFUSED,
        "table '%.80s' is not a name\nhint: NAME or SCHEMA.NAME of letters, digits, _ "
        "and $, the name at most %d bytes",
        table, TABLE_MAX_BYTES);
}

static bool has_word(const char *words, const char *word)
{
    char spaced[NAME_MAX_BYTES + 3];
    snprintf(spaced, sizeof spaced, " %s ", word);
    return strstr(words, spaced) != NULL;
}

/* The side tables have some of our columns, renamed as in the outbox, beside columns of their own: those that a message
 * goes to have all that a producer writes, and more. */
static bool meets_side_column(const char *ours, const char *theirs)
{
    static const char moved[] = " id topic entity_key event_type payload content_type headers "
                                "idempotency_key created_at attempts last_error epoch worker ";
    static const char beside[] =
        " dead_id died_at unknown consumed_at journal opened_by synced_to sent_id sent_at ";
    static const char *const pairs[][2] = {
        { "entity_key", " head due_at since reason fence doubt tried " },
        { "lane", " head due_at since reason fence doubt tried owner " },
        { "idempotency_key", " seq since gone_at " },
        { "epoch", " claim ends_at holder held_by owner since " },
    };
    if (has_word(moved, ours) && has_word(beside, theirs))
        return true;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!strcmp(ours, pairs[i][0]) && has_word(pairs[i][1], theirs))
            return true;
    return false;
}

static sl_rc check_column(const sl_opt_map *map, size_t i, sl_err *err)
{
    const char *ours = map->names[i];
    const char *theirs = map->values[i];
    if (!is_column(ours))
        return sl_fail(
            err, SL_REFUSED,
            "columns: '%.60s' is not a column of the outbox\nhint: id, topic, "
            "entity_key, event_type, payload, content_type, headers, idempotency_key, "
            "created_at, available_at, lane, attempts, last_error, leased_until, "
            "epoch, worker, held, delayed",
            ours);
    if (!is_identifier(theirs, strlen(theirs), NAME_MAX_BYTES))
        return sl_fail(
            err, SL_REFUSED,
            "columns: '%.80s' (for %s) is not a name\nhint: letters, digits, _ and $, "
            "at most %d bytes",
            theirs, ours, NAME_MAX_BYTES);
    if (meets_side_column(ours, theirs))
        return sl_fail(
            err, SL_REFUSED,
            "columns: '%s' (for %s) is a column of the side tables\nhint: rename the "
            "column of your table",
            theirs, ours);
    return SL_OK;
}

/* Two of our columns in one of theirs, also by leaving one of them with its own name. */
static sl_rc check_collisions(const sl_names *n, sl_err *err)
{
    for (const char *const *a = sl_columns; *a; a++)
        for (const char *const *b = a + 1; *b; b++)
            if (!strcmp(sl_names_column(n, *a), sl_names_column(n, *b)))
                return sl_fail(
                    err, SL_REFUSED,
                    "columns: %s and %s are both '%s'\nhint: map one of them to another "
                    "name; a column that the table lacks is added by sluice init",
                    *a, *b, sl_names_column(n, *a));
    return SL_OK;
}

sl_rc sl_names_init(sl_names *n, const char *table, const sl_opt_map *columns, sl_err *err)
{
    *n = (sl_names){ .lanes = 64 };
    sl_rc rc = check_table(table, err);
    for (size_t i = 0; rc == SL_OK && columns && i < columns->count; i++)
        rc = check_column(columns, i, err);
    if (rc != SL_OK)
        return rc;

    const char *dot = strchr(table, '.');
    n->schema = dot ? sl_strndup(table, (size_t)(dot - table)) : NULL;
    n->table = sl_strdup(dot ? dot + 1 : table);
    for (size_t i = 0; columns && i < columns->count; i++)
        sl_opt_map_put(&n->columns, columns->names[i], columns->values[i]);
    rc = check_collisions(n, err);
    if (rc != SL_OK)
        sl_names_fini(n);
    return rc;
}

sl_rc sl_names_beside(sl_names *n, const char *source, const char *layout, sl_err *err)
{
    sl_rc rc = check_table(source, err);
    if (rc != SL_OK)
        return rc;
    char *table = sl_asprintf("%s" BESIDE, source);
    rc = sl_names_init(n, table, NULL, err);
    free(table);
    if (rc != SL_OK)
        return rc;
    n->source = sl_strndup(n->table, strlen(n->table) - strlen(BESIDE));
    n->layout = sl_strdup(layout);
    return SL_OK;
}

sl_rc sl_names_inbox(sl_names *n, const char *table, sl_err *err)
{
    const char *dot = strchr(table, '.');
    sl_rc rc = check_table(table, err);
    if (rc != SL_OK)
        return rc;
    free(n->inbox_schema);
    free(n->inbox);
    n->inbox_schema = dot ? sl_strndup(table, (size_t)(dot - table)) : NULL;
    n->inbox = sl_strdup(dot ? dot + 1 : table);
    return SL_OK;
}

void sl_names_fini(sl_names *n)
{
    free(n->schema);
    free(n->table);
    free(n->inbox_schema);
    free(n->inbox);
    free(n->source);
    free(n->layout);
    for (size_t i = 0; i < n->columns.count; i++) {
        free(n->columns.names[i]);
        free(n->columns.values[i]);
    }
    free(n->columns.names);
    free(n->columns.values);
    *n = (sl_names){ 0 };
}

const char *sl_names_column(const sl_names *n, const char *column)
{
    const char *theirs = sl_opt_map_get(&n->columns, column);
    return theirs ? theirs : column;
}

/* Indexes, constraints and triggers live in their table's schema and are named without it. */
static bool unqualified(const char *suffix)
{
    return !strncmp(suffix, "_ix_", 4) || !strncmp(suffix, "_ck_", 4) ||
           !strncmp(suffix, "_tr_", 4);
}

static void put_name(const char *schema, const char *table, const char *suffix,
                     size_t suffix_bytes, sl_buf *out)
{
    if (schema && !unqualified(suffix))
        sl_buf_printf(out, "\"%s\".", schema);
    sl_buf_printf(out, "\"%s%.*s\"", table, (int)suffix_bytes, suffix);
}

static void put_table(const sl_names *n, const char *suffix, size_t suffix_bytes, sl_buf *out)
{
    put_name(n->schema, n->table, suffix, suffix_bytes, out);
}

static bool put_inbox(const sl_names *n, const char *word, size_t bytes, sl_buf *out)
{
    const size_t prefix = sizeof INBOX_WORD - 1;
    if (bytes < prefix || memcmp(word, INBOX_WORD, prefix) != 0)
        return false;
    put_name(n->inbox_schema, n->inbox ? n->inbox : SL_INBOX_DEFAULT, word + prefix,
             bytes - prefix, out);
    return true;
}

static void put_source(const sl_names *n, sl_buf *out)
{
    put_name(n->schema, n->source, "", 0, out);
}

static void put_word(const sl_names *n, const char *word, size_t bytes, sl_buf *out)
{
    const size_t prefix = sizeof TABLE_WORD - 1;
    char name[NAME_MAX_BYTES + 1];

    if (bytes >= prefix && !memcmp(word, TABLE_WORD, prefix)) {
        put_table(n, word + prefix, bytes - prefix, out);
        return;
    }
    if (put_inbox(n, word, bytes, out))
        return;
    if (n->source && bytes == sizeof SOURCE_WORD - 1 && !memcmp(word, SOURCE_WORD, bytes)) {
        put_source(n, out);
        return;
    }
    if (bytes == sizeof LANES_WORD - 1 && !memcmp(word, LANES_WORD, bytes)) {
        sl_buf_printf(out, "%lld", (long long)n->lanes);
        return;
    }
    if (n->columns.count && bytes < sizeof name) {
        memcpy(name, word, bytes);
        name[bytes] = '\0';
        const char *theirs = is_column(name) ? sl_opt_map_get(&n->columns, name) : NULL;
        if (theirs) {
            sl_buf_printf(out, "\"%s\"", theirs);
            return;
        }
    }
    sl_buf_put(out, word, bytes);
}

/* 'sluice_outbox_epoch': a name that a function takes as text. Names hold no quotes. */
static bool put_quoted_name(const sl_names *n, const char *p, const char *end, sl_buf *out)
{
    const size_t prefix = sizeof TABLE_WORD - 1;
    size_t bytes = (size_t)(end - p);
    if (n->source && bytes == sizeof SOURCE_WORD + 1 &&
        !memcmp(p, "'" SOURCE_WORD "'", bytes)) {
        sl_buf_putc(out, '\'');
        put_source(n, out);
        sl_buf_putc(out, '\'');
        return true;
    }
    if (*p != '\'' || bytes < prefix + 2 || memcmp(p + 1, TABLE_WORD, prefix) != 0 ||
        !is_identifier(p + 1, bytes - 2, NAME_MAX_BYTES))
        return false;
    sl_buf_putc(out, '\'');
    put_table(n, p + 1 + prefix, bytes - 2 - prefix, out);
    sl_buf_putc(out, '\'');
    return true;
}

/* The end of what must not be looked into: a string, a quoted name, a comment to the line's
 * end; or the argument itself. */
static const char *skip_quoted(const char *p)
{
    const char *end = NULL;
    if (*p == '\'' || *p == '"')
        end = strchr(p + 1, *p);
    else if (p[0] == '-' && p[1] == '-')
        end = strchr(p, '\n');
    else
        return p;
    return end ? end + 1 : p + strlen(p);
}

void sl_names_apply(const sl_names *n, const char *sql, sl_buf *out)
{
    const char *p = sql;
    while (*p) {
        const char *end = skip_quoted(p);
        if (end > p) {
            if (!put_quoted_name(n, p, end, out))
                sl_buf_put(out, p, (size_t)(end - p));
        } else if (word_char(*p, true)) {
            for (end = p + 1; word_char(*end, false); end++)
                ;
            put_word(n, p, (size_t)(end - p), out);
        } else {
            end = p + 1;
            sl_buf_putc(out, *p);
            /* A number is no place for a word to start: 1e6, $1 */
            while (isdigit((unsigned char)*p) && word_char(*end, false))
                sl_buf_putc(out, *end++);
        }
        p = end;
    }
}
