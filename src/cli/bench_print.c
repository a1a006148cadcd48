/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_print.h"

#include "cli/table.h"

#include <jansson.h>
#include <sluice/sluice.h>
#include <unistd.h>

/* A figure of a row: how it is called, and how many digits it needs. */
typedef struct figure {
    const char *head; /* NULL: the scenario's word */
    const char *name; /* in JSON */
    size_t offset;
    int digits;
    double unit; /* divides it in the table */
} figure;

#define AT(member) offsetof(sl_bench_row, member)

static const figure figures[] = {
    { "messages/s", "per_second", AT(rate), 0, 1 },
    { NULL, "compared_with", AT(other), 0, 1 },
    { "ratio", "ratio", AT(ratio), 2, 1 },
    { "p50 ms", "p50_ms", AT(p50), 2, 1 },
    { "p99 ms", "p99_ms", AT(p99), 2, 1 },
    { "p99.9 ms", "p999_ms", AT(p999), 2, 1 },
    { "statements", "statements_per_message", AT(statements), 4, 1 },
    { "WAL bytes", "wal_bytes_per_message", AT(wal_bytes), 0, 1 },
    { "dead rows", "dead_rows_per_message", AT(dead_rows), 3, 1 },
    { "cpu s/M", "cpu_seconds_per_million", AT(node_cpu), 1, 1 },
    { "db cpu s/M", "db_cpu_seconds_per_million", AT(db_cpu), 1, 1 },
    { "memory MB", "memory_bytes", AT(memory), 1, 1e6 },
};

enum { FIGURES = sizeof figures / sizeof *figures };

static double value_of(const sl_bench_row *row, const figure *f)
{
    return *(const double *)((const char *)row + f->offset);
}

static bool is_known(const sl_bench_row *rows, size_t count, const figure *f)
{
    for (size_t i = 0; i < count; i++)
        if (value_of(&rows[i], f) >= 0)
            return true;
    return false;
}

/* 1,234,567: figures of this size are read by people. */
static void put_whole(char *out, size_t room, double v)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", v);
    size_t n = strlen(digits);
    size_t at = 0;
    for (size_t i = 0; i < n && at + 2 < room; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

/* Not a number, of a stretch without a message, is none, too. */
static void put_cell(sl_table *t, const figure *f, double v)
{
    char text[48];
    if (!(v >= 0))
        snprintf(text, sizeof text, "-");
    else if (f->digits == 0)
        put_whole(text, sizeof text, v / f->unit);
    else
        snprintf(text, sizeof text, "%.*f", f->digits, v / f->unit);
    sl_table_cell(t, "%s", text);
}

void sl_bench_print_table(const sl_scene *scene, const sl_bench_row *rows, size_t count,
                          FILE *out)
{
    sl_table t = { 0 };
    sl_buf heads = { 0 };
    sl_buf_printf(&heads, "%s|>messages", scene->name);
    for (size_t f = 0; f < FIGURES; f++)
        if (is_known(rows, count, &figures[f]))
            sl_buf_printf(&heads, "|>%s", figures[f].head ? figures[f].head : scene->other);
    sl_table_begin(&t, sl_buf_text(&heads));
    for (size_t i = 0; i < count; i++) {
        char messages[32];
        put_whole(messages, sizeof messages, (double)rows[i].messages);
        sl_table_cell(&t, "%s", rows[i].name);
        sl_table_cell(&t, "%s", messages);
        for (size_t f = 0; f < FIGURES; f++)
            if (is_known(rows, count, &figures[f]))
                put_cell(&t, &figures[f], value_of(&rows[i], &figures[f]));
    }
    sl_table_print(&t, out);
    sl_table_fini(&t);
    sl_buf_fini(&heads);
}

static json_t *json_of(const sl_bench_row *row)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(row->name));
    json_object_set_new(o, "messages", json_integer(row->messages));
    for (size_t f = 0; f < FIGURES; f++) {
        double v = value_of(row, &figures[f]);
        json_object_set_new(o, figures[f].name, v >= 0 ? json_real(v) : json_null());
    }
    json_object_set_new(o, "reached",
                        row->reached < 0 ? json_null() : json_boolean(row->reached));
    return o;
}

void sl_bench_print_json(const sl_scene *scene, const char *database, const sl_settings *s,
                         const sl_bench_row *rows, size_t count, FILE *out)
{
    json_t *all = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_of(&rows[i]));
    json_object_set_new(all, "scenario", json_string(scene->name));
    json_object_set_new(all, "version", json_string(sl_version()));
    json_object_set_new(all, "database", json_string(database));
    json_object_set_new(all, "processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(all, "batch", json_integer(s->batch));
    json_object_set_new(all, "compared_with", json_string(scene->other));
    json_object_set_new(all, "rows", list);
    json_dumpf(all, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(all);
}
