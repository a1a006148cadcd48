/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/keys_print.h"

#include "cli/who.h"
#include "format/format.h"

/* Characters of what may be long. A reason has what is left of the terminal's line, but so many at least; and without a
 * terminal REASON_ROOM. */
enum { NAME_ROOM = 40, REASON_ROOM = 80, REASON_LEAST = 20, SAID_BYTES = 200 };

void sl_keys_put_name(sl_buf *out, sl_str key)
{
    size_t n = key.n < SAID_BYTES ? key.n : SAID_BYTES;
    sl_buf_puts(out, "key '");
    for (size_t i = 0; i < n; i++)
        sl_buf_putc(out, (unsigned char)key.p[i] < ' ' || key.p[i] == 0x7f ? '?' : key.p[i]);
    sl_buf_puts(out, n < key.n ? "...'" : "'");
}

/* ---- Rows ---- */

void sl_keys_page_begin(sl_keys_page *p, bool json)
{
    p->json = json;
    p->width = sl_terminal_width(stdout);
    sl_table_begin(&p->rows, "key|state|>head|>behind|>attempts|>age|>due in|reason");
}

static const char *state_of(const sl_val *c)
{
    return c[SL_KEYS_IS_PARKED].i ? "parked" : "blocked";
}

static void put_text_or_null(sl_buf *out, const sl_val *v)
{
    if (v->null)
        sl_buf_puts(out, "null");
    else
        sl_json_string(out, v->s);
}

static void put_number_or_null(sl_buf *out, const sl_val *v)
{
    if (v->null)
        sl_buf_puts(out, "null");
    else
        sl_buf_printf(out, "%lld", (long long)v->i);
}

static void add_json(sl_keys_page *p, const sl_val *c)
{
    sl_buf *out = &p->out;
    sl_buf_puts(out, p->shown ? ",{\"key\":" : "{\"key\":");
    put_text_or_null(out, &c[SL_KEYS_KEY]);
    sl_buf_printf(out, ",\"alone\":%s,\"state\":\"%s\",\"by_hand\":%s,\"id\":",
                  c[SL_KEYS_ALONE].i ? "true" : "false", state_of(c),
                  c[SL_KEYS_BY_HAND].i ? "true" : "false");
    put_number_or_null(out, &c[SL_KEYS_ID]);
    sl_buf_puts(out, ",\"topic\":");
    put_text_or_null(out, &c[SL_KEYS_TOPIC]);
    sl_buf_printf(out, ",\"behind\":%lld,\"attempts\":%lld,\"since\":",
                  (long long)c[SL_KEYS_BEHIND].i, (long long)c[SL_KEYS_ATTEMPTS].i);
    put_text_or_null(out, &c[SL_KEYS_SINCE]);
    sl_buf_printf(out,
                  ",\"age_seconds\":%.3f,\"due_seconds\":", (double)c[SL_KEYS_AGE_US].i / 1e6);
    if (c[SL_KEYS_DUE_US].null)
        sl_buf_puts(out, "null");
    else
        sl_buf_printf(out, "%.3f", (double)c[SL_KEYS_DUE_US].i / 1e6);
    sl_buf_puts(out, ",\"reason\":");
    put_text_or_null(out, &c[SL_KEYS_REASON]);
    sl_buf_putc(out, '}');
}

static void put_time(sl_table *t, const sl_val *us, const char *none)
{
    sl_buf text = { 0 };
    if (us->null)
        sl_buf_puts(&text, none);
    else if (us->i > 0)
        sl_who_time(&text, us->i);
    else
        sl_buf_puts(&text, "now");
    sl_table_cell(t, "%s", sl_buf_text(&text));
    sl_buf_fini(&text);
}

static void add_cells(sl_keys_page *p, const sl_val *c)
{
    sl_table *t = &p->rows;
    const sl_val *id = &c[SL_KEYS_ID];
    const sl_val *reason = &c[SL_KEYS_REASON];
    if (c[SL_KEYS_ALONE].i)
        sl_table_cell(t, "message %lld", (long long)id->i);
    else
        sl_table_cell_cut(t, c[SL_KEYS_KEY].s, NAME_ROOM);
    sl_table_cell(t, "%s", state_of(c));
    if (id->null)
        sl_table_cell(t, "-");
    else
        sl_table_cell(t, "%lld", (long long)id->i);
    sl_table_cell(t, "%lld", (long long)c[SL_KEYS_BEHIND].i);
    sl_table_cell(t, "%lld", (long long)c[SL_KEYS_ATTEMPTS].i);
    put_time(t, &c[SL_KEYS_AGE_US], "-");
    put_time(t, &c[SL_KEYS_DUE_US], "-");
    sl_table_cell_cut(t, reason->null ? SL_STR("-") : reason->s,
                      p->width ? SIZE_MAX : REASON_ROOM);
}

sl_rc sl_keys_page_row(void *page, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_keys_page *p = page;
    (p->json ? add_json : add_cells)(p, cols);
    p->shown++;
    return SL_OK;
}

/* ---- All of it ---- */

/* "12 keys blocked and 3 parked, 1 message parked, in table outbox; 10 are shown" */
static void print_counts(const sl_keys_page *p, FILE *out)
{
    const sl_keys_counts *c = &p->counts;
    int64_t all = c->blocked + c->parked + c->alone;
    if (all == 0) {
        fprintf(out, "no key of table %s %s\n", p->table,
                p->filtered ? "matches" : "is blocked or parked");
        return;
    }
    fprintf(out, "%lld key%s blocked and %lld parked", (long long)c->blocked,
            c->blocked == 1 ? "" : "s", (long long)c->parked);
    if (c->alone)
        fprintf(out, ", %lld message%s parked", (long long)c->alone, c->alone == 1 ? "" : "s");
    fprintf(out, ", %sin table %s", p->filtered ? "of those that match, " : "", p->table);
    fprintf(out, (int64_t)p->shown < all ? "; the first %zu are shown\n" : "\n", p->shown);
}

static void print_json(const sl_keys_page *p, FILE *out)
{
    sl_buf table = { 0 };
    sl_json_string(&table, sl_str_of(p->table));
    fprintf(out,
            "{\"table\":%s,\"blocked\":%lld,\"parked\":%lld,\"alone\":%lld,\"keys\":[%s]}\n",
            sl_buf_text(&table), (long long)p->counts.blocked, (long long)p->counts.parked,
            (long long)p->counts.alone, sl_buf_text(&p->out));
    sl_buf_fini(&table);
}

void sl_keys_page_print(sl_keys_page *p, FILE *out)
{
    if (p->json) {
        print_json(p, out);
        return;
    }
    if (p->shown) {
        if (p->width)
            sl_table_fit(&p->rows, p->width, REASON_LEAST);
        sl_table_print(&p->rows, out);
        fputc('\n', out);
    }
    print_counts(p, out);
}

void sl_keys_page_fini(sl_keys_page *p)
{
    sl_table_fini(&p->rows);
    sl_buf_fini(&p->out);
}
