/* SPDX-License-Identifier: Apache-2.0 */
/* What a bench fills its tables with; the rest of box.c: tests/e2e/test_bench.py. */
#include "bench/box.h"

#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_box box;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    box = (sl_box){ .db = t.eye };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testdb_drop(&t);
    return 0;
}

static void keys_take_turns(void **state)
{
    (void)state;
    sl_fill fill = { .rows = 20, .keys = 3, .bytes = 200 };
    assert_int_equal(sl_box_fill(&box, &fill, NULL, NULL, &err), SL_OK);
    assert_int_equal(box.last_id, 20);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE entity_key = "
                                    "'k' || (id % 3)"),
                     20);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE length(payload) "
                                    "BETWEEN 190 AND 210"),
                     20);
}

static void each_nth_is_of_the_hot_one(void **state)
{
    (void)state;
    sl_fill fill = { .rows = 20, .keys = 3, .hot = 5, .bytes = 200, .prefix = "c" };
    assert_int_equal(sl_box_fill(&box, &fill, NULL, NULL, &err), SL_OK);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE entity_key = "
                                    "'hot' AND id % 5 = 0"),
                     4);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox WHERE entity_key = "
                                    "'c' || (id % 3)"),
                     16);
}

static void each_head_has_a_key_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(sl_box_block(&box, 7, "b", &err), SL_OK);
    assert_int_equal(testdb_int(&t, "SELECT count(DISTINCT entity_key) FROM sluice_outbox "
                                    "WHERE entity_key LIKE 'b%'"),
                     7);
}

static int group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(keys_take_turns),
        TEST(each_nth_is_of_the_hot_one),
        TEST(each_head_has_a_key_of_its_own),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(group);
}
