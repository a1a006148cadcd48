/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DESIGN
 *
 * The file has its full size, in zeros, before it is used, and a disk writes whole sectors, which are our
 * blocks: so a crash leaves each block that was not synced either empty or good, in any mixture, or torn
 * where sectors are not whole after all. Anything else is damage, and then the journal is not whole:
 *
 *   - a block that is bad: it came to its end, and its checksum is wrong;
 *   - a block that is not good, although a later one, or the head, says that it was synced;
 *   - a file that is shorter than its head says, or longer;
 *   - a file with another inode than its head says: a copy, which may be older than what was sent.
 *
 * A record counts if all its blocks are good. Where the last synced blocks were zeroed, nothing here can
 * tell: the position in the stamps does, as far as later consumptions were committed.
 */
#include "journal/replay.h"

#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

enum {
    FILE_MAX = 1 << 30, /* no journal is larger */
    READ_TRIES = 5,     /* of a file that is being written: a block may be read half */
};

const char *sl_journal_state_name(sl_journal_state s)
{
    return s == SL_JOURNAL_SENDING ? "sending" : s == SL_JOURNAL_SENT ? "sent" : "failed";
}

void sl_replay_fini(sl_replay *r)
{
    sl_idmap_fini(&r->ids);
    free(r->opened);
    *r = (sl_replay){ 0 };
}

/* ---- Reading blocks ---- */

typedef struct scan {
    sl_replay *r;
    const uint8_t *bytes;
    size_t blocks; /* that the file has, the head included */
    size_t last;   /* the last that is not empty */
    uint64_t synced;
} scan;

/* The first reason counts. */
static void damaged(sl_replay *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void damaged(sl_replay *r, const char *fmt, ...)
{
    va_list ap;
    if (r->whole) {
        va_start(ap, fmt);
        vsnprintf(r->why, sizeof r->why, fmt, ap);
        va_end(ap);
    }
    r->whole = false;
}

static sl_jb_found look(const scan *s, size_t at, sl_jb *b)
{
    return sl_jb_get(s->bytes + at * SL_JB_BYTES, s->r->head.salt, s->r->head.first + at, b);
}

/* Where the file ends, and how far it was synced, as the blocks themselves tell. */
static void survey(scan *s)
{
    s->synced = s->r->head.first + 1 + s->r->head.carried;
    for (size_t at = 1; at < s->blocks; at++) {
        sl_jb b;
        sl_jb_found found = look(s, at, &b);
        if (found != SL_JB_EMPTY)
            s->last = at;
        if (found == SL_JB_GOOD && b.synced > s->synced)
            s->synced = b.synced;
    }
}

static void note_opened(sl_replay *r, const sl_jb_pair *p)
{
    r->opened = sl_realloc(r->opened, (r->opened_count + 1) * sizeof *r->opened);
    r->opened[r->opened_count++] = *p;
}

static void apply(sl_replay *r, const sl_jb *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->type == SL_JB_OPENED)
            note_opened(r, &b->pairs[i]);
        else
            sl_idmap_put(&r->ids, b->pairs[i].id, b->pairs[i].epoch, (int)b->type);
}

/* Are all blocks of the record that begins here good, and parts of it? */
static bool complete(const scan *s, size_t at, const sl_jb *first)
{
    if (first->part != 0 || first->parts > s->blocks - at)
        return false;
    for (uint32_t i = 1; i < first->parts; i++) {
        sl_jb b;
        if (look(s, at + i, &b) != SL_JB_GOOD || b.type != first->type || b.part != i ||
            b.parts != first->parts)
            return false;
    }
    return true;
}

/* A block that does not count, because it or another of its record is not good. */
static void pass_over(scan *s, size_t at, sl_jb_found found)
{
    s->r->torn = true;
    if (found == SL_JB_BAD)
        damaged(s->r, "block %zu is damaged", at);
    else if (s->r->head.first + at < s->synced)
        damaged(s->r, "block %zu is %s, although it was synced", at,
                found == SL_JB_EMPTY  ? "empty"
                : found == SL_JB_TORN ? "torn"
                                      : "of a record that is not complete");
}

static void walk(scan *s)
{
    sl_jb b;
    for (size_t at = 1; at <= s->last;) {
        sl_jb_found found = look(s, at, &b);
        if (found != SL_JB_GOOD || !complete(s, at, &b)) {
            pass_over(s, at++, found);
            continue;
        }
        for (uint32_t i = 0, parts = b.parts; i < parts; i++, at++) {
            if (i > 0)
                (void)look(s, at, &b);
            apply(s->r, &b);
        }
        s->r->records++;
    }
    for (size_t at = s->last + 1; s->r->head.first + at < s->synced; at++)
        pass_over(s, at, SL_JB_EMPTY);
}

sl_jb_found sl_replay_bytes(sl_replay *r, const uint8_t *bytes, size_t n, const struct stat *st)
{
    *r = (sl_replay){ .whole = true };
    uint8_t head[SL_JB_BYTES] = { 0 };
    memcpy(head, bytes, n < sizeof head ? n : sizeof head);
    sl_jb_found found = sl_jb_get_head(head, &r->head);
    if (found == SL_JB_BAD) {
        damaged(r, "its head is damaged: nothing can be read");
        return SL_JB_GOOD;
    }
    if (found != SL_JB_GOOD)
        return found;
    if (r->head.file_bytes != (uint64_t)st->st_size)
        damaged(r, "it has %lld bytes and was made with %llu", (long long)st->st_size,
                (unsigned long long)r->head.file_bytes);
    if (r->head.inode != (uint64_t)st->st_ino)
        damaged(r, "it is a copy, which may be older than what was sent since");
    scan s = { .r = r, .bytes = bytes, .blocks = n / SL_JB_BYTES };
    survey(&s);
    walk(&s);
    r->end = r->head.first + s.last + 1;
    r->synced = s.synced;
    return SL_JB_GOOD;
}

