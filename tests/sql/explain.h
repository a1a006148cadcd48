/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a statement, as PostgreSQL would run it now in a worker's own session. */
#ifndef TESTS_SQL_EXPLAIN_H
#define TESTS_SQL_EXPLAIN_H

#include "contract/claims.h"

/* So many plans may be asked for in a session: a place that is used twice would answer with its first one. */
enum { EXPLAINED = 48 };

/* The very statement that the driver has prepared. */
static inline void explain(const worker *w, const char *stmt, const char *params, sl_buf *plan)
{
    static int slot;
    char sql[256];
    sl_err err = { 0 };
    snprintf(sql, sizeof sql, "EXPLAIN (COSTS OFF) EXECUTE sluice_%d (%s)",
             sl_db_stmt(w->db, stmt)->index, params);
    sl_stmt s = testdb_stmt(w->db, slot++ % EXPLAINED, sql, 1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = testdb_row_text, .ctx = plan };
    if (w->db->ops->run(w->db, &call, 1, &err) != SL_OK)
        fail_msg("%s: %s", sql, err.text);
}

/* None of this session's statements has a plan that is good for some values only, and is made again for others. */
static inline void all_were_planned_once(const worker *w)
{
    sl_err err = { 0 };
    sl_buf again = { 0 };
    static const char sql[] =
        "SELECT statement FROM pg_prepared_statements WHERE custom_plans > 0 "
        "AND strpos(statement, 'plan_cache_mode') = 0"; /* until then it may */
    sl_stmt s = testdb_stmt(w->db, EXPLAINED, sql, 1, SL_T_TEXT);
    sl_call call = { .stmt = &s, .row = testdb_row_text, .ctx = &again };
    if (w->db->ops->run(w->db, &call, 1, &err) != SL_OK)
        fail_msg("%s", err.text);
    if (again.n)
        fail_msg("planned more than once:\n%s", sl_buf_text(&again));
}

#endif
