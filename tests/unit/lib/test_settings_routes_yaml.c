/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"
#include "lib/settings_routes.h"

#include "unit/unit.h"

static sl_settings s;
static sl_err err;
static char path[64];

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    sl_settings_init(&s);
    snprintf(path, sizeof path, "/tmp/sluice-test-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    sl_settings_fini(&s);
    return unlink(path);
}

static sl_rc load(const char *yaml)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(yaml, f);
    fclose(f);
    sl_settings_fini(&s);
    sl_settings_init(&s);
    sl_rc rc = sl_settings_load_file(&s, path, &err);
    return rc == SL_OK ? sl_settings_check(&s, &err) : rc;
}

static void good(const char *yaml)
{
    if (load(yaml) != SL_OK)
        fail_msg("%s: %s", yaml, err.text);
}

static void refused(const char *yaml, int line, const char *says)
{
    char where[128];
    assert_int_equal(load(yaml), SL_REFUSED);
    snprintf(where, sizeof where, "%s:%d: ", path, line);
    if (strncmp(err.text, where, strlen(where)) != 0 || !strstr(err.text, says))
        fail_msg("%s\n'%s' lacks line %d or '%s'", yaml, err.text, line, says);
}

#define SINK "    sink: \"null:\"\n"
#define ROUTE(topics) "  - topics: " topics "\n" SINK

static void routes_are_read(void **state)
{
    (void)state;
    good("routes:\n"
         "  - topics: [orders, \"orders.*\"]\n"
         "    sink: file:orders.jsonl\n"
         "    delivery: at-least-once\n"
         "    on-failure: park # either spelling\n"
         "    max_attempts: 5\n"
         "    retry_base: 1s\n"
         "    retry_max: 1m\n"
         "    batch: 100\n"
         "    concurrency: 2\n" ROUTE("\"*\"") "delivery: at-most-once\n");
    assert_int_equal(s.route_count, 2);
    sl_route_conf a = sl_route_of(&s, 0);
    sl_route_conf b = sl_route_of(&s, 1);
    assert_int_equal(a.topics.count, 2);
    assert_string_equal(a.topics.v[0], "orders");
    assert_string_equal(a.topics.v[1], "orders.*");
    assert_string_equal(a.sink, "file:orders.jsonl");
    assert_int_equal(a.delivery, 0);
    assert_int_equal(a.on_failure, 1);
    assert_int_equal(a.max_attempts, 5);
    assert_int_equal(a.retry_base_ns, SL_SEC);
    assert_int_equal(a.retry_max_ns, 60 * SL_SEC);
    assert_int_equal(a.batch, 100);
    assert_int_equal(a.concurrency, 2);
    assert_int_equal(b.topics.count, 1);
    assert_string_equal(b.topics.v[0], "*");
    assert_int_equal(b.delivery, 1); /* a line that comes later counts as well */
    assert_int_equal(b.max_attempts, 20);
}

/* Also when the file is read again. */
static void the_last_file_counts(void **state)
{
    (void)state;
    good("routes:\n" ROUTE("a") ROUTE("b"));
    assert_int_equal(sl_settings_load_file(&s, path, &err), SL_OK);
    assert_int_equal(s.route_count, 2);
}

static void wrong_routes_are_refused(void **state)
{
    (void)state;
    refused("routes:\n", 1, "routes takes a list of routes, not nothing");
    refused("routes: []\n", 1, "not an empty one");
    refused("routes: x\n", 1, "not a single value");
    refused("routes:\n  topics: a\n", 2, "not a mapping");
    refused("routes:\n  - a\n", 2, "a route is expected, not a single value");
    refused("routes:\n  - [a]\n", 2, "a route is expected, not a list");
    refused("routes:\n  -\n", 2, "a route is expected, not nothing");
    refused("routes:\n" ROUTE("a") "workers: 2\nroutes:\n" ROUTE("b"), 5,
            "routes is set twice");
    refused("rotues:\n" ROUTE("a"), 1, "unknown setting 'rotues'\nhint: did you mean routes?");
    refused("route:\n" ROUTE("a"), 1, "did you mean routes?");
}

