/* SPDX-License-Identifier: Apache-2.0 */
/* Text in columns that line up, for people. */
#ifndef SL_CLI_TABLE_H
#define SL_CLI_TABLE_H

#include "core/bytes.h"

#include <stdio.h>

enum { SL_TABLE_COLUMNS = 16 };

typedef struct sl_table {
    size_t columns, cells, cap;
    char **v; /* row by row, the heads first */
    bool right[SL_TABLE_COLUMNS];
} sl_table; /* zero-initialise */

/* "node|>lanes": a head with > is that of numbers, which stand at the right. */
void sl_table_begin(sl_table *t, const char *heads);
/* The next cell of the row. What a terminal would obey becomes a question mark. */
void sl_table_cell(sl_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with at most so many characters, of which the last are dots if it was longer. */
void sl_table_cell_cut(sl_table *t, sl_str text, size_t room);
/* Cuts the last column so that lines are no longer than `width`, but leaves it `least` characters. */
void sl_table_fit(sl_table *t, size_t width, size_t least);
size_t sl_table_column_width(const sl_table *t, size_t column);
size_t sl_table_width(const sl_table *t); /* of the longest line, in characters */
void sl_table_print(const sl_table *t, FILE *out);
void sl_table_fini(sl_table *t);

/* Characters in a line of the terminal at `out`; 0 if it is none. */
size_t sl_terminal_width(FILE *out);

#endif
