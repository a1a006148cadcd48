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

static sl_rc load(const char *yaml, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(yaml, 1, n, f), n);
    fclose(f);
    sl_settings_fini(&s);
    sl_settings_init(&s);
    return sl_settings_load_file(&s, path, &err);
}

static void good(const char *yaml)
{
    if (load(yaml, strlen(yaml)) != SL_OK)
        fail_msg("%s: %s", yaml, err.text);
}

/* Refused on that line (0: without one), with this in the text. */
static void refused(const char *yaml, int line, const char *says)
{
    char where[128];

    assert_int_equal(load(yaml, strlen(yaml)), SL_REFUSED);
    if (line > 0)
        snprintf(where, sizeof where, "%s:%d: ", path, line);
    else
        snprintf(where, sizeof where, "%s: ", path);
    if (strncmp(err.text, where, strlen(where)) != 0 || !strstr(err.text, says))
        fail_msg("%s\n'%s' lacks line %d or '%s'", yaml, err.text, line, says);
}

static void settings_are_read(void **state)
{
    (void)state;
    good("db: postgresql://u:p@h/db\nworkers: 8\nlease: \"1m\"\ndrain: yes\nhold: "
         "'transaction'\n"
         "batch-bytes: 64k # either spelling\n");
    assert_string_equal(s.db, "postgresql://u:p@h/db");
    assert_int_equal(s.workers, 8);
    assert_int_equal(s.lease_ns, INT64_C(60000000000));
    assert_true(s.drain);
    assert_int_equal(s.hold, 1);
    assert_int_equal(s.batch_bytes, 65536);
    assert_int_equal(s.from[0], SL_FROM_FILE);
}

static void maps_are_mappings(void **state)
{
    (void)state;
    good("columns:\n  entity_key: aggregate_id\n  attempts: a,b=c\n");
    assert_int_equal(s.columns.count, 2);
    assert_string_equal(sl_opt_map_get(&s.columns, "attempts"), "a,b=c");
    good("columns: {}\n");
    refused("columns: a=b\n", 1, "takes a mapping, not a single value");
    refused("columns: [a, b]\n", 1, "takes a mapping, not a list");
    refused("columns:\n", 1, "not nothing");
    refused("columns:\n  a: b\n  a: c\n", 3, "twice");
    refused("columns:\n  a: [b]\n", 2, "not a list");
    refused("columns:\n  a:\n", 2, "a has no value");
    refused("columns:\n  ? [a]\n  : b\n", 2, "a name is expected");
    refused("columns: {~: b}\n", 1, "no value");
    refused("columns:\n  <<: {a: b}\n", 2, "<<");
}

static void nothing_is_a_file_too(void **state)
{
    (void)state;
    good("");
    good("\n\n");
    good("# nothing\n");
    good("---\n");
    good("---\n...\n");
    good("~\n");
    good("{}\n");
    good("workers: 3\n...\n");
    good("\xef\xbb\xbfworkers: 3\n"); /* a byte order mark */
    assert_int_equal(s.workers, 3);
}

static void unknown_settings_are_refused(void **state)
{
    (void)state;
    refused("workers: 3\n\nwokers: 4\n", 3,
            "unknown setting 'wokers'\nhint: did you mean workers?");
    refused("zebra: 4\n", 1, "sluice config docs yaml");
    refused("\"\": 4\n", 1, "unknown setting ''");
}

static void duplicates_are_refused(void **state)
{
    (void)state;
    refused("workers: 3\nworkers: 3\n", 2, "workers is set twice");
    refused("batch_bytes: 3\nbatch-bytes: 3\n", 2, "batch_bytes is set twice");
}

static void bad_values_have_a_line(void **state)
{
    (void)state;
    refused("\n\nworkers: 0\n", 3, "'0' is too small for workers\nhint: from 1 to 256");
    refused("workers: 9999999999999999999\n", 1, "too large");
    refused("workers: 0x10\n", 1, "a whole number");
    refused("workers: 1_000\n", 1, "a whole number");
    refused("workers: [1, 2]\n", 1, "a single value, not a list");
    refused("workers: {a: 1}\n", 1, "a single value, not a mapping");
    refused("workers:\nbatch: 3\n", 1, "workers has no value");
    refused("workers: null\n", 1, "workers has no value");
    refused("table: \"\"\n", 1, "must not be empty");
    refused("node: \"a\\0b\"\n", 1, "NUL");
}

static void other_yaml_is_refused(void **state)
{
    (void)state;
    refused("just text\n", 1, "NAME: VALUE");
    refused("- workers\n- batch\n", 1, "not a list");
    refused("[a, b]: c\n", 1, "a name is expected, not a list");
    refused("workers: 3\n---\nbatch: 4\n", 3, "a second document");
    refused("<<: {workers: 3}\n", 1, "<<");
    refused("workers: *x\n", 1, "undefined alias");
    refused("\tworkers: 3\n", 1, "not with tabs");
    refused("workers: 3\n  batch: 4\n", 2, "not allowed");
    refused("workers: 'open\n", 2, "unexpected end");
    refused("\x80\n", 0, "UTF-8");
    good("batch: &n 7\nworkers: *n\n"); /* an alias of a plain value is harmless */
    assert_int_equal(s.workers, 7);
    refused("columns: &a\n  x: *a\n", 1, "a single value, not a mapping");
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(sl_settings_load_file(&s, "/nonexistent/x", &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "cannot open '/nonexistent/x'"));
    assert_int_equal(sl_settings_load_file(&s, "/tmp", &err), SL_OPERATOR);
    assert_int_equal(sl_settings_load_file(&s, "/nonexistent/x", NULL), SL_OPERATOR);
}

/* Whatever a file holds, it is read or refused. */
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    static const char model[] =
        "db: &d x\nworkers: 3\ncolumns: {a: b, c: *d}\nnode: \"q\\n\"\n";
    unsigned seed = 1;
    char yaml[sizeof model];

    for (int i = 0; i < 300; i++) {
        memcpy(yaml, model, sizeof model);
        for (int k = 0; k < 3; k++) {
            seed = seed * 1103515245 + 12345;
            yaml[seed / 65536 % (sizeof model - 1)] = (char)(seed >> 8);
        }
        sl_rc rc = load(yaml, sizeof model - 1);
        assert_true(rc == SL_OK || (rc == SL_REFUSED && err.text[0]));
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(settings_are_read),        TEST(maps_are_mappings),
        TEST(nothing_is_a_file_too),    TEST(unknown_settings_are_refused),
        TEST(duplicates_are_refused),   TEST(bad_values_have_a_line),
        TEST(other_yaml_is_refused),    TEST(files_that_cannot_be_read),
        TEST(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
