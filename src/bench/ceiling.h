/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the database alone allows: bare loops of SQL that empty the table and send nothing. Each connection is a process of
 * its own, so that nothing of it is mistaken for the program; all begin at once, when the last has prepared its statements.
 * An error ends the process: a ceiling that stumbled is no ceiling.
 */
#ifndef SL_BENCH_CEILING_H
#define SL_BENCH_CEILING_H

#include "db/names.h"

#include <stdbool.h>
#include <stdint.h>

/* As the program's defaults for batch_bytes and lease. */
#define SL_CEILING_BYTES (INT64_C(8) << 20)
#define SL_CEILING_LEASE_US INT64_C(30000000)

enum { SL_CEILING_MAX = 64 }; /* connections */

typedef struct sl_ceiling {
    const char *dialect;
    const char *db; /* conninfo, or the path of a SQLite file */
    const sl_names *names;
    int64_t batch;
    int connections;
    bool lease;
    struct sl_ceiling_shared *shared; /* filled in by sl_ceiling_run */
} sl_ceiling;

/* Drains the table on one connection, counted from 0, and returns how many messages went. Connects and prepares first, then
 * calls sl_ceiling_ready(), from which on the time counts. */
typedef int64_t (*sl_ceiling_fn)(const sl_ceiling *c, int connection);

int64_t sl_ceiling_skip(const sl_ceiling *c, int connection);
int64_t sl_ceiling_lanes(const sl_ceiling *c, int connection);
int64_t sl_ceiling_rotated(const sl_ceiling *c, int connection);
int64_t sl_ceiling_advisory(const sl_ceiling *c, int connection);
int64_t sl_ceiling_sqlite(const sl_ceiling *c, int connection);
/* What `connections` sleepers reach that take so long for each message. */
double sl_ceiling_sleep(int64_t delay_ns, int64_t messages, int connections);

typedef struct sl_ceiling_got {
    const char *loop; /* "lanes": whose loop it was */
    int64_t messages;
    double seconds;
} sl_ceiling_got;

/* The loop for a strategy. SL_OPERATOR: the database has none. */
SL_CHECK sl_rc sl_ceiling_run(sl_ceiling *c, const char *strategy, sl_ceiling_got *out,
                              sl_err *err);

/* ---- For the loops ---- */

void sl_ceiling_ready(const sl_ceiling *c);
/* The text of a statement with the tables' names put in; the caller frees it. */
char *sl_ceiling_sql(const sl_ceiling *c, const char *name);
_Noreturn void sl_bare_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
