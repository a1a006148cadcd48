/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "core/buf.h"
#include "core/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static const char gap[] = "  ";

static void put_cell(sl_table *t, char *text)
{
    if (t->cells == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 32;
        t->v = sl_realloc(t->v, t->cap * sizeof *t->v);
    }
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    t->v[t->cells++] = text;
}

void sl_table_begin(sl_table *t, const char *heads)
{
    sl_table_fini(t);
    for (const char *p = heads;; p++) {
        size_t n = strcspn(p, "|");
        bool right = *p == '>';
        assert(t->columns < SL_TABLE_COLUMNS);
        t->right[t->columns++] = right;
        put_cell(t, sl_strndup(p + right, n - right));
        p += n;
        if (!*p)
            return;
    }
}

void sl_table_cell(sl_table *t, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort(); /* as for any other memory */
    put_cell(t, text);
}

/* Characters, where each is as wide as the others: bytes but for those that continue one. */
static size_t width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Whole characters: of one that has several bytes, all or none. */
static char *cut(sl_str s, size_t room)
{
    static const char dots[] = "...";
    size_t chars = 0, whole = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (((unsigned char)s.p[i] & 0xc0) == 0x80)
            continue;
        if (chars == room)
            return sl_asprintf("%.*s%s", (int)whole, s.p, dots);
        if (++chars + strlen(dots) == room + 1)
            whole = i;
    }
    return sl_strndup(s.p, s.n);
}

void sl_table_cell_cut(sl_table *t, sl_str text, size_t room)
{
    put_cell(t, cut(text, room));
}

size_t sl_table_column_width(const sl_table *t, size_t column)
{
    size_t most = 0;
    for (size_t i = column; i < t->cells; i += t->columns) {
        size_t n = width(t->v[i]);
        most = n > most ? n : most;
    }
    return most;
}

size_t sl_table_width(const sl_table *t)
{
    size_t sum = t->columns * strlen(gap);
    for (size_t c = 0; c < t->columns; c++)
        sum += sl_table_column_width(t, c);
    return sum;
}

void sl_table_fit(sl_table *t, size_t width, size_t least)
{
    size_t last = t->columns - 1;
    size_t others = sl_table_width(t) - sl_table_column_width(t, last);
    size_t room = width > others + least ? width - others : least;
    for (size_t i = last; i < t->cells; i += t->columns) {
        char *before = t->v[i];
        t->v[i] = cut(sl_str_of(before), room);
        free(before);
    }
}

static void pad(sl_buf *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sl_buf_putc(line, ' ');
}

/* One line; what would follow its last letter is left away. */
static void make_line(const sl_table *t, size_t row, const size_t *widths, sl_buf *line)
{
    size_t owed = 0;
    sl_buf_reset(line);
    for (size_t c = 0; c < t->columns && row * t->columns + c < t->cells; c++) {
        const char *text = t->v[row * t->columns + c];
        size_t rest = widths[c] - width(text);
        owed += strlen(gap);
        if (*text) {
            pad(line, owed + (t->right[c] ? rest : 0));
            sl_buf_puts(line, text);
            owed = t->right[c] ? 0 : rest;
        } else {
            owed += rest;
        }
    }
}

void sl_table_print(const sl_table *t, FILE *out)
{
    size_t widths[SL_TABLE_COLUMNS];
    sl_buf line = { 0 };
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = sl_table_column_width(t, c);
    for (size_t row = 0; row * t->columns < t->cells; row++) {
        make_line(t, row, widths, &line);
        fprintf(out, "%s\n", sl_buf_text(&line));
    }
    sl_buf_fini(&line);
}

void sl_table_fini(sl_table *t)
{
    for (size_t i = 0; i < t->cells; i++)
        free(t->v[i]);
    free(t->v);
    *t = (sl_table){ 0 };
}

size_t sl_terminal_width(FILE *out)
{
    struct winsize size;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
