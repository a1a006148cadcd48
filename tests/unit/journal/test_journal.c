/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal.h"

#include "unit/journal/journals.h"

static void a_new_journal_knows_nothing(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_replay *r = sl_journal_replayed(j);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    assert_true(r->fresh);
    assert_true(s.journal > 0);
    assert_int_equal(s.session, 1);
    assert_int_equal(fate(r, 1, s), SL_FATE_UNKNOWN);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 16 * SL_JB_BYTES);
    assert_true(st.st_blocks * 512 >= st.st_size); /* the space is taken, not only the size */
    sl_journal_close(j);
}

static void two_journals_have_two_identities(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    int64_t identity = sl_journal_stamp_now(j).journal;
    sl_journal_close(j);
    clear_folder();
    j = open_small(1);
    assert_true(sl_journal_stamp_now(j).journal != identity);
    sl_journal_close(j);
}

static void the_next_session_reads_what_the_last_one_wrote(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 1, 4);
    say(j, 1, 1, SL_JOURNAL_SENT);
    say(j, 2, 1, SL_JOURNAL_FAILED);
    say(j, 50, 1, SL_JOURNAL_SENT); /* never sent: passed over */
    say(j, 2, 1, SL_JOURNAL_SENT);  /* it has its verdict */
    sl_journal_close(j);

    j = open_small(2);
    sl_replay *r = sl_journal_replayed(j);
    assert_true(r->whole && !r->fresh);
    assert_int_equal(sl_journal_stamp_now(j).journal, s.journal);
    assert_int_equal(fate(r, 1, s), SL_FATE_SENT);
    assert_int_equal(fate(r, 2, s), SL_FATE_FAILED);
    assert_int_equal(fate(r, 3, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(r, 5, s), SL_FATE_NEVER_SENT);
    assert_int_equal(fate(r, 50, s), SL_FATE_NEVER_SENT);
    sl_journal_close(j);
}