/* ---- Files ---- */

static sl_rc read_all(int fd, uint8_t *bytes, size_t *n, const char *path, sl_err *err)
{
    size_t got = 0;
    while (got < *n) {
        ssize_t more = pread(fd, bytes + got, *n - got, (off_t)got);
        if (more == 0)
            break;
        if (more < 0 && errno != EINTR)
            return sl_fail(err, SL_OPERATOR, "cannot read journal \"%s\": %s", path,
                           strerror(errno));
        got += more > 0 ? (size_t)more : 0;
    }
    *n = got;
    return SL_OK;
}

static sl_rc look_at(int fd, struct stat *st, const char *path, sl_err *err)
{
    if (fstat(fd, st) != 0)
        return sl_fail(err, SL_OPERATOR, "cannot read journal \"%s\": %s", path,
                       strerror(errno));
    if (!S_ISREG(st->st_mode))
        return sl_fail(err, SL_OPERATOR, "\"%s\" is not a file", path);
    if (st->st_size > FILE_MAX)
        return sl_fail(err, SL_OPERATOR, "\"%s\" is no journal: it is too large", path);
    return SL_OK;
}

sl_rc sl_replay_read_fd(sl_replay *r, int fd, const char *path, sl_err *err)
{
    *r = (sl_replay){ 0 };
    struct stat st;
    sl_rc rc = look_at(fd, &st, path, err);
    if (rc != SL_OK)
        return rc;
    size_t n = (size_t)st.st_size;
    uint8_t *bytes = sl_alloc(n ? n : 1);
    sl_jb_found found = SL_JB_ALIEN;
    rc = read_all(fd, bytes, &n, path, err);
    if (rc == SL_OK)
        found = sl_replay_bytes(r, bytes, n, &st);
    free(bytes);
    if (rc == SL_OK && found == SL_JB_ALIEN)
        rc = sl_fail(err, SL_OPERATOR,
                     "\"%s\" is no journal\nhint: name another file; if it was one, move it "
                     "away: what was consumed with it is unknown then",
                     path);
    if (rc == SL_OK && found == SL_JB_NEWER)
        rc = sl_fail(err, SL_NEWER, "journal \"%s\" was made by a newer version of sluice",
                     path);
    return rc;
}

static bool locked(int fd)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* A block that is read while it is written looks damaged: then once more. */
sl_rc sl_replay_read(sl_replay *r, const char *path, sl_err *err)
{
    *r = (sl_replay){ 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return sl_fail(err, SL_OPERATOR, "cannot open journal \"%s\": %s", path,
                       strerror(errno));
    bool in_use = locked(fd);
    sl_rc rc = sl_replay_read_fd(r, fd, path, err);
    for (int i = 1; rc == SL_OK && in_use && !r->whole && i < READ_TRIES; i++) {
        sl_replay_fini(r);
        rc = sl_replay_read_fd(r, fd, path, err);
    }
    r->in_use = in_use;
    close(fd);
    return rc;
}

/* ---- What follows ---- */

static bool was_opened_by(const sl_replay *r, int64_t session)
{
    for (size_t i = 0; i < r->opened_count; i++)
        if (r->opened[i].id == session)
            return true;
    return false;
}

void sl_replay_expect(sl_replay *r, const sl_journal_stamp *newest)
{
    if (!r->fresh && newest->journal == r->head.identity &&
        (newest->position < 0 || (uint64_t)newest->position > r->end))
        damaged(r, "it ends at %llu, and was synced up to %lld once: an older copy",
                (unsigned long long)r->end, (long long)newest->position);
}

/* What is good in a journal that is not whole is still true: sent is sent. But no other answer: what is
 * missing may have been the last word. */
sl_fate sl_replay_fate(const sl_replay *r, int64_t id, int64_t epoch,
                       const sl_journal_stamp *stamp)
{
    if (r->fresh || r->head.identity == 0 || stamp->journal != r->head.identity ||
        !was_opened_by(r, stamp->session))
        return SL_FATE_UNKNOWN;
    const sl_idmap_slot *s = sl_idmap_find(&r->ids, id);
    if (s && s->state == SL_JOURNAL_SENT && s->epoch == epoch)
        return SL_FATE_SENT;
    if (!r->whole || stamp->position < 0 || (uint64_t)stamp->position > r->end)
        return SL_FATE_UNKNOWN;
    if (!s)
        return SL_FATE_NEVER_SENT;
    if (s->state != SL_JOURNAL_FAILED)
        return SL_FATE_UNKNOWN; /* sending; or sent, but by another consumption */
    return s->epoch == epoch ? SL_FATE_FAILED : SL_FATE_NEVER_SENT;
}

size_t sl_replay_count(const sl_replay *r, sl_journal_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < r->ids.cap; i++)
        n += r->ids.slots[i].state == (int)state;
    return n;
}
