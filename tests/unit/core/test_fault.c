/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fault.h"

#include "unit/unit.h"

static void pass_twice(void)
{
    SL_FAULT("after-send");
    SL_FAULT("after-send");
}

static void pass_others(void)
{
    SL_FAULT("after");
    SL_FAULT("after-send-too");
    SL_FAULT("before-send");
}

/* In a build without fault points, which is the one that users have, none of it may happen. */
static void the_process_dies_at_the_nth_passage(void **state)
{
    (void)state;
#ifdef SL_FAULT_POINTS
    const int killed[] = { 0, SIGKILL, SIGKILL, 0 };
#else
    const int killed[] = { 0, 0, 0, 0 };
#endif
    for (int n = 0; n < 4; n++) {
        char wish[] = "after-send:?";
        wish[sizeof wish - 2] = (char)('0' + n);
        setenv("SLUICE_FAULT", wish, 1);
        assert_int_equal(death_of(pass_twice), killed[n]);
        assert_int_equal(death_of(pass_others), 0);
    }
    unsetenv("SLUICE_FAULT");
    assert_int_equal(death_of(pass_twice), 0);
}

/* In the child: a stop that the parent sees, and goes on from. */
static void the_process_stops_where_it_is_told(void **state)
{
    (void)state;
    setenv("SLUICE_FAULT", "after-send:2:stop", 1);
    pid_t pid = fork();
    if (pid == 0) {
        pass_twice();
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
#ifdef SL_FAULT_POINTS
    assert_true(WIFSTOPPED(status));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
#endif
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    unsetenv("SLUICE_FAULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_dies_at_the_nth_passage),
        cmocka_unit_test(the_process_stops_where_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
