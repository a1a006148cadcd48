/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_judge.h"

#include "cli/who.h"

#define SECOND INT64_C(1000000) /* times here are microseconds, as in SQL */
#define HOUR (3600 * SECOND)
#define MB (INT64_C(1) << 20)
#define GB (INT64_C(1) << 30)

/* The thresholds. docs/operating.md lists them. */
#define OLD_IS_BAD 10            /* times --old */
#define CLOCK_WARN (2 * SECOND)  /* logs of two machines no longer tell what came first */
#define CLOCK_BAD (300 * SECOND) /* available_at that producers write is wrong by minutes */
#define XIDS_WARN INT64_C(100000)
#define XIDS_BAD INT64_C(10000000)
#define WAL_KEPT_WARN (1 * GB)
#define FROZEN_BAD INT64_C(1500000000) /* the server stops at 2,000,000,000 and some */
#define DEAD_WARN INT64_C(50000)
#define DEAD_BAD INT64_C(1000000)
#define BLOAT_WARN (32 * MB)
#define BLOAT_BAD (2 * GB)
#define BLOAT_TIMES 4
#define ROW_OVERHEAD 28 /* the row's header and its pointer */
#define ROW_GUESS 400   /* where no statistics are */
#define INDEX_ROW 64    /* a key of ours, with its pointer, on pages that are not full */
#define INDEX_EMPTY 16384
#define WAL_WARN (64 * MB) /* SQLite's own checkpoints keep it at 4 MB */
#define WAL_BAD (1 * GB)
#define KEY_WARN (1 * HOUR)
#define KEY_BAD (24 * HOUR)
#define LANES_BAD (60 * SECOND) /* a node that joins has its lanes long before */

typedef struct text {
    char s[40];
} text;

static text of_buf(sl_buf *b)
{
    text t;
    snprintf(t.s, sizeof t.s, "%s", sl_buf_text(b));
    sl_buf_fini(b);
    return t;
}

static text age(int64_t us)
{
    sl_buf b = { 0 };
    sl_who_time(&b, us);
    return of_buf(&b);
}

static text size(int64_t bytes)
{
    sl_buf b = { 0 };
    sl_put_bytes(&b, bytes);
    return of_buf(&b);
}

/* ---- What was made by init ---- */

void sl_judge_schema(sl_findings *out, const char *table, const sl_schema *s)
{
    if (s->version == SL_SCHEMA_VERSION) {
        sl_found(out, SL_FINE, "schema", "table %s, version %lld, %lld lanes", table,
                 (long long)s->version, (long long)s->lanes);
        return;
    }
    if (s->version == 0)
        sl_found(out, SL_BAD, "schema", "table %s %s", table,
                 s->table ? "was not made by sluice init" : "is not there");
    else
        sl_found(out, SL_BAD, "schema", "table %s has version %lld, this program needs %d",
                 table, (long long)s->version, SL_SCHEMA_VERSION);
    sl_advise(out, s->version ? "run 'sluice init' to migrate it" : "run 'sluice init' once");
}

void sl_judge_columns(sl_findings *out, const char *missing)
{
    if (!*missing) {
        sl_found(out, SL_FINE, "columns", "all there");
        return;
    }
    sl_found(out, SL_BAD, "columns", "missing: %s", missing);
    sl_advise(out, "make them as in 'sluice init --print', or check table and columns");
}

void sl_judge_index(sl_findings *out, const char *index, const char *state, const char *remedy)
{
    if (!strcmp(state, "ok"))
        return;
    sl_found(out, SL_BAD, "indexes", "%s is %s", index, state);
    if (!strcmp(state, "invalid"))
        sl_advise(out, "REINDEX INDEX CONCURRENTLY it, or DROP INDEX it if it is a left-over");
    else if (!strncmp(index, "unique index on ", 16))
        sl_advise(
            out,
            "CREATE UNIQUE INDEX CONCURRENTLY: else messages are searched in the whole table");
    else
        sl_advise(out, "%s", remedy ? remedy : "make it as in 'sluice init --print'");
}

void sl_judge_grants(sl_findings *out, const char *role, const char *strategy,
                     const char *missing)
{
    if (!*missing) {
        sl_found(out, SL_FINE, "grants", "role %s has what a node needs", role);
        return;
    }
    sl_found(out, SL_BAD, "grants", "role %s lacks rights that a node of strategy %s needs",
             role, strategy);
    sl_advise(out, "%s", missing);
}

