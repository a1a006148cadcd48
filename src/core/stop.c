/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stop.h"

#include "core/clock.h"
#include "core/err.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool sl_stop_init(sl_stop *s)
{
    atomic_init(&s->level, SL_GO);
    s->fd_soon = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->fd_now = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->fd_soon >= 0 && s->fd_now >= 0)
        return true;
    int e = errno;
    sl_stop_fini(s);
    errno = e;
    return false;
}

void sl_stop_fini(sl_stop *s)
{
    if (s->fd_soon >= 0)
        close(s->fd_soon);
    if (s->fd_now >= 0)
        close(s->fd_now);
    s->fd_soon = s->fd_now = -1;
}

/* Nobody reads the descriptors, so they stay readable for every sleeper. A full counter is as good
 * as a written one: the result needs no check. */
static void wake(int fd)
{
    int e = errno;
    ssize_t n = write(fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    (void)n;
    errno = e;
}

void sl_stop_ask(sl_stop *s, sl_stop_level level)
{
    int was = atomic_load(&s->level);
    while (was < (int)level && !atomic_compare_exchange_weak(&s->level, &was, (int)level))
        ;
    if (level >= SL_STOP_SOON)
        wake(s->fd_soon);
    if (level >= SL_STOP_NOW)
        wake(s->fd_now);
}

sl_stop_level sl_stop_level_of(sl_stop *s)
{
    return (sl_stop_level)atomic_load(&s->level);
}

bool sl_stop_sleep(sl_stop *s, int64_t ns)
{
    int64_t until = sl_now_ns() + ns;
    struct pollfd p = { .fd = s->fd_soon, .events = POLLIN };
    while (sl_stop_level_of(s) == SL_GO) {
        int64_t left = until - sl_now_ns();
        if (left <= 0)
            return false;
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        ppoll(&p, 1, &ts, NULL);
    }
    return true;
}
