/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of this program as processes of their own: `sluice run` with the settings of the bench, and what its log says. They end
 * when the bench does. */
#ifndef SL_BENCH_NODES_H
#define SL_BENCH_NODES_H

#include "bench/box.h"
#include "bench/watched.h"
#include "core/buf.h"

#include <sys/types.h>

typedef struct sl_node_plan {
    const char *strategy;
    const char *hold; /* of skip-locked; NULL: as the settings have it */
    int64_t workers;
    int64_t batch; /* 0: as the settings have it */
    bool drain;    /* ends by itself when nothing is due */
} sl_node_plan;

typedef struct sl_bench_node {
    pid_t pid; /* 0: it has ended */
    int log;   /* the end of a pipe that it writes to */
    sl_buf text;
    size_t seen;                  /* of it, line by line */
    int64_t started_ns, ended_ns; /* when it said so; 0: not yet */
    int64_t sent, failed, statements;
    int64_t memory; /* the most that was seen, in bytes */
    double cpu;     /* seconds */
    int status;     /* as waitpid has it */
} sl_bench_node;    /* zero-initialise */

SL_CHECK sl_rc sl_bench_node_start(sl_bench_node *n, const sl_settings *settings,
                                   const sl_node_plan *plan, int number, const sl_watched *w,
                                   sl_err *err);
/* Reads its log and looks at its memory, for at most so long. SL_OPERATOR: it has failed, and this is what it said. */
SL_CHECK sl_rc sl_bench_node_look(sl_bench_node *n, int64_t timeout_ns, sl_err *err);
void sl_bench_node_signal(const sl_bench_node *n, int signal);
bool sl_bench_node_is_done(const sl_bench_node *n);
/* Kills it if it still runs. */
void sl_bench_node_fini(sl_bench_node *n);

#endif
