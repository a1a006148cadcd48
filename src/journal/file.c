/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock is one of the open file (F_OFD_SETLK), so that a reader can ask for it without taking it. It
 * is on the file, not on the name: whoever gets it looks whether the name still means this file.
 *
 * A new file is written in zeros before it gets its name: what follows changes no size and takes no space,
 * so that a full disk is met here, and fdatasync has no more to write than the records.
 */
#include "journal/file.h"

#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_TRIES = 16, KEPT_MAX = 99, CHUNK = 64 * 1024 };

static char *new_name(const char *path)
{
    return sl_asprintf("%s.new", path);
}

static void remove_new(const char *path)
{
    char *name = new_name(path);
    unlink(name);
    free(name);
}

static sl_rc failed(const char *path, const char *what, sl_err *err)
{
    int e = errno;
    if (e == ENOSPC || e == EDQUOT)
        return sl_fail(err, SL_AGAIN, "journal \"%s\": %s: %s\nhint: make room on that disk",
                       path, what, strerror(e));
    return sl_fail(err, SL_OPERATOR, "journal \"%s\": %s: %s", path, what, strerror(e));
}

static sl_rc open_failed(const char *path, sl_err *err)
{
    int e = errno;
    const char *hint = "";
    if (e == ENOENT || e == ENOTDIR)
        hint = "\nhint: the file is created, but not the folder it is in";
    else if (e == EACCES || e == EPERM || e == EROFS)
        hint = "\nhint: the file and its folder must be writable";
    else if (e == ELOOP)
        hint = "\nhint: name the file itself, not a link to it";
    return sl_fail(err, SL_OPERATOR, "cannot open journal \"%s\": %s%s", path, strerror(e),
                   hint);
}

/* ---- Opening ---- */

static sl_rc lock(int fd, const char *path, sl_err *err)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_SETLK, &l) == 0)
        return SL_OK;
    if (errno == EAGAIN || errno == EACCES)
        return sl_fail(err, SL_OPERATOR,
                       "journal \"%s\" is in use by another process\nhint: every node needs a "
                       "journal of its own; is this node running already?",
                       path);
    return failed(path, "cannot lock it", err);
}

static sl_rc open_once(int *fd, const char *path, bool *same, sl_err *err)
{
    struct stat st, now;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (*fd < 0)
        return open_failed(path, err);
    if (fstat(*fd, &st) != 0)
        return failed(path, "cannot look at it", err);
    if (!S_ISREG(st.st_mode))
        return sl_fail(err, SL_OPERATOR, "journal \"%s\" is not a file", path);
    sl_rc rc = lock(*fd, path, err);
    *same = rc == SL_OK && stat(path, &now) == 0 && now.st_ino == st.st_ino &&
            now.st_dev == st.st_dev;
    return rc;
}

sl_rc sl_jf_open(int *fd, const char *path, sl_err *err)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        bool same = false;
        sl_rc rc = open_once(fd, path, &same, err);
        if (same) {
            remove_new(path);
            return SL_OK;
        }
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        if (rc != SL_OK)
            return rc;
    }
    return sl_fail(err, SL_OPERATOR, "journal \"%s\" is replaced all the time", path);
}

/* ---- Replacing ---- */

sl_rc sl_jf_write(int fd, const char *path, const void *bytes, size_t n, uint64_t at,
                  sl_err *err)
{
    ssize_t done;
    do
        done = pwrite(fd, bytes, n, (off_t)at);
    while (done < 0 && errno == EINTR);
    if (done < 0)
        return failed(path, "cannot write", err);
    if ((size_t)done == n)
        return SL_OK;
    return sl_fail(err, SL_OPERATOR, "journal \"%s\": only %zd of %zu bytes could be written",
                   path, done, n);
}

/* A disk that is full may take a part first: the rest says why. */
static sl_rc fill(int fd, const char *path, uint64_t bytes, sl_err *err)
{
    char *zeros = sl_alloc(CHUNK);
    sl_rc rc = SL_OK;
    for (uint64_t at = 0; rc == SL_OK && at < bytes;) {
        ssize_t done =
            pwrite(fd, zeros, bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK, (off_t)at);
        if (done > 0)
            at += (uint64_t)done;
        else if (done == 0 || errno != EINTR)
            rc = failed(path, "cannot make a new file of its full size", err);
    }
    free(zeros);
    return rc;
}

sl_rc sl_jf_make(int *fd, const char *path, uint64_t bytes, uint64_t *inode, sl_err *err)
{
    char *name = new_name(path);
    struct stat st;
    sl_rc rc = SL_OK;
    *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(name);
    if (*fd < 0)
        return errno == ENOSPC || errno == EDQUOT ? failed(path, "cannot make a new file", err)
                                                  : open_failed(path, err);
    if (fstat(*fd, &st) != 0)
        rc = failed(path, "cannot look at the new file", err);
    if (rc == SL_OK)
        rc = lock(*fd, path, err);
    if (rc == SL_OK)
        rc = fill(*fd, path, bytes, err);
    if (rc == SL_OK)
        *inode = (uint64_t)st.st_ino;
    else
        sl_jf_abandon(*fd, path);
    return rc;
}

void sl_jf_abandon(int fd, const char *path)
{
    remove_new(path);
    close(fd);
}

sl_rc sl_jf_sync_folder(const char *path, sl_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? sl_strndup(path, (size_t)(slash - path) + 1) : sl_strdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    bool good = fd >= 0 && fsync(fd) == 0;
    sl_rc rc = good ? SL_OK : failed(path, "cannot sync its folder", err);
    if (fd >= 0)
        close(fd);
    if (rc == SL_AGAIN) /* the name may be there or not: nothing that passes by waiting */
        rc = err->rc = SL_OPERATOR;
    return rc;
}

sl_rc sl_jf_replace(int fd, const char *path, bool *named, sl_err *err)
{
    *named = false;
    if (fsync(fd) != 0)
        return failed(path, "cannot sync the new file", err);
    char *name = new_name(path);
    *named = rename(name, path) == 0;
    sl_rc rc = *named ? SL_OK : failed(path, "cannot put the new file in its place", err);
    free(name);
    return rc == SL_OK ? sl_jf_sync_folder(path, err) : rc;
}

sl_rc sl_jf_keep(const char *path, char **name, sl_err *err)
{
    for (int i = 1; i <= KEPT_MAX; i++) {
        *name = i == 1 ? sl_asprintf("%s.bad", path) : sl_asprintf("%s.bad.%d", path, i);
        if (link(path, *name) == 0)
            return SL_OK;
        free(*name);
        *name = NULL;
        if (errno != EEXIST)
            return failed(path, "cannot keep the damaged file as .bad", err);
    }
    return sl_fail(err, SL_OPERATOR,
                   "journal \"%s\" is damaged, and so were %d before\nhint: look at the disk, "
                   "and move the files .bad away",
                   path, KEPT_MAX);
}
