/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash journal: with promise at-most-once a node consumes messages in the database and then sends them.
 * When it dies in between, the database cannot tell which of them went out. This file on a local disk can:
 * nothing is sent before a record that names it was synced. docs/journal.md tells what follows from it, and
 * journal/block.h what its bytes are.
 *
 *   open            what the file says of earlier sessions is in sl_journal_replayed; settle that first
 *   expect          the database tells how far it was synced once
 *   reconciled      the database has it: earlier sessions may be forgotten
 *   room            before consuming: is there room for what follows?
 *   stamp           goes into the database with the consumption
 *   sending         after the consumption was committed, before the first byte leaves
 *   verdict         as soon as the sink has said it
 *   settled         the database has it: it may be forgotten
 *
 * Any thread may call any of these; open, replayed, expect, reconciled and close are for one that is alone.
 *
 * An error other than SL_AGAIN is the end: the journal refuses everything from then on, and no byte of what
 * was refused may leave. In particular a failed sync is never tried again, since the kernel may have
 * forgotten what it could not write.
 */
#ifndef SL_JOURNAL_JOURNAL_H
#define SL_JOURNAL_JOURNAL_H

#include "journal/replay.h"

typedef struct sl_journal sl_journal;

typedef struct sl_journal_conf {
    const char *path; /* a file of its own, on a local disk; created if it is not there */
    const char *node; /* must be the same at the next start */
    int64_t session;  /* of this process, and of no other */
    uint64_t bytes; /* of the file; 0: 8 MB. It is larger while more than that is outstanding */
} sl_journal_conf;

/* Locks the file until close. A damaged journal is kept beside it, as PATH.bad, and a new one begun, with
 * another identity: what was consumed with the old one is unknown, unless it is known to be sent. */
SL_CHECK sl_rc sl_journal_open(sl_journal **out, const sl_journal_conf *conf, sl_err *err);
/* Syncs the verdicts, too. */
void sl_journal_close(sl_journal *j);

/* Of the file as it was found. Until sl_journal_reconciled. */
sl_replay *sl_journal_replayed(sl_journal *j);
/* Tell it of the highest position that the database has of this journal's consumptions, before any fate is
 * asked: a journal that ends before it is an older copy, from a backup perhaps. It is treated as a damaged
 * one. */
SL_CHECK sl_rc sl_journal_expect(sl_journal *j, const sl_journal_stamp *newest, sl_err *err);
/* All consumptions of earlier sessions are settled in the database, as unknown or otherwise. */
void sl_journal_reconciled(sl_journal *j);

/* For a consumption that is committed after this call, and nothing of which was sent before it. */
sl_journal_stamp sl_journal_stamp_now(sl_journal *j);

/* Room for `count` messages and their verdicts, whatever the disk does meanwhile. SL_AGAIN: the disk is full;
 * do not consume. */
SL_CHECK sl_rc sl_journal_room(sl_journal *j, size_t count, sl_err *err);

/* On SL_OK all of them are named on disk. On anything else none may be sent; SL_AGAIN: the disk is full, and
 * nothing was written. */
SL_CHECK sl_rc sl_journal_sending(sl_journal *j, const int64_t *ids, const int64_t *epochs,
                                  size_t count, sl_err *err);
/* SL_JOURNAL_FAILED only if they surely did not go out. Not synced: a verdict that is lost leaves its message
 * unknown. Ids that are not being sent are passed over. */
void sl_journal_verdict(sl_journal *j, const int64_t *ids, size_t count,
                        sl_journal_state state);
void sl_journal_settled(sl_journal *j, const int64_t *ids, size_t count);

typedef struct sl_journal_counts {
    uint64_t records, syncs, rotations; /* since it was opened */
    uint64_t lost_verdicts;             /* not written, since the disk was full */
    size_t outstanding;                 /* messages of this session that are not settled */
    uint64_t file_bytes, used_bytes;
} sl_journal_counts;

sl_journal_counts sl_journal_count(sl_journal *j);

#endif
