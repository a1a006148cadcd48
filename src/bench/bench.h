/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sluice bench`: nodes of this program, as processes of their own, on tables of the bench's own, beside what the database
 * alone allows. Who runs it sees figures; this folder makes them, src/cli/cmd_bench.c asks for them and prints them.
 *
 *   bench.h     what is asked for and what is found
 *   box.h       the tables
 *   watched.h   what the nodes delivered (sink/tap.h), and whether that is right
 *   nodes.h     the processes
 *   producers.h who commits messages meanwhile, at which pace.h
 *   usage.h     processor time and memory
 *   ceiling.h   the bare loops
 *   measure.h   all of it together: one stretch of work, and its figures
 *   scene_*.c   the scenarios
 */
#ifndef SL_BENCH_BENCH_H
#define SL_BENCH_BENCH_H

#include "bench/box.h"
#include "lib/settings.h"

#define SL_BENCH_NONE (-1.0) /* a figure that could not be had */

/* One line of the report. */
typedef struct sl_bench_row {
    char name[64]; /* "lanes, 2 workers" */
    int64_t messages;
    double rate;           /* messages/s */
    double other, ratio;   /* the ceiling, or what the scenario compares with */
    double p50, p99, p999; /* milliseconds from commit to delivery */
    double statements;     /* for a message, as those below */
    double wal_bytes, dead_rows;
    double node_cpu, db_cpu; /* seconds for a million */
    double memory;           /* bytes, of the largest node */
    int reached;             /* was the rate that was asked for? -1: none was */
} sl_bench_row;

/* Of these the one in the middle is told. */
enum { SL_BENCH_ROUNDS = 3, SL_BENCH_ROUNDS_MAX = 99 };

/* 0: as the scenario likes it. */
typedef struct sl_bench_wish {
    int64_t rows, keys, bytes, rate, rounds;
    int64_t seconds, producers;
} sl_bench_wish;

typedef struct sl_bench {
    sl_settings *settings; /* of the nodes; the bench points them at its own table */
    sl_bench_wish wish;
    sl_box box;
    /* To whoever watches: what is going on, and each line when it is known. */
    void (*say)(void *ctx, const char *what);
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void (*row)(void *ctx, const sl_bench_row *row);
    bool (*stopped)(void *ctx); /* someone has had enough */
    char *database;             /* room for 64 bytes: name and version of it */
    void *ctx;
} sl_bench;

typedef struct sl_scene {
    const char *name;
    const char *other; /* head of the column: "ceiling", or what else it is compared with */
    sl_rc (*run)(sl_bench *b, sl_err *err);
    bool postgres_only;
} sl_scene;

extern const sl_scene *const sl_scene_all[]; /* ended by NULL */
const sl_scene *sl_scene_named(const char *name);

/* Makes the tables, runs the scenario, removes the tables. SL_OPERATOR also if anything was lost, came twice or out of order:
 * then the figures mean nothing. */
SL_CHECK sl_rc sl_bench_run(sl_bench *b, const sl_scene *scene, sl_err *err);

#endif
