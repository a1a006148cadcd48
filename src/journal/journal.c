/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DESIGN
 *
 * One mutex guards everything but the sync. A record is written under it, into the page cache, where it
 * survives the death of the process; then its thread waits until a sync that began afterwards has ended.
 * Whoever finds no sync going on does the next one, for all that were written before it: ten threads that
 * wait need one sync, not ten.
 *
 * When the file is full, all that is outstanding goes into a new one, which replaces it: the head with the
 * same identity, the sessions, what was replayed, what is being sent. Everybody waits meanwhile, and those
 * who waited for a sync are served by that of the new file.
 */
#include "journal/journal.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"
#include "journal/file.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum {
    BYTES = 8 << 20,
    BLOCKS_MIN = 16,
    SESSIONS_MAX = 100, /* of older ones that were never reconciled, all is unknown */
    RESERVE_PART = 8, /* so much of the file is for those who asked for room at the same time */
};

struct sl_journal {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* synced, syncing or dead */
    char *path, *node;
    int64_t session;
    uint64_t bytes;
    int fd;
    sl_jb_head head;
    uint64_t next;   /* number of the next block */
    uint64_t synced; /* all below it are */
    bool syncing;    /* one thread syncs, without the lock */
    bool dead;
    sl_err why; /* dead */
    sl_buf out;
    sl_idmap live; /* of this session, not settled */
    sl_replay replay;
    bool carry;         /* what was replayed belongs to this journal, and is not reconciled */
    sl_jb_pair *opened; /* sessions and when */
    size_t opened_count;
    sl_journal_counts counts;
};

/* ---- Blocks ---- */

static uint64_t used_blocks(const sl_journal *j)
{
    return j->next - j->head.first;
}

static uint64_t free_blocks(const sl_journal *j)
{
    return j->head.file_bytes / SL_JB_BYTES - used_blocks(j);
}

/* Appends the blocks of a record to j->out, the first with this number. */
static void put_record(sl_journal *j, sl_jb_type type, const sl_jb_pair *pairs, size_t count,
                       uint64_t number)
{
    uint32_t parts = (uint32_t)sl_jb_blocks(count);
    for (uint32_t part = 0; part < parts; part++) {
        size_t from = (size_t)part * SL_JB_PAIRS;
        sl_jb b = { .type = type, .part = part, .parts = parts, .session = j->session };
        b.number = number + part;
        b.synced = j->synced;
        b.count = count - from < SL_JB_PAIRS ? count - from : SL_JB_PAIRS;
        memcpy(b.pairs, pairs + from, b.count * sizeof *pairs);
        sl_jb_put((uint8_t *)sl_buf_room(&j->out, SL_JB_BYTES), j->head.salt, &b);
        sl_buf_took(&j->out, SL_JB_BYTES);
    }
}

static sl_rc die(sl_journal *j, const sl_err *why, sl_err *err)
{
    if (!j->dead) {
        j->dead = true;
        j->why = *why;
        j->why.rc = SL_OPERATOR;
    }
    if (err)
        *err = j->why;
    pthread_cond_broadcast(&j->changed);
    return SL_OPERATOR;
}

/* There is room for it. */
static sl_rc append(sl_journal *j, sl_jb_type type, const sl_jb_pair *pairs, size_t count,
                    sl_err *err)
{
    sl_err why = { 0 };
    sl_buf_reset(&j->out);
    put_record(j, type, pairs, count, j->next);
    if (sl_jf_write(j->fd, j->path, j->out.p, j->out.n, used_blocks(j) * SL_JB_BYTES, &why) !=
        SL_OK)
        return die(j, &why, err);
    j->next += j->out.n / SL_JB_BYTES;
    j->counts.records++;
    return SL_OK;
}

/* Until all that is written now is synced, by this thread or by another. */
static sl_rc wait_synced(sl_journal *j, sl_err *err)
{
    uint64_t mine = j->next;
    while (!j->dead && j->synced < mine) {
        if (j->syncing) {
            pthread_cond_wait(&j->changed, &j->lock);
            continue;
        }
        uint64_t upto = j->next;
        j->syncing = true;
        pthread_mutex_unlock(&j->lock);
        int e = fdatasync(j->fd) == 0 ? 0 : errno;
        pthread_mutex_lock(&j->lock);
        j->syncing = false;
        j->counts.syncs++;
        if (e) {
            sl_err why = { 0 };
            sl_fail(&why, SL_OPERATOR, "journal \"%s\": cannot sync: %s", j->path, strerror(e));
            return die(j, &why, err);
        }
        j->synced = upto;
        pthread_cond_broadcast(&j->changed);
    }
    return j->synced < mine ? die(j, &j->why, err) : SL_OK;
}

/* ---- A new file ---- */

