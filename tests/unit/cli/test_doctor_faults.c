/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_faults.h"

#include "unit/unit.h"

/* How many faults, and a word of each. */
static void expect_as(sl_health state, const char *library, int64_t version, const char *words)
{
    sl_findings all = { 0 };
    sl_judge_library(&all, "library", library, version);
    assert_true(all.count >= 1);
    if (!words) {
        assert_int_equal(all.count, 1);
        if (all.v[0].state != SL_FINE || all.v[0].todo)
            fail_msg("%s", all.v[0].found);
    }
    for (size_t i = 0; words && i < all.count; i++) {
        size_t n = strcspn(words, "|");
        char *word = strndup(words, n);
        assert_int_equal(all.v[i].state, state);
        if (!strstr(all.v[i].found, word) || !strstr(all.v[i].todo, "upgrade to "))
            fail_msg("%s, not %s", all.v[i].found, word);
        free(word);
        words += n + (words[n] == '|');
    }
    if (words)
        assert_string_equal(words, ""); /* no more than there are */
    sl_findings_fini(&all);
}

static void expect(const char *library, int64_t version, const char *words)
{
    expect_as(SL_WARN, library, version, words);
}

static void ranges_have_their_ends(void **state)
{
    (void)state;
    expect("libpq", 130022, "CVE-2025-12818");
    expect("libpq", 130023, NULL);
    expect("libpq", 140004, "CVE-2025-12818|pipeline");
    expect("libpq", 140005, "CVE-2025-12818");
    expect("libpq", 140020, NULL);
    expect("libpq", 150014, "CVE-2025-12818");
    expect("libpq", 150015, NULL);
    expect("libpq", 160010, "CVE-2025-12818");
    expect("libpq", 160011, NULL);
    expect("libpq", 170006, "CVE-2025-12818");
    expect("libpq", 170007, NULL);
    expect("libpq", 180000, "CVE-2025-12818");
    expect("libpq", 180001, NULL);
    expect("sqlite3", 3040001, "WAL-reset");
    expect("sqlite3", 3044005, "WAL-reset");
    expect("sqlite3", 3044006, NULL);
    expect("sqlite3", 3045000, "WAL-reset");
    expect("sqlite3", 3050006, "WAL-reset");
    expect("sqlite3", 3050007, NULL);
    expect("sqlite3", 3051002, "WAL-reset");
    expect("sqlite3", 3051003, NULL);
    expect("sqlite3", 3053000, NULL);
    expect_as(SL_BAD, "librdkafka", 0x010802ff, "reported as delivered");
    expect("librdkafka", 0x010900ff, NULL);
    expect("librdkafka", 0x020002ff, NULL);
    expect("librdkafka", 0x020200ff, "idempotent");
    expect("librdkafka", 0x020401ff, "idempotent");
    expect("librdkafka", 0x020500ff, NULL);
    expect("postgres", 130023, "end of life");
    expect("postgres", 140003, "CONCURRENTLY");
    expect("postgres", 140004, NULL);
    expect("postgres", 180001, NULL);
    expect("something else", 1, NULL);
}

static void expect_version(const char *library, int64_t version, const char *want)
{
    sl_buf out = { 0 };
    sl_put_version(&out, library, version);
    assert_string_equal(sl_buf_text(&out), want);
    sl_buf_fini(&out);
}

static void versions_are_for_people(void **state)
{
    (void)state;
    expect_version("libpq", 150004, "15.4");
    expect_version("postgres", 180001, "18.1");
    expect_version("sqlite3", 3040001, "3.40.1");
    expect_version("librdkafka", 0x020300ff, "2.3.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_have_their_ends),
        cmocka_unit_test(versions_are_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
