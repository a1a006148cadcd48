/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dead.h"

#include "support/testdb.h"

static testdb t;
static const char *dialect;
static sl_db *db;

/* What a job told of itself. */
static sl_buf told;
static size_t steps, seen;

static int setup(void **state)
{
    (void)state;
    told = (sl_buf){ 0 };
    steps = seen = 0;
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    testdb_drop(&t);
    sl_buf_fini(&told);
    return 0;
}

static void note_stay(void *ctx, int64_t dead_id, const char *why)
{
    (void)ctx;
    sl_buf_printf(&told, "%lld: %s\n", (long long)dead_id, why);
}

static void note_step(void *ctx, size_t so_many)
{
    (void)ctx;
    steps++;
    seen = so_many;
}

/* One that died so many minutes ago. `idempotency` is SQL: NULL, or a text in quotes. */
static void bury(int id, const char *topic, const char *key, const char *error,
                 const char *idempotency, int minutes)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             t.pg ? "INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, "
                    "payload, content_type, attempts, "
                    "last_error, epoch, idempotency_key, died_at) VALUES (%d, '%s', '%s', 'e', "
                    "'p', 'text/plain', 3, "
                    "'%s', 7, %s, clock_timestamp() - %d * interval '1 minute')"
                  : "INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, "
                    "payload, content_type, attempts, "
                    "last_error, epoch, idempotency_key, died_at) VALUES (%d, '%s', '%s', 'e', "
                    "'p', 'text/plain', 3, "
                    "'%s', 7, %s, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-%d minutes'))",
             id, topic, key, error, idempotency, minutes);
    testdb_exec(&t, sql);
}

static void bury_many(int count, int payload_bytes)
{
    char sql[512];
    if (t.pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, payload, "
                 "content_type, attempts, "
                 "epoch) SELECT %d - i, 't', 'k', '', convert_to(repeat('x', %d), 'UTF8'), "
                 "'text/plain', 1, 0 FROM "
                 "generate_series(1, %d) AS s (i)",
                 count, payload_bytes, count);
    else
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                 "%d) INSERT INTO "
                 "sluice_outbox_dead (id, topic, entity_key, event_type, payload, "
                 "content_type, attempts, epoch) SELECT "
                 "%d - i, 't', 'k', '', zeroblob(%d), 'text/plain', 1, 0 FROM n",
                 count, count, payload_bytes);
    testdb_exec(&t, sql);
}

static sl_rc move(sl_dead_job *job, bool resend, sl_dead_refs *refs)
{
    sl_err err = { 0 };
    *job = (sl_dead_job){ .db = db, .resend = resend, .stays = note_stay, .step = note_step };
    return sl_dead_move(job, refs, &err);
}

/* Finds, moves, and expects that all went. */
static void move_all(bool resend, size_t count)
{
    sl_dead_job job;
    sl_dead_refs refs = { 0 };
    sl_err err = { 0 };
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    assert_int_equal(refs.count, count);
    assert_int_equal(move(&job, resend, &refs), SL_OK);
    assert_int_equal(job.done, count);
    assert_int_equal(job.gone + job.stayed, 0);
    assert_int_equal(seen, count);
    sl_refs_fini(&refs);
}

/* ---- Filters ---- */

static void a_star_makes_a_prefix(void **state)
{
    (void)state;
    sl_dead_filter f = { 0 };
    assert_true(sl_dead_filter_is_empty(&f));
    sl_dead_filter_topic(&f, NULL);
    assert_true(sl_dead_filter_is_empty(&f));
    sl_dead_filter_topic(&f, "orders");
    assert_true(sl_str_eq(f.topic, SL_STR("orders")) && !f.prefix.p);
    sl_dead_filter_topic(&f, "orders.*");
    assert_true(sl_str_eq(f.prefix, SL_STR("orders.")) && !f.topic.p);
    sl_dead_filter_topic(&f, "*");
    assert_true(sl_str_eq(f.prefix, SL_STR("")) && !sl_dead_filter_is_empty(&f));
    sl_dead_filter_topic(&f, "a*b");
    assert_true(sl_str_eq(f.topic, SL_STR("a*b")));
}

/* The ids that match, as text; counting agrees with finding. */
static const char *found(sl_dead_filter f)
{
    static char text[128];
    sl_dead_counts counts;
    sl_dead_refs refs = { 0 };
    sl_err err = { 0 };
    sl_buf out = { 0 };
    assert_int_equal(sl_dead_find(&refs, db, &f, &err), SL_OK);
    for (size_t i = 0; i < refs.count; i++)
        sl_buf_printf(&out, "%lld ", (long long)refs.v[i].id);
    assert_int_equal(sl_dead_count(&counts, db, &f, &err), SL_OK);
    assert_int_equal(counts.matching, refs.count);
    assert_int_equal(counts.total, 4);
    snprintf(text, sizeof text, "%s", sl_buf_text(&out));
    sl_buf_fini(&out);
    sl_refs_fini(&refs);
    return text;
}

