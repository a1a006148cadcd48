/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/policy.h"

#include "core/clock.h"

#include <stdio.h>

static bool failed(const sl_msg *m)
{
    return m->verdict == SL_RETRY || m->verdict == SL_UNKNOWN;
}

bool sl_policy_waits(const sl_policy *p, const sl_msg *m)
{
    if (m->verdict == SL_SENT || (m->consumed && m->verdict != SL_RELEASED))
        return false; /* consumed: it is never sent again, and the key goes on */
    return m->verdict != SL_DEAD || (p->on_failure != SL_SKIP && !m->buried);
}

static void change(sl_batch *b, sl_msg *m, sl_verdict v)
{
    sl_str reason = m->reason;
    sl_msg_unsettle(b, m);
    sl_msg_settle(b, m, v, reason);
}

static void park(sl_batch *b, sl_msg *m)
{
    if (m->verdict == SL_DEAD)
        change(b, m, SL_RETRY);
    m->delay_ns = SL_FOREVER;
}

/* No attempt is left. */
static void give_up(const sl_policy *p, sl_batch *b, sl_msg *m)
{
    if (p->on_failure == SL_SKIP)
        change(b, m, SL_DEAD);
    else if (p->on_failure == SL_PARK)
        park(b, m);
    else
        m->delay_ns = sl_backoff_ns(1, p->retry_max_ns, INT64_MAX);
}

bool sl_policy_spent(const sl_policy *p, sl_batch *b, sl_msg *m)
{
    char reason[96];
    /* To block is to keep trying. Only what was counted beforehand, after a crash, may be what caused it, and is put off;
     * but not if it has just waited. */
    if (m->attempt <= p->max_attempts ||
        (p->on_failure == SL_BLOCK && (m->held || !m->counted)))
        return false;
    snprintf(reason, sizeof reason,
             "%d deliveries were begun, and the program ended before the answer",
             (int)m->attempt - 1);
    sl_msg_settle(b, m, SL_RETRY, sl_str_of(reason));
    m->untried = true;
    give_up(p, b, m);
    return true;
}

void sl_policy_judge(const sl_policy *p, sl_batch *b, sl_msg *m)
{
    if (m->untried)
        return;
    if (m->verdict == SL_UNKNOWN && m->blameless) {
        m->untried = true;
        m->delay_ns = sl_backoff_ns(1, p->retry_base_ns, p->retry_max_ns);
    } else if (m->verdict == SL_DEAD && sl_policy_waits(p, m))
        park(b, m); /* it can never be sent: trying again is no use */
    else if (failed(m) && m->attempt >= p->max_attempts)
        give_up(p, b, m);
    else if (failed(m) && m->delay_ns < 0)
        m->delay_ns = sl_backoff_ns((unsigned)m->attempt, p->retry_base_ns, p->retry_max_ns);
}
