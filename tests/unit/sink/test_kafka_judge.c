/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_judge.h"

#include "unit/unit.h"

#include "core/buf.h"

static const char *const words[] = { "ok", "warn", "bad", "unknown" };

static void note(void *ctx, sl_sink_state state, const char *check, const char *found,
                 const char *todo)
{
    assert_string_equal(check, "topic");
    assert_int_equal(todo == NULL, state == SL_SINK_FINE);
    sl_buf_printf(ctx, "%s: %s\n", words[state], found);
}

/* As it should be. */
static sl_kafka_fact good(void)
{
    return (sl_kafka_fact){ .name = "orders",
                            .partitions = 6,
                            .replicas = 3,
                            .in_sync = 3,
                            .configs = true,
                            .min_in_sync = 2,
                            .message_max = 1000 };
}

static void expect(sl_kafka_fact f, sl_kafka_need need, const char *state, const char *part)
{
    sl_buf out = { 0 };
    sl_kafka_judge(&f, &need, note, &out);
    const char *line = sl_buf_text(&out);
    if (strncmp(line, state, strlen(state)) != 0 || !strstr(line, part) ||
        strchr(line, '\n')[1] != '\0')
        fail_msg("%s", line); /* one finding, and this one */
    sl_buf_fini(&out);
}

static void a_good_topic_is_fine(void **state)
{
    (void)state;
    expect(good(), (sl_kafka_need){ 10, 10, 1000, 1000 }, "ok",
           "orders: 6 partitions, 3 replicas, min.insync.replicas 2, all in sync");
    sl_kafka_fact f = good();
    f.configs = false;
    f.min_in_sync = 0; /* not known: nothing is said of it */
    expect(f, (sl_kafka_need){ 1, 1, 5000, 0 }, "ok", "6 partitions, 3 replicas, all in sync");
}

static void copies(void **state)
{
    (void)state;
    sl_kafka_fact f = good();
    f.replicas = f.in_sync = 1;
    f.min_in_sync = 1;
    expect(f, (sl_kafka_need){ 0 }, "warn", "one replica");
    f = good();
    f.min_in_sync = 1;
    expect(f, (sl_kafka_need){ 0 }, "warn", "min.insync.replicas is 1 of 3");
    f = good();
    f.min_in_sync = 3;
    expect(f, (sl_kafka_need){ 0 }, "warn", "deliveries stop with any broker");
    f = good();
    f.unclean = true;
    expect(f, (sl_kafka_need){ 0 }, "warn", "unclean.leader.election.enable is true");
}

static void brokers_that_are_missing(void **state)
{
    (void)state;
    sl_kafka_fact f = good();
    f.leaderless = 2;
    expect(f, (sl_kafka_need){ 0 }, "bad", "2 of 6 partitions have no leader");
    f = good();
    f.in_sync = 2;
    f.lagging = 4;
    expect(f, (sl_kafka_need){ 0 }, "warn", "of 4 of 6 partitions not all replicas");
    f.in_sync = 1;
    expect(f, (sl_kafka_need){ 0 }, "bad", "1 replicas in sync, min.insync.replicas is 2");
    f.configs = false; /* then it is not known whether they are too few */
    expect(f, (sl_kafka_need){ 0 }, "warn", "of 4 of 6");
}

static void more_replicas_are_asked_for_than_there_are(void **state)
{
    (void)state;
    sl_buf out = { 0 };
    sl_kafka_fact f = good();
    f.replicas = f.in_sync = 1;
    sl_kafka_judge(&f, &(sl_kafka_need){ 0 }, note, &out);
    assert_non_null(strstr(sl_buf_text(&out), "bad: orders: it has 1 replicas, min.insync"));
    sl_buf_fini(&out);
}

static void what_waits(void **state)
{
    (void)state;
    sl_kafka_fact f = good();
    f.compacted = true;
    expect(f, (sl_kafka_need){ .count = 5, .largest = 10 }, "ok", "orders");
    expect(f, (sl_kafka_need){ .count = 5, .keyless = 3 }, "warn",
           "3 messages without a key wait");
    expect(good(), (sl_kafka_need){ .largest = 1001 }, "warn", "max.message.bytes is 1000");
    expect(good(), (sl_kafka_need){ .largest = 900, .message_max = 899 }, "warn",
           "message.max.bytes of the settings is 899");
}

static void expect_missing(sl_kafka_makes by, int64_t waiting, const char *state,
                           const char *part)
{
    sl_buf out = { 0 };
    sl_kafka_judge_missing("orders", &by, waiting, note, &out);
    if (strncmp(sl_buf_text(&out), state, strlen(state)) != 0 ||
        !strstr(sl_buf_text(&out), part))
        fail_msg("%s", sl_buf_text(&out));
    sl_buf_fini(&out);
}

static void a_topic_that_is_missing(void **state)
{
    (void)state;
    expect_missing((sl_kafka_makes){ true, true, 4, 2 }, 7, "warn",
                   "will make it, with 4 partitions and 2 replicas");
    expect_missing((sl_kafka_makes){ .known = true }, 7, "bad", "messages wait for it");
    expect_missing((sl_kafka_makes){ .known = true }, 0, "warn", "is not there\n");
    expect_missing((sl_kafka_makes){ 0 }, 7, "warn", "could not be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_topic_is_fine),
        cmocka_unit_test(copies),
        cmocka_unit_test(brokers_that_are_missing),
        cmocka_unit_test(more_replicas_are_asked_for_than_there_are),
        cmocka_unit_test(what_waits),
        cmocka_unit_test(a_topic_that_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
