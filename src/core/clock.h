/* SPDX-License-Identifier: Apache-2.0 */
/* Time inside the program is int64 nanoseconds of a clock that never goes back, and goes on while the
 * machine is suspended. Leases and due times are
 * compared on the database's clock, in SQL; this one only makes a worker stop trusting earlier. */
#ifndef SL_CORE_CLOCK_H
#define SL_CORE_CLOCK_H

#include <stdint.h>

#define SL_MS INT64_C(1000000)
#define SL_SEC INT64_C(1000000000)

int64_t sl_now_ns(void);
int64_t sl_wall_us(void); /* Unix time, for people and log lines only */
uint64_t sl_random(void); /* for jitter and names, not for secrets */
/* A growing, jittered delay: base, 2 base, 4 base ... at most max, each +/- 20 %. */
int64_t sl_backoff_ns(unsigned attempt, int64_t base_ns, int64_t max_ns);

#endif
