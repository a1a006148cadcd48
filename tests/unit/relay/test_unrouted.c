/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/unrouted.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <stdio.h>

#define START (1000 * SL_SEC)

static void a_topic_is_news_once_a_minute(void **state)
{
    (void)state;
    sl_unrouted *u = sl_unrouted_new();
    assert_true(sl_unrouted_news(u, SL_STR("a"), START));
    assert_false(sl_unrouted_news(u, SL_STR("a"), START));
    assert_true(sl_unrouted_news(u, SL_STR("b"), START + 30 * SL_SEC));
    assert_true(sl_unrouted_news(u, SL_STR("ab"), START + 30 * SL_SEC));
    assert_true(sl_unrouted_news(u, SL_STR(""), START + 30 * SL_SEC));
    assert_false(sl_unrouted_news(u, SL_STR(""), START + 30 * SL_SEC));
    assert_false(sl_unrouted_news(u, SL_STR("a"), START + 60 * SL_SEC - 1));
    assert_true(sl_unrouted_news(u, SL_STR("a"), START + 60 * SL_SEC));
    assert_true(sl_unrouted_news(u, SL_STR("b"), START + 60 * SL_SEC));
    assert_false(sl_unrouted_news(u, SL_STR("a"), START + 119 * SL_SEC));
    sl_unrouted_free(u);
}

static void many_topics_are_too_many(void **state)
{
    (void)state;
    sl_unrouted *u = sl_unrouted_new();
    size_t named = 0;
    for (int64_t i = 0; i < 120; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "t%d", (int)i);
        named += sl_unrouted_news(u, sl_str_of(topic), START + i * SL_SEC);
    }
    assert_int_equal(named, 2 * 20); /* in two minutes */
    sl_unrouted_free(u);
}

static void without_a_memory_all_is_news(void **state)
{
    (void)state;
    assert_true(sl_unrouted_news(NULL, SL_STR("a"), START));
    assert_true(sl_unrouted_news(NULL, SL_STR("a"), START));
    sl_unrouted_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_is_news_once_a_minute),
        cmocka_unit_test(many_topics_are_too_many),
        cmocka_unit_test(without_a_memory_all_is_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
