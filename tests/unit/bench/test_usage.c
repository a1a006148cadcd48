/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/usage.h"

#include "core/clock.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void time_that_was_used(void **state)
{
    (void)state;
    double before = sl_usage_cpu(getpid());
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    assert_true(before >= 0);
    while (sl_usage_cpu(getpid()) < before + 0.05)
        assert_true(sl_now_ns() < until_ns);
}

static void memory_that_was_used(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20 };
    int64_t before = sl_usage_memory(getpid());
    char *p = sl_alloc(BYTES);
    memset(p, 1, BYTES);
    assert_true(before > 0 && p[BYTES - 1] == 1);
    assert_true(sl_usage_memory(getpid()) > before + BYTES / 2);
    free(p);
}

/* A process that has ended, and one that is no server. */
static void what_is_not_there(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(sl_usage_cpu(pid) < 0 && sl_usage_memory(pid) == 0);
    assert_true(sl_usage_server_cpu(pid) < 0 && sl_usage_server_cpu(getpid()) < 0);
    assert_true(sl_usage_server_cpu(0) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_was_used),
        cmocka_unit_test(memory_that_was_used),
        cmocka_unit_test(what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
