/* SPDX-License-Identifier: Apache-2.0 */
#include "db/lite_watch.h"

#include "core/clock.h"
#include "core/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int sl_lite_watch_open(const char *path, sl_err *err)
{
    char *log = sl_asprintf("%s-wal", path);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int good = watch < 0 ? -1 : inotify_add_watch(watch, path, IN_MODIFY);
    if (good >= 0)
        (void)!inotify_add_watch(watch, log,
                                 IN_MODIFY); /* without a log, the file itself is written */
    if (good < 0) {
        (void)!sl_fail(err, SL_AGAIN, "sqlite: cannot watch '%.200s': %s", path,
                       strerror(errno));
        if (watch >= 0)
            close(watch);
        watch = -1;
    }
    free(log);
    return watch;
}

static bool forget_all(int watch)
{
    char events[4096];
    bool any = false;
    while (read(watch, events, sizeof events) > 0)
        any = true;
    return any;
}

sl_rc sl_lite_watch_await(int watch, int fd, int64_t until_ns, bool *changed, sl_err *err)
{
    struct pollfd fds[] = { { .fd = watch, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    for (;;) {
        *changed = forget_all(watch);
        int64_t left = until_ns - sl_now_ns();
        if (*changed || left <= 0 || fds[1].revents)
            return SL_OK;
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
            return sl_fail(err, SL_AGAIN, "sqlite: poll: %s", strerror(errno));
    }
}