#define MINUTE_US (INT64_C(60) * 1000000)
#define FOUND(...) found((sl_dead_filter){ __VA_ARGS__ })

static void filters_choose(void **state)
{
    (void)state;
    bury(40, "orders.new", "a", "connection refused", "NULL", 0);
    bury(30, "orders", "a", "Connection reset", "NULL", 10);
    bury(20, "mails", "b", "100% wrong_", "NULL", 60);
    bury(10, "mails", "", "", "NULL", 600);
    assert_string_equal(FOUND(.older_us = 0), "10 20 30 40 ");
    assert_string_equal(FOUND(.topic = SL_STR("orders")), "30 ");
    assert_string_equal(FOUND(.prefix = SL_STR("orders")), "30 40 ");
    assert_string_equal(FOUND(.prefix = SL_STR("")), "10 20 30 40 ");
    assert_string_equal(FOUND(.prefix = SL_STR("%")), "");
    assert_string_equal(FOUND(.key = SL_STR("a")), "30 40 ");
    assert_string_equal(FOUND(.key = SL_STR("")), "10 ");
    assert_string_equal(FOUND(.error = SL_STR("onnection")), "30 40 ");
    assert_string_equal(FOUND(.error = SL_STR("connection")), "40 ");
    assert_string_equal(FOUND(.error = SL_STR("% w")), "20 ");
    assert_string_equal(FOUND(.older_us = 30 * MINUTE_US), "10 20 ");
    assert_string_equal(FOUND(.newer_us = 30 * MINUTE_US), "30 40 ");
    assert_string_equal(FOUND(.older_us = 5 * MINUTE_US, .newer_us = 30 * MINUTE_US), "30 ");
    assert_string_equal(FOUND(.topic = SL_STR("mails"), .key = SL_STR("b")), "20 ");
}

static void some_are_named(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_err err = { 0 };
    bury(40, "t", "a", "", "NULL", 0);
    bury(30, "t", "a", "", "NULL", 0);
    assert_int_equal(sl_dead_pick(&refs, db, (int64_t[]){ 1, 2, 99, 1 }, 4, &err), SL_OK);
    assert_int_equal(refs.count, 2);
    assert_int_equal(refs.v[0].id, 30);
    assert_int_equal(refs.v[1].row_id, 1);
    assert_int_equal(refs.v[1].bytes, 1);
    int64_t missing[4];
    assert_int_equal(sl_refs_missing(&refs, (int64_t[]){ 0, 1, 2, 99 }, 4, missing), 2);
    assert_int_equal(missing[0], 0);
    assert_int_equal(missing[1], 99);
    assert_int_equal(sl_refs_missing(&(sl_dead_refs){ 0 }, (int64_t[]){ 5 }, 1, missing), 1);
    sl_refs_fini(&refs);
}

/* ---- Leaving ---- */

static void new_ids_follow_the_old_ones(void **state)
{
    (void)state;
    bury(40, "d", "a", "e", "'x'", 0);
    bury(20, "b", "a", "e", "NULL", 0);
    bury(30, "c", "b", "e", "NULL", 0);
    testdb_push(&t, "a", 1); /* what waits stays before them */
    move_all(true, 3);
    testdb_expect(&t, "orders\nb\nc\nd", "SELECT topic FROM sluice_outbox ORDER BY id");
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
    testdb_expect(&t, "a e text/plain x 0",
                  "SELECT entity_key || ' ' || event_type || ' ' || content_type || ' ' || "
                  "idempotency_key || ' ' || "
                  "attempts FROM sluice_outbox WHERE topic = 'd'");
    assert_true(testdb_ahead_us(&t, "available_at", 2) <= 0);
}

static void dropped_is_gone(void **state)
{
    (void)state;
    bury(1, "t", "k", "", "NULL", 0);
    bury(2, "t", "k", "", "NULL", 0);
    move_all(false, 2);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 0);
}

static void many_leave_in_small_transactions(void **state)
{
    (void)state;
    bury_many(1234, 1);
    move_all(true, 1234);
    assert_int_equal(steps, 3);
    assert_int_equal(testdb_count(&t), 1234);
}

static void large_ones_leave_a_few_at_a_time(void **state)
{
    (void)state;
    bury_many(5, 9 << 20);
    move_all(true, 5);
    assert_int_equal(steps, 5);
}

/* The other one, who found the same, comes too late. */
static void each_leaves_once(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_dead_job job;
    sl_err err = { 0 };
    bury_many(700, 1);
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    testdb_exec(&t, "DELETE FROM sluice_outbox_dead WHERE dead_id <= 600");
    assert_int_equal(move(&job, true, &refs), SL_OK);
    assert_int_equal(job.done, 100);
    assert_int_equal(job.gone, 600);
    assert_int_equal(job.stayed, 0);
    assert_int_equal(testdb_count(&t), 100);
    sl_refs_fini(&refs);
}

