/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ceiling programs share: options, statements read from sql/, connections that all
 * start at once, and the report. Errors end the program: a ceiling that stumbled is no ceiling.
 */
#ifndef BENCH_CEILING_COMMON_H
#define BENCH_CEILING_COMMON_H

#include <stdbool.h>
#include <stdint.h>

/* As the program's defaults for batch_bytes and lease. */
#define BENCH_BATCH_BYTES (INT64_C(8) << 20)
#define BENCH_LEASE_US INT64_C(30000000)

typedef struct bench_options {
    const char *sql_dir; /* the folder with postgres/ and sqlite/ */
    const char *db;      /* conninfo or path */
    const char *table;
    int64_t batch;
    int connections;
    bool lease;
} bench_options;

/* Drains the table on one connection, counted from 0, and returns how many messages went.
 * Connects and prepares first, then calls bench_ready(), from which on the time counts. */
typedef int64_t (*bench_drain_fn)(const bench_options *o, int connection);

void bench_ready(void);

/* Text of DIALECT/NAME.sql with the table's name put in; the caller frees it. */
char *bench_sql(const bench_options *o, const char *dialect, const char *name);

_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The whole program: options, threads, report. */
int bench_main(int argc, char **argv, bench_drain_fn drain);

#endif
