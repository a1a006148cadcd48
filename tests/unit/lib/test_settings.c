/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/settings.h"

#include "core/clock.h"
#include "unit/unit.h"

static sl_settings s;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    unsetenv("DATABASE_URL");
    err = (sl_err){ 0 };
    sl_settings_init(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_settings_fini(&s);
    return 0;
}

static sl_from from_of(const char *name)
{
    return (sl_from)s.from[sl_opt_find(sl_settings_table, name) - sl_settings_table];
}

static void defaults_are_right(void **state)
{
    (void)state;
    assert_string_equal(s.db, "sqlite:sluice.db");
    assert_string_equal(s.table, "outbox");
    assert_null(s.sink);
    assert_int_equal(s.workers, 4);
    assert_int_equal(s.lease_ns, 30 * SL_SEC);
    assert_int_equal(s.log_level, 2);
    assert_int_equal(from_of("workers"), SL_FROM_DEFAULT);
    assert_int_equal(sl_settings_check(&s, &err), SL_OK);
}

/* What the readers of the table rely on. */
static void the_table_is_sound(void **state)
{
    (void)state;
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        assert_null(strchr(o->name, '-'));
        assert_ptr_equal(sl_opt_find(sl_settings_table, o->name), o); /* no name twice */
        assert_true(o->type == SL_OPT_BOOL || o->arg);
        assert_true(o->def || o->type == SL_OPT_TEXT || o->type == SL_OPT_MAP);
        assert_true(o->min <= o->max || o->type == SL_OPT_TEXT);
        assert_int_equal(o->help[strlen(o->help) - 1], '.');
        assert_true(o->flags & ~0xffU); /* some command takes it */
    }
}

static void what_is_shown_can_be_set_again(void **state)
{
    (void)state;
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        sl_buf before = { 0 }, after = { 0 };
        sl_opt_show(o, &s, true, &before);
        assert_int_equal(sl_opt_set(o, &s, sl_buf_text(&before), &err), SL_OK);
        sl_opt_show(o, &s, true, &after);
        assert_string_equal(sl_buf_text(&before), sl_buf_text(&after));
        sl_buf_fini(&before);
        sl_buf_fini(&after);
    }
}

static void values_are_set_by_name(void **state)
{
    (void)state;
    assert_int_equal(sl_settings_set(&s, "workers", "9", &err), SL_OK);
    assert_int_equal(s.workers, 9);
    assert_int_equal(from_of("workers"), SL_FROM_FLAG);
    assert_int_equal(sl_settings_set(&s, "batch-bytes", "64k", &err), SL_OK);
    assert_int_equal(s.batch_bytes, 65536);
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        { "workers", "0", "from 1 to 256" },
        { "workers", "257", "from 1 to 256" },
        { "lanes", "32769", "too large" },
        { "batch", "9999999999999999999", "too large" },
        { "lease", "999ms", "from 1s to 1d" },
        { "lease", "-5s", "too small" },
        { "lease", "30", "unit" },
        { "table", "", "must not be empty" },
        { "db", "", "must not be empty" },
        { "hold", "tx", "lease|transaction" },
        { "log_level", "warning", "error|warn|info|debug" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(sl_settings_set(&s, rows[i][0], rows[i][1], &err), SL_REFUSED);
        assert_non_null(strstr(err.text, rows[i][0]));
        assert_non_null(strstr(err.text, rows[i][2]));
        assert_int_equal(from_of(rows[i][0]), SL_FROM_DEFAULT);
    }
    assert_int_equal(sl_settings_set(&s, "workers", "0", NULL), SL_REFUSED);
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    assert_int_equal(sl_settings_set(&s, "wokers", "9", &err), SL_REFUSED);
    assert_string_equal(err.text, "unknown setting 'wokers'\nhint: did you mean workers?");
    assert_int_equal(sl_settings_set(&s, "zzz", "9", &err), SL_REFUSED);
    assert_string_equal(err.text, "unknown setting 'zzz'");
    assert_int_equal(sl_settings_set(&s, "", "9", &err), SL_REFUSED);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    assert_int_equal(sl_settings_set(&s, "retry_max", "999ms", &err), SL_OK);
    assert_int_equal(sl_settings_check(&s, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "retry_base is longer than retry_max"));
    assert_int_equal(sl_settings_set(&s, "retry_max", "1s", &err), SL_OK);
    assert_int_equal(sl_settings_check(&s, &err), SL_OK);
    assert_int_equal(sl_settings_set(&s, "strategy", "hope", &err), SL_OK);
    assert_int_equal(sl_settings_check(&s, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "unknown strategy 'hope'"));
    assert_non_null(strstr(err.text, "skip-locked"));
}

static void database_url_is_the_database(void **state)
{
    (void)state;
    assert_int_equal(sl_settings_load_database_url(&s, &err), SL_OK);
    assert_int_equal(from_of("db"), SL_FROM_DEFAULT);
    setenv("DATABASE_URL", "", 1);
    assert_int_equal(sl_settings_load_database_url(&s, &err), SL_OK);
    assert_string_equal(s.db, "sqlite:sluice.db");
    setenv("DATABASE_URL", "postgresql://h/db", 1);
    assert_int_equal(sl_settings_load_database_url(&s, &err), SL_OK);
    assert_string_equal(s.db, "postgresql://h/db");
    assert_string_equal(sl_from_name(from_of("db")), "DATABASE_URL");
}

static void files_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    int fd = mkstemp(path);
    sl_buf out = { 0 };

    assert_int_equal(sl_settings_read(path, &out, &err), SL_OK);
    assert_int_equal(out.n, 0);
    assert_int_equal(write(fd, "a\0b", 3), 3);
    assert_int_equal(sl_settings_read(path, &out, &err), SL_OK);
    assert_int_equal(out.n, 3);
    assert_int_equal(ftruncate(fd, 2 << 20), 0);
    assert_int_equal(sl_settings_read(path, &out, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "is larger than"));
    close(fd);
    unlink(path);
    assert_int_equal(sl_settings_read(path, &out, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(sl_settings_read("/tmp", &out, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "Is a directory"));
    sl_buf_fini(&out);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_right),
        TEST(the_table_is_sound),
        TEST(what_is_shown_can_be_set_again),
        TEST(values_are_set_by_name),
        TEST(bad_values_are_refused),
        TEST(unknown_names_are_refused),
        TEST(contradictions_are_refused),
        TEST(database_url_is_the_database),
        TEST(files_are_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
