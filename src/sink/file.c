/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sinks file: and stdout:, one JSON object a line.
 *
 * file: Any number of workers and processes append to one file. Each keeps its lines until
 * `poll` and then appends them all with one write, under flock, so that every line is whole. If
 * that write fails half-way, the file is cut back to where it began: nothing of it was sent.
 * The lock is let go before the data is synced, so that the workers' syncs overlap. Readers
 * that follow the file without the lock may see lines that are then cut off; they come again.
 *
 * A process that dies inside its write leaves a torn line. The next one to append, whoever it
 * is, ends that line first: the torn bytes stay for the operator to see, its message was never
 * settled and is sent again, and no whole line is glued to it.
 *
 * A file that was renamed or removed is let go and its path opened again, once per flush: log
 * rotation needs no signal.
 *
 * stdout: A stream cannot be cut back, so a line counts as sent as soon as all of it was taken.
 * The writes are of whole lines and at most PIPE_BUF bytes where that can be, which a pipe
 * takes whole or not at all; a longer line keeps the stream to itself until its end is out.
 */
#include "core/clock.h"
#include "core/mem.h"
#include "format/format.h"
#include "sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern const sl_sink_ops sl_sink_file;
extern const sl_sink_ops sl_sink_stdout;

enum {
    KEEP_BYTES = 8 * 1024 * 1024, /* a larger buffer is not kept from flush to flush */
    REOPEN_MAX = 16,              /* renamed again each time we look: not a rotation any more */
};

/* A lock that came later than it was waited for: whoever waited was stopped meanwhile, and has to ask
 * again whether it may still send. */
#define LATE_NS (10 * SL_MS)
#define LOCK_WAIT_MIN_NS (50 * SL_MS / 1000)
#define LOCK_WAIT_MAX_NS (2 * SL_MS)

/* ---- Lines and the messages they came from, shared by both ---- */

typedef struct line {
    sl_batch *batch;
    sl_msg *msg;
    size_t end; /* in the buffer */
} line;

typedef struct lines {
    char *worker;
    sl_buf text;
    line *v;
    size_t count;
    size_t cap;
    size_t settled; /* the first so many of v */
} lines;

static void lines_fini(lines *l)
{
    free(l->worker);
    sl_buf_fini(&l->text);
    free(l->v);
}

static void lines_add(lines *l, sl_batch *b, sl_msg *m)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->v = sl_realloc(l->v, l->cap * sizeof *l->v);
    }
    sl_format_line(&l->text, m, l->worker, NULL);
    l->v[l->count++] = (line){ .batch = b, .msg = m, .end = l->text.n };
}

/* Settles the lines that end at or before `end`. */
static void lines_settle(lines *l, size_t end, sl_verdict v, const char *reason)
{
    for (; l->settled < l->count && l->v[l->settled].end <= end; l->settled++) {
        line *at = &l->v[l->settled];
        sl_msg_settle(at->batch, at->msg, v, sl_str_of(reason));
    }
    if (l->settled < l->count)
        return;
    l->count = l->settled = 0;
    if (l->text.cap > KEEP_BYTES)
        sl_buf_fini(&l->text);
    sl_buf_reset(&l->text);
}

static void lines_settle_all(lines *l, sl_verdict v, const char *reason)
{
    lines_settle(l, SIZE_MAX, v, reason);
}

/* ---- file: ---- */

typedef struct file_sink {
    sl_sink base;
    char *path;
    int fd;       /* -1: could not be opened again */
    bool regular; /* not /dev/null */
    bool sync;
    lines lines;
} file_sink;

static file_sink *file_of(sl_sink *s)
{
    return (file_sink *)s;
}

/*
 * Only a last ?name=value counts as an option, so that other paths may hold a '?'. *bytes is
 * the length of the path without it.
 */
