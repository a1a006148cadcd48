/* SPDX-License-Identifier: Apache-2.0 */
#include "core/opt.h"

#include "core/clock.h"

#include "unit/unit.h"

typedef struct things {
    bool flag;
    int64_t number;
    int64_t free_number;
    int64_t time_ns;
    int64_t size;
    char *text;
    char *word;
    char *name;
    char *secret;
    char *url;
    int choice;
    sl_opt_map map;
    sl_opt_list list;
} things;

#define AT(member) offsetof(things, member)

static const sl_opt table[] = {
    { "flag", SL_OPT_BOOL, AT(flag), "false", 0, 0, 0, NULL, "A flag." },
    { "number", SL_OPT_INT, AT(number), "5", -10, 100, 0, "N", "A number." },
    { "free_number", SL_OPT_INT, AT(free_number), "0", 0, 0, 0, "N", "Without bounds." },
    { "some_time", SL_OPT_TIME, AT(time_ns), "30s", 0, INT64_MAX, 0, "TIME", "A time." },
    { "batch_bytes", SL_OPT_SIZE, AT(size), "8M", 1, INT64_C(1) << 40, 0, "SIZE", "A size." },
    { "text", SL_OPT_TEXT, AT(text), NULL, 0, 0, 0, "TEXT", "A text." },
    { "word", SL_OPT_TEXT, AT(word), "abc", 2, 4, 0, "WORD", "A text with bounds." },
    { "name", SL_OPT_TEXT, AT(name), NULL, 1, 0, 0, "NAME", "A text that may be unset." },
    { "secret", SL_OPT_TEXT, AT(secret), NULL, 0, 0, SL_OPT_SECRET, "KEY", "A secret." },
    { "url", SL_OPT_TEXT, AT(url), NULL, 0, 0, SL_OPT_SECRET, "URL", "A secret URL." },
    { "choice", SL_OPT_CHOICE, AT(choice), "two", 0, 0, 0, "one|two|three", "A choice." },
    { "map", SL_OPT_MAP, AT(map), NULL, 0, 0, 0, "A=B,...", "A map." },
    { "list", SL_OPT_LIST, AT(list), NULL, 0, 0, 0, "A,B,...", "A list." },
    { .name = NULL },
};

static things t;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    t = (things){ 0 };
    err = (sl_err){ 0 };
    sl_opt_defaults(table, &t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_opt_free(table, &t);
    return 0;
}

static sl_rc set(const char *name, const char *text)
{
    return sl_opt_set(sl_opt_find(table, name), &t, text, &err);
}

/* Refused, with this in the text, and with the setting named. */
static void refused(const char *name, const char *text, const char *says)
{
    assert_int_equal(set(name, text), SL_REFUSED);
    assert_int_equal(err.rc, SL_REFUSED);
    if (!strstr(err.text, says) || !strstr(err.text, name))
        fail_msg("%s=%s: '%s' lacks '%s' or the name", name, text, err.text, says);
}

static void shows(const char *name, const char *expected)
{
    sl_buf out = { 0 };
    sl_opt_show(sl_opt_find(table, name), &t, false, &out);
    assert_string_equal(sl_buf_text(&out), expected);
    sl_buf_fini(&out);
}

static void defaults_are_set(void **state)
{
    (void)state;
    assert_false(t.flag);
    assert_int_equal(t.number, 5);
    assert_int_equal(t.time_ns, 30 * SL_SEC);
    assert_int_equal(t.size, 8 << 20);
    assert_null(t.text);
    assert_string_equal(t.word, "abc");
    assert_int_equal(t.choice, 1);
    assert_int_equal(t.map.count, 0);
    shows("text", "");
}

static void names_are_found_in_both_spellings(void **state)
{
    (void)state;
    assert_ptr_equal(sl_opt_find(table, "batch-bytes"), sl_opt_find(table, "batch_bytes"));
    assert_non_null(sl_opt_find(table, "batch-bytes"));
    assert_null(sl_opt_find(table, "batch"));
    assert_null(sl_opt_find(table, "batch_bytes_"));
    assert_null(sl_opt_find(table, ""));
    assert_null(sl_opt_find(table, "Number"));
}

