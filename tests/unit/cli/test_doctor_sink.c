/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of which sink. Kafka is represented by what its describe says of names without a broker: that is
 * tests/unit/sink/test_kafka_doctor.c. */
#include "cli/doctor_sink.h"

#include "lib/settings_routes.h"

#include "sink/sink.h"
#include "unit/unit.h"

/* A build may have left one of them out. */
static void needs(const char *url)
{
    const sl_sink_ops *ops;
    sl_err err = { 0 };
    if (sl_sink_find(&ops, url, &err) != SL_OK)
        skip();
}

static void one_without_another_side(void **state)
{
    (void)state;
    needs("null:");
    sl_settings s;
    sl_err err = { 0 };
    sl_findings all = { 0 };
    sl_waits waits = { 0 };
    sl_settings_init(&s);
    assert_int_equal(sl_settings_set(&s, "sink", "null:", &err), SL_OK);
    sl_waits_add(&waits, SL_STR("orders"), SL_STR("paid"), 3, 1, 10);
    sl_waits_add(&waits, SL_STR("mails"), (sl_str){ 0 }, 4, 0, 10);
    assert_int_equal(waits.messages, 7);
    assert_int_equal(sl_doctor_sinks(&s, NULL, &waits, &all, &err), SL_OK);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.v[0].state, SL_FINE);
    assert_string_equal(all.v[0].found, "null: has no other side to look at");
    sl_findings_fini(&all);
    sl_waits_fini(&waits);
    sl_settings_fini(&s);
}

static void each_route_is_asked(void **state)
{
    (void)state;
    needs("null:");
    needs("file:out");
    sl_settings s;
    sl_err err = { 0 };
    sl_findings all = { 0 };
    sl_settings_init(&s);
    for (size_t i = 0; i < 2; i++) {
        sl_route_conf *c = sl_routes_add(&s, "sluice.yaml:1");
        assert_int_equal(sl_route_put(c, sl_route_table, i ? "*" : "orders", &err), SL_OK);
        assert_int_equal(
            sl_route_put(c, sl_opt_find(sl_route_table, "sink"), i ? "stdout:" : "null:", &err),
            SL_OK);
    }
    assert_int_equal(sl_doctor_sinks(&s, NULL, &(sl_waits){ 0 }, &all, &err), SL_OK);
    assert_int_equal(all.count, 2);
    assert_non_null(strstr(all.v[0].found, "null:"));
    assert_non_null(strstr(all.v[1].found, "stdout:"));
    sl_findings_fini(&all);

    /* A URL takes the place of all of them. */
    assert_int_equal(sl_doctor_sinks(&s, "file:out", &(sl_waits){ 0 }, &all, &err), SL_OK);
    assert_int_equal(all.count, 1);
    assert_int_equal(sl_doctor_sinks(&s, "nosuch:", &(sl_waits){ 0 }, &all, &err), SL_REFUSED);
    sl_findings_fini(&all);
    sl_settings_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_without_another_side),
        cmocka_unit_test(each_route_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
