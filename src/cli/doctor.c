/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "cli/table.h"
#include "core/mem.h"
#include "format/format.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

const char *sl_health_name(sl_health h)
{
    static const char *const names[SL_HEALTHS] = { "ok", "warn", "bad", "unknown" };
    return names[h];
}

/* ---- The list ---- */

static char *formatted(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static char *formatted(const char *fmt, va_list ap)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0)
        abort(); /* as for any other memory */
    return text;
}

static sl_finding *add(sl_findings *all, sl_health state, const char *check)
{
    if (all->count == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 32;
        all->v = sl_realloc(all->v, all->cap * sizeof *all->v);
    }
    sl_finding *f = &all->v[all->count++];
    *f = (sl_finding){ .state = state, .check = check };
    return f;
}

void sl_found(sl_findings *all, sl_health state, const char *check, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(all, state, check)->found = formatted(fmt, ap);
    va_end(ap);
}

void sl_advise(sl_findings *all, const char *fmt, ...)
{
    va_list ap;
    assert(all->count && !all->v[all->count - 1].todo);
    va_start(ap, fmt);
    all->v[all->count - 1].todo = formatted(fmt, ap);
    va_end(ap);
}

void sl_found_unseen(sl_findings *all, const char *check, const sl_err *err)
{
    const char *hint = strstr(err->text, "\nhint: ");
    sl_finding *f = add(all, SL_UNSEEN, check);
    f->found = sl_strndup(err->text, strcspn(err->text, "\n"));
    f->todo = hint ? sl_strdup(hint + strlen("\nhint: ")) : NULL;
}

void sl_findings_fini(sl_findings *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->v[i].found);
        free(all->v[i].todo);
    }
    free(all->v);
    *all = (sl_findings){ 0 };
}

size_t sl_findings_of(const sl_findings *all, sl_health state)
{
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++)
        n += all->v[i].state == state;
    return n;
}

sl_health sl_findings_worst(const sl_findings *all)
{
    static const sl_health order[] = { SL_BAD, SL_WARN, SL_UNSEEN };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (sl_findings_of(all, order[i]))
            return order[i];
    return SL_FINE;
}

/* ---- JSON ---- */

static void put_finding(sl_buf *out, const sl_finding *f)
{
    sl_buf_printf(out, "{\"state\":\"%s\",\"check\":", sl_health_name(f->state));
    sl_json_string(out, sl_str_of(f->check));
    sl_buf_puts(out, ",\"found\":");
    sl_json_string(out, sl_str_of(f->found));
    sl_buf_puts(out, ",\"do\":");
    if (f->todo)
        sl_json_string(out, sl_str_of(f->todo));
    else
        sl_buf_puts(out, "null");
    sl_buf_putc(out, '}');
}

void sl_findings_json(const sl_findings *all, const char *table, sl_buf *out)
{
    sl_buf_puts(out, "{\"table\":");
    sl_json_string(out, sl_str_of(table));
    sl_buf_printf(out, ",\"state\":\"%s\"", sl_health_name(sl_findings_worst(all)));
    for (int h = SL_FINE; h < SL_HEALTHS; h++)
        sl_buf_printf(out, ",\"%s\":%zu", sl_health_name((sl_health)h),
                      sl_findings_of(all, (sl_health)h));
    sl_buf_puts(out, ",\"findings\":[");
    for (size_t i = 0; i < all->count; i++) {
        sl_buf_puts(out, i ? "," : "");
        put_finding(out, &all->v[i]);
    }
    sl_buf_puts(out, "]}");
}

/* ---- Text ---- */

enum { NARROWEST = 30 }; /* of wrapped text, however narrow the terminal is */

static void fill_wide(sl_table *t, const sl_findings *all)
{
    sl_table_begin(t, "state|check|found|what to do");
    for (size_t i = 0; i < all->count; i++) {
        const sl_finding *f = &all->v[i];
        sl_table_cell(t, "%s", sl_health_name(f->state));
        sl_table_cell(t, "%s", f->check);
        sl_table_cell(t, "%s", f->found);
        sl_table_cell(t, "%s", f->todo ? f->todo : "");
    }
}

/* How much of the text fits into a line: up to a blank, or cut where there is none. */
static size_t line_of(const char *text, size_t room)
{
    size_t n = strlen(text), last = 0;
    if (n <= room)
        return n;
    for (size_t i = 1; i <= room; i++)
        if (text[i] == ' ')
            last = i;
    for (n = room; !last && n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--; /* not within a character */
    return last ? last : n;
}

/* The cells before stand in the first line only. */
static void put_wrapped(sl_table *t, const char *text, size_t room)
{
    for (bool first = true; *text; first = false) {
        size_t n = line_of(text, room);
        if (!first) {
            sl_table_cell(t, "%s", "");
            sl_table_cell(t, "%s", "");
        }
        sl_table_cell(t, "%.*s", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

static void fill_narrow(sl_table *t, const sl_findings *all, size_t room)
{
    sl_table_begin(t, "state|check|found, and what to do");
    for (size_t i = 0; i < all->count; i++) {
        const sl_finding *f = &all->v[i];
        char *text =
            sl_asprintf("%s%s%s", f->found, f->todo ? " -> " : "", f->todo ? f->todo : "");
        sl_table_cell(t, "%s", sl_health_name(f->state));
        sl_table_cell(t, "%s", f->check);
        put_wrapped(t, text, room);
        free(text);
    }
}

void sl_findings_print(const sl_findings *all, size_t width, FILE *out)
{
    sl_table t = { 0 };
    fill_wide(&t, all);
    /* How wide wrapped text becomes depends on where its blanks are: try. */
    for (size_t room = width; width && room >= NARROWEST && sl_table_width(&t) > width; room--)
        fill_narrow(&t, all, room);
    sl_table_print(&t, out);
    sl_table_fini(&t);
    fprintf(out, "\n%zu bad, %zu warn, %zu unknown, %zu ok\n", sl_findings_of(all, SL_BAD),
            sl_findings_of(all, SL_WARN), sl_findings_of(all, SL_UNSEEN),
            sl_findings_of(all, SL_FINE));
}

void sl_put_bytes(sl_buf *out, int64_t bytes)
{
    static const char *const units[] = { "kB", "MB", "GB", "TB" };
    double n = (double)bytes;
    size_t unit = 0;
    if (bytes < 1024) {
        sl_buf_printf(out, "%lld bytes", (long long)bytes);
        return;
    }
    for (n /= 1024; n >= 1024 && unit < 3; n /= 1024)
        unit++;
    sl_buf_printf(out, n < 10 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}
