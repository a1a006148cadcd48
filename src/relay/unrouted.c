/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/unrouted.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST = 20 }; /* in a minute: who writes an id into the topic has thousands */
#define MINUTE_NS (60 * SL_SEC)

struct sl_unrouted {
    pthread_mutex_t lock;
    int64_t since_ns; /* when the first of these was named */
    char *topics[MOST];
    size_t count;
};

sl_unrouted *sl_unrouted_new(void)
{
    sl_unrouted *u = sl_alloc(sizeof *u);
    pthread_mutex_init(&u->lock, NULL);
    return u;
}

static void forget(sl_unrouted *u)
{
    while (u->count)
        free(u->topics[--u->count]);
}

void sl_unrouted_free(sl_unrouted *u)
{
    if (!u)
        return;
    forget(u);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

static bool news(sl_unrouted *u, sl_str topic, int64_t now_ns)
{
    if (now_ns - u->since_ns >= MINUTE_NS)
        forget(u);
    for (size_t i = 0; i < u->count; i++)
        if (sl_str_eq(sl_str_of(u->topics[i]), topic))
            return false;
    if (u->count == MOST)
        return false;
    if (u->count == 0)
        u->since_ns = now_ns;
    u->topics[u->count++] = sl_strndup(topic.p ? topic.p : "", topic.n);
    return true;
}

bool sl_unrouted_news(sl_unrouted *u, sl_str topic, int64_t now_ns)
{
    if (!u)
        return true;
    pthread_mutex_lock(&u->lock);
    bool is = news(u, topic, now_ns);
    pthread_mutex_unlock(&u->lock);
    return is;
}
