/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows go, which wait, and which statements a settle is made of; what those do is in
 * tests/contract/test_claims_order.c and test_claims_lost.c. */
#include "claim/ordered.h"

#include "core/clock.h"
#include "support/fakedb.h"

static fakedb db;
static sl_batch batch;
static sl_ordered found;
static sl_err err;
static size_t lost;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    fakedb_init(&db);
    sl_batch_init(&batch);
    found = (sl_ordered){ 0 };
    sl_ordered_begin(&found, &batch, 100, 1 << 20);
    lost = 99;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_ordered_fini(&found);
    sl_batch_fini(&batch);
    fakedb_fini(&db);
    return 0;
}

#define said(want) assert_string_equal(fakedb_said(&db), want)

/* ---- Rows ---- */

enum { GO, KEY, TIME, DELAY };

/* key NULL: without one; id 0: a key that has nothing held. */
static void row(sl_row_fn fn, int64_t id, const char *key, int wait, const char *payload)
{
    sl_val cols[12];
    for (int i = 0; i < 12; i++)
        cols[i] = sl_text(SL_STR("x"));
    cols[0] = sl_int(id);
    cols[0].null = id == 0;
    cols[1] = sl_int(9);
    cols[2] = sl_int(1);
    cols[3] = sl_int(0);
    cols[5] = sl_text(key ? sl_str_of(key) : SL_NONE);
    cols[9] = sl_text(sl_str_of(payload));
    cols[10] = sl_int(5);
    cols[11] = sl_int(wait);
    assert_int_equal(fn(&found, cols, &err), SL_OK);
}

static void add(int64_t id, const char *key, int wait)
{
    row(sl_ordered_row, id, key, wait, "p");
}

static void add_due(int64_t id, const char *key, int wait)
{
    row(sl_ordered_due_row, id, key, wait, "p");
}

/* "1 2|3|4|x": messages that go, behind, scheduled, served keys. */
static void expect_found(const char *want)
{
    sl_buf got = { 0 };
    for (size_t i = 0; i < batch.count; i++)
        sl_buf_printf(&got, "%s%lld", i ? " " : "", (long long)batch.msgs[i].id);
    sl_buf_putc(&got, '|');
    for (size_t i = 0; i < found.behind.count; i++)
        sl_buf_printf(&got, "%s%lld", i ? " " : "", (long long)found.behind.v[i]);
    sl_buf_putc(&got, '|');
    for (size_t i = 0; i < found.scheduled.count; i++)
        sl_buf_printf(&got, "%s%lld", i ? " " : "", (long long)found.scheduled.v[i]);
    sl_buf_putc(&got, '|');
    for (size_t i = 0; i < found.served.count; i++)
        sl_buf_printf(&got, "%s%.*s", i ? " " : "", (int)found.served.v[i].n,
                      found.served.v[i].p);
    assert_string_equal(sl_buf_text(&got), want);
    sl_buf_fini(&got);
}

static void what_may_go_goes(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, NULL, GO);
    expect_found("1 2|||");
    assert_false(sl_ordered_found(&found));
    assert_int_equal(batch.msgs[0].lane, 5);
    assert_int_equal(batch.msgs[0].epoch, 9);
    assert_false(batch.msgs[0].held);
}

static void behind_a_blocked_key_nothing_goes(void **state)
{
    (void)state;
    add(1, "x", KEY);
    add(2, "y", GO);
    add(3, "x", KEY);
    expect_found("2|1 3||");
    assert_true(sl_ordered_found(&found));
}

/* Its time closes the key for the rest of the turn, and no other. */
static void behind_a_scheduled_one_nothing_goes(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "x", TIME);
    add(3, "x", GO);
    add(4, "x", TIME);
    add(5, "y", GO);
    add(6, NULL, TIME);
    add(7, NULL, GO);
    expect_found("1 5 7|3 4|2 6|");
}

