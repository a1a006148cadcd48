/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/unit.h"

#include <sluice/sluice.h>
#include <stdio.h>

static void the_version_has_three_numbers(void **state)
{
    (void)state;
    int major, minor, patch, end = 0;
    assert_int_equal(sscanf(sl_version(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3);
    assert_int_equal(end, strlen(sl_version()));
    assert_ptr_equal(sl_version(), sl_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_has_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
