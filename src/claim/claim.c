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

static sl_rc read_bool(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i != 0;
    return SL_OK;
}

/* What was delivered stands there as before: only who knows the positions can tell. */
static sl_rc check_rotated(const sl_claim_ops *strategy, sl_db *db, const sl_claim_conf *conf,
                           sl_err *err)
{
    bool set_back = false;
    if (!strategy->owns_lanes)
        return sl_fail(err, SL_OPERATOR,
                       "a table of layout rotated cannot be shared by strategy '%s'\nhint: "
                       "strategy: lanes",
                       strategy->name);
    if (conf->consumes)
        return sl_fail(err, SL_OPERATOR,
                       "a table of layout rotated cannot be delivered at most once\nhint: "
                       "delivery: at-least-once, or a table of the ordinary layout");
    sl_rc rc = sl_db_run1(db, "done/set_back", NULL, read_bool, &set_back, NULL, err);
    if (rc != SL_OK || !set_back)
        return rc;
    return sl_fail(
        err, SL_OPERATOR,
        "the sequence of ids was set back behind what has been delivered: new "
        "messages would never be sent\nhint: set it to the highest position, "
        "max(floor) of the view of positions beside the table, unless it is higher already");
}

sl_rc sl_claim_open(sl_claim **out, const sl_claim_ops *strategy, sl_db *db,
                    const sl_claim_conf *conf, sl_err *err)
{
    sl_claim_conf own = *conf;
    sl_rc rc = SL_OK;
    if (sl_db_has(db, "done/layout"))
        rc = sl_db_run1(db, "done/layout", NULL, read_bool, &own.rotated, NULL, err);
    if (rc == SL_OK && own.rotated)
        rc = check_rotated(strategy, db, conf, err);
    if (rc == SL_OK && own.rotated && own.lanes && own.again)
        sl_lanes_doubt(own.lanes);
    return rc == SL_OK ? strategy->open(out, db, &own, err) : rc;
}
