/* SPDX-License-Identifier: Apache-2.0 */
/* What `sluice dead list` and `sluice dead show` print. A payload is only ever in the second. */
#ifndef SL_CLI_DEAD_PRINT_H
#define SL_CLI_DEAD_PRINT_H

#include "cli/dead.h"
#include "cli/table.h"

typedef struct sl_dead_page {
    const char *table;
    bool filtered;
    sl_dead_counts counts;
    bool json;
    size_t shown;
    size_t width; /* of the terminal; 0: there is none */
    sl_table rows;
    sl_buf out;
} sl_dead_page; /* set the first three, the rest zero */

void sl_dead_page_begin(sl_dead_page *p, bool json);
SL_CHECK sl_rc sl_dead_page_row(void *page, const sl_val *cols, sl_err *err); /* of dead/list */
void sl_dead_page_print(sl_dead_page *p, FILE *out);
void sl_dead_page_fini(sl_dead_page *p);

/* Rows of dead/show, into a sl_buf. */
SL_CHECK sl_rc sl_dead_show_json(void *buf, const sl_val *cols, sl_err *err);
SL_CHECK sl_rc sl_dead_show_text(void *buf, const sl_val *cols, sl_err *err);

#endif
