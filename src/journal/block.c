/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/block.h"

#include "core/crc32c.h"
#include "core/err.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>

enum { VERSION = 1, AT_END = SL_JB_BYTES - 8, AT_PAIRS = 40, AT_NODE = 88 };

static const char magic[9] = "SLUICEJR", end_mark[9] = "SLUICEND";

/* ---- Numbers ---- */

static void put16(uint8_t *p, uint16_t v)
{
    memcpy(p, &(uint16_t){ htole16(v) }, 2);
}

static void put32(uint8_t *p, uint32_t v)
{
    memcpy(p, &(uint32_t){ htole32(v) }, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
    memcpy(p, &(uint64_t){ htole64(v) }, 8);
}

static uint16_t get16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return le16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return le64toh(v);
}

static bool zeros(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* ---- The head ---- */

static uint32_t head_crc(const uint8_t *block)
{
    return sl_crc32c(0, block + 12, SL_JB_BYTES - 12);
}

void sl_jb_put_head(uint8_t *out, const sl_jb_head *head)
{
    size_t n = strlen(head->node);
    assert(n <= SL_JB_NODE_BYTES);
    memset(out, 0, SL_JB_BYTES);
    memcpy(out, magic, 8);
    put16(out + 12, VERSION);
    put16(out + 14, (uint16_t)n);
    put64(out + 16, (uint64_t)head->identity);
    put64(out + 24, head->salt);
    put64(out + 32, head->first);
    put64(out + 40, head->inode);
    put64(out + 48, head->file_bytes);
    put64(out + 56, (uint64_t)head->began_us);
    put64(out + 64, (uint64_t)head->file_began_us);
    put64(out + 72, head->rotations);
    put32(out + 80, head->carried);
    memcpy(out + AT_NODE, head->node, n);
    memcpy(out + AT_END, end_mark, 8);
    put32(out + 8, head_crc(out));
}

sl_jb_found sl_jb_get_head(const uint8_t *in, sl_jb_head *head)
{
    if (memcmp(in, magic, 8) != 0)
        return SL_JB_ALIEN;
    size_t n = get16(in + 14);
    if (get32(in + 8) != head_crc(in) || n > SL_JB_NODE_BYTES)
        return SL_JB_BAD;
    if (get16(in + 12) != VERSION)
        return SL_JB_NEWER;
    *head = (sl_jb_head){
        .identity = (int64_t)get64(in + 16),
        .salt = get64(in + 24),
        .first = get64(in + 32),
        .inode = get64(in + 40),
        .file_bytes = get64(in + 48),
        .began_us = (int64_t)get64(in + 56),
        .file_began_us = (int64_t)get64(in + 64),
        .rotations = get64(in + 72),
        .carried = get32(in + 80),
    };
    memcpy(head->node, in + AT_NODE, n);
    return SL_JB_GOOD;
}

/* ---- The others ---- */

static uint32_t block_crc(const uint8_t *block, uint64_t salt)
{
    uint8_t seed[8];
    put64(seed, salt);
    return sl_crc32c(sl_crc32c(0, seed, 8), block + 4, SL_JB_BYTES - 4);
}

void sl_jb_put(uint8_t *out, uint64_t salt, const sl_jb *b)
{
    assert(b->count <= SL_JB_PAIRS && b->part < b->parts);
    memset(out, 0, SL_JB_BYTES);
    out[4] = (uint8_t)b->type;
    out[5] = (uint8_t)b->count;
    put32(out + 8, b->part);
    put32(out + 12, b->parts);
    put64(out + 16, b->number);
    put64(out + 24, b->synced);
    put64(out + 32, (uint64_t)b->session);
    for (size_t i = 0; i < b->count; i++) {
        put64(out + AT_PAIRS + 16 * i, (uint64_t)b->pairs[i].id);
        put64(out + AT_PAIRS + 16 * i + 8, (uint64_t)b->pairs[i].epoch);
    }
    memcpy(out + AT_END, end_mark, 8);
    put32(out, block_crc(out, salt));
}

/* So much of the mark at the end is there. */
static size_t mark_bytes(const uint8_t *p)
{
    size_t n = 0;
    while (n < 8 && p[n] == (uint8_t)end_mark[n])
        n++;
    return n;
}

static bool sensible(const sl_jb *b, uint64_t number)
{
    return b->type >= SL_JB_OPENED && b->type <= SL_JB_FAILED && b->count <= SL_JB_PAIRS &&
           b->part < b->parts && b->number == number && b->synced <= number;
}

sl_jb_found sl_jb_get(const uint8_t *in, uint64_t salt, uint64_t number, sl_jb *b)
{
    size_t mark = mark_bytes(in + AT_END);
    if (mark < 8 && zeros(in + AT_END + mark, 8 - mark))
        return zeros(in, SL_JB_BYTES) ? SL_JB_EMPTY : SL_JB_TORN;
    if (mark < 8 || get32(in) != block_crc(in, salt))
        return SL_JB_BAD;
    sl_jb got = {
        .type = (sl_jb_type)in[4],
        .count = in[5],
        .part = get32(in + 8),
        .parts = get32(in + 12),
        .number = get64(in + 16),
        .synced = get64(in + 24),
        .session = (int64_t)get64(in + 32),
    };
    if (!sensible(&got, number))
        return SL_JB_BAD;
    for (size_t i = 0; i < got.count; i++)
        got.pairs[i] = (sl_jb_pair){ (int64_t)get64(in + AT_PAIRS + 16 * i),
                                     (int64_t)get64(in + AT_PAIRS + 16 * i + 8) };
    *b = got;
    return SL_JB_GOOD;
}
