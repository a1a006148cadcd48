/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the table is: our own, or that of another relay's users, whom it spares to change anything. */
#ifndef SL_LIB_LAYOUT_H
#define SL_LIB_LAYOUT_H

#include "db/debezium.h"
#include "db/names.h"
#include "lib/settings.h"

typedef enum sl_layout { SL_LAYOUT_SLUICE, SL_LAYOUT_DEBEZIUM, SL_LAYOUT_ROTATED } sl_layout;

/* What the tables are called. Refuses settings of one layout with another. */
SL_CHECK sl_rc sl_layout_names(sl_names *out, const sl_settings *s, sl_err *err);

/* What a sink is told where neither the route nor the top level says it; NULL: nothing. */
typedef struct sl_layout_terms {
    char *target; /* to be freed */
    const char *format;
    bool created_time;
} sl_layout_terms;

sl_layout_terms sl_layout_terms_of(const sl_settings *s); /* of settings that were checked */

#endif
