/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dead_print.h"

#include "cli/who.h"
#include "format/format.h"

/* Characters of what may be long. An error has what is left of the terminal's line, but so many at least; and without
 * a terminal ERROR_ROOM. */
enum { NAME_ROOM = 40, ERROR_ROOM = 80, ERROR_LEAST = 20 };

enum { DEAD_ID, ID, TOPIC, KEY, TYPE, ATTEMPTS, DIED_AT, AGE_US, ERROR, BYTES, UNKNOWN };

/* ---- Pieces ---- */

static sl_str text_of(const sl_val *v)
{
    return v->null ? SL_NONE : v->s;
}

/* An adopted table may have NULLs, which are read as empty. */
static sl_str text_or_empty(const sl_val *v)
{
    return v->null ? SL_STR("") : v->s;
}

static void put_text_or_null(sl_buf *out, const sl_val *v)
{
    if (v->null)
        sl_buf_puts(out, "null");
    else
        sl_json_string(out, v->s);
}

/* ---- list ---- */

void sl_dead_page_begin(sl_dead_page *p, bool json)
{
    p->json = json;
    p->width = sl_terminal_width(stdout);
    sl_table_begin(&p->rows, ">dead_id|>id|topic|key|>attempts|>age|sent|error");
}

static void add_json(sl_dead_page *p, const sl_val *c)
{
    sl_buf *out = &p->out;
    sl_buf_printf(out, "%s{\"dead_id\":%lld,\"id\":%lld,\"topic\":", p->shown ? "," : "",
                  (long long)c[DEAD_ID].i, (long long)c[ID].i);
    put_text_or_null(out, &c[TOPIC]);
    sl_buf_puts(out, ",\"key\":");
    put_text_or_null(out, &c[KEY]);
    sl_buf_puts(out, ",\"type\":");
    sl_json_string(out, text_or_empty(&c[TYPE]));
    sl_buf_printf(out, ",\"attempts\":%lld,\"died_at\":", (long long)c[ATTEMPTS].i);
    put_text_or_null(out, &c[DIED_AT]);
    sl_buf_printf(out, ",\"age_seconds\":%.3f,\"error\":", (double)c[AGE_US].i / 1e6);
    put_text_or_null(out, &c[ERROR]);
    sl_buf_printf(out, ",\"payload_bytes\":%lld,\"unknown\":%s}", (long long)c[BYTES].i,
                  c[UNKNOWN].i ? "true" : "false");
}

static void put_cell(sl_table *t, const sl_val *v, size_t room)
{
    sl_table_cell_cut(t, v->null ? SL_STR("-") : v->s, room);
}

static void add_cells(sl_dead_page *p, const sl_val *c)
{
    sl_buf age = { 0 };
    sl_table_cell(&p->rows, "%lld", (long long)c[DEAD_ID].i);
    sl_table_cell(&p->rows, "%lld", (long long)c[ID].i);
    put_cell(&p->rows, &c[TOPIC], NAME_ROOM);
    put_cell(&p->rows, &c[KEY], NAME_ROOM);
    sl_table_cell(&p->rows, "%lld", (long long)c[ATTEMPTS].i);
    sl_who_time(&age, c[AGE_US].i > 0 ? c[AGE_US].i : 0);
    sl_table_cell(&p->rows, "%s", sl_buf_text(&age));
    sl_table_cell(&p->rows, "%s", c[UNKNOWN].i ? "maybe" : "-");
    put_cell(&p->rows, &c[ERROR], p->width ? SIZE_MAX : ERROR_ROOM);
    sl_buf_fini(&age);
}

sl_rc sl_dead_page_row(void *page, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_dead_page *p = page;
    (p->json ? add_json : add_cells)(p, cols);
    p->shown++;
    return SL_OK;
}

/* "5 of 17 dead letters match; the newest 2 are shown" */
static void print_counts(const sl_dead_page *p, FILE *out)
{
    long long matching = p->counts.matching, total = p->counts.total;
    if (total == 0)
        fprintf(out, "no dead letters in table %s\n", p->table);
    else if (p->filtered)
        fprintf(out, "%lld of %lld dead letter%s of table %s match%s", matching, total,
                total == 1 ? "" : "s", p->table, matching == 1 ? "es" : "");
    else
        fprintf(out, "%lld dead letter%s in table %s", total, total == 1 ? "" : "s", p->table);
    if (total)
        fprintf(out, (int64_t)p->shown < matching ? "; the newest %zu are shown\n" : "\n",
                p->shown);
}

void sl_dead_page_print(sl_dead_page *p, FILE *out)
{
    if (p->json) {
        sl_buf head = { 0 };
        sl_json_string(&head, sl_str_of(p->table));
        fprintf(out, "{\"table\":%s,\"total\":%lld,\"matching\":%lld,\"dead_letters\":[%s]}\n",
                sl_buf_text(&head), (long long)p->counts.total, (long long)p->counts.matching,
                sl_buf_text(&p->out));
        sl_buf_fini(&head);
        return;
    }
    if (p->shown) {
        if (p->width)
            sl_table_fit(&p->rows, p->width, ERROR_LEAST);
        sl_table_print(&p->rows, out);
        fputc('\n', out);
    }
    print_counts(p, out);
}

