/* SPDX-License-Identifier: Apache-2.0 */
/* Every verdict, on both sides of its threshold. */
#include "cli/doctor_judge.h"

#include "unit/unit.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define MB (INT64_C(1) << 20)

static sl_findings all;
static const sl_norms norms = {
    .old_us = 300 * SECOND, .poll_us = SECOND, .workers = 4, .batch = 500
};

static int teardown(void **state)
{
    (void)state;
    sl_findings_fini(&all);
    return 0;
}

/* The findings so far, which are then forgotten: "ok", "warn bad", "" and what they all must say. A remedy
 * is there just when something is wrong. */
static void expect(const char *states, const char *found, const char *todo)
{
    sl_buf got = { 0 }, texts = { 0 }, todos = { 0 };
    for (size_t i = 0; i < all.count; i++) {
        const sl_finding *f = &all.v[i];
        sl_buf_printf(&got, "%s%s", i ? " " : "", sl_health_name(f->state));
        sl_buf_printf(&texts, "%s\n", f->found);
        sl_buf_printf(&todos, "%s\n", f->todo ? f->todo : "");
        assert_true((f->state == SL_FINE) == (f->todo == NULL));
    }
    if (strcmp(sl_buf_text(&got), states) != 0)
        fail_msg("'%s', not '%s': %s", sl_buf_text(&got), states, sl_buf_text(&texts));
    if (found && !strstr(sl_buf_text(&texts), found))
        fail_msg("not '%s': %s", found, sl_buf_text(&texts));
    if (todo && !strstr(sl_buf_text(&todos), todo))
        fail_msg("not '%s': %s", todo, sl_buf_text(&todos));
    sl_buf_fini(&got);
    sl_buf_fini(&texts);
    sl_buf_fini(&todos);
    sl_findings_fini(&all);
}

/* ---- What was made by init ---- */

static void the_schema(void **state)
{
    (void)state;
    sl_judge_schema(&all, "outbox", &(sl_schema){ true, SL_SCHEMA_VERSION, 64 });
    expect("ok", "64 lanes", NULL);
    sl_judge_schema(&all, "outbox", &(sl_schema){ false, 0, 0 });
    expect("bad", "outbox is not there", "sluice init");
    sl_judge_schema(&all, "outbox", &(sl_schema){ true, 0, 0 });
    expect("bad", "was not made by sluice init", "sluice init");
    sl_judge_schema(&all, "outbox", &(sl_schema){ true, 1, 64 });
    expect("bad", "has version 1", "migrate");
}

static void columns_indexes_and_grants(void **state)
{
    (void)state;
    sl_judge_columns(&all, "");
    expect("ok", NULL, NULL);
    sl_judge_columns(&all, "outbox.held, outbox_lanes");
    expect("bad", "missing: outbox.held, outbox_lanes", "--print");
    sl_judge_index(&all, "a", "ok", NULL);
    expect("", NULL, NULL);
    sl_judge_index(&all, "a", "missing", "CREATE INDEX a");
    expect("bad", "a is missing", "CREATE INDEX a");
    sl_judge_index(&all, "a", "missing", NULL);
    expect("bad", "a is missing", "--print");
    sl_judge_index(&all, "a", "invalid", "CREATE INDEX a");
    expect("bad", "a is invalid", "REINDEX");
    sl_judge_grants(&all, "relay", "lanes", "");
    expect("ok", "relay", NULL);
    sl_judge_grants(&all, "relay", "lanes", "GRANT SELECT ON x TO relay");
    expect("bad", "role relay lacks", "GRANT SELECT ON x TO relay");
}

/* ---- The server ---- */

static void a_standby(void **state)
{
    (void)state;
    sl_judge_standby(&all, false);
    expect("", NULL, NULL);
    sl_judge_standby(&all, true);
    expect("bad", "standby", "primary");
}