static void slips_find_the_name_that_was_meant(void **state)
{
    (void)state;
    assert_string_equal(sl_opt_nearest(table, "nmuber"), "number");
    assert_string_equal(sl_opt_nearest(table, "numbr"), "number");
    assert_string_equal(sl_opt_nearest(table, "numbers"), "number");
    assert_string_equal(sl_opt_nearest(table, "batch-byte"), "batch_bytes");
    assert_string_equal(sl_opt_nearest(table, "batch"), "batch_bytes"); /* a beginning */
    assert_string_equal(sl_opt_nearest(table, "chioce"), "choice");
    assert_string_equal(sl_opt_nearest(table, "ma"), "map");
    assert_null(sl_opt_nearest(table, "zebra"));
    assert_null(sl_opt_nearest(table, ""));
    assert_null(sl_opt_nearest(table, "x"));
    char longest[300];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(sl_opt_nearest(table, longest));
}

static void the_nearest_wins(void **state)
{
    (void)state;
    sl_near near = { .wanted = "statsu" };
    sl_near_try(&near, "stats");
    sl_near_try(&near, "status");
    sl_near_try(&near, "start");
    assert_string_equal(near.best, "stats"); /* one letter either way: the first stays */
    near = (sl_near){ .wanted = "stauts" };
    sl_near_try(&near, "stats");
    sl_near_try(&near, "status");
    assert_int_equal(near.distance, 1);
    near = (sl_near){ .wanted = "a" };
    sl_near_try(&near, "b"); /* all of it changed is not near */
    assert_null(near.best);
}

static void booleans(void **state)
{
    (void)state;
    static const char *const yes[] = { "true", "yes", "on", "1", "TRUE", "Yes" };
    static const char *const no[] = { "false", "no", "off", "0", "False", "NO" };

    for (size_t i = 0; i < 6; i++) {
        t.flag = false;
        assert_int_equal(set("flag", yes[i]), SL_OK);
        assert_true(t.flag);
        assert_int_equal(set("flag", no[i]), SL_OK);
        assert_false(t.flag);
    }
    refused("flag", "", "true or false");
    refused("flag", "2", "true or false");
    refused("flag", "true ", "true or false");
    refused("flag", "y", "true or false");
}

static void whole_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = { "",  " 5",  "5 ",   "+5",    "5.0", "0x10", "1e2",
                                       "-", "--5", "five", "1,000", "5s",  "5k",   "\n5" };

    for (size_t i = 0; i < COUNT(bad); i++)
        refused("number", bad[i], "a whole number");
    assert_int_equal(set("number", "-10"), SL_OK);
    assert_int_equal(t.number, -10);
    assert_int_equal(set("number", "100"), SL_OK);
    assert_int_equal(set("number", "007"), SL_OK);
    assert_int_equal(t.number, 7);
    assert_int_equal(set("number", "-0"), SL_OK);
    refused("number", "-11", "hint: from -10 to 100");
    refused("number", "101", "too large");
    refused("number", "9999999999999999999", "too large");
    refused("number", "-9999999999999999999", "too small");
    refused("number", "99999999999999999999999999999999999999999999", "too large");
    assert_int_equal(t.number, 0); /* a refused value leaves the old one */
}

static void whole_numbers_without_bounds(void **state)
{
    (void)state;
    assert_int_equal(set("free_number", "9223372036854775807"), SL_OK);
    assert_true(t.free_number == INT64_MAX);
    assert_int_equal(set("free_number", "-9223372036854775808"), SL_OK);
    assert_true(t.free_number == INT64_MIN);
    shows("free_number", "-9223372036854775808");
    refused("free_number", "9223372036854775808", "too large");
    refused("free_number", "-9223372036854775809", "too small");
    assert_null(strstr(err.text, "hint: from"));
}

static void times_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
        const char *shown;
    } rows[] = {
        { "250ms", 250 * SL_MS, "250ms" },
        { "30s", 30 * SL_SEC, "30s" },
        { "90s", 90 * SL_SEC, "90s" },
        { "5m", 300 * SL_SEC, "5m" },
        { "120m", 7200 * SL_SEC, "2h" },
        { "24h", 86400 * SL_SEC, "1d" },
        { "7d", 7 * 86400 * SL_SEC, "7d" },
        { "1000ms", SL_SEC, "1s" },
        { "1500ms", 1500 * SL_MS, "1500ms" },
        { "0", 0, "0s" },
        { "0s", 0, "0s" },
        { "106751d", 106751 * (86400 * SL_SEC), "106751d" },
    };
    static const char *const bad[] = { "",      "30", "s",     "1.5s", "30 s",
                                       "30sec", "-",  "1h30m", "5us" };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(set("some_time", rows[i].text), SL_OK);
        assert_true(t.time_ns == rows[i].ns);
        shows("some_time", rows[i].shown);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        refused("some_time", bad[i], "with a unit");
    refused("some_time", "-1s", "too small");
    refused("some_time", "106752d", "too large"); /* 2^63 ns and a bit */
    refused("some_time", "9999999999999999999s", "too large");
    refused("some_time", "-106752d", "too small");
}