static void a_full_batch_leaves_the_rest(void **state)
{
    (void)state;
    sl_ordered_begin(&found, &batch, 2, 1 << 20);
    add(1, "x", GO);
    add(2, "x", GO);
    add(3, "x", GO);
    add(4, "y", KEY);  /* what is behind a blocked key is noted all the same */
    add(5, "x", TIME); /* 3 would have to wait for its time */
    expect_found("1 2|4||");
}

/* After the first that is too many none goes, however small: else it would pass the others. */
static void the_bytes_leave_no_gap(void **state)
{
    (void)state;
    sl_ordered_begin(&found, &batch, 100, 4);
    row(sl_ordered_row, 1, "x", GO, "xxxxxxxx"); /* the first always fits */
    row(sl_ordered_row, 2, "x", GO, "");
    expect_found("1|||");
    sl_batch_reset(&batch);
    sl_ordered_begin(&found, &batch, 100, 4);
    row(sl_ordered_row, 1, "x", GO, "xxx");
    row(sl_ordered_row, 2, "x", GO, "xxx"); /* begins within */
    row(sl_ordered_row, 3, "x", GO, "");
    expect_found("1 2|||");
}

static void keys_that_are_due_are_served_from_what_is_held(void **state)
{
    (void)state;
    add_due(1, "x", GO);
    add_due(2, "x", GO);
    add_due(0, "y", GO); /* nothing left of it */
    add_due(4, NULL, GO);
    add_due(5, "z", GO);
    add_due(6, "z", TIME);
    add_due(7, "z", GO);
    expect_found("1 2 4 5||6|x y z");
    for (size_t i = 0; i < batch.count; i++)
        assert_true(batch.msgs[i].held);
}

/* "2|5": delayed, rejoining. */
static void expect_delayed(const char *want)
{
    sl_buf got = { 0 };
    for (size_t i = 0; i < found.delayed.count; i++)
        sl_buf_printf(&got, "%s%lld", i ? " " : "", (long long)found.delayed.v[i]);
    sl_buf_putc(&got, '|');
    for (size_t i = 0; i < found.rejoining.count; i++)
        sl_buf_printf(&got, "%s%lld", i ? " " : "", (long long)found.rejoining.v[i]);
    assert_string_equal(sl_buf_text(&got), want);
    sl_buf_fini(&got);
}

/* What was never tried waits alone, if that is wanted; and only if nothing of its key waits before it. */
static void delayed_ones_are_passed(void **state)
{
    (void)state;
    found.delays = true;
    add(1, "x", DELAY);
    add(2, "x", GO);
    add(3, "x", TIME);
    add(4, "x", DELAY);
    add(5, NULL, DELAY);
    add_due(6, "y", GO);
    add_due(7, "y", DELAY);
    add_due(8, "y", GO);
    expect_found("2 6 8|4|3 5|y");
    expect_delayed("1 7|");
}

static void without_the_setting_keys_wait(void **state)
{
    (void)state;
    add(1, "x", DELAY);
    add(2, "x", GO);
    add_due(7, "y", DELAY);
    add_due(8, "y", GO);
    expect_found("|2|1 7|y");
    expect_delayed("|");
}

/* Whatever the setting is: it was delayed, now it is due. */
static void delayed_ones_that_are_due_go_or_rejoin(void **state)
{
    (void)state;
    add_due(1, "x", TIME);
    row(sl_ordered_delayed_row, 2, "x", GO, "p"); /* the key is blocked by this turn */
    row(sl_ordered_delayed_row, 3, "y", KEY, "p");
    row(sl_ordered_delayed_row, 4, "z", GO, "p");
    expect_found("4||1|x");
    expect_delayed("|2 3");
    assert_true(batch.msgs[0].held);
}

static void each_turn_begins_anew(void **state)
{
    (void)state;
    found.delays = true;
    add(1, "x", TIME);
    add_due(2, "y", GO);
    add(4, "y", DELAY);
    row(sl_ordered_delayed_row, 5, "x", KEY, "p");
    sl_batch_reset(&batch);
    sl_ordered_begin(&found, &batch, 100, 100);
    expect_found("|||");
    expect_delayed("|");
    assert_false(sl_ordered_found(&found));
    add(3, "x", GO);
    expect_found("3|||");
}