static void wrong_fields_are_refused(void **state)
{
    (void)state;
    refused("routes:\n" ROUTE("a") "    bacth: 3\n", 4,
            "a route has no 'bacth'\nhint: did you mean batch?");
    refused("routes:\n" ROUTE("a") "    workers: 3\n", 4,
            "a route has no 'workers'\nhint: it "
            "has topics, sink, delivery");
    refused("routes:\n" ROUTE("a") "    sink: \"null:\"\n", 4, "the route has sink twice");
    refused("routes:\n" ROUTE("a") "    topics: b\n", 4, "the route has topics twice");
    refused("routes:\n" ROUTE("a") "    on_failure: skip\n    on-failure: skip\n", 5,
            "the route has on_failure twice");
    refused("routes:\n" ROUTE("a") "    batch: 0\n", 4,
            "'0' is too small for batch\nhint: from 1");
    refused("routes:\n" ROUTE("a") "    concurrency: 257\n", 4, "too large for concurrency");
    refused("routes:\n" ROUTE("a") "    max_attempts: 0\n", 4, "too small for max_attempts");
    refused("routes:\n" ROUTE("a") "    retry_base: 3\n", 4, "will not do for retry_base");
    refused("routes:\n" ROUTE("a") "    on_failure: explode\n", 4, "block|park|skip");
    refused("routes:\n" ROUTE("a") "    delivery:\n", 4, "delivery has no value");
    refused("routes:\n" ROUTE("a") "    delivery: [a]\n", 4,
            "delivery takes a single value, not a list");
    refused("routes:\n" ROUTE("a") "    <<: {batch: 3}\n", 4, "merging with <<");
    refused("routes:\n" ROUTE("a") "    [a]: 3\n", 4, "a name is expected, not a list");
    refused("routes:\n" ROUTE("a") ROUTE("b") "    retry_base: 1m\n    retry_max: 1s\n", 4,
            "retry_base of this route is longer than retry_max");
}

static void wrong_sinks_are_refused(void **state)
{
    (void)state;
    refused("routes:\n  - topics: a\n", 2, "the route has no sink");
    refused("routes:\n  - topics: a\n    sink: ''\n", 2, "the route has no sink");
    refused("routes:\n  - topics: a\n    sink: [x]\n", 3,
            "sink takes a single value, not a list");
    refused("routes:\n  - topics: a\n    sink: flie:x\n", 3,
            "unknown sink \"flie\"\nhint: did you mean file:PATH?");
    refused("routes:\n  - topics: a\n    sink: null:\n", 3, "wants quotes");
}

static void wrong_topics_are_refused(void **state)
{
    (void)state;
    refused("routes:\n  - sink: \"null:\"\n", 2, "the route has no topics");
    refused("routes:\n" ROUTE("[]"), 2, "the route has no topics");
    refused("routes:\n" ROUTE("''"), 2, "a topic is empty");
    refused("routes:\n" ROUTE("[a, '']"), 2, "a topic is empty");
    refused("routes:\n" ROUTE(""), 2, "topics has no value");
    refused("routes:\n" ROUTE("[a, [b]]"), 2, "topics takes a single value, not a list");
    refused("routes:\n" ROUTE("{a: b}"), 2, "topics takes a single value, not a mapping");
}

/* It would do nothing, and nobody would notice. */
static void a_topic_that_never_comes_is_refused(void **state)
{
    (void)state;
    refused("routes:\n" ROUTE("\"*\"") ROUTE("a"), 4,
            "topic 'a' never comes here: the route at line 2 takes it");
    refused("routes:\n" ROUTE("a") ROUTE("[b, a]"), 4, "topic 'a' never comes here");
    refused("routes:\n" ROUTE("a") ROUTE("\"b*\"") ROUTE("\"b.*.c\""), 6,
            "the route at line 4 takes it");
    refused("routes:\n" ROUTE("\"a*\"") ROUTE("\"a*\""), 4, "topic 'a*' never comes here");
    good("routes:\n" ROUTE("a.b") ROUTE("\"a.*\"") ROUTE("\"*.b\"") ROUTE("\"*\""));
    good("routes:\n" ROUTE("\"a.*.c\"") ROUTE("\"a.*\""));
    good("routes:\n" ROUTE("[\"*\", a]")); /* of one route it does no harm */
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(routes_are_read),
        TEST(the_last_file_counts),
        TEST(wrong_routes_are_refused),
        TEST(wrong_fields_are_refused),
        TEST(wrong_sinks_are_refused),
        TEST(wrong_topics_are_refused),
        TEST(a_topic_that_never_comes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
