/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resend.h"

#include <stdlib.h>

enum { PAGE = 10000 }; /* a question is answered with so many */

const sl_requeue_how sl_resend_how = { .lock = "sent/lock",
                                       .insert = "sent/resend",
                                       .noun = "kept message" };

static sl_rc add_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_resend_found *f = ctx;
    if (cols[3].null)
        f->keyless++;
    else if (!sl_keymap_find(&f->keys, cols[3].s))
        *sl_keymap_at(&f->keys, sl_arena_copy(&f->arena, cols[3].s)) = 1;
    return sl_refs_row(&f->refs, cols, err);
}

static sl_val age(int64_t us)
{
    sl_val v = sl_int(us);
    v.null = us == 0;
    return v;
}

sl_rc sl_resend_find(sl_resend_found *out, sl_db *db, const sl_resend_filter *f, sl_err *err)
{
    sl_ref last = { .id = INT64_MIN, .row_id = INT64_MIN };
    int64_t got = PAGE;
    while (got == PAGE) {
        sl_val in[] = { sl_text(f->topic),   sl_text(f->prefix), sl_text(f->key),
                        age(f->since_us),    age(f->until_us),   sl_int(last.id),
                        sl_int(last.row_id), sl_int(PAGE) };
        sl_rc rc = sl_db_run1(db, "sent/find", in, add_row, out, &got, err);
        if (rc != SL_OK)
            return rc;
        if (out->refs.count)
            last = out->refs.v[out->refs.count - 1];
    }
    sl_refs_sort(&out->refs);
    return SL_OK;
}

sl_rc sl_resend_pick(sl_resend_found *out, sl_db *db, const int64_t *ids, size_t n, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < n; i += PAGE) {
        size_t some = n - i < PAGE ? n - i : PAGE;
        rc = sl_db_run1(db, "sent/pick", (sl_val[]){ sl_ints(ids + i, some) }, add_row, out,
                        NULL, err);
    }
    sl_refs_sort(&out->refs);
    return rc;
}

static int by_id(const void *id, const void *ref)
{
    int64_t x = *(const int64_t *)id;
    int64_t y = ((const sl_ref *)ref)->id;
    return (x > y) - (x < y);
}

bool sl_resend_has(const sl_resend_found *found, int64_t id)
{
    const sl_refs *r = &found->refs;
    return r->count && bsearch(&id, r->v, r->count, sizeof *r->v, by_id);
}

void sl_resend_found_fini(sl_resend_found *found)
{
    sl_refs_fini(&found->refs);
    sl_keymap_fini(&found->keys);
    sl_arena_fini(&found->arena);
    *found = (sl_resend_found){ 0 };
}
