/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/tap.h"

#include "core/clock.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct tap_sink {
    sl_sink base;
    sl_sink_ops ops; /* the inner one's, each function with one of ours before it */
    sl_sink *inner;
    sl_tap *tap;
    size_t bytes;
    sl_msg **flying; /* handed over, without a verdict, in that order */
    size_t count, cap;
} tap_sink;

static tap_sink *of(sl_sink *s)
{
    return (tap_sink *)s;
}

static void note(const tap_sink *t, int64_t id)
{
    sl_tap *tap = t->tap;
    int64_t i = id - tap->first_id;
    if (i < 0 || i >= tap->count) {
        tap->strangers++;
        return;
    }
    if (tap->messages[i].times++ == 0) {
        tap->messages[i].at_ns = sl_now_ns();
        tap->messages[i].turn = ++tap->turns;
    }
}

static void take_time(const tap_sink *t)
{
    struct timespec ts = { .tv_sec = t->tap->delay_ns / SL_SEC,
                           .tv_nsec = t->tap->delay_ns % SL_SEC };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
        ;
}

static void tap_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    tap_sink *t = of(s);
    if (t->tap->delay_ns)
        take_time(t);
    t->inner->ops->submit(t->inner, b, m);
    if (m->verdict == SL_SENT) {
        note(t, m->id);
    } else if (m->verdict == SL_PENDING) {
        if (t->count == t->cap) {
            t->cap = t->cap ? 2 * t->cap : 256;
            t->flying = sl_realloc(t->flying, t->cap * sizeof *t->flying);
        }
        t->flying[t->count++] = m;
    }
}

/* Before the relay goes on: a message is the batch's, and gone with it. */
static void look(tap_sink *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->flying[i]->verdict == SL_PENDING)
            t->flying[kept++] = t->flying[i];
        else if (t->flying[i]->verdict == SL_SENT)
            note(t, t->flying[i]->id);
    }
    t->count = kept;
}

static void tap_poll(sl_sink *s, int64_t timeout_ns)
{
    of(s)->inner->ops->poll(of(s)->inner, timeout_ns);
    look(of(s));
}

static void tap_recall(sl_sink *s)
{
    of(s)->inner->ops->recall(of(s)->inner);
    look(of(s));
}

static bool tap_follows(sl_sink *s, const sl_msg *before, const sl_msg *m)
{
    return of(s)->inner->ops->follows(of(s)->inner, before, m);
}

static sl_readiness tap_ready(sl_sink *s, int64_t session, int64_t timeout_ns, char why[160])
{
    return of(s)->inner->ops->ready(of(s)->inner, session, timeout_ns, why);
}

static bool tap_in_doubt(const sl_sink *s)
{
    const tap_sink *t = (const tap_sink *)s;
    return t->inner->ops->in_doubt(t->inner);
}

static void tap_close(sl_sink *s)
{
    tap_sink *t = of(s);
    t->inner->ops->close(t->inner);
    munmap(t->tap, t->bytes);
    free(t->flying);
    free(t);
}

static sl_rc map(tap_sink *t, const char *path, sl_err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sl_fail(err, SL_OPERATOR, SL_TAP_ENV ": %s: %s", path, strerror(errno));
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(sl_tap)) {
        t->bytes = (size_t)st.st_size;
        p = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (p == MAP_FAILED)
        return sl_fail(err, SL_OPERATOR, SL_TAP_ENV ": %s cannot be mapped", path);
    t->tap = p;
    if (t->tap->magic == SL_TAP_MAGIC && t->bytes >= sl_tap_bytes(t->tap->count))
        return SL_OK;
    munmap(p, t->bytes);
    return sl_fail(err, SL_OPERATOR,
                   SL_TAP_ENV ": %s was not made by this version of sluice bench", path);
}

sl_rc sl_tap_wrap(sl_sink **sink, const char *path, sl_err *err)
{
    tap_sink *t = sl_alloc(sizeof *t);
    sl_rc rc = map(t, path, err);
    if (rc != SL_OK) {
        (*sink)->ops->close(*sink);
        *sink = NULL;
        free(t);
        return rc;
    }
    t->inner = *sink;
    t->ops = *t->inner->ops;
    t->ops.submit = tap_submit;
    t->ops.poll = tap_poll;
    t->ops.recall = tap_recall;
    t->ops.close = tap_close;
    t->ops.follows = t->ops.follows ? tap_follows : NULL;
    t->ops.ready = t->ops.ready ? tap_ready : NULL;
    t->ops.in_doubt = t->ops.in_doubt ? tap_in_doubt : NULL;
    t->base.ops = &t->ops;
    *sink = &t->base;
    return SL_OK;
}
