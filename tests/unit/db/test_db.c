/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include "unit/unit.h"

static sl_err err;
static sl_names names;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    return sl_names_init(&names, "outbox", NULL, &err) == SL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_names_fini(&names);
    return 0;
}

static const char *dialect_of(const char *url)
{
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        if ((*d)->accepts(url))
            return (*d)->name;
    return "none";
}

static void urls_find_their_dialect(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "sqlite:a.db", "sqlite" },
        { "sqlite:", "sqlite" },
        { "postgresql://h/db", "postgres" },
        { "postgres://h/db", "postgres" },
        { "postgresql:", "postgres" },
        { "host=h dbname=db", "postgres" },
        { "service=app", "postgres" },
        { "target_session_attrs=any", "postgres" },
        { "mysql://h/db", "none" },
        { "sqlite3:a.db", "none" },
        { "SQLITE:a.db", "none" },
        { "a.db", "none" },
        { "/var/lib/a.db", "none" },
        { "", "none" },
        { "=x", "none" },
        { "Host=h", "none" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *want = rows[i][1];
        if (strcmp(want, "none") != 0 && !sl_db_named(want))
            continue; /* not in this build */
        assert_string_equal(dialect_of(rows[i][0]), want);
    }
}

static sl_rc try_open(const char *url)
{
    sl_db *db = NULL;
    sl_dsn dsn = { .url = url, .app = "test", .names = &names, .wake_fd = -1 };
    err = (sl_err){ 0 };
    sl_rc rc = sl_db_open(&db, &dsn, &err);
    assert_null(db);
    return rc;
}

static void an_unknown_url_shows_its_scheme_only(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "mysql://root:hunter2@h/db", "begins with 'mysql'" },
        { "oracle:hunter2", "begins with 'oracle'" },
        { "shop/hunter2", "begins with 'shop'" },
        { "Shop hunter2", "begins with 'Shop'" },
        { "Password=hunter2", "begins with 'Password'" },
        { "root@hunter2", "begins with 'root'" },
        { "averyverylongwordwithouthunter2", "begins with 'averyverylongwordwit'" },
        { "", "begins with ''" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(try_open(rows[i][0]), SL_OPERATOR);
        if (!strstr(err.text, rows[i][1]) || strstr(err.text, "hunter2"))
            fail_msg("%s", err.text);
    }
    for (const sl_db_ops *const *d = sl_db_all; *d; d++)
        assert_non_null(strstr(err.text, (*d)->example));
}

static void dialects_are_found_by_name(void **state)
{
    (void)state;
    for (const sl_db_ops *const *d = sl_db_all; *d; d++) {
        assert_ptr_equal(sl_db_named((*d)->name), *d);
        assert_true((*d)->accepts((*d)->example));
        assert_non_null((*d)->library);
        assert_true((*d)->library_version() > 0);
        assert_true((*d)->open && (*d)->adopt && (*d)->close && (*d)->run && (*d)->script &&
                    (*d)->rollback);
    }
    assert_null(sl_db_named("oracle"));
    assert_null(sl_db_named(""));
    sl_db_close(NULL);
}

/* ---- Statements ---- */

static bool has_stmt(const char *dialect, const char *name)
{
    for (int i = 0; i < sl_stmts_count; i++)
        if (!strcmp(sl_stmts[i].dialect, dialect) && !strcmp(sl_stmts[i].name, name))
            return true;
    return false;
}

/* Savepoints and sessions are the drivers' own, PostgreSQL alone has positions, reads keys by ranges, and looks below floors apart; and in the bench PostgreSQL has loops and a scenario that others have not. */
static bool is_own(const char *name)
{
    static const char *const own[] = {
        "session/",           "tx/savepoint",         "tx/release",
        "tx/rollback_to",     "bench/lanes_",         "bench/advisory_",
        "bench/snapshot",     "bench/hold",           "done/",
        "floor/given",        "lanes/below",          "bench/rotated_",
        "keyed/read_stretch", "ordered/sent_stretch", "guard/sent_stretch"
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strncmp(name, own[i], strlen(own[i])))
            return true;
    return false;
}

