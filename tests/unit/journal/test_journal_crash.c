/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are killed at any moment and at every call, and power that is cut: what was promised to be
 * on disk is there, and nothing is that was not written.
 *
 * A child tells over a pipe what it is about to do and what it has done. SIGKILL leaves the page cache as it
 * was; power cuts are a model: of what was written since the last sync, any sectors may be lost.
 */
#include "journal/journal.h"

#include "unit/journal/journals.h"

#include <pthread.h>

enum { KILLS = 60, KILLS_LEAST = 50, IDS = 1 << 17, CHILD_THREADS = 3, CUTS = 30 };

/* What is known of each message. */
enum {
    TRIED = 1,     /* sending was called */
    ACKED = 2,     /* and returned: it may have left */
    MAY_SENT = 4,  /* its verdict was about to be written */
    SENT = 8,      /* and was */
    FORGOTTEN = 16 /* it was about to be settled, or its session reconciled */
};

typedef struct event {
    int64_t what; /* 'O'pened, 'R'econciled, or one of the flags above */
    int64_t first;
    int64_t count;
} event;

static uint8_t known[IDS];
static int64_t highest; /* id that was tried */
static int64_t opened_identity;
static int events_out;

static void note(const event *e)
{
    if (e->what == 'O')
        opened_identity = e->first;
    else if (e->what == 'R')
        for (int64_t i = 0; i < e->first; i++)
            known[i] |= FORGOTTEN;
    else
        for (int64_t i = e->first; i < e->first + e->count; i++)
            known[i] |= (uint8_t)e->what;
    if (e->what == TRIED && e->first + e->count - 1 > highest)
        highest = e->first + e->count - 1;
}

static void tell(int64_t what, int64_t first, int64_t count)
{
    event e = { what, first, count };
    if (events_out < 0)
        note(&e);
    else if (write(events_out, &e, sizeof e) != sizeof e)
        _exit(3);
}

static void forget_all(void)
{
    memset(known, 0, sizeof known);
    highest = opened_identity = 0;
    events_out = -1;
}

/* One message or many: tried, acknowledged, and perhaps sent and settled. */
static void one_turn(sl_journal *j, int64_t first, int64_t count, uint64_t dice)
{
    int64_t ids[512], epochs[512];
    sl_err err = { 0 };
    for (int64_t i = 0; i < count; i++) {
        ids[i] = first + i;
        epochs[i] = ids[i] + EPOCH;
    }
    tell(TRIED, first, count);
    if (sl_journal_sending(j, ids, epochs, (size_t)count, &err) != SL_OK)
        _exit(4);
    tell(ACKED, first, count);
    if (dice % 4 == 0)
        return;
    tell(MAY_SENT, first, count);
    sl_journal_verdict(j, ids, (size_t)count, SL_JOURNAL_SENT);
    tell(SENT, first, count);
    if (dice % 4 == 1)
        return;
    tell(FORGOTTEN, first, count);
    sl_journal_settled(j, ids, (size_t)count);
}

/* Whatever happened: all that may have left is named, and nothing else says so. */
static void judge(const sl_replay *r, int64_t session)
{
    if (!r->whole)
        fail_msg("not whole: %s", r->why);
    sl_journal_stamp stamp = { opened_identity, session, 0 };
    for (int64_t id = 1; id <= highest; id++) {
        int s = state_of(r, id), k = known[id];
        if ((k & ACKED) && !(k & FORGOTTEN))
            assert_int_not_equal(s, 0);
        if ((k & SENT) && !(k & FORGOTTEN))
            assert_int_equal(s, SL_JOURNAL_SENT);
        if (s == SL_JOURNAL_SENT)
            assert_true(k & MAY_SENT);
        if (s != 0)
            assert_true(k & TRIED);
        if (s == 0 && session)
            assert_int_equal(fate(r, id, stamp), SL_FATE_NEVER_SENT);
    }
    for (size_t i = 0; i < r->ids.cap; i++)
        if (r->ids.slots[i].state)
            assert_true(r->ids.slots[i].id >= 1 && r->ids.slots[i].id <= highest);
}

/* ---- Killed at any moment ---- */

static sl_journal *childs;
static _Atomic int64_t next_id;

static void *work_until_killed(void *seed)
{
    uint64_t dice = *(uint64_t *)seed;
    for (;;) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        int64_t count = (int64_t)(dice >> 60 ? 1 + (dice >> 58) % 3 : 1 + (dice >> 33) % 120);
        int64_t first = atomic_fetch_add(&next_id, count);
        if (first + count >= IDS)
            _exit(5);
        one_turn(childs, first, count, dice >> 40);
    }
    return NULL;
}

