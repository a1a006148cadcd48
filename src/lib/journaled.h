/* SPDX-License-Identifier: Apache-2.0 */
/* A node with a journal: at its start it finishes or reports what its earlier life had consumed. */
#ifndef SL_LIB_JOURNALED_H
#define SL_LIB_JOURNALED_H

#include "core/log.h"
#include "db/db.h"
#include "journal/journal.h"
#include "lib/settings.h"

/* What became of it. */
typedef struct sl_reconciled {
    size_t sent;    /* it was: out of the list */
    size_t back;    /* no byte of it had left: it is delivered now */
    size_t unknown; /* a dead letter, for the operator */
} sl_reconciled;

/* Opens the journal of the settings and settles all that is in the database of earlier lives of this node. */
SL_CHECK sl_rc sl_journaled_open(sl_journal **out, const sl_settings *s, const char *node,
                                 sl_db *db, sl_reconciled *done, sl_err *err);

#endif
