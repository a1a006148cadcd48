/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process as a node among others: it registers, and a thread of its own with a connection of
 * its own, the keeper, beats, prunes the dead, and with strategy `lanes` gains and gives up lanes.
 *
 * A node may trust what it owns until `lease` after it *asked* for its last heartbeat, less a
 * margin; others take over only once its row is gone, which is later. When the database is away
 * the trust ends by itself; when it is back and the row is still there, all goes on as before.
 */
#ifndef SL_MEMBER_MEMBER_H
#define SL_MEMBER_MEMBER_H

#include "core/log.h"
#include "db/db.h"
#include "member/assign.h"
#include "member/fences.h"
#include "member/lanes.h"

typedef struct sl_member_conf {
    sl_rc (*open)(void *ctx, sl_db **out, int wake_fd, sl_err *err);
    /* What the workers did so far, for others to see. May be NULL. */
    void (*counts)(void *ctx, int64_t *sent, int64_t *failed);
    /* Some node seems to have died, maybe an earlier life of this one. From any thread; may be NULL. */
    void (*alarm)(void *ctx);
    /* On the keeper's thread, once: it has given up, a human is needed. */
    void (*failed)(void *ctx, const sl_err *err);
    void *ctx;
    sl_log *log;
    const char *node;
    const char *strategy;
    int64_t workers;
    int64_t lease_ns;
    bool own_lanes; /* strategy `lanes` */
    sl_assign assign;
    const char *static_lanes; /* "0-15,32": SL_ASSIGN_STATIC */
    sl_places places;         /* where it sends under names of its own; none: without a fence */
    bool (*clean)(void *ctx); /* with such: is nothing under way that may still get in? */
    bool consumes;            /* some of it is delivered at most once */
    bool patient;             /* a database that is away at the start is waited for */
    int64_t lanes; /* as configured: another number in the database is refused; 0: any */
} sl_member_conf;

typedef struct sl_member sl_member;

/* Registers on the caller's thread, so that what is refused fails here, and starts the keeper. conf
 * and what it points to must outlive the member. */
SL_CHECK sl_rc sl_member_join(sl_member **out, const sl_member_conf *conf, int wake_fd,
                              sl_err *err);
/* Unregisters, with all workers at rest: what they owned is free at once. */
void sl_member_leave(sl_member *m);
sl_lanes *sl_member_lanes(const sl_member *m);
const char *sl_assign_name(sl_assign a); /* "birth-order" */

#endif
