/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/breaker.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdlib.h>

/* While one tries, the others look again after this. */
#define PROBE_NS (50 * SL_MS)

struct sl_breaker {
    pthread_mutex_t lock;
    int64_t base_ns, max_ns;
    unsigned failures; /* in a row; 0: closed */
    bool probing;
    int64_t next_ns; /* when the next probe may go */
};

sl_breaker *sl_breaker_new(int64_t base_ns, int64_t max_ns)
{
    sl_breaker *b = sl_alloc(sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    b->base_ns = base_ns;
    b->max_ns = max_ns;
    return b;
}

void sl_breaker_free(sl_breaker *b)
{
    if (!b)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static sl_pass ask(sl_breaker *b, int64_t *wait_ns)
{
    int64_t now_ns = sl_now_ns();
    if (b->failures == 0)
        return SL_PASS_ALL;
    if (!b->probing && now_ns >= b->next_ns) {
        b->probing = true;
        return SL_PASS_ONE;
    }
    *wait_ns = b->next_ns > now_ns ? b->next_ns - now_ns : PROBE_NS;
    return SL_PASS_NONE;
}

sl_pass sl_breaker_ask(sl_breaker *b, int64_t *wait_ns)
{
    pthread_mutex_lock(&b->lock);
    sl_pass pass = ask(b, wait_ns);
    pthread_mutex_unlock(&b->lock);
    return pass;
}

/* Those who were on their way when it opened tell nothing new; but if they came through, it is up. */
static bool tell(sl_breaker *b, sl_pass pass, sl_came came)
{
    bool open = b->failures > 0;
    if (pass == SL_PASS_ONE)
        b->probing = false;
    if (came == SL_CAME_UP)
        b->failures = 0;
    if (came == SL_CAME_DOWN && (!open || pass == SL_PASS_ONE))
        b->next_ns = sl_now_ns() + sl_backoff_ns(++b->failures, b->base_ns, b->max_ns);
    return open != (b->failures > 0);
}

bool sl_breaker_tell(sl_breaker *b, sl_pass pass, sl_came came)
{
    pthread_mutex_lock(&b->lock);
    bool changed = tell(b, pass, came);
    pthread_mutex_unlock(&b->lock);
    return changed;
}

unsigned sl_breaker_failures(sl_breaker *b)
{
    pthread_mutex_lock(&b->lock);
    unsigned n = b->failures;
    pthread_mutex_unlock(&b->lock);
    return n;
}
