/* SPDX-License-Identifier: Apache-2.0 */
/* What a route takes from the top level, and what a reload compares and keeps. */
#include "lib/settings_routes.h"

#include "claim/claim.h"
#include "core/clock.h"
#include "sink/sink.h"
#include "unit/unit.h"

static sl_settings s;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    sl_settings_init(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_settings_fini(&s);
    return 0;
}

static const sl_opt *row(const char *name)
{
    const sl_opt *r = sl_opt_find(sl_route_table, name);
    assert_non_null(r);
    return r;
}

static void put(sl_settings *to, const char *name, const char *value)
{
    sl_route_conf *c = &to->routes[to->route_count - 1];
    if (sl_route_put(c, row(name), value, &err) != SL_OK)
        fail_msg("%s: %s", name, err.text);
}

static void add(sl_settings *to, const char *topics, const char *sink)
{
    sl_routes_add(to, "f.yaml:7");
    put(to, "topics", topics);
    put(to, "sink", sink);
}

static void set(const char *name, const char *value)
{
    assert_int_equal(sl_settings_set(&s, name, value, &err), SL_OK);
}

static void the_table_is_sound(void **state)
{
    (void)state;
    for (const sl_opt *o = sl_route_table; o->name; o++) {
        const sl_opt *top = sl_opt_find(sl_settings_table, o->name);
        sl_opt field = sl_route_field(o);
        assert_ptr_equal(row(o->name), o);
        assert_non_null(field.help);
        assert_true(field.arg || field.type == SL_OPT_BOOL); /* which may be yes or no */
        assert_int_equal(field.offset, o->offset);
        if (!(o->flags & SL_ROUTE_SHARED))
            continue;
        assert_non_null(top);
        assert_int_equal(field.type, top->type);
        assert_int_equal(field.max, top->max);
        assert_ptr_equal(field.arg, top->arg);
    }
    assert_true(row("topics") == sl_route_table); /* their reader relies on it */
}

static void what_it_does_not_say_comes_from_the_top(void **state)
{
    (void)state;
    add(&s, "a", "null:");
    add(&s, "b", "null:");
    put(&s, "max_attempts", "3");
    put(&s, "delivery", "at-least-once");
    put(&s, "retry_max", "2m");
    put(&s, "batch", "7");
    /* Afterwards, as flags come after the file. */
    set("max_attempts", "5");
    set("delivery", "at-most-once");
    set("on_failure", "skip");
    set("retry_base", "2s");
    set("retry_max", "1m");
    set("batch", "100");
    sl_route_conf a = sl_route_of(&s, 0);
    sl_route_conf b = sl_route_of(&s, 1);
    assert_int_equal(a.max_attempts, 5);
    assert_int_equal(b.max_attempts, 3);
    assert_int_equal(a.delivery, 1);
    assert_int_equal(b.delivery, 0);
    assert_int_equal(a.on_failure, 2);
    assert_int_equal(b.on_failure, 2);
    assert_int_equal(a.retry_base_ns, 2 * SL_SEC);
    assert_int_equal(a.retry_max_ns, 60 * SL_SEC);
    assert_int_equal(b.retry_max_ns, 120 * SL_SEC);
    assert_int_equal(a.batch, 0); /* another thing than that of the top level */
    assert_int_equal(b.batch, 7);
    assert_int_equal(sl_route_from(&s, 0, row("max_attempts")), SL_FROM_FLAG);
    assert_int_equal(sl_route_from(&s, 1, row("max_attempts")), SL_FROM_FILE);
    assert_int_equal(sl_route_from(&s, 0, row("batch")), SL_FROM_DEFAULT);
    assert_int_equal(s.routes[0].max_attempts, 0); /* nothing was copied */
}

static void the_same_routes_are_the_same(void **state)
{
    (void)state;
    static const char *const changes[][2] = { { "topics", "c" },     { "sink", "stdout:" },
                                              { "batch", "3" },      { "concurrency", "3" },
                                              { "retry_max", "3s" }, { "on_failure", "park" } };
    sl_settings other;
    sl_settings_init(&other);
    add(&s, "a", "null:");
    put(&s, "topics", "b");
    assert_false(sl_routes_same(&s, &other));
    sl_routes_copy(&other, &s);
    assert_true(sl_routes_same(&s, &other));
    assert_string_equal(other.routes[0].topics.v[1], "b");
    assert_string_equal(other.routes[0].where, "f.yaml:7");
    for (size_t i = 0; i < COUNT(changes); i++) {
        put(&other, changes[i][0], changes[i][1]);
        assert_false(sl_routes_same(&s, &other));
        sl_routes_copy(&other, &s);
        assert_true(sl_routes_same(&s, &other));
    }
    put(&s, "batch", "3");
    put(&other, "batch", "4");
    assert_false(sl_routes_same(&s, &other));
    add(&other, "c", "null:");
    sl_routes_copy(&s, &other);
    assert_int_equal(s.route_count, 2);
    sl_settings_fini(&other);
}

