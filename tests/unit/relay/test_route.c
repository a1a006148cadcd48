/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/route.h"

#include "unit/unit.h"

static void patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *topic;
        bool matches;
    } cases[] = {
        { "orders", "orders", true },
        { "orders", "order", false },
        { "orders", "orders2", false },
        { "*", "", true },
        { "*", "anything", true },
        { "orders.*", "orders.", true },
        { "orders.*", "orders.eu", true },
        { "orders.*", "orders", false },
        { "*.eu", "orders.eu", true },
        { "*.eu", "orders.eu.eu", true },
        { "*.eu", "orders.us", false },
        { "a*b*c", "abc", true },
        { "a*b*c", "axxbyybzc", true },
        { "a*b*c", "axxbyybz", false },
        { "**", "x", true },
        { "", "", true },
        { "", "x", false },
        { "Orders", "orders", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (sl_topic_matches(cases[i].pattern, sl_str_of(cases[i].topic)) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].topic);
    assert_true(sl_topic_matches("a*", (sl_str){ "a\0b", 3 }));
    assert_false(sl_topic_matches("a", (sl_str){ "a\0b", 3 }));
}

/* Stars that could take a thousand ways must not. */
static void a_hard_pattern_is_no_trap(void **state)
{
    (void)state;
    char topic[2001];
    memset(topic, 'a', 2000);
    topic[2000] = '\0';
    assert_false(sl_topic_matches("*a*a*a*a*a*a*a*a*a*a*a*b", sl_str_of(topic)));
}

static void a_route_wants_what_one_of_its_topics_does(void **state)
{
    (void)state;
    const char *const topics[] = { "mail", "sms.*" };
    sl_route r = { .topics = topics, .topic_count = 2 };
    assert_true(sl_route_wants(&r, SL_STR("mail")));
    assert_true(sl_route_wants(&r, SL_STR("sms.de")));
    assert_false(sl_route_wants(&r, SL_STR("sms")));
    r.topic_count = 0; /* without topics, all */
    assert_true(sl_route_wants(&r, SL_STR("sms")));
}

static void places_are_counted(void **state)
{
    (void)state;
    sl_route r = { .concurrency = 2 };
    assert_true(sl_route_enter(&r));
    assert_true(sl_route_enter(&r));
    assert_false(sl_route_enter(&r));
    sl_route_leave(&r);
    assert_true(sl_route_enter(&r));
    r.concurrency = 0;
    assert_true(sl_route_enter(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(a_hard_pattern_is_no_trap),
        cmocka_unit_test(a_route_wants_what_one_of_its_topics_does),
        cmocka_unit_test(places_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
