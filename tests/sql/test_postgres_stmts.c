/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every statement of sql/postgres/ on a real server: the server's own description must agree
 * with the `in:` and `out:` of the file, and the text must also run as it stands, in psql,
 * beside a schema whose words were not replaced. The one exception is `sluice_lanes`, which
 * stands for a number and is no name: there, a reader of schema/001.sql has to write one.
 */
#include "support/testdb.h"

#ifndef SL_TEST_HAS_POSTGRES
int main(void)
{
    return TESTDB_SKIPPED;
}
#else

#include "db/pg_wire.h"

#include <libpq-fe.h>

/* Of layout debezium: somebody else's. */
#define SOURCE "CREATE TEMP TABLE sluice_source (id text PRIMARY KEY)"

static testdb t;
static PGconn *pg;

static void quiet(void *ctx, const char *notice)
{
    (void)ctx;
    (void)notice;
}

static void connect_to(const testdb *on)
{
    pg = PQconnectdb(on->url);
    assert_int_equal(PQstatus(pg), CONNECTION_OK);
    PQsetNoticeProcessor(pg, quiet, NULL);
}

static int teardown(void **state)
{
    (void)state;
    PQfinish(pg);
    testdb_drop(&t);
    return 0;
}

static void exec(const char *sql)
{
    PGresult *res = PQexec(pg, sql);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%.200s: %s", sql, PQerrorMessage(pg));
    PQclear(res);
}

/* ---- Described as declared ---- */

/* What a file may declare as this type, in the server's words. */
static bool is_declared(sl_type type, Oid oid)
{
    return oid == sl_pg_oid(type) || (type == SL_T_TEXT && oid == PG_JSONB);
}

static void compare(const sl_stmt *s, const PGresult *d)
{
    if (PQnparams(d) != s->nparams || PQnfields(d) != s->ncols)
        fail_msg("%s: %d in, %d out; declared are %d and %d", s->name, PQnparams(d),
                 PQnfields(d), s->nparams, s->ncols);
    for (int i = 0; i < s->nparams; i++)
        if (PQparamtype(d, i) != sl_pg_oid(s->params[i]))
            fail_msg("%s: parameter %d is of type %u", s->name, i + 1, PQparamtype(d, i));
    for (int i = 0; i < s->ncols; i++)
        if (!is_declared(s->cols[i], PQftype(d, i)))
            fail_msg("%s: column %d is of type %u", s->name, i + 1, PQftype(d, i));
}

/* The server takes more types than it uses: each must be in the text, and no other. */
static void check_parameters(const sl_stmt *s)
{
    for (int i = 1; i <= SL_STMT_MAX; i++) {
        char word[8];
        snprintf(word, sizeof word, "$%d", i);
        const char *at = strstr(s->text, word);
        while (at && at[strlen(word)] >= '0' && at[strlen(word)] <= '9')
            at = strstr(at + 1, word);
        if ((at != NULL) != (i <= s->nparams))
            fail_msg("%s: %s is %s", s->name, word, at ? "not declared" : "not used");
    }
}

static void prepare(const sl_stmt *s, const char *text)
{
    Oid types[SL_STMT_MAX];
    for (int i = 0; i < s->nparams; i++)
        types[i] = sl_pg_oid(s->params[i]);
    PGresult *res = PQprepare(pg, "it", text, s->nparams, types);
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", s->name, PQerrorMessage(pg));
    PQclear(res);
    res = PQdescribePrepared(pg, "it");
    assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
    compare(s, res);
    PQclear(res);
    exec("DEALLOCATE it");
}

/* Returns how many. `names` NULL: as it stands. */
static int prepare_all(const sl_names *names)
{
    int n = 0;
    for (int i = 0; i < sl_stmts_count; i++) {
        const sl_stmt *s = &sl_stmts[i];
        if (strcmp(s->dialect, "postgres") != 0)
            continue;
        sl_buf text = { 0 };
        if (names)
            sl_names_apply(names, s->text, &text);
        prepare(s, names ? sl_buf_text(&text) : s->text);
        check_parameters(s);
        sl_buf_fini(&text);
        n++;
    }
    return n;
}

