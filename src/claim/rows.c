/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/rows.h"

/* Text columns may be NULL in a table that was adopted: they then read as empty. */
static sl_str text(sl_batch *b, const sl_val *v)
{
    return sl_arena_copy(&b->arena, v->null ? SL_STR("") : v->s);
}

sl_rc sl_claim_row(void *batch, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_batch *b = batch;
    sl_msg *m = sl_batch_add(b);
    m->id = cols[0].i;
    m->epoch = cols[1].i;
    m->attempt = (int32_t)cols[2].i;
    m->created_us = cols[3].null ? 0 : cols[3].i;
    m->topic = text(b, &cols[4]);
    m->key = cols[5].null ? SL_NONE : sl_arena_copy(&b->arena, cols[5].s);
    m->type = text(b, &cols[6]);
    m->content_type = text(b, &cols[7]);
    m->headers = cols[8].null ? SL_NONE : sl_arena_copy(&b->arena, cols[8].s);
    m->payload = cols[9].null ? SL_NONE : sl_arena_copy(&b->arena, cols[9].s);
    return SL_OK;
}
