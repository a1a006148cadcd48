/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settle and a takeover at the same moment, on PostgreSQL, where statements overlap: each of them is
 * stopped in the middle, by a lock of another session, while the other one comes.
 */
#include "contract/ordered.h"

#include <pthread.h>

static void *settle_main(void *arg)
{
    worker *w = arg;
    sl_batch_settle_rest(&w->batch, SL_SENT, SL_NONE);
    if (w->claim->ops->settle(w->claim, &w->batch, &w->lost, &w->err) != SL_OK)
        w->lost = SIZE_MAX;
    return NULL;
}

/* Its statement has begun, has seen that the claim is its own, and waits for a row. Whoever takes over
 * then has to wait until it is through: else it would read messages that are deleted a moment later, and
 * send them behind their successors. */
static void a_takeover_waits_for_a_settle_that_has_begun(void **state)
{
    (void)state;
    pthread_t thread;
    testdb_push(&t, "x", 3);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 3);
    sl_db *reader = testdb_open(&t);
    testdb_script(reader, &t.names,
                  "BEGIN; SELECT id FROM sluice_outbox WHERE id = 2 FOR UPDATE");
    assert_int_equal(pthread_create(&thread, NULL, settle_main, &a), 0);
    bool waits = testdb_waits_for_lock(&t);
    int64_t could_be_had =
        testdb_int(&t, lanes() ? "SELECT count(*) FROM (SELECT FROM sluice_outbox_lanes WHERE "
                                 "lane IN (SELECT lane FROM sluice_outbox) FOR UPDATE SKIP "
                                 "LOCKED) l"
                               : "SELECT count(*) FROM (SELECT FROM sluice_outbox_claims FOR "
                                 "UPDATE SKIP LOCKED) c");
    testdb_script(reader, &t.names, "COMMIT");
    pthread_join(thread, NULL);
    sl_db_close(reader);
    assert_true(waits);
    assert_int_equal(could_be_had, 0);
    assert_int_equal(a.lost, 0);
    assert_int_equal(testdb_count(&t), 0);
}

/* The same the other way round: a takeover that has begun is waited for, and has won. */
static void a_settle_waits_for_a_takeover_that_has_begun(void **state)
{
    (void)state;
    pthread_t thread;
    testdb_push(&t, "x", 3);
    testdb_push(&t, "y", 1);
    open_worker(&a);
    assert_int_equal(worker_take(&a, ALL), 4);
    sl_db *rival = testdb_open(&t);
    testdb_script(rival, &t.names, "BEGIN");
    testdb_script(rival, &t.names,
                  lanes() ? "UPDATE sluice_outbox_lanes SET epoch = epoch + 1000 WHERE lane IN "
                            "(SELECT lane FROM sluice_outbox WHERE entity_key = 'x')"
                          : "UPDATE sluice_outbox_claims SET keys = array_remove(keys, 'kx')");
    assert_int_equal(pthread_create(&thread, NULL, settle_main, &a), 0);
    bool waits = testdb_waits_for_lock(&t);
    testdb_script(rival, &t.names, "COMMIT");
    pthread_join(thread, NULL);
    sl_db_close(rival);
    assert_true(waits);
    assert_int_equal(a.lost, 3);
    testdb_expect(&t, "1\n2\n3", "SELECT CAST(id AS text) FROM sluice_outbox ORDER BY id");
}

static int run_group(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_takeover_waits_for_a_settle_that_has_begun),
        TEST(a_settle_waits_for_a_takeover_that_has_begun),
    };
    if (strategy->in_transaction) /* nobody can take over */
        return 0;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_has("postgres") ? ordered_on("postgres", run_group) : TESTDB_SKIPPED;
}
