/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that are full, and disks that fail. */
#include "journal/journal.h"

#include "unit/journal/journals.h"

#include <sched.h>
#include <sys/mount.h>

enum { FILE_BYTES = 32 * 1024, DISK_BYTES = 128 * 1024 };

static sl_err err;

/* ---- A disk of its own, of 128 kB ---- */

static bool small_disk(void)
{
    char options[64];
    snprintf(options, sizeof options, "size=%d", DISK_BYTES);
    /* Of this process only: it goes with it. */
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, options) == 0;
}

static int fill_disk(void)
{
    static char page[4096];
    char name[300];
    snprintf(name, sizeof name, "%s/filler", folder);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, page, sizeof page) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    unlink(name); /* the space is free when fd is closed */
    return fd;
}

/* The node is told before it consumes; what it has consumed still goes; and when there is space again, all
 * goes on. */
static void on_a_full_disk(void)
{
    int filler = fill_disk();
    refuse_open("n1", SL_OPERATOR, "No space left on device\nhint: make room");
    close(filler);
    sl_journal *j = open_sized(1, FILE_BYTES);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    filler = fill_disk();

    int64_t id = 1;
    while (sl_journal_room(j, 1, &err) == SL_OK)
        must_send(j, id++, 1);
    assert_int_equal(err.rc, SL_AGAIN);
    assert_non_null(strstr(err.text, "No space left"));
    int64_t told = id;
    while (sending(j, id, 1, &err) == SL_OK)
        id++;
    assert_int_equal(err.rc, SL_AGAIN);
    assert_int_equal(id,
                     FILE_BYTES / SL_JB_BYTES - 1); /* the whole file was there to be used */
    assert_true(id - told >= 8); /* room for those who had consumed already */
    say(j, 1, 2, SL_JOURNAL_SENT);
    assert_int_equal(sl_journal_count(j).lost_verdicts, 2);
    assert_int_equal(sl_journal_count(j).rotations, 0);

    close(filler);
    assert_int_equal(sl_journal_room(j, 100, &err), SL_OK);
    assert_int_equal(sl_journal_count(j).rotations, 1);
    must_send(j, 5000, 1);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_int_equal(fate(&r, 1, s),
                     SL_FATE_SENT); /* the verdict that had no room came along */
    assert_int_equal(fate(&r, 3, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, id, s), SL_FATE_NEVER_SENT);
    assert_int_equal(fate(&r, 5000, s), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

static void a_disk_that_is_full_for_real(void **state)
{
    (void)state;
    if (!small_disk()) {
        print_message("skipped: no file system may be mounted here (%s)\n", strerror(errno));
        skip();
    }
    on_a_full_disk();
    clear_folder();
    assert_int_equal(umount(folder), 0);
}

/* The same without a mount: the system refuses files above a limit, half-way through a write. */
static void a_limit_on_the_size_of_files(void **state)
{
    (void)state;
    struct rlimit was;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ FILE_BYTES - 100, was.rlim_max }), 0);
    sl_journal *j = NULL;
    sl_journal_conf conf = { path, "n1", 1, FILE_BYTES };
    sl_rc rc = sl_journal_open(&j, &conf, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, SL_OPERATOR);
    assert_non_null(strstr(err.text, "File too large"));

    j = open_sized(1, FILE_BYTES);
    must_send(j, 1, 1);
    assert_int_equal(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 3 * SL_JB_BYTES + 100, was.rlim_max }), 0);
    rc = sending(j, 2, 1, &err); /* 100 of its 512 bytes can be written */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, SL_OPERATOR);
    assert_non_null(strstr(err.text, "only 100 of 512 bytes"));
    assert_int_equal(sending(j, 3, 1, &err), SL_OPERATOR);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole && r.torn);
    assert_int_equal(fate(&r, 1, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, 2, s), SL_FATE_NEVER_SENT);
    sl_replay_fini(&r);
}

/* ---- Failures of single calls ---- */

/* Nothing works any more, and nothing is even tried. */
static void expect_dead(sl_journal *j, const char *text)
{
    no_faults();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sending(j, 900 + i, 1, &err), SL_OPERATOR);
        assert_non_null(strstr(err.text, text));
        assert_int_equal(sl_journal_room(j, 1, &err), SL_OPERATOR);
        say(j, 1, 1, SL_JOURNAL_SENT);
    }
    assert_string_equal(faults.trace, "");
}