/* ---- Settling ---- */

static int64_t claims[] = { 70, 71 };
static sl_val fence_in[2], done_in[2];
static sl_call fence, done;

static sl_ordered_how how(bool in_transaction, bool let_go)
{
    fence_in[0] = sl_ints(claims, 2);
    fence_in[1] = sl_ints(claims, 2);
    fence = (sl_call){ .stmt = sl_db_stmt(&db.base, "lanes/fence"), .in = fence_in };
    done_in[0] = fence_in[0];
    done_in[1] = sl_int(3);
    done = (sl_call){ .stmt = sl_db_stmt(&db.base, "lanes/release"), .in = done_in };
    return (sl_ordered_how){ .in_transaction = in_transaction,
                             .sent = "lanes/sent",
                             .fence = &fence,
                             .fenced = 2,
                             .done = &done,
                             .dones = let_go ? 1 : 0,
                             .retry_base_ns = SL_SEC,
                             .retry_max_ns = SL_SEC };
}

/* A letter for each message: sent, retry, unknown, dead, released, held. */
static void judge(const char *verdicts)
{
    for (size_t i = 0; verdicts[i]; i++) {
        sl_msg *m = &batch.msgs[i];
        char c = verdicts[i];
        m->delay_ns = 5000;
        sl_msg_settle(&batch, m,
                      c == 's'   ? SL_SENT
                      : c == 'r' ? SL_RETRY
                      : c == 'u' ? SL_UNKNOWN
                      : c == 'd' ? SL_DEAD
                      : c == 'h' ? SL_HELD
                                 : SL_RELEASED,
                      SL_STR("why"));
    }
}

static void settle(sl_ordered_how h)
{
    if (sl_ordered_settle(&db.base, &found, &h, &lost, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void deletions_alone_are_one_statement(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "x", GO);
    judge("s-");
    settle(how(false, false));
    said("lanes/sent({1},{9},{5})");
    assert_int_equal(lost, 0);
}

static void nothing_to_write_is_not_written(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "y", GO);
    judge("-h");
    settle(how(false, false));
    said("");
    settle(how(true, false)); /* but the transaction ends */
    said("tx/commit");
}

static void deletions_in_a_transaction_end_it(void **state)
{
    (void)state;
    sl_ordered_how h = how(true, false);
    h.sent = "ordered/sent";
    add(1, "x", GO);
    judge("s");
    settle(h);
    said("ordered/sent({1}) tx/commit");
}

/* A copy and a deletion, which check by the same, in one transaction and one round trip. */
static void what_is_kept_is_copied_first(void **state)
{
    (void)state;
    sl_ordered_how h = how(false, false);
    h.keep = "lanes/keep";
    add(1, "x", GO);
    add(2, "x", GO);
    judge("s-");
    settle(h);
    said("tx/begin lanes/keep({1},{9},{1},{5}) lanes/sent({1},{9},{5}) tx/commit");
    assert_int_equal(lost, 0);
    h.in_transaction = true;
    h.keep = "ordered/keep";
    h.sent = "ordered/sent";
    settle(h);
    said("ordered/keep({1},{9},{1}) ordered/sent({1}) tx/commit");
}

static void nothing_sent_is_nothing_kept(void **state)
{
    (void)state;
    sl_ordered_how h = how(false, false);
    h.keep = "lanes/keep";
    add(1, "x", GO);
    judge("-");
    settle(h);
    said("");
}

static void what_is_kept_is_copied_behind_the_fence(void **state)
{
    (void)state;
    sl_ordered_how h = how(false, false);
    h.keep = "lanes/keep";
    add(1, "x", GO);
    add(2, "y", GO);
    judge("sr");
    settle(h);
    assert_non_null(strstr(fakedb_said(&db), "\nordered/keep({1},{9},{1}) ordered/sent({1}) "));
}

/* With the last of them the claims go, too. */
static void claims_that_go_end_with_the_settle(void **state)
{
    (void)state;
    add(1, "x", GO);
    judge("s");
    settle(how(false, true));
    said("tx/begin lanes/sent({1},{9},{5}) lanes/release({70,71},3) tx/commit");
    sl_batch_reset(&batch);
    settle(how(false, true));
    said("lanes/release({70,71},3)");
    add(2, "x", GO);
    judge("r");
    settle(how(false, true));
    assert_non_null(
        strstr(fakedb_said(&db), "ordered/block({2}) lanes/release({70,71},3) tx/commit"));
}

static void what_waits_is_fenced_and_written_in_one_go(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "y", GO);
    add(3, "z", GO);
    add(4, "w", GO);
    add(5, "v", KEY);
    add(6, "t", TIME);
    add_due(7, "s", GO);
    judge("srdu-");
    settle(how(false, false));
    said("tx/begin lanes/fence({70,71},{70,71})\n"
         "ordered/sent({1}) ordered/retry({2,4},{5,5},{'why','why'},{1,1}) "
         "ordered/bury({3},{9},{'why'},{1}) ordered/sent({3}) ordered/hold({5}) "
         "ordered/hold({6,4,2}) ordered/block({6,4,2}) ordered/unblock({'s'}) "
         "ordered/rotate({'s'}) tx/commit");
    assert_int_equal(lost, 0);
    assert_false(sl_ordered_found(&found)); /* written once */
}