static void a_topic_may_hold_a_comma(void **state)
{
    (void)state;
    sl_settings other;
    sl_settings_init(&other);
    add(&s, "a,b", "null:");
    put(&s, "topics", "c\\");
    sl_routes_copy(&other, &s);
    assert_int_equal(other.routes[0].topics.count, 2);
    assert_string_equal(other.routes[0].topics.v[0], "a,b");
    assert_true(sl_routes_same(&s, &other));
    sl_routes_clear(&other); /* three topics are not those two */
    add(&other, "a", "null:");
    put(&other, "topics", "b");
    put(&other, "topics", "c\\");
    assert_false(sl_routes_same(&s, &other));
    sl_settings_fini(&other);
}

static void refused(const char *says)
{
    assert_int_equal(sl_settings_check(&s, &err), SL_REFUSED);
    if (!strstr(err.text, says))
        fail_msg("'%s' lacks '%s'", err.text, says);
}

static void what_contradicts_is_refused(void **state)
{
    (void)state;
    add(&s, "a", "null:");
    assert_int_equal(sl_settings_check(&s, &err), SL_OK);
    set("sink", "null:");
    refused("there are routes and a sink, and the routes would count\nhint: drop sink (flag)");
    set("sink", "");
    put(&s, "retry_max", "10ms"); /* the base is that of the top level: a second */
    refused("f.yaml:7: retry_base of this route is longer than retry_max");
    put(&s, "retry_base", "10ms");
    assert_int_equal(sl_settings_check(&s, &err), SL_OK);
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        set("strategy", (*c)->name);
        put(&s, "delivery", "at-least-once");
        assert_int_equal(sl_settings_check(&s, &err), SL_OK);
        put(&s, "delivery", "at-most-once");
        assert_int_equal(sl_settings_check(&s, &err), SL_OK);
    }
}

/* ---- The fence ---- */

static sl_rc checked(const char *sink, const char *fence, const char *delivery,
                     const char *strategy)
{
    sl_settings f;
    sl_err e = { 0 };
    sl_settings_init(&f);
    assert_int_equal(sl_settings_set(&f, "sink", sink, &e), SL_OK);
    assert_int_equal(sl_settings_set(&f, "fence", fence, &e), SL_OK);
    assert_int_equal(sl_settings_set(&f, "delivery", delivery, &e), SL_OK);
    assert_int_equal(sl_settings_set(&f, "strategy", strategy, &e), SL_OK);
    sl_rc rc = sl_settings_check(&f, &e);
    if (rc == SL_OK)
        assert_int_equal(sl_settings_fence(&f),
                         !strcmp(fence, "kafka") || !strcmp(delivery, "exactly-once"));
    sl_settings_fini(&f);
    return rc;
}

static void a_fence_is_kafka_s_and_of_lanes(void **state)
{
    (void)state;
    sl_sink_ops const *ops;
    sl_err e = { 0 };
    assert_int_equal(checked("null:", "none", "at-least-once", "guard"), SL_OK);
    assert_int_equal(checked("null:", "kafka", "at-least-once", "lanes"), SL_REFUSED);
    assert_int_equal(checked("null:", "none", "exactly-once", "lanes"), SL_REFUSED);
    if (sl_sink_find(&ops, "kafka://b:1", &e) != SL_OK)
        return; /* not in this build */
    assert_int_equal(checked("kafka://b:1", "kafka", "at-least-once", "lanes"), SL_OK);
    assert_int_equal(checked("kafka://b:1", "kafka", "at-most-once", "lanes"), SL_OK);
    assert_int_equal(checked("kafka://b:1", "none", "exactly-once", "lanes"), SL_OK);
    assert_int_equal(checked("kafka://b:1", "kafka", "at-least-once", "guard"), SL_REFUSED);
    assert_int_equal(checked("kafka://b:1", "none", "exactly-once", "advisory"), SL_REFUSED);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_sound),           TEST(what_it_does_not_say_comes_from_the_top),
        TEST(the_same_routes_are_the_same), TEST(a_topic_may_hold_a_comma),
        TEST(what_contradicts_is_refused),  TEST(a_fence_is_kafka_s_and_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
