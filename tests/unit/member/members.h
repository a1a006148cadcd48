/* SPDX-License-Identifier: Apache-2.0 */
/* Members on a table of their own, for tests of nodes that live. */
#ifndef TESTS_UNIT_MEMBER_MEMBERS_H
#define TESTS_UNIT_MEMBER_MEMBERS_H

#include "member/member.h"

#include "core/clock.h"
#include "support/testdb.h"

#include <assert.h>
#include <stdatomic.h>

enum { LANES = 64 };
/* A node that gets no processor for some seconds is not forgotten for that. */
#define LEASE_NS (20 * SL_SEC)

static const char *dialect;
static testdb t;
static sl_log log_;
static sl_err err;
static sl_member *a, *b, *c;
static _Atomic int failures;
static _Atomic int away; /* so many times it cannot be reached */

static inline void quiet(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

static inline int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    sl_log_init(&log_, quiet, NULL);
    a = b = c = NULL;
    failures = away = 0;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    sl_member_leave(a);
    sl_member_leave(b);
    sl_member_leave(c);
    sl_log_fini(&log_);
    testdb_drop(&t);
    return 0;
}

static inline sl_rc open_db(void *ctx, sl_db **out, int wake_fd, sl_err *e)
{
    (void)ctx;
    if (away > 0) {
        away--;
        return sl_fail(e, SL_AGAIN, "away");
    }
    sl_dsn dsn = testdb_dsn(&t);
    dsn.wake_fd = wake_fd;
    return sl_db_open(out, &dsn, e);
}

static inline void failed(void *ctx, const sl_err *e)
{
    (void)ctx;
    assert(e->rc == SL_OPERATOR);
    failures++;
}

static inline sl_member_conf conf_of(const char *name)
{
    return (sl_member_conf){ .open = open_db,
                             .failed = failed,
                             .log = &log_,
                             .node = name,
                             .strategy = "lanes",
                             .workers = 2,
                             .lease_ns = LEASE_NS,
                             .own_lanes = true,
                             .assign = SL_ASSIGN_RING };
}

static inline void must_join(sl_member **m, const sl_member_conf *conf)
{
    if (sl_member_join(m, conf, -1, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static inline size_t owned(const sl_member *m)
{
    return sl_lanes_owned_count(sl_member_lanes(m));
}

/* Waits until `what` is so. */
#define WAIT_FOR(what)                                                                         \
    for (int64_t until = sl_now_ns() + 60 * SL_SEC; !(what);) {                                \
        if (sl_now_ns() > until)                                                               \
            fail_msg("never: %s", #what);                                                      \
        usleep(5000);                                                                          \
    }

#endif
