/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "core/clock.h"
#include "unit/cli/capture.h"

typedef struct own {
    char *topic;
    char *key;
    bool json;
    int64_t count;
    sl_opt_map header;
    sl_opt_list also;
} own;

#define AT(member) offsetof(own, member)

static const sl_opt opts[] = {
    { "topic", SL_OPT_TEXT, AT(topic), NULL, 1, 0, SL_OPT_CLI_ONLY, "T", "A topic." },
    { "key", SL_OPT_TEXT, AT(key), NULL, 0, 0, SL_OPT_CLI_ONLY, "K", "A key." },
    { "json", SL_OPT_BOOL, AT(json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL, "JSON." },
    { "max_count", SL_OPT_INT, AT(count), "3", 1, 9, SL_OPT_CLI_ONLY, "N", "A count." },
    { "header", SL_OPT_MAP, AT(header), NULL, 0, 0, SL_OPT_CLI_ONLY, "A=B", "Headers." },
    { "also", SL_OPT_LIST, AT(also), NULL, 0, 0, SL_OPT_CLI_ONLY, "K", "More keys." },
    { .name = NULL },
};

static int nothing(sl_cli *cli)
{
    (void)cli;
    return 0;
}

static const sl_cmd cmd = {
    .name = "fake",
    .summary = "nothing",
    .synopsis = "sluice fake",
    .groups = SL_FOR_DB | SL_FOR_RUN,
    .opts = opts,
    .own_bytes = sizeof(own),
    .run = nothing,
};

static const sl_cmd bare = { .name = "bare", .summary = "nothing", .run = nothing };

static sl_cli cli;
static sl_err err;

enum { WORDS_MAX = 16 };
static char *words[WORDS_MAX];

static int setup(void **state)
{
    (void)state;
    static const char *const variables[] = { "DATABASE_URL", "SLUICE_CONFIG", "SLUICE_DB",
                                             "SLUICE_WORKERS" };
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    err = (sl_err){ 0 };
    cli = (sl_cli){ 0 };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_cli_fini(&cli);
    return setup(state);
}

/* Splits at blanks; '' is an empty word. */
static sl_rc parse_as(const sl_cmd *c, const char *line)
{
    static char copy[512];
    int argc = 0;
    char *rest;

    snprintf(copy, sizeof copy, "%s", line);
    words[argc++] = (char *)(uintptr_t)c->name;
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        assert_true(argc < WORDS_MAX - 1);
        words[argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
    }
    words[argc] = NULL;
    sl_cli_fini(&cli);
    return sl_cli_parse(&cli, c, argc, words, &err);
}

static void good(const char *line)
{
    if (parse_as(&cmd, line) != SL_OK)
        fail_msg("%s: %s", line, err.text);
}

static void refused(const char *line, const char *says)
{
    sl_rc rc = parse_as(&cmd, line);
    if (rc == SL_OK || !strstr(err.text, says))
        fail_msg("%s: %s '%s' lacks '%s'", line, sl_rc_name(rc), err.text, says);
}

static sl_from from_of(const char *name)
{
    return (sl_from)cli.settings.from[sl_opt_find(sl_settings_table, name) - sl_settings_table];
}

static void without_flags_all_is_default(void **state)
{
    (void)state;
    good("");
    const own *o = cli.own;
    assert_null(o->topic);
    assert_false(o->json);
    assert_int_equal(o->count, 3);
    assert_int_equal(cli.argc, 0);
    assert_false(cli.help);
    assert_null(cli.config_path);
    assert_string_equal(cli.settings.db, "sqlite:sluice.db");
}

static void both_tables_give_flags(void **state)
{
    (void)state;
    good("--topic t --workers=7 --max-count 9 --batch-bytes 1k --json --lease=5s");
    const own *o = cli.own;
    assert_string_equal(o->topic, "t");
    assert_int_equal(o->count, 9);
    assert_true(o->json);
    assert_int_equal(cli.settings.workers, 7);
    assert_int_equal(cli.settings.batch_bytes, 1024);
    assert_int_equal(cli.settings.lease_ns, 5 * SL_SEC);
    assert_int_equal(from_of("workers"), SL_FROM_FLAG);
    assert_int_equal(from_of("batch"), SL_FROM_DEFAULT);
}

static void values_may_be_odd(void **state)
{
    (void)state;
    good("--key= --topic=a=b");
    assert_string_equal(((own *)cli.own)->key, ""); /* an empty key is a key */
    assert_string_equal(((own *)cli.own)->topic, "a=b");
    good("--key '' --topic -x");
    assert_string_equal(((own *)cli.own)->key, "");
    assert_string_equal(((own *)cli.own)->topic, "-x");
    good("--topic=--json");
    assert_string_equal(((own *)cli.own)->topic, "--json");
    refused("--topic --json", "--topic needs a value");
    refused("--table ''", "table must not be empty");
}

static void bool_flags_take_no_word(void **state)
{
    (void)state;
    good("--drain false");
    assert_true(cli.settings.drain);
    assert_int_equal(cli.argc, 1);
    good("--drain --drain=false");
    assert_false(cli.settings.drain);
    good("--json=on");
    assert_true(((own *)cli.own)->json);
    refused("--drain=maybe", "true or false");
    refused("--drain=", "true or false");
}

static void arguments_may_stand_anywhere(void **state)
{
    (void)state;
    good("one --topic t two -- --json -x");
    assert_int_equal(cli.argc, 4);
    assert_string_equal(cli.argv[0], "one");
    assert_string_equal(cli.argv[1], "two");
    assert_string_equal(cli.argv[2], "--json");
    assert_string_equal(cli.argv[3], "-x");
    assert_null(cli.argv[4]);
    assert_false(((own *)cli.own)->json);
    assert_string_equal(words[1], "one"); /* the caller's list stays in order */
    good("-");
    assert_string_equal(cli.argv[0], "-");
}

static void the_last_flag_counts_and_maps_add_up(void **state)
{
    (void)state;
    good("--workers 1 --header a=b --workers 2 --header c=d");
    assert_int_equal(cli.settings.workers, 2);
    assert_int_equal(((own *)cli.own)->header.count, 2);
    refused("--header a=b --header a=c", "twice");
    good("--workers 0 --workers 2"); /* only the last is looked at */
}

static void of_a_list_each_flag_counts(void **state)
{
    (void)state;
    good("--also a,b --workers 1 --also= --also a,b");
    const sl_opt_list *also = &((own *)cli.own)->also;
    assert_int_equal(also->count, 3);
    assert_string_equal(also->v[0], "a,b");
    assert_string_equal(also->v[1], "");
    assert_string_equal(also->v[2], "a,b");
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    refused("--wokers 3", "unknown flag --wokers\nhint: did you mean --workers?");
    refused("--max-cuont=3", "did you mean --max-count?");
    refused("--zebra", "hint: see 'sluice fake --help'");
    refused("--log-level debug",
            "--log-level is no flag of this command\nhint: it is a flag of ");
    refused("-x", "unknown flag -x");
    refused("-xyz", "unknown flag -x");
    refused("--=x", "unknown flag --");
    refused("--help=yes", "--help takes no value");
}

static void short_forms_of_flags_are_refused(void **state)
{
    (void)state;
    refused("--work 3", "unknown flag --work\nhint: did you mean --workers?");
    refused("--work=3", "unknown flag --work\nhint: did you mean --workers?");
    refused("--js", "did you mean --json?");
    refused("--retry 3s", "unknown flag --retry\nhint: did you mean --retry-"); /* ambiguous */
    refused("--hel", "did you mean --help?");
    refused("--conf x", "did you mean --config?");
    good("--batch 3"); /* a flag, though --batch-bytes is one too */
}

static void missing_values_are_refused(void **state)
{
    (void)state;
    refused("--workers", "--workers needs a value\nhint: --workers N");
    refused("--config", "--config needs a value\nhint: --config FILE");
    refused("-c", "-c needs the name of a file");
    refused("--table --drain", "--table needs a value");
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    refused("--workers 0", "'0' is too small for workers\nhint: from 1 to 256");
    refused("--workers=-1", "too small");
    refused("--workers -1", "too small");
    refused("--workers 9999999999999999999", "too large");
    refused("--workers ''", "a whole number");
    refused("--max-count 10", "hint: from 1 to 9");
    refused("--lease 30", "unit");
    refused("--strategy hope", "unknown strategy 'hope'");
    refused("--retry-base 1h", "retry_base is longer than retry_max");
}

static void help_needs_no_settings(void **state)
{
    (void)state;
    setenv("SLUICE_WORKERS", "bad", 1);
    good("--help");
    assert_true(cli.help);
    good("--topic t -h --bogus");
    assert_true(cli.help);
    refused("", "SLUICE_WORKERS");
}

static void a_command_without_settings_reads_none(void **state)
{
    (void)state;
    setenv("SLUICE_WORKERS", "bad", 1);
    assert_int_equal(parse_as(&bare, "x"), SL_OK);
    assert_int_equal(cli.argc, 1);
    assert_int_equal(parse_as(&bare, "--config x"), SL_REFUSED);
    assert_int_equal(parse_as(&bare, "-c x"), SL_REFUSED);
    assert_int_equal(parse_as(&bare, "--db x"), SL_REFUSED);
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void precedence(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    char line[128];

    write_file(path, "db: of-file\nworkers: 11\nbatch: 12\nlease: 13s\n");
    snprintf(line, sizeof line, "--lease 14s -c %s", path);

    setenv("DATABASE_URL", "of-url", 1);
    good("");
    assert_string_equal(cli.settings.db, "of-url");
    assert_int_equal(from_of("db"), SL_FROM_DATABASE_URL);

    good(line);
    assert_string_equal(cli.settings.db, "of-file");
    assert_string_equal(cli.config_path, path);
    assert_int_equal(from_of("db"), SL_FROM_FILE);

    setenv("SLUICE_DB", "of-env", 1);
    setenv("SLUICE_WORKERS", "21", 1);
    good(line);
    assert_string_equal(cli.settings.db, "of-env");
    assert_int_equal(cli.settings.workers, 21);
    assert_int_equal(cli.settings.batch, 12);
    assert_int_equal(cli.settings.lease_ns, 14 * SL_SEC);
    assert_int_equal(from_of("workers"), SL_FROM_ENV);

    setenv("SLUICE_CONFIG", path, 1);
    good("--db of-flag");
    assert_string_equal(cli.settings.db, "of-flag");
    assert_int_equal(cli.settings.batch, 12);
    setenv("SLUICE_CONFIG", "/nonexistent", 1);
    good(line); /* -c goes before SLUICE_CONFIG */
    refused("", "cannot open '/nonexistent'");
    setenv("SLUICE_CONFIG", "", 1);
    good("");
    unlink(path);
}

/* What HUP does: the same flags over a changed file. */
static void a_reload_applies_the_flags_again(void **state)
{
    (void)state;
    sl_cli again;

    good("arg --workers 5 --topic t");
    setenv("SLUICE_WORKERS", "7", 1);
    setenv("SLUICE_DB", "new", 1);
    assert_int_equal(sl_cli_parse(&again, cli.cmd, cli.flag_argc, cli.flag_argv, &err), SL_OK);
    assert_int_equal(again.settings.workers, 5);
    assert_string_equal(again.settings.db, "new");
    assert_int_equal(again.argc, 1);
    assert_string_equal(again.argv[0], "arg");
    sl_cli_fini(&again);
    sl_cli_fini(&again); /* twice is harmless */
}

static void a_late_command_loads_by_itself(void **state)
{
    (void)state;
    static sl_cmd late; /* cli points to it until the end of the test */

    late = cmd;
    late.late = true;
    setenv("SLUICE_WORKERS", "bad", 1);
    assert_int_equal(parse_as(&late, "--batch 7"), SL_OK);
    assert_int_equal(cli.settings.batch, 500);
    assert_int_equal(sl_cli_load(&cli, &err), SL_REFUSED);
    setenv("SLUICE_WORKERS", "2", 1);
    assert_int_equal(parse_as(&late, "--batch 7"), SL_OK);
    assert_int_equal(sl_cli_load(&cli, &err), SL_OK);
    assert_int_equal(cli.settings.batch, 7);
}

static void failures_are_printed(void **state)
{
    (void)state;
    capture c;
    sl_err e = { SL_AGAIN, "database gone\nhint: start it" };

    good("");
    capture_begin(&c, stderr);
    int status = sl_cli_fail(&cli, SL_EXIT_UNREACHABLE, &e);
    assert_string_equal(capture_end(&c), "sluice fake: database gone\nhint: start it\n");
    assert_int_equal(status, 3);

    capture_begin(&c, stderr);
    status = sl_cli_usage(&cli, "no %s", "topic");
    assert_string_equal(capture_end(&c),
                        "sluice fake: no topic\nhint: see 'sluice fake --help'\n");
    assert_int_equal(status, 2);

    capture_begin(&c, stderr);
    sl_cli_usage(NULL, "no %s\nhint: x", "topic");
    assert_string_equal(capture_end(&c), "sluice: no topic\nhint: x\n");

    capture_begin(&c, stderr);
    sl_cli_usage(NULL, "no command");
    assert_string_equal(capture_end(&c), "sluice: no command\nhint: see 'sluice --help'\n");
}

static void the_status_says_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(sl_cli_status_of(&(sl_err){ .rc = SL_AGAIN }), 3);
    assert_int_equal(sl_cli_status_of(&(sl_err){ .rc = SL_NEWER }), 4);
    assert_int_equal(sl_cli_status_of(&(sl_err){ .rc = SL_REFUSED }), 1);
    assert_int_equal(sl_cli_status_of(&(sl_err){ .rc = SL_OPERATOR }), 1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_flags_all_is_default),
        TEST(both_tables_give_flags),
        TEST(values_may_be_odd),
        TEST(bool_flags_take_no_word),
        TEST(arguments_may_stand_anywhere),
        TEST(the_last_flag_counts_and_maps_add_up),
        TEST(of_a_list_each_flag_counts),
        TEST(unknown_flags_are_refused),
        TEST(short_forms_of_flags_are_refused),
        TEST(missing_values_are_refused),
        TEST(bad_values_are_refused),
        TEST(help_needs_no_settings),
        TEST(a_command_without_settings_reads_none),
        TEST(precedence),
        TEST(a_reload_applies_the_flags_again),
        TEST(a_late_command_loads_by_itself),
        TEST(failures_are_printed),
        TEST(the_status_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
