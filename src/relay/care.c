/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/care.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct sl_care {
    pthread_mutex_t turn;  /* held for a whole careful turn */
    _Atomic int64_t steps; /* what the next turn may take; 0: no care is needed */
    int64_t most_ns;
    _Atomic int64_t until_ns;
};

sl_care *sl_care_new(int64_t most_ns)
{
    sl_care *c = sl_alloc(sizeof *c);
    pthread_mutex_init(&c->turn, NULL);
    c->most_ns = most_ns;
    return c;
}

void sl_care_free(sl_care *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->turn);
    free(c);
}

void sl_care_alarm(sl_care *c)
{
    c->until_ns = sl_now_ns() + c->most_ns;
    c->steps = 1;
}

bool sl_care_taken(const sl_care *c)
{
    return c && c->steps != 0;
}

int64_t sl_care_enter(sl_care *c, int64_t max, bool *careful)
{
    *careful = false;
    if (!sl_care_taken(c))
        return max;
    pthread_mutex_lock(&c->turn);
    if (sl_now_ns() >= c->until_ns)
        c->steps = 0;
    int64_t steps = c->steps;
    if (steps == 0) {
        pthread_mutex_unlock(&c->turn);
        return max;
    }
    *careful = true;
    if (steps < max)
        return steps;
    return max;
}

void sl_care_leave(sl_care *c, sl_step next)
{
    enum { ENOUGH = 10000 }; /* no batch is larger */
    int64_t steps = c->steps;
    int64_t more = next == SL_STEP_SINGLE ? 1 : 2 * steps > ENOUGH ? 0 : 2 * steps;
    if (next != SL_STEP_STAY) /* an alarm that comes meanwhile stays */
        atomic_compare_exchange_strong(&c->steps, &steps, more);
    pthread_mutex_unlock(&c->turn);
}
