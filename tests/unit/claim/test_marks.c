/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/marks.h"

#include "core/clock.h"
#include "support/fakedb.h"

#define NOW_NS (INT64_C(1000) * SL_SEC)

static sl_marks m;
static fakedb db;

static int setup(void **state)
{
    (void)state;
    m = (sl_marks){ .able = true, .source = sl_final_new() };
    fakedb_init(&db);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_final_free(m.source);
    sl_marks_fini(&m);
    fakedb_fini(&db);
    return 0;
}

/* A read that asks, and is told that nobody writes and that ids up to `given` were given out. */
static void read_beside_nobody(int64_t given)
{
    sl_call calls[SL_FINAL_CALLS];
    sl_err err;
    while (sl_marks_ask(&m, &db.base, calls) == 0)
        usleep(500);
    assert_int_equal(calls[0].row(calls[0].ctx, (sl_val[]){ sl_int(given) }, &err), SL_OK);
    sl_marks_answered(&m, true);
}

static void an_answer_counts_for_the_read_behind_it(void **state)
{
    (void)state;
    sl_marks_note(&m, 500, 1, NOW_NS);
    read_beside_nobody(700);
    assert_int_equal(m.final, 700);
}

/* Else every other batch would be one of which nothing is known. */
static void where_many_come_it_is_asked_ahead(void **state)
{
    (void)state;
    sl_call calls[SL_FINAL_CALLS];
    sl_marks_note(&m, 700, 100, NOW_NS);
    read_beside_nobody(700);
    sl_marks_note(&m, 700, 31, NOW_NS);
    usleep(2000); /* it may be asked again by now */
    assert_int_equal(sl_marks_ask(&m, &db.base, calls), SL_FINAL_CALLS); /* of the 100 */
    sl_marks_answered(&m, true);
    read_beside_nobody(900);
    sl_marks_note(&m, 900, 31, NOW_NS);
    usleep(2000);
    assert_int_equal(sl_marks_ask(&m, &db.base, calls), 0);
    sl_marks_note(&m, 900, 32, NOW_NS);
    read_beside_nobody(901);
    assert_int_equal(m.final, 901);
}

/* What another was told meanwhile may be younger than this read. */
static void what_others_learn_during_a_read_does_not_count(void **state)
{
    (void)state;
    sl_call calls[SL_FINAL_CALLS];
    sl_final_asked other = { 0 };
    sl_err err;
    assert_int_equal(sl_marks_ask(&m, &db.base, calls), 0); /* nothing is wanted yet */
    sl_final_want(m.source, 500);
    while (sl_final_ask(m.source, &db.base, &other, calls) == 0)
        usleep(500);
    assert_int_equal(calls[0].row(calls[0].ctx, (sl_val[]){ sl_int(700) }, &err), SL_OK);
    assert_int_equal(sl_final_answered(m.source, &other, true), 700);
    sl_marks_answered(&m, true);
    assert_int_equal(m.final, 0);
    assert_int_equal(sl_marks_ask(&m, &db.base, calls), 0);
    assert_int_equal(m.final, 700); /* the next read is behind it */
    sl_final_asked_fini(&other);
}

/* For a few that are final the others do not wait. */
static void a_stretch_ends_where_ids_are_not_final(void **state)
{
    (void)state;
    assert_int_equal(sl_marks_end(&m, 1, 8001, 500, NOW_NS), 8001);
    sl_marks_note(&m, 700, 1, NOW_NS);
    read_beside_nobody(700);
    assert_int_equal(sl_marks_end(&m, 1, 8001, 500, NOW_NS), 701);
    assert_int_equal(sl_marks_end(&m, 669, 8669, 500, NOW_NS), 701);
    assert_int_equal(sl_marks_end(&m, 670, 8670, 500, NOW_NS), 8670);
    assert_int_equal(sl_marks_end(&m, 700, 8700, 1, NOW_NS),
                     701); /* a whole batch is always enough */
    assert_int_equal(sl_marks_end(&m, 701, 8701, 1, NOW_NS), 8701);
    assert_int_equal(sl_marks_end(&m, 1, 600, 500, NOW_NS), 600);
}

/* Under load: what is not final yet will be in a moment. But not for longer than that moment. */
static void where_many_come_it_is_waited_for_ids_to_be_final(void **state)
{
    (void)state;
    sl_marks_note(&m, 700, 127, NOW_NS);
    read_beside_nobody(700);
    assert_int_equal(sl_marks_end(&m, 701, 8701, 500, NOW_NS), 8701);
    sl_marks_note(&m, 700, 128, NOW_NS);
    assert_int_equal(sl_marks_end(&m, 701, 8701, 500, NOW_NS), 701);
    assert_true(sl_marks_patient(&m));
    assert_int_equal(sl_marks_end(&m, 701, 8701, 500, NOW_NS + 9 * SL_MS), 701);
    assert_int_equal(sl_marks_end(&m, 701, 8701, 500, NOW_NS + 10 * SL_MS), 8701);
    assert_false(sl_marks_patient(&m));
}

/* A producer whose transaction lasts keeps nobody waiting twice. */
static void what_was_waited_for_in_vain_is_not_waited_for_again(void **state)
{
    (void)state;
    sl_marks_note(&m, 700, 200, NOW_NS);
    read_beside_nobody(700);
    assert_int_equal(sl_marks_end(&m, 701, 8701, 500, NOW_NS + 10 * SL_MS), 8701);
    sl_marks_note(&m, 800, 200, NOW_NS + 11 * SL_MS);
    assert_int_equal(sl_marks_end(&m, 801, 8801, 500, NOW_NS + 12 * SL_MS), 8801);
    sl_marks_note(&m, 900, 200, NOW_NS + 13 * SL_MS);
    read_beside_nobody(900); /* it has gone */
    assert_int_equal(sl_marks_end(&m, 901, 8901, 500, NOW_NS + 14 * SL_MS), 901);
}

static void a_floor_rises_as_far_as_ids_are_final(void **state)
{
    (void)state;
    sl_floor f = { .at = 5 };
    sl_marks_note(&m, 100, 1, NOW_NS);
    read_beside_nobody(100);
    sl_marks_raise(&m, &f, 50);
    assert_int_equal(f.at, 50);
    sl_marks_raise(&m, &f, 40); /* and never falls */
    assert_int_equal(f.at, 50);
    sl_marks_raise(&m, &f, 101);
    assert_int_equal(f.at, 101);
    sl_marks_raise(&m, &f, INT64_MAX);
    assert_int_equal(f.at, 101);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_counts_for_the_read_behind_it),
        TEST(where_many_come_it_is_asked_ahead),
        TEST(what_others_learn_during_a_read_does_not_count),
        TEST(a_stretch_ends_where_ids_are_not_final),
        TEST(where_many_come_it_is_waited_for_ids_to_be_final),
        TEST(what_was_waited_for_in_vain_is_not_waited_for_again),
        TEST(a_floor_rises_as_far_as_ids_are_final),
    };
    if (!sl_db_named("postgres"))
        return 77; /* it alone has the statements */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
