/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/consume.h"

#include "member/orphans.h"

void sl_group_consumed(sl_group *g, sl_batch *b)
{
    *g = (sl_group){ .ids = sl_arena_alloc(&b->arena, (b->count + 1) * sizeof *g->ids),
                     .epochs = sl_arena_alloc(&b->arena, (b->count + 1) * sizeof *g->epochs),
                     .counts = sl_arena_alloc(&b->arena, (b->count + 1) * sizeof *g->counts) };
    for (size_t i = 0; i < b->count; i++) {
        if (!b->msgs[i].consumed)
            continue;
        g->ids[g->n] = b->msgs[i].id;
        g->epochs[g->n] = b->msgs[i].epoch;
        g->counts[g->n++] = b->msgs[i].attempt - 1;
    }
}

sl_rc sl_consume_rehearse(sl_db *db, sl_err *err)
{
    int64_t no_id;
    sl_str no_text;
    sl_val ids = sl_ints(&no_id, 0);
    sl_val in[] = { ids, ids, sl_text(SL_STR("")), sl_int(0), sl_int(0), sl_int(0), ids };
    sl_val left_in[] = { ids, sl_texts(&no_text, 0) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "consumed/lock"), .in = in },
                        { .stmt = sl_db_stmt(db, "consumed/take"), .in = in },
                        { .stmt = sl_db_stmt(db, "consumed/unregister"), .in = in },
                        { .stmt = sl_db_stmt(db, "consumed/back"), .in = in },
                        { .stmt = sl_db_stmt(db, "consumed/sent"), .in = in },
                        { .stmt = sl_db_stmt(db, "consumed/bury"), .in = left_in },
                        { .stmt = sl_db_stmt(db, "tx/commit") } };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}

sl_rc sl_consume_rehearse_keep(sl_db *db, sl_err *err)
{
    int64_t no_id;
    sl_val in = sl_ints(&no_id, 0);
    return sl_db_run1(db, "consumed/keep", &in, NULL, NULL, NULL, err);
}

sl_rc sl_consume_begin(sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    int64_t listed;
    bool rehearsal = !conf->lanes; /* an earlier process of our name may still be at work */
    return conf->consumes && !rehearsal ? sl_orphans_list(db, conf->worker, &listed, err)
                                        : SL_OK;
}
