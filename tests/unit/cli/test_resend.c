/* SPDX-License-Identifier: Apache-2.0 */
/* Which kept messages are found, and what becomes of them. What a transaction does when the table refuses something is
 * in test_dead.c, which has the same under it. */
#include "cli/resend.h"

#include "support/testdb.h"

static testdb t;
static const char *dialect;
static sl_db *db;
static sl_err err;
static sl_buf told;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    told = (sl_buf){ 0 };
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

static void note_stay(void *ctx, const sl_ref *ref, const char *why)
{
    (void)ctx;
    (void)why;
    sl_buf_printf(&told, "%lld ", (long long)ref->id);
}

static void note_step(void *ctx, size_t seen)
{
    (void)ctx;
    (void)seen;
}

/* One that was delivered so many minutes ago. `key` is SQL: NULL, or a text in quotes. */
static void keep(int id, const char *topic, const char *key, int minutes)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             t.pg ? "INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, "
                    "payload, content_type, "
                    "idempotency_key, attempts, epoch, sent_at) VALUES (%d, '%s', %s, 'e', "
                    "'p', 'text/plain', 'once', "
                    "3, 7, clock_timestamp() - %d * interval '1 minute')"
                  : "INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, "
                    "payload, content_type, "
                    "idempotency_key, attempts, epoch, sent_at) VALUES (%d, '%s', %s, 'e', "
                    "'p', 'text/plain', 'once', "
                    "3, 7, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-%d minutes'))",
             id, topic, key, minutes);
    testdb_exec(&t, sql);
}

static void keep_some(void)
{
    keep(4, "orders.eu", "'a'", 1);
    keep(3, "orders.us", "'b'", 10);
    keep(2, "mails", "'a'", 120);
    keep(1, "mails", "NULL", 3000);
}

#define MINUTE_US (INT64_C(60) * 1000000)

/* "1 2 3 | keys, keyless" */
static const char *found(sl_resend_filter f)
{
    static char text[128];
    sl_resend_found got = { 0 };
    sl_buf out = { 0 };
    assert_int_equal(sl_resend_find(&got, db, &f, &err), SL_OK);
    for (size_t i = 0; i < got.refs.count; i++)
        sl_buf_printf(&out, "%lld ", (long long)got.refs.v[i].id);
    snprintf(text, sizeof text, "%s| %zu, %zu", sl_buf_text(&out), got.keys.count, got.keyless);
    sl_buf_fini(&out);
    sl_resend_found_fini(&got);
    return text;
}

#define FOUND(...) found((sl_resend_filter){ __VA_ARGS__ })

static void filters_choose(void **state)
{
    (void)state;
    keep_some();
    assert_string_equal(FOUND(.prefix = SL_STR("")), "1 2 3 4 | 2, 1");
    assert_string_equal(FOUND(.topic = SL_STR("mails")), "1 2 | 1, 1");
    assert_string_equal(FOUND(.topic = SL_STR("orders")), "| 0, 0");
    assert_string_equal(FOUND(.prefix = SL_STR("orders.")), "3 4 | 2, 0");
    assert_string_equal(FOUND(.key = SL_STR("a")), "2 4 | 1, 0");
    assert_string_equal(FOUND(.key = SL_STR("a"), .topic = SL_STR("mails")), "2 | 1, 0");
    assert_string_equal(FOUND(.prefix = SL_STR(""), .since_us = 60 * MINUTE_US), "3 4 | 2, 0");
    assert_string_equal(FOUND(.prefix = SL_STR(""), .until_us = 5 * MINUTE_US), "1 2 3 | 2, 1");
    assert_string_equal(
        FOUND(.prefix = SL_STR(""), .since_us = 60 * MINUTE_US, .until_us = 5 * MINUTE_US),
        "3 | 1, 0");
}

static void ids_choose(void **state)
{
    (void)state;
    sl_resend_found got = { 0 };
    keep_some();
    keep(2, "again", "'c'", 0);
    assert_int_equal(sl_resend_pick(&got, db, (int64_t[]){ 2, 4, 9 }, 3, &err), SL_OK);
    assert_int_equal(got.refs.count, 3); /* the second was kept twice */
    assert_int_equal(got.keys.count, 2);
    assert_int_equal(got.refs.v[0].id, 2);
    assert_int_equal(got.refs.v[1].id, 2);
    assert_int_equal(got.refs.v[2].id, 4);
    assert_true(sl_resend_has(&got, 2) && sl_resend_has(&got, 4));
    assert_false(sl_resend_has(&got, 9) || sl_resend_has(&got, 1));
    sl_resend_found_fini(&got);
    assert_false(sl_resend_has(&got, 2));
}

