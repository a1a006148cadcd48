/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/settings.h"

#include "unit/unit.h"

static sl_settings s;
static sl_err err;
static char path[64];

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    sl_settings_init(&s);
    snprintf(path, sizeof path, "/tmp/sluice-test-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    sl_settings_fini(&s);
    return unlink(path);
}

static sl_rc load(const char *first, const char *second)
{
    char *env[] = { (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };
    return sl_settings_load_env(&s, env, &err);
}

static void write_file(const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static char *with_path(char *var, size_t n)
{
    snprintf(var, n, "SLUICE_DB_FILE=%s", path);
    return var;
}

static void variables_are_settings(void **state)
{
    (void)state;
    assert_int_equal(load("SLUICE_WORKERS=8", "SLUICE_BATCH_BYTES=1M"), SL_OK);
    assert_int_equal(s.workers, 8);
    assert_int_equal(s.batch_bytes, 1 << 20);
    assert_int_equal(load("SLUICE_COLUMNS=a=b,c=d", NULL), SL_OK);
    assert_string_equal(sl_opt_map_get(&s.columns, "c"), "d");
    assert_int_equal(load(NULL, NULL), SL_OK);
}

static void an_empty_variable_is_not_set(void **state)
{
    (void)state;
    assert_int_equal(load("SLUICE_WORKERS=", "SLUICE_DB="), SL_OK);
    assert_int_equal(s.workers, 4);
    assert_string_equal(s.db, "sqlite:sluice.db");
}

static void bad_values_name_their_variable(void **state)
{
    (void)state;
    assert_int_equal(load("SLUICE_WORKERS=many", NULL), SL_REFUSED);
    assert_string_equal(err.text, "SLUICE_WORKERS: 'many' will not do for workers\n"
                                  "hint: give a whole number");
    char *env[] = { (char *)(uintptr_t) "SLUICE_WORKERS=many", NULL };
    assert_int_equal(sl_settings_load_env(&s, env, NULL), SL_REFUSED);
}

static void unknown_variables_are_refused(void **state)
{
    (void)state;
    assert_int_equal(load("SLUICE_WOKERS=8", NULL), SL_REFUSED);
    assert_string_equal(err.text, "unknown variable SLUICE_WOKERS\n"
                                  "hint: did you mean SLUICE_WORKERS?");
    assert_int_equal(load("SLUICE_ZZZ=8", NULL), SL_REFUSED);
    assert_int_equal(load("SLUICE_=8", NULL), SL_REFUSED);
    assert_int_equal(load("SLUICE_workers=8", NULL), SL_REFUSED);
    assert_int_equal(load("SLUICE_WORKERS_=8", NULL), SL_REFUSED);
    assert_int_equal(load("SLUICE_ZZZ=", NULL), SL_REFUSED); /* empty, but still misspelt */
}

static void other_variables_are_left_alone(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "SLUICE_CONFIG=x",
        "SLUICE_FAULT=x",
        "SLUICE_PORT=tcp://x",
        "SLUICE_PORT_80_TCP_ADDR=x",
        "SLUICE_SERVICE_HOST=x",
        "SLUICE_SERVICE_PORT_HTTP=x",
        "SLUICE_DB_PORT=x",
        "SLUICE_DB_SERVICE_HOST=x", /* a service "sluice-db" */
        "sluice_workers=x",
        "NOT_SLUICE_WORKERS=x",
        "SLUICE=x",
        "SLUICE_WORKERS" /* no '=' */
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(load(rows[i], NULL), SL_OK);
    assert_int_equal(s.workers, 4);
}

static void secrets_may_come_from_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *value;
    } rows[] = {
        { "postgresql://u:p@h/d", "postgresql://u:p@h/d" },
        { "postgresql://u:p@h/d\n", "postgresql://u:p@h/d" },
        { "postgresql://u:p@h/d\r\n", "postgresql://u:p@h/d" },
        { "two\n\n", "two\n" }, /* one line end, no more */
        { " x ", " x " },
    };
    char var[128];

    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_settings_fini(&s);
        sl_settings_init(&s);
        write_file(rows[i].bytes, strlen(rows[i].bytes));
        assert_int_equal(load(with_path(var, sizeof var), NULL), SL_OK);
        assert_string_equal(s.db, rows[i].value);
    }
}

static void bad_secret_files_are_refused(void **state)
{
    (void)state;
    char var[128];

    write_file("\n", 1);
    assert_int_equal(load(with_path(var, sizeof var), NULL), SL_REFUSED);
    assert_non_null(strstr(err.text, "SLUICE_DB_FILE: db must not be empty"));
    write_file("a\0b", 3);
    assert_int_equal(load(var, NULL), SL_REFUSED);
    assert_non_null(strstr(err.text, "NUL"));
    assert_int_equal(load("SLUICE_DB_FILE=/nonexistent/x", NULL), SL_OPERATOR);
    assert_int_equal(load("SLUICE_TABLE_FILE=/etc/hostname", NULL), SL_REFUSED);
    assert_non_null(strstr(err.text, "only secrets"));
}

static void a_secret_given_both_ways_is_refused(void **state)
{
    (void)state;
    char var[128];

    write_file("x", 1);
    assert_int_equal(load("SLUICE_DB=y", with_path(var, sizeof var)), SL_REFUSED);
    assert_non_null(strstr(err.text, "set twice"));
    sl_settings_fini(&s);
    sl_settings_init(&s);
    assert_int_equal(load("SLUICE_DB=", var), SL_OK);
    assert_string_equal(s.db, "x");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(variables_are_settings),         TEST(an_empty_variable_is_not_set),
        TEST(bad_values_name_their_variable), TEST(unknown_variables_are_refused),
        TEST(other_variables_are_left_alone), TEST(secrets_may_come_from_files),
        TEST(bad_secret_files_are_refused),   TEST(a_secret_given_both_ways_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
