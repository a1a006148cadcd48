/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/who.h"

#include "cli/table.h"
#include "core/mem.h"
#include "format/format.h"

/* ---- Reading ---- */

/* Their number may have changed since it was last known. */
static sl_rc read_owners(sl_who *w, sl_db *db, sl_err *err)
{
    size_t room = 64;
    for (;;) {
        w->owners = sl_realloc(w->owners, room * sizeof *w->owners);
        memset(w->owners, 0, room * sizeof *w->owners);
        w->lanes = room;
        sl_rc rc = sl_lanes_list(db, w->owners, &w->lanes, err);
        if (rc != SL_OK)
            w->lanes = 0;
        if (rc != SL_OK || w->lanes <= room)
            return rc;
        room = w->lanes;
    }
}

static sl_holder *holder_named(sl_who *w, sl_str name)
{
    for (size_t i = 0; i < w->holder_count; i++)
        if (sl_str_eq(sl_str_of(w->holders[i].worker), name))
            return &w->holders[i];
    w->holders = sl_realloc(w->holders, (w->holder_count + 1) * sizeof *w->holders);
    sl_holder *h = &w->holders[w->holder_count++];
    *h = (sl_holder){ .worker = sl_strndup(name.p, name.n) };
    return h;
}

static sl_holder *holder_of_row(sl_who *w, const sl_val *cols)
{
    sl_holder *h = holder_named(w, cols[0].null ? SL_STR("?") : cols[0].s);
    h->left_us = cols[2].i > h->left_us ? cols[2].i : h->left_us;
    return h;
}

static sl_rc add_messages(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    holder_of_row(ctx, cols)->messages += cols[1].i;
    return SL_OK;
}

static sl_rc add_keys(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    holder_of_row(ctx, cols)->keys += cols[1].i;
    return SL_OK;
}

static sl_rc read_blocked(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    ((sl_who *)ctx)->blocked = cols[0].i;
    ((sl_who *)ctx)->parked = cols[1].i;
    return SL_OK;
}

sl_rc sl_who_read_lanes(sl_who *w, sl_db *db, sl_err *err)
{
    sl_who_fini(w);
    sl_rc rc = sl_nodes_list(db, &w->nodes, err);
    return rc == SL_OK ? read_owners(w, db, err) : rc;
}

sl_rc sl_who_read(sl_who *w, sl_db *db, sl_err *err)
{
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "status/workers"), .row = add_messages, .ctx = w },
        { .stmt = sl_db_stmt(db, "status/claims"), .row = add_keys, .ctx = w },
        { .stmt = sl_db_stmt(db, "status/blocked"), .row = read_blocked, .ctx = w },
    };
    sl_rc rc = sl_who_read_lanes(w, db, err);
    if (rc == SL_OK)
        rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    return rc;
}

void sl_who_fini(sl_who *w)
{
    for (size_t i = 0; i < w->holder_count; i++)
        free(w->holders[i].worker);
    free(w->holders);
    free(w->owners);
    sl_node_list_fini(&w->nodes);
    *w = (sl_who){ 0 };
}

/* ---- Lanes ---- */

size_t sl_who_owns(const sl_who *w, int64_t session)
{
    size_t n = 0;
    for (size_t i = 0; i < w->lanes; i++)
        n += w->owners[i] == session;
    return n;
}

/* The next run of lanes from *lane on; false: there is none. */
static bool next_run(const sl_who *w, int64_t session, size_t *lane, size_t *last)
{
    while (*lane < w->lanes && w->owners[*lane] != session)
        ++*lane;
    for (*last = *lane; *last + 1 < w->lanes && w->owners[*last + 1] == session;)
        ++*last;
    return *lane < w->lanes;
}

void sl_who_ranges(const sl_who *w, int64_t session, size_t room, sl_buf *out)
{
    static const char more[] = "...";
    size_t begun = out->n;
    size_t whole = out->n; /* up to here it fits with the dots */
    size_t last;
    for (size_t lane = 0; next_run(w, session, &lane, &last); lane = last + 1) {
        if (out->n > begun)
            sl_buf_putc(out, ',');
        if (out->n - begun + strlen(more) <= room)
            whole = out->n;
        sl_buf_printf(out, last > lane ? "%zu-%zu" : "%zu", lane, last);
        if (out->n - begun > room) {
            out->n = whole;
            sl_buf_puts(out, more);
            return;
        }
    }
}

void sl_who_lanes_json(const sl_who *w, int64_t session, sl_buf *out)
{
    const char *comma = "";
    sl_buf_putc(out, '[');
    for (size_t i = 0; i < w->lanes; i++)
        if (w->owners[i] == session) {
            sl_buf_printf(out, "%s%zu", comma, i);
            comma = ",";
        }
    sl_buf_putc(out, ']');
}

/* ---- Holders ---- */

void sl_who_holders_json(const sl_who *w, sl_buf *out)
{
    sl_buf_putc(out, '[');
    for (size_t i = 0; i < w->holder_count; i++) {
        const sl_holder *h = &w->holders[i];
        sl_buf_puts(out, i ? ",{\"worker\":" : "{\"worker\":");
        sl_json_string(out, sl_str_of(h->worker));
        sl_buf_printf(out, ",\"messages\":%lld,\"keys\":%lld,\"lease_seconds\":%.3f}",
                      (long long)h->messages, (long long)h->keys, (double)h->left_us / 1e6);
    }
    sl_buf_putc(out, ']');
}

void sl_who_print_holders(const sl_who *w, FILE *out)
{
    sl_table t = { 0 };
    if (w->holder_count == 0)
        return;
    sl_table_begin(&t, "worker|>messages|>keys|>lease ends");
    for (size_t i = 0; i < w->holder_count; i++) {
        const sl_holder *h = &w->holders[i];
        sl_table_cell(&t, "%s", h->worker);
        sl_table_cell(&t, "%lld", (long long)h->messages);
        sl_table_cell(&t, "%lld", (long long)h->keys);
        sl_table_cell(&t, "%.1f s", (double)h->left_us / 1e6);
    }
    fputc('\n', out);
    sl_table_print(&t, out);
    sl_table_fini(&t);
}

/* ---- Nodes ---- */

size_t sl_who_alive(const sl_who *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->nodes.count; i++)
        n += w->nodes.v[i].left_us > 0;
    return n;
}

const char *sl_who_strategy(const sl_who *w)
{
    return w->nodes.count ? w->nodes.v[w->nodes.count - 1].strategy : NULL;
}

int64_t sl_who_per_second(const sl_who *w)
{
    int64_t sum = 0;
    for (size_t i = 0; i < w->nodes.count; i++)
        sum += w->nodes.v[i].left_us > 0 ? w->nodes.v[i].per_second : 0;
    return sum;
}

void sl_who_time(sl_buf *out, int64_t us)
{
    long long s = us / 1000000;
    if (us < 60000000)
        sl_buf_printf(out, "%.1f s", (double)us / 1e6);
    else if (s < 3600)
        sl_buf_printf(out, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        sl_buf_printf(out, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        sl_buf_printf(out, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}
