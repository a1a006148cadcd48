/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rhythm.h"

/* Up to here some looks in vain are cheaper than to arm once; above, they are not. */
#define SOON_NS (4 * SL_MS)
/* After a longer rest a new rhythm is learnt as fast as after this one. */
#define GAP_MAX_NS (4 * SOON_NS)
/* The last gap has this part in what is known of them. */
enum { SHARE = 4 };

void sl_rhythm_found(sl_rhythm *r, int64_t now_ns)
{
    int64_t before_ns = atomic_exchange(&r->found_ns, now_ns);
    int64_t known_ns = before_ns ? r->gap_ns : GAP_MAX_NS;
    int64_t gap_ns =
        before_ns && now_ns - before_ns < GAP_MAX_NS ? now_ns - before_ns : GAP_MAX_NS;
    r->gap_ns = known_ns + (gap_ns - known_ns) / SHARE;
}

bool sl_rhythm_soon(const sl_rhythm *r, int64_t now_ns)
{
    int64_t found_ns = r->found_ns;
    return found_ns && r->gap_ns < SOON_NS && now_ns - found_ns < SOON_NS;
}

bool sl_rhythm_quiet(const sl_rhythm *r, int64_t now_ns)
{
    int64_t found_ns = r->found_ns;
    return !found_ns || now_ns - found_ns >= SL_RHYTHM_QUIET_NS;
}
