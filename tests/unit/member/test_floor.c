/* SPDX-License-Identifier: Apache-2.0 */
#include "member/floor.h"

#include "core/clock.h"
#include "support/fakedb.h"

static sl_tickets *t;
static sl_writers w;
static fakedb db;

static int setup(void **state)
{
    (void)state;
    t = sl_tickets_new();
    fakedb_init(&db);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_tickets_free(t);
    sl_writers_fini(&w);
    w = (sl_writers){ 0 };
    fakedb_fini(&db);
    return 0;
}

/* Waits until it may be asked again, and answers with the words of a text. */
static void answer(const char *names)
{
    sl_call call;
    sl_err err;
    for (int64_t until = sl_now_ns() + 10 * SL_SEC; !sl_tickets_ask(t, &db.base, &w, &call);) {
        assert_true(sl_now_ns() < until);
        usleep(1000);
    }
    char *copy = strdup(names);
    char *rest = copy;
    for (char *name; (name = strsep(&rest, " "));)
        if (*name)
            assert_int_equal(call.row(call.ctx, (sl_val[]){ sl_text(sl_str_of(name)) }, &err),
                             SL_OK);
    free(copy);
    sl_tickets_answered(t, &w, true);
}

static void nothing_is_asked_while_nothing_is_proposed(void **state)
{
    (void)state;
    sl_call call;
    assert_false(sl_tickets_ask(t, &db.base, &w, &call));
    sl_tickets_answered(t, &w, true); /* harmless */
    assert_int_equal(sl_tickets_ripe(t), 0);
}

static void a_floor_counts_when_all_writers_of_its_time_are_gone(void **state)
{
    (void)state;
    sl_floor f = { 0 };
    sl_floor_propose(&f, t, 100);
    answer("3/7 4/9"); /* those may still commit lower ids */
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 0);
    answer("4/9 5/1");
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 0);
    answer("5/1 6/2"); /* those came later */
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 100);
}

/* After a crash of the server the same prepared transaction has another name. */
static void names_of_another_life_are_asked_for_again(void **state)
{
    (void)state;
    sl_floor f = { 0 };
    sl_floor_propose(&f, t, 100);
    answer("4/2");
    sl_tickets_doubt(t);
    answer("-1/726");
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 0);
    answer("-1/726 5/1");
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 0);
    answer("5/1");
    sl_floor_seen(&f, sl_tickets_ripe(t), 150);
    assert_int_equal(f.at, 100);
}

static void a_late_message_keeps_the_floor_down(void **state)
{
    (void)state;
    sl_floor f = { .at = 10 };
    sl_floor_propose(&f, t, 100);
    answer("3/7");
    answer("");
    sl_floor_seen(&f, sl_tickets_ripe(t), 42); /* what 3/7 committed */
    assert_int_equal(f.at, 42);
    assert_int_equal(f.next, 0);
}

static void what_was_ripe_after_the_read_does_not_count(void **state)
{
    (void)state;
    sl_floor f = { 0 };
    sl_floor_propose(&f, t, 100);
    answer("3/7");
    int64_t before = sl_tickets_ripe(t);
    answer(""); /* another worker learns it while we read */
    sl_floor_seen(&f, before, 0);
    assert_int_equal(f.at, 0);
    sl_floor_seen(&f, sl_tickets_ripe(t), 0);
    assert_int_equal(f.at, 100);
}

/* The answer that is on its way when a floor is proposed may be older than the proposal. */
static void an_answer_on_its_way_is_too_old(void **state)
{
    (void)state;
    sl_floor f = { 0 }, other = { 0 };
    sl_call call;
    sl_floor_propose(&other, t, 5);
    for (; !sl_tickets_ask(t, &db.base, &w, &call); usleep(1000))
        ;
    sl_floor_propose(&f, t, 100);     /* a writer may begin right before this */
    sl_tickets_answered(t, &w, true); /* "nobody", asked before it */
    answer("9/9");
    sl_floor_seen(&f, sl_tickets_ripe(t), 0);
    assert_int_equal(f.at, 0);
    answer("9/9");
    sl_floor_seen(&f, sl_tickets_ripe(t), 0);
    assert_int_equal(f.at, 0);
    answer("");
    sl_floor_seen(&f, sl_tickets_ripe(t), 0);
    assert_int_equal(f.at, 100);
}

static void an_answer_that_failed_says_nothing(void **state)
{
    (void)state;
    sl_floor f = { 0 };
    sl_call call;
    sl_floor_propose(&f, t, 100);
    answer("3/7");
    for (; !sl_tickets_ask(t, &db.base, &w, &call); usleep(1000))
        ;
    sl_tickets_answered(t, &w, false);
    assert_int_equal(sl_tickets_ripe(t), 0);
    answer("");
    assert_true(sl_tickets_ripe(t) >= 1);
}

static void an_id_from_nowhere_lowers_the_floor(void **state)
{
    (void)state;
    sl_floor f = { .at = 100 };
    sl_floor_seen(&f, 0, 7); /* read from the very beginning */
    assert_int_equal(f.at, 7);
}

static void one_proposal_at_a_time_and_never_downwards(void **state)
{
    (void)state;
    sl_floor f = { .at = 50 };
    sl_floor_propose(&f, t, 50);
    assert_int_equal(f.next, 0);
    sl_floor_propose(&f, t, 100);
    sl_floor_propose(&f, t, 200);
    assert_int_equal(f.next, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_asked_while_nothing_is_proposed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_floor_counts_when_all_writers_of_its_time_are_gone,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_another_life_are_asked_for_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_late_message_keeps_the_floor_down, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_ripe_after_the_read_does_not_count, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_answer_on_its_way_is_too_old, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_failed_says_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_from_nowhere_lowers_the_floor, setup, teardown),
        cmocka_unit_test_setup_teardown(one_proposal_at_a_time_and_never_downwards, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
