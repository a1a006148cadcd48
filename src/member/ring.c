/* SPDX-License-Identifier: Apache-2.0 */
#include "member/ring.h"

#include "core/err.h"
#include "core/mem.h"

#include <assert.h>
#include <stdint.h>
#include <xxhash.h>

typedef struct point {
    uint64_t place;
    const char *name;
    size_t node;
} point;

struct sl_ring {
    size_t count;
    point points[]; /* in the order of their places */
};

static void put_le64(unsigned char *out, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(n >> 8 * i);
}

/*
 * Bytes in a fixed order, since nodes on different processors must agree. Giving the number of the
 * point to XXH3 as its seed would be shorter, but was seen to fail: with names of three bytes,
 * "no1" and "no2" had 254 of 256 places in common.
 */
static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    unsigned char bytes[16];
    put_le64(bytes, a);
    put_le64(bytes + 8, b);
    return XXH3_64bits(bytes, sizeof bytes);
}

static uint64_t place_of_lane(size_t lane)
{
    unsigned char bytes[8];
    put_le64(bytes, lane);
    return XXH3_64bits(bytes, sizeof bytes);
}

/* Two nodes on one place are next to impossible; even then all nodes see the same order. */
static int by_place(const void *left, const void *right)
{
    const point *a = left, *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return strcmp(a->name, b->name);
}

sl_ring *sl_ring_new(const char *const *names, size_t count)
{
    size_t points = count * SL_RING_POINTS;
    sl_ring *r = sl_alloc(sizeof *r + points * sizeof r->points[0]);

    for (size_t node = 0; node < count; node++) {
        uint64_t hash = XXH3_64bits(names[node], strlen(names[node]));
        for (uint64_t i = 0; i < SL_RING_POINTS; i++)
            r->points[r->count++] = (point){ hash_pair(hash, i), names[node], node };
    }
    qsort(r->points, r->count, sizeof r->points[0], by_place);
    return r;
}

void sl_ring_free(sl_ring *r)
{
    free(r);
}

size_t sl_ring_find(const sl_ring *r, size_t lane)
{
    uint64_t place = place_of_lane(lane);
    size_t low = 0, high = r->count;

    assert(r->count > 0);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->points[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    return r->points[low % r->count].node; /* after the last point comes the first */
}
