/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/who.h"

#include "capture.h"
#include "support/testdb.h"

enum { ME = 7 };

/* Owners as a picture: '#' is mine, anything else is not. */
static sl_who drawn(const char *picture)
{
    static int64_t owners[64];
    sl_who w = { .owners = owners, .lanes = strlen(picture) };
    for (size_t i = 0; i < w.lanes; i++)
        owners[i] = picture[i] == '#' ? ME : picture[i] == 'o' ? 9 : 0;
    return w;
}

static void expect_ranges(const char *picture, size_t room, const char *want)
{
    sl_who w = drawn(picture);
    sl_buf out = { 0 };
    sl_buf_puts(&out, ":"); /* what is there stays */
    sl_who_ranges(&w, ME, room, &out);
    assert_string_equal(sl_buf_text(&out) + 1, want);
    sl_buf_fini(&out);
}

static void lanes_are_ranges(void **state)
{
    (void)state;
    expect_ranges("", 40, "");
    expect_ranges("...", 40, "");
    expect_ranges("#", 40, "0");
    expect_ranges("##", 40, "0-1");
    expect_ranges("####.....#..####", 40, "0-3,9,12-15");
    expect_ranges("o#o#o#", 40, "1,3,5");
    expect_ranges(".##########", 40, "1-10");
}

static void long_lists_end_in_dots(void **state)
{
    (void)state;
    const char *every_other = "#.#.#.#.#.#.#.#.#.#.";
    expect_ranges(every_other, 23, "0,2,4,6,8,10,12,14,...");
    expect_ranges(every_other, 25, "0,2,4,6,8,10,12,14,16,18"); /* all of it: no dots */
    expect_ranges(every_other, 9, "0,2,4,...");
    expect_ranges(every_other, 8, "0,2,...");
    expect_ranges(every_other, 3, "...");
    expect_ranges(every_other, 0, "...");
}

static void lanes_are_counted(void **state)
{
    (void)state;
    sl_who w = drawn("##o..#");
    sl_buf out = { 0 };
    assert_int_equal(sl_who_owns(&w, ME), 3);
    assert_int_equal(sl_who_owns(&w, 9), 1);
    assert_int_equal(sl_who_owns(&w, 0), 2);
    assert_int_equal(sl_who_owns(&w, 5), 0);
    sl_who_lanes_json(&w, ME, &out);
    sl_who_lanes_json(&w, 0, &out);
    sl_who_lanes_json(&w, 5, &out);
    assert_string_equal(sl_buf_text(&out), "[0,1,5][3,4][]");
    sl_buf_fini(&out);
}

static void expect_time(int64_t us, const char *want)
{
    sl_buf out = { 0 };
    sl_who_time(&out, us);
    assert_string_equal(sl_buf_text(&out), want);
    sl_buf_fini(&out);
}

static void times_are_for_people(void **state)
{
    (void)state;
    expect_time(0, "0.0 s");
    expect_time(12340000, "12.3 s");
    expect_time(60000000, "1m00s");
    expect_time(312 * INT64_C(1000000), "5m12s");
    expect_time(3600 * INT64_C(1000000), "1h00m");
    expect_time((26 * 3600 + 59 * 60) * INT64_C(1000000), "1d02h");
}

/* One that did not beat is shown, but does not live. */
static void the_living_are_counted(void **state)
{
    (void)state;
    sl_node_row rows[] = {
        { .strategy = (char *)"lanes", .left_us = -5, .per_second = 1000 },
        { .strategy = (char *)"lanes", .left_us = 5, .per_second = 20 },
        { .strategy = (char *)"lanes", .left_us = 9, .per_second = 3 },
    };
    sl_who w = { .nodes = { .v = rows, .count = 3 } };
    sl_who none = { 0 };
    assert_int_equal(sl_who_alive(&w), 2);
    assert_int_equal(sl_who_per_second(&w), 23);
    assert_string_equal(sl_who_strategy(&w), "lanes");
    assert_null(sl_who_strategy(&none));
}

