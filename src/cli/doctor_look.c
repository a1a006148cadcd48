/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_look.h"

#include "cli/doctor_faults.h"
#include "cli/doctor_sink.h"
#include "cli/who.h"
#include "core/clock.h"
#include "core/mem.h"
#include "lib/conf.h"
#include "sink/sink.h"

#include <stdlib.h>

enum { SESSIONS_SHOWN = 5, RANGES_ROOM = 40 };
enum { SAMPLE = 5000 }; /* of doctor/targets */

char *sl_look_text(sl_val v)
{
    return sl_strndup(v.s.p ? v.s.p : "", v.s.n);
}

sl_rc sl_look_ask(sl_looking *l, const char *stmt, sl_row_fn row, void *ctx, sl_err *err)
{
    return sl_db_run1(l->db, stmt, NULL, row, ctx, NULL, err);
}

/* ---- The server ---- */

static sl_rc judge_server(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_findings *out = ctx;
    sl_judge_library(out, "server", "postgres", cols[0].i);
    sl_judge_standby(out, cols[2].i != 0);
    return SL_OK;
}

static sl_rc look_server(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/server", judge_server, l->out, err);
}

/* What is linked for this database, and for the sinks. */
static sl_rc look_libraries(sl_looking *l, sl_err *err)
{
    (void)err;
    const sl_db_ops *ops = l->db->ops;
    sl_judge_library(l->out, "library", ops->library, ops->library_version());
    for (const sl_sink_ops *const *s = sl_sink_all; *s; s++)
        if ((*s)->library)
            sl_judge_library(l->out, "library", (*s)->library, (*s)->library_version());
    return SL_OK;
}

static sl_rc judge_durability(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    char *commit = sl_look_text(cols[2]);
    sl_judge_durability(ctx, cols[0].i != 0, cols[1].i != 0, commit);
    free(commit);
    return SL_OK;
}

static sl_rc look_durability(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/durability", judge_durability, l->out, err);
}

static sl_rc note_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

/* While a second session has a transaction open, and with it a process of the server, this session's next
 * transaction goes to another one, if there is a pooler that gives processes to transactions. */
static sl_rc look_pooler(sl_looking *l, sl_err *err)
{
    int64_t first = 0, second = 0, other = 0;
    sl_db *db = NULL;
    sl_rc rc = sl_look_ask(l, "doctor/backend", note_int, &first, err);
    if (rc != SL_OK || !first)
        return rc;
    rc = sl_conf_look_db(&db, l->look->settings, l->look->names, err);
    if (rc != SL_OK)
        return rc;
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "doctor/backend"), .row = note_int, .ctx = &other }
    };
    rc = db->ops->run(db, calls, 2, err);
    second = first;
    if (rc == SL_OK && other != first) /* else it is clear already, and might be the only one */
        rc = sl_look_ask(l, "doctor/backend", note_int, &second, err);
    if (rc == SL_OK)
        sl_judge_pooler(l->out, first, second, other);
    db->ops->rollback(db);
    sl_db_close(db);
    return rc;
}

/* The best of a few: the shortest round trip tells most. */
static sl_rc look_clock(sl_looking *l, sl_err *err)
{
    int64_t best = INT64_MAX, ahead = 0;
    for (int i = 0; i < 3; i++) {
        int64_t theirs = 0;
        int64_t begun = sl_now_ns(), wall = sl_wall_us();
        sl_rc rc = sl_look_ask(l, "doctor/clock", note_int, &theirs, err);
        int64_t took = (sl_now_ns() - begun) / 1000;
        if (rc != SL_OK || !theirs)
            return rc;
        if (took < best) {
            best = took;
            ahead = theirs - (wall + took / 2);
        }
    }
    sl_judge_clock(l->out, ahead, best);
    return SL_OK;
}

static sl_rc judge_connections(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    sl_judge_connections(l->out,
                         &(sl_seats){ cols[0].i, cols[1].i, cols[2].i, cols[3].i, cols[4].i },
                         &l->look->norms);
    return SL_OK;
}

static sl_rc look_connections(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/connections", judge_connections, l, err);
}

static sl_rc judge_locks(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    const char *strategy = sl_who_strategy(&l->who);
    int64_t workers = 0;
    for (size_t i = 0; i < l->who.nodes.count; i++)
        workers += l->who.nodes.v[i].left_us > 0 ? l->who.nodes.v[i].workers : 0;
    sl_judge_locks(l->out, cols[0].i, cols[1].i, strategy ? strategy : "", workers,
                   &l->look->norms);
    return SL_OK;
}

