/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a journal: blocks of 512, numbers little-endian. The first block is the head; a record
 * is one or more blocks behind each other, and each of them stands alone: its own checksum, its own
 * number, up to 29 pairs. What was synced is never written again, since no two records share a sector;
 * and a block is either there or not, since disks write whole sectors.
 *
 *   head                                          block
 *     0  8  "SLUICEJR"                              0  4  CRC-32C of the salt and of bytes 4 to 511
 *     8  4  CRC-32C of bytes 12 to 511              4  1  type: 2 opened, 3 sending, 4 sent, 5 failed
 *    12  2  version, 1                              5  1  pairs in this block, at most 29
 *    14  2  bytes of the node's name                6  2  0
 *    16  8  identity of the journal                 8  4  which block of its record, from 0
 *    24  8  salt of this file                      12  4  blocks of its record
 *    32  8  number of this block                   16  8  number of this block: rises by 1, block by block
 *    40  8  inode of this file                     24  8  all blocks below this number were synced before
 *    48  8  bytes of this file                     32  8  session that wrote it
 *    56  8  when the journal began, Unix us        40     pairs: 8 id, 8 epoch; opened: session, Unix us
 *    64  8  when this file began
 *    72  8  rotations before this file
 *    80  4  blocks behind this one that were synced before the file got its name
 *    84  4  0
 *    88     the node's name
 *   504  8  "SLUICEND"                            504  8  "SLUICEND"
 *
 * The salt is another for each file, so that a block of another file, or of an older one in the same place
 * of the disk, is no block of this one. The last eight bytes tell a block that never came to its end (zeros)
 * from one that was changed later.
 */
#ifndef SL_JOURNAL_BLOCK_H
#define SL_JOURNAL_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { SL_JB_BYTES = 512, SL_JB_PAIRS = 29, SL_JB_NODE_BYTES = 400 };

typedef enum sl_jb_type {
    SL_JB_OPENED = 2,
    SL_JB_SENDING,
    SL_JB_SENT,
    SL_JB_FAILED
} sl_jb_type;

typedef enum sl_jb_found {
    SL_JB_GOOD,
    SL_JB_EMPTY, /* zeros: never written */
    SL_JB_TORN,  /* begun, but its end is zeros: never completely written */
    SL_JB_BAD,   /* written, and changed since; or a block of another file or place */
    SL_JB_ALIEN, /* heads only: no journal */
    SL_JB_NEWER  /* heads only: of a version that we do not know */
} sl_jb_found;

typedef struct sl_jb_head {
    int64_t identity;
    uint64_t salt;
    uint64_t first; /* number of the head's block */
    uint64_t inode;
    uint64_t file_bytes;
    int64_t began_us;
    int64_t file_began_us;
    uint64_t rotations;
    uint32_t carried;
    char node[SL_JB_NODE_BYTES + 1];
} sl_jb_head;

typedef struct sl_jb_pair {
    int64_t id;
    int64_t epoch;
} sl_jb_pair;

typedef struct sl_jb {
    sl_jb_type type;
    size_t count;
    uint32_t part, parts;
    uint64_t number;
    uint64_t synced;
    int64_t session;
    sl_jb_pair pairs[SL_JB_PAIRS];
} sl_jb;

void sl_jb_put_head(uint8_t *out, const sl_jb_head *head);
sl_jb_found sl_jb_get_head(const uint8_t *in, sl_jb_head *head);

void sl_jb_put(uint8_t *out, uint64_t salt, const sl_jb *b);
/* `number` is the one that the block at this place must have. Fills `b` only if it is good. */
sl_jb_found sl_jb_get(const uint8_t *in, uint64_t salt, uint64_t number, sl_jb *b);

/* Blocks of a record with so many pairs; one without pairs has none. */
static inline size_t sl_jb_blocks(size_t pairs)
{
    return (pairs + SL_JB_PAIRS - 1) / SL_JB_PAIRS;
}

#endif
