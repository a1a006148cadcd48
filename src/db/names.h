/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables and columns are really called. The SQL files speak of `sluice_outbox`, of the
 * side tables named after it (`sluice_outbox_dead`, ...), of a receiver's `sluice_inbox` and of the
 * columns of design section 2; this replaces those words, and only those, by the quoted names that were configured. Since
 * a word is replaced wherever it stands, also where a sub-select passes it on, the statement
 * stays consistent. Nothing else is ever pasted into SQL.
 */
#ifndef SL_DB_NAMES_H
#define SL_DB_NAMES_H

#include "core/buf.h"
#include "core/err.h"
#include "core/opt.h"

#define SL_INBOX_DEFAULT "inbox_seen"

typedef struct sl_names {
    char *schema; /* NULL: found by search path */
    char *table;  /* "outbox" */
    char *inbox_schema;
    char *inbox; /* NULL: SL_INBOX_DEFAULT */
    sl_opt_map columns;
    int64_t lanes; /* `sluice_lanes` in the schema */
    /* Layout debezium: `sluice_source`, their table, beside which `table` is; and what its trigger is made by. */
    char *source;
    char *layout;
    bool rotated; /* layout rotated, if the table has to be made */
} sl_names;

/* Refuses what is not a plain identifier, too long, an unknown column, or two columns of one
 * name. */
SL_CHECK sl_rc sl_names_init(sl_names *n, const char *table, const sl_opt_map *columns,
                             sl_err *err);
/* The table of receivers, NAME or SCHEMA.NAME. */
SL_CHECK sl_rc sl_names_inbox(sl_names *n, const char *table, sl_err *err);
/* Their table, NAME or SCHEMA.NAME; the outbox is NAME_sluice, in the same schema. */
SL_CHECK sl_rc sl_names_beside(sl_names *n, const char *source, const char *layout,
                               sl_err *err);
void sl_names_fini(sl_names *n);

void sl_names_apply(const sl_names *n, const char *sql, sl_buf *out);
/* The configured name of one of our columns, unquoted. */
const char *sl_names_column(const sl_names *n, const char *column);
/* NULL-terminated list of our column names. */
extern const char *const sl_columns[];

#endif
