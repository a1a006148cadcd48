/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a message that may be in flight, step by step; the rest is in tests/e2e/test_keys.py. Rows are made by
 * hand, as nodes of each strategy would leave them. */
#include "cli/keys.h"

#include "core/clock.h"
#include "support/testdb.h"

static testdb t;
static const char *dialect;
static sl_db *db;

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    testdb_drop(&t);
    return 0;
}

/* SQL of both dialects: @never, @now, @later, @true and @false are replaced. */
static void sql(const char *text)
{
    static const char *const words[][3] = {
        { "@never", "'infinity'", "'9999-12-31 23:59:59.999'" },
        { "@now", "clock_timestamp()", "strftime('%Y-%m-%d %H:%M:%f', 'now')" },
        { "@later", "(clock_timestamp() + interval '1 hour')",
          "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour')" },
        { "@true", "true", "1" },
        { "@false", "false", "0" },
    };
    sl_buf out = { 0 };
    for (const char *p = text; *p;) {
        size_t i = 0;
        while (i < 5 && strncmp(p, words[i][0], strlen(words[i][0])) != 0)
            i++;
        if (i < 5) {
            sl_buf_puts(&out, words[i][t.pg ? 1 : 2]);
            p += strlen(words[i][0]);
        } else {
            sl_buf_putc(&out, *p++);
        }
    }
    testdb_exec(&t, sl_buf_text(&out));
    sl_buf_fini(&out);
}

/* Three messages of key 'k', the first of which failed once and is due; a node owns all lanes. */
static void make(const char *held)
{
    char text[256];
    snprintf(text, sizeof text,
             "INSERT INTO sluice_outbox (topic, entity_key, payload, attempts, held) VALUES "
             "('t', 'k', 'p', 1, %s), ('t', 'k', 'p', 0, %s), ('t', 'k', 'p', 0, %s)",
             held, held, held);
    sql(text);
    sql("INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, "
        "lives_until) VALUES (7, 'n1', 'lanes', 'ring', 1, 1, @later)");
    sql("UPDATE sluice_outbox_lanes SET owner = 7, epoch = 1");
    if (t.pg)
        sql("SELECT setval('sluice_outbox_epoch', 1)");
    else
        sql("UPDATE sluice_outbox_meta SET value = '1' WHERE name = 'epoch'");
}

static void block(void)
{
    sql("INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at, reason) SELECT "
        "entity_key, lane, id, available_at, 'why' FROM sluice_outbox WHERE id = 1");
}

static void park(void)
{
    sl_err err = { 0 };
    bool parked;
    assert_int_equal(sl_keys_park(db, &t.names, SL_STR("k"), SL_NONE, &parked, &err), SL_OK);
    assert_true(parked);
}

/* Tries once. The error's text, or NULL. */
static const char *skip_head(int64_t id)
{
    static sl_err err;
    sl_key_skip s = { .db = db, .names = &t.names, .key = SL_STR("k"), .id = id };
    sl_rc rc = sl_keys_skip(&s, &err);
    return rc == SL_OK ? NULL : err.text;
}

static void assert_busy(const char *who)
{
    const char *why = skip_head(1);
    assert_non_null(why);
    if (!strstr(why, "may be in flight") || !strstr(why, who))
        fail_msg("%s", why);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox"), 3);
}

static void assert_skipped(void)
{
    const char *why = skip_head(1);
    if (why)
        fail_msg("%s", why);
    assert_int_equal(testdb_int(&t, "SELECT id FROM sluice_outbox_dead"), 1);
    assert_int_equal(testdb_int(&t, "SELECT min(id) FROM sluice_outbox"), 2);
}

static bool due_or_gone(void)
{
    return testdb_int(&t, t.pg ? "SELECT count(*) FROM sluice_outbox_keys WHERE due_at > "
                                 "clock_timestamp()"
                               : "SELECT count(*) FROM sluice_outbox_keys WHERE due_at > "
                                 "strftime('%Y-%m-%d %H:%M:%f', 'now')") == 0;
}

