/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: in a table of layout `rotated` what was delivered is not deleted. One row says of a whole batch that all below
 * a mark is done, in the lanes of the turn (sql/postgres/done). That may be said only of ids that are final
 * (member/final.h), read in one piece, and all delivered; anything else is deleted, as in any other layout. So a
 * floor of such a lane must never be forgotten: below it stands what was delivered.
 */
#ifndef SL_CLAIM_MARKS_H
#define SL_CLAIM_MARKS_H

#include "member/lanes.h"

typedef struct sl_marks {
    bool able;          /* the table is one of those */
    int64_t final;      /* ids up to this were final before the last read */
    int64_t patient_ns; /* so long it is waited for ids to become final; 0: not at all */
    int64_t stuck; /* where that was in vain: until they have gone on, it is not tried again */
    sl_final *source;
    sl_final_asked asked;
} sl_marks;

void sl_marks_fini(sl_marks *m);

/* The calls that are to be run before a read, so many; and what they have said, whatever happened. */
size_t sl_marks_ask(sl_marks *m, sl_db *db, sl_call calls[SL_FINAL_CALLS]);
void sl_marks_answered(sl_marks *m, bool ok);
/* The read gave so many, with ids up to this. */
void sl_marks_note(sl_marks *m, int64_t last, int64_t came, int64_t now_ns);

/* Where a stretch ends: before what is not final, if there is enough before that which was not read yet, from `from` on;
 * or if more is likely to be in a moment. Under load that makes each message wait for one turn more, and its deletion
 * is saved. */
int64_t sl_marks_end(sl_marks *m, int64_t from, int64_t upto, int64_t max, int64_t now_ns);
/* Is it such a moment? */
bool sl_marks_patient(const sl_marks *m);
/* Nothing lives below `low`, as far as was seen: a floor as far as that is final. */
void sl_marks_raise(const sl_marks *m, sl_floor *f, int64_t low);

#endif