static void put_state(sl_journal *j, const sl_idmap *ids, sl_jb_type type)
{
    sl_jb_pair *pairs = sl_alloc((ids->count + 1) * sizeof *pairs);
    size_t n = 0;
    for (size_t i = 0; i < ids->cap; i++)
        if (ids->slots[i].state == (int)type)
            pairs[n++] = (sl_jb_pair){ ids->slots[i].id, ids->slots[i].epoch };
    put_record(j, type, pairs, n, j->head.first + j->out.n / SL_JB_BYTES);
    free(pairs);
}

/* What is live comes last: of an id that is in both, it is the last word. */
static void put_carried(sl_journal *j)
{
    const sl_idmap *const from[] = { &j->replay.ids, &j->live };
    put_record(j, SL_JB_OPENED, j->opened, j->opened_count,
               j->head.first + j->out.n / SL_JB_BYTES);
    for (size_t i = j->carry ? 0 : 1; i < 2; i++)
        for (sl_jb_type t = SL_JB_SENDING; t <= SL_JB_FAILED; t++)
            put_state(j, from[i], t);
}

/* The head of the next file; its number and all behind it are above all that was in this one. */
static void next_head(sl_journal *j)
{
    j->head.salt = sl_random();
    j->head.first = j->synced = j->next;
    j->head.file_began_us = sl_wall_us();
    j->head.rotations++;
}

/* All of it, the head included, into j->out; then the file is at most half full, with `more` blocks in it. */
static void put_file(sl_journal *j, uint64_t more)
{
    sl_buf_reset(&j->out);
    memset(sl_buf_room(&j->out, SL_JB_BYTES), 0, SL_JB_BYTES);
    sl_buf_took(&j->out, SL_JB_BYTES);
    put_carried(j);
    uint64_t blocks = j->out.n / SL_JB_BYTES;
    j->head.carried = (uint32_t)(blocks - 1);
    j->head.file_bytes = j->bytes;
    while (2 * (blocks + more) > j->head.file_bytes / SL_JB_BYTES)
        j->head.file_bytes *= 2;
}

static sl_rc write_file(sl_journal *j, int *fd, bool *named, sl_err *err)
{
    sl_rc rc = sl_jf_make(fd, j->path, j->head.file_bytes, &j->head.inode, err);
    if (rc != SL_OK)
        return rc;
    sl_jb_put_head((uint8_t *)j->out.p, &j->head);
    rc = sl_jf_write(*fd, j->path, j->out.p, j->out.n, 0, err);
    if (rc == SL_OK)
        rc = sl_jf_replace(*fd, j->path, named, err);
    if (rc != SL_OK && !*named)
        sl_jf_abandon(*fd, j->path);
    else if (rc != SL_OK)
        close(*fd);
    return rc;
}

/* Nobody syncs. On SL_AGAIN all is as before; any other failure is the end. */
static sl_rc rotate(sl_journal *j, uint64_t more, sl_err *err)
{
    sl_jb_head was = j->head;
    uint64_t synced = j->synced;
    sl_err why = { 0 };
    bool named = false;
    int fd = -1;
    next_head(j);
    put_file(j, more);
    sl_rc rc = write_file(j, &fd, &named, &why);
    if (rc != SL_OK) {
        j->head = was;
        j->synced = synced;
        if (rc != SL_AGAIN)
            return die(j, &why, err);
        if (err)
            *err = why;
        return rc;
    }
    close(j->fd);
    j->fd = fd;
    j->next = j->synced = j->head.first + j->out.n / SL_JB_BYTES;
    j->counts.rotations++;
    pthread_cond_broadcast(&j->changed);
    return SL_OK;
}

/* Until `blocks` are free, `reserve` blocks besides. */
static sl_rc make_room(sl_journal *j, uint64_t blocks, uint64_t reserve, sl_err *err)
{
    while (!j->dead && free_blocks(j) < blocks + reserve) {
        if (j->syncing) {
            pthread_cond_wait(&j->changed, &j->lock);
            continue;
        }
        sl_rc rc = rotate(j, blocks + reserve, err);
        if (rc != SL_OK)
            return rc;
    }
    return j->dead ? die(j, &j->why, err) : SL_OK;
}

/* ---- Opening ---- */

/* Its first file is no rotation. */
static sl_jb_head fresh_head(const sl_journal *j)
{
    sl_jb_head h = { .began_us = sl_wall_us(), .rotations = UINT64_MAX };
    while (h.identity == 0)
        h.identity = (int64_t)(sl_random() & INT64_MAX);
    snprintf(h.node, sizeof h.node, "%s", j->node);
    return h;
}

