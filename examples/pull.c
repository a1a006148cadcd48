/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pull: take a batch, decide message by message, until there is nothing left.
 *
 *   pull sqlite:shop.db
 *
 * Messages of one key come in order, and nobody else gets any of that key meanwhile. While you work, a
 * thread of the library keeps the leases. If this program is killed, what has no written verdict is
 * delivered again, to whoever asks, when its lease has ended.
 *
 *   cc pull.c $(pkg-config --cflags --libs sluice)
 */
#include <inttypes.h>
#include <sluice/sluice.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 100 };
typedef enum outcome { DONE, LATER, NEVER } outcome;

/* Stands for your own work. */
static outcome work_on(const sl_msg *m)
{
    size_t bytes;
    const char *payload = sl_msg_payload(m, &bytes);

    printf("%" PRId64 " %s attempt %" PRId32 ": %.*s\n", sl_msg_id(m), sl_msg_topic(m),
           sl_msg_attempt(m), (int)bytes, payload);
    if (strcmp(sl_msg_type(m), "broken") == 0)
        return NEVER;
    return strcmp(sl_msg_type(m), "flaky") == 0 && sl_msg_attempt(m) < 2 ? LATER : DONE;
}

/* Verdicts are only recorded here; the next sl_pull, or sl_pull_end, writes them all in one
 * transaction. Call sl_pull_settle after each message if repeating one costs more than that. */
static outcome decide(sl_puller *p, size_t i)
{
    outcome o = work_on(sl_pull_msg(p, i));
    if (o == DONE)
        sl_pull_ack(p, i);
    else if (o == LATER)
        sl_pull_retry(p, i, 100, "not now"); /* in 100 ms; -1: retry_base, doubled each time */
    else
        sl_pull_bury(p, i, "cannot be read"); /* to the dead letters */
    return o;
}

static bool same_key(const sl_msg *a, const sl_msg *b)
{
    size_t n, m;
    const char *x = sl_msg_key(a, &n), *y = sl_msg_key(b, &m);
    return x && y && n == m && memcmp(x, y, n) == 0;
}

/* Behind one of its key that comes later? Without a verdict it goes back, and comes again behind it. */
static bool must_wait(const sl_puller *p, size_t i, const bool *later)
{
    for (size_t k = 0; k < i; k++)
        if (later[k] && same_key(sl_pull_msg(p, k), sl_pull_msg(p, i)))
            return true;
    return false;
}

/* Batch after batch, until none comes for a second. */
static sl_rc pull_all(sl_puller *p, sl_err *err)
{
    for (;;) {
        size_t count;
        bool later[BATCH] = { false };
        sl_rc rc = sl_pull(p, BATCH, 1000, &count, err);
        if (rc == SL_AGAIN) { /* the database is away, or a lease was lost: both pass */
            fprintf(stderr, "trying again: %s\n", err->text);
            sleep(1);
            continue;
        }
        if (rc != SL_OK || count == 0)
            return rc;
        for (size_t i = 0; i < count; i++)
            later[i] = !must_wait(p, i, later) && decide(p, i) == LATER;
    }
}

int main(int argc, char **argv)
{
    sl_err err = { 0 };
    sl_puller *p = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: pull URL\n");
        return 2;
    }
    sl_conf *conf = sl_conf_new(); /* any setting of sluice.yaml(5) may be set on it */
    sl_rc rc = sl_conf_set(conf, "db", argv[1], &err);
    if (rc == SL_OK)
        rc = sl_pull_open(&p, conf, &err);
    if (rc == SL_OK)
        rc = pull_all(p, &err);
    if (rc != SL_OK)
        fprintf(stderr, "%s\n", err.text);
    sl_pull_close(p);
    sl_conf_free(conf);
    return rc == SL_OK ? 0 : 1;
}
