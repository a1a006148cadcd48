/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include "core/err.h"

#include <sys/random.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * SL_SEC + ts.tv_nsec;
}

/* Not CLOCK_MONOTONIC, which stands still while the machine is suspended: leases end all the same. */
int64_t sl_now_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

int64_t sl_wall_us(void)
{
    return read_ns(CLOCK_REALTIME) / 1000;
}

/* splitmix64, a stream per thread, seeded by the kernel. */
uint64_t sl_random(void)
{
    static _Thread_local uint64_t state;
    if (!state && getrandom(&state, sizeof state, 0) != (ssize_t)sizeof state)
        state = (uint64_t)sl_now_ns() | 1;
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t sl_backoff_ns(unsigned attempt, int64_t base_ns, int64_t max_ns)
{
    int64_t delay = base_ns;
    for (unsigned i = 1; i < attempt && delay < max_ns; i++)
        delay *= 2;
    if (delay > max_ns)
        delay = max_ns;
    int64_t spread = delay * 2 / 5; /* from 80 % to 120 % */
    return delay - spread / 2 + (spread > 0 ? (int64_t)(sl_random() % (uint64_t)spread) : 0);
}