/* For verdicts that depend on it; where there are no tables, nobody lives. */
static sl_rc need_who(const sl_looking *l, sl_err *err)
{
    if (l->who_known || !l->ours)
        return SL_OK;
    return sl_fail(err, SL_OPERATOR, "who lives could not be read");
}

static sl_rc look_locks(sl_looking *l, sl_err *err)
{
    sl_rc rc = need_who(l, err);
    if (rc != SL_OK)
        return rc;
    return sl_look_ask(l, "doctor/locks", judge_locks, l, err);
}

/* ---- What keeps dead rows alive ---- */

typedef struct session_rows {
    sl_looking *l;
    size_t old, hidden;
} session_rows;

static sl_rc judge_session(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    session_rows *rows = ctx;
    if (cols[6].i) {
        rows->hidden++;
        return SL_OK;
    }
    char *app = sl_look_text(cols[1]), *user = sl_look_text(cols[2]),
         *state = sl_look_text(cols[3]);
    sl_session_fact f = { cols[0].i, app, user, state, cols[4].i, cols[5].i != 0 };
    if (rows->old < SESSIONS_SHOWN)
        rows->old += sl_judge_session(rows->l->out, &f, &rows->l->look->norms);
    free(app);
    free(user);
    free(state);
    return SL_OK;
}

static sl_rc look_sessions(sl_looking *l, sl_err *err)
{
    session_rows rows = { .l = l };
    sl_rc rc = sl_look_ask(l, "doctor/sessions", judge_session, &rows, err);
    if (rc == SL_OK && !strcmp(l->db->ops->name, "postgres"))
        sl_judge_sessions(l->out, rows.old, rows.hidden, &l->look->norms);
    return rc;
}

static sl_rc judge_prepared(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    char *gid = sl_look_text(cols[0]), *owner = sl_look_text(cols[1]);
    sl_judge_prepared(l->out, gid, owner, cols[2].i, &l->look->norms);
    free(gid);
    free(owner);
    return SL_OK;
}

/* Where there is such a thing at all, nothing found is a finding. */
static void fine_if_silent(sl_looking *l, size_t before, const char *check, const char *text)
{
    if (l->out->count == before && !strcmp(l->db->ops->name, "postgres"))
        sl_found(l->out, SL_FINE, check, "%s", text);
}

static sl_rc look_prepared(sl_looking *l, sl_err *err)
{
    size_t before = l->out->count;
    sl_rc rc = sl_look_ask(l, "doctor/prepared", judge_prepared, l, err);
    if (rc == SL_OK)
        fine_if_silent(l, before, "prepared", "no prepared transaction");
    return rc;
}

static sl_rc judge_replica(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    char *kind = sl_look_text(cols[0]), *name = sl_look_text(cols[1]);
    sl_replica_fact f = { kind, name, cols[2].i != 0, cols[3].i, cols[4].i };
    sl_judge_replica(ctx, &f);
    free(kind);
    free(name);
    return SL_OK;
}

static sl_rc look_replication(sl_looking *l, sl_err *err)
{
    size_t before = l->out->count;
    sl_rc rc = sl_look_ask(l, "doctor/replication", judge_replica, l->out, err);
    if (rc == SL_OK)
        fine_if_silent(l, before, "replication", "no slot or standby holds anything back");
    return rc;
}

/* ---- Vacuum and size ---- */

static sl_rc judge_autovacuum(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_vacuum_fact f = { cols[0].i != 0, cols[1].i != 0, cols[2].i,
                         cols[3].i,      cols[4].i,      cols[5].i };
    sl_judge_autovacuum(ctx, &f);
    return SL_OK;
}

static sl_rc look_autovacuum(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/autovacuum", judge_autovacuum, l->out, err);
}

static sl_rc judge_table(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    char *name = sl_look_text(cols[0]);
    sl_table_fact f = {
        .name = name,
        .live = cols[1].i,
        .dead = cols[2].i,
        .heap_bytes = cols[3].i,
        .index_bytes = cols[4].i,
        .indexes = cols[5].i,
        .row_bytes = cols[6].i,
        .fill = cols[7].i,
        .enabled = cols[8].i != 0,
        .vacuumed = cols[9].i != 0,
    };
    sl_judge_table(ctx, &f);
    free(name);
    return SL_OK;
}

