/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Would the permuter notice? Claims that are known to be wrong run on it, two or three workers,
 * statement by statement, and for each there must be a schedule that shows it; for their right
 * counterparts there must be none.
 */
#include "sql/permuted.h"

/* ---- Claims that are wrong, and their counterparts ---- */

static int setup_2(void **state)
{
    (void)state;
    return open_all(2);
}

static int setup_3(void **state)
{
    (void)state;
    return open_all(3);
}

static int setup_4(void **state)
{
    (void)state;
    return open_all(4);
}

/* A deadlock is a turn in vain; nothing else may fail. */
static void note_failure(perm_session *s, sl_rc rc)
{
    const sl_err *err = &workers[s->number].err;
    if (rc != SL_OK && !strstr(err->text, "(SQLSTATE 40P01)"))
        failure = *err;
}

static const bad_claim *claim;

static void reset_bad(perm *unused)
{
    (void)unused;
    testdb_exec(&t,
                "DELETE FROM sluice_outbox; INSERT INTO sluice_outbox (id, topic, "
                "entity_key, payload) SELECT i, 'race', 'k0', '' FROM generate_series(1, 3) i; "
                "UPDATE sluice_outbox_leases SET ends_at = '-infinity', epoch = 0");
    watch_reset(&seen);
    total = 3;
    expiries = 0;
}

static void work(perm_session *s, bool in_transaction)
{
    worker *w = &workers[s->number];
    sl_batch_reset(&w->batch);
    s->before = ask;
    sl_rc rc = in_transaction ? bad_tx(w, "tx/begin") : SL_OK;
    if (rc == SL_OK)
        rc = claim->take(claim, w, in_transaction ? s->number : 60000000);
    if (rc == SL_OK && in_transaction)
        rc = bad_tx(w, "tx/commit");
    note_failure(s, rc);
    if (rc != SL_OK || w->batch.count == 0)
        return;
    if (hold_and_send(s))
        note_failure(s, claim->settle(claim, w));
}

/* Claims of one statement, so that the claim can be halted before it is committed. */
static void work_in_transaction(perm_session *s)
{
    work(s, true);
}

static void work_by_itself(perm_session *s)
{
    work(s, false);
}

static bool wrong_or_lost(perm *unused)
{
    (void)unused;
    if (failure.rc != SL_OK)
        fail_msg("%s: %s", sl_buf_text(&p.trace), failure.text);
    return seen.concurrent || seen.disorder || seen.doubled ||
           testdb_count(&t) + seen.distinct != total;
}

static void run_case(const bad_claim *c, perm_case what)
{
    claim = c;
    what.name = c->name;
    what.reset = what.reset ? what.reset : reset_bad;
    what.violated = what.violated ? what.violated : wrong_or_lost;
    what.preemptions = what.preemptions ? what.preemptions : PERM_ANY;
    perm_all(&p, &what);
}

static void skip_locked_alone_is_found(void **state)
{
    (void)state;
    run_case(&bad_skip, (perm_case){ .bodies = { work_in_transaction, work_in_transaction },
                                     .find = true });
}

static void a_guard_in_the_claim_is_found(void **state)
{
    (void)state;
    run_case(&bad_guard, (perm_case){ .bodies = { work_in_transaction, work_in_transaction },
                                      .find = true });
}

static void a_lock_released_before_the_send_is_found(void **state)
{
    (void)state;
    run_case(&bad_lock_then_send,
             (perm_case){ .bodies = { work_by_itself, work_by_itself }, .find = true });
}

/* Halted between snapshot and lock. */
static sl_rc take_gated(const bad_claim *c, worker *w, int64_t extra)
{
    bad_stmt s = { 0, "claim", c->claim, 3, { SL_T_INT8, SL_T_TEXT, SL_T_INT8 } };
    sl_val in[] = { sl_int(extra) };
    return bad_run(w, &s, in, 1, bad_note, &w->batch, NULL);
}

static const bad_claim gated_lock_and_guard = {
    "lock and guard in one statement",
    BAD_ONE(BAD_GUARD "AND CASE WHEN sluice_outbox_gate($1) THEN "
                      "pg_try_advisory_xact_lock(hashtextextended(o.entity_key, 0)) END "),
    BAD_DELETE, take_gated, bad_delete
};

static void lock_and_guard_in_one_statement_is_found(void **state)
{
    (void)state;
    run_case(&gated_lock_and_guard,
             (perm_case){ .bodies = { work_in_transaction, work_in_transaction },
                          .gates = true,
                          .find = true });
}

static void lock_then_guard_and_head_shows_nothing(void **state)
{
    (void)state;
    run_case(&good_lock, (perm_case){ .bodies = { work_by_itself, work_by_itself } });
}

static void a_lease_for_each_key_shows_nothing(void **state)
{
    (void)state;
    run_case(&good_lease,
             (perm_case){ .bodies = { work_by_itself, work_by_itself, work_by_itself } });
}

/* ---- Leases that end ---- */

static void all_leases_end(perm_session *s)
{
    static const bad_stmt end = { 4,
                                  "leases end",
                                  "UPDATE sluice_outbox_leases l SET ends_at = "
                                  "clock_timestamp() WHERE l.ends_at > clock_timestamp()",
                                  0,
                                  { 0 } };
    note_failure(s, bad_run(&workers[s->number], &end, NULL, 0, NULL, NULL, NULL));
    expiries++;
    watch_expired(&seen, UINT64_MAX);
}

