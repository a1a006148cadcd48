/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/journaled.h"

#include "claim/claim.h"
#include "core/clock.h"
#include "core/mem.h"

#include <assert.h>

typedef struct consumed {
    int64_t id, epoch;
    sl_journal_stamp stamp;
    bool keyed;
} consumed;

typedef struct found {
    consumed *v;
    size_t count, cap;
} found;

/* Ids, with a reason each. */
typedef struct list {
    int64_t *ids;
    sl_str *reasons;
    size_t n;
} list;

static sl_rc add_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    found *f = ctx;
    if (f->count == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->v = sl_realloc(f->v, f->cap * sizeof *f->v);
    }
    f->v[f->count++] = (consumed){ .id = cols[0].i,
                                   .epoch = cols[1].i,
                                   .stamp = { cols[2].i, cols[3].i, cols[4].i },
                                   .keyed = cols[5].i != 0 };
    return SL_OK;
}

static list list_new(size_t n)
{
    return (list){ .ids = sl_alloc((n + 1) * sizeof(int64_t)),
                   .reasons = sl_alloc((n + 1) * sizeof(sl_str)) };
}

static void list_add(list *l, int64_t id, sl_str reason)
{
    l->ids[l->n] = id;
    l->reasons[l->n++] = reason;
}

static void list_free(list *l)
{
    free(l->ids);
    free(l->reasons);
}

/* The highest position that was written with this journal. */
static sl_rc expect(sl_journal *j, const found *f, sl_err *err)
{
    const sl_journal_stamp *newest = NULL;
    int64_t own = sl_journal_stamp_now(j).journal;
    for (size_t i = 0; i < f->count; i++)
        if (f->v[i].stamp.journal == own &&
            (!newest || f->v[i].stamp.position > newest->position))
            newest = &f->v[i].stamp;
    return newest ? sl_journal_expect(j, newest, err) : SL_OK;
}

/* What was never sent may go back; but not where later ones of its key may have gone since. */
static void sort_out(sl_journal *j, const found *f, bool ordered, list *sent, list *back,
                     list *unknown)
{
    for (size_t i = 0; i < f->count; i++) {
        const consumed *c = &f->v[i];
        sl_fate fate = sl_replay_fate(sl_journal_replayed(j), c->id, c->epoch, &c->stamp);
        if (fate == SL_FATE_SENT)
            list_add(sent, c->id, SL_NONE);
        else if (fate == SL_FATE_NEVER_SENT && !(ordered && c->keyed))
            list_add(back, c->id, SL_NONE);
        else if (fate == SL_FATE_NEVER_SENT)
            list_add(unknown, c->id, SL_STR("not sent: the node ended before"));
        else if (fate == SL_FATE_FAILED)
            list_add(unknown, c->id, SL_STR("not delivered"));
        else
            list_add(unknown, c->id, SL_STR("the node ended while it was sent"));
    }
}

static void add(sl_call *calls, size_t *n, sl_db *db, const char *stmt, const sl_val *in,
                size_t ids)
{
    if (ids)
        calls[(*n)++] = (sl_call){ .stmt = sl_db_stmt(db, stmt), .in = in };
}

static sl_rc write_all(sl_db *db, const list *sent, const list *back, const list *unknown,
                       sl_err *err)
{
    sl_val sent_in = sl_ints(sent->ids, sent->n);
    sl_val back_in = sl_ints(back->ids, back->n);
    sl_val unknown_in[] = { sl_ints(unknown->ids, unknown->n),
                            sl_texts(unknown->reasons, unknown->n) };
    sl_call calls[8] = { { .stmt = sl_db_stmt(db, "tx/begin") } };
    size_t n = 1;
    add(calls, &n, db, "consumed/sent", &sent_in, sent->n);
    add(calls, &n, db, "consumed/unregister", &back_in, back->n);
    add(calls, &n, db, "consumed/back", &back_in, back->n);
    add(calls, &n, db, "consumed/sent", &back_in, back->n);
    add(calls, &n, db, "consumed/bury", unknown_in, unknown->n);
    add(calls, &n, db, "consumed/sent", unknown_in, unknown->n);
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "tx/commit") };
    return db->ops->run(db, calls, n, err);
}

static sl_rc reconcile(sl_journal *j, const sl_settings *s, const char *node, sl_db *db,
                       sl_reconciled *done, sl_err *err)
{
    found f = { 0 };
    sl_val in = sl_text(sl_str_of(node));
    sl_rc rc = sl_db_run1(db, "consumed/mine", &in, add_row, &f, NULL, err);
    list sent = list_new(f.count);
    list back = list_new(f.count);
    list unknown = list_new(f.count);
    if (rc == SL_OK)
        rc = expect(j, &f, err);
    if (rc == SL_OK)
        sort_out(j, &f, sl_claim_named(s->strategy)->ordered, &sent, &back, &unknown);
    if (rc == SL_OK && f.count)
        rc = write_all(db, &sent, &back, &unknown, err);
    *done = (sl_reconciled){ sent.n, back.n, unknown.n };
    list_free(&sent);
    list_free(&back);
    list_free(&unknown);
    free(f.v);
    return rc;
}

sl_rc sl_journaled_open(sl_journal **out, const sl_settings *s, const char *node, sl_db *db,
                        sl_reconciled *done, sl_err *err)
{
    sl_journal_conf conf = { .path = s->journal,
                             .node = node,
                             .session = (int64_t)(sl_random() >> 2) | 1 };
    sl_journal *j;
    sl_rc rc = sl_journal_open(&j, &conf, err);
    if (rc != SL_OK)
        return rc;
    rc = reconcile(j, s, node, db, done, err);
    if (rc != SL_OK) {
        sl_journal_close(j);
        return rc;
    }
    sl_journal_reconciled(j);
    *out = j;
    return SL_OK;
}
