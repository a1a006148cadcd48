/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the journal have in common: a folder, journals in it, and calls of the C library that
 * are counted, fail or kill when told to; they stand in for its own. */
#ifndef TESTS_UNIT_JOURNAL_JOURNALS_H
#define TESTS_UNIT_JOURNAL_JOURNALS_H

#include "journal/journal.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"

#include "unit/unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- Calls ---- */

enum { PWRITE = 1, FDATASYNC, FSYNC, RENAME };

typedef struct call_faults {
    _Atomic int fail;  /* which call */
    _Atomic int with;  /* its errno; 0: a short write */
    _Atomic int after; /* so many of these succeed first */
    _Atomic int
        kill_at; /* the process dies instead of its n-th call, of any of these; 0: never */
    _Atomic int kill_part; /* of a pwrite that kills, so many 1/16 are done */
    _Atomic int calls;     /* all of them, so far */
    _Atomic int trace_n;
    char trace[256]; /* w d f r, in order */
    void (*before_sync)(void);
    void (*wrote)(int fd, const void *p, size_t n, off_t at);
    void (*synced)(int fd);
} call_faults;

static call_faults faults;

static inline void no_faults(void)
{
    memset(&faults, 0, sizeof faults);
}

/* True if this call is to fail. */
static inline bool meets_fault(int which)
{
    int at = faults.trace_n++;
    if (at < (int)sizeof faults.trace - 1)
        faults.trace[at] = "?wdfr"[which];
    if (faults.fail != which)
        return false;
    if (faults.after > 0) {
        faults.after--;
        return false;
    }
    errno = faults.with;
    return true;
}

static inline bool dies_here(void)
{
    return faults.calls++ + 1 == faults.kill_at;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (dies_here()) {
        if (faults.kill_part)
            syscall(SYS_pwrite64, fd, p, n * (size_t)faults.kill_part / 16, at);
        raise(SIGKILL);
    }
    if (meets_fault(PWRITE)) {
        if (faults.with)
            return -1;
        return syscall(SYS_pwrite64, fd, p, n / 2, at);
    }
    if (faults.wrote)
        faults.wrote(fd, p, n, at);
    return syscall(SYS_pwrite64, fd, p, n, at);
}

int fdatasync(int fd)
{
    if (dies_here())
        raise(SIGKILL);
    if (faults.before_sync)
        faults.before_sync();
    if (meets_fault(FDATASYNC))
        return -1;
    int rc = (int)syscall(SYS_fdatasync, fd);
    if (rc == 0 && faults.synced)
        faults.synced(fd);
    return rc;
}

int fsync(int fd)
{
    if (dies_here())
        raise(SIGKILL);
    if (meets_fault(FSYNC))
        return -1;
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    if (dies_here())
        raise(SIGKILL);
    if (meets_fault(RENAME))
        return -1;
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

/* ---- A folder ---- */

static char folder[256], path[300];

static inline int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/journal-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/n1.journal", folder);
    no_faults();
    return 0;
}

static inline void clear_folder(void)
{
    static const char *const ends[] = { "", ".new", ".bad", ".bad.2", ".bad.3", ".copy" };
    for (size_t i = 0; i < COUNT(ends); i++) {
        char *name = sl_asprintf("%s%s", path, ends[i]);
        unlink(name);
        free(name);
    }
}

static inline int remove_folder(void **state)
{
    (void)state;
    no_faults();
    clear_folder();
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

/* ---- Journals ---- */

static inline sl_journal *open_sized(int64_t session, uint64_t bytes)
{
    sl_journal *j = NULL;
    sl_err err = { 0 };
    sl_journal_conf conf = { path, "n1", session, bytes };
    if (sl_journal_open(&j, &conf, &err) != SL_OK)
        fail_msg("%s", err.text);
    return j;
}

/* The smallest there is: 16 blocks. */
static inline sl_journal *open_small(int64_t session)
{
    return open_sized(session, 1);
}

static inline void refuse_open(const char *node, sl_rc rc, const char *text)
{
    sl_journal *j = NULL;
    sl_err err = { 0 };
    sl_journal_conf conf = { path, node, 7, 1 };
    sl_rc got = sl_journal_open(&j, &conf, &err);
    if (got != rc || err.rc != rc || !strstr(err.text, text))
        fail_msg("%s: %s", sl_rc_name(got), err.text);
    assert_null(j);
}

enum { EPOCH = 40 }; /* message i has the epoch i + EPOCH */

/* The messages first, first + 1, ... */
static inline sl_rc sending(sl_journal *j, int64_t first, size_t count, sl_err *err)
{
    int64_t ids[512], epochs[512];
    assert_true(count <= COUNT(ids));
    for (size_t i = 0; i < count; i++) {
        ids[i] = first + (int64_t)i;
        epochs[i] = ids[i] + EPOCH;
    }
    return sl_journal_sending(j, ids, epochs, count, err);
}

static inline void must_send(sl_journal *j, int64_t first, size_t count)
{
    sl_err err = { 0 };
    if (sending(j, first, count, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static inline void say(sl_journal *j, int64_t first, size_t count, sl_journal_state state)
{
    for (size_t i = 0; i < count; i++)
        sl_journal_verdict(j, &(int64_t){ first + (int64_t)i }, 1, state);
}

static inline void settle(sl_journal *j, int64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sl_journal_settled(j, &(int64_t){ first + (int64_t)i }, 1);
}

/* 0: it knows nothing of it. */
static inline int state_of(const sl_replay *r, int64_t id)
{
    const sl_idmap_slot *s = sl_idmap_find(&r->ids, id);
    if (s)
        assert_int_equal(s->epoch, id + EPOCH);
    return s ? s->state : 0;
}

static inline sl_fate fate(const sl_replay *r, int64_t id, sl_journal_stamp stamp)
{
    return sl_replay_fate(r, id, id + EPOCH, &stamp);
}

static inline sl_replay read_back(void)
{
    sl_replay r;
    sl_err err = { 0 };
    if (sl_replay_read(&r, path, &err) != SL_OK)
        fail_msg("%s", err.text);
    return r;
}

/* ---- Bytes of a file ---- */

typedef struct image {
    uint8_t *p;
    size_t n;
    struct stat st;
} image;

static inline image load(const char *name)
{
    image im = { 0 };
    int fd = open(name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &im.st), 0);
    im.n = (size_t)im.st.st_size;
    im.p = sl_alloc(im.n + 1);
    assert_int_equal(read(fd, im.p, im.n), im.n);
    close(fd);
    return im;
}

/* Into the same file: another one would be a copy. */
static inline void store(const image *im)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)im->n), 0);
    assert_int_equal(syscall(SYS_pwrite64, fd, im->p, im->n, 0), im->n);
    close(fd);
}

static inline sl_replay replay_of(const image *im)
{
    sl_replay r;
    assert_int_equal(sl_replay_bytes(&r, im->p, im->n, &im->st), SL_JB_GOOD);
    return r;
}

#endif
