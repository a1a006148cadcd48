/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement of sql/sqlite/ on the real library: it is prepared, it has the parameters and
 * the columns of its `in:` and `out:`, it runs, and the text also runs as it stands beside a
 * schema whose words were not replaced. The one exception is `sluice_lanes`, which stands for a
 * number and is no name: there, a reader of schema/001.sql has to write one.
 */
#include "support/testdb.h"

#ifndef SL_TEST_HAS_SQLITE
int main(void)
{
    return TESTDB_SKIPPED;
}
#else

#include <sqlite3.h>

/* Of layout debezium: somebody else's. */
#define SOURCE "CREATE TABLE sluice_source (id text PRIMARY KEY)"

static testdb t;
static sqlite3 *lite;

static void connect_to(const testdb *on)
{
    assert_int_equal(sqlite3_open(on->url + strlen("sqlite:"), &lite), SQLITE_OK);
}

static int teardown(void **state)
{
    (void)state;
    sqlite3_close_v2(lite); /* also with a statement that a failure left behind */
    lite = NULL;
    testdb_drop(&t);
    return 0;
}

static void exec(const char *sql)
{
    if (sqlite3_exec(lite, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%.200s: %s", sql, sqlite3_errmsg(lite));
}

/* ---- Described as declared ---- */

static sqlite3_stmt *prepare(const sl_stmt *s, const char *text)
{
    sqlite3_stmt *st = NULL;
    const char *rest = NULL;
    if (sqlite3_prepare_v2(lite, text, -1, &st, &rest) != SQLITE_OK)
        fail_msg("%s: %s", s->name, sqlite3_errmsg(lite));
    assert_int_equal(strspn(rest, " \n"), strlen(rest)); /* one statement, no more */
    if (sqlite3_bind_parameter_count(st) != s->nparams || sqlite3_column_count(st) != s->ncols)
        fail_msg("%s: %d in, %d out; declared are %d and %d", s->name,
                 sqlite3_bind_parameter_count(st), sqlite3_column_count(st), s->nparams,
                 s->ncols);
    for (int i = 1; i <= s->nparams; i++)
        if (!sqlite3_bind_parameter_name(st, i))
            fail_msg("%s: ?%d is not used", s->name, i);
    return st;
}

static void bind_zero(const sl_stmt *s, sqlite3_stmt *st, int at)
{
    switch (s->params[at - 1]) {
    case SL_T_INT8S:
        if (s->whole)
            sqlite3_bind_text(st, at, "[0]", 3, SQLITE_STATIC);
        else
            sqlite3_bind_int64(st, at, 0);
        break;
    case SL_T_TEXT:
    case SL_T_TEXTS:
        sqlite3_bind_text(st, at, "{}", 2, SQLITE_STATIC);
        break;
    case SL_T_BYTES:
    case SL_T_BYTESS:
        sqlite3_bind_zeroblob(st, at, 0);
        break;
    default:
        sqlite3_bind_int64(st, at, 0);
    }
}

/* With all parameters NULL, or with a zero of each kind. A constraint may refuse a NULL, and so
 * may LIMIT; anything else is a mistake in the text. */
static void run_once(const sl_stmt *s, sqlite3_stmt *st, bool nulls)
{
    int code;
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    for (int i = 0; !nulls && i < s->nparams; i++)
        bind_zero(s, st, i + 1);
    while ((code = sqlite3_step(st)) == SQLITE_ROW)
        ;
    bool refused = nulls && (code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH);
    if (code != SQLITE_DONE && !refused)
        fail_msg("%s with %s: %s", s->name, nulls ? "NULLs" : "zeros", sqlite3_errmsg(lite));
    sqlite3_reset(st);
}

static void run_in_a_transaction(const sl_stmt *s, sqlite3_stmt *st)
{
    if (!strncmp(s->name, "tx/", 3))
        return;
    for (int nulls = 0; nulls < 2; nulls++) {
        exec("BEGIN IMMEDIATE");
        run_once(s, st, nulls);
        exec("ROLLBACK");
    }
}

/* Returns how many. `names` NULL: as it stands. */
static int prepare_all(const sl_names *names)
{
    int n = 0;
    for (int i = 0; i < sl_stmts_count; i++) {
        const sl_stmt *s = &sl_stmts[i];
        if (strcmp(s->dialect, "sqlite") != 0)
            continue;
        sl_buf text = { 0 };
        if (names)
            sl_names_apply(names, s->text, &text);
        sqlite3_stmt *st = prepare(s, names ? sl_buf_text(&text) : s->text);
        run_in_a_transaction(s, st);
        sqlite3_finalize(st);
        sl_buf_fini(&text);
        n++;
    }
    return n;
}

/* All that any of them speaks of. */
static void init(const sl_opt_map *columns)
{
    testdb_init(&t, "sqlite", columns);
    testdb_exec(&t, sl_script_named("sqlite", "schema/inbox")->text);
    connect_to(&t);
    exec(SOURCE);
}

static void every_statement_is_as_declared(void **state)
{
    (void)state;
    init(NULL);
    testdb_fill(&t, 3, 1);
    assert_true(prepare_all(&t.names) >= 50);
    assert_int_equal(testdb_count(&t), 3);
}

static void so_it_is_with_every_column_renamed(void **state)
{
    (void)state;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "Their_");
    init(&map);
    testdb_fill(&t, 3, 1);
    assert_true(prepare_all(&t.names) >= 50);
    testdb_map_fini(&map);
}

/* ---- Verbatim ---- */

/* As a reader would: a number in place of sluice_lanes, and nothing else. */
static void run_verbatim(const char *script)
{
    sl_buf text = { 0 };
    const char *p = sl_script_named("sqlite", script)->text;
    for (const char *at; (at = strstr(p, "sluice_lanes")); p = at + strlen("sluice_lanes")) {
        sl_buf_put(&text, p, (size_t)(at - p));
        sl_buf_puts(&text, "64");
    }
    sl_buf_puts(&text, p);
    exec(sl_buf_text(&text));
    sl_buf_fini(&text);
}

static void run_schema(void)
{
    for (int v = 1; v <= SL_SCHEMA_VERSION; v++) {
        char name[16];
        snprintf(name, sizeof name, "schema/%03d", v);
        run_verbatim(name);
    }
    run_verbatim("schema/inbox");
    exec(SOURCE);
}

static void every_text_runs_as_it_stands(void **state)
{
    (void)state;
    testdb_make(&t, "sqlite", NULL);
    connect_to(&t);
    run_verbatim("session/pragmas");
    run_schema();
    assert_true(prepare_all(NULL) >= 50);
}

static void adopting_runs_as_it_stands(void **state)
{
    (void)state;
    testdb_make(&t, "sqlite", NULL);
    connect_to(&t);
    exec("CREATE TABLE sluice_outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, payload BLOB)");
    run_verbatim("schema/adopt");
    run_schema();
    assert_true(prepare_all(NULL) >= 50);
}

/* ---- Plans ---- */

/* The oldest by the table's own order: nothing of the whole table to sort. */
static void claims_read_in_the_order_of_the_ids(void **state)
{
    (void)state;
    static const char *const names[] = { "skip_locked/take", "skip_locked/lease" };
    testdb_init(&t, "sqlite", NULL);
    connect_to(&t);
    for (size_t i = 0; i < COUNT(names); i++) {
        sl_buf text = { 0 };
        sqlite3_stmt *st = NULL;
        int order_of_o = -1, sorts_of[64] = { 0 };
        sl_buf_puts(&text, "EXPLAIN QUERY PLAN ");
        sl_names_apply(&t.names, sl_db_stmt(t.eye, names[i])->text, &text);
        assert_int_equal(sqlite3_prepare_v2(lite, sl_buf_text(&text), -1, &st, NULL),
                         SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW) {
            int parent = sqlite3_column_int(st, 1);
            const char *detail = (const char *)sqlite3_column_text(st, 3);
            if (!strcmp(detail, "SCAN o"))
                order_of_o = parent;
            if (strstr(detail, "TEMP B-TREE"))
                sorts_of[parent % 64]++;
        }
        sqlite3_finalize(st);
        sl_buf_fini(&text);
        assert_true(order_of_o >= 0);
        assert_int_equal(sorts_of[order_of_o % 64], 0);
    }
}

/* All lines of a column of EXPLAIN or EXPLAIN QUERY PLAN. */
static void explain(const char *how, const char *name, int column, sl_buf *out)
{
    sl_buf text = { 0 };
    sqlite3_stmt *st = NULL;
    sl_buf_printf(&text, "%s ", how);
    sl_names_apply(&t.names, sl_db_stmt(t.eye, name)->text, &text);
    assert_int_equal(sqlite3_prepare_v2(lite, sl_buf_text(&text), -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(st, column);
        sl_buf_printf(out, "%s\n", line ? line : "");
    }
    sqlite3_finalize(st);
    sl_buf_fini(&text);
}

static void looks_up(const char *name, const char *line)
{
    sl_buf plan = { 0 };
    explain("EXPLAIN QUERY PLAN", name, 3, &plan);
    if (!strstr(sl_buf_text(&plan), line))
        fail_msg("%s: no '%s' in\n%s", name, line, sl_buf_text(&plan));
    sl_buf_fini(&plan);
}

/* With or without statistics. */
static void a_stretch_is_found_by_lane_and_id(void **state)
{
    (void)state;
    testdb_init(&t, "sqlite", NULL);
    connect_to(&t);
    for (int analyzed = 0; analyzed < 2; analyzed++) {
        looks_up("lanes/take_stretch",
                 "SEARCH o USING INDEX outbox_ix_lane (lane=? AND id>? AND "
                 "id<?)\n");
        looks_up("lanes/take_stretch", "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)\n");
        looks_up("lanes/sent_stretch",
                 "SEARCH outbox USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)\n");
        looks_up("lanes/sent_stretch", "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)\n");
        looks_up("lanes/beyond", "SEARCH o USING INTEGER PRIMARY KEY (rowid>?)\n");
        testdb_fill(&t, 2000, 1);
        exec("ANALYZE");
    }
}

/* With or without statistics; and what is found by id comes in that order. */
static void a_turn_of_keys_is_found_by_id(void **state)
{
    (void)state;
    testdb_init(&t, "sqlite", NULL);
    connect_to(&t);
    for (int analyzed = 0; analyzed < 2; analyzed++) {
        sl_buf plan = { 0 };
        looks_up("guard/sent", "SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)\n");
        looks_up("guard/sent", "SEARCH c USING INDEX outbox_ix_claims (epoch=?)\n");
        looks_up("guard/leased", "SEARCH c USING COVERING INDEX outbox_ix_claims (epoch=?)\n");
        looks_up("keyed/read", "SEARCH o USING INTEGER PRIMARY KEY (rowid=?)\n");
        explain("EXPLAIN QUERY PLAN", "keyed/read", 3, &plan);
        assert_null(strstr(sl_buf_text(&plan), "TEMP B-TREE"));
        sl_buf_fini(&plan);
        testdb_fill(&t, 2000, 1);
        exec("INSERT OR IGNORE INTO outbox_claims (claim, epoch, ends_at, holder, held_by) "
             "SELECT 'i' || id, id / 500, '2000-01-01 00:00:00.000', 1, 'n/1' FROM outbox");
        exec("ANALYZE");
    }
}

/* That would be opened for each of them again, and costs ten times as much as the row: RETURNING does it. */
static void a_statement_for_each_key_has_no_table_of_its_own(void **state)
{
    (void)state;
    static const char *const names[] = { "keyed/lock", "guard/lease", "advisory/keep",
                                         "advisory/let_go" };
    sl_buf other = { 0 };
    testdb_init(&t, "sqlite", NULL);
    connect_to(&t);
    for (size_t i = 0; i < COUNT(names); i++) {
        sl_buf code = { 0 };
        explain("EXPLAIN", names[i], 1, &code);
        if (strstr(sl_buf_text(&code), "OpenEphemeral"))
            fail_msg("%s: OpenEphemeral in\n%s", names[i], sl_buf_text(&code));
        sl_buf_fini(&code);
    }
    explain("EXPLAIN", "guard/renew", 1, &other);
    assert_non_null(strstr(sl_buf_text(&other), "OpenEphemeral"));
    sl_buf_fini(&other);
}

/* That costs as much as all the rest of a message: its key is taken to pieces. */
static void a_stretch_computes_no_lane(void **state)
{
    (void)state;
    sl_buf code = { 0 }, other = { 0 };
    testdb_init(&t, "sqlite", NULL);
    connect_to(&t);
    explain("EXPLAIN", "lanes/take_stretch", 5, &code);
    explain("EXPLAIN", "lanes/sent", 5, &other);
    assert_null(strstr(sl_buf_text(&code), "unicode("));
    assert_non_null(strstr(sl_buf_text(&other), "unicode("));
    sl_buf_fini(&code);
    sl_buf_fini(&other);
}

int main(void)
{
    if (!testdb_has("sqlite"))
        return TESTDB_SKIPPED;
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_statement_is_as_declared),
        TEST(so_it_is_with_every_column_renamed),
        TEST(every_text_runs_as_it_stands),
        TEST(adopting_runs_as_it_stands),
        TEST(claims_read_in_the_order_of_the_ids),
        TEST(a_stretch_is_found_by_lane_and_id),
        TEST(a_turn_of_keys_is_found_by_id),
        TEST(a_statement_for_each_key_has_no_table_of_its_own),
        TEST(a_stretch_computes_no_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