static void a_record_that_cannot_be_written_or_synced(void **state)
{
    (void)state;
    static const struct {
        int call, with;
        const char *text;
    } cases[] = {
        { PWRITE, EIO, "Input/output error" },
        { PWRITE, ENOSPC, "No space left" },
        { PWRITE, 0, "bytes could be written" },
        { FDATASYNC, EIO, "cannot sync: Input/output" },
        { FDATASYNC, ENOSPC, "cannot sync: No" },
        { FDATASYNC, EINTR, "cannot sync: Interrupted" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_journal *j = open_small(1);
        sl_journal_stamp s = sl_journal_stamp_now(j);
        must_send(j, 1, 1);
        faults.fail = cases[i].call;
        faults.with = cases[i].with;
        assert_int_equal(sending(j, 2, 40, &err), SL_OPERATOR);
        assert_non_null(strstr(err.text, cases[i].text));
        expect_dead(j, cases[i].text);
        sl_journal_close(j);

        j = open_small(2); /* a restart is the cure */
        sl_replay *r = sl_journal_replayed(j);
        assert_true(r->whole);
        assert_int_equal(fate(r, 1, s), SL_FATE_UNKNOWN);
        sl_fate second = fate(r, 2, s); /* refused: both are right */
        assert_true(second == SL_FATE_UNKNOWN || second == SL_FATE_NEVER_SENT);
        must_send(j, 3, 1);
        sl_journal_close(j);
        clear_folder();
    }
}

/* A verdict that fails says nothing, but is the end as well. */
static void a_verdict_that_cannot_be_written(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    must_send(j, 1, 1);
    faults.fail = PWRITE;
    faults.with = EIO;
    say(j, 1, 1, SL_JOURNAL_SENT);
    assert_int_equal(sl_journal_count(j).lost_verdicts, 1);
    expect_dead(j, "Input/output error");
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_int_equal(state_of(&r, 1), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);
}

/* So many records of one block that the next one needs a new file. */
static sl_journal *full_journal(void)
{
    sl_journal *j = open_small(1);
    for (int64_t i = 1; i <= 14; i++)
        must_send(j, i, 1);
    assert_int_equal(sl_journal_count(j).used_bytes, sl_journal_count(j).file_bytes);
    return j;
}

static void a_rotation_that_fails(void **state)
{
    (void)state;
    static const struct {
        int call, with, after;
        sl_rc rc;
    } cases[] = {
        { PWRITE, ENOSPC, 0, SL_AGAIN },    { FSYNC, ENOSPC, 0, SL_AGAIN },
        { PWRITE, EIO, 0, SL_OPERATOR },    { PWRITE, EIO, 1, SL_OPERATOR },
        { PWRITE, 0, 1, SL_OPERATOR },      { FSYNC, EIO, 0, SL_OPERATOR },
        { RENAME, EACCES, 0, SL_OPERATOR }, { FSYNC, EIO, 1, SL_OPERATOR },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_journal *j = full_journal();
        sl_journal_stamp s = sl_journal_stamp_now(j);
        faults.fail = cases[i].call;
        faults.with = cases[i].with;
        faults.after = cases[i].after;
        assert_int_equal(sending(j, 100, 1, &err), cases[i].rc);
        if (cases[i].rc == SL_AGAIN) {
            no_faults();
            must_send(j, 101, 1); /* there is space again */
            assert_int_equal(sl_journal_stamp_now(j).journal, s.journal);
            assert_true(sl_journal_stamp_now(j).position > s.position);
        } else {
            expect_dead(j, cases[i].with ? strerror(cases[i].with) : "could be written");
        }
        sl_journal_close(j);
        sl_replay r = read_back();
        assert_true(r.whole);
        assert_int_equal(r.head.identity, s.journal);
        for (int64_t id = 1; id <= 14; id++)
            assert_int_equal(fate(&r, id, s), SL_FATE_UNKNOWN);
        assert_int_equal(fate(&r, 100, s), SL_FATE_NEVER_SENT);
        assert_int_equal(state_of(&r, 101), cases[i].rc == SL_AGAIN ? SL_JOURNAL_SENDING : 0);
        sl_replay_fini(&r);
        clear_folder();
    }
}

/* What is over is not carried further, but its file stays until there is space for another. */
static void a_full_disk_when_all_is_reconciled(void **state)
{
    (void)state;
    sl_journal_close(full_journal());
    sl_journal *j = open_small(2);
    faults.fail = PWRITE;
    faults.with = ENOSPC;
    sl_journal_reconciled(j);
    no_faults();
    must_send(j, 100, 1);
    while (sl_journal_count(j).rotations < 2) /* the first was when it was opened */
        must_send(j, 100, 1);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_int_equal(r.ids.count, 1);
    sl_replay_fini(&r);
}

/* A node that cannot make sure of its journal does not start. */
static void an_opening_that_fails(void **state)
{
    (void)state;
    static const struct {
        int call, after;
    } cases[] = { { PWRITE, 0 }, { FDATASYNC, 0 }, { FSYNC, 0 } };
    sl_journal_close(open_small(1));
    for (size_t i = 0; i < COUNT(cases); i++) {
        faults.fail = cases[i].call;
        faults.with = EIO;
        faults.after = cases[i].after;
        refuse_open("n1", SL_OPERATOR, "Input/output error");
        no_faults();
    }
    sl_journal_close(open_small(2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_disk_that_is_full_for_real),
        TEST(a_limit_on_the_size_of_files),
        TEST(a_record_that_cannot_be_written_or_synced),
        TEST(a_verdict_that_cannot_be_written),
        TEST(a_rotation_that_fails),
        TEST(a_full_disk_when_all_is_reconciled),
        TEST(an_opening_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
