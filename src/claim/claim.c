/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/claim.h"

#include "core/err.h"

extern const sl_claim_ops sl_claim_lanes, sl_claim_guard, sl_claim_advisory,
    sl_claim_skip_locked;

const sl_claim_ops *const sl_claim_all[] = {
    &sl_claim_lanes, &sl_claim_guard, &sl_claim_advisory, &sl_claim_skip_locked, NULL,
};

const sl_claim_ops *sl_claim_named(const char *name)
{
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return NULL;
}
