/* SPDX-License-Identifier: Apache-2.0 */
#include "member/final.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>

/* An answer costs the server about as much as the read of some twenty messages. */
#define ASK_EVERY_NS (SL_MS)

struct sl_final {
    pthread_mutex_t lock;
    int64_t upto;
    int64_t wanted;
    int64_t asked_ns;
    bool asking;    /* an answer is on its way */
    uint64_t round; /* since the last doubt */
    int64_t given;  /* final once `await` have gone; 0: nobody is waited for */
    sl_writers await;
};

sl_final *sl_final_new(void)
{
    sl_final *f = sl_alloc(sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void sl_final_free(sl_final *f)
{
    if (!f)
        return;
    sl_writers_fini(&f->await);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void enter(const sl_final *f)
{
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&f->lock);
}

static void leave(const sl_final *f)
{
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&f->lock);
}

void sl_final_doubt(sl_final *f)
{
    enter(f);
    f->round++;  /* an answer of before says nothing now */
    f->upto = 0; /* nor does what it showed: ids may be given again, by one that took over */
    f->given = 0;
    f->asking = false;
    leave(f);
}

int64_t sl_final_upto(const sl_final *f)
{
    enter(f);
    int64_t upto = f->upto;
    leave(f);
    return upto;
}

void sl_final_want(sl_final *f, int64_t id)
{
    enter(f);
    f->wanted = id > f->wanted ? id : f->wanted;
    leave(f);
}

static sl_rc given_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

size_t sl_final_ask(sl_final *f, sl_db *db, sl_final_asked *a, sl_call calls[SL_FINAL_CALLS])
{
    int64_t now_ns = sl_now_ns();
    enter(f);
    a->asked = f->wanted > f->upto && !f->asking && now_ns - f->asked_ns >= ASK_EVERY_NS;
    if (a->asked) {
        f->asking = true;
        f->asked_ns = now_ns;
        a->round = f->round;
    }
    leave(f);
    if (!a->asked)
        return 0;
    a->given = 0;
    calls[0] =
        (sl_call){ .stmt = sl_db_stmt(db, "floor/given"), .row = given_row, .ctx = &a->given };
    calls[1] = sl_writers_call(&a->writers, db);
    return SL_FINAL_CALLS;
}

/* What was waited for, or the answer itself if nobody writes. */
static int64_t proved(const sl_final *f, const sl_final_asked *a)
{
    if (a->writers.map.count == 0)
        return a->given;
    return f->given && !sl_keymap_meet(&f->await.map, &a->writers.map) ? f->given : 0;
}

/* From now on those are waited for that write now. */
static void wait_for(sl_final *f, sl_final_asked *a)
{
    sl_writers old = f->await; /* its memory serves the next answer */
    f->await = a->writers;
    a->writers = old;
    f->given = a->given;
}

int64_t sl_final_answered(sl_final *f, sl_final_asked *a, bool ok)
{
    int64_t shown = 0;
    if (!a->asked)
        return 0;
    a->asked = false;
    enter(f);
    if (a->round == f->round) {
        f->asking = false;
        shown = ok ? proved(f, a) : 0;
        if (shown)
            f->given = 0;
        if (ok && !f->given && a->writers.map.count)
            wait_for(f, a);
        f->upto = shown > f->upto ? shown : f->upto;
    }
    leave(f);
    return shown;
}

void sl_final_asked_fini(sl_final_asked *a)
{
    sl_writers_fini(&a->writers);
}