static sl_rc look_tables(sl_looking *l, sl_err *err)
{
    size_t before = l->out->count;
    sl_rc rc = sl_look_ask(l, "doctor/tables", judge_table, l->out, err);
    if (rc == SL_OK)
        fine_if_silent(l, before, "tables", "as large as their rows need, few of them dead");
    return rc;
}

static const char *path_of(const sl_looking *l)
{
    return l->look->settings->db + strlen("sqlite:");
}

static sl_rc look_file(sl_looking *l, sl_err *err)
{
    (void)err;
    sl_lite_file f;
    if (strcmp(l->db->ops->name, "sqlite") != 0)
        return SL_OK;
    sl_lite_file_look(path_of(l), &f);
    sl_judge_file(l->out, path_of(l), &f);
    return SL_OK;
}

static sl_rc judge_journal(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    char *mode = sl_look_text(cols[0]);
    sl_judge_journal(l->out, path_of(l), mode);
    free(mode);
    return SL_OK;
}

static sl_rc look_journal(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/journal", judge_journal, l, err);
}

static sl_rc judge_pages(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    sl_judge_pages(l->out, path_of(l), cols[0].i, cols[1].i, cols[2].i);
    return SL_OK;
}

static sl_rc look_pages(sl_looking *l, sl_err *err)
{
    return sl_look_ask(l, "doctor/pages", judge_pages, l, err);
}

static sl_rc judge_integrity(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_looking *l = ctx;
    char *complaint = sl_look_text(cols[0]);
    sl_judge_integrity(l->out, path_of(l), complaint);
    free(complaint);
    return SL_OK;
}

/* A file may be so broken that the check itself fails: that is its answer. */
static sl_rc look_integrity(sl_looking *l, sl_err *err)
{
    size_t before = l->out->count;
    if (!l->look->deep)
        return SL_OK;
    sl_rc rc = sl_look_ask(l, "doctor/integrity", judge_integrity, l, err);
    if (rc != SL_OPERATOR)
        return rc;
    if (l->out->count == before)
        sl_judge_integrity(l->out, path_of(l), err->text);
    return SL_OK;
}

/* ---- Nodes and messages ---- */

static sl_rc look_nodes(sl_looking *l, sl_err *err)
{
    sl_buf names = { 0 };
    size_t over = 0;
    int64_t longest = 0;
    sl_rc rc = sl_nodes_list(l->db, &l->who.nodes, err);
    l->who_known = rc == SL_OK;
    for (size_t i = 0; rc == SL_OK && i < l->who.nodes.count; i++) {
        const sl_node_row *n = &l->who.nodes.v[i];
        if (n->left_us > 0)
            continue;
        sl_buf_printf(&names, "%s%.80s", over ? ", " : "", n->node);
        longest = -n->left_us > longest ? -n->left_us : longest;
        over++;
    }
    if (rc == SL_OK)
        sl_judge_nodes(l->out, sl_who_alive(&l->who), over, sl_buf_text(&names), longest);
    sl_buf_fini(&names);
    return rc;
}

/* Free lanes are of no interest where nobody lives, or by another strategy, whose nodes need not even have
 * the right to see them. */
static sl_rc look_lanes(sl_looking *l, sl_err *err)
{
    sl_buf which = { 0 };
    sl_who w = { 0 };
    if (!sl_who_alive(&l->who) || strcmp(sl_who_strategy(&l->who), "lanes") != 0)
        return SL_OK;
    sl_rc rc = sl_who_read_lanes(&w, l->db, err);
    if (rc == SL_OK && sl_who_alive(&w)) {
        sl_who_ranges(&w, 0, RANGES_ROOM, &which);
        sl_judge_lanes(l->out, w.lanes, sl_who_owns(&w, 0), sl_buf_text(&which),
                       w.nodes.v[w.nodes.count - 1].age_us);
    }
    sl_buf_fini(&which);
    sl_who_fini(&w);
    return rc;
}

typedef struct key_rows {
    sl_looking *l;
    bool seen;
} key_rows;

