/* SPDX-License-Identifier: Apache-2.0 */
/* When the chore is due, and what it does to a table that is none of its own. What it does to segments:
 * tests/contract/test_claims_rotated.c. */
#include "lib/rotate.h"

#include "support/testdb.h"

static int64_t settled;
static sl_rotate r;
static sl_chore chore;

static int64_t written(void *ctx)
{
    assert_ptr_equal(ctx, &settled);
    return settled;
}

static int setup(void **state)
{
    (void)state;
    settled = 0;
    r = (sl_rotate){ .written = written, .ctx = &settled };
    chore = sl_rotate_chore(&r);
    return 0;
}

static bool due(int64_t rows)
{
    return chore.due(chore.ctx, rows);
}

static void it_is_due_while_messages_go_and_once_after_that(void **state)
{
    (void)state;
    settled = 10;
    assert_true(due(0));
    assert_false(r.idle);
    settled = 20;
    assert_true(due(0));
    assert_false(r.idle);
    assert_true(due(0)); /* now the current segment may go */
    assert_true(r.idle);
    assert_false(due(0));
    settled = 21;
    assert_true(due(0));
    assert_false(r.idle);
}

static void it_goes_on_while_there_is_something_to_empty(void **state)
{
    (void)state;
    assert_true(due(0));
    assert_true(due(1));
    assert_true(due(2));
    assert_false(due(0));
}

static void it_leaves_other_tables_alone(void **state)
{
    (void)state;
    testdb t;
    sl_err err = { 0 };
    int64_t rows = 0;
    testdb_init(&t, testdb_any(), NULL);
    testdb_fill(&t, 3, 1);
    if (chore.run(chore.ctx, t.eye, NULL, NULL, &rows, &err) != SL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(testdb_count(&t), 3);
    settled = 1000;
    assert_false(due(rows)); /* never again */
    testdb_drop(&t);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup(fn, setup)
    const struct CMUnitTest tests[] = {
        TEST(it_is_due_while_messages_go_and_once_after_that),
        TEST(it_goes_on_while_there_is_something_to_empty),
        TEST(it_leaves_other_tables_alone),
    };
    if (!testdb_any())
        return TESTDB_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