static void sizes_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
        const char *shown;
    } rows[] = {
        { "512", 512, "512" },
        { "64k", 65536, "64k" },
        { "64K", 65536, "64k" },
        { "8M", 8 << 20, "8M" },
        { "1G", 1 << 30, "1G" },
        { "1024", 1024, "1k" },
        { "1T", INT64_C(1) << 40, "1T" },
        { "1025", 1025, "1025" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(set("batch_bytes", rows[i].text), SL_OK);
        assert_true(t.size == rows[i].bytes);
        shows("batch_bytes", rows[i].shown);
    }
    refused("batch_bytes", "8MB", "a number of bytes");
    refused("batch_bytes", "k", "a number of bytes");
    refused("batch_bytes", "1.5M", "a number of bytes");
    refused("batch_bytes", "0", "hint: from 1 to 1T");
    refused("batch_bytes", "1025G", "too large");
    refused("batch_bytes", "9999999999999T", "too large");
}

static void texts_have_lengths(void **state)
{
    (void)state;
    assert_int_equal(set("text", ""), SL_OK); /* empty is not unset */
    assert_string_equal(t.text, "");
    assert_int_equal(set("text", "a=b, c"), SL_OK);
    assert_string_equal(t.text, "a=b, c");
    refused("word", "", "must not be empty");
    refused("word", "a", "shorter than 2");
    refused("word", "abcde", "longer than 4");
    assert_int_equal(set("word", "abcd"), SL_OK);
    assert_int_equal(set("name", "x"), SL_OK);
    assert_int_equal(set("name", ""), SL_OK); /* as it is shown when unset */
    assert_null(t.name);
}

static void choices(void **state)
{
    (void)state;
    assert_int_equal(set("choice", "one"), SL_OK);
    assert_int_equal(t.choice, 0);
    assert_int_equal(set("choice", "three"), SL_OK);
    assert_int_equal(t.choice, 2);
    shows("choice", "three");
    refused("choice", "", "one|two|three");
    refused("choice", "tw", "one|two|three");
    refused("choice", "two|three", "one|two|three");
    refused("choice", "twoo", "one|two|three");
    assert_int_equal(t.choice, 2);
}

static void maps(void **state)
{
    (void)state;
    assert_int_equal(set("map", "a=b,c=d=e"), SL_OK);
    assert_int_equal(t.map.count, 2);
    assert_string_equal(sl_opt_map_get(&t.map, "a"), "b");
    assert_string_equal(sl_opt_map_get(&t.map, "c"), "d=e");
    assert_null(sl_opt_map_get(&t.map, "b"));
    shows("map", "a=b,c=d=e");
    refused("map", "a", "A=B,...");
    refused("map", "=b", "A=B,...");
    refused("map", "a=b,,c=d", "A=B,...");
    refused("map", "a=b,a=c", "twice");
    assert_int_equal(t.map.count, 2);
    assert_int_equal(set("map", "x="), SL_OK); /* takes the place of the old one */
    assert_int_equal(t.map.count, 1);
    assert_string_equal(sl_opt_map_get(&t.map, "x"), "");
    assert_int_equal(set("map", ""), SL_OK);
    assert_int_equal(t.map.count, 0);
}

static void maps_guard_their_marks(void **state)
{
    (void)state;
    sl_opt_map_put(&t.map, "a,=\\", "1,2\\=");
    sl_opt_map_put(&t.map, "b", "x");
    sl_opt_map_put(&t.map, "b", "y");
    assert_int_equal(t.map.count, 2);
    shows("map", "a\\,\\=\\\\=1\\,2\\\\=,b=y");
    assert_int_equal(set("map", "a\\,\\=\\\\=1\\,2\\\\=,b=y"), SL_OK);
    assert_string_equal(sl_opt_map_get(&t.map, "a,=\\"), "1,2\\=");
    assert_string_equal(sl_opt_map_get(&t.map, "b"), "y");
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    sl_buf out = { 0 };

    shows("secret", "");
    assert_int_equal(set("secret", "hunter2"), SL_OK);
    shows("secret", "***");
    assert_int_equal(set("url", "postgresql://u:hunter2@h/db"), SL_OK);
    shows("url", "postgresql://u:***@h/db");
    sl_opt_show(sl_opt_find(table, "secret"), &t, true, &out);
    assert_string_equal(sl_buf_text(&out), "hunter2");
    sl_buf_fini(&out);
}