static void durability(void **state)
{
    (void)state;
    sl_judge_durability(&all, true, true, "on");
    expect("ok", "synchronous_commit on", NULL);
    sl_judge_durability(&all, true, true, "remote_apply");
    expect("ok", NULL, NULL);
    sl_judge_durability(&all, false, true, "on");
    expect("bad", "destroy", "fsync = on");
    sl_judge_durability(&all, true, false, "on");
    expect("bad", "torn", "full_page_writes = on");
    sl_judge_durability(&all, true, true, "off");
    expect("warn", "forgets", "synchronous_commit = on");
    sl_judge_durability(&all, false, false, "off");
    expect("bad bad warn", NULL, NULL);
}

static void a_pooler(void **state)
{
    (void)state;
    sl_judge_pooler(&all, 7, 7, 8);
    expect("ok", NULL, NULL);
    sl_judge_pooler(&all, 7, 9, 8);
    expect("bad", "another process", "directly");
    sl_judge_pooler(&all, 7, 7, 7);
    expect("bad", "share one process", "session mode");
}

static void clocks(void **state)
{
    (void)state;
    sl_judge_clock(&all, 0, 0);
    expect("ok", "0.0 s", NULL);
    sl_judge_clock(&all, 2 * SECOND - 1, 0);
    expect("ok", NULL, NULL);
    sl_judge_clock(&all, 2 * SECOND, 0);
    expect("warn", "2.0 s ahead of", "NTP");
    sl_judge_clock(&all, -2 * SECOND, 0);
    expect("warn", "2.0 s behind", "NTP");
    sl_judge_clock(&all, -2 * SECOND, 10); /* it may be less */
    expect("ok", NULL, NULL);
    sl_judge_clock(&all, 300 * SECOND, 0);
    expect("bad", "5m00s ahead", NULL);
    sl_judge_clock(&all, 3 * SECOND, 4 * SECOND);
    expect("ok", "5.0 s", NULL);
}

static void connections(void **state)
{
    (void)state;
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 92, -1, 50 }, &norms);
    expect("ok", "5 of 100", NULL);
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 93, -1, 50 }, &norms);
    expect("warn", "4 of 100 left, a node with 4 workers needs 5", "max_connections");
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 97, -1, 50 }, &norms);
    expect("bad", "0 of 100", NULL);
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 99, -1, 50 }, &norms);
    expect("bad", "0 of 100", NULL);
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 20, 20, 15 }, &norms);
    expect("ok", "5 of 20", NULL);
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 20, 20, 16 }, &norms);
    expect("warn", "4 of 20", "CONNECTION LIMIT");
    sl_judge_connections(&all, &(sl_seats){ 100, 3, 20, 20, 20 }, &norms);
    expect("bad", "0 of 20", "CONNECTION LIMIT");
}

/* 64 * 100: a claim locks up to 400. */
static void locks(void **state)
{
    (void)state;
    sl_judge_locks(&all, 64, 100, "", 0, &norms);
    expect("ok", "room for 6400", NULL);
    sl_judge_locks(&all, 64, 100, "lanes", 1000, &norms);
    expect("ok", NULL, NULL);
    sl_judge_locks(&all, 64, 100, "advisory", 8, &norms);
    expect("ok", NULL, NULL);
    sl_judge_locks(&all, 64, 100, "advisory", 9, &norms);
    expect("warn", "9 workers of strategy advisory may hold 3600",
           "max_locks_per_transaction = 90 ");
    sl_judge_locks(&all, 90, 100, "advisory", 9, &norms); /* the remedy helps */
    expect("ok", NULL, NULL);
    sl_judge_locks(&all, 64, 100, "advisory", 17, &norms);
    expect("bad", "6800", NULL);
    sl_judge_locks(&all, 64, 100, "guard", 16, &norms);
    expect("ok", NULL, NULL);
    sl_judge_locks(&all, 64, 100, "guard", 17, &norms);
    expect("warn", NULL, NULL);
}

/* ---- What keeps dead rows alive ---- */

static bool session(int64_t age_s, bool pins)
{
    sl_session_fact f = { 4711, "app", "bob", "idle in transaction", age_s * SECOND, pins };
    return sl_judge_session(&all, &f, &norms);
}

