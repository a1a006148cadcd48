/* SPDX-License-Identifier: Apache-2.0 */
/* A table with a few lanes and a connection to it, for tests of what its registry keeps. */
#ifndef TESTS_UNIT_MEMBER_REGISTRY_H
#define TESTS_UNIT_MEMBER_REGISTRY_H

#include "core/clock.h"
#include "support/testdb.h"

enum { LANES = 8 };

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_err err;

static inline int setup(void **state)
{
    (void)state;
    sl_schema_done done;
    err = (sl_err){ 0 };
    testdb_make(&t, dialect, NULL);
    t.names.lanes = LANES;
    if (sl_schema_init(t.eye, &t.names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
    db = testdb_open(&t);
    return 0;
}

static inline void drop_registry(void)
{
    sl_db_close(db);
    testdb_drop(&t);
}

static inline void must(sl_rc rc)
{
    if (rc != SL_OK)
        fail_msg("%s: %s", sl_rc_name(rc), err.text);
}

#endif