/* ---- Blocked ---- */

static void due_it_may_be_in_flight(void **state)
{
    (void)state;
    make("@true");
    block();
    assert_busy("node n1");
    assert_true(due_or_gone()); /* it was not left parked */
}

static void scheduled_for_later_nobody_has_it(void **state)
{
    (void)state;
    make("@true");
    sql("UPDATE sluice_outbox SET available_at = @later WHERE id = 1");
    block();
    assert_skipped();
    assert_true(due_or_gone());
}

static void without_an_owner_nobody_has_it(void **state)
{
    (void)state;
    make("@true");
    block();
    sql("DELETE FROM sluice_outbox_nodes");
    assert_skipped();
}

static void a_node_whose_time_is_over_is_pruned(void **state)
{
    (void)state;
    make("@true");
    block();
    park();
    assert_busy("node n1");
    sql("UPDATE sluice_outbox_nodes SET lives_until = @now");
    assert_skipped();
}

/* ---- Parked by hand ---- */

static void parked_while_due_it_is_in_doubt_until_it_is_settled(void **state)
{
    (void)state;
    make("@true");
    block();
    park();
    assert_busy("node n1");
    sql("UPDATE sluice_outbox SET attempts = 2 WHERE id = 1"); /* a retry, already due again */
    assert_skipped();
    assert_false(due_or_gone());
    /* What stands behind it was held, too, and is none that was in doubt. */
    assert_null(skip_head(2));
}

static void not_held_it_is_in_doubt_until_it_is(void **state)
{
    (void)state;
    make("@false");
    park();
    assert_busy("node n1");
    sql("UPDATE sluice_outbox SET held = @true"); /* by the next turn of the lane */
    assert_skipped();
}

static void a_later_epoch_has_never_seen_it(void **state)
{
    (void)state;
    make("@false");
    park();
    assert_busy("node n1");
    sql("UPDATE sluice_outbox_lanes SET epoch = 3");
    assert_skipped();
}

/* As if the command had died between its two transactions: no epoch is late enough. */
static void without_its_fence_no_epoch_is_later(void **state)
{
    (void)state;
    make("@true");
    block();
    park();
    sql("UPDATE sluice_outbox_keys SET fence = 9223372036854775807");
    sql("UPDATE sluice_outbox_lanes SET epoch = 1000");
    assert_busy("node n1");
}

/* By SQL of someone's own: nothing is known of that moment. */
static void parked_by_other_means_only_its_time_counts(void **state)
{
    (void)state;
    make("@true");
    block();
    sql("UPDATE sluice_outbox_keys SET due_at = @never");
    assert_busy("node n1");
    sql("UPDATE sluice_outbox SET available_at = @never WHERE id = 1");
    assert_skipped();
    assert_true(due_or_gone());
}

/* ---- Other strategies ---- */

static void a_turn_of_guard_has_it(void **state)
{
    (void)state;
    make("@true");
    block();
    sql("DELETE FROM sluice_outbox_nodes");
    sql(t.pg ? "INSERT INTO sluice_outbox_claims VALUES (5, @later, 1, 'n2/3', '{kk,kother}')"
             : "INSERT INTO sluice_outbox_claims VALUES ('kk', 5, @later, 1, 'n2/3')");
    assert_busy("worker n2/3");
    park();
    assert_busy("worker n2/3");
    sql("UPDATE sluice_outbox_claims SET ends_at = @now");
    assert_skipped();
    /* Who comes late cannot settle by that key any more. */
    assert_int_equal(
        testdb_int(&t, t.pg
                           ? "SELECT count(*) FROM sluice_outbox_claims WHERE 'kk' = ANY (keys)"
                           : "SELECT count(*) FROM sluice_outbox_claims"),
        0);
}