static void an_idempotency_key_that_is_taken_holds_one_back(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_dead_job job;
    sl_err err = { 0 };
    bury(1, "t", "k", "", "'free'", 0);
    bury(2, "t", "k", "", "'taken'", 0);
    bury(3, "t", "k", "", "NULL", 0);
    testdb_exec(&t, "INSERT INTO sluice_outbox (topic, payload, idempotency_key) VALUES "
                    "('living', 'p', 'taken')");
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    assert_int_equal(move(&job, true, &refs), SL_OK);
    assert_int_equal(job.done, 2);
    assert_int_equal(job.stayed, 1);
    assert_string_equal(sl_buf_text(&told), "2: message 1 has its idempotency key 'taken'\n");
    assert_int_equal(testdb_int(&t, "SELECT dead_id FROM sluice_outbox_dead"), 2);
    sl_refs_fini(&refs);
}

/* As it is in life: the key is registered since its message was first inserted, and stays so. */
static void a_registered_key_goes_back_with_its_message(void **state)
{
    (void)state;
    bury(1, "t", "k", "", "'once'", 0);
    bury(2, "t", "k", "", "'twice'", 0);
    testdb_exec(&t, "INSERT INTO sluice_outbox_idempotency (idempotency_key) VALUES ('once'), "
                    "('other'), ('twice')");
    move_all(true, 2);
    testdb_expect(&t, "once\ntwice", "SELECT idempotency_key FROM sluice_outbox ORDER BY id");
    testdb_expect(&t, "once\nother\ntwice",
                  "SELECT idempotency_key FROM sluice_outbox_idempotency ORDER BY 1");
}

/* Both died with the same key: only the first finds it free, and the others are none the worse. */
static void two_of_one_idempotency_key(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_dead_job job;
    sl_err err = { 0 };
    bury_many(9, 1);
    bury(100, "first", "k", "", "'same'", 0);
    bury(101, "second", "k", "", "'same'", 0);
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    assert_int_equal(move(&job, true, &refs), SL_OK);
    assert_int_equal(job.done, 10);
    assert_int_equal(job.stayed, 1);
    assert_int_equal(strncmp(sl_buf_text(&told), "11: message ", 12), 0);
    assert_non_null(strstr(sl_buf_text(&told), " has its idempotency key 'same'\n"));
    testdb_expect(&t, "second", "SELECT topic FROM sluice_outbox_dead");
    sl_refs_fini(&refs);
}

/* The table has become stricter since. */
static void what_the_table_refuses_stays(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_dead_job job;
    sl_err err = { 0 };
    bury_many(9, 1);
    bury(100, "", "k", "", "NULL", 0); /* no message may be without a topic */
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    assert_int_equal(move(&job, true, &refs), SL_OK);
    assert_int_equal(job.done, 9);
    assert_int_equal(job.stayed, 1);
    assert_int_equal(strncmp(sl_buf_text(&told), "10: ", 4), 0);
    assert_int_equal(testdb_int(&t, "SELECT id FROM sluice_outbox_dead"), 100);
    sl_refs_fini(&refs);
}

/* A trigger that leaves messages out must not make them vanish. */
static void what_the_table_swallows_stays(void **state)
{
    (void)state;
    sl_dead_refs refs = { 0 };
    sl_dead_job job;
    sl_err err = { 0 };
    bury_many(3, 1);
    testdb_exec(
        &t,
        testdb_or(&t, "CREATE RULE swallow AS ON INSERT TO sluice_outbox DO INSTEAD NOTHING",
                  "CREATE TRIGGER swallow BEFORE INSERT ON sluice_outbox BEGIN SELECT "
                  "RAISE(IGNORE); END"));
    assert_int_equal(sl_dead_find(&refs, db, &(sl_dead_filter){ 0 }, &err), SL_OK);
    assert_int_equal(move(&job, true, &refs), SL_OPERATOR);
    assert_int_equal(job.done, 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_dead"), 3);
    sl_refs_fini(&refs);
}

static int group(const char *on)
{
    dialect = on;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_star_makes_a_prefix),
        TEST(filters_choose),
        TEST(some_are_named),
        TEST(new_ids_follow_the_old_ones),
        TEST(dropped_is_gone),
        TEST(many_leave_in_small_transactions),
        TEST(large_ones_leave_a_few_at_a_time),
        TEST(each_leaves_once),
        TEST(an_idempotency_key_that_is_taken_holds_one_back),
        TEST(a_registered_key_goes_back_with_its_message),
        TEST(two_of_one_idempotency_key),
        TEST(what_the_table_refuses_stays),
        TEST(what_the_table_swallows_stays),
    };
    return cmocka_run_group_tests_name(on, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(group);
}
