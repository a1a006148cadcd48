/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/claim.h"

#include "unit/unit.h"

static void strategies_are_found_by_name(void **state)
{
    (void)state;
    size_t n = 0;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++, n++) {
        assert_ptr_equal(sl_claim_named((*c)->name), *c); /* no name twice */
        assert_true((*c)->open && (*c)->take && (*c)->hold && (*c)->trusted_ns &&
                    (*c)->settle && (*c)->close);
        assert_null(strchr((*c)->name, '_')); /* as users write it */
    }
    assert_true(n >= 1);
    assert_non_null(sl_claim_named("skip-locked"));
    assert_null(sl_claim_named("hope"));
    assert_null(sl_claim_named(""));
    assert_null(sl_claim_named("skip_locked"));
}

static void skip_locked_promises_no_order(void **state)
{
    (void)state;
    assert_false(sl_claim_named("skip-locked")->ordered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_are_found_by_name),
        cmocka_unit_test(skip_locked_promises_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