/* All that any of them speaks of. */
static void init(const sl_opt_map *columns)
{
    testdb_init(&t, "postgres", columns);
    testdb_exec(&t, sl_script_named("postgres", "schema/inbox")->text);
    connect_to(&t);
    exec(SOURCE);
}

static void every_statement_is_as_declared(void **state)
{
    (void)state;
    init(NULL);
    assert_true(prepare_all(&t.names) >= 50);
}

static void so_it_is_with_every_column_renamed(void **state)
{
    (void)state;
    sl_opt_map map = { 0 };
    testdb_map_all(&map, "Their_");
    init(&map);
    assert_true(prepare_all(&t.names) >= 50);
    testdb_map_fini(&map);
}

/* ---- The same in all ---- */

#define RULE_BEGINS                                                                            \
    "CASE WHEN (SELECT count(*) FROM (SELECT FROM sluice_outbox_keys LIMIT 257) f)"
#define RULE_ENDS "THEN CASE WHEN m.attempts > 0 OR m.last_error IS NOT NULL THEN 2 ELSE 3 END"

/* Why a message may not go, as this statement has it, with one space for any number of them. */
static void rule_of(const sl_stmt *s, sl_buf *out)
{
    const char *p = strstr(s->text, RULE_BEGINS);
    const char *end = p ? strstr(p, RULE_ENDS) : NULL;
    if (!end)
        fail_msg("%s has no rule, or one that begins or ends otherwise", s->name);
    for (bool gap = false; p < end + strlen(RULE_ENDS); p++) {
        bool space = *p == ' ' || *p == '\n';
        if (space && !gap)
            sl_buf_puts(out, " ");
        else if (!space)
            sl_buf_put(out, p, 1);
        gap = space;
    }
}

/* Each statement stands whole in its file, so that those who read messages repeat it: which of them wait must not depend
 * on the way they are read. */
static void who_waits_is_the_same_in_all(void **state)
{
    (void)state;
    int readers = 0;
    sl_buf first = { 0 };
    for (int i = 0; i < sl_stmts_count; i++) {
        const sl_stmt *s = &sl_stmts[i];
        sl_buf rule = { 0 };
        if (strcmp(s->dialect, "postgres") != 0 || !strstr(s->text, "sluice_outbox_keys LIMIT"))
            continue;
        rule_of(s, readers++ ? &rule : &first);
        if (rule.n)
            assert_string_equal(sl_buf_text(&rule), sl_buf_text(&first));
        sl_buf_fini(&rule);
    }
    assert_int_equal(readers, 4);
    sl_buf_fini(&first);
}

/* ---- Verbatim ---- */

/* As a reader would: a number in place of sluice_lanes, and nothing else. */
static void run_verbatim(const char *script)
{
    sl_buf text = { 0 };
    const char *p = sl_script_named("postgres", script)->text;
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
    char sql[128];
    testdb_make(&t, "postgres", NULL);
    connect_to(&t);
    snprintf(sql, sizeof sql, "SET search_path = \"%s\"", t.names.schema);
    exec(sql);
    run_schema();
    assert_true(prepare_all(NULL) >= 50);
}

/* The script that adopts a table, on one that has nothing but what it needs. */
static void adopting_runs_as_it_stands(void **state)
{
    (void)state;
    char sql[256];
    testdb_make(&t, "postgres", NULL);
    connect_to(&t);
    snprintf(
        sql, sizeof sql,
        "SET search_path = \"%s\"; CREATE TABLE sluice_outbox (id bigint PRIMARY KEY, payload "
        "bytea NOT NULL)",
        t.names.schema);
    exec(sql);
    run_verbatim("schema/adopt");
    run_schema();
    assert_true(prepare_all(NULL) >= 50);
}

int main(void)
{
    if (!testdb_has("postgres"))
        return TESTDB_SKIPPED;
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_statement_is_as_declared),
        TEST(so_it_is_with_every_column_renamed),
        cmocka_unit_test(who_waits_is_the_same_in_all),
        TEST(every_text_runs_as_it_stands),
        TEST(adopting_runs_as_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
