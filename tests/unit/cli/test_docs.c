/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docs.h"
#include "lib/settings_routes.h"

#include "sink/sink.h"
#include "unit/unit.h"

static sl_buf out;

static int setup(void **state)
{
    (void)state;
    out = (sl_buf){ 0 };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_buf_fini(&out);
    return 0;
}

static void save(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Uncommented, every line of the sample is valid, and says what the defaults are. */
static void the_sample_file_can_be_read(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    sl_settings s, defaults;
    sl_err err = { 0 };

    sl_docs_yaml(&out);
    for (char *p = out.p; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (p[0] == '#' && p[1] != ' ')
            p[0] = ' ';
    save(path, out.p);
    sl_settings_init(&s);
    sl_settings_init(&defaults);
    if (sl_settings_load_file(&s, path, &err) != SL_OK)
        fail_msg("%s", err.text);
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        sl_buf is = { 0 }, should = { 0 };
        assert_int_equal(s.from[o - sl_settings_table], SL_FROM_FILE);
        sl_opt_show(o, &s, true, &is);
        sl_opt_show(o, &defaults, true, &should);
        if (o->def)
            assert_string_equal(sl_buf_text(&is), sl_buf_text(&should));
        sl_buf_fini(&is);
        sl_buf_fini(&should);
    }
    sl_settings_fini(&s);
    sl_settings_fini(&defaults);
    unlink(path);
}

static void the_sample_file_is_all_comments(void **state)
{
    (void)state;
    sl_docs_yaml(&out);
    for (const char *p = out.p; *p; p = strchr(p, '\n') + 1)
        assert_true(*p == '#' || *p == '\n');
}

/* Without its comment signs it is a file that can be read. */
static void so_can_its_routes(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    sl_settings s;
    sl_err err = { 0 };
    sl_buf yaml = { 0 };

    sl_docs_yaml(&out);
    const char *p = strstr(out.p, "\n# routes:\n");
    assert_non_null(p);
    for (p++; strncmp(p, "# ", 2) == 0; p = strchr(p, '\n') + 1) {
        if (strncmp(p, "#     sink: file:", 17) == 0) /* this build may not have it */
            sl_buf_printf(&yaml, "    sink: \"%s:x\"\n", sl_sink_all[0]->scheme);
        else
            sl_buf_printf(&yaml, "%.*s\n", (int)strcspn(p + 2, "\n"), p + 2);
    }
    save(path, yaml.p);
    sl_settings_init(&s);
    if (sl_settings_load_file(&s, path, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s.route_count, 2);
    assert_int_equal(sl_settings_check(&s, &err), SL_OK);
    sl_settings_fini(&s);
    sl_buf_fini(&yaml);
    unlink(path);
}

static void every_text_names_every_field_of_a_route(void **state)
{
    (void)state;
    static void (*const texts[])(sl_buf *) = { sl_docs_yaml, sl_docs_markdown, sl_docs_man };
    static const char *const forms[][2] = { { "\n#   ", ": " },
                                            { "| `", "` | `" },
                                            { "\n*", "*: " } };
    char name[128];

    for (size_t i = 0; i < COUNT(texts); i++) {
        sl_buf_reset(&out);
        texts[i](&out);
        const char *routes = strstr(out.p, i == 1 ? "field of a route" : "routes:\n");
        assert_non_null(routes);
        for (const sl_opt *o = sl_route_table; o->name; o++) {
            snprintf(name, sizeof name, "%s%s%s", forms[i][0], o->name, forms[i][1]);
            assert_true(strstr(routes, name) || (i == 2 && strchr(o->name, '_')));
        }
    }
}

static void every_text_names_every_setting(void **state)
{
    (void)state;
    static void (*const texts[])(sl_buf *) = { sl_docs_yaml, sl_docs_markdown };
    char name[128];

    for (size_t i = 0; i < COUNT(texts); i++) {
        sl_buf_reset(&out);
        texts[i](&out);
        for (const sl_opt *o = sl_settings_table; o->name; o++) {
            snprintf(name, sizeof name, i == 0 ? "\n#%s:" : "| `%s` |", o->name);
            assert_non_null(strstr(out.p, name));
        }
    }
}

static void markup_is_guarded(void **state)
{
    (void)state;
    sl_docs_man(&out);
    assert_non_null(strstr(out.p, "\n*batch\\_bytes*: SIZE\n\t"));
    assert_non_null(strstr(out.p, "Also --db, SLUICE\\_DB or SLUICE\\_DB\\_FILE."));
    assert_non_null(strstr(out.p, "From 1 to 10000. Default: 500. A reload applies it."));
    sl_buf_reset(&out);
    sl_docs_markdown(&out);
    assert_non_null(strstr(out.p, "`lease\\|transaction`"));
}

/* Runs the script in bash for a command line; the replies come in one line. */
static void completes(const char *words, const char *expected)
{
    char path[] = "/tmp/sluice-test-XXXXXX";
    char command[512], replies[4096] = "";

    sl_buf_reset(&out);
    sl_docs_completion(&out);
    save(path, out.p);
    snprintf(command, sizeof command,
             "bash -c '. %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _sluice; "
             "echo \"${COMPREPLY[*]}\"'",
             path, words);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *line = fgets(replies, sizeof replies, f);
    int status = pclose(f);
    unlink(path);
    assert_non_null(line);
    assert_int_equal(status, 0);
    replies[strcspn(replies, "\n")] = '\0';
    assert_string_equal(replies, expected);
}

static void bash_completes(void **state)
{
    (void)state;
    if (system("bash -c 'mapfile < /dev/null' 2> /dev/null") != 0)
        skip();
    completes("sluice conf", "config");
    completes("sluice run --log-l", "--log-level");
    completes("sluice run --log-level \"\"", "error warn info debug");
    completes("sluice run --log-level = w", "warn");
    completes("sluice run --log-level =", "error warn info debug");
    completes("sluice run --workers \"\"", "");
    completes("sluice init --workers", ""); /* not a flag of init */
    completes("sluice config c", "check");
    completes("sluice help sta", "status");
    completes("sluice version --j", "--json");
    completes("sluice run -c /dev/nul", "/dev/null");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_sample_file_can_be_read),
        TEST(so_can_its_routes),
        TEST(every_text_names_every_field_of_a_route),
        TEST(the_sample_file_is_all_comments),
        TEST(every_text_names_every_setting),
        TEST(markup_is_guarded),
        TEST(bash_completes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