static sl_rc read_option(const char *path, size_t *bytes, bool *sync, sl_err *err)
{
    *bytes = strlen(path);
    *sync = true;
    const char *mark = strrchr(path, '?');
    if (!mark)
        return SL_OK;
    size_t name = strspn(mark + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    const char *value = mark + 1 + name;
    if (name == 0 || *value != '=' || strchr(value, '/'))
        return SL_OK;
    *bytes = (size_t)(mark - path);
    *sync = strcmp(mark, "?sync=off") != 0;
    if (!*sync || strcmp(mark, "?sync=on") == 0)
        return SL_OK;
    if (name == 4 && strncmp(mark + 1, "sync", 4) == 0)
        return sl_fail(err, SL_REFUSED, "sink file: sync is \"%s\"\nhint: it may be on or off",
                       value + 1);
    return sl_fail(
        err, SL_REFUSED,
        "sink file: unknown option \"%.*s\"\n"
        "hint: the only one is ?sync=on|off; add ?sync=on to a path that ends like this",
        (int)name, mark + 1);
}

/* The path in file:PATH; file:///abs, as a browser writes it, is understood. */
static sl_rc read_url(file_sink *f, const char *url, sl_err *err)
{
    const char *path = strchr(url, ':') + 1;
    if (strncmp(path, "///", 3) == 0)
        path += 2;
    if (strncmp(path, "//", 2) == 0)
        return sl_fail(err, SL_REFUSED,
                       "sink file: \"%s\" names a host\nhint: file:PATH or file:///PATH", path);
    size_t bytes;
    sl_rc rc = read_option(path, &bytes, &f->sync, err);
    if (rc != SL_OK)
        return rc;
    if (bytes == 0)
        return sl_fail(err, SL_REFUSED, "sink file: no path\nhint: file:PATH");
    f->path = sl_strndup(path, bytes);
    return SL_OK;
}

static sl_rc open_failed(const char *path, int e, sl_err *err)
{
    const char *hint = "";
    if (e == ENOENT || e == ENOTDIR)
        hint = "\nhint: the file is created, but not the folder it is in";
    else if (e == EACCES || e == EPERM)
        hint = "\nhint: the file must be readable and writable, or else its folder writable";
    return sl_fail(err, SL_OPERATOR, "cannot open file \"%s\": %s%s", path, strerror(e), hint);
}

/* A new file is not there after a crash before its folder was synced too. */
static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? sl_strndup(path, (size_t)(slash - path) + 1) : sl_strdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return true; /* a folder we may not list cannot be synced by us */
    bool good = fsync(fd) == 0 || errno == EINVAL;
    int e = errno;
    close(fd);
    errno = e;
    return good;
}

/* O_NONBLOCK: to open a FIFO without a reader would wait for one. */
static sl_rc open_path(file_sink *f, sl_err *err)
{
    int fd =
        open(f->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    struct stat st;
    if (fd < 0)
        return open_failed(f->path, errno, err);
    if (fstat(fd, &st) != 0 || (f->sync && st.st_size == 0 && !sync_folder(f->path))) {
        int e = errno;
        close(fd);
        return open_failed(f->path, e, err);
    }
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
        close(fd);
        return sl_fail(err, SL_OPERATOR, "\"%s\" is not a file\nhint: stdout: writes to a pipe",
                       f->path);
    }
    fcntl(fd, F_SETFL, O_APPEND); /* without O_NONBLOCK: a terminal may be slow */
    f->fd = fd;
    f->regular = S_ISREG(st.st_mode);
    return SL_OK;
}

static void file_close(sl_sink *s)
{
    file_sink *f = file_of(s);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    lines_fini(&f->lines);
    free(f);
}

static sl_rc file_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    file_sink *f = sl_alloc(sizeof *f);
    f->base.ops = &sl_sink_file;
    f->fd = -1;
    f->lines.worker = sl_strdup(conf->worker);
    sl_rc rc = read_url(f, conf->url, err);
    if (rc == SL_OK)
        rc = open_path(f, err);
    if (rc == SL_OK)
        *out = &f->base;
    else
        file_close(&f->base);
    return rc;
}

static void file_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    lines_add(&file_of(s)->lines, b, m);
}

typedef enum locked { LOCKED, BUSY, FAILED } locked;

static locked unless_late(int fd, int64_t deadline_ns)
{
    if (sl_now_ns() <= deadline_ns + LATE_NS)
        return LOCKED;
    flock(fd, LOCK_UN);
    return BUSY;
}

/* Not by a blocking flock: whoever holds the lock may be stopped, and poll has a time limit. */
static locked lock(int fd, int64_t deadline_ns, sl_err *err)
{
    int64_t wait_ns = LOCK_WAIT_MIN_NS;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK) {
            sl_fail(err, SL_AGAIN, "cannot lock the file: %s", strerror(errno));
            return FAILED;
        }
        if (sl_now_ns() + wait_ns > deadline_ns)
            return BUSY;
        nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
        wait_ns = wait_ns * 2 < LOCK_WAIT_MAX_NS ? wait_ns * 2 : LOCK_WAIT_MAX_NS;
    }
    return unless_late(fd, deadline_ns);
}

