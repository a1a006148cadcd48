/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/nodes.h"

#include "bench/usage.h"
#include "core/clock.h"
#include "core/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

/* ---- Its environment: all settings, as variables, so that no secret is on a command line ---- */

typedef struct vars {
    char **v;
    size_t count;
} vars;

static void put(vars *e, char *owned)
{
    e->v = sl_realloc(e->v, (e->count + 2) * sizeof *e->v);
    e->v[e->count++] = owned;
    e->v[e->count] = NULL;
}

static void put_setting(vars *e, const char *name, const char *value)
{
    char *var = sl_asprintf("SLUICE_%s=%s", name, value);
    for (char *p = var; *p != '='; p++)
        *p = (char)toupper((unsigned char)*p);
    put(e, var);
}

static bool is_planned(const sl_node_plan *plan, const char *name)
{
    static const char *const planned[] = { "strategy", "workers", "drain",  "log_format",
                                           "node",     "table",   "layout", "log_level" };
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        if (!strcmp(name, planned[i]))
            return true;
    return (plan->hold && !strcmp(name, "hold")) || (plan->batch && !strcmp(name, "batch"));
}

static void put_settings(vars *e, const sl_settings *s, const sl_node_plan *plan)
{
    sl_buf value = { 0 };
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        if (s->from[o - sl_settings_table] == SL_FROM_DEFAULT || is_planned(plan, o->name) ||
            o->flags & SL_OPT_CLI_ONLY)
            continue;
        sl_buf_reset(&value);
        sl_opt_show(o, s, true, &value);
        if (value.n)
            put_setting(e, o->name, sl_buf_text(&value));
    }
    sl_buf_fini(&value);
}

static void put_plan(vars *e, const sl_settings *s, const sl_node_plan *plan, int number)
{
    char text[32];
    put_setting(e, "table", s->table);
    put_setting(e, "log_format", "json");
    put_setting(e, "strategy", plan->strategy);
    if (plan->hold)
        put_setting(e, "hold", plan->hold);
    snprintf(text, sizeof text, "%lld", (long long)plan->workers);
    put_setting(e, "workers", text);
    snprintf(text, sizeof text, "%lld", (long long)plan->batch);
    if (plan->batch)
        put_setting(e, "batch", text);
    snprintf(text, sizeof text, "bench-%d", number);
    put_setting(e, "node", text);
    if (!s->sink)
        put_setting(e, "sink", "null:");
    if (plan->drain)
        put_setting(e, "drain", "true");
}

static vars environment(const sl_settings *s, const sl_node_plan *plan, int number,
                        const sl_watched *w)
{
    vars e = { 0 };
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "SLUICE_", 7) != 0 && strncmp(*v, "DATABASE_URL=", 13) != 0)
            put(&e, sl_strdup(*v));
    put_settings(&e, s, plan);
    put_plan(&e, s, plan, number);
    if (w)
        put(&e, sl_asprintf(SL_TAP_ENV "=%s", w->path));
    return e;
}

static void vars_fini(vars *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->v[i]);
    free(e->v);
}

/* ---- Its life ---- */

static _Noreturn void be_node(int log, char **env)
{
    char *argv[] = { (char[]){ "sluice" }, (char[]){ "run" }, NULL };
    int null = open("/dev/null", O_RDWR);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* an INT from the terminal is the bench's */
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(SELF, argv, env);
    _exit(127);
}

sl_rc sl_bench_node_start(sl_bench_node *n, const sl_settings *settings,
                          const sl_node_plan *plan, int number, const sl_watched *w,
                          sl_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return sl_fail(err, SL_OPERATOR, "cannot make a pipe: %s", strerror(errno));
    vars env = environment(settings, plan, number, w);
    n->log = fds[0];
    fflush(NULL);
    n->pid = fork();
    if (n->pid == 0)
        be_node(fds[1], env.v);
    int e = errno;
    close(fds[1]);
    vars_fini(&env);
    if (n->pid > 0)
        return SL_OK;
    close(n->log);
    n->pid = 0;
    return sl_fail(err, SL_OPERATOR, "cannot start a node: %s", strerror(e));
}

static void see_memory(sl_bench_node *n)
{
    int64_t bytes = n->pid ? sl_usage_memory(n->pid) : 0;
    n->memory = bytes > n->memory ? bytes : n->memory;
}

/* {"ts":...,"msg":"workers ended","sent":"7",...}: the program's own lines, whose shape is known. */
static int64_t number_in(const char *line, const char *name)
{
    char member[40];
    snprintf(member, sizeof member, "\"%s\":", name);
    const char *at = strstr(line, member);
    if (!at)
        return 0;
    at += strlen(member);
    return strtoll(*at == '"' ? at + 1 : at, NULL, 10);
}

static void read_line(sl_bench_node *n, const char *line)
{
    if (strstr(line, "\"msg\":\"node started\""))
        n->started_ns = sl_now_ns();
    if (!strstr(line, "\"msg\":\"workers ended\""))
        return;
    n->ended_ns = sl_now_ns();
    n->sent = number_in(line, "sent");
    n->failed = number_in(line, "retried") + number_in(line, "dead") +
                number_in(line, "unknown") + number_in(line, "lost_leases");
    n->statements = number_in(line, "statements");
}

static void read_lines(sl_bench_node *n)
{
    char *text = n->text.p;
    for (char *end; (end = strchr(text + n->seen, '\n'));) {
        *end = '\0';
        read_line(n, text + n->seen);
        *end = '\n';
        n->seen = (size_t)(end - text) + 1;
    }
}

static sl_rc reap(sl_bench_node *n, sl_err *err)
{
    struct rusage used;
    while (wait4(n->pid, &n->status, 0, &used) < 0 && errno == EINTR)
        ;
    n->pid = 0;
    close(n->log);
    n->cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    if (WIFEXITED(n->status) && WEXITSTATUS(n->status) == 0 && !n->failed)
        return SL_OK;
    return sl_fail(err, SL_OPERATOR, "a node failed, and said:\n%.2000s",
                   n->text.n ? sl_buf_text(&n->text) : "nothing");
}

sl_rc sl_bench_node_look(sl_bench_node *n, int64_t timeout_ns, sl_err *err)
{
    char some[4096];
    if (!n->pid)
        return SL_OK;
    see_memory(n);
    struct pollfd p = { .fd = n->log, .events = POLLIN };
    if (poll(&p, 1, (int)(timeout_ns / SL_MS)) <= 0)
        return SL_OK;
    ssize_t got = read(n->log, some, sizeof some);
    if (got > 0) {
        sl_buf_put(&n->text, some, (size_t)got);
        read_lines(n);
        return SL_OK;
    }
    return got < 0 && errno == EINTR ? SL_OK : reap(n, err);
}

void sl_bench_node_signal(const sl_bench_node *n, int signal)
{
    if (n->pid)
        kill(n->pid, signal);
}

bool sl_bench_node_is_done(const sl_bench_node *n)
{
    return n->pid == 0;
}

void sl_bench_node_fini(sl_bench_node *n)
{
    sl_err ignored;
    if (n->pid) {
        kill(n->pid, SIGKILL);
        (void)!reap(n, &ignored);
    }
    sl_buf_fini(&n->text);
    *n = (sl_bench_node){ 0 };
}
