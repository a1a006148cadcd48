/* SPDX-License-Identifier: Apache-2.0 */
/* What `sluice keys list` prints. */
#ifndef SL_CLI_KEYS_PRINT_H
#define SL_CLI_KEYS_PRINT_H

#include "cli/keys.h"
#include "cli/table.h"
#include "core/buf.h"

typedef struct sl_keys_page {
    const char *table;
    bool filtered;
    sl_keys_counts counts;
    bool json;
    size_t shown;
    size_t width; /* of the terminal; 0: there is none */
    sl_table rows;
    sl_buf out;
} sl_keys_page; /* set the first three, the rest zero */

void sl_keys_page_begin(sl_keys_page *p, bool json);
SL_CHECK sl_rc sl_keys_page_row(void *page, const sl_val *cols, sl_err *err); /* of keys/list */
void sl_keys_page_print(sl_keys_page *p, FILE *out);
void sl_keys_page_fini(sl_keys_page *p);

/* "key 'order:9182'": what a terminal would obey becomes a question mark, and what is long is cut. */
void sl_keys_put_name(sl_buf *out, sl_str key);

#endif
