/* SPDX-License-Identifier: Apache-2.0 */
/* One statement for each transaction, prepared, with arrays. Making the messages in the server instead, of a series of numbers, cost it a
 * quarter to a half more, since that is planned each time; COPY would be a tenth cheaper, and is not in every database. */
#include "bench/producers.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct sl_producers_shared {
    _Atomic int64_t working;
    _Atomic bool stop;
};

typedef struct sl_producer {
    sl_producers *all;
    int64_t number;
    sl_db *db;
    pthread_t thread;
    bool started;
    int64_t bytes; /* of a payload */
    const char *prefix;
    int64_t done;
    sl_buf text; /* keys and payloads of a transaction */
    sl_str keys[SL_PACE_TX], payloads[SL_PACE_TX];
    int64_t ids[SL_PACE_TX];
    size_t came; /* of the ids */
    sl_rc rc;
    sl_err err;
} producer;

/* ---- One transaction ---- */

static void pad(sl_buf *t, int64_t n)
{
    if (n <= 0)
        return;
    memset(sl_buf_room(t, (size_t)n), 'x', (size_t)n);
    sl_buf_took(t, (size_t)n);
}

/* The text moves while it grows, so that lengths are noted first, and places last. */
static void write_messages(producer *p, int64_t n)
{
    sl_buf *t = &p->text;
    sl_buf_reset(t);
    for (int64_t i = 0; i < n; i++) {
        int64_t key = sl_pace_key(&p->all->pace, p->number, p->done + i);
        size_t began = t->n;
        sl_buf_printf(t, "%s%lld", p->prefix, (long long)key);
        p->keys[i].n = t->n - began;
        began = t->n;
        sl_buf_printf(t, "{\"n\":%lld,\"pad\":\"", (long long)(p->done + i));
        pad(t, p->bytes - 2 - (int64_t)(t->n - began));
        sl_buf_puts(t, "\"}");
        p->payloads[i].n = t->n - began;
    }
    const char *at = sl_buf_text(t);
    for (int64_t i = 0; i < n; i++) {
        p->keys[i].p = at;
        p->payloads[i].p = at + p->keys[i].n;
        at = p->payloads[i].p + p->payloads[i].n;
    }
}

static sl_rc read_id(void *ctx, const sl_val *cols, sl_err *err)
{
    producer *p = ctx;
    const sl_made *m = &p->all->made;
    int64_t id = cols[0].i;
    if (p->came == SL_PACE_TX || id < m->first_id || id >= m->first_id + m->room)
        return sl_fail(err, SL_OPERATOR, "someone else writes to the table of the bench");
    p->ids[p->came++] = id;
    return SL_OK;
}

/* Ids come in the order of the messages. */
static void note(const producer *p, int64_t at_ns)
{
    sl_made *m = &p->all->made;
    for (size_t i = 0; i < p->came; i++) {
        int64_t at = p->ids[i] - m->first_id;
        m->at_ns[at] = at_ns;
        m->key[at] = (int32_t)sl_pace_key(&p->all->pace, p->number, p->done + (int64_t)i);
    }
}

static sl_rc commit(producer *p, int64_t n, sl_err *err)
{
    write_messages(p, n);
    sl_val in[] = { sl_texts(p->keys, (size_t)n), sl_bytess(p->payloads, (size_t)n) };
    p->came = 0;
    sl_rc rc = sl_db_run1(p->db, "bench/add", in, read_id, p, NULL, err);
    if (rc == SL_OK && p->came != (size_t)n)
        rc = sl_fail(err, SL_OPERATOR, "%zu of %lld messages were written", p->came,
                     (long long)n);
    if (rc != SL_OK)
        return rc;
    note(p, sl_now_ns());
    p->done += n;
    return SL_OK;
}

/* ---- Their threads ---- */

static void sleep_until(int64_t at_ns)
{
    int64_t ns = at_ns - sl_now_ns();
    if (ns > 0)
        nanosleep(&(struct timespec){ .tv_sec = ns / SL_SEC, .tv_nsec = ns % SL_SEC }, NULL);
}

static void *work(void *arg)
{
    producer *p = arg;
    const sl_pace *pace = &p->all->pace;
    struct sl_producers_shared *shared = p->all->shared;
    sleep_until(sl_pace_next_ns(pace, p->number, 0));
    while (p->rc == SL_OK && !shared->stop &&
           !sl_pace_is_over(pace, p->number, p->done, sl_now_ns())) {
        int64_t n = sl_pace_step(pace, p->number, p->done, sl_now_ns());
        if (n > 0)
            p->rc = commit(p, n, &p->err);
        if (n < SL_PACE_TX) /* else it owes more, maybe */
            sleep_until(sl_pace_next_ns(pace, p->number, sl_now_ns()));
    }
    if (p->rc != SL_OK)
        shared->stop = true;
    shared->working--;
    return NULL;
}

/* ---- All of them ---- */

static sl_rc open_all(sl_producers *p, const sl_box *box, const sl_fill *fill, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (int64_t i = 0; rc == SL_OK && i < p->pace.producers; i++) {
        p->each[i] = (producer){ .all = p,
                                 .number = i,
                                 .bytes = fill->bytes,
                                 .prefix = fill->prefix ? fill->prefix : "k" };
        rc = sl_box_connect(box, &p->each[i].db, err);
    }
    return rc;
}

sl_rc sl_producers_start(sl_producers *p, sl_box *box, const sl_fill *fill, sl_err *err)
{
    sl_made *m = &p->made;
    m->first_id = box->last_id + 1;
    m->room = p->pace.rate * p->pace.seconds;
    m->at_ns = sl_alloc((size_t)m->room * sizeof *m->at_ns);
    m->key = sl_alloc((size_t)m->room * sizeof *m->key);
    p->shared = sl_alloc(sizeof *p->shared);
    p->each = sl_alloc((size_t)p->pace.producers * sizeof *p->each);
    sl_rc rc = open_all(p, box, fill, err);
    p->pace.began_ns = sl_now_ns();
    for (int64_t i = 0; rc == SL_OK && i < p->pace.producers; i++) {
        producer *one = &p->each[i];
        p->shared->working++;
        one->started = pthread_create(&one->thread, NULL, work, one) == 0;
        if (one->started)
            continue;
        p->shared->working--;
        rc = sl_fail(err, SL_OPERATOR, "cannot start a thread for a producer");
    }
    return rc;
}

bool sl_producers_work(const sl_producers *p)
{
    return p->shared->working > 0;
}

sl_rc sl_producers_end(sl_producers *p, bool now, sl_err *err)
{
    sl_rc rc = SL_OK;
    if (now)
        p->shared->stop = true;
    for (int64_t i = 0; i < p->pace.producers; i++) {
        producer *one = &p->each[i];
        if (one->started)
            pthread_join(one->thread, NULL);
        one->started = false;
        p->made.count += one->done;
        if (rc == SL_OK && one->rc != SL_OK) {
            *err = one->err;
            rc = one->rc;
        }
    }
    return rc;
}

void sl_producers_fini(sl_producers *p)
{
    for (int64_t i = 0; p->each && i < p->pace.producers; i++) {
        sl_db_close(p->each[i].db);
        sl_buf_fini(&p->each[i].text);
    }
    free(p->each);
    free(p->shared);
    free(p->made.at_ns);
    free(p->made.key);
}
