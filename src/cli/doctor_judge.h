/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdicts of `sluice doctor`: what was read in, findings out. Pure functions without a database, one
 * for each check, so that every threshold stands in one file and has its test. A function always adds at
 * least one finding, unless its facts say that there is nothing of the kind.
 */
#ifndef SL_CLI_DOCTOR_JUDGE_H
#define SL_CLI_DOCTOR_JUDGE_H

#include "cli/doctor.h"
#include "db/lite_file.h"
#include "db/schema.h"

/* What the settings say, which verdicts depend on. */
typedef struct sl_norms {
    int64_t old_us; /* --old: from here on a transaction, or a message that waits, is old */
    int64_t poll_us;
    int64_t workers, batch; /* of a node with these settings */
} sl_norms;

/* ---- What was made by init ---- */

void sl_judge_schema(sl_findings *out, const char *table, const sl_schema *schema);
/* Names of what is not there, "outbox.held, outbox_lanes"; empty: all is. */
void sl_judge_columns(sl_findings *out, const char *missing);
/* state: "ok", "missing" or "invalid"; remedy: a CREATE INDEX, or NULL. The ok ones are silent. */
void sl_judge_index(sl_findings *out, const char *index, const char *state, const char *remedy);
/* The GRANTs that are missing, as SQL; empty: none is. */
void sl_judge_grants(sl_findings *out, const char *role, const char *strategy,
                     const char *missing);

/* ---- The server ---- */

void sl_judge_standby(sl_findings *out, bool standby);
void sl_judge_durability(sl_findings *out, bool fsync, bool full_page_writes,
                         const char *synchronous_commit);
/* The processes that answered two transactions of one session, and one of a second session that was
 * still open while the second of those was made. */
void sl_judge_pooler(sl_findings *out, int64_t first, int64_t second, int64_t other);
/* The database's clock minus this machine's, known to half of the round trip. */
void sl_judge_clock(sl_findings *out, int64_t ahead_us, int64_t round_trip_us);

typedef struct sl_seats {
    int64_t most, reserved, used;
    int64_t db_most, db_used; /* -1: the database has no limit of its own */
} sl_seats;

void sl_judge_connections(sl_findings *out, const sl_seats *s, const sl_norms *norms);
/* room: locks in all sessions together; workers: of the nodes that live, by this strategy. */
void sl_judge_locks(sl_findings *out, int64_t each, int64_t sessions, const char *strategy,
                    int64_t workers, const sl_norms *norms);

/* ---- What keeps dead rows alive ---- */

typedef struct sl_session_fact {
    int64_t pid;
    const char *app, *user, *state;
    int64_t age_us;
    bool pins; /* has a snapshot, or writes */
} sl_session_fact;

/* Called for each; false: it is not old, and nothing was added. */
bool sl_judge_session(sl_findings *out, const sl_session_fact *f, const sl_norms *norms);
/* After all of them: how many were old, and how many could not be looked at. */
void sl_judge_sessions(sl_findings *out, size_t old, size_t hidden, const sl_norms *norms);
void sl_judge_prepared(sl_findings *out, const char *gid, const char *owner, int64_t age_us,
                       const sl_norms *norms);

typedef struct sl_replica_fact {
    const char *kind, *name; /* "slot" or "standby" */
    bool active;
    int64_t xids, wal_bytes;
} sl_replica_fact;

/* False: it holds nothing back. */
bool sl_judge_replica(sl_findings *out, const sl_replica_fact *f);

/* ---- Vacuum and size ---- */

typedef struct sl_vacuum_fact {
    bool enabled, counts;
    int64_t workers, busy;
    int64_t xids, freeze_at;
} sl_vacuum_fact;

void sl_judge_autovacuum(sl_findings *out, const sl_vacuum_fact *f);

typedef struct sl_table_fact {
    const char *name;
    int64_t live, dead;
    int64_t heap_bytes, index_bytes, indexes;
    int64_t row_bytes, fill; /* 0: never looked at; percent */
    bool enabled, vacuumed;
} sl_table_fact;

/* False: nothing is wrong with it. */
bool sl_judge_table(sl_findings *out, const sl_table_fact *f);

void sl_judge_file(sl_findings *out, const char *path, const sl_lite_file *f);
void sl_judge_journal(sl_findings *out, const char *path, const char *mode);
void sl_judge_pages(sl_findings *out, const char *path, int64_t pages, int64_t unused,
                    int64_t page_bytes);
void sl_judge_integrity(sl_findings *out, const char *path, const char *complaint);

/* ---- Nodes and messages ---- */

/* over: names of those that did not beat, "n1, n2", and how many; longest_us: for how long. */
void sl_judge_nodes(sl_findings *out, size_t alive, size_t over, const char *names,
                    int64_t longest_us);
/* free_lanes of all; youngest_us: the age of the node that was born last. */
void sl_judge_lanes(sl_findings *out, size_t lanes, size_t free_lanes, const char *which,
                    int64_t youngest_us);

typedef struct sl_key_fact {
    int64_t keys; /* that wait */
    const char *key, *reason;
    int64_t head, age_us;
    bool parked;
} sl_key_fact; /* of the one that has waited longest */

void sl_judge_keys(sl_findings *out, const sl_key_fact *f);
/* The message that has been due for longest; id 0: none is. */
void sl_judge_waiting(sl_findings *out, int64_t id, const char *topic, int64_t age_us,
                      size_t alive, const sl_norms *norms);

#endif