static void resend(sl_resend_found *got, sl_requeue *job)
{
    *job =
        (sl_requeue){ .db = db, .how = sl_resend_how, .stays = note_stay, .step = note_step };
    if (sl_requeue_run(job, &got->refs, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void they_are_new_messages_in_the_old_order(void **state)
{
    (void)state;
    sl_resend_found got = { 0 };
    sl_requeue job;
    keep_some();
    testdb_push(&t, "a", 1);
    assert_int_equal(sl_resend_find(&got, db, &(sl_resend_filter){ .key = SL_STR("a") }, &err),
                     SL_OK);
    resend(&got, &job);
    assert_int_equal(job.done, 2);
    assert_int_equal(job.gone + job.stayed, 0);
    testdb_expect(&t, "2 mails a 0 -\n3 orders.eu a 0 -",
                  "SELECT id || ' ' || topic || ' ' || entity_key || ' ' || attempts || ' ' || "
                  "coalesce(idempotency_key, '-') FROM sluice_outbox WHERE id > 1 ORDER BY id");
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent"), 4);
    sl_resend_found_fini(&got);
}

/* More than a page, and many chunks. */
static void very_many_keep_their_order(void **state)
{
    (void)state;
    sl_resend_found got = { 0 };
    sl_requeue job;
    testdb_exec(
        &t, testdb_or(&t,
                      "INSERT INTO sluice_outbox_sent (id, topic, event_type, content_type, "
                      "entity_key, payload, attempts, epoch) SELECT 12001 - i, 't', '', '', "
                      "'k' || (i % 7), convert_to((12001 - i)::text, 'UTF8'), 1, 0 FROM "
                      "generate_series(1, 12000) AS s (i)",
                      "INSERT INTO sluice_outbox_sent (id, topic, event_type, content_type, "
                      "entity_key, payload, attempts, epoch) WITH RECURSIVE n (i) AS "
                      "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) SELECT "
                      "12001 - i, 't', '', '', 'k' || (i % 7), CAST(12001 - i AS BLOB), 1, 0 "
                      "FROM n"));
    assert_int_equal(
        sl_resend_find(&got, db, &(sl_resend_filter){ .topic = SL_STR("t") }, &err), SL_OK);
    assert_int_equal(got.refs.count, 12000);
    assert_int_equal(got.keys.count, 7);
    resend(&got, &job);
    assert_int_equal(job.done, 12000);
    assert_int_equal(
        testdb_int(&t, testdb_or(&t,
                                 "SELECT count(*) FROM sluice_outbox WHERE "
                                 "convert_from(payload, 'UTF8')::bigint = id",
                                 "SELECT count(*) FROM sluice_outbox WHERE CAST(CAST(payload "
                                 "AS TEXT) AS INTEGER) = id")),
        12000);
    sl_resend_found_fini(&got);
}

/* Between finding and resending. */
static void what_is_purged_meanwhile_is_left(void **state)
{
    (void)state;
    sl_resend_found got = { 0 };
    sl_requeue job;
    keep_some();
    assert_int_equal(
        sl_resend_find(&got, db, &(sl_resend_filter){ .prefix = SL_STR("") }, &err), SL_OK);
    testdb_exec(&t, "DELETE FROM sluice_outbox_sent WHERE id IN (1, 3)");
    resend(&got, &job);
    assert_int_equal(job.done, 2);
    assert_int_equal(job.gone, 2);
    testdb_expect(&t, "mails\norders.eu", "SELECT topic FROM sluice_outbox ORDER BY id");
    sl_resend_found_fini(&got);
}

static void what_the_table_refuses_is_told(void **state)
{
    (void)state;
    sl_resend_found got = { 0 };
    sl_requeue job;
    keep_some();
    keep(5, "", "'a'", 0); /* as an adopted table may have had */
    keep(6, "t", "'a'", 0);
    assert_int_equal(
        sl_resend_find(&got, db, &(sl_resend_filter){ .prefix = SL_STR("") }, &err), SL_OK);
    resend(&got, &job);
    assert_int_equal(job.done, 5);
    assert_int_equal(job.stayed, 1);
    assert_string_equal(sl_buf_text(&told), "5 ");
    sl_resend_found_fini(&got);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(filters_choose),
        TEST(ids_choose),
        TEST(they_are_new_messages_in_the_old_order),
        TEST(very_many_keep_their_order),
        TEST(what_is_purged_meanwhile_is_left),
        TEST(what_the_table_refuses_is_told),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
