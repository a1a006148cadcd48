/* SPDX-License-Identifier: Apache-2.0 */
#include "member/final.h"

#include "core/clock.h"
#include "support/fakedb.h"

static sl_final *f;
static sl_final_asked a;
static fakedb db;

static int setup(void **state)
{
    (void)state;
    f = sl_final_new();
    fakedb_init(&db);
    sl_final_want(f, 1000000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_final_free(f);
    sl_final_asked_fini(&a);
    a = (sl_final_asked){ 0 };
    fakedb_fini(&db);
    return 0;
}

/* Waits until it may be asked, and is told the last id and the writers, the words of a text. */
static void ask(sl_final_asked *to, int64_t given, const char *names)
{
    sl_call calls[SL_FINAL_CALLS];
    sl_err err;
    for (int64_t until = sl_now_ns() + 10 * SL_SEC;
         sl_final_ask(f, &db.base, to, calls) != SL_FINAL_CALLS;) {
        assert_true(sl_now_ns() < until);
        usleep(500);
    }
    /* The order is what it rests on. */
    assert_string_equal(calls[0].stmt->name, "floor/given");
    assert_string_equal(calls[1].stmt->name, "floor/writers");
    assert_int_equal(calls[0].row(calls[0].ctx, (sl_val[]){ sl_int(given) }, &err), SL_OK);
    char *copy = strdup(names);
    char *rest = copy;
    for (char *name; (name = strsep(&rest, " "));)
        if (*name)
            assert_int_equal(
                calls[1].row(calls[1].ctx, (sl_val[]){ sl_text(sl_str_of(name)) }, &err),
                SL_OK);
    free(copy);
}

/* Returns what it shows. */
static int64_t answer(int64_t given, const char *names)
{
    ask(&a, given, names);
    return sl_final_answered(f, &a, true);
}

static void nothing_is_asked_that_is_known(void **state)
{
    (void)state;
    sl_call calls[SL_FINAL_CALLS];
    assert_int_equal(answer(1000000, ""), 1000000);
    int64_t until_ns = sl_now_ns() + 5 * SL_MS;
    while (sl_now_ns() < until_ns)
        assert_int_equal(sl_final_ask(f, &db.base, &a, calls), 0);
    assert_int_equal(sl_final_answered(f, &a, true), 0); /* harmless */
    sl_final_want(f, 1000001);
    assert_int_equal(answer(1000001, ""), 1000001);
}

static void without_writers_all_that_was_given_is_final(void **state)
{
    (void)state;
    assert_int_equal(sl_final_upto(f), 0);
    assert_int_equal(answer(70, ""), 70);
    assert_int_equal(sl_final_upto(f), 70);
}

static void writers_are_waited_for(void **state)
{
    (void)state;
    assert_int_equal(answer(70, "3/7 4/9"), 0); /* they may have any id up to 70 */
    assert_int_equal(answer(80, "4/9 5/1"), 0);
    assert_int_equal(sl_final_upto(f), 0);
    assert_int_equal(answer(90, "5/1"), 70); /* it came later, and may have one above */
    assert_int_equal(sl_final_upto(f), 70);
    assert_int_equal(answer(95, "6/1"), 90);
    assert_int_equal(answer(99, ""), 99);
    assert_int_equal(sl_final_upto(f), 99);
}

static void it_never_falls(void **state)
{
    (void)state;
    assert_int_equal(answer(70, ""), 70);
    assert_int_equal(answer(60, ""), 60); /* that is what this answer shows */
    assert_int_equal(sl_final_upto(f), 70);
}

static void one_asks_at_a_time(void **state)
{
    (void)state;
    sl_final_asked other = { 0 };
    sl_call calls[SL_FINAL_CALLS];
    ask(&a, 70, "");
    int64_t until_ns = sl_now_ns() + 5 * SL_MS;
    while (sl_now_ns() < until_ns)
        assert_int_equal(sl_final_ask(f, &db.base, &other, calls), 0);
    assert_int_equal(sl_final_answered(f, &a, true), 70);
    sl_final_asked_fini(&other);
}

static void an_answer_that_did_not_come_shows_nothing(void **state)
{
    (void)state;
    ask(&a, 70, "");
    assert_int_equal(sl_final_answered(f, &a, false), 0);
    assert_int_equal(sl_final_upto(f), 0);
    assert_int_equal(answer(70, ""), 70);
}

/* After a crash of the server the same prepared transaction has another name. */
static void names_of_another_life_are_asked_for_again(void **state)
{
    (void)state;
    assert_int_equal(answer(70, "4/2"), 0);
    sl_final_doubt(f);
    assert_int_equal(answer(80, "-1/726"), 0);
    assert_int_equal(sl_final_upto(f), 0);
    assert_int_equal(answer(90, "5/1"), 80);
}

/* It was given by the server that is gone. */
static void an_answer_from_before_a_doubt_does_not_count(void **state)
{
    (void)state;
    ask(&a, 70, "4/2");
    sl_final_doubt(f);
    assert_int_equal(sl_final_answered(f, &a, true), 0);
    assert_int_equal(answer(80, "-1/726"), 0); /* whom that one did not know */
    assert_int_equal(sl_final_upto(f), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_asked_that_is_known),
        TEST(without_writers_all_that_was_given_is_final),
        TEST(writers_are_waited_for),
        TEST(it_never_falls),
        TEST(one_asks_at_a_time),
        TEST(an_answer_that_did_not_come_shows_nothing),
        TEST(names_of_another_life_are_asked_for_again),
        TEST(an_answer_from_before_a_doubt_does_not_count),
    };
    if (!sl_db_named("postgres"))
        return 77; /* it alone has the statements */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
