/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/janitor.h"

#include "core/clock.h"
#include "core/mem.h"
#include "lib/conf.h"

#include <errno.h>
#include <pthread.h>

/* A chore may take this part of the time, and its transactions this part of the chore's. */
enum { PASS_COST = 4, BATCH_COST = 4 };
#define YIELD_MIN_NS (5 * SL_MS)
#define YIELD_MAX_NS (2 * SL_SEC)
#define FAILED_BASE_NS (SL_SEC)
#define FAILED_MAX_NS (60 * SL_SEC)
/* So long a connection is kept that nobody needs. */
#define KEEP_NS (5 * SL_SEC)

struct sl_janitor {
    sl_janitor_conf conf;
    int64_t due_ns[SL_CHORES_MAX];
    int64_t rows[SL_CHORES_MAX]; /* of the last run */
    bool due[SL_CHORES_MAX];     /* in this pass */
    unsigned failures;           /* in a row */
    sl_db *db;                   /* or NULL */
    int64_t used_ns;             /* when the last pass ended */
    sl_stop stop;
    pthread_t thread;
};

bool sl_janitor_yield(sl_stop *stop, int64_t began_ns)
{
    int64_t pause_ns = (sl_now_ns() - began_ns) * (BATCH_COST - 1);
    pause_ns = pause_ns < YIELD_MIN_NS   ? YIELD_MIN_NS
               : pause_ns > YIELD_MAX_NS ? YIELD_MAX_NS
                                         : pause_ns;
    return sl_stop_sleep(stop, pause_ns);
}

static sl_rc do_chore(sl_janitor *j, size_t i, sl_db *db, sl_err *err)
{
    const sl_chore *c = &j->conf.chores[i];
    char count[24];
    int64_t *rows = &j->rows[i];
    int64_t began_ns = sl_now_ns();
    *rows = 0;
    sl_rc rc = c->run(c->ctx, db, j->conf.settings, &j->stop, rows, err);
    int64_t now_ns = sl_now_ns();
    int64_t rest_ns = (now_ns - began_ns) * (PASS_COST - 1);
    j->due_ns[i] = now_ns + (rest_ns > c->every_ns ? rest_ns : c->every_ns);
    snprintf(count, sizeof count, "%lld", (long long)*rows);
    if (*rows > 0)
        sl_log_line(j->conf.log, SL_LOG_DEBUG, "chore done", "chore", c->name, "rows", count,
                    NULL);
    return rc == SL_OK ? SL_OK : sl_fail_in(err, "%s", c->name);
}

/* How many chores are due now. */
static size_t look(sl_janitor *j)
{
    size_t count = 0;
    for (size_t i = 0; i < j->conf.count; i++) {
        const sl_chore *c = &j->conf.chores[i];
        bool time = sl_now_ns() >= j->due_ns[i];
        j->due[i] = time && (!c->due || c->due(c->ctx, j->rows[i]));
        if (time && !j->due[i])
            j->due_ns[i] = sl_now_ns() + c->every_ns;
        count += j->due[i];
    }
    return count;
}

static void hang_up(sl_janitor *j)
{
    sl_db_close(j->db);
    j->db = NULL;
}

/* One that the server has ended meanwhile is no failure. */
static sl_rc be_connected(sl_janitor *j, sl_err *err)
{
    if (j->db && !j->db->ops->alive(j->db))
        hang_up(j);
    return j->db ? SL_OK
                 : sl_conf_open_chores(&j->db, j->conf.settings, j->conf.names, j->stop.fd_now,
                                       err);
}

/* Every chore that is due, over one connection. */
static sl_rc pass(sl_janitor *j, sl_err *err)
{
    sl_rc rc = be_connected(j, err);
    for (size_t i = 0; rc == SL_OK && i < j->conf.count; i++)
        if (j->due[i] && sl_stop_level_of(&j->stop) == SL_GO)
            rc = do_chore(j, i, j->db, err);
    if (rc != SL_OK)
        hang_up(j);
    j->used_ns = sl_now_ns();
    return rc;
}

/* Told once, however long it lasts. All come again, those that failed and those that had no turn. */
static void note_failure(sl_janitor *j, const sl_err *err)
{
    int64_t pause_ns = sl_backoff_ns(++j->failures, FAILED_BASE_NS, FAILED_MAX_NS);
    for (size_t i = 0; i < j->conf.count; i++)
        j->due_ns[i] = sl_now_ns() + pause_ns;
    if (j->failures == 1)
        sl_log_line(j->conf.log, SL_LOG_WARN, "clean-up failed, trying again later", "error",
                    err->text, NULL);
}

static int64_t next_ns(const sl_janitor *j)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < j->conf.count; i++)
        next = j->due_ns[i] < next ? j->due_ns[i] : next;
    return next;
}

static void work(sl_janitor *j)
{
    sl_err err = { 0 };
    sl_rc rc = pass(j, &err);
    if (sl_stop_level_of(&j->stop) != SL_GO)
        return;
    if (rc != SL_OK) {
        note_failure(j, &err);
    } else if (j->failures) {
        j->failures = 0;
        sl_log_line(j->conf.log, SL_LOG_INFO, "clean-up goes on", NULL);
    }
}

/* With nothing to do before that, a connection need not be kept until then. */
static void hang_up_in_time(sl_janitor *j)
{
    if (next_ns(j) - j->used_ns > KEEP_NS)
        hang_up(j);
}

static void *janitor_main(void *arg)
{
    sl_janitor *j = arg;
    do {
        if (look(j) > 0)
            work(j);
        hang_up_in_time(j);
    } while (!sl_stop_sleep(&j->stop, next_ns(j) - sl_now_ns()));
    hang_up(j);
    return NULL;
}

sl_rc sl_janitor_start(sl_janitor **out, const sl_janitor_conf *conf, sl_err *err)
{
    *out = NULL;
    if (conf->count == 0)
        return SL_OK;
    sl_janitor *j = sl_alloc(sizeof *j);
    j->conf = *conf;
    int e = sl_stop_init(&j->stop) ? pthread_create(&j->thread, NULL, janitor_main, j) : errno;
    if (e == 0) {
        *out = j;
        return SL_OK;
    }
    sl_stop_fini(&j->stop);
    free(j);
    return sl_fail(err, SL_AGAIN, "cannot start a thread: %s", strerror(e));
}

void sl_janitor_end(sl_janitor *j)
{
    if (!j)
        return;
    sl_stop_ask(&j->stop, SL_STOP_NOW);
    pthread_join(j->thread, NULL);
    sl_stop_fini(&j->stop);
    free(j);
}