/* ---- The server ---- */

void sl_judge_standby(sl_findings *out, bool standby)
{
    if (!standby)
        return;
    sl_found(out, SL_BAD, "server", "this is a standby: it cannot be written to");
    sl_advise(out, "name the primary, or all hosts of the cluster");
}

void sl_judge_durability(sl_findings *out, bool fsync, bool full_page_writes,
                         const char *synchronous_commit)
{
    size_t before = out->count;
    if (!fsync) {
        sl_found(out, SL_BAD, "durability",
                 "fsync is off: a crash of the machine may destroy the whole database");
        sl_advise(out, "fsync = on, then reload");
    }
    if (!full_page_writes) {
        sl_found(out, SL_BAD, "durability",
                 "full_page_writes is off: a crash of the machine may leave torn pages");
        sl_advise(out, "full_page_writes = on, then reload");
    }
    if (!strcmp(synchronous_commit, "off")) {
        sl_found(out, SL_WARN, "durability",
                 "synchronous_commit is off: a crash forgets what was committed just before, "
                 "and delivers again what was settled");
        sl_advise(out, "synchronous_commit = on, for the producers' and the nodes' roles");
    }
    if (out->count == before)
        sl_found(out, SL_FINE, "durability", "fsync on, synchronous_commit %s",
                 synchronous_commit);
}

void sl_judge_pooler(sl_findings *out, int64_t first, int64_t second, int64_t other)
{
    if (first == second && first != other) {
        sl_found(out, SL_FINE, "pooler", "none that changes the session between transactions");
        return;
    }
    sl_found(out, SL_BAD, "pooler", "a pooler in transaction mode: %s",
             first == other ? "two sessions share one process of the server"
                            : "another process of the server answers the next transaction");
    sl_advise(out, "connect nodes to the server directly, or by a pool in session mode");
}

void sl_judge_clock(sl_findings *out, int64_t ahead_us, int64_t round_trip_us)
{
    int64_t apart = ahead_us < 0 ? -ahead_us : ahead_us;
    int64_t sure = apart - round_trip_us / 2; /* at least so much */
    if (sure < CLOCK_WARN) {
        sl_found(out, SL_FINE, "clock", "at most %s apart", age(apart + round_trip_us / 2).s);
        return;
    }
    sl_found(out, sure >= CLOCK_BAD ? SL_BAD : SL_WARN, "clock",
             "the database's clock is %s %s this machine's", age(apart).s,
             ahead_us > 0 ? "ahead of" : "behind");
    sl_advise(out, "let both follow the same time (NTP), slewed and not stepped");
}

void sl_judge_connections(sl_findings *out, const sl_seats *s, const sl_norms *norms)
{
    int64_t need = norms->workers + 1;
    int64_t left = s->most - s->reserved - s->used;
    int64_t db_left = s->db_most < 0 ? left : s->db_most - s->db_used;
    bool of_db = db_left < left;
    int64_t least = of_db ? db_left : left;
    least = least < 0 ? 0 : least;
    if (least >= need) {
        sl_found(out, SL_FINE, "connections", "%lld of %lld left", (long long)least,
                 (long long)(of_db ? s->db_most : s->most));
        return;
    }
    sl_found(out, least == 0 ? SL_BAD : SL_WARN, "connections",
             "%lld of %lld left, a node with %lld workers needs %lld", (long long)least,
             (long long)(of_db ? s->db_most : s->most), (long long)norms->workers,
             (long long)need);
    sl_advise(out, of_db ? "raise the database's CONNECTION LIMIT, or use fewer"
                         : "raise max_connections, or use fewer: producers may share a pooler");
}

/* A claim locks at most a sixteenth of the room, and never more than a batch. advisory has its locks until
 * the verdict, guard only while it claims; half of the room is everyone else's. */
void sl_judge_locks(sl_findings *out, int64_t each, int64_t sessions, const char *strategy,
                    int64_t workers, const sl_norms *norms)
{
    int64_t room = each * sessions;
    int64_t claim = room / 16 < norms->batch ? room / 16 : norms->batch;
    int64_t worst = claim * workers;
    bool keyed = !strcmp(strategy, "advisory") || !strcmp(strategy, "guard");
    int64_t limit = !strcmp(strategy, "advisory") ? room / 2 : room;
    if (!keyed || worst <= limit) {
        sl_found(out, SL_FINE, "locks", "room for %lld", (long long)room);
        return;
    }
    sl_found(out, worst > room && !strcmp(strategy, "advisory") ? SL_BAD : SL_WARN, "locks",
             "room for %lld; %lld workers of strategy %s may hold %lld", (long long)room,
             (long long)workers, strategy, (long long)worst);
    sl_advise(out, "max_locks_per_transaction = %lld and a restart, or a smaller batch",
              (long long)((2 * norms->batch * workers + sessions - 1) / sessions));
}