static void transactions(void **state)
{
    (void)state;
    assert_false(session(299, true));
    expect("", NULL, NULL);
    assert_true(session(300, true));
    expect("warn",
           "pid 4711 (app, user bob) is idle in transaction, its transaction open for "
           "5m00s: keeps dead rows alive",
           "pg_terminate_backend(4711); set idle_in_transaction_session_timeout");
    assert_true(session(3000, true));
    expect("bad", "50m00s", NULL);
    assert_true(session(300000, false));
    expect("warn", "open for", NULL);
    sl_session_fact f = { 1, "", "u", "active", HOUR, true };
    assert_true(sl_judge_session(&all, &f, &norms));
    expect("bad", "no application_name", "statement_timeout");
    sl_judge_sessions(&all, 0, 0, &norms);
    expect("ok", "none open for 5m00s", NULL);
    sl_judge_sessions(&all, 2, 0, &norms);
    expect("", NULL, NULL);
    sl_judge_sessions(&all, 0, 1, &norms);
    expect("unknown", "1 session of", "pg_read_all_stats");
    sl_judge_sessions(&all, 2, 3, &norms);
    expect("unknown", "3 sessions of", NULL);
}

static void prepared_transactions(void **state)
{
    (void)state;
    sl_judge_prepared(&all, "g1", "bob", 299 * SECOND, &norms);
    expect("warn", "'g1' of bob", "ROLLBACK PREPARED 'g1'");
    sl_judge_prepared(&all, "g1", "bob", 300 * SECOND, &norms);
    expect("bad", "5m00s", "COMMIT PREPARED 'g1'");
}

static bool replica(const char *kind, bool active, int64_t xids, int64_t wal)
{
    return sl_judge_replica(&all, &(sl_replica_fact){ kind, "r1", active, xids, wal });
}

static void replicas(void **state)
{
    (void)state;
    assert_false(replica("slot", true, 99999, 1024 * MB));
    assert_false(replica("slot", false, 0, 1023 * MB));
    assert_false(replica("standby", true, 99999, 0));
    expect("", NULL, NULL);
    assert_true(replica("slot", false, 1, 0));
    expect("bad", "slot r1 has no reader", "pg_drop_replication_slot('r1')");
    assert_true(replica("slot", false, 0, 1024 * MB));
    expect("warn", "keeps 1.0 GB of the log", "max_slot_wal_keep_size");
    assert_true(replica("slot", true, 100000, 0));
    expect("warn", "slot r1 has kept", NULL);
    assert_true(replica("standby", true, 100000, 0));
    expect("warn", "standby r1 has kept dead rows alive for 100000", "hot_standby_feedback");
    assert_true(replica("standby", true, 10000000, 0));
    expect("bad", NULL, NULL);
}

/* ---- Vacuum and size ---- */

static void autovacuum(void **state)
{
    (void)state;
    sl_vacuum_fact fine = { true, true, 3, 2, 299999999, 200000000 };
    sl_vacuum_fact f = fine;
    sl_judge_autovacuum(&all, &f);
    expect("ok", "2 of 3", NULL);
    f.enabled = false;
    sl_judge_autovacuum(&all, &f);
    expect("bad", "autovacuum is off", "autovacuum = on");
    f = fine;
    f.counts = false;
    sl_judge_autovacuum(&all, &f);
    expect("bad", "track_counts is off", "track_counts = on");
    f = fine;
    f.busy = 3;
    sl_judge_autovacuum(&all, &f);
    expect("warn", "all 3 workers", "autovacuum_max_workers");
    f = fine;
    f.xids = 300000000;
    sl_judge_autovacuum(&all, &f);
    expect("warn", "300000000", "FREEZE");
    f.xids = 1500000000;
    sl_judge_autovacuum(&all, &f);
    expect("bad", NULL, NULL);
}

static sl_table_fact table(void)
{
    return (sl_table_fact){ .name = "outbox",
                            .live = 1000,
                            .heap_bytes = MB,
                            .index_bytes = MB,
                            .indexes = 5,
                            .row_bytes = 200,
                            .fill = 80,
                            .enabled = true };
}

