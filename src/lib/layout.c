/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/layout.h"

static sl_rc names_beside(sl_names *out, const sl_settings *s, sl_err *err)
{
    sl_debezium d;
    sl_buf text = { 0 };
    if (s->columns.count)
        return sl_fail(err, SL_REFUSED,
                       "columns has no meaning with layout: debezium\nhint: their columns are "
                       "named by debezium: table.field.event.key and its like");
    sl_rc rc = sl_debezium_read(&d, &s->debezium, err);
    if (rc != SL_OK)
        return rc;
    sl_debezium_text(&d, &text);
    sl_debezium_fini(&d);
    rc = sl_names_beside(out, s->table, sl_buf_text(&text), err);
    sl_buf_fini(&text);
    return rc;
}

sl_rc sl_layout_names(sl_names *out, const sl_settings *s, sl_err *err)
{
    if (s->layout == SL_LAYOUT_DEBEZIUM)
        return names_beside(out, s, err);
    if (s->debezium.count)
        return sl_fail(err, SL_REFUSED,
                       "debezium is for layout: debezium only\nhint: --layout debezium");
    sl_rc rc = sl_names_init(out, s->table, &s->columns, err);
    out->rotated = rc == SL_OK && s->layout == SL_LAYOUT_ROTATED;
    return rc;
}

sl_layout_terms sl_layout_terms_of(const sl_settings *s)
{
    sl_layout_terms terms = { 0 };
    sl_debezium d;
    sl_buf target = { 0 };
    if (s->layout != SL_LAYOUT_DEBEZIUM || sl_debezium_read(&d, &s->debezium, NULL) != SL_OK)
        return terms;
    sl_debezium_target(&d, &target);
    terms = (sl_layout_terms){ .target = target.p,
                               .format = "plain",
                               .created_time = d.timestamp != NULL };
    sl_debezium_fini(&d);
    return terms;
}
