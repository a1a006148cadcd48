/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a journal says after its node died, and what follows from it for a message that the node had
 * consumed (docs/journal.md). A journal that cannot be trusted never says that something was not sent.
 */
#ifndef SL_JOURNAL_REPLAY_H
#define SL_JOURNAL_REPLAY_H

#include "core/err.h"
#include "journal/block.h"
#include "journal/idmap.h"

#include <stdbool.h>
#include <sys/stat.h>

/* The last thing that the journal says of a message; the values are those in the file. */
typedef enum sl_journal_state {
    SL_JOURNAL_SENDING = SL_JB_SENDING, /* it may have gone out */
    SL_JOURNAL_SENT = SL_JB_SENT,
    SL_JOURNAL_FAILED = SL_JB_FAILED /* it surely did not go out */
} sl_journal_state;

const char *sl_journal_state_name(sl_journal_state s); /* "sending" */

/* What a node writes into the database with each consumption: which journal, opened by which session,
 * and how far it was synced then. */
typedef struct sl_journal_stamp {
    int64_t journal;
    int64_t session;
    int64_t position;
} sl_journal_stamp;

typedef enum sl_fate {
    SL_FATE_UNKNOWN,    /* only an operator may send it again */
    SL_FATE_NEVER_SENT, /* no byte of it has left: it may go back to the outbox */
    SL_FATE_FAILED, /* tried, and the sink said that it did not go out: as never sent, once tried */
    SL_FATE_SENT /* done */
} sl_fate;

typedef struct sl_replay {
    bool fresh;    /* there was no journal; then nothing below counts, and all is unknown */
    bool whole;    /* all that was ever synced is there */
    bool torn;     /* something was being written that was not synced yet: it does not count */
    bool in_use;   /* sl_replay_read: a node has it open */
    char why[160]; /* not whole: what is wrong */
    sl_jb_head head;
    uint64_t end;       /* the number behind the last block */
    uint64_t synced;    /* all below it were, as the file itself tells */
    uint64_t records;   /* whole ones that were found */
    sl_idmap ids;       /* state: sl_journal_state */
    sl_jb_pair *opened; /* sessions and when, in Unix us; the eldest first */
    size_t opened_count;
} sl_replay;

/* The journal in a file, which is not changed or locked: a node may be writing to it. An error is for the
 * operator: no such file, no journal, not readable. sl_replay_fini afterwards, in any case. */
SL_CHECK sl_rc sl_replay_read(sl_replay *r, const char *path, sl_err *err);
/* The same of an open file. */
SL_CHECK sl_rc sl_replay_read_fd(sl_replay *r, int fd, const char *path, sl_err *err);
/* The same of bytes. SL_JB_ALIEN, SL_JB_NEWER, or SL_JB_GOOD, also if it is not whole. */
sl_jb_found sl_replay_bytes(sl_replay *r, const uint8_t *bytes, size_t n,
                            const struct stat *st);
void sl_replay_fini(sl_replay *r);

/* The database knows of a consumption with this stamp. A journal that ends before it is an older copy of
 * itself: it is not whole then. See sl_journal_expect. */
void sl_replay_expect(sl_replay *r, const sl_journal_stamp *newest);
/* Of a message that was consumed with this epoch and this stamp. */
sl_fate sl_replay_fate(const sl_replay *r, int64_t id, int64_t epoch,
                       const sl_journal_stamp *stamp);
size_t sl_replay_count(const sl_replay *r, sl_journal_state state);

#endif