/* What the modules above run on any database. */
static void every_dialect_has_every_statement(void **state)
{
    (void)state;
    for (int i = 0; i < sl_stmts_count; i++) {
        const sl_stmt *s = &sl_stmts[i];
        for (const sl_db_ops *const *d = sl_db_all; *d && !is_own(s->name); d++)
            if (!has_stmt((*d)->name, s->name))
                fail_msg("%s has no %s", (*d)->name, s->name);
    }
}

static void statements_are_numbered(void **state)
{
    (void)state;
    assert_true(sl_stmts_count > 30);
    for (int i = 0; i < sl_stmts_count; i++) {
        const sl_stmt *s = &sl_stmts[i];
        assert_int_equal(s->index, i);
        assert_in_range(s->nparams, 0, SL_STMT_MAX);
        assert_in_range(s->ncols, 0, SL_STMT_MAX);
        assert_null(strstr(s->text, "--")); /* comments stay at home */
        assert_null(strchr(s->text, ';'));
    }
}

/* In and out are the same everywhere: the modules above know no dialect. Times are numbers
 * where the database has no type for them. */
static void statements_have_one_shape(void **state)
{
    (void)state;
    for (int i = 0; i < sl_stmts_count; i++)
        for (int j = 0; j < i; j++) {
            const sl_stmt *a = &sl_stmts[i], *b = &sl_stmts[j];
            if (strcmp(a->name, b->name) != 0)
                continue;
            assert_int_equal(a->nparams, b->nparams);
            assert_int_equal(a->ncols, b->ncols);
            for (int k = 0; k < a->nparams; k++)
                assert_int_equal(a->params[k], b->params[k]);
            for (int k = 0; k < a->ncols; k++)
                assert_true(a->cols[k] == b->cols[k] || b->cols[k] == SL_T_TIME);
        }
}

static void statements_are_found_by_name(void **state)
{
    (void)state;
    for (const sl_db_ops *const *d = sl_db_all; *d; d++) {
        sl_db db = { *d };
        const sl_stmt *s = sl_db_stmt(&db, "tx/begin");
        assert_string_equal(s->dialect, (*d)->name);
        assert_string_equal(s->name, "tx/begin");
        assert_non_null(sl_script_named((*d)->name, "schema/001"));
        assert_non_null(sl_script_named((*d)->name, "schema/adopt"));
        assert_null(sl_script_named((*d)->name, "schema/999"));
    }
    assert_null(sl_script_named("oracle", "schema/001"));
}

static void ask_for_what_is_not_there(void)
{
    sl_db db = { sl_db_all[0] };
    sl_db_stmt(&db, "tx/hope");
}

static void a_statement_that_is_not_there_is_a_bug(void **state)
{
    (void)state;
    assert_true(aborts(ask_for_what_is_not_there));
}

/* ---- sl_db_run1 ---- */

static sl_rc fake_run(sl_db *db, sl_call *calls, size_t count, sl_err *e)
{
    (void)db;
    assert_int_equal(count, 1);
    assert_string_equal(calls[0].stmt->name, "lease/renew");
    calls[0].affected = 7;
    return calls[0].in ? SL_OK : sl_fail(e, SL_AGAIN, "no");
}

static void run1_runs_one_statement(void **state)
{
    (void)state;
    sl_db_ops ops = { .name = sl_db_all[0]->name, .run = fake_run };
    sl_db db = { &ops };
    sl_val in[3] = { { 0 } };
    int64_t affected = 0;
    assert_int_equal(sl_db_run1(&db, "lease/renew", in, NULL, NULL, &affected, &err), SL_OK);
    assert_int_equal(affected, 7);
    assert_int_equal(sl_db_run1(&db, "lease/renew", in, NULL, NULL, NULL, &err), SL_OK);
    assert_int_equal(sl_db_run1(&db, "lease/renew", NULL, NULL, NULL, NULL, &err), SL_AGAIN);
    assert_string_equal(err.text, "no");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(urls_find_their_dialect),      TEST(an_unknown_url_shows_its_scheme_only),
        TEST(dialects_are_found_by_name),   TEST(every_dialect_has_every_statement),
        TEST(statements_are_numbered),      TEST(statements_have_one_shape),
        TEST(statements_are_found_by_name), TEST(a_statement_that_is_not_there_is_a_bug),
        TEST(run1_runs_one_statement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
