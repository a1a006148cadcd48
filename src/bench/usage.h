/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time and memory of other processes, from /proc. */
#ifndef SL_BENCH_USAGE_H
#define SL_BENCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* Seconds that a process has used so far; -1: there is none. */
double sl_usage_cpu(pid_t pid);
/* The same of a PostgreSQL server by the process of one of its sessions: all its processes, also those that have ended. */
double sl_usage_server_cpu(pid_t session);
/* Bytes that are resident and its own: memory that it shares with the bench is not counted. 0: there is none. */
int64_t sl_usage_memory(pid_t pid);

#endif
