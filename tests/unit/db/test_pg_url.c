/* SPDX-License-Identifier: Apache-2.0 */
#include "db/pg_url.h"

#include "unit/unit.h"

static void what_libpq_reads_is_whole(void **state)
{
    (void)state;
    static const char *const whole[] = {
        "",
        "postgresql:",
        "postgresql://",
        "postgresql:///db",
        "postgresql://h",
        "postgresql://h/db",
        "postgresql://h:5432/db",
        "postgresql://u@h/db",
        "postgresql://u:p@h:5432/db",
        "postgresql://u:p%40q%2Fr%3Fs@h/db",
        "postgresql://u:@h/db",
        "postgresql://u:p@h1:1,h2:2,h3/db",
        "postgresql://[::1]:5432/db",
        "postgresql://u@[::1],[fe80::1%25eth0]:1/db",
        "postgresql://h:/db",
        "postgresql://h/db?user=a@b&password=c@d/e",
        "postgres://h?host=/run/postgresql",
        "host=h password=a@b/c:d dbname=x",
        "host=h password=x://y:z@w dbname=x",
    };
    for (size_t i = 0; i < COUNT(whole); i++)
        if (sl_pg_url_is_torn(whole[i]))
            fail_msg("torn: %s", whole[i]);
}

static void a_raw_character_tears_it(void **state)
{
    (void)state;
    static const char *const torn[] = {
        "postgresql://u:p@q@h/db",    "postgresql://u:p/q@h/db", "postgresql://u:p?q@h/db",
        "postgresql://u:p#q@h/db",    "postgresql://h:port/db",  "postgresql://u:p@h:5432x/db",
        "postgresql://h1:1,h2:two/x", "postgresql://[::1/db",    "postgresql://[::1]:x/db",
        "postgresql://u@h/d@b",
    };
    for (size_t i = 0; i < COUNT(torn); i++)
        if (!sl_pg_url_is_torn(torn[i]))
            fail_msg("whole: %s", torn[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_libpq_reads_is_whole),
        cmocka_unit_test(a_raw_character_tears_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
