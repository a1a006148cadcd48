/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/marks.h"

#include "core/mem.h"

/* To ask who writes costs as much as to delete so many messages: then a mark is worth it. */
enum { WORTH = 32 };

void sl_marks_fini(sl_marks *m)
{
    sl_final_asked_fini(&m->asked);
    free(m->table);
}

size_t sl_marks_ask(sl_marks *m, sl_db *db, sl_call calls[SL_FINAL_CALLS])
{
    m->final = sl_final_upto(m->source);
    return sl_final_ask(m->source, db, &m->asked, calls);
}

/* Not what others have been told meanwhile: that was after the read. */
void sl_marks_answered(sl_marks *m, bool ok)
{
    int64_t shown = sl_final_answered(m->source, &m->asked, ok);
    m->final = shown > m->final ? shown : m->final;
}

/* Where many come, as many are likely to come next: so that it is known of them when they are read. */
void sl_marks_note(sl_marks *m, int64_t last, int64_t came)
{
    if (last > m->final || came >= WORTH)
        sl_final_want(m->source, came >= WORTH ? last + 1 : last);
}

int64_t sl_marks_end(const sl_marks *m, int64_t from, int64_t upto, int64_t max)
{
    int64_t final = sl_final_upto(m->source);
    int64_t enough = max < WORTH ? max : WORTH;
    return final < upto && final + 1 - from >= enough ? final + 1 : upto;
}

sl_val sl_marks_table(sl_marks *m, const sl_lane_uses *uses, size_t lanes)
{
    if (m->cap < lanes) {
        m->cap = lanes;
        m->table = sl_realloc(m->table, m->cap * sizeof *m->table);
    }
    for (size_t i = 0; i < lanes; i++)
        m->table[i] = INT64_MAX;
    for (size_t i = 0; i < uses->count; i++)
        m->table[uses->v[i].lane] = uses->v[i].floor.at;
    return sl_ints(m->table, lanes);
}

void sl_marks_raise(const sl_marks *m, sl_floor *f, int64_t low)
{
    sl_floor_raise(f, low <= m->final ? low : m->final + 1);
}
