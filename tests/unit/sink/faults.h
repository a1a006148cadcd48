/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the C library that fail when told to; they stand in for its own. */
#ifndef TESTS_UNIT_SINK_FAULTS_H
#define TESTS_UNIT_SINK_FAULTS_H

#include "unit/sink/sinks.h"

#include <sys/file.h>
#include <sys/syscall.h>

static _Atomic int fail_fdatasync; /* an errno, or 0 */
static _Atomic int fail_ftruncate;
static _Atomic int fail_flock;
static _Atomic int64_t
    slow_flock_ns; /* as of a process that is stopped before it gets the lock */
static _Atomic int fail_write_after =
    -1; /* after so many more calls, each of at most 10 bytes */
static _Atomic int fail_write;
static _Atomic int syncs;

static inline int told(int e)
{
    errno = e;
    return -1;
}

int fdatasync(int fd)
{
    syncs++;
    return fail_fdatasync ? told(fail_fdatasync) : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    return fail_ftruncate ? told(fail_ftruncate) : (int)syscall(SYS_ftruncate, fd, size);
}

int flock(int fd, int how)
{
    bool fails = fail_flock && how != LOCK_UN;
    if (slow_flock_ns && how != LOCK_UN)
        nanosleep(&(struct timespec){ .tv_nsec = slow_flock_ns }, NULL);
    return fails ? told(fail_flock) : (int)syscall(SYS_flock, fd, how);
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (fail_write && fail_write_after == 0)
        return told(fail_write);
    if (fail_write) {
        fail_write_after--;
        n = n < 10 ? n : 10;
    }
    return syscall(SYS_write, fd, p, n);
}

static inline int no_faults(void **state)
{
    fail_fdatasync = fail_ftruncate = fail_flock = fail_write = 0;
    fail_write_after = -1;
    slow_flock_ns = 0;
    return remove_folder(state);
}

/* ---- Many writers at once ---- */

enum { WRITERS = 6, ROUNDS = 40, PER_ROUND = 9 };

/* Each writer sends the same ids, in batches of lines that are not all short. */
static inline void write_rounds(const char *url, const char *worker)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(url, worker);
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = round % 8 == 0 ? 20000 : 50;
        fill_batch(&b, round * PER_ROUND, PER_ROUND, bytes);
        submit_all(s, &b);
        poll_all(s, &b);
        expect_all(&b, SL_SENT);
    }
    close_sink(s);
    sl_batch_fini(&b);
}

static inline void *writer(void *url)
{
    write_rounds(url, "thread");
    return NULL;
}

#endif
