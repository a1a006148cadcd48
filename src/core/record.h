/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process did, written down so that it survives SIGKILL: for tests that judge a whole
 * history. SLUICE_RECORD=DIR makes each process keep DIR/<pid>-<start>.rec, a file mapped and
 * shared: a header of 64 bytes and then events of 64 bytes, with CLOCK_BOOTTIME, which all
 * processes of a machine share. tests/support/record.py reads it.
 *
 * Any thread may record; it never blocks but to grow the file. Where nothing can be recorded the
 * process aborts: a proof with holes is none. Compiled in only with -Dfault_points=true.
 *
 * Where the events belong, so that the time between two of them is surely inside what it stands for:
 *
 *   TAKEN     after take returned, each message                       extra: attempt
 *   SEND      right before submit, after the claim was checked        extra: attempt
 *   RESULT    when the verdict is there, before settle is called      extra: verdict
 *   SETTLED   after settle returned SL_OK, each message               extra: verdict
 *   LOST      the claim on the message is lost or void (hold or settle failed)
 *   GRANTED   after a lane was gained: id is the lane, no key         extra: 0
 *   RELEASED  right before a lane is given up on purpose: id is the lane, no key
 */
#ifndef SL_CORE_RECORD_H
#define SL_CORE_RECORD_H

#include "core/bytes.h"

#include <stdint.h>

#define SL_REC_MAGIC UINT64_C(0x314345524c53) /* "SLREC1" */

typedef enum sl_rec_kind {
    SL_REC_TAKEN = 1,
    SL_REC_SEND,
    SL_REC_RESULT,
    SL_REC_SETTLED,
    SL_REC_LOST,
    SL_REC_GRANTED,
    SL_REC_RELEASED,
} sl_rec_kind;

/* The first 64 bytes of a file. */
typedef struct sl_rec_head {
    uint64_t magic;
    int64_t pid;
    int64_t start_ns;      /* when the process recorded its first event */
    _Atomic uint64_t next; /* events that were begun, whole or torn */
    uint64_t reserved[4];
} sl_rec_head;

/* Whole once `seal` is SL_REC_MAGIC + its number + 1; a process that dies inside leaves 0 there. */
typedef struct sl_rec_event {
    int64_t at_ns;
    int64_t id;
    uint64_t key_hash;
    int64_t epoch;
    int32_t extra;
    uint16_t kind;
    char worker[18];
    _Atomic uint64_t seal;
} sl_rec_event;

#ifdef SL_FAULT_POINTS
/* The key is hashed (FNV-1a, 64 bits; 0 for an absent one); of a longer worker name the last 18
 * bytes are kept. Without SLUICE_RECORD it does nothing. */
void sl_record(sl_rec_kind kind, const char *worker, int64_t id, sl_str key, int64_t epoch,
               int32_t extra);
#define SL_RECORD(kind, worker, id, key, epoch, extra)                                         \
    sl_record(kind, worker, id, key, epoch, extra)
#else
#define SL_RECORD(kind, worker, id, key, epoch, extra) ((void)0)
#endif

#endif