/* This session behind the newest of those that are to be known further on. */
static void note_session(sl_journal *j, const sl_jb_pair *earlier, size_t count)
{
    size_t drop = count >= SESSIONS_MAX ? count - SESSIONS_MAX + 1 : 0;
    sl_jb_pair *all = sl_alloc((count - drop + 1) * sizeof *all);
    for (size_t i = drop; i < count; i++)
        all[i - drop] = earlier[i];
    all[count - drop] = (sl_jb_pair){ j->session, sl_wall_us() };
    free(j->opened);
    j->opened = all;
    j->opened_count = count - drop + 1;
}

/* What was replayed of a damaged journal stays to be asked, but the new one knows nothing of it. */
static sl_rc begin_anew(sl_journal *j, sl_err *err)
{
    sl_err why = { 0 };
    j->head = fresh_head(j);
    j->next = 0;
    j->carry = false;
    note_session(j, NULL, 0);
    sl_rc rc = rotate(j, 0, &why);
    j->counts.rotations = 0;
    return rc == SL_OK ? rc
                       : die(j, &why, err); /* of an old file there is nothing to go on with */
}

static sl_rc go_on(sl_journal *j, sl_err *err)
{
    j->head = j->replay.head;
    j->next = j->replay.end;
    j->synced = j->replay.synced;
    j->carry = true;
    note_session(j, j->replay.opened, j->replay.opened_count);
    if (j->replay.torn || free_blocks(j) < used_blocks(j))
        return rotate(j, 0, err);
    sl_rc rc = append(j, SL_JB_OPENED, &j->opened[j->opened_count - 1], 1, err);
    if (rc == SL_OK)
        rc = wait_synced(j, err);
    /* The last process may have died between giving this file its name and syncing that. */
    return rc == SL_OK ? sl_jf_sync_folder(j->path, err) : rc;
}

static sl_rc set_aside(sl_journal *j, sl_err *err)
{
    char *kept = NULL;
    sl_rc rc = sl_jf_keep(j->path, &kept, err);
    free(kept);
    return rc == SL_OK ? begin_anew(j, err) : rc;
}

static sl_rc check_node(const sl_journal *j, sl_err *err)
{
    if (strcmp(j->replay.head.node, j->node) == 0)
        return SL_OK;
    return sl_fail(err, SL_OPERATOR,
                   "journal \"%s\" is that of node '%.100s', not of '%.100s'\nhint: every node "
                   "needs a journal of its own, and a name that stays (setting node)",
                   j->path, j->replay.head.node, j->node);
}

static sl_rc start(sl_journal *j, sl_err *err)
{
    struct stat st;
    sl_rc rc = sl_jf_open(&j->fd, j->path, err);
    if (rc != SL_OK)
        return rc;
    if (fstat(j->fd, &st) == 0 && st.st_size == 0) {
        j->replay.fresh = true;
        return begin_anew(j, err);
    }
    rc = sl_replay_read_fd(&j->replay, j->fd, j->path, err);
    if (rc == SL_OK && j->replay.head.identity != 0)
        rc = check_node(j, err);
    if (rc != SL_OK)
        return rc;
    return j->replay.whole ? go_on(j, err) : set_aside(j, err);
}

static uint64_t file_bytes(const sl_journal_conf *conf)
{
    uint64_t blocks = (conf->bytes ? conf->bytes : BYTES) / SL_JB_BYTES;
    return (blocks < BLOCKS_MIN ? BLOCKS_MIN : blocks) * SL_JB_BYTES;
}

sl_rc sl_journal_open(sl_journal **out, const sl_journal_conf *conf, sl_err *err)
{
    if (!conf->node || !*conf->node || strlen(conf->node) > SL_JB_NODE_BYTES)
        return sl_fail(err, SL_REFUSED,
                       "a journal needs a node's name of 1 to %d bytes\nhint: setting node",
                       SL_JB_NODE_BYTES);
    sl_journal *j = sl_alloc(sizeof *j);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    j->path = sl_strdup(conf->path);
    j->node = sl_strdup(conf->node);
    j->session = conf->session;
    j->bytes = file_bytes(conf);
    j->fd = -1;
    pthread_mutex_lock(&j->lock);
    sl_rc rc = start(j, err);
    pthread_mutex_unlock(&j->lock);
    if (rc == SL_OK) {
        *out = j;
        return SL_OK;
    }
    j->dead = true; /* nothing to sync */
    sl_journal_close(j);
    if (rc == SL_AGAIN && err)
        err->rc = SL_OPERATOR;
    return rc == SL_AGAIN ? SL_OPERATOR : rc;
}

