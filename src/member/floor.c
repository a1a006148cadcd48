/* SPDX-License-Identifier: Apache-2.0 */
#include "member/floor.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>

#define ASK_EVERY_NS (5 * SL_MS)

struct sl_tickets {
    pthread_mutex_t lock;
    int64_t opened; /* the last one */
    int64_t ripe;
    sl_writers await; /* whom the last one waits for */
    int64_t asked_ns;
    bool asking; /* an answer is on its way */
    bool wanted; /* something was proposed */
    bool doubted;
};

sl_tickets *sl_tickets_new(void)
{
    sl_tickets *t = sl_alloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void sl_writers_fini(sl_writers *w)
{
    sl_keymap_fini(&w->map);
    sl_arena_fini(&w->names);
}

void sl_tickets_free(sl_tickets *t)
{
    if (!t)
        return;
    sl_writers_fini(&t->await);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void sl_tickets_doubt(sl_tickets *t)
{
    pthread_mutex_lock(&t->lock);
    t->doubted = true;
    pthread_mutex_unlock(&t->lock);
}

int64_t sl_tickets_ripe(sl_tickets *t)
{
    pthread_mutex_lock(&t->lock);
    int64_t ripe = t->ripe;
    pthread_mutex_unlock(&t->lock);
    return ripe;
}

static sl_rc writer_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_writers *w = ctx;
    if (!cols[0].null)
        *sl_keymap_at(&w->map, sl_arena_copy(&w->names, cols[0].s)) = 1;
    return SL_OK;
}

sl_call sl_writers_call(sl_writers *w, sl_db *db)
{
    sl_keymap_reset(&w->map);
    sl_arena_reset(&w->names);
    return (sl_call){ .stmt = sl_db_stmt(db, "floor/writers"), .row = writer_row, .ctx = w };
}

bool sl_tickets_ask(sl_tickets *t, sl_db *db, sl_writers *w, sl_call *call)
{
    int64_t now_ns = sl_now_ns();
    pthread_mutex_lock(&t->lock);
    w->asked = t->wanted && !t->asking && now_ns - t->asked_ns >= ASK_EVERY_NS;
    if (w->asked) {
        t->asking = true;
        t->asked_ns = now_ns;
    }
    pthread_mutex_unlock(&t->lock);
    if (!w->asked)
        return false;
    *call = sl_writers_call(w, db);
    return true;
}

void sl_tickets_answered(sl_tickets *t, sl_writers *w, bool ok)
{
    if (!w->asked)
        return;
    pthread_mutex_lock(&t->lock);
    t->asking = false;
    if (ok && !t->doubted && t->opened > t->ripe && !sl_keymap_meet(&t->await.map, &w->map))
        t->ripe = t->opened;
    if (ok && (t->doubted || t->opened == t->ripe)) {
        sl_writers old = t->await; /* its memory serves the next answer */
        t->await = *w;
        *w = old;
        t->opened++;
        t->doubted = false;
        if (t->await.map.count == 0) /* nobody to wait for */
            t->ripe = t->opened;
    }
    pthread_mutex_unlock(&t->lock);
    w->asked = false;
}

void sl_floor_raise(sl_floor *f, int64_t at)
{
    f->at = at > f->at ? at : f->at;
}

void sl_floor_propose(sl_floor *f, sl_tickets *t, int64_t low)
{
    if (f->next || low <= f->at)
        return;
    f->next = low;
    pthread_mutex_lock(&t->lock);
    /* One that is opened later than now: an answer on its way may be older. */
    f->ticket = t->opened + (t->asking ? 2 : 1);
    t->wanted = true;
    pthread_mutex_unlock(&t->lock);
}

void sl_floor_seen(sl_floor *f, int64_t ripe, int64_t first)
{
    if (first && first < f->at)
        f->at = first;
    if (!f->next || f->ticket > ripe)
        return;
    f->at = first && first < f->next ? first : f->next;
    f->next = 0;
}
