/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/conf.h"

#include "support/testdb.h"

static sl_conf *conf;
static sl_err err;
static testdb t;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    conf = sl_conf_new();
    testdb_make(&t, testdb_any(), NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_conf_free(conf);
    testdb_drop(&t);
    return 0;
}

static void set(const char *name, const char *value)
{
    if (sl_conf_set(conf, name, value, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void a_conf_is_made_of_settings(void **state)
{
    (void)state;
    assert_string_equal(conf->settings.table, "outbox");
    set("batch", "7");
    assert_int_equal(conf->settings.batch, 7);
    assert_int_equal(sl_conf_set(conf, "bath", "7", &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "did you mean batch?"));
    assert_int_equal(sl_conf_set(conf, "batch", "0", NULL), SL_REFUSED);
    sl_conf_free(NULL);
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-test-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "table: shop.box\nlease: 5s\n", 26), 26);
    close(fd);
    assert_int_equal(sl_conf_load(conf, path, &err), SL_OK);
    unlink(path);
    assert_string_equal(conf->settings.table, "shop.box");
    assert_int_equal(conf->settings.lease_ns, 5 * SL_SEC);
    assert_int_equal(sl_conf_load(conf, path, &err), SL_OPERATOR);
}

static char logged[256];

static void log_fn(void *ctx, const char *level, const char *line)
{
    snprintf(logged, sizeof logged, "%s %s %s", (const char *)ctx, level, line);
}

static void log_lines_go_to_the_caller(void **state)
{
    (void)state;
    sl_log log;
    sl_conf_log_write(conf, SL_LOG_WARN, "to nobody"); /* no function: no line */
    sl_conf_log(conf, log_fn, (void *)(uintptr_t) "ctx");
    sl_log_init(&log, sl_conf_log_write, conf);
    sl_log_line(&log, SL_LOG_WARN, "oh", "worker", "n/1", NULL);
    assert_memory_equal(logged, "ctx warn ", 9);
    assert_non_null(strstr(logged, "oh"));
    assert_non_null(strstr(logged, "n/1"));
    sl_log_fini(&log);
}

/* ---- What the modules below get ---- */

static void names_are_checked(void **state)
{
    (void)state;
    sl_names names;
    set("table", "shop.box");
    set("columns", "entity_key=aggregate_id,topic=kind");
    set("lanes", "8");
    assert_int_equal(sl_conf_names(&names, &conf->settings, &err), SL_OK);
    assert_string_equal(names.schema, "shop");
    assert_string_equal(names.table, "box");
    assert_string_equal(sl_names_column(&names, "topic"), "kind");
    assert_int_equal(names.lanes, 8);
    sl_names_fini(&names);
    set("columns", "entity_key=topic");
    assert_int_equal(sl_conf_names(&names, &conf->settings, &err), SL_REFUSED);
    sl_names_fini(&names);
    set("columns", "");
    set("table", "a b");
    assert_int_equal(sl_conf_names(&names, &conf->settings, &err), SL_REFUSED);
    sl_names_fini(&names);
}

static void a_claim_gets_its_part(void **state)
{
    (void)state;
    sl_claim_conf c;
    set("hold", "transaction");
    set("lease", "7s");
    set("batch_bytes", "64k");
    set("retry_base", "3s");
    set("retry_max", "30s");
    set("retention", "1h");
    sl_conf_claim(&c, &conf->settings, "n/1");
    assert_string_equal(c.worker, "n/1");
    assert_int_equal(c.hold, SL_HOLD_TRANSACTION);
    assert_int_equal(c.lease_ns, 7 * SL_SEC);
    assert_int_equal(c.batch_bytes, 65536);
    assert_int_equal(c.retry_base_ns, 3 * SL_SEC);
    assert_int_equal(c.retry_max_ns, 30 * SL_SEC);
    assert_true(c.keep);
    set("hold", "lease");
    sl_conf_claim(&c, &conf->settings, "n/1");
    assert_int_equal(c.hold, SL_HOLD_LEASE);
}

static void a_node_has_a_name(void **state)
{
    (void)state;
    char host[64] = "", want[128];
    gethostname(host, sizeof host - 1);
    snprintf(want, sizeof want, "%s-%ld", host, (long)getpid());
    char *name = sl_conf_node(&conf->settings);
    assert_string_equal(name, want);
    free(name);
    set("node", "blue");
    name = sl_conf_node(&conf->settings);
    assert_string_equal(name, "blue");
    free(name);
}

static void the_databases_schema_is_checked(void **state)
{
    (void)state;
    sl_db *db = NULL;
    sl_schema_done done;
    const sl_settings *s = &conf->settings;
    set("db", t.url);
    assert_int_equal(sl_conf_open_db(&db, s, &t.names, false, &err), SL_OPERATOR);
    assert_null(db);
    assert_non_null(strstr(err.text, "run 'sluice init' once"));
    assert_int_equal(sl_conf_look_db(&db, s, &t.names, &err),
                     SL_OK); /* by this one it is not */
    sl_db_close(db);
    db = NULL;
    assert_int_equal(sl_conf_open_db(&db, s, &t.names, true, &err), SL_OK);
    assert_int_equal(sl_schema_init(db, &t.names, &done, &err), SL_OK);
    sl_db_close(db);
    assert_int_equal(sl_conf_open_db(&db, s, &t.names, false, &err), SL_OK);
    sl_db_close(db);
    db = NULL;
    set("db", "nowhere:");
    assert_int_equal(sl_conf_open_db(&db, s, &t.names, false, &err), SL_OPERATOR);
    assert_null(db);
}

/* Workers and all else that goes on as long as its node. */
static void a_nodes_session_plans_once(void **state)
{
    (void)state;
    sl_db *db = NULL;
    testdb pg;
    const sl_settings *s = &conf->settings;
    if (!testdb_has("postgres"))
        skip();
    testdb_init(&pg, "postgres", NULL);
    set("db", pg.url);
    for (int node = 0; node < 2; node++) {
        sl_rc rc = node ? sl_conf_open_node(&db, s, &pg.names, -1, &err)
                        : sl_conf_open_db(&db, s, &pg.names, false, &err);
        assert_int_equal(rc, SL_OK);
        int64_t once = -1;
        sl_stmt stmt = testdb_stmt(
            db, 0, "SELECT (current_setting('plan_cache_mode') <> 'auto')::int::bigint", 1,
            SL_T_INT8);
        sl_call call = { .stmt = &stmt, .row = testdb_row_int, .ctx = &once };
        assert_int_equal(db->ops->run(db, &call, 1, &err), SL_OK);
        assert_int_equal(once, node);
        sl_db_close(db);
    }
    testdb_drop(&pg);
}

static void for_ever_is_no_overflow(void **state)
{
    (void)state;
    assert_int_equal(sl_conf_ns_of_ms(0), 0);
    assert_int_equal(sl_conf_ns_of_ms(-3), -3 * SL_MS);
    assert_int_equal(sl_conf_ns_of_ms(86400000), 86400 * SL_SEC);
    assert_true(sl_conf_ns_of_ms(INT64_MAX) > INT64_MAX - SL_SEC); /* and not parked */
    assert_true(sl_conf_ns_of_ms(INT64_MIN) == INT64_MIN);
}

int main(void)
{
    if (!testdb_any())
        return TESTDB_SKIPPED;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_conf_is_made_of_settings),      TEST(a_file_is_loaded),
        TEST(log_lines_go_to_the_caller),      TEST(names_are_checked),
        TEST(a_claim_gets_its_part),           TEST(a_node_has_a_name),
        TEST(the_databases_schema_is_checked), TEST(a_nodes_session_plans_once),
        TEST(for_ever_is_no_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
