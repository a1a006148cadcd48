/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rhythm.h"

/* Up to here a look in vain is cheaper than to arm; above, next to nothing is saved, and to be woken is sooner than a nap. */
#define SOON_NS (3 * SL_MS / 2)
/* Workers that share what one commit has brought find it within this time. */
#define SAME_NS (SL_MS / 2)
/* After a longer rest a new rhythm is learnt as fast as after this one. */
#define GAP_MAX_NS (4 * SOON_NS)
/* The last gap has this part in what is known of them. */
enum { SHARE = 4 };

void sl_rhythm_found(sl_rhythm *r, int64_t now_ns)
{
    int64_t before_ns = r->found_ns;
    if (before_ns && now_ns - before_ns < SAME_NS)
        return;
    r->found_ns = now_ns;
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