static void be_killed(int64_t session, int64_t first, bool reconcile)
{
    pthread_t threads[CHILD_THREADS];
    uint64_t seeds[CHILD_THREADS];
    childs = open_sized(session, 1 << 15);
    tell('O', sl_journal_stamp_now(childs).journal, 0);
    if (reconcile) {
        tell('R', first, 0);
        sl_journal_reconciled(childs);
    }
    next_id = first;
    for (int i = 0; i < CHILD_THREADS; i++) {
        seeds[i] = sl_random();
        pthread_create(&threads[i], NULL, work_until_killed, &seeds[i]);
    }
    pthread_join(threads[0], NULL);
    _exit(6);
}

/* True if it was alive until then. `events`: how many to wait for; negative: so many microseconds. */
static bool kill_after(pid_t pid, int in, int events)
{
    event e;
    if (events < 0)
        usleep((unsigned)-events);
    for (int i = 0; i < events && read(in, &e, sizeof e) == sizeof e; i++)
        note(&e);
    kill(pid, SIGKILL);
    while (read(in, &e, sizeof e) == sizeof e)
        note(&e);
    close(in);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("the child ended by itself with status %d", WEXITSTATUS(status));
    return WTERMSIG(status) == SIGKILL;
}

static void killed_at_any_moment(void **state)
{
    (void)state;
    int kills = 0, torn = 0;
    uint64_t rotations = 0, acked = 0;
    forget_all();
    /* The sooner a child is killed, the more of them it takes. */
    for (int64_t session = 1;
         session <= KILLS || (session <= 10 * KILLS && (rotations <= 10 || acked <= 500));
         session++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        int64_t identity = opened_identity, first = highest + 1;
        uint64_t dice = sl_random();
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            events_out = ends[1];
            be_killed(session, first, dice % 8 == 0);
        }
        close(ends[1]);
        bool early = session > 1 && dice % 16 < 3; /* perhaps while it still opens */
        kills += kill_after(pid, ends[0],
                            early ? -(int)(dice >> 32 & 4095) : 1 + (int)(dice >> 40 & 63));
        if (identity)
            assert_int_equal(opened_identity, identity);
        sl_replay r = read_back();
        bool opened = r.opened_count && r.opened[r.opened_count - 1].id == session;
        judge(&r, opened ? session : 0);
        torn += r.torn;
        rotations = r.head.rotations;
        sl_replay_fini(&r);
        acked = 0;
        for (int64_t id = 1; id <= highest; id++)
            acked += (known[id] & ACKED) != 0;
    }
    print_message("%d kills, %d torn, %llu rotations, %lld messages tried, %llu acknowledged\n",
                  kills, torn, (unsigned long long)rotations, (long long)highest,
                  (unsigned long long)acked);
    assert_true(kills >= KILLS_LEAST);
    assert_true(rotations > 10 && acked > 500);
}

/* ---- Killed at every call ---- */

/* Opens, and writes so much that the file is replaced several times. */
static void fill_files(int64_t session, int64_t first)
{
    sl_journal *j = open_small(session);
    tell('O', sl_journal_stamp_now(j).journal, 0);
    for (int64_t i = 0; i < 12; i++)
        one_turn(j, first + i * 60, i % 4 == 3 ? 60 : 1, (uint64_t)(i + 1));
    if (sl_journal_count(j).rotations < 2)
        _exit(8);
    sl_journal_close(j);
    _exit(9);
}

/* True if it came to its end. */
static bool runs_through(int64_t session, int64_t first, int kill_at, int part)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        events_out = ends[1];
        faults.calls = 0;
        faults.kill_at = kill_at;
        faults.kill_part = part;
        fill_files(session, first);
    }
    close(ends[1]);
    event e;
    while (read(ends[0], &e, sizeof e) == sizeof e)
        note(&e);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGKILL);
    else
        assert_int_equal(WEXITSTATUS(status), 9);
    return !WIFSIGNALED(status);
}

/* The next one opens it, finds all, and goes on with the same journal. */
static void judge_by_opening(int64_t session, int64_t identity)
{
    sl_journal *j = open_small(session + 1);
    sl_replay *r = sl_journal_replayed(j);
    if (!opened_identity && r->fresh) {
        sl_journal_close(j);
        return;
    }
    assert_false(r->fresh);
    if (!opened_identity)
        opened_identity = r->head.identity;
    if (identity)
        assert_int_equal(opened_identity, identity);
    assert_int_equal(sl_journal_stamp_now(j).journal, opened_identity);
    judge(r, 0);
    must_send(j, 100000, 1);
    sl_journal_close(j);
    char *left = sl_asprintf("%s.new", path);
    sl_replay after = read_back();
    assert_true(after.whole && !after.torn);
    assert_int_equal(state_of(&after, 100000), SL_JOURNAL_SENDING);
    sl_replay_fini(&after);
    assert_int_not_equal(access(left, F_OK), 0);
    free(left);
}

static int kill_at_every_call(int part)
{
    for (int n = 1;; n++) {
        clear_folder();
        forget_all();
        bool end = runs_through(1, 1, n, part);
        judge_by_opening(1, 0);
        if (end)
            return n - 1;
    }
}