void sl_journal_close(sl_journal *j)
{
    if (!j)
        return;
    if (!j->dead)
        (void)!fdatasync(j->fd);
    if (j->fd >= 0)
        close(j->fd);
    sl_replay_fini(&j->replay);
    sl_idmap_fini(&j->live);
    sl_buf_fini(&j->out);
    free(j->opened);
    free(j->path);
    free(j->node);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

sl_replay *sl_journal_replayed(sl_journal *j)
{
    return &j->replay;
}

sl_rc sl_journal_expect(sl_journal *j, const sl_journal_stamp *newest, sl_err *err)
{
    pthread_mutex_lock(&j->lock);
    bool was_whole = j->replay.whole;
    sl_rc rc = j->dead ? die(j, &j->why, err) : SL_OK;
    sl_replay_expect(&j->replay, newest);
    if (rc == SL_OK && was_whole && !j->replay.whole)
        rc = set_aside(j, err);
    pthread_mutex_unlock(&j->lock);
    return rc;
}

/* The file begins anew, so that it names nothing that is over. If the disk is full, that can wait. */
void sl_journal_reconciled(sl_journal *j)
{
    pthread_mutex_lock(&j->lock);
    bool stale = j->carry && j->replay.ids.count > 0;
    sl_replay_fini(&j->replay);
    j->carry = false;
    note_session(j, NULL, 0);
    if (stale && !j->dead)
        (void)!rotate(j, 0, NULL);
    pthread_mutex_unlock(&j->lock);
}

/* ---- What a node does all day ---- */

sl_journal_stamp sl_journal_stamp_now(sl_journal *j)
{
    pthread_mutex_lock(&j->lock);
    sl_journal_stamp s = { j->head.identity, j->session, (int64_t)j->synced };
    pthread_mutex_unlock(&j->lock);
    return s;
}

sl_rc sl_journal_room(sl_journal *j, size_t count, sl_err *err)
{
    pthread_mutex_lock(&j->lock);
    uint64_t reserve = j->bytes / SL_JB_BYTES / RESERVE_PART;
    sl_rc rc = make_room(j, 2 * sl_jb_blocks(count), reserve, err);
    pthread_mutex_unlock(&j->lock);
    return rc;
}

sl_rc sl_journal_sending(sl_journal *j, const int64_t *ids, const int64_t *epochs, size_t count,
                         sl_err *err)
{
    if (count == 0)
        return SL_OK;
    sl_jb_pair *pairs = sl_alloc(count * sizeof *pairs);
    for (size_t i = 0; i < count; i++)
        pairs[i] = (sl_jb_pair){ ids[i], epochs[i] };
    pthread_mutex_lock(&j->lock);
    sl_rc rc = make_room(j, sl_jb_blocks(count), 0, err);
    if (rc == SL_OK)
        rc = append(j, SL_JB_SENDING, pairs, count, err);
    for (size_t i = 0; rc == SL_OK && i < count; i++)
        sl_idmap_put(&j->live, ids[i], epochs[i], SL_JOURNAL_SENDING);
    if (rc == SL_OK)
        rc = wait_synced(j, err);
    pthread_mutex_unlock(&j->lock);
    free(pairs);
    return rc;
}

/* A full disk costs the record only: what is known goes into the next file. */
static void write_verdicts(sl_journal *j, const sl_jb_pair *pairs, size_t count,
                           sl_journal_state state)
{
    sl_rc rc = make_room(j, sl_jb_blocks(count), 0, NULL);
    if (rc == SL_OK)
        rc = append(j, (sl_jb_type)state, pairs, count, NULL);
    if (rc != SL_OK)
        j->counts.lost_verdicts += count;
}

void sl_journal_verdict(sl_journal *j, const int64_t *ids, size_t count, sl_journal_state state)
{
    assert(state == SL_JOURNAL_SENT || state == SL_JOURNAL_FAILED);
    sl_jb_pair *pairs = sl_alloc((count + 1) * sizeof *pairs);
    size_t n = 0;
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < count; i++) {
        sl_idmap_slot *s = sl_idmap_find(&j->live, ids[i]);
        if (!s || s->state != SL_JOURNAL_SENDING)
            continue;
        s->state = (int)state;
        pairs[n++] = (sl_jb_pair){ s->id, s->epoch };
    }
    if (n > 0)
        write_verdicts(j, pairs, n, state);
    pthread_mutex_unlock(&j->lock);
    free(pairs);
}

void sl_journal_settled(sl_journal *j, const int64_t *ids, size_t count)
{
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < count; i++)
        sl_idmap_drop(&j->live, ids[i]);
    pthread_mutex_unlock(&j->lock);
}

sl_journal_counts sl_journal_count(sl_journal *j)
{
    pthread_mutex_lock(&j->lock);
    sl_journal_counts c = j->counts;
    c.outstanding = j->live.count;
    c.file_bytes = j->head.file_bytes;
    c.used_bytes = used_blocks(j) * SL_JB_BYTES;
    pthread_mutex_unlock(&j->lock);
    return c;
}
