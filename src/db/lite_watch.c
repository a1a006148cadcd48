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

/* By then a commit that has begun to write can be seen, or writes again. */
#define VISIBLE_NS (500 * SL_MS)

sl_rc sl_lite_watch_open(sl_lite_watch *w, const char *path, sl_err *err)
{
    sl_rc rc = SL_OK;
    char *log = sl_asprintf("%s-wal", path);
    *w = (sl_lite_watch){ .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC) };
    if (w->fd < 0 || inotify_add_watch(w->fd, path, IN_MODIFY) < 0)
        rc = sl_fail(err, SL_AGAIN, "sqlite: cannot watch '%.200s': %s", path, strerror(errno));
    else
        (void)!inotify_add_watch(w->fd, log, IN_MODIFY); /* else the file itself is written */
    if (rc != SL_OK)
        sl_lite_watch_close(w);
    free(log);
    return rc;
}

void sl_lite_watch_close(sl_lite_watch *w)
{
    if (w->fd > 0)
        close(w->fd);
    *w = (sl_lite_watch){ 0 };
}

static bool forget_all(sl_lite_watch *w)
{
    char events[4096];
    bool any = false;
    while (read(w->fd, events, sizeof events) > 0)
        any = true;
    if (any)
        w->changed_ns = sl_now_ns();
    return any;
}

/* When to look again for what was being written: after as long as it has been since then. */
static int64_t again_ns(const sl_lite_watch *w, int64_t now_ns)
{
    int64_t since_ns = now_ns - w->changed_ns;
    if (!w->changed_ns || since_ns >= VISIBLE_NS)
        return INT64_MAX;
    return now_ns + (since_ns > SL_MS ? since_ns : SL_MS);
}

sl_rc sl_lite_watch_await(sl_lite_watch *w, int fd, int64_t until_ns, bool *changed,
                          sl_err *err)
{
    struct pollfd fds[] = { { .fd = w->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
    int64_t look_ns = again_ns(w, sl_now_ns());
    for (;;) {
        int64_t now_ns = sl_now_ns();
        *changed = forget_all(w) || now_ns >= look_ns;
        int64_t left = (until_ns < look_ns ? until_ns : look_ns) - now_ns;
        if (*changed || left <= 0 || fds[1].revents)
            return SL_OK;
        struct timespec ts = { .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        if (ppoll(fds, 2, &ts, NULL) < 0 && errno != EINTR)
            return sl_fail(err, SL_AGAIN, "sqlite: poll: %s", strerror(errno));
    }
}
