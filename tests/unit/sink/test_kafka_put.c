/* SPDX-License-Identifier: Apache-2.0 */
/* The file is compiled once more, with a librdkafka that hangs when it is told to. */
#include "core/clock.h"
#include "unit/unit.h"

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

static _Atomic bool hangs;
static _Atomic int destroyed;
static rd_kafka_resp_err_t fails;

static rd_kafka_error_t *fake_send(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *parts,
                                   const rd_kafka_consumer_group_metadata_t *group,
                                   int timeout_ms)
{
    (void)rk, (void)group, (void)timeout_ms;
    while (hangs)
        usleep(1000);
    assert_int_equal(parts->cnt, 1); /* it is still there */
    return fails ? rd_kafka_error_new(fails, "no") : NULL;
}

static void fake_destroy(rd_kafka_t *rk)
{
    assert_ptr_equal(rk, &hangs);
    destroyed++;
}

#define rd_kafka_send_offsets_to_transaction fake_send
#define rd_kafka_destroy fake_destroy
#include "sink/kafka_put.c"

static rd_kafka_error_t *put(int64_t limit_ns, sl_kafka_put **stuck)
{
    rd_kafka_topic_partition_list_t *parts = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(parts, "t", 0);
    return sl_kafka_put_offsets((rd_kafka_t *)(void *)&hangs, parts,
                                rd_kafka_consumer_group_metadata_new("g"), 10, limit_ns, stuck);
}

static int setup(void **state)
{
    (void)state;
    hangs = false;
    destroyed = 0;
    fails = RD_KAFKA_RESP_ERR_NO_ERROR;
    return 0;
}

static void what_it_says_comes_through(void **state)
{
    (void)state;
    sl_kafka_put *stuck = NULL;
    assert_null(put(60 * SL_SEC, &stuck));
    fails = RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE;
    rd_kafka_error_t *error = put(60 * SL_SEC, &stuck);
    assert_int_equal(rd_kafka_error_code(error), fails);
    rd_kafka_error_destroy(error);
    assert_null(stuck);
    assert_int_equal(destroyed, 0);
}

static sl_kafka_put *hang(void)
{
    sl_kafka_put *stuck = NULL;
    hangs = true;
    rd_kafka_error_t *error = put(50 * SL_MS, &stuck);
    assert_int_equal(rd_kafka_error_code(error), SL_KAFKA_STUCK);
    rd_kafka_error_destroy(error);
    assert_non_null(stuck);
    assert_int_equal(destroyed, 0);
    return stuck;
}

/* The producer goes when the call comes back, and not before. */
static void who_hangs_is_left_alone(void **state)
{
    (void)state;
    assert_false(sl_kafka_put_leave(hang()));
    assert_int_equal(destroyed, 0);
    hangs = false;
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (!destroyed && sl_now_ns() < until_ns)
        usleep(1000);
    assert_int_equal(destroyed, 1);
}

/* It came back after all, before it was left: then the producer is ours. */
static void who_comes_back_late_is_ours(void **state)
{
    (void)state;
    fails = RD_KAFKA_RESP_ERR__FENCED;
    sl_kafka_put *stuck = hang();
    hangs = false;
    assert_true(wait_for(stuck, 20 * SL_SEC));
    assert_true(sl_kafka_put_leave(stuck));
    assert_int_equal(destroyed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_it_says_comes_through, setup),
        cmocka_unit_test_setup(who_hangs_is_left_alone, setup),
        cmocka_unit_test_setup(who_comes_back_late_is_ours, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