void sl_dead_page_fini(sl_dead_page *p)
{
    sl_table_fini(&p->rows);
    sl_buf_fini(&p->out);
}

/* ---- show ---- */

enum {
    S_DEAD_ID,
    S_ID,
    S_TOPIC,
    S_KEY,
    S_TYPE,
    S_PAYLOAD,
    S_CONTENT_TYPE,
    S_HEADERS,
    S_IDEMPOTENCY_KEY,
    S_CREATED_AT,
    S_DIED_AT,
    S_AGE_US,
    S_ATTEMPTS,
    S_ERROR,
    S_EPOCH,
    S_UNKNOWN
};

static sl_msg message_of(const sl_val *c)
{
    return (sl_msg){ .topic = text_or_empty(&c[S_TOPIC]),
                     .key = text_of(&c[S_KEY]),
                     .type = text_or_empty(&c[S_TYPE]),
                     .content_type = text_or_empty(&c[S_CONTENT_TYPE]),
                     .headers = text_of(&c[S_HEADERS]),
                     .payload = text_of(&c[S_PAYLOAD]) };
}

sl_rc sl_dead_show_json(void *buf, const sl_val *c, sl_err *err)
{
    (void)err;
    sl_buf *out = buf;
    sl_msg m = message_of(c);
    sl_buf_printf(out, "{\"dead_id\":%lld,\"id\":%lld,", (long long)c[S_DEAD_ID].i,
                  (long long)c[S_ID].i);
    sl_format_members(out, &m);
    sl_buf_puts(out, ",\"idempotency_key\":");
    put_text_or_null(out, &c[S_IDEMPOTENCY_KEY]);
    sl_buf_puts(out, ",\"created_at\":");
    put_text_or_null(out, &c[S_CREATED_AT]);
    sl_buf_puts(out, ",\"died_at\":");
    put_text_or_null(out, &c[S_DIED_AT]);
    sl_buf_printf(out, ",\"age_seconds\":%.3f,\"attempts\":%lld,\"error\":",
                  (double)c[S_AGE_US].i / 1e6, (long long)c[S_ATTEMPTS].i);
    put_text_or_null(out, &c[S_ERROR]);
    sl_buf_printf(out, ",\"epoch\":%lld,\"unknown\":%s}\n", (long long)c[S_EPOCH].i,
                  c[S_UNKNOWN].i ? "true" : "false");
    return SL_OK;
}

/* What a terminal would obey becomes a question mark, as in a table. */
static void put_line(sl_buf *out, const char *name, sl_str text)
{
    sl_buf_printf(out, "%-15s  ", name);
    size_t begun = out->n;
    sl_buf_put(out, text.p ? text.p : "-", text.p ? text.n : 1);
    for (char *p = out->p + begun; p < out->p + out->n; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    sl_buf_putc(out, '\n');
}

static void put_number(sl_buf *out, const char *name, int64_t n)
{
    sl_buf_printf(out, "%-15s  %lld\n", name, (long long)n);
}

/* The payload is written as in JSON, under the name that it has there. */
static void put_payload(sl_buf *out, const sl_msg *m)
{
    sl_buf json = { 0 };
    sl_format_payload(&json, m);
    char *value = strchr(json.p, ':') + 1;
    value[-2] = '\0'; /* the name's second quote */
    put_line(out, json.p + 1, (sl_str){ value, json.n - (size_t)(value - json.p) });
    sl_buf_fini(&json);
}

sl_rc sl_dead_show_text(void *buf, const sl_val *c, sl_err *err)
{
    (void)err;
    sl_buf *out = buf;
    sl_msg m = message_of(c);
    sl_buf died = { 0 };
    put_number(out, "dead_id", c[S_DEAD_ID].i);
    put_number(out, "id", c[S_ID].i);
    put_line(out, "topic", text_of(&c[S_TOPIC]));
    put_line(out, "key", m.key);
    put_line(out, "type", text_of(&c[S_TYPE]));
    put_line(out, "content_type", text_of(&c[S_CONTENT_TYPE]));
    put_line(out, "idempotency_key", text_of(&c[S_IDEMPOTENCY_KEY]));
    put_line(out, "created_at", text_of(&c[S_CREATED_AT]));
    sl_buf_put(&died, c[S_DIED_AT].s.p, c[S_DIED_AT].null ? 0 : c[S_DIED_AT].s.n);
    sl_buf_puts(&died, ", ");
    sl_who_time(&died, c[S_AGE_US].i > 0 ? c[S_AGE_US].i : 0);
    sl_buf_puts(&died, " ago");
    put_line(out, "died_at", (sl_str){ died.p, died.n });
    put_number(out, "attempts", c[S_ATTEMPTS].i);
    put_line(out, "error", text_of(&c[S_ERROR]));
    put_number(out, "epoch", c[S_EPOCH].i);
    put_line(out, "sent", c[S_UNKNOWN].i ? SL_STR("maybe") : SL_NONE);
    put_line(out, "headers", m.headers);
    put_payload(out, &m);
    sl_buf_fini(&died);
    return SL_OK;
}
