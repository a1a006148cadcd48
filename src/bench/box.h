/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a bench: in PostgreSQL a schema of its own, `sluice_bench`; for SQLite a file beside the one that was named. What
 * an earlier one left behind is removed first; what is not ours is not touched. */
#ifndef SL_BENCH_BOX_H
#define SL_BENCH_BOX_H

#include "db/db.h"
#include "lib/settings.h"

typedef struct sl_box {
    sl_db *db;
    sl_names names;
    sl_settings *settings;
    char *file; /* of SQLite */
    char version[64];
    int64_t last_id; /* that was given */
} sl_box;            /* zero-initialise */

typedef struct sl_fill {
    int64_t rows;
    int64_t keys;       /* they take turns: message id is of key id % keys */
    int64_t hot;        /* but each hot-th is of one more key; 0: none */
    int64_t bytes;      /* of a payload, about */
    const char *prefix; /* NULL: "k" */
    /* If producers drew the ids, the keys of those that are checked, from the first on; NULL: as above. */
    const int32_t *drawn;
} sl_fill;

typedef struct sl_box_left {
    int64_t waiting, held, dead;
} sl_box_left;

typedef struct sl_box_facts {
    int64_t wal, dead_rows; /* counted since ever; 0: they are not */
    int64_t pid;            /* of the session's server process; 0: it is not on this machine */
} sl_box_facts;

/* Points the settings at the new tables, too. */
SL_CHECK sl_rc sl_box_make(sl_box *box, sl_settings *settings, sl_err *err);
void sl_box_remove(sl_box *box);

bool sl_box_is_postgres(const sl_box *box);
/* A second session. */
SL_CHECK sl_rc sl_box_connect(const sl_box *box, sl_db **out, sl_err *err);
/* Not a single connection to it is open in between: SQLite's locks do not survive a fork. */
void sl_box_close(sl_box *box);
SL_CHECK sl_rc sl_box_reopen(sl_box *box, sl_err *err);

SL_CHECK sl_rc sl_box_empty(sl_box *box, sl_err *err);
/* In transactions of at most 100,000. `added` is told of each. */
SL_CHECK sl_rc sl_box_fill(sl_box *box, const sl_fill *fill, void (*added)(void *, int64_t),
                           void *ctx, sl_err *err);
/* Heads of so many keys of `prefix` that wait for their next attempt. */
SL_CHECK sl_rc sl_box_block(sl_box *box, int64_t keys, const char *prefix, sl_err *err);
/* As a table that lay still: read, vacuumed if `vacuum`, and all pages written. */
SL_CHECK sl_rc sl_box_rest(sl_box *box, bool vacuum, sl_err *err);
SL_CHECK sl_rc sl_box_left_of(sl_box *box, sl_box_left *out, sl_err *err);
SL_CHECK sl_rc sl_box_facts_of(sl_box *box, sl_box_facts *out, sl_err *err);

#endif