/* ---- What keeps dead rows alive ---- */

bool sl_judge_session(sl_findings *out, const sl_session_fact *f, const sl_norms *norms)
{
    if (f->age_us < norms->old_us)
        return false;
    bool bad = f->pins && f->age_us >= OLD_IS_BAD * norms->old_us;
    sl_found(out, bad ? SL_BAD : SL_WARN, "transactions",
             "pid %lld (%s, user %s) is %s, its transaction open for %s%s", (long long)f->pid,
             *f->app ? f->app : "no application_name", f->user, *f->state ? f->state : "?",
             age(f->age_us).s, f->pins ? ": keeps dead rows alive" : "");
    sl_advise(out, "end it: SELECT pg_terminate_backend(%lld); set %s", (long long)f->pid,
              !strncmp(f->state, "idle", 4) ? "idle_in_transaction_session_timeout"
                                            : "statement_timeout for its role");
    return true;
}

void sl_judge_sessions(sl_findings *out, size_t old, size_t hidden, const sl_norms *norms)
{
    if (hidden) {
        sl_found(out, SL_UNSEEN, "transactions", "%zu session%s of other roles cannot be seen",
                 hidden, hidden > 1 ? "s" : "");
        sl_advise(out, "GRANT pg_read_all_stats TO this role");
    } else if (!old) {
        sl_found(out, SL_FINE, "transactions", "none open for %s or longer",
                 age(norms->old_us).s);
    }
}

void sl_judge_prepared(sl_findings *out, const char *gid, const char *owner, int64_t age_us,
                       const sl_norms *norms)
{
    sl_found(out, age_us >= norms->old_us ? SL_BAD : SL_WARN, "prepared",
             "transaction '%s' of %s was prepared %s ago and not ended: keeps dead rows alive",
             gid, owner, age(age_us).s);
    sl_advise(out, "COMMIT PREPARED '%s' or ROLLBACK PREPARED '%s'; whoever prepared it knows",
              gid, gid);
}

bool sl_judge_replica(sl_findings *out, const sl_replica_fact *f)
{
    bool slot = !strcmp(f->kind, "slot");
    if (slot && !f->active && f->xids > 0) {
        sl_found(out, SL_BAD, "replication",
                 "slot %s has no reader, and has kept dead rows alive for %lld transactions",
                 f->name, (long long)f->xids);
        sl_advise(out, "start its reader, or SELECT pg_drop_replication_slot('%s')", f->name);
    } else if (f->xids >= XIDS_WARN) {
        sl_found(out, f->xids >= XIDS_BAD ? SL_BAD : SL_WARN, "replication",
                 "%s %s has kept dead rows alive for %lld transactions", f->kind, f->name,
                 (long long)f->xids);
        sl_advise(out, "end the old queries there, or set hot_standby_feedback = off there");
    } else if (slot && !f->active && f->wal_bytes >= WAL_KEPT_WARN) {
        sl_found(out, SL_WARN, "replication", "slot %s has no reader, and keeps %s of the log",
                 f->name, size(f->wal_bytes).s);
        sl_advise(out,
                  "start its reader, or SELECT pg_drop_replication_slot('%s'); set "
                  "max_slot_wal_keep_size",
                  f->name);
    } else {
        return false;
    }
    return true;
}

/* ---- Vacuum and size ---- */

void sl_judge_autovacuum(sl_findings *out, const sl_vacuum_fact *f)
{
    size_t before = out->count;
    if (!f->enabled || !f->counts) {
        const char *setting = f->enabled ? "track_counts" : "autovacuum";
        sl_found(out, SL_BAD, "autovacuum", "%s is off: nothing removes dead rows", setting);
        sl_advise(out, "%s = on, then reload", setting);
    }
    if (f->xids >= FROZEN_BAD || f->xids >= f->freeze_at + f->freeze_at / 2) {
        sl_found(out, f->xids >= FROZEN_BAD ? SL_BAD : SL_WARN, "autovacuum",
                 "the database's oldest row is %lld transactions old: it falls behind",
                 (long long)f->xids);
        sl_advise(out,
                  "end what keeps dead rows alive, then VACUUM (FREEZE) the oldest tables");
    }
    if (f->workers > 0 && f->busy >= f->workers) {
        sl_found(out, SL_WARN, "autovacuum", "all %lld workers are busy",
                 (long long)f->workers);
        sl_advise(out, "if that lasts: more autovacuum_max_workers and "
                       "autovacuum_vacuum_cost_limit");
    }
    if (out->count == before)
        sl_found(out, SL_FINE, "autovacuum", "on, %lld of %lld workers busy",
                 (long long)f->busy, (long long)f->workers);
}

