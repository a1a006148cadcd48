/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stop.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <poll.h>
#include <pthread.h>

enum { SLEEPERS = 8 };

static bool readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

static void the_level_never_falls(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    assert_int_equal(sl_stop_level_of(&s), SL_GO);
    assert_false(readable(s.fd_soon));

    sl_stop_ask(&s, SL_GO);
    assert_false(readable(s.fd_soon));
    sl_stop_ask(&s, SL_STOP_SOON);
    assert_true(readable(s.fd_soon));
    assert_false(readable(s.fd_now));

    sl_stop_ask(&s, SL_STOP_NOW);
    sl_stop_ask(&s, SL_STOP_SOON);
    sl_stop_ask(&s, SL_GO);
    assert_int_equal(sl_stop_level_of(&s), SL_STOP_NOW);
    assert_true(readable(s.fd_soon));
    assert_true(readable(s.fd_now));
    sl_stop_fini(&s);
    sl_stop_fini(&s);
}

static void now_means_soon_as_well(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    sl_stop_ask(&s, SL_STOP_NOW);
    assert_true(readable(s.fd_soon));
    assert_true(readable(s.fd_now));
    sl_stop_fini(&s);
}

static void a_sleep_nobody_disturbs_lasts_its_time(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    int64_t before = sl_now_ns();
    assert_false(sl_stop_sleep(&s, 20 * SL_MS));
    assert_true(sl_now_ns() - before >= 20 * SL_MS);
    assert_false(sl_stop_sleep(&s, 0));
    assert_false(sl_stop_sleep(&s, -SL_SEC));
    sl_stop_fini(&s);
}

static void *sleep_long(void *stop)
{
    bool stopped = sl_stop_sleep(stop, 3600 * SL_SEC);
    return stopped ? stop : NULL;
}

static void one_stop_wakes_every_sleeper(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    pthread_t threads[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_long, &s), 0);
    sl_stop_ask(&s, SL_STOP_SOON);
    for (int i = 0; i < SLEEPERS; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_ptr_equal(got, &s);
    }
    assert_true(sl_stop_sleep(&s, 3600 * SL_SEC)); /* and whoever comes later */
    sl_stop_fini(&s);
}

static sl_stop *of_handler;

static void on_signal(int sig)
{
    (void)sig;
    sl_stop_ask(of_handler, SL_STOP_SOON);
}

static void *send_signal(void *thread)
{
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void a_signal_handler_may_ask(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    of_handler = &s;
    struct sigaction was;
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, &was);
    pthread_t self = pthread_self(), other;
    assert_int_equal(pthread_create(&other, NULL, send_signal, &self), 0);
    assert_true(sl_stop_sleep(&s, 3600 * SL_SEC));
    pthread_join(other, NULL);
    sigaction(SIGUSR1, &was, NULL);
    sl_stop_fini(&s);
}

static void *ask_often(void *stop)
{
    for (int i = 0; i < 1000; i++)
        sl_stop_ask(stop, i % 2 ? SL_STOP_NOW : SL_STOP_SOON);
    return NULL;
}

static void many_may_ask_at_once(void **state)
{
    (void)state;
    sl_stop s;
    assert_true(sl_stop_init(&s));
    pthread_t threads[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &s), 0);
    for (int i = 0; i < SLEEPERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sl_stop_level_of(&s), SL_STOP_NOW);
    sl_stop_fini(&s);
}

static void without_descriptors_init_says_so(void **state)
{
    (void)state;
    struct rlimit was;
    getrlimit(RLIMIT_NOFILE, &was);
    int next = dup(0);
    assert_true(next > 0);
    close(next);
    setrlimit(RLIMIT_NOFILE,
              &(struct rlimit){ (rlim_t)next + 1, was.rlim_max }); /* one is left */
    sl_stop s;
    bool ok = sl_stop_init(&s);
    setrlimit(RLIMIT_NOFILE, &was);
    assert_false(ok);
    assert_int_equal(s.fd_soon, -1);
    assert_int_equal(s.fd_now, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_level_never_falls),
        cmocka_unit_test(now_means_soon_as_well),
        cmocka_unit_test(a_sleep_nobody_disturbs_lasts_its_time),
        cmocka_unit_test(one_stop_wakes_every_sleeper),
        cmocka_unit_test(a_signal_handler_may_ask),
        cmocka_unit_test(many_may_ask_at_once),
        cmocka_unit_test(without_descriptors_init_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
