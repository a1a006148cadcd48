/* SPDX-License-Identifier: Apache-2.0 */
/* A stop that is asked for once and seen by many threads, also while they sleep or wait for a
 * socket: its descriptor becomes readable and stays so. Asking is async-signal-safe. */
#ifndef SL_CORE_STOP_H
#define SL_CORE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum sl_stop_level {
    SL_GO = 0,
    SL_STOP_SOON, /* finish the turn, take no more */
    SL_STOP_NOW   /* give back what is in hand */
} sl_stop_level;

typedef struct sl_stop {
    _Atomic int level;
    int fd_soon; /* readable from SL_STOP_SOON on */
    int fd_now;  /* readable from SL_STOP_NOW on */
} sl_stop;

bool sl_stop_init(sl_stop *s); /* false: out of descriptors, errno says so */
void sl_stop_fini(sl_stop *s);
void sl_stop_ask(sl_stop *s, sl_stop_level level); /* the level never falls */
sl_stop_level sl_stop_level_of(sl_stop *s);
/* Sleeps; returns early, and true, when a stop is asked for. */
bool sl_stop_sleep(sl_stop *s, int64_t ns);

#endif