static sl_rc judge_key(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    key_rows *rows = ctx;
    char *key = sl_look_text(cols[1]), *reason = sl_look_text(cols[3]);
    rows->seen = true;
    sl_judge_keys(rows->l->out, &(sl_key_fact){ .keys = cols[0].i,
                                                .key = key,
                                                .reason = reason,
                                                .head = cols[2].i,
                                                .age_us = cols[4].i,
                                                .parked = cols[5].i != 0 });
    free(key);
    free(reason);
    return SL_OK;
}

static sl_rc look_keys(sl_looking *l, sl_err *err)
{
    key_rows rows = { .l = l };
    sl_rc rc = sl_look_ask(l, "doctor/keys", judge_key, &rows, err);
    if (rc == SL_OK && !rows.seen)
        sl_judge_keys(l->out, &(sl_key_fact){ .keys = 0 });
    return rc;
}

typedef struct oldest {
    int64_t id, age_us;
    char *topic;
} oldest;

static sl_rc note_oldest(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(oldest *)ctx = (oldest){ cols[0].i, cols[2].i, sl_look_text(cols[1]) };
    return SL_OK;
}

static sl_rc look_waiting(sl_looking *l, sl_err *err)
{
    oldest o = { 0 };
    sl_rc rc = need_who(l, err);
    if (rc == SL_OK)
        rc = sl_look_ask(l, "doctor/waiting", note_oldest, &o, err);
    if (rc == SL_OK)
        sl_judge_waiting(l->out, o.id, o.topic ? o.topic : "", o.age_us, sl_who_alive(&l->who),
                         &l->look->norms);
    free(o.topic);
    return rc;
}

/* ---- The other side ---- */

static sl_rc note_wait(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_waits_add(ctx, cols[0].s, cols[1].s, cols[2].i, cols[3].i, cols[4].i);
    return SL_OK;
}

static sl_rc look_sinks(sl_looking *l, sl_err *err)
{
    sl_waits waits = { 0 };
    if (!l->look->sinks)
        return SL_OK;
    sl_rc rc = l->ours ? sl_look_ask(l, "doctor/targets", note_wait, &waits, err) : SL_OK;
    if (rc == SL_OK)
        rc = sl_doctor_sinks(l->look->settings, l->look->sink_url, &waits, l->out, err);
    if (rc == SL_OK && waits.messages >= SAMPLE)
        sl_found(l->out, SL_FINE, "sink",
                 "of what waits, only the %d messages with the lowest ids were looked at",
                 SAMPLE);
    sl_waits_fini(&waits);
    return rc;
}

/* ---- All of it ---- */

/* In the order in which they are shown. Those that read our tables are left out where there are none. */
static const struct {
    const char *name;
    sl_rc (*look)(sl_looking *l, sl_err *err);
    bool ours;
} checks[] = {
    { "file", look_file, false },
    { "journal", look_journal, false },
    { "schema", sl_look_schema, false },
    { "columns", sl_look_columns, true },
    { "capture", sl_look_capture, true },
    { "indexes", sl_look_indexes, true },
    { "grants", sl_look_grants, true },
    { "server", look_server, false },
    { "library", look_libraries, false },
    { "durability", look_durability, false },
    { "pooler", look_pooler, false },
    { "clock", look_clock, false },
    { "nodes", look_nodes, true },
    { "lanes", look_lanes, true },
    { "locks", look_locks, false },
    { "connections", look_connections, false },
    { "transactions", look_sessions, false },
    { "prepared", look_prepared, false },
    { "replication", look_replication, false },
    { "autovacuum", look_autovacuum, false },
    { "tables", look_tables, true },
    { "pages", look_pages, false },
    { "integrity", look_integrity, false },
    { "keys", look_keys, true },
    { "waiting", look_waiting, true },
    { "sink", look_sinks, false },
};

sl_rc sl_look_all(const sl_look *look, sl_findings *out, sl_err *err)
{
    sl_looking l = { .look = look, .db = look->db, .out = out };
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < sizeof checks / sizeof checks[0]; i++) {
        sl_err why = { 0 };
        if (checks[i].ours && !l.ours)
            continue;
        sl_rc got = checks[i].look(&l, &why);
        if (got == SL_NEWER || (got == SL_AGAIN && !l.db->ops->alive(l.db))) {
            *err = why;
            rc = got;
        } else if (got != SL_OK) {
            sl_found_unseen(out, checks[i].name, &why);
        }
    }
    sl_who_fini(&l.who);
    return rc;
}
