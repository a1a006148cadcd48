/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sl_line_parse have in common. */
#ifndef TESTS_UNIT_FORMAT_LINES_H
#define TESTS_UNIT_FORMAT_LINES_H

#include "format/format.h"

#include "unit/unit.h"

static sl_arena arena;

static inline int forget(void **state)
{
    (void)state;
    sl_arena_fini(&arena);
    return 0;
}

static inline sl_draft parsed(sl_str line)
{
    /* A copy of its own, gone before the draft is looked at: what the draft borrows from the
     * line and what reads past its end is seen by the sanitizer. */
    char *copy = malloc(line.n ? line.n : 1);
    assert_non_null(copy);
    memcpy(copy, line.p, line.n);
    sl_draft d;
    sl_err err = { 0 };
    sl_rc rc = sl_line_parse(&d, copy, line.n, &arena, &err);
    free(copy);
    if (rc != SL_OK)
        fail_msg("%.*s: %s", (int)(line.n < 200 ? line.n : 200), line.p, err.text);
    return d;
}

static inline void refused(sl_str line, const char *text)
{
    sl_draft d;
    sl_err err = { 0 };
    assert_int_equal(sl_line_parse(&d, line.p, line.n, &arena, &err), SL_REFUSED);
    assert_int_equal(err.rc, SL_REFUSED);
    if (!strstr(err.text, text))
        fail_msg("%s: %s", line.p, err.text);
}

#define PARSED(literal) parsed(SL_STR(literal))
#define REFUSED(literal, text) refused(SL_STR(literal), text)

#endif