static void passwords_are_masked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        { "", "" },
        { "sqlite:sluice.db", "sqlite:sluice.db" },
        { "postgresql://u:p@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u@h:5432/db", "postgresql://u@h:5432/db" },
        { "postgresql://h:5432/db", "postgresql://h:5432/db" },
        { "postgresql://h:5432", "postgresql://h:5432" },
        { "postgresql://h1:1,h2:2/db?user=a@b", "postgresql://h1:1,h2:2/db?user=a@b" },
        { "postgresql://u:p@h1:1,h2:2/db", "postgresql://u:***@h1:1,h2:2/db" },
        { "redis://:p@h", "redis://:***@h" },
        { "postgresql://u:@h/db", "postgresql://u:***@h/db" },
        /* marks inside of a password, escaped or not */
        { "postgresql://u:p%40q@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:p@q@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:p/q@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:p@q/r@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:p:q@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:12,3@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:12#3@h/db", "postgresql://u:***@h/db" },
        { "postgresql://u:p?q@h/db", "postgresql://u:***" },
        { "postgresql://u:token=p@h/db", "postgresql://u:***@h/db" },
        /* queries */
        { "postgresql://h/db?user=u&password=p", "postgresql://h/db?user=u&password=***" },
        { "postgresql://h/db?password=p&user=u", "postgresql://h/db?password=***&user=u" },
        { "postgresql://h/db?sslpassword=p q&x=y", "postgresql://h/db?sslpassword=***&x=y" },
        { "postgresql://u:p@h/db?password=q@r", "postgresql://u:***" },
        { "postgresql://u:p/q@r?s@h/db", "postgresql://u:***" },
        { "postgresql://h:5432/db?password=q@r", "postgresql://h:5432/db?password=***" },
        { "http://h:80?token=q@r", "http://h:***" },
        { "https://h/x?secret=s#f", "https://h/x?secret=***" },
        { "https://h/x?a=b&access_token=t&c=d", "https://h/x?a=b&access_token=***&c=d" },
        { "https://h/x?TOKEN=t", "https://h/x?TOKEN=***" },
        { "https://h/x?tokens=t", "https://h/x?tokens=t" },
        /* conninfo */
        { "host=h password=p dbname=d", "host=h password=*** dbname=d" },
        { "password=p", "password=***" },
        { "password='a b' host=h", "password=*** host=h" },
        { "password='a\\' b' host=h", "password=*** host=h" },
        { "password='a\\\\' host=h", "password=*** host=h" },
        { "password = 'a b' host=h", "password = *** host=h" },
        { "password=a\\ b host=h", "password=*** host=h" },
        { "password=a&b host=h", "password=*** host=h" },
        { "password='never closed host=h", "password=***" },
        { "host=h sslpassword=p\tuser=u", "host=h sslpassword=***\tuser=u" },
        { "password='u://a:b@c' host=h", "password=*** host=h" },
        { "password=", "password=***" },
        { "host=h password=p q", "host=h password=*** ***" },
        { "host=h pasword=p", "host=h pasword=***" },
        { "dbname=postgresql://u:p@h/db", "dbname=***" },
        { "u:p@h/x", "u:***@h/x" },
        { "sqlite:a@b.db", "sqlite:***@b.db" },
        { "passfile=/home/x/.pgpass", "passfile=/home/x/.pgpass" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_buf out = { 0 };
        sl_opt_mask(rows[i].text, &out);
        assert_string_equal(sl_buf_text(&out), rows[i].shown);
        sl_buf_fini(&out);
    }
}

static void lists_grow_and_are_shown(void **state)
{
    (void)state;
    shows("list", "");
    assert_int_equal(set("list", "a"), SL_OK);
    assert_int_equal(set("list", "x,y"), SL_OK);
    assert_int_equal(set("list", "z\\"), SL_OK);
    assert_int_equal(t.list.count, 3);
    assert_string_equal(t.list.v[1], "x,y");
    shows("list", "a,x\\,y,z\\\\");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_set),
        TEST(names_are_found_in_both_spellings),
        TEST(slips_find_the_name_that_was_meant),
        TEST(the_nearest_wins),
        TEST(booleans),
        TEST(whole_numbers),
        TEST(whole_numbers_without_bounds),
        TEST(times_have_units),
        TEST(sizes_have_units),
        TEST(texts_have_lengths),
        TEST(choices),
        TEST(maps),
        TEST(maps_guard_their_marks),
        TEST(secrets_are_not_shown),
        TEST(passwords_are_masked),
        TEST(lists_grow_and_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