/* A message that failed and is tried again is being sent again. */
static void the_last_word_counts(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 1, 1);
    say(j, 1, 1, SL_JOURNAL_FAILED);
    settle(j, 1, 1);
    must_send(j, 1, 1);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_int_equal(fate(&r, 1, s), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

static void a_position_never_goes_back(void **state)
{
    (void)state;
    int64_t was = -1;
    for (int64_t session = 1; session < 6; session++) {
        sl_journal *j = open_small(session);
        for (int64_t i = 0; i < 20; i++) {
            must_send(j, session * 100 + i, 1);
            settle(j, session * 100 + i, 1);
            int64_t now = sl_journal_stamp_now(j).position;
            assert_true(now > was);
            was = now;
        }
        assert_true(sl_journal_count(j).rotations > 0);
        sl_journal_close(j);
    }
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_int_equal(r.opened_count, 5);
    assert_int_equal(r.end, was);
    sl_replay_fini(&r);
}

/* What was not settled goes along, with its state, and so do the sessions. */
static void rotation_carries_what_is_outstanding(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s1 = sl_journal_stamp_now(j);
    must_send(j, 1, 40);
    say(j, 1, 1, SL_JOURNAL_SENT);
    say(j, 2, 1, SL_JOURNAL_FAILED);
    sl_journal_close(j);
    j = open_small(2);
    sl_journal_stamp s2 = sl_journal_stamp_now(j);
    uint64_t salt = sl_journal_replayed(j)->head.salt;
    must_send(j, 101, 3);
    say(j, 101, 1, SL_JOURNAL_SENT);
    say(j, 102, 1, SL_JOURNAL_FAILED);
    for (int64_t i = 1000; i < 1100; i++) {
        must_send(j, i, 1);
        settle(j, i, 1);
    }
    assert_true(sl_journal_count(j).rotations >= 2);
    assert_int_equal(sl_journal_count(j).outstanding, 3);
    sl_journal_close(j);

    sl_replay r = read_back();
    assert_true(r.whole && !r.torn);
    assert_true(r.head.rotations >= 2);
    assert_true(r.head.salt != salt);
    assert_int_equal(r.head.identity, s1.journal);
    for (int64_t base = 0; base <= 100; base += 100) {
        sl_journal_stamp s = base ? s2 : s1;
        assert_int_equal(fate(&r, base + 1, s), SL_FATE_SENT);
        assert_int_equal(fate(&r, base + 2, s), SL_FATE_FAILED);
        assert_int_equal(fate(&r, base + 3, s), SL_FATE_UNKNOWN);
        assert_int_equal(fate(&r, base + 50, s), SL_FATE_NEVER_SENT);
    }
    assert_int_equal(fate(&r, 40, s1), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

static void of_an_id_in_both_the_newer_is_carried(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    must_send(j, 1, 1);
    say(j, 1, 1, SL_JOURNAL_FAILED);
    sl_journal_close(j);
    j = open_small(2);
    must_send(j, 1, 1);
    for (int64_t i = 1000; sl_journal_count(j).rotations == 0; i++) {
        must_send(j, i, 1);
        settle(j, i, 1);
    }
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_int_equal(state_of(&r, 1), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);
}

static void more_than_the_file_holds_makes_it_larger_for_a_while(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    for (int64_t i = 0; i < 4; i++)
        must_send(j, i * 500, 500); /* 18 blocks each; the file has 16 */
    assert_true(sl_journal_count(j).file_bytes > 72 * SL_JB_BYTES);
    assert_int_equal(sl_journal_count(j).outstanding, 2000);
    sl_journal_close(j);
    j = open_small(2);
    assert_int_equal(sl_replay_count(sl_journal_replayed(j), SL_JOURNAL_SENDING), 2000);
    sl_journal_reconciled(j);
    while (sl_journal_count(j).rotations < 2) {
        must_send(j, 9000, 29 * 8);
        settle(j, 9000, 29 * 8);
    }
    assert_int_equal(sl_journal_count(j).file_bytes, 32 * SL_JB_BYTES);
    sl_journal_close(j);
}

/* From then on nothing is said of earlier sessions any more, nor carried. */
static void reconciled_is_forgotten(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s1 = sl_journal_stamp_now(j);
    must_send(j, 1, 10);
    sl_journal_close(j);
    j = open_small(2);
    sl_journal_stamp s2 = sl_journal_stamp_now(j);
    sl_journal_reconciled(j);
    assert_int_equal(fate(sl_journal_replayed(j), 1, s1), SL_FATE_UNKNOWN);
    assert_int_equal(fate(sl_journal_replayed(j), 99, s1), SL_FATE_UNKNOWN);
    for (int i = 0; i < 2; i++) { /* at once, and for good */
        sl_replay now = read_back();
        assert_true(now.whole);
        assert_int_equal(state_of(&now, 1), 0);
        sl_replay_fini(&now);
        while (i == 0 && sl_journal_count(j).rotations < 2)
            must_send(j, 1000, 1);
    }
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_int_equal(r.opened_count, 1);
    assert_int_equal(state_of(&r, 1), 0);
    assert_int_equal(fate(&r, 99, s1), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, 99, s2), SL_FATE_NEVER_SENT);
    sl_replay_fini(&r);
}

/* A node that starts and dies all day long. */
static void only_so_many_sessions_are_known(void **state)
{
    (void)state;
    int64_t last = 150;
    sl_journal_stamp s = { 0 };
    for (int64_t session = 1; session <= last; session++) {
        sl_journal *j = open_sized(session, 1 << 16);
        s = sl_journal_stamp_now(j);
        sl_journal_close(j);
    }
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_in_range(r.opened_count, 100, last - 1);
    assert_int_equal(fate(&r, 1, s), SL_FATE_NEVER_SENT);
    s.session = 1;
    assert_int_equal(fate(&r, 1, s), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

/* ---- What cannot be trusted ---- */

static void a_damaged_journal_is_kept_and_another_begun(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 1, 1);
    must_send(j, 2, 1);
    say(j, 2, 1, SL_JOURNAL_SENT);
    sl_journal_close(j);
    image im = load(path);
    im.p[2 * SL_JB_BYTES + 50] ^= 4; /* sending 1 */
    store(&im);

    j = open_small(2);
    sl_replay *r = sl_journal_replayed(j);
    assert_false(r->whole);
    assert_string_equal(r->why, "block 2 is damaged");
    assert_int_equal(fate(r, 1, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(r, 2, s), SL_FATE_SENT);
    assert_int_equal(fate(r, 3, s), SL_FATE_UNKNOWN);
    sl_journal_stamp s2 = sl_journal_stamp_now(j);
    assert_true(s2.journal != s.journal);
    must_send(j, 9, 1);
    while (sl_journal_count(j).rotations == 0)
        must_send(j, 10, 1);
    sl_journal_close(j);

    sl_replay now = read_back(); /* nothing of the old one, whatever rotates */
    assert_true(now.whole);
    assert_int_equal(state_of(&now, 2), 0);
    assert_int_equal(fate(&now, 3, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&now, 9, s2), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&now, 3, s2), SL_FATE_NEVER_SENT);
    sl_replay_fini(&now);
    char *bad = sl_asprintf("%s.bad", path);
    image kept = load(bad);
    assert_memory_equal(kept.p, im.p, im.n);
    free(kept.p);
    free(im.p);
    free(bad);
}

static void an_older_copy_in_its_place_is_noticed(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    must_send(j, 1, 1);
    image old = load(path);
    must_send(j, 2, 1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 3, 1);
    sl_journal_close(j);
    store(&old); /* the disk of yesterday: even the inode is right */
    free(old.p);

    j = open_small(2);
    sl_err err = { 0 };
    assert_true(sl_journal_replayed(j)->whole);
    assert_int_equal(sl_journal_expect(j, &s, &err), SL_OK);
    assert_false(sl_journal_replayed(j)->whole);
    assert_int_equal(fate(sl_journal_replayed(j), 3, s), SL_FATE_UNKNOWN);
    assert_true(sl_journal_stamp_now(j).journal != s.journal);
    must_send(j, 9, 1);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole);
    assert_int_equal(fate(&r, 3, s), SL_FATE_UNKNOWN);
    sl_replay_fini(&r);
}

static void one_that_was_deleted_is_noticed(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 1, 1);
    sl_journal_close(j);
    clear_folder();
    j = open_small(2);
    assert_int_equal(fate(sl_journal_replayed(j), 2, s), SL_FATE_UNKNOWN);
    sl_journal_close(j);
    j = open_small(3);
    assert_int_equal(fate(sl_journal_replayed(j), 2, s), SL_FATE_UNKNOWN);
    sl_journal_close(j);
}

/* What was being written when the process died is cut out, and what follows is whole again. */
static void after_a_tear_the_file_is_made_anew(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    sl_journal_stamp s = sl_journal_stamp_now(j);
    must_send(j, 1, 1);
    must_send(j, 2, 60);
    sl_journal_close(j);
    image im = load(path);
    memset(im.p + 4 * SL_JB_BYTES, 0, SL_JB_BYTES); /* the second of three blocks */
    store(&im);
    free(im.p);
    j = open_small(2);
    assert_true(sl_journal_replayed(j)->whole && sl_journal_replayed(j)->torn);
    assert_int_equal(sl_journal_count(j).rotations, 1);
    assert_int_equal(sl_journal_stamp_now(j).journal, s.journal);
    must_send(j, 100, 1);
    must_send(j, 101, 1);
    sl_journal_close(j);
    sl_replay r = read_back();
    assert_true(r.whole && !r.torn);
    assert_int_equal(fate(&r, 1, s), SL_FATE_UNKNOWN);
    assert_int_equal(fate(&r, 2, s), SL_FATE_NEVER_SENT);
    sl_replay_fini(&r);
}

static void another_node_is_refused(void **state)
{
    (void)state;
    sl_journal_close(open_small(1));
    image before = load(path);
    refuse_open("n2", SL_OPERATOR, "is that of node 'n1', not of 'n2'");
    refuse_open("", SL_REFUSED, "a node's name");
    image after = load(path);
    assert_memory_equal(after.p, before.p, before.n);
    free(before.p);
    free(after.p);
}

static void a_second_process_is_refused(void **state)
{
    (void)state;
    sl_journal *j = open_small(1);
    refuse_open("n1", SL_OPERATOR, "in use by another process");
    pid_t pid = fork();
    if (pid == 0) {
        sl_journal *k = NULL;
        sl_err err = { 0 };
        sl_journal_conf conf = { path, "n1", 7, 1 };
        _exit(sl_journal_open(&k, &conf, &err) == SL_OPERATOR && strstr(err.text, "in use")
                  ? 7
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    while (sl_journal_count(j).rotations == 0)
        must_send(j, 1, 1);
    refuse_open("n1", SL_OPERATOR, "in use by another process"); /* the new file, too */
    sl_journal_close(j);
    sl_journal_close(open_small(2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_journal_knows_nothing),
        TEST(two_journals_have_two_identities),
        TEST(the_next_session_reads_what_the_last_one_wrote),
        TEST(the_last_word_counts),
        TEST(a_position_never_goes_back),
        TEST(rotation_carries_what_is_outstanding),
        TEST(of_an_id_in_both_the_newer_is_carried),
        TEST(more_than_the_file_holds_makes_it_larger_for_a_while),
        TEST(reconciled_is_forgotten),
        TEST(only_so_many_sessions_are_known),
        TEST(a_damaged_journal_is_kept_and_another_begun),
        TEST(an_older_copy_in_its_place_is_noticed),
        TEST(one_that_was_deleted_is_noticed),
        TEST(after_a_tear_the_file_is_made_anew),
        TEST(another_node_is_refused),
        TEST(a_second_process_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
