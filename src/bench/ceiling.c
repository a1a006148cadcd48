/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/ceiling.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"
#include "db/db.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct sl_ceiling_shared {
    pthread_barrier_t ready;
    int64_t began_ns[SL_CEILING_MAX], ended_ns[SL_CEILING_MAX], messages[SL_CEILING_MAX];
};

void sl_bare_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("ceiling: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    _exit(1);
}

void sl_ceiling_ready(const sl_ceiling *c)
{
    pthread_barrier_wait(&c->shared->ready);
}

static const sl_stmt *find(const char *dialect, const char *name)
{
    for (int i = 0; i < sl_stmts_count; i++)
        if (!strcmp(sl_stmts[i].dialect, dialect) && !strcmp(sl_stmts[i].name, name))
            return &sl_stmts[i];
    return NULL;
}

char *sl_ceiling_sql(const sl_ceiling *c, const char *name)
{
    sl_buf out = { 0 };
    const sl_stmt *stmt = find(c->dialect, name);
    const sl_script *script = sl_script_named(c->dialect, name);
    if (!stmt && !script)
        sl_bare_die("there is no statement %s/%s", c->dialect, name);
    sl_names_apply(c->names, stmt ? stmt->text : script->text, &out);
    char *text = sl_strdup(sl_buf_text(&out));
    sl_buf_fini(&out);
    return text;
}

/* ---- Processes ---- */

/* Ends with the bench, whatever becomes of that. */
static _Noreturn void be_connection(const sl_ceiling *c, sl_ceiling_fn drain, int i)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int64_t n = drain(c, i);
    c->shared->ended_ns[i] = sl_now_ns();
    c->shared->messages[i] = n;
    _exit(0);
}

/* One that fails before all are ready would leave the others waiting. */
static bool wait_all(pid_t *pids, int count)
{
    bool good = true;
    for (int left = count; left > 0;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return false;
        for (int i = 0; i < count; i++)
            if (pids[i] == pid) {
                pids[i] = 0;
                left--;
                good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            }
        for (int i = 0; !good && i < count; i++)
            if (pids[i] > 0)
                kill(pids[i], SIGKILL);
    }
    return good;
}

static struct sl_ceiling_shared *share(int connections)
{
    pthread_barrierattr_t attr;
    struct sl_ceiling_shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&s->ready, &attr, (unsigned)connections + 1);
    pthread_barrierattr_destroy(&attr);
    return s;
}

/* This process is the last at the barrier; but one that waits there cannot notice that another has failed, so a child of its
 * own does. */
static int64_t begin_all(const sl_ceiling *c, pid_t *starter)
{
    *starter = fork();
    if (*starter == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sl_ceiling_ready(c);
        c->shared->began_ns[0] = sl_now_ns();
        _exit(0);
    }
    return *starter;
}

static sl_rc run_loop(sl_ceiling *c, sl_ceiling_fn drain, sl_ceiling_got *out, sl_err *err)
{
    pid_t pids[SL_CEILING_MAX + 1];
    int started = 0;
    c->shared = share(c->connections);
    if (!c->shared)
        return sl_fail(err, SL_OPERATOR, "no memory to share: %s", strerror(errno));
    fflush(NULL);
    for (; started < c->connections; started++) {
        pids[started] = fork();
        if (pids[started] == 0)
            be_connection(c, drain, started);
        if (pids[started] < 0)
            break;
    }
    bool all = started == c->connections && begin_all(c, &pids[started]) > 0;
    for (int i = 0; !all && i < started; i++)
        kill(pids[i], SIGKILL);
    bool good = wait_all(pids, all ? started + 1 : started) && all;
    int64_t ended_ns = 0;
    for (int i = 0; i < c->connections; i++) {
        out->messages += c->shared->messages[i];
        ended_ns = c->shared->ended_ns[i] > ended_ns ? c->shared->ended_ns[i] : ended_ns;
    }
    out->seconds = (double)(ended_ns - c->shared->began_ns[0]) / 1e9;
    munmap(c->shared, sizeof *c->shared);
    return good ? SL_OK : sl_fail(err, SL_OPERATOR, "the ceiling could not be measured");
}

/* ---- Which loop ---- */

static sl_ceiling_fn loop_of(const sl_ceiling *c, const char *strategy, const char **name)
{
    const char *dialect = c->dialect;
    *name = "skip-locked";
#ifdef SL_BENCH_POSTGRES
    if (!strcmp(dialect, "postgres")) {
        if (!strcmp(strategy, "skip-locked"))
            return sl_ceiling_skip;
        if (c->names->rotated) {
            *name = "rotated";
            return sl_ceiling_rotated;
        }
        *name = !strcmp(strategy, "advisory") ? "advisory" : "lanes";
        return !strcmp(strategy, "advisory") ? sl_ceiling_advisory : sl_ceiling_lanes;
    }
#endif
#ifdef SL_BENCH_SQLITE
    if (!strcmp(dialect, "sqlite"))
        return sl_ceiling_sqlite;
#endif
    (void)strategy;
    return NULL;
}

sl_rc sl_ceiling_run(sl_ceiling *c, const char *strategy, sl_ceiling_got *out, sl_err *err)
{
    *out = (sl_ceiling_got){ 0 };
    sl_ceiling_fn loop = loop_of(c, strategy, &out->loop);
    if (!loop)
        return sl_fail(err, SL_OPERATOR, "no bare loop is known for %s", c->dialect);
    if (!strcmp(out->loop, "advisory") || !strcmp(c->dialect, "sqlite"))
        c->connections = 1; /* with rivals it would not be right; and a file has one writer */
    return run_loop(c, loop, out, err);
}

double sl_ceiling_sleep(int64_t delay_ns, int64_t messages, int connections)
{
    int64_t began_ns = sl_now_ns();
    for (int64_t i = 0; i < messages; i++) {
        struct timespec ts = { .tv_sec = delay_ns / SL_SEC, .tv_nsec = delay_ns % SL_SEC };
        clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    }
    return (double)messages * connections * 1e9 / (double)(sl_now_ns() - began_ns);
}
