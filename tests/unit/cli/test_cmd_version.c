/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "unit/cli/capture.h"

#include <jansson.h>

static capture out;

static int run(const char *word)
{
    char *words[] = { (char *)(uintptr_t) "version", (char *)(uintptr_t)word, NULL };
    sl_cli cli;
    sl_err err = { 0 };

    assert_int_equal(sl_cli_parse(&cli, sl_cmd_named("version"), word ? 2 : 1, words, &err),
                     SL_OK);
    capture_begin(&out, stdout);
    int status = cli.cmd->run(&cli);
    capture_end(&out);
    sl_cli_fini(&cli);
    return status;
}

static void the_first_line_is_the_version(void **state)
{
    (void)state;
    char first[64];

    snprintf(first, sizeof first, "sluice %s\n", sl_version());
    assert_int_equal(run(NULL), 0);
    assert_memory_equal(out.text, first, strlen(first));
    assert_non_null(strstr(out.text, "\ndatabases:"));
    assert_non_null(strstr(out.text, "\nstrategies: lanes guard advisory skip-locked"));
    assert_non_null(strstr(out.text, "\nsinks:"));
}

static void json_says_the_same(void **state)
{
    (void)state;
    assert_int_equal(run("--json"), 0);
    json_t *all = json_loads(out.text, 0, NULL);
    assert_non_null(all);
    assert_string_equal(json_string_value(json_object_get(all, "version")), sl_version());
    assert_true(json_is_array(json_object_get(all, "databases")));
    assert_true(json_array_size(json_object_get(all, "strategies")) > 0);
    assert_true(json_is_array(json_object_get(all, "sinks")));
    json_decref(all);
}

static void it_takes_no_arguments(void **state)
{
    (void)state;
    capture errors;

    capture_begin(&errors, stderr);
    int status = run("x");
    capture_end(&errors);
    assert_int_equal(status, 2);
    assert_non_null(strstr(errors.text, "unexpected argument 'x'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_is_the_version),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(it_takes_no_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