static bool is_at_path(const file_sink *f)
{
    struct stat here, there;
    return fstat(f->fd, &here) == 0 && stat(f->path, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Locks the file that the path names now: it may have been renamed while we waited. */
static locked lock_current(file_sink *f, int64_t deadline_ns, sl_err *err)
{
    for (int i = 0; i < REOPEN_MAX; i++) {
        if (f->fd < 0 && open_path(f, err) != SL_OK)
            return FAILED;
        locked got = lock(f->fd, deadline_ns, err);
        if (got != LOCKED || is_at_path(f))
            return got;
        close(f->fd); /* the lock goes with it */
        f->fd = -1;
    }
    sl_fail(err, SL_AGAIN, "file \"%s\" is replaced faster than it can be opened", f->path);
    return FAILED;
}

/* The number of bytes written; if that is less than n, errno says why. */
static size_t write_all(int fd, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t took = write(fd, p + done, n - done);
        if (took < 0 && errno == EINTR)
            continue;
        if (took <= 0)
            break;
        done += (size_t)took;
    }
    return done;
}

/* Of `size` bytes, is the last one a line end? Unreadable counts as torn: a blank line does no
 * harm. */
static bool ends_with_line(int fd, off_t size)
{
    char last;
    return size == 0 || (pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

/* Ends the line that someone who died left torn. */
static bool mend(int fd, off_t size)
{
    return ends_with_line(fd, size) || write_all(fd, "\n", 1) == 1;
}

/* A full disk is no message's fault; that a file would become too large may be. */
static sl_verdict failed_by(int errnum)
{
    return errnum == EFBIG || errnum == EINVAL ? SL_RETRY : SL_RELEASED;
}

/* After `taken` bytes a write failed. A device keeps what it took. */
static sl_verdict cut_back(const file_sink *f, off_t size, size_t taken, sl_err *err)
{
    sl_verdict v = failed_by(errno);
    sl_fail(err, SL_AGAIN, "cannot append to \"%s\": %s", f->path, strerror(errno));
    if (f->regular ? ftruncate(f->fd, size) == 0 : taken == 0)
        return v;
    sl_fail_in(err, "what was written could not be taken back");
    return SL_UNKNOWN;
}

/* Under the lock: all of the buffer, or nothing. */
static sl_verdict append(const file_sink *f, sl_err *err)
{
    const sl_buf *text = &f->lines.text;
    struct stat st;
    if (fstat(f->fd, &st) != 0) {
        sl_fail(err, SL_AGAIN, "cannot look at \"%s\": %s", f->path, strerror(errno));
        return SL_RELEASED;
    }
    if (f->regular && !mend(f->fd, st.st_size))
        return cut_back(f, st.st_size, 0, err);
    size_t done = write_all(f->fd, text->p, text->n);
    return done == text->n ? SL_SENT : cut_back(f, st.st_size, done, err);
}

/* After a failure the kernel forgets which pages it could not write: to sync again would
 * succeed and prove nothing. */
static sl_verdict sync_data(const file_sink *f, sl_err *err)
{
    int rc;
    do
        rc = fdatasync(f->fd);
    while (rc != 0 && errno == EINTR);
    if (rc == 0 || (!f->regular && (errno == EINVAL || errno == EROFS)))
        return SL_SENT;
    sl_fail(err, SL_AGAIN, "cannot sync \"%s\": %s", f->path, strerror(errno));
    return SL_UNKNOWN;
}

static void file_poll(sl_sink *s, int64_t timeout_ns)
{
    file_sink *f = file_of(s);
    if (f->lines.count == 0)
        return;
    sl_err err = { 0 };
    sl_verdict v = SL_RELEASED; /* the file cannot be had: the sink is down */
    switch (lock_current(f, sl_now_ns() + timeout_ns, &err)) {
    case BUSY:
        return;
    case LOCKED:
        v = append(f, &err);
        flock(f->fd, LOCK_UN);
        if (v == SL_SENT && f->sync)
            v = sync_data(f, &err);
        break;
    case FAILED:
        break;
    }
    err.text[strcspn(err.text, "\n")] = '\0'; /* a reason has no hint */
    lines_settle_all(&f->lines, v, v == SL_SENT ? NULL : err.text);
}

/* What is still here was never written. */
static void file_recall(sl_sink *s)
{
    lines_settle_all(&file_of(s)->lines, SL_RELEASED, "not written");
}

const sl_sink_ops sl_sink_file = {
    .scheme = "file",
    .example = "file:PATH",
    .in_order = true,
    .open = file_open,
    .submit = file_submit,
    .poll = file_poll,
    .recall = file_recall,
    .close = file_close,
};

/* ---- stdout: ---- */

/* One for the process, as there is one stdout. Who holds the lock may write; who was
 * interrupted inside a line keeps it from poll to poll. */
static struct {
    pthread_mutex_t lock;
    bool torn; /* the last line has no end, and its writer has given up */
} stream = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef struct stdout_sink {
    sl_sink base;
    size_t chunk_max; /* of one write */
    bool holds;       /* the lock */
    size_t written;   /* of the buffer */
    lines lines;
} stdout_sink;

static stdout_sink *stdout_of(sl_sink *s)
{
    return (stdout_sink *)s;
}

static sl_rc stdout_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    struct stat st;
    if (strchr(conf->url, ':')[1])
        return sl_fail(err, SL_REFUSED, "sink stdout: takes nothing after the colon");
    if (fstat(STDOUT_FILENO, &st) != 0)
        return sl_fail(err, SL_OPERATOR, "sink stdout: standard output: %s", strerror(errno));
    stdout_sink *o = sl_alloc(sizeof *o);
    o->base.ops = &sl_sink_stdout;
    o->chunk_max = S_ISREG(st.st_mode) ? SIZE_MAX : PIPE_BUF;
    o->lines.worker = sl_strdup(conf->worker);
    *out = &o->base;
    return SL_OK;
}

static void stdout_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    lines_add(&stdout_of(s)->lines, b, m);
}

static bool hold_stream(stdout_sink *o, int64_t timeout_ns)
{
    if (o->holds)
        return true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + (timeout_ns > 0 ? timeout_ns : 0);
    until.tv_sec += (time_t)(ns / SL_SEC);
    until.tv_nsec = (long)(ns % SL_SEC);
    o->holds = pthread_mutex_timedlock(&stream.lock, &until) == 0;
    return o->holds;
}

static void drop_stream(stdout_sink *o)
{
    if (o->holds)
        pthread_mutex_unlock(&stream.lock);
    o->holds = false;
}

/* Where the first line that is not settled begins. */
static size_t line_start(const lines *l)
{
    return l->settled ? l->v[l->settled - 1].end : 0;
}

/* As many whole lines as fit into one write; of a longer line, a piece. */
static size_t next_chunk(const stdout_sink *o)
{
    const lines *l = &o->lines;
    size_t left = l->text.n - o->written;
    if (left <= o->chunk_max)
        return left;
    size_t end = o->written;
    for (size_t i = l->settled; i < l->count && l->v[i].end - o->written <= o->chunk_max; i++)
        end = l->v[i].end;
    return end > o->written ? end - o->written : o->chunk_max;
}

/* Waits until a write will not block. A stream that reports an error is ready: the write tells
 * which. */
static bool wait_writable(int64_t deadline_ns)
{
    struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
    for (;;) {
        int64_t left = deadline_ns - sl_now_ns();
        struct timespec ts = { 0 };
        if (left > 0)
            ts = (struct timespec){ .tv_sec = left / SL_SEC, .tv_nsec = left % SL_SEC };
        int rc = ppoll(&p, 1, &ts, NULL);
        if (rc >= 0 || errno != EINTR)
            return rc > 0;
    }
}

typedef enum wrote { WROTE, LATER, BROKEN } wrote;

static wrote write_chunk(stdout_sink *o)
{
    const char *p = o->lines.text.p + o->written;
    ssize_t n =
        stream.torn ? write(STDOUT_FILENO, "\n", 1) : write(STDOUT_FILENO, p, next_chunk(o));
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? LATER : BROKEN;
    if (stream.torn)
        stream.torn = n == 0;
    else
        o->written += (size_t)n;
    return WROTE;
}

/*
 * A failed write took nothing. The line that had begun may be read as something; the later ones
 * cannot have gone out, also when the reader of the pipe has gone away.
 */
static void give_up(stdout_sink *o, sl_verdict rest, const char *reason)
{
    lines *l = &o->lines;
    if (l->count > 0 && o->written > line_start(l)) {
        stream.torn = true;
        lines_settle(l, l->v[l->settled].end, SL_UNKNOWN,
                     "only a part of the line was written");
    }
    lines_settle_all(l, rest, reason);
    o->written = 0;
    drop_stream(o);
}

static void stdout_poll(sl_sink *s, int64_t timeout_ns)
{
    stdout_sink *o = stdout_of(s);
    lines *l = &o->lines;
    int64_t deadline_ns = sl_now_ns() + timeout_ns;
    if (l->count == 0 || !hold_stream(o, timeout_ns))
        return;
    while (l->count > 0 && wait_writable(deadline_ns)) {
        if (write_chunk(o) == BROKEN) {
            char reason[128];
            snprintf(reason, sizeof reason, "cannot write to stdout: %s", strerror(errno));
            give_up(o, SL_RELEASED, reason);
            return;
        }
        lines_settle(l, o->written, SL_SENT, NULL);
    }
    if (l->count == 0)
        o->written = 0;
    if (o->written == line_start(l))
        drop_stream(o);
}

static void stdout_recall(sl_sink *s)
{
    give_up(stdout_of(s), SL_RELEASED, "not written");
}

static void stdout_close(sl_sink *s)
{
    stdout_sink *o = stdout_of(s);
    drop_stream(o);
    lines_fini(&o->lines);
    free(o);
}

const sl_sink_ops sl_sink_stdout = {
    .scheme = "stdout",
    .example = "stdout:",
    .in_order = true,
    .open = stdout_open,
    .submit = stdout_submit,
    .poll = stdout_poll,
    .recall = stdout_recall,
    .close = stdout_close,
};