static void a_lease_of_skip_locked_has_it(void **state)
{
    (void)state;
    make("@true");
    block();
    sql("DELETE FROM sluice_outbox_nodes");
    sql("UPDATE sluice_outbox SET leased_until = @later, worker = 'n3/1' WHERE id = 1");
    assert_busy("worker n3/1");
    sql("UPDATE sluice_outbox SET leased_until = NULL WHERE id = 1");
    assert_skipped();
}

static void an_open_transaction_has_the_key(void **state)
{
    (void)state;
    sl_err err = { 0 };
    if (!t.pg)
        return; /* there it is the write transaction, and is waited for */
    make("@true");
    block();
    sql("DELETE FROM sluice_outbox_nodes");
    sl_db *other = testdb_open(&t);
    sl_str key = SL_STR("kk");
    sl_val in = sl_texts(&key, 1);
    sl_call calls[] = { { .stmt = sl_db_stmt(other, "tx/begin") },
                        { .stmt = sl_db_stmt(other, "keyed/lock"), .in = &in } };
    assert_int_equal(other->ops->run(other, calls, 2, &err), SL_OK);
    assert_busy("a worker");
    other->ops->rollback(other);
    assert_skipped();
    sl_db_close(other);
}

/* ---- Not what was meant ---- */

static void another_head_is_not_skipped(void **state)
{
    (void)state;
    make("@true");
    block();
    assert_non_null(strstr(skip_head(2), "is not the first of its key: that is message 1"));
    sql("DELETE FROM sluice_outbox");
    assert_non_null(strstr(skip_head(1), "is gone"));
    sql("DELETE FROM sluice_outbox_keys");
    assert_non_null(strstr(skip_head(1), "is gone"));
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
}

static size_t steps;
static void note_step(void *ctx, size_t seen)
{
    (void)ctx;
    (void)seen;
    steps++;
}

static void many_are_resumed_in_chunks(void **state)
{
    (void)state;
    sl_err err = { 0 };
    sl_key_refs refs = { 0 };
    sql(t.pg ? "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT 'k' || "
               "i, "
               "0, 0, 'infinity' FROM generate_series(1, 1201) AS s (i)"
             : "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) WITH RECURSIVE "
               "s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1201) SELECT 'k' || "
               "i, 0, 0, @never FROM s");
    assert_int_equal(
        sl_keys_find(&refs, db, &(sl_keys_filter){ .state = SL_KEYS_PARKED }, &err), SL_OK);
    assert_int_equal(refs.count, 1201);
    sql("DELETE FROM sluice_outbox_keys WHERE entity_key = 'k7'"); /* someone else was faster */
    steps = 0;
    sl_keys_job job = { .db = db, .resume = true, .step = note_step };
    assert_int_equal(sl_keys_move(&job, &refs, &err), SL_OK);
    assert_int_equal(job.keys, 1200);
    assert_int_equal(steps, 3);
    assert_true(due_or_gone());
    sl_key_refs_fini(&refs);
}

static int group(const char *on)
{
    dialect = on;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(due_it_may_be_in_flight),
        TEST(scheduled_for_later_nobody_has_it),
        TEST(without_an_owner_nobody_has_it),
        TEST(a_node_whose_time_is_over_is_pruned),
        TEST(parked_while_due_it_is_in_doubt_until_it_is_settled),
        TEST(not_held_it_is_in_doubt_until_it_is),
        TEST(a_later_epoch_has_never_seen_it),
        TEST(without_its_fence_no_epoch_is_later),
        TEST(parked_by_other_means_only_its_time_counts),
        TEST(a_turn_of_guard_has_it),
        TEST(a_lease_of_skip_locked_has_it),
        TEST(an_open_transaction_has_the_key),
        TEST(another_head_is_not_skipped),
        TEST(many_are_resumed_in_chunks),
    };
    return cmocka_run_group_tests_name(on, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(group);
}
