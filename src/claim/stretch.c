/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/stretch.h"

#include "core/clock.h"

#include <assert.h>
#include <string.h>

/* With fewer than a quarter of the lanes, reading lane by lane is as fast. */
enum { PART = 4 };
/* It has so many ids for each message of the batch: others' messages, held ones, gaps. */
enum { SPAN = 16 };
/* And so many that have gone, before floors follow. */
enum { LAG = 64 };
/* Deleting a range looks at each that lives in it: about as much as to look up one in four. */
enum { SPARSE = 4 };
/* A batch that stands together is far from that; one that does not was never to be asked for as a range. */
#define MAP_MAX (INT64_C(1) << 24)
/* A try that fails costs a millisecond or two: a few hundredths of the time. */
#define PAUSE_NS (100 * SL_MS)
/* Large messages seldom come alone, and such a batch is read twice. */
#define LARGE_PAUSE_NS (SL_SEC)

static int64_t plus(int64_t at, int64_t max, int64_t times)
{
    int64_t more = max < INT64_MAX / times ? max * times : INT64_MAX;
    return at < INT64_MAX - more ? at + more : INT64_MAX;
}

bool sl_stretch_has_part(size_t used, size_t lanes)
{
    return used * PART >= lanes;
}

bool sl_stretch_pays(const sl_stretch *s, int64_t from, int64_t max, int64_t now_ns)
{
    return s->able && now_ns >= s->resume_ns && s->next <= plus(from, max, LAG);
}

int64_t sl_stretch_end(const sl_stretch *s, int64_t from, int64_t max)
{
    return plus(s->next > from ? s->next : from, max, SPAN);
}

void sl_stretch_note(sl_stretch *s, int64_t max, int64_t came, int64_t last)
{
    s->busy = came > 0 && came >= max / 2;
    if (came > 0)
        s->next = last < INT64_MAX ? last + 1 : last;
}

void sl_stretch_failed(sl_stretch *s, bool large, int64_t now_ns)
{
    s->resume_ns = now_ns + (large ? LARGE_PAUSE_NS : PAUSE_NS);
}

void sl_stretch_map(sl_val in[2], sl_arena *arena, const int64_t *ids, size_t count)
{
    int64_t first = count ? ids[0] : 0;
    int64_t last = count ? ids[0] : -1;
    for (size_t i = 0; i < count; i++) {
        first = ids[i] < first ? ids[i] : first;
        last = ids[i] > last ? ids[i] : last;
    }
    assert(last - first < MAP_MAX);
    size_t n = (size_t)(last - first + 1);
    char *map = sl_arena_alloc(arena, n + 1);
    memset(map, 0, n);
    for (size_t i = 0; i < count; i++)
        map[ids[i] - first] = 1;
    in[0] = sl_bytes((sl_str){ map, n });
    in[1] = sl_int(first);
}

bool sl_stretch_dense(int64_t first, int64_t last, size_t count)
{
    return last - first < SPARSE * (int64_t)count;
}