static void a_settle_without_an_epoch_is_found(void **state)
{
    (void)state;
    run_case(&bad_no_epoch, (perm_case){ .bodies = { work_by_itself, work_by_itself,
                                                     work_by_itself, all_leases_end },
                                         .violated = wrong,
                                         .preemptions = 2,
                                         .find = true });
}

static void a_settle_with_an_epoch_shows_nothing(void **state)
{
    (void)state;
    run_case(&good_lease, (perm_case){ .bodies = { work_by_itself, work_by_itself,
                                                   work_by_itself, all_leases_end },
                                       .violated = wrong,
                                       .preemptions = 2 });
}

/* ---- Lanes ---- */

static const bad_stmt lane_join = {
    0,
    "join",
    "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, "
    "lives_until) VALUES ($1, 'n', 'lanes', 'ring', 1, $1, 'infinity')",
    0,
    { 0 }
};
static const bad_stmt lane_lock = {
    1,
    "lock",
    "SELECT l.lane::bigint + 0 * $1 FROM sluice_outbox_lanes l WHERE l.lane = 0 FOR UPDATE",
    1,
    { SL_T_INT8 }
};
static const bad_stmt lane_take = {
    2,
    "take over",
    "UPDATE sluice_outbox_lanes l SET owner = $1, epoch = l.epoch + 1 WHERE l.lane = 0 AND "
    "(l.owner IS NULL OR l.owner NOT IN (SELECT n.session FROM sluice_outbox_nodes n))",
    0,
    { 0 }
};
static const bad_stmt lane_release = {
    3,
    "release",
    "UPDATE sluice_outbox_lanes l SET owner = NULL WHERE l.lane = 0 AND l.owner = $1",
    0,
    { 0 }
};

static void reset_lane(perm *unused)
{
    (void)unused;
    testdb_exec(&t,
                "DELETE FROM sluice_outbox_nodes; UPDATE sluice_outbox_lanes SET owner = 99 "
                "WHERE lane = 0");
    watch_reset(&seen);
}

/* Registers and takes lane 0, whose last owner is dead; a lane is a key for the watch. */
static void own_lane(perm_session *s, bool lock_first)
{
    worker *w = &workers[s->number];
    sl_val in[] = { sl_int(s->number + 1) };
    int64_t got = 0;
    sl_batch_reset(&w->batch);
    sl_rc rc = bad_tx(w, "tx/begin");
    if (rc == SL_OK)
        rc = bad_run(w, &lane_join, in, 1, NULL, NULL, NULL);
    if (rc == SL_OK && lock_first)
        rc = bad_run(w, &lane_lock, in, 1, NULL, NULL, NULL);
    if (rc == SL_OK)
        rc = bad_run(w, &lane_take, in, 1, NULL, NULL, &got);
    if (rc == SL_OK)
        rc = bad_tx(w, "tx/commit");
    note_failure(s, rc);
    if (rc != SL_OK || got == 0)
        return;
    sl_batch_add(&w->batch)->key = SL_STR("k0");
    watch_taken(&seen, s->number, &w->batch);
    s->before = give_up;
    note_failure(s, bad_run(w, &lane_release, in, 1, NULL, NULL, NULL));
}

static void own_at_once(perm_session *s)
{
    own_lane(s, false);
}

static void own_after_lock(perm_session *s)
{
    own_lane(s, true);
}

static const bad_claim lane_at_once = { .name = "lane taken over in one statement" };
static const bad_claim lane_after_lock = { .name = "lane locked, then taken over" };

static void a_takeover_in_one_statement_is_found(void **state)
{
    (void)state;
    run_case(&lane_at_once, (perm_case){ .bodies = { own_at_once, own_at_once },
                                         .reset = reset_lane,
                                         .violated = wrong,
                                         .find = true });
}

static void a_takeover_after_the_lock_shows_nothing(void **state)
{
    (void)state;
    run_case(&lane_after_lock, (perm_case){ .bodies = { own_after_lock, own_after_lock },
                                            .reset = reset_lane,
                                            .violated = wrong });
}

/* ---- All ---- */

int main(void)
{
#define TEST(fn, n) cmocka_unit_test_setup_teardown(fn, setup_##n, close_all)
    const struct CMUnitTest wrong_ones[] = {
        TEST(skip_locked_alone_is_found, 2),
        TEST(a_guard_in_the_claim_is_found, 2),
        TEST(a_lock_released_before_the_send_is_found, 2),
        TEST(lock_and_guard_in_one_statement_is_found, 2),
        TEST(a_settle_without_an_epoch_is_found, 4),
        TEST(a_takeover_in_one_statement_is_found, 2),
        TEST(lock_then_guard_and_head_shows_nothing, 2),
        TEST(a_lease_for_each_key_shows_nothing, 3),
        TEST(a_settle_with_an_epoch_shows_nothing, 4),
        TEST(a_takeover_after_the_lock_shows_nothing, 2),
    };
    if (!testdb_has("postgres")) {
        print_message("needs PostgreSQL, by SL_TEST_PG\n");
        return TESTDB_SKIPPED;
    }
    watch_init(&seen);
    int failed = cmocka_run_group_tests_name("known claims", wrong_ones, NULL, NULL);
    watch_fini(&seen);
    return failed;
}
