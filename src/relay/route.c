/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/route.h"

#include <string.h>

/* One star at a time: if the rest does not fit, the last star takes one character more. */
bool sl_topic_matches(const char *pattern, sl_str topic)
{
    const char *star = NULL;
    size_t at = 0;
    size_t from = 0; /* where the last star's share ends */
    while (at < topic.n) {
        if (*pattern == '*') {
            star = pattern++;
            from = at;
        } else if (*pattern && *pattern == topic.p[at]) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star + 1;
            at = ++from;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool sl_route_wants(const sl_route *r, sl_str topic)
{
    for (size_t i = 0; i < r->topic_count; i++)
        if (sl_topic_matches(r->topics[i], topic))
            return true;
    return r->topic_count == 0;
}

bool sl_route_enter(sl_route *r)
{
    int64_t users = r->users;
    do {
        if (r->concurrency > 0 && users >= r->concurrency)
            return false;
    } while (!atomic_compare_exchange_weak(&r->users, &users, users + 1));
    return true;
}

void sl_route_leave(sl_route *r)
{
    r->users--;
}
