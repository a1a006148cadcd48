/* SPDX-License-Identifier: Apache-2.0 */
/* The options of Debezium's router: what is taken, what is refused, and in which words. */
#include "db/debezium.h"

#include "unit/unit.h"

static sl_opt_map map;
static sl_debezium d;
static sl_err err;

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < map.count; i++) {
        free(map.names[i]);
        free(map.values[i]);
    }
    free(map.names);
    free(map.values);
    map = (sl_opt_map){ 0 };
    sl_debezium_fini(&d);
    return 0;
}

static void put(const char *name, const char *value)
{
    teardown(NULL);
    sl_opt_map_put(&map, name, value);
}

static void takes(const char *name, const char *value)
{
    put(name, value);
    if (sl_debezium_read(&d, &map, &err) != SL_OK)
        fail_msg("%s=%s: %s", name, value, err.text);
}

static void refuses(const char *name, const char *value, const char *words)
{
    put(name, value);
    assert_int_equal(sl_debezium_read(&d, &map, &err), SL_REFUSED);
    if (!strstr(err.text, words) || (strcmp(words, "unknown") != 0 && !strstr(err.text, name)))
        fail_msg("%s=%s: %s", name, value, err.text);
}

/* ---- Columns ---- */

static void the_defaults_are_those_of_the_documentation(void **state)
{
    (void)state;
    assert_int_equal(sl_debezium_read(&d, &map, &err), SL_OK);
    assert_string_equal(d.id, "id");
    assert_string_equal(d.key, "aggregateid");
    assert_string_equal(d.payload, "payload");
    assert_string_equal(d.topic, "aggregatetype");
    assert_string_equal(d.tracing, "tracingspancontext");
    assert_null(d.timestamp);
    assert_false(d.tombstone);
    assert_true(d.error_on_missing);
    assert_int_equal(d.header_count, 0);
    sl_buf target = { 0 };
    sl_debezium_target(&d, &target);
    assert_string_equal(sl_buf_text(&target), "outbox.event.{topic}");
    sl_buf_fini(&target);
}

static void columns_have_any_name(void **state)
{
    (void)state;
    takes("table.field.event.key", "my-field \"x\" 100% it's $$");
    assert_string_equal(d.key, "my-field \"x\" 100% it's $$");
    takes("table.field.event.timestamp", "at");
    assert_string_equal(d.timestamp, "at");
    refuses("table.field.event.id", "", "no name");
    refuses("table.field.event.id", "a\nb", "no name");
    refuses("table.field.event.id", "a\\b", "no name");
    refuses("table.field.event.id", "a$sluice_body$b", "no name");
    refuses("route.by.field",
            "0123456789012345678901234567890123456789012345678901234567890123", "no name");
}

/* ---- Placement ---- */

static void placed(size_t i, const char *column, const char *alias)
{
    assert_true(i < d.header_count);
    assert_string_equal(d.headers[i].column, column);
    assert_string_equal(d.headers[i].alias, alias);
}

#define PLACEMENT "table.fields.additional.placement"

static void placement_is_a_list_of_pairs_and_trios(void **state)
{
    (void)state;
    takes(PLACEMENT, "eventType:header:type,id:HEADER, tenant : header : x-tenant ");
    assert_int_equal(d.header_count, 3);
    placed(0, "eventType", "type");
    placed(1, "id", "id");
    placed(2, "tenant", "x-tenant");
    takes(PLACEMENT, "");
    assert_int_equal(d.header_count, 0);
}

static void placement_refuses(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "a", "a:", "a:header:b:c",  ":header", "a:header:", "a:body", "a:header,,b:header",
        ",", " ",  "a:header:b\\c",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuses(PLACEMENT, wrong[i], "'");
    takes(PLACEMENT, "a:header,"); /* as Java splits: nothing is behind it */
    assert_int_equal(d.header_count, 1);
    refuses(PLACEMENT, "a:header,b:envelope", "'b:envelope' is not supported");
    refuses(PLACEMENT, "b:Partition", "'b:Partition' is not supported");
}

/* ---- The topic, and yes or no ---- */

static void target_is(const char *replacement, const char *want)
{
    sl_buf target = { 0 };
    takes("route.topic.replacement", replacement);
    sl_debezium_target(&d, &target);
    assert_string_equal(sl_buf_text(&target), want);
    sl_buf_fini(&target);
}

static void the_replacement_becomes_a_target(void **state)
{
    (void)state;
    target_is("${routedByValue}", "{topic}");
    target_is("a.${routedByValue}.${routedByValue}.z", "a.{topic}.{topic}.z");
    target_is("fixed", "fixed");
    refuses("route.topic.replacement", "", "not supported");
    refuses("route.topic.replacement", "x$1", "not supported");
    refuses("route.topic.replacement", "${other}", "not supported");
    refuses("route.topic.replacement", "${routedByValue", "not supported");
    refuses("route.topic.replacement", "{topic}", "not supported");
    refuses("route.topic.replacement", "a\\b", "not supported");
}

static void yes_or_no(void **state)
{
    (void)state;
    takes("route.tombstone.on.empty.payload", "True");
    assert_true(d.tombstone);
    refuses("route.tombstone.on.empty.payload", "1", "neither true nor false");
}

/* ---- Not supported ---- */

static void what_changes_nothing_is_taken(void **state)
{
    (void)state;
    takes("table.expand.json.payload", "false");
    takes("route.topic.regex", "(?<routedByValue>.*)");
    takes("table.op.invalid.behavior", "warn");
    refuses("table.expand.json.payload", "true", "not supported");
    refuses("route.topic.regex", ".*", "not supported");
    refuses("tracing.operation.name", "x", "not supported");
    refuses("table.field.event.keys", "x", "unknown");
    assert_non_null(strstr(err.text, "did you mean table.field.event.key?"));
    refuses("completely.different", "x", "unknown");
}

static void the_text_tells_options_apart(void **state)
{
    (void)state;
    sl_buf a = { 0 }, b = { 0 }, c = { 0 };
    takes("route.by.field", "aggregatetype"); /* the default */
    sl_debezium_text(&d, &a);
    takes(PLACEMENT, "type:header");
    sl_debezium_text(&d, &b);
    takes("route.topic.replacement", "x"); /* not the trigger's business */
    sl_debezium_text(&d, &c);
    assert_string_not_equal(sl_buf_text(&a), sl_buf_text(&b));
    assert_string_equal(sl_buf_text(&a), sl_buf_text(&c));
    sl_buf_fini(&a);
    sl_buf_fini(&b);
    sl_buf_fini(&c);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_defaults_are_those_of_the_documentation),
        TEST(columns_have_any_name),
        TEST(placement_is_a_list_of_pairs_and_trios),
        TEST(placement_refuses),
        TEST(the_replacement_becomes_a_target),
        TEST(yes_or_no),
        TEST(what_changes_nothing_is_taken),
        TEST(the_text_tells_options_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
