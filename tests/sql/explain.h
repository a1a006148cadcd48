/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a statement, as PostgreSQL would run it now in a worker's own session. */
#ifndef TESTS_SQL_EXPLAIN_H
#define TESTS_SQL_EXPLAIN_H

#include "contract/claims.h"

/* The very statement that the driver has prepared. */
static inline void explain(const worker *w, const char *stmt, const char *params, sl_buf *plan)
{
    static int slot;
    char sql[256];
    sl_err err = { 0 };
    snprintf(sql, sizeof sql, "EXPLAIN (COSTS OFF) EXECUTE sluice_%d (%s)",
             sl_db_stmt(w->db, stmt)->index, params);
    sl_stmt s = testdb_stmt(w->db, slot++ % 16, sql, 1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = testdb_row_text, .ctx = plan };
    if (w->db->ops->run(w->db, &call, 1, &err) != SL_OK)
        fail_msg("%s: %s", sql, err.text);
}

#endif
