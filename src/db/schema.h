/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: made, adopted, migrated and checked. A migration is a script
 * sql/<dialect>/schema/NNN; the number of the last one run is kept in the table's own _meta
 * table. */
#ifndef SL_DB_SCHEMA_H
#define SL_DB_SCHEMA_H

#include "db/db.h"

enum { SL_SCHEMA_VERSION = 5 }; /* what this program makes and understands */

typedef struct sl_schema {
    bool table;      /* the outbox is there */
    int64_t version; /* 0: not ours yet */
    int64_t lanes;
    bool rotated; /* its layout */
} sl_schema;

/* What is there now. */
SL_CHECK sl_rc sl_schema_read(sl_db *db, const sl_names *names, sl_schema *out, sl_err *err);
/* SL_OPERATOR: missing or older, run `sluice init`. SL_NEWER: the program is older. */
SL_CHECK sl_rc sl_schema_check(sl_db *db, const sl_names *names, sl_err *err);

typedef struct sl_schema_done {
    sl_schema before, after;
    int columns_added; /* to a table that was there */
} sl_schema_done;

/* Creates, adopts or migrates, in one transaction; harmless when there is nothing to do, and
 * when several nodes do it at once. */
SL_CHECK sl_rc sl_schema_init(sl_db *db, const sl_names *names, sl_schema_done *done,
                              sl_err *err);
/* Makes the inbox of a receiver, and nothing else; refuses a table of that name that is none. */
SL_CHECK sl_rc sl_schema_inbox(sl_db *db, const sl_names *names, bool *created, sl_err *err);
/* What sl_schema_init makes, as SQL text, for those who run migrations themselves. */
SL_CHECK sl_rc sl_schema_print(const char *dialect, const sl_names *names, sl_buf *out,
                               sl_err *err);
SL_CHECK sl_rc sl_schema_print_inbox(const char *dialect, const sl_names *names, sl_buf *out,
                                     sl_err *err);

#endif
