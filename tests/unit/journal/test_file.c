/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/file.h"

#include "unit/journal/journals.h"

#include <grp.h>

static sl_err err;

static int open_ok(void)
{
    int fd = -1;
    if (sl_jf_open(&fd, path, &err) != SL_OK)
        fail_msg("%s", err.text);
    return fd;
}

static void refuse(const char *name, const char *text)
{
    int fd = 5;
    assert_int_equal(sl_jf_open(&fd, name, &err), SL_OPERATOR);
    if (!strstr(err.text, text))
        fail_msg("%s", err.text);
    assert_int_equal(fd, -1);
}

static bool there(const char *end)
{
    char *name = sl_asprintf("%s%s", path, end);
    bool is = access(name, F_OK) == 0;
    free(name);
    return is;
}

static void what_cannot_be_a_journal(void **state)
{
    (void)state;
    refuse(folder, "Is a directory");
    refuse("/no/such/folder/j", "the folder it is in");
    refuse("/dev/null", "is not a file");
    assert_int_equal(symlink("/dev/null", path), 0);
    refuse(path, "name the file itself");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(path, "is not a file");
}

/* Root may write everywhere, so that a child without privileges tries. */
static void where_nothing_may_be_written(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder, 0500), 0);
        refuse(path, "must be writable");
        assert_int_equal(chmod(folder, 0700), 0);
        return;
    }
    close(open_ok());
    assert_int_equal(chmod(folder, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = -1;
        char *other = sl_asprintf("%s2", path);
        bool dropped = setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
        bool a = sl_jf_open(&fd, path, &err) == SL_OPERATOR && strstr(err.text, "cannot open");
        bool b = sl_jf_open(&fd, other, &err) == SL_OPERATOR && strstr(err.text, "cannot open");
        free(other);
        _exit(dropped && a && b ? 7 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void one_at_a_time(void **state)
{
    (void)state;
    int fd = open_ok();
    refuse(path, "in use by another process");
    close(fd);
    close(open_ok());
}

/* Between the opening and the lock another process replaced the file: the lock is on the wrong one. */
static void the_lock_is_on_the_file_that_has_the_name(void **state)
{
    (void)state;
    int old = open_ok(), new = -1;
    uint64_t inode;
    bool named;
    assert_int_equal(sl_jf_make(&new, path, 4096, &inode, &err), SL_OK);
    assert_int_equal(sl_jf_replace(new, path, &named, &err), SL_OK);
    assert_true(named);
    close(old); /* what was the journal is free now, but it is the journal no more */
    refuse(path, "in use by another process");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_ino, inode);
    assert_int_equal(st.st_size, 4096);
    close(new);
}

/* A power cut at any time leaves the old file or all of the new one: it is synced before it gets its name,
 * and so is the name before anything else is done. */
static void the_order_of_syncs(void **state)
{
    (void)state;
    int old = open_ok(), new = -1;
    uint64_t inode;
    bool named;
    assert_int_equal(sl_jf_make(&new, path, 4096, &inode, &err), SL_OK);
    assert_int_equal(sl_jf_write(new, path, "x", 1, 0, &err), SL_OK);
    assert_int_equal(sl_jf_replace(new, path, &named, &err), SL_OK);
    assert_string_equal(faults.trace, "wwfrf");
    close(old);
    close(new);
}

static void what_a_dead_process_left_is_removed(void **state)
{
    (void)state;
    char *name = sl_asprintf("%s.new", path);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "left over", 9), 9);
    close(fd);
    free(name);
    int old = open_ok(), new = -1;
    uint64_t inode;
    assert_false(there(".new"));
    assert_int_equal(sl_jf_make(&new, path, 1024, &inode, &err), SL_OK);
    char bytes[1024], zeros[1024] = { 0 };
    assert_int_equal(pread(new, bytes, sizeof bytes, 0), sizeof bytes);
    assert_memory_equal(bytes, zeros, sizeof zeros);
    sl_jf_abandon(new, path);
    assert_false(there(".new"));
    close(old);
}

/* Whatever fails before the name is given, nothing is left and the old file is as it was. */
static void a_new_file_that_fails_leaves_no_trace(void **state)
{
    (void)state;
    static const struct {
        int call, with;
        sl_rc rc;
    } cases[] = { { PWRITE, ENOSPC, SL_AGAIN }, { PWRITE, EDQUOT, SL_AGAIN },
                  { PWRITE, EIO, SL_OPERATOR }, { FSYNC, ENOSPC, SL_AGAIN },
                  { FSYNC, EIO, SL_OPERATOR },  { RENAME, EIO, SL_OPERATOR },
                  { RENAME, ENOSPC, SL_AGAIN } };
    int old = open_ok();
    struct stat before, after;
    assert_int_equal(fstat(old, &before), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int new = -1;
        uint64_t inode;
        bool named = false;
        faults.fail = cases[i].call;
        faults.with = cases[i].with;
        sl_rc rc = sl_jf_make(&new, path, 4096, &inode, &err);
        if (rc == SL_OK) {
            rc = sl_jf_replace(new, path, &named, &err);
            sl_jf_abandon(new, path);
        }
        assert_int_equal(rc, cases[i].rc);
        assert_false(named);
        assert_non_null(strstr(err.text, strerror(cases[i].with)));
        assert_false(there(".new"));
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_ino, before.st_ino);
    }
    close(old);
}

/* A name that is not synced is no name: that is for the operator, also if the disk is only full. */
static void a_folder_that_cannot_be_synced(void **state)
{
    (void)state;
    static const int with[] = { EIO, ENOSPC, EINVAL };
    for (size_t i = 0; i < COUNT(with); i++) {
        int old = open_ok(), new = -1;
        uint64_t inode;
        bool named = false;
        assert_int_equal(sl_jf_make(&new, path, 1024, &inode, &err), SL_OK);
        faults.fail = FSYNC;
        faults.with = with[i];
        faults.after = 1; /* that of the file */
        assert_int_equal(sl_jf_replace(new, path, &named, &err), SL_OPERATOR);
        assert_int_equal(err.rc, SL_OPERATOR);
        assert_true(named);
        assert_non_null(strstr(err.text, "cannot sync its folder"));
        no_faults();
        close(old);
        close(new);
    }
}

static void a_short_write_is_a_failure(void **state)
{
    (void)state;
    int fd = open_ok();
    faults.fail = PWRITE;
    assert_int_equal(sl_jf_write(fd, path, "0123456789", 10, 0, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "only 5 of 10 bytes"));
    close(fd);
}

static void damaged_files_are_kept_beside_each_other(void **state)
{
    (void)state;
    static const char *const ends[] = { ".bad", ".bad.2", ".bad.3" };
    close(open_ok());
    for (size_t i = 0; i < COUNT(ends); i++) {
        char *name = NULL;
        assert_int_equal(sl_jf_keep(path, &name, &err), SL_OK);
        assert_string_equal(name + strlen(path), ends[i]);
        assert_true(there(ends[i]));
        free(name);
    }
    assert_true(there(""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_a_journal),
        TEST(where_nothing_may_be_written),
        TEST(one_at_a_time),
        TEST(the_lock_is_on_the_file_that_has_the_name),
        TEST(the_order_of_syncs),
        TEST(what_a_dead_process_left_is_removed),
        TEST(a_new_file_that_fails_leaves_no_trace),
        TEST(a_folder_that_cannot_be_synced),
        TEST(a_short_write_is_a_failure),
        TEST(damaged_files_are_kept_beside_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
