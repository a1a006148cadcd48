/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings as data. A row of a table says what a setting is called, what it may be, where it is
 * kept, and what it is for; the command line, the environment, sluice.yaml, `sluice config`, the
 * man pages and the shell completion are all readers of such tables. Nothing about a setting is
 * written down twice.
 */
#ifndef SL_CORE_OPT_H
#define SL_CORE_OPT_H

#include "core/buf.h"
#include "core/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sl_opt_type {
    SL_OPT_BOOL,   /* bool: true false yes no on off 1 0; as a flag it takes no value */
    SL_OPT_INT,    /* int64_t */
    SL_OPT_TIME,   /* int64_t nanoseconds: 250ms, 30s, 5m, 2h, 7d */
    SL_OPT_SIZE,   /* int64_t bytes: 512, 64k, 8M, 1G (powers of 1024) */
    SL_OPT_TEXT,   /* char *, owned, NULL when unset */
    SL_OPT_CHOICE, /* int: index into the words of `arg`, "a|b|c" */
    SL_OPT_MAP,    /* sl_opt_map: name=value,name=value; a mapping in YAML */
    SL_OPT_LIST /* sl_opt_list: one more each time it is set: a flag that may be given again, or a list in YAML */
} sl_opt_type;

enum {
    SL_OPT_RELOAD = 1 << 0, /* HUP applies a new value; others need a restart */
    SL_OPT_SECRET = 1 << 1, /* masked wherever settings are shown */
    SL_OPT_CLI_ONLY =
        1 << 2 /* a flag of one command: not in the file, not in the environment */
};

typedef struct sl_opt {
    const char
        *name; /* as in YAML and, with --, on the command line: "batch-bytes" is the flag,
                         "batch_bytes" the YAML key, SLUICE_BATCH_BYTES the variable; the table
                         holds the YAML form */
    sl_opt_type type;
    size_t offset;   /* into the struct that the table describes */
    const char *def; /* as text; NULL: unset (only TEXT, MAP and LIST) */
    int64_t min,
        max; /* both 0: no bounds. TEXT: bytes, where max 0 means no limit; with min > 0
                         and no default, an empty text unsets it */
    unsigned flags;
    const char *arg;  /* CHOICE: its words; else what the value is called in help: "URL", "N" */
    const char *help; /* full sentences */
} sl_opt;             /* a table ends with .name = NULL */

typedef struct sl_opt_map {
    size_t count;
    char **names;
    char **values;
} sl_opt_map;

typedef struct sl_opt_list {
    size_t count;
    char **v;
} sl_opt_list;

/* Sets every member to its default; the struct must be zeroed. */
void sl_opt_defaults(const sl_opt *table, void *base);
void sl_opt_free(const sl_opt *table, void *base);

/* Finds by YAML name or by flag name ('-' and '_' are the same); NULL if there is none. */
const sl_opt *sl_opt_find(const sl_opt *table, const char *name);
/* The nearest name, for "did you mean", or NULL if none is near. */
const char *sl_opt_nearest(const sl_opt *table, const char *name);

/* The same for any other list: start with { wanted }, try each candidate, read `best`. */
typedef struct sl_near {
    const char *wanted;
    const char *best; /* NULL while none is near */
    size_t distance;  /* of best */
} sl_near;

void sl_near_try(sl_near *near, const char *candidate);

/* Parses text into the member. SL_REFUSED names the setting, the text, and what would do. */
SL_CHECK sl_rc sl_opt_set(const sl_opt *o, void *base, const char *text, sl_err *err);
void sl_opt_map_put(sl_opt_map *map, const char *name, const char *value);
const char *sl_opt_map_get(const sl_opt_map *map, const char *name);

/* The value as text that sl_opt_set takes again; unset text gives an empty string. Unless `reveal`,
 * a secret URL goes through sl_opt_mask, and any other secret becomes "***". */
void sl_opt_show(const sl_opt *o, const void *base, bool reveal, sl_buf *out);
/* Of a map that is a secret: may the value of this entry not be shown? */
bool sl_opt_is_secret(const sl_opt *o, const char *name);
/* Passwords in URLs and conninfo strings become "***". */
void sl_opt_mask(const char *text, sl_buf *out);

#endif
