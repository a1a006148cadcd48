/* SPDX-License-Identifier: Apache-2.0 */
#include "format/trace.h"

#include "unit/unit.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static const struct {
    const char *text;
    bool valid;
} cases[] = {
    { "00-" TRACE "-" PARENT "-01", true },
    { "00-" TRACE "-" PARENT "-ff", true },
    { "cc-" TRACE "-" PARENT "-01", true },
    { "cc-" TRACE "-" PARENT "-01-what-comes-later", true },
    { "00-" TRACE "-" PARENT "-01-", false },
    { "cc-" TRACE "-" PARENT "-01x", false },
    { "ff-" TRACE "-" PARENT "-01", false },
    { "00-" TRACE "-" PARENT "-0", false },
    { "00-" TRACE "-" PARENT "-0g", false },
    { "0x-" TRACE "-" PARENT "-01", false },
    { "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", false },
    { "00-" TRACE "-00F067AA0BA902B7-01", false },
    { "00-00000000000000000000000000000000-" PARENT "-01", false },
    { "00-" TRACE "-0000000000000000-01", false },
    { "00_" TRACE "-" PARENT "-01", false },
    { "00-" TRACE "_" PARENT "-01", false },
    { "00-" TRACE "-" PARENT "_01", false },
    { "", false },
    { NULL, false },
};

static void only_what_a_receiver_reads_is_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (sl_is_traceparent(sl_str_of(cases[i].text)) != cases[i].valid)
            fail_msg("%s", cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_a_receiver_reads_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
