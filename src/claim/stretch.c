/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/stretch.h"

#include "core/clock.h"

/* With fewer than a third of the lanes, reading lane by lane is as fast. */
enum { PART = 3 };
/* A stretch looks at so many ids for each message of the batch: others' messages, held ones, gaps. */
enum { SPAN = 16 };
/* An empty try costs a millisecond or two: a few hundredths of the time. */
#define PAUSE_NS (100 * SL_MS)
/* Large messages seldom come alone, and such a batch is read twice. */
#define LARGE_PAUSE_NS (SL_SEC)

bool sl_stretch_pays(const sl_stretch *r, size_t used, size_t lanes, int64_t now_ns)
{
    return r->able && r->busy && used * PART >= lanes && now_ns >= r->resume_ns;
}

int64_t sl_stretch_end(const sl_stretch *r, int64_t from, int64_t max)
{
    int64_t begin = r->next > from ? r->next : from;
    int64_t span = max < INT64_MAX / SPAN ? max * SPAN : INT64_MAX;
    return begin < INT64_MAX - span ? begin + span : INT64_MAX;
}

void sl_stretch_note(sl_stretch *r, int64_t max, int64_t came, int64_t last)
{
    r->busy = came > 0 && came >= max / 2;
    if (came > 0)
        r->next = last < INT64_MAX ? last + 1 : last;
}

void sl_stretch_failed(sl_stretch *r, bool large, int64_t now_ns)
{
    r->resume_ns = now_ns + (large ? LARGE_PAUSE_NS : PAUSE_NS);
}
