/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "db/db.h"
#include "sink/sink.h"

#include "unit/cli/capture.h"

#include <jansson.h>

static capture out, errors;

static int setup(void **state)
{
    (void)state;
    static const char *const variables[] = { "DATABASE_URL", "SLUICE_CONFIG", "SLUICE_DB",
                                             "SLUICE_WORKERS" };
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    return 0;
}

/* Runs `sluice config WORDS...`, up to three words; the status. */
static int run(const char *a, const char *b, const char *c)
{
    const char *words[] = { "config", a, b, c, NULL };
    int argc = 1;
    sl_cli cli;
    sl_err err = { 0 };

    while (argc < 4 && words[argc])
        argc++;
    capture_begin(&out, stdout);
    capture_begin(&errors, stderr);
    int status = SL_EXIT_USAGE;
    if (sl_cli_parse(&cli, sl_cmd_named("config"), argc, (char **)(uintptr_t)words, &err) ==
        SL_OK)
        status = cli.cmd->run(&cli);
    sl_cli_fini(&cli);
    capture_end(&errors);
    capture_end(&out);
    return status;
}

static void show_says_where_values_come_from(void **state)
{
    (void)state;
    setenv("DATABASE_URL", "postgresql://u:hunter2@h/db", 1);
    setenv("SLUICE_WORKERS", "9", 1);
    assert_int_equal(run("show", "--batch=3", NULL), 0);
    assert_non_null(strstr(out.text, "\nworkers            environment   9\n"));
    assert_non_null(strstr(out.text, "\nbatch              flag          3\n"));
    assert_non_null(strstr(out.text, "\nlease              default       30s\n"));
    assert_non_null(strstr(out.text, "\nsink               default       -\n"));
    assert_non_null(strstr(out.text, "DATABASE_URL  postgresql://u:***@h/db\n"));
    assert_null(strstr(out.text, "hunter2"));
}

static void show_has_json(void **state)
{
    (void)state;
    setenv("SLUICE_DB", "host=h password=hunter2", 1);
    assert_int_equal(run("show", "--json", "--columns=topic=b"), 0);
    assert_null(strstr(out.text, "hunter2"));
    json_t *all = json_loads(out.text, 0, NULL);
    assert_non_null(all);
    const char *db, *from;
    int workers, drain;
    json_t *sink, *columns;
    assert_int_equal(json_unpack(all, "{s:{s:s,s:s}, s:{s:i}, s:{s:b}, s:{s:o}, s:{s:o}}", "db",
                                 "value", &db, "from", &from, "workers", "value", &workers,
                                 "drain", "value", &drain, "sink", "value", &sink, "columns",
                                 "value", &columns),
                     0);
    assert_string_equal(db, "host=h password=***");
    assert_string_equal(from, "environment");
    assert_int_equal(workers, 4);
    assert_false(drain);
    assert_true(json_is_null(sink));
    assert_string_equal(json_string_value(json_object_get(columns, "topic")), "b");
    json_decref(all);
}

static void check_says_ok_or_what_is_wrong(void **state)
{
    (void)state;
    setenv("SLUICE_DB", "nonsense:x", 1);
    assert_int_equal(run("check", NULL, NULL), 2);
    assert_non_null(strstr(errors.text, "'nonsense'"));
    setenv("SLUICE_DB", sl_db_all[0]->example, 1); /* of a database that this build has */
    assert_int_equal(run("check", NULL, NULL), 0);
    assert_string_equal(out.text, "OK\n");
    setenv("SLUICE_WORKERS", "many", 1);
    assert_int_equal(run("check", NULL, NULL), 2);
    assert_string_equal(out.text, "");
    assert_non_null(strstr(errors.text, "sluice config: SLUICE_WORKERS: 'many'"));
    assert_int_equal(run("check", "-c", "/nonexistent"), 2);
}

static void docs_need_no_settings(void **state)
{
    (void)state;
    static const char *const kinds[] = { "man", "yaml", "markdown", "completion" };

    setenv("SLUICE_WORKERS", "many", 1);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        assert_int_equal(run("docs", kinds[i], NULL), 0);
        assert_true(strlen(out.text) > 1000);
    }
}

static void wrong_use_is_explained(void **state)
{
    (void)state;
    assert_int_equal(run(NULL, NULL, NULL), 2);
    assert_non_null(strstr(errors.text, "hint: show, check or docs"));
    assert_int_equal(run("shw", NULL, NULL), 2);
    assert_int_equal(run("docs", NULL, NULL), 2);
    assert_non_null(strstr(errors.text, "hint: man, yaml"));
    assert_int_equal(run("docs", "pdf", NULL), 2);
    assert_int_equal(run("show", "more", NULL), 2);
    assert_non_null(strstr(errors.text, "unexpected argument 'more'"));
    assert_int_equal(run("docs", "man", "more"), 2);
}

static void routes_are_shown_as_they_will_be(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    char yaml[256], shown[256];
    const char *scheme = sl_sink_all[0]->scheme; /* any that this build has */
    int n = snprintf(yaml, sizeof yaml,
                     "routes:\n"
                     "  - topics: [a, b]\n"
                     "    sink: \"%s://u:hunter2@h\"\n"
                     "    batch: 7\n"
                     "  - {topics: \"*\", sink: \"%s:x\", retry_max: 1m}\n",
                     scheme, scheme);
    int fd = mkstemp(path);
    assert_int_equal(write(fd, yaml, (size_t)n), n);
    close(fd);
    setenv("SLUICE_CONFIG", path, 1);
    assert_int_equal(run("show", "--retry-max=2m", NULL), 0);
    snprintf(shown, sizeof shown,
             "\n\nroute 1\n  topics           file          a,b\n"
             "  sink             file          %s://u:***@h\n",
             scheme);
    assert_non_null(strstr(out.text, shown));
    assert_non_null(strstr(out.text, "\n  retry_max        flag          2m\n"
                                     "  batch            file          7\n"
                                     "  concurrency      default       -\n"));
    assert_non_null(strstr(out.text, "\n  retry_max        file          1m\n"));
    assert_null(strstr(out.text, "hunter2"));

    assert_int_equal(run("show", "--json", NULL), 0);
    assert_null(strstr(out.text, "hunter2"));
    json_t *all = json_loads(out.text, 0, NULL);
    const char *topic, *sink, *max;
    json_t *batch;
    assert_int_equal(json_unpack(all, "{s:{s:[{s:[ss], s:s}, {s:[s], s:s, s:o}]}}", "routes",
                                 "value", "topics", &topic, &topic, "sink", &sink, "topics",
                                 &topic, "retry_max", &max, "batch", &batch),
                     0);
    snprintf(shown, sizeof shown, "%s://u:***@h", scheme);
    assert_string_equal(sink, shown);
    assert_string_equal(topic, "*");
    assert_string_equal(max, "1m");
    assert_true(json_is_null(batch));
    json_decref(all);
    unlink(path);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, setup)
    const struct CMUnitTest tests[] = {
        TEST(show_says_where_values_come_from), TEST(show_has_json),
        TEST(check_says_ok_or_what_is_wrong),   TEST(docs_need_no_settings),
        TEST(wrong_use_is_explained),           TEST(routes_are_shown_as_they_will_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