/* What so many rows would need, and what there is: is it far more? */
static bool bloated(int64_t have, int64_t need)
{
    return have - need >= BLOAT_WARN && have >= BLOAT_TIMES * need;
}

static void found_bloat(sl_findings *out, const sl_table_fact *f, const char *what,
                        int64_t have, int64_t need)
{
    sl_found(out, have - need >= BLOAT_BAD ? SL_BAD : SL_WARN, "tables",
             "%s%s: %s, about %s would do for %lld rows", what, f->name, size(have).s,
             size(need).s, (long long)f->live);
}

static bool judge_size(sl_findings *out, const sl_table_fact *f)
{
    int64_t fill = f->fill > 0 ? f->fill : 100;
    int64_t row = (f->row_bytes ? f->row_bytes : ROW_GUESS) + ROW_OVERHEAD;
    int64_t heap = f->live * row * 100 / fill + INDEX_EMPTY;
    int64_t index = f->indexes * INDEX_EMPTY + f->live * f->indexes * INDEX_ROW;
    size_t before = out->count;
    if (bloated(f->heap_bytes, heap)) {
        found_bloat(out, f, "", f->heap_bytes, heap);
        sl_advise(out, "VACUUM %s; if it stays, VACUUM FULL %s while no node runs", f->name,
                  f->name);
    }
    if (bloated(f->index_bytes, index)) {
        found_bloat(out, f, "indexes of ", f->index_bytes, index);
        sl_advise(out, "REINDEX TABLE CONCURRENTLY %s", f->name);
    }
    return out->count > before;
}

bool sl_judge_table(sl_findings *out, const sl_table_fact *f)
{
    size_t before = out->count;
    if (!f->enabled) {
        sl_found(out, SL_BAD, "tables", "%s: autovacuum is off for this table", f->name);
        sl_advise(out, "ALTER TABLE %s RESET (autovacuum_enabled)", f->name);
    }
    if (f->dead >= DEAD_WARN && f->dead >= f->live) {
        sl_found(out, f->dead >= DEAD_BAD && f->dead >= 10 * f->live ? SL_BAD : SL_WARN,
                 "tables", "%s: %lld dead rows beside %lld that live%s", f->name,
                 (long long)f->dead, (long long)f->live,
                 f->vacuumed ? "" : ", and it was never vacuumed");
        sl_advise(out,
                  "end what keeps them alive (transactions, prepared, replication), then "
                  "VACUUM %s",
                  f->name);
    }
    judge_size(out, f);
    return out->count > before;
}

void sl_judge_file(sl_findings *out, const char *path, const sl_lite_file *f)
{
    size_t before = out->count;
    if (f->remote) {
        sl_found(out, SL_BAD, "file",
                 "%s is on a network file system (%s), where SQLite's locks do not hold", path,
                 f->remote);
        sl_advise(out, "use a local disk, or PostgreSQL");
    }
    if (!f->writable || !f->folder_writable) {
        sl_found(out, SL_BAD, "file", "%s%s cannot be written to by this user",
                 f->writable ? "the folder of " : "", path);
        sl_advise(out, "a node needs to write the file and its folder: -wal and -shm are made "
                       "there");
    }
    if (f->wal_bytes >= WAL_WARN) {
        sl_found(out, f->wal_bytes >= WAL_BAD ? SL_BAD : SL_WARN, "file",
                 "%s-wal has %s: something has kept it from being written back", path,
                 size(f->wal_bytes).s);
        sl_advise(out, "end the reader that never ends, then PRAGMA wal_checkpoint(TRUNCATE)");
    }
    if (out->count == before)
        sl_found(out, SL_FINE, "file", "%s, %s, -wal %s", path, size(f->bytes).s,
                 size(f->wal_bytes).s);
}

