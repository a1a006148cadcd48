/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pace.h"

#include "core/clock.h"

/* Some 100,000 a second are as much as one session can commit; more of them than are needed take the time of who delivers. */
enum { PER_PRODUCER = 100000, PRODUCERS_MAX = 16 };
#define TICK_NS (2 * SL_MS)
#define LATE_NS (SL_SEC)

int64_t sl_pace_producers(int64_t rate)
{
    int64_t n = (rate + PER_PRODUCER - 1) / PER_PRODUCER;
    return n < 1 ? 1 : n < PRODUCERS_MAX ? n : PRODUCERS_MAX;
}

static int64_t share(const sl_pace *p, int64_t producer, int64_t of)
{
    return of / p->producers + (producer < of % p->producers);
}

static int64_t whole(const sl_pace *p, int64_t producer)
{
    return share(p, producer, p->rate * p->seconds);
}

int64_t sl_pace_step(const sl_pace *p, int64_t producer, int64_t done, int64_t now_ns)
{
    int64_t due = (now_ns - p->began_ns) / 1000 * p->rate / 1000000 + 1;
    int64_t all = p->rate * p->seconds;
    int64_t n = share(p, producer, due < all ? due : all) - done;
    return n < 0 ? 0 : n < SL_PACE_TX ? n : SL_PACE_TX;
}

bool sl_pace_is_over(const sl_pace *p, int64_t producer, int64_t done, int64_t now_ns)
{
    return done >= whole(p, producer) || now_ns - p->began_ns > p->seconds * SL_SEC + LATE_NS;
}

int64_t sl_pace_next_ns(const sl_pace *p, int64_t producer, int64_t now_ns)
{
    int64_t first_ns = p->began_ns + TICK_NS * producer / p->producers;
    if (now_ns < first_ns)
        return first_ns;
    return first_ns + ((now_ns - first_ns) / TICK_NS + 1) * TICK_NS;
}

int64_t sl_pace_key(const sl_pace *p, int64_t producer, int64_t n)
{
    int64_t own = share(p, producer, p->keys);
    return n % own * p->producers + producer;
}
