/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `sluice bench`: a table for people, one object for programs. */
#ifndef SL_CLI_BENCH_PRINT_H
#define SL_CLI_BENCH_PRINT_H

#include "bench/bench.h"

#include <stdio.h>

/* The columns that have a figure in at least one row. */
void sl_bench_print_table(const sl_scene *scene, const sl_bench_row *rows, size_t count,
                          FILE *out);
/* Figures that could not be had are null. */
void sl_bench_print_json(const sl_scene *scene, const char *database, const sl_settings *s,
                         const sl_bench_row *rows, size_t count, FILE *out);

#endif