void sl_judge_journal(sl_findings *out, const char *path, const char *mode)
{
    if (!strcmp(mode, "wal")) {
        sl_found(out, SL_FINE, "journal", "mode wal");
        return;
    }
    sl_found(
        out, SL_WARN, "journal", "mode %s: readers and the writer wait for each other%s", mode,
        !strcmp(mode, "off") || !strcmp(mode, "memory") ? ", and a crash may destroy it" : "");
    sl_advise(out, "PRAGMA journal_mode = WAL in %s, as each node does; see who sets it back",
              path);
}

void sl_judge_pages(sl_findings *out, const char *path, int64_t pages, int64_t unused,
                    int64_t page_bytes)
{
    int64_t waste = unused * page_bytes;
    if (waste < BLOAT_WARN || unused * 2 < pages) {
        sl_found(out, SL_FINE, "pages", "%lld, %lld of them unused", (long long)pages,
                 (long long)unused);
        return;
    }
    sl_found(out, SL_WARN, "pages", "%s of %s are unused", size(waste).s,
             size(pages * page_bytes).s);
    sl_advise(out, "harmless but for the disk: VACUUM in %s while no node runs", path);
}

void sl_judge_integrity(sl_findings *out, const char *path, const char *complaint)
{
    if (!strcmp(complaint, "ok")) {
        sl_found(out, SL_FINE, "integrity", "quick_check has no complaint");
        return;
    }
    sl_found(out, SL_BAD, "integrity", "%s", complaint);
    sl_advise(out, "stop the nodes, copy %s, then sqlite3's .recover, or a backup", path);
}

/* ---- Nodes and messages ---- */

void sl_judge_nodes(sl_findings *out, size_t alive, size_t over, const char *names,
                    int64_t longest_us)
{
    if (!over) {
        sl_found(out, SL_FINE, "nodes", "%zu live", alive);
        return;
    }
    sl_found(out, SL_WARN, "nodes", "%s did not beat, for up to %s after the lease; %zu live",
             names, age(longest_us).s, alive);
    sl_advise(out, alive ? "nothing, if it goes away: the others forget it at their next look"
                         : "start a node: what these held is taken over");
}

void sl_judge_lanes(sl_findings *out, size_t lanes, size_t free_lanes, const char *which,
                    int64_t youngest_us)
{
    if (!free_lanes) {
        sl_found(out, SL_FINE, "lanes", "%zu, all with an owner", lanes);
        return;
    }
    sl_found(out, youngest_us >= LANES_BAD ? SL_BAD : SL_WARN, "lanes",
             "%zu of %zu have no owner (%s): nobody delivers their keys", free_lanes, lanes,
             which);
    sl_advise(out, "the same assign for all nodes, and static_lanes that name every lane");
}

void sl_judge_keys(sl_findings *out, const sl_key_fact *f)
{
    if (f->keys == 0 || f->age_us < KEY_WARN) {
        sl_found(out, SL_FINE, "keys", "%lld blocked", (long long)f->keys);
        return;
    }
    sl_found(out, f->age_us >= KEY_BAD && !f->parked ? SL_BAD : SL_WARN, "keys",
             "%lld blocked, '%s' for %s by message %lld: %s", (long long)f->keys, f->key,
             age(f->age_us).s, (long long)f->head,
             f->parked    ? "parked, until an operator decides"
             : *f->reason ? f->reason
                          : "no reason was kept");
    sl_advise(out, "'sluice keys' lists them; docs/operating.md, Blocked keys: retry, "
                   "skip-head, or resume");
}

void sl_judge_waiting(sl_findings *out, int64_t id, const char *topic, int64_t age_us,
                      size_t alive, const sl_norms *norms)
{
    bool old = age_us >= norms->old_us;
    if (!id || (!old && (alive || age_us < 10 * norms->poll_us))) {
        if (id)
            sl_found(out, SL_FINE, "waiting", "the oldest for %s", age(age_us).s);
        else
            sl_found(out, SL_FINE, "waiting", "nothing is due");
        return;
    }
    sl_found(out, old && !alive ? SL_BAD : SL_WARN, "waiting",
             "message %lld (topic %s) has been due for %s, and %s", (long long)id, topic,
             age(age_us).s, alive ? "nodes live" : "no node is registered");
    sl_advise(out, alive ? "a slow or failing sink, or too few workers: 'sluice workers', the "
                           "nodes' logs"
                         : "start 'sluice run'; or see to whoever calls 'sluice pull', "
                           "who is not registered");
}