static void dead_rows(void **state)
{
    (void)state;
    sl_table_fact f = table();
    f.dead = 49999;
    assert_false(sl_judge_table(&all, &f));
    expect("", NULL, NULL);
    f.dead = 50000;
    assert_true(sl_judge_table(&all, &f));
    expect("warn", "50000 dead rows beside 1000 that live, and it was never vacuumed",
           "VACUUM outbox");
    f.vacuumed = true;
    assert_true(sl_judge_table(&all, &f));
    expect("warn", "1000 that live\n", NULL);
    f.live = 50001; /* a large table may have some */
    assert_false(sl_judge_table(&all, &f));
    f.live = 100000;
    f.dead = 1000000;
    assert_true(sl_judge_table(&all, &f));
    expect("bad", NULL, NULL);
    f.live = 100001;
    assert_true(sl_judge_table(&all, &f));
    expect("warn", NULL, NULL);
    f = table();
    f.enabled = false;
    assert_true(sl_judge_table(&all, &f));
    expect("bad", "autovacuum is off for this table", "RESET (autovacuum_enabled)");
}

/* 1000 rows of 228 bytes, 80 % full: 0.3 MB. */
static void bloat(void **state)
{
    (void)state;
    sl_table_fact f = table();
    f.heap_bytes = 32 * MB;
    assert_false(sl_judge_table(&all, &f));
    f.heap_bytes = 33 * MB;
    assert_true(sl_judge_table(&all, &f));
    expect("warn", "outbox: 33 MB, about 294 kB would do for 1000 rows", "VACUUM outbox");
    f.live = 300000;
    assert_false(sl_judge_table(&all, &f)); /* these need 80 MB */
    f.row_bytes = 0;
    f.heap_bytes = 60 * MB;
    f.live = 25000; /* by a guess of 400 bytes, 13 MB */
    assert_true(sl_judge_table(&all, &f));
    expect("warn", NULL, NULL);
    f.live = 35000;
    assert_false(sl_judge_table(&all, &f));
    f = table();
    f.heap_bytes = 3000 * MB;
    assert_true(sl_judge_table(&all, &f));
    expect("bad", "2.9 GB", NULL);
    f = table();
    f.index_bytes = 33 * MB;
    assert_true(sl_judge_table(&all, &f));
    expect("warn", "indexes of outbox: 33 MB", "REINDEX TABLE CONCURRENTLY outbox");
    f.live = 100000;
    f.row_bytes = 1;
    assert_false(sl_judge_table(&all, &f));
    expect("", NULL, NULL);
}

static void files(void **state)
{
    (void)state;
    sl_lite_file fine = { NULL, true, true, MB, 64 * MB - 1 };
    sl_lite_file f = fine;
    sl_judge_file(&all, "a.db", &f);
    expect("ok", "a.db, 1.0 MB", NULL);
    f.remote = "NFS";
    sl_judge_file(&all, "a.db", &f);
    expect("bad", "a.db is on a network file system (NFS)", "local disk");
    f = fine;
    f.writable = false;
    sl_judge_file(&all, "a.db", &f);
    expect("bad", "a.db cannot be written", "folder");
    f = fine;
    f.folder_writable = false;
    sl_judge_file(&all, "a.db", &f);
    expect("bad", "the folder of a.db cannot be written", "folder");
    f = fine;
    f.wal_bytes = 64 * MB;
    sl_judge_file(&all, "a.db", &f);
    expect("warn", "a.db-wal has 64 MB", "wal_checkpoint(TRUNCATE)");
    f.wal_bytes = 1024 * MB;
    sl_judge_file(&all, "a.db", &f);
    expect("bad", "1.0 GB", NULL);
}