static void holders_are_shown(void **state)
{
    (void)state;
    static capture c;
    sl_holder rows[] = { { (char *)"a/1", 12, 0, 1500000 },
                         { (char *)"b\"/2", 0, 3, 29000000 } };
    sl_who w = { .holders = rows, .holder_count = 2 };
    sl_who none = { 0 };
    sl_buf out = { 0 };
    sl_who_holders_json(&w, &out);
    sl_who_holders_json(&none, &out);
    assert_string_equal(
        sl_buf_text(&out),
        "[{\"worker\":\"a/1\",\"messages\":12,\"keys\":0,\"lease_seconds\":1.500},"
        "{\"worker\":\"b\\\"/2\",\"messages\":0,\"keys\":3,\"lease_seconds\":29.000}][]");
    sl_buf_fini(&out);
    capture_begin(&c, stdout);
    sl_who_print_holders(&w, stdout);
    sl_who_print_holders(&none, stdout);
    assert_string_equal(capture_end(&c), "\n  worker  messages  keys  lease ends\n"
                                         "  a/1           12     0       1.5 s\n"
                                         "  b\"/2           0     3      29.0 s\n");
}

/* ---- From a database ---- */

static testdb t;

static void join(int64_t session, const char *name)
{
    sl_err err = { 0 };
    char text[3][16] = { "", "lanes", "ring" };
    snprintf(text[0], sizeof text[0], "%s", name);
    sl_node_row me = { .session = session,
                       .node = text[0],
                       .strategy = text[1],
                       .assign = text[2],
                       .workers = 4 };
    if (sl_nodes_join(t.eye, &me, 30 * SL_SEC, NULL, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void all_of_it_is_read(void **state)
{
    const char *dialect = *state;
    sl_err err = { 0 };
    sl_who w = { 0 };
    testdb_make(&t, dialect, NULL);
    t.names.lanes = 100; /* more than there is room for at first */
    sl_schema_done done;
    assert_int_equal(sl_schema_init(t.eye, &t.names, &done, &err), SL_OK);
    join(11, "n1");
    join(12, "n2");
    testdb_fill(&t, 3, 1);
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 11 WHERE lane < 5");
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 12 WHERE lane = 99");
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 13 WHERE lane = 50"); /* is dead */
    testdb_exec(&t, "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) VALUES "
                    "('a', 0, 1, '2000-01-01'), ('b', 0, 2, '2999-01-01')");
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox_claims VALUES (1, '2999-01-01', 5, 'g/1', "
                          "'{ka,kb}'), (3, '2000-01-01', 6, 'g/2', '{kc}')",
                          "INSERT INTO sluice_outbox_claims VALUES "
                          "('ka', 1, '2999-01-01 00:00:00.000', 5, 'g/1'), "
                          "('kb', 1, '2999-01-01 00:00:00.000', 5, 'g/1'), "
                          "('kc', 3, '2000-01-01 00:00:00.000', 6, 'g/2')"));
    testdb_exec(&t, "UPDATE sluice_outbox SET leased_until = '2999-01-01 00:00:00.000', "
                    "worker = 'p/1' WHERE id < 3");
    for (int again = 0; again < 2; again++) {
        if (sl_who_read(&w, t.eye, &err) != SL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(w.nodes.count, 2);
        assert_int_equal(w.lanes, 100);
        assert_int_equal(sl_who_owns(&w, 11), 5);
        assert_int_equal(sl_who_owns(&w, 12), 1);
        assert_int_equal(sl_who_owns(&w, 0), 94);
        assert_int_equal(w.blocked, 2);
        assert_int_equal(w.holder_count, 2);
        assert_string_equal(w.holders[0].worker, "p/1");
        assert_int_equal(w.holders[0].messages, 2);
        assert_int_equal(w.holders[0].keys, 0);
        assert_string_equal(w.holders[1].worker, "g/1");
        assert_int_equal(w.holders[1].keys, 2);
        assert_true(w.holders[1].left_us > 0);
    }
    sl_who_fini(&w);
    testdb_drop(&t);
}

int main(void)
{
    const char *dialect = testdb_any();
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(lanes_are_ranges),       cmocka_unit_test(long_lists_end_in_dots),
        cmocka_unit_test(lanes_are_counted),      cmocka_unit_test(times_are_for_people),
        cmocka_unit_test(the_living_are_counted), cmocka_unit_test(holders_are_shown),
    };
    const struct CMUnitTest reading[] = {
        cmocka_unit_test_prestate(all_of_it_is_read, (void *)(uintptr_t)dialect),
    };
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    return failed || !dialect ? failed : cmocka_run_group_tests(reading, NULL, NULL);
}
