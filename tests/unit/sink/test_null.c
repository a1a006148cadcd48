/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/sink/sinks.h"

static void everything_is_sent_at_once(void **state)
{
    (void)state;
    sl_sink *s = open_sink("null:", NULL);
    sl_batch b;
    sl_batch_init(&b);
    for (int round = 0; round < 3; round++) {
        fill_batch(&b, 1, 100, 10);
        submit_all(s, &b);
        assert_int_equal(b.settled, 100);
        expect_all(&b, SL_SENT);
        s->ops->poll(s, 0);
    }
    close_sink(s);
    sl_batch_fini(&b);
}

static void it_has_no_options(void **state)
{
    (void)state;
    refuse_sink("null:x", SL_REFUSED, "sink null: takes nothing after the colon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_sent_at_once),
        cmocka_unit_test(it_has_no_options),
    };
    return has_sink("null") ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