/* Of each key the first counts: where statements run one by one, it has to come last. */
static void the_first_of_a_key_is_blocked_last(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "x", GO);
    add(3, "x", TIME);
    judge("rr");
    settle(how(true, false));
    said("ordered/retry({1,2},{5,5},{'why','why'},{1,1}) ordered/hold({3,2,1}) "
         "ordered/block({3,2,1}) tx/commit");
}

static void with_an_empty_batch_only_what_was_found_is_written(void **state)
{
    (void)state;
    add(1, "x", KEY);
    add_due(0, "y", GO);
    settle(how(false, false));
    said("tx/begin lanes/fence({70,71},{70,71})\n"
         "ordered/hold({1}) ordered/unblock({'y'}) ordered/rotate({'y'}) tx/commit");
}

/* ---- Lost ---- */

static void missing_rows_were_lost(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "y", GO);
    judge("ss");
    db.lossy = "lanes/sent";
    db.missing = 1;
    settle(how(false, false));
    assert_int_equal(lost, 1);
}

/* Not all claims are ours: only deletions, which check by themselves. */
static void a_lost_claim_writes_nothing_but_deletions(void **state)
{
    (void)state;
    add(1, "x", GO);
    add(2, "y", GO);
    add(3, "z", GO);
    add(4, "w", GO);
    add(5, "v", KEY);
    judge("srd-");
    db.lossy = "lanes/fence";
    db.missing = 1;
    settle(how(false, false));
    said("tx/begin lanes/fence({70,71},{70,71})\nlanes/sent({1},{9},{5})");
    assert_int_equal(db.rollbacks, 1);
    assert_int_equal(lost, 2);
}

static void a_lost_claim_keeps_what_it_deletes(void **state)
{
    (void)state;
    sl_ordered_how h = how(false, false);
    h.keep = "lanes/keep";
    add(1, "x", GO);
    add(2, "y", GO);
    judge("sr");
    db.lossy = "lanes/fence";
    db.missing = 1;
    settle(h);
    said("tx/begin lanes/fence({70,71},{70,71})\n"
         "tx/begin lanes/keep({1},{9},{1},{5}) lanes/sent({1},{9},{5}) tx/commit");
    assert_int_equal(db.rollbacks, 1);
    assert_int_equal(lost, 1);
}