static void killed_at_every_call(void **state)
{
    (void)state;
    int calls = kill_at_every_call(0);
    print_message("killed before each of %d calls\n", calls);
    assert_true(calls > 40);
}

/* Also in the middle of a write: a third of it is done, in the middle of a block or of a record. */
static void killed_within_every_write(void **state)
{
    (void)state;
    assert_true(kill_at_every_call(5) > 40);
    assert_true(kill_at_every_call(13) > 40);
}

/* The opening of a file that is torn makes a new one: a kill there leaves either. */
static void killed_while_it_mends_a_torn_file(void **state)
{
    (void)state;
    bool end = false;
    int n = 0;
    while (!end) {
        clear_folder();
        forget_all();
        sl_journal *j = open_small(1);
        opened_identity = sl_journal_stamp_now(j).journal;
        for (int64_t i = 1; i <= 3; i++)
            one_turn(j, i, 1, 0);
        sl_journal_close(j);
        image im = load(path);
        im.p[5 * SL_JB_BYTES + 3] = 1; /* begun, behind the last */
        store(&im);
        free(im.p);
        n++;
        end = runs_through(2, 1000, n, n % 2 ? 5 : 0);
        judge_by_opening(2, opened_identity);
    }
    assert_true(n > 40);
}

/* ---- Power cuts ---- */

static image now, durable;

static void watch_write(int fd, const void *p, size_t n, off_t at)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    if (st.st_ino == now.st.st_ino)
        memcpy(now.p + at, p, n);
}

static void watch_sync(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    if (st.st_ino == now.st.st_ino)
        memcpy(durable.p, now.p, now.n);
}

static void watch(void)
{
    free(now.p);
    free(durable.p);
    now = load(path);
    durable = load(path);
    faults.wrote = watch_write;
    faults.synced = watch_sync;
}

/* What may be on disk now: of each sector that was not synced, the old one or the new one. */
static image cut_power(uint64_t share)
{
    image im = durable;
    im.p = sl_alloc(durable.n + 1);
    for (size_t at = 0; at < durable.n; at += SL_JB_BYTES)
        memcpy(im.p + at, (sl_random() % 8 < share ? now.p : durable.p) + at, SL_JB_BYTES);
    return im;
}

static void judge_cuts(void)
{
    for (uint64_t i = 0; i < 9; i++) {
        image im = cut_power(i);
        sl_replay r = replay_of(&im);
        judge(&r, 0);
        sl_replay_fini(&r);
        free(im.p);
    }
}

/* Until the file is replaced there is one to watch; then the new one, all of which is synced. */
static void turns_with_power(sl_journal *j, int64_t *first)
{
    uint64_t rotations = sl_journal_count(j).rotations;
    watch();
    faults.before_sync = judge_cuts;
    for (uint64_t i = 0, turns = 1 + sl_random() % 8; i < turns; i++) {
        int64_t count = (int64_t)(1 + sl_random() % 100);
        one_turn(j, *first, count, 0);
        if (sl_journal_count(j).rotations != rotations)
            watch();
        rotations = sl_journal_count(j).rotations;
        if (i % 2) {
            tell(MAY_SENT, *first, count);
            say(j, *first, (size_t)(count % 5), SL_JOURNAL_SENT);
        }
        *first += count;
        judge_cuts();
    }
}

/* The power is cut during a sync: it does not return, and nothing is sent. */
static image last_turn(sl_journal *j, int64_t first)
{
    sl_err err;
    sl_rc room = sl_journal_room(j, 100, &err);
    assert_int_equal(room, SL_OK);
    watch();
    faults.fail = FDATASYNC;
    faults.with = EIO;
    tell(TRIED, first, 100);
    assert_int_equal(sending(j, first, 100, &err), SL_OPERATOR);
    return cut_power(4);
}

static void power_cuts(void **state)
{
    (void)state;
    int64_t first = 1;
    int torn = 0;
    forget_all();
    for (int64_t session = 1; session <= CUTS; session++) {
        sl_journal *j = open_sized(session, 1 << 15);
        opened_identity = sl_journal_stamp_now(j).journal;
        if (session % 4 == 0) {
            tell('R', first, 0);
            sl_journal_reconciled(j);
        }
        turns_with_power(j, &first);
        image cut = last_turn(j, first);
        first += 100;
        no_faults();
        sl_journal_close(j);
        store(&cut);
        sl_replay r = read_back();
        judge(&r, session);
        torn += r.torn;
        sl_replay_fini(&r);
        free(cut.p);
    }
    print_message("%d power cuts, %d left the file torn\n", CUTS, torn);
    assert_true(torn > CUTS / 4);
    free(now.p);
    free(durable.p);
    now = durable = (image){ 0 };
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_at_any_moment),
        TEST(killed_at_every_call),
        TEST(killed_within_every_write),
        TEST(killed_while_it_mends_a_torn_file),
        TEST(power_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