static void what_is_in_a_file(void **state)
{
    (void)state;
    sl_judge_journal(&all, "a.db", "wal");
    expect("ok", NULL, NULL);
    sl_judge_journal(&all, "a.db", "delete");
    expect("warn", "mode delete", "journal_mode = WAL in a.db");
    sl_judge_journal(&all, "a.db", "off");
    expect("warn", "destroy", NULL);
    sl_judge_pages(&all, "a.db", 20000, 8191, 4096);
    expect("ok", "20000, 8191 of them unused", NULL);
    sl_judge_pages(&all, "a.db", 20000, 9999, 4096);
    expect("ok", NULL, NULL);
    sl_judge_pages(&all, "a.db", 20000, 10000, 4096);
    expect("warn", "39 MB of 78 MB are unused", "VACUUM");
    sl_judge_integrity(&all, "a.db", "ok");
    expect("ok", NULL, NULL);
    sl_judge_integrity(&all, "a.db", "row 3 missing from index x");
    expect("bad", "row 3 missing from index x", "a.db");
}

/* ---- Nodes and messages ---- */

static void nodes_and_lanes(void **state)
{
    (void)state;
    sl_judge_nodes(&all, 0, 0, "", 0);
    expect("ok", "0 live", NULL);
    sl_judge_nodes(&all, 2, 1, "n1", 3 * SECOND);
    expect("warn", "n1 did not beat, for up to 3.0 s after the lease; 2 live", "forget");
    sl_judge_nodes(&all, 0, 2, "n1, n2", 3 * SECOND);
    expect("warn", "n1, n2 did not beat", "start a node");
    sl_judge_lanes(&all, 64, 0, "", HOUR);
    expect("ok", "64, all with an owner", NULL);
    sl_judge_lanes(&all, 64, 3, "1-3", 60 * SECOND - 1);
    expect("warn", "3 of 64 have no owner (1-3)", "assign");
    sl_judge_lanes(&all, 64, 3, "1-3", 60 * SECOND);
    expect("bad", NULL, NULL);
}

static void keys(void **state)
{
    (void)state;
    sl_key_fact f = { 3, "k", "refused", 42, HOUR - 1, false };
    sl_judge_keys(&all, &(sl_key_fact){ .keys = 0 });
    expect("ok", "0 blocked", NULL);
    sl_judge_keys(&all, &f);
    expect("ok", "3 blocked", NULL);
    f.age_us = HOUR;
    sl_judge_keys(&all, &f);
    expect("warn", "3 blocked, 'k' for 1h00m by message 42: refused", "Blocked keys");
    f.age_us = 24 * HOUR;
    sl_judge_keys(&all, &f);
    expect("bad", "1d00h", NULL);
    f.parked = true;
    sl_judge_keys(&all, &f);
    expect("warn", "parked, until an operator decides", NULL);
    f = (sl_key_fact){ 1, "k", "", 42, HOUR, false };
    sl_judge_keys(&all, &f);
    expect("warn", "no reason was kept", NULL);
}

static void waiting(void **state)
{
    (void)state;
    sl_judge_waiting(&all, 0, "", 0, 0, &norms);
    expect("ok", "nothing is due", NULL);
    sl_judge_waiting(&all, 7, "t", 10 * SECOND - 1, 0, &norms);
    expect("ok", "the oldest for", NULL);
    sl_judge_waiting(&all, 7, "t", 10 * SECOND, 0, &norms);
    expect("warn", "message 7 (topic t) has been due for 10.0 s, and no node is registered",
           "sluice run");
    sl_judge_waiting(&all, 7, "t", 300 * SECOND, 0, &norms);
    expect("bad", "5m00s", "sluice run");
    sl_judge_waiting(&all, 7, "t", 300 * SECOND - 1, 2, &norms);
    expect("ok", NULL, NULL);
    sl_judge_waiting(&all, 7, "t", 300 * SECOND, 2, &norms);
    expect("warn", "nodes live", "sink");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_schema),      TEST(columns_indexes_and_grants),
        TEST(a_standby),       TEST(durability),
        TEST(a_pooler),        TEST(clocks),
        TEST(connections),     TEST(locks),
        TEST(transactions),    TEST(prepared_transactions),
        TEST(replicas),        TEST(autovacuum),
        TEST(dead_rows),       TEST(bloat),
        TEST(files),           TEST(what_is_in_a_file),
        TEST(nodes_and_lanes), TEST(keys),
        TEST(waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
