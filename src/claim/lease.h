/* SPDX-License-Identifier: Apache-2.0 */
/* Leases on messages: (id, epoch) names a claim; extending it is a compare-and-swap on the
 * epoch, on the database's clock. */
#ifndef SL_CLAIM_LEASE_H
#define SL_CLAIM_LEASE_H

#include "db/db.h"

/* SL_AGAIN with "lease lost" if not all of them were still ours. */
SL_CHECK sl_rc sl_lease_renew(sl_db *db, const int64_t *ids, const int64_t *epochs, size_t n,
                              int64_t lease_ns, sl_err *err);

#endif
