/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/marks.h"

#include "core/clock.h"
#include "core/mem.h"

/* To ask who writes costs as much as to delete so many messages: then a mark is worth it. */
enum { WORTH = 32 };
/* From so many in a read on: below, what is saved is less than the time that it costs them. */
enum { MANY = 128 };
/* Producers that keep up such a load have short transactions. */
#define PATIENCE_NS (10 * SL_MS)

void sl_marks_fini(sl_marks *m)
{
    sl_final_asked_fini(&m->asked);
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
void sl_marks_note(sl_marks *m, int64_t last, int64_t came, int64_t now_ns)
{
    if (last > m->final || came >= WORTH)
        sl_final_want(m->source, came >= WORTH ? last + 1 : last);
    if (came >= MANY)
        m->patient_ns = now_ns + PATIENCE_NS;
}

bool sl_marks_patient(const sl_marks *m)
{
    return m->patient_ns > 0;
}

/* Who writes for long would make all others wait each time. */
static bool is_patient(sl_marks *m, int64_t final, int64_t now_ns)
{
    if (m->patient_ns && now_ns >= m->patient_ns)
        m->stuck = final;
    if (now_ns >= m->patient_ns || final == m->stuck)
        m->patient_ns = 0;
    return sl_marks_patient(m);
}

int64_t sl_marks_end(sl_marks *m, int64_t from, int64_t upto, int64_t max, int64_t now_ns)
{
    int64_t final = sl_final_upto(m->source);
    int64_t enough = max < WORTH ? max : WORTH;
    bool patient = is_patient(m, final, now_ns);
    return final < upto && (patient || final + 1 - from >= enough) ? final + 1 : upto;
}

void sl_marks_raise(const sl_marks *m, sl_floor *f, int64_t low)
{
    sl_floor_raise(f, low <= m->final ? low : m->final + 1);
}
