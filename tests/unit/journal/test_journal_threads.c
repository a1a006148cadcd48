/* SPDX-License-Identifier: Apache-2.0 */
/* Many workers, one journal. */
#include "journal/journal.h"

#include "unit/journal/journals.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 8, ROUNDS = 2000 };

static sl_journal *shared;

/* ---- One sync for those who wait ---- */

static _Atomic int written, written_at_first, refused;

static void count_write(int fd, const void *p, size_t n, off_t at)
{
    (void)fd, (void)p, (void)n, (void)at;
    written++;
}

/* The first sync lasts until everybody has written. If nobody can write meanwhile, it ends all the same. */
static void hold_sync(void)
{
    int64_t limit_ns = sl_now_ns() + 10 * SL_SEC;
    if (!written_at_first)
        written_at_first = written;
    while (written < THREADS && sl_now_ns() < limit_ns)
        sched_yield();
}

static void *send_one(void *id)
{
    sl_err err = { 0 };
    if (sending(shared, *(int64_t *)id, 1, &err) != SL_OK)
        refused++;
    return NULL;
}

static void all_send_one(void)
{
    pthread_t threads[THREADS];
    int64_t ids[THREADS];
    written = written_at_first = refused = 0;
    faults.wrote = count_write;
    faults.before_sync = hold_sync;
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, send_one, &ids[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void one_sync_serves_all_that_wait(void **state)
{
    (void)state;
    shared = open_small(1);
    all_send_one();
    sl_journal_counts c = sl_journal_count(shared);
    assert_int_equal(refused, 0);
    assert_int_equal(c.records, THREADS);
    /* Those that wrote during the first share the second: it does not count for them. */
    assert_in_range(c.syncs, written_at_first < THREADS ? 2 : 1, 2);
    no_faults();
    sl_journal_close(shared);
    sl_replay r = read_back();
    for (int64_t i = 1; i <= THREADS; i++)
        assert_int_equal(state_of(&r, i), SL_JOURNAL_SENDING);
    sl_replay_fini(&r);
}

static void a_failed_sync_is_the_end_for_all(void **state)
{
    (void)state;
    shared = open_small(1);
    faults.fail = FDATASYNC;
    faults.with = EIO;
    all_send_one();
    assert_int_equal(refused, THREADS);
    assert_int_equal(sl_journal_count(shared).syncs, 1); /* never tried again */
    no_faults();
    sl_err err = { 0 };
    assert_int_equal(sending(shared, 99, 1, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "cannot sync"));
    assert_int_equal(sl_journal_room(shared, 1, &err), SL_OPERATOR);
    assert_string_equal(faults.trace, "");
    sl_journal_close(shared);
}

/* ---- All day long ---- */

/* Each thread has ids of its own. Of four messages one gets no verdict, one is sent, one fails, and one is
 * sent and settled. */
static void *work(void *base)
{
    for (int64_t i = 0; i < ROUNDS; i++) {
        int64_t id = *(int64_t *)base + i;
        sl_err err = { 0 };
        if (sl_journal_room(shared, 1, &err) != SL_OK ||
            sending(shared, id, 1, &err) != SL_OK) {
            refused++;
            return NULL;
        }
        if (i % 4)
            say(shared, id, 1, i % 4 == 2 ? SL_JOURNAL_FAILED : SL_JOURNAL_SENT);
        if (i % 4 == 3)
            settle(shared, id, 1);
        if (i % 100 == 0)
            (void)sl_journal_stamp_now(shared);
    }
    return NULL;
}

static void expect_work(const sl_replay *r, int64_t base)
{
    for (int64_t i = 0; i < ROUNDS; i++) {
        int s = state_of(r, base + i);
        if (i % 4 == 0)
            assert_int_equal(s, SL_JOURNAL_SENDING);
        else if (i % 4 == 2)
            assert_int_equal(s, SL_JOURNAL_FAILED);
        else if (i % 4 == 1 || s != 0)
            assert_int_equal(s, SL_JOURNAL_SENT);
    }
}

static void nothing_gets_lost_among_many(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int64_t bases[THREADS];
    shared = open_sized(1, 1 << 20);
    refused = 0;
    int64_t begun_ns = sl_now_ns();
    for (int i = 0; i < THREADS; i++) {
        bases[i] = (i + 1) * 1000000;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &bases[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(sl_now_ns() - begun_ns) / 1e9;
    sl_journal_counts c = sl_journal_count(shared);
    assert_int_equal(refused, 0);
    print_message("%d threads: %.0f sendings/s, %.0f records/s; %llu records, %llu syncs, %llu "
                  "rotations in %.1f s\n",
                  THREADS, THREADS * ROUNDS / seconds, (double)c.records / seconds,
                  (unsigned long long)c.records, (unsigned long long)c.syncs,
                  (unsigned long long)c.rotations, seconds);
    assert_int_equal(c.records, THREADS * (ROUNDS + ROUNDS * 3 / 4));
    assert_int_equal(c.outstanding, THREADS * ROUNDS * 3 / 4);
    assert_true(c.rotations > 2);
    assert_true(c.syncs < THREADS * ROUNDS);
    sl_journal_close(shared);

    sl_replay r = read_back();
    assert_true(r.whole && !r.torn);
    for (int i = 0; i < THREADS; i++)
        expect_work(&r, bases[i]);
    sl_replay_fini(&r);
}

static void alone_for_comparison(void **state)
{
    (void)state;
    sl_journal *j = open_sized(1, 1 << 20);
    int64_t begun_ns = sl_now_ns();
    for (int64_t i = 0; i < ROUNDS; i++) {
        must_send(j, i, 1);
        settle(j, i, 1);
    }
    print_message("1 thread: %.0f sendings/s\n",
                  ROUNDS / ((double)(sl_now_ns() - begun_ns) / 1e9));
    assert_int_equal(sl_journal_count(j).records, ROUNDS);
    sl_journal_close(j);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_sync_serves_all_that_wait),
        TEST(a_failed_sync_is_the_end_for_all),
        TEST(nothing_gets_lost_among_many),
        TEST(alone_for_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