static void failures_are_passed_on(void **state)
{
    (void)state;
    for (int at = 1; at <= 2; at++) {
        sl_ordered_how h = how(false, false);
        sl_batch_reset(&batch);
        sl_ordered_begin(&found, &batch, 100, 100);
        add(1, "x", GO);
        judge("r");
        db.fail_at = at;
        db.rc = SL_AGAIN;
        assert_int_equal(sl_ordered_settle(&db.base, &found, &h, &lost, &err), SL_AGAIN);
        assert_string_equal(err.text, "fake: failed as told");
    }
}

/* ---- The rest ---- */

static void every_statement_is_rehearsed(void **state)
{
    (void)state;
    assert_int_equal(sl_ordered_rehearse(&db.base, false, &err), SL_OK);
    said("tx/begin ordered/sent({}) ordered/retry({},{},{},{}) ordered/bury({},{},{},{}) "
         "ordered/hold({}) ordered/block({}) ordered/delay({}) ordered/rejoin({}) "
         "ordered/unblock({}) ordered/rotate({}) attempts/count({}) attempts/uncount({}) "
         "tx/commit");
}

static void keeping_is_rehearsed(void **state)
{
    (void)state;
    assert_int_equal(sl_ordered_rehearse_keep(&db.base, "guard/keep", false, &err), SL_OK);
    said("tx/begin ordered/keep({},{},{}) guard/keep({},{},{}) tx/commit");
}

static void peeking_is_one_question(void **state)
{
    (void)state;
    bool any = true;
    sl_val answer[1][SL_STMT_MAX] = { { { .type = SL_T_BOOL, .i = 0 } } };
    db.rows = (const sl_val(*)[SL_STMT_MAX])answer;
    db.nrows = 1;
    assert_int_equal(
        sl_ordered_peek(&db.base, "ordered/peek", (sl_val[]){ sl_int(7) }, &any, &err), SL_OK);
    assert_false(any);
    said("ordered/peek(7)");
}

static void lists_grow(void **state)
{
    (void)state;
    sl_id_list ids = { 0 };
    sl_str_list strs = { 0 };
    for (int64_t i = 0; i < 1000; i++) {
        sl_id_list_add(&ids, i);
        sl_str_list_add(&strs, i % 2 ? SL_STR("odd") : SL_STR("even"));
    }
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(ids.v[i], i);
        assert_int_equal(strs.v[i].n, i % 2 ? 3 : 4);
    }
    free(ids.v);
    free(strs.v);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_may_go_goes),
        TEST(behind_a_blocked_key_nothing_goes),
        TEST(behind_a_scheduled_one_nothing_goes),
        TEST(a_full_batch_leaves_the_rest),
        TEST(the_bytes_leave_no_gap),
        TEST(keys_that_are_due_are_served_from_what_is_held),
        TEST(delayed_ones_are_passed),
        TEST(without_the_setting_keys_wait),
        TEST(delayed_ones_that_are_due_go_or_rejoin),
        TEST(each_turn_begins_anew),
        TEST(deletions_alone_are_one_statement),
        TEST(nothing_to_write_is_not_written),
        TEST(deletions_in_a_transaction_end_it),
        TEST(what_is_kept_is_copied_first),
        TEST(nothing_sent_is_nothing_kept),
        TEST(what_is_kept_is_copied_behind_the_fence),
        TEST(claims_that_go_end_with_the_settle),
        TEST(what_waits_is_fenced_and_written_in_one_go),
        TEST(the_first_of_a_key_is_blocked_last),
        TEST(with_an_empty_batch_only_what_was_found_is_written),
        TEST(missing_rows_were_lost),
        TEST(a_lost_claim_writes_nothing_but_deletions),
        TEST(a_lost_claim_keeps_what_it_deletes),
        TEST(failures_are_passed_on),
        TEST(every_statement_is_rehearsed),
        TEST(keeping_is_rehearsed),
        TEST(peeking_is_one_question),
        TEST(lists_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
