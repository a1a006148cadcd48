/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout debezium: their table stays as it is, and a trigger makes a message of each row that is inserted into it, in
 * the same transaction, beside it. So an insert is an event and nothing else is, as for a connector that reads the log:
 * the row may be changed, or deleted at once, and nobody has to clean up for Sluice.
 */
#ifndef SL_DB_CAPTURE_H
#define SL_DB_CAPTURE_H

#include "db/db.h"
#include "db/debezium.h"

/* What becomes of rows that are in their table when the trigger is made. */
typedef enum sl_existing { SL_EXISTING_REFUSE, SL_EXISTING_SEND, SL_EXISTING_SKIP } sl_existing;

typedef struct sl_capture_done {
    bool made; /* it was not captured before */
    bool sent; /* there were rows, and they are messages now */
} sl_capture_done;

/* Is their table there, with the columns that are wanted, of types that are known? */
SL_CHECK sl_rc sl_capture_look(sl_db *db, const sl_names *names, const sl_debezium *d,
                               sl_err *err);
/* The outbox beside it, before sl_schema_init: with no more constraints than Debezium has. */
SL_CHECK sl_rc sl_capture_table(sl_db *db, const sl_names *names, sl_err *err);
/* The trigger, after it. In one transaction, harmless when it is there already. */
SL_CHECK sl_rc sl_capture_init(sl_db *db, const sl_names *names, const sl_debezium *d,
                               sl_existing existing, sl_capture_done *done, sl_err *err);
/* SL_OPERATOR: what is inserted is not captured, or by other options than those of names. */
SL_CHECK sl_rc sl_capture_check(sl_db *db, const sl_names *names, sl_err *err);

#endif
