/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stretch: a worker that has a good part of all lanes reads the table in its own order instead of lane by
 * lane, and deletes a range of it. Both cost the server about half, and for a few messages much less. It does not
 * pay where most of what stands there is of others' lanes, is held, or has gone: so a stretch is a bounded
 * number of ids. When it does not fill the batch and there is more beyond it, or where it would begin far
 * below what comes next, lanes are read one by one.
 */
#ifndef SL_CLAIM_STRETCH_H
#define SL_CLAIM_STRETCH_H

#include "core/arena.h"
#include "db/db.h"

typedef struct sl_stretch {
    bool able;         /* the database has statements for it */
    bool busy;         /* the last read, of either kind, gave a good part of a batch */
    int64_t next;      /* what comes now is not far from here: one more than the last id */
    int64_t resume_ns; /* lane by lane until then */
} sl_stretch;

/* Is it a good part, so many of all lanes? */
bool sl_stretch_has_part(size_t used, size_t lanes);
/* Is one from `from` on worth trying, for a batch of `max`? */
bool sl_stretch_pays(const sl_stretch *s, int64_t from, int64_t max, int64_t now_ns);
/* Where it ends at the latest. */
int64_t sl_stretch_end(const sl_stretch *s, int64_t from, int64_t max);
/* A read for at most `max` messages gave `came`, the last one `last`. */
void sl_stretch_note(sl_stretch *s, int64_t max, int64_t came, int64_t last);
/* One did not fill its batch, and there is more; or it met a message that is too large for it. */
void sl_stretch_failed(sl_stretch *s, bool large, int64_t now_ns);
/* Is a range of ids mostly those of a batch? */
bool sl_stretch_dense(int64_t first, int64_t last, size_t count);
/* Such ids, in any order, as a statement asks for them row by row: a byte for each id of the range, 1 if it is one of
 * them; and the first one. */
void sl_stretch_map(sl_val in[2], sl_arena *arena, const int64_t *ids, size_t count);

#endif
