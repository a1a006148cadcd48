/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/lease.h"

sl_rc sl_lease_renew(sl_db *db, const int64_t *ids, const int64_t *epochs, size_t n,
                     int64_t lease_ns, sl_err *err)
{
    int64_t renewed;
    sl_val in[] = { sl_ints(ids, n), sl_ints(epochs, n), sl_int(lease_ns / 1000) };
    sl_rc rc = sl_db_run1(db, "lease/renew", in, NULL, NULL, &renewed, err);
    if (rc != SL_OK || (size_t)renewed == n)
        return rc;
    return sl_fail(err, SL_AGAIN,
                   "lease lost: %zu of %zu messages were taken over by someone else",
                   n - (size_t)renewed, n);
}
