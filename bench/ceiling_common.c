/* SPDX-License-Identifier: Apache-2.0 */
#include "ceiling_common.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TABLE_WORD "sluice_outbox"

enum { CONNECTIONS_MAX = 64 };

static pthread_barrier_t ready;

typedef struct task {
    pthread_t thread;
    const bench_options *options;
    bench_drain_fn drain;
    int connection;
    int64_t messages;
} task;

void bench_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("ceiling: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

void bench_ready(void)
{
    pthread_barrier_wait(&ready);
}

/* ---- Statements -------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = fopen(path, "r");
    if (!f || getdelim(&text, &n, '\0', f) < 0)
        bench_die("cannot read %s: %s", path, strerror(errno));
    fclose(f);
    return text;
}

char *bench_sql(const bench_options *o, const char *dialect, const char *name)
{
    char path[4096];
    char *out = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s/%s.sql", o->sql_dir, dialect, name);
    char *text = read_file(path);
    FILE *f = open_memstream(&out, &n);
    if (!f)
        bench_die("out of memory");
    const char *p = text;
    for (const char *at; (at = strstr(p, TABLE_WORD));) {
        const char *side = at + strlen(TABLE_WORD); /* "_lanes" and the like */
        size_t bytes = strspn(side, "abcdefghijklmnopqrstuvwxyz_");
        fprintf(f, "%.*s\"%s%.*s\"", (int)(at - p), p, o->table, (int)bytes, side);
        p = side + bytes;
    }
    fputs(p, f);
    fclose(f);
    free(text);
    return out;
}

/* ---- The program ------------------------------------------------------------------------- */

static _Noreturn void usage(void)
{
    fputs("usage: ceiling --sql DIR [--hold transaction|lease] [--batch N] [--connections N]\n"
          "               [--table NAME] DATABASE\n"
          "Empties the table with the statements in DIR, sends nothing, and tells how fast it "
          "was.\n",
          stderr);
    exit(2);
}

static int64_t number(const char *text, int64_t max)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    if (*end || n < 1 || n > max)
        usage();
    return n;
}

static bench_options parse(int argc, char **argv)
{
    static const struct option known[] = {
        { "sql", required_argument, NULL, 's' },
        { "hold", required_argument, NULL, 'h' },
        { "batch", required_argument, NULL, 'b' },
        { "connections", required_argument, NULL, 'c' },
        { "table", required_argument, NULL, 't' },
        { NULL, 0, NULL, 0 },
    };
    bench_options o = { .table = "outbox", .batch = 500, .connections = 1 };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 's')
            o.sql_dir = optarg;
        else if (c == 'b')
            o.batch = number(optarg, 10000);
        else if (c == 'c')
            o.connections = (int)number(optarg, CONNECTIONS_MAX);
        else if (c == 't')
            o.table = optarg;
        else if (c == 'h' && (!strcmp(optarg, "lease") || !strcmp(optarg, "transaction")))
            o.lease = !strcmp(optarg, "lease");
        else
            usage();
    }
    if (optind != argc - 1 || !o.sql_dir)
        usage();
    o.db = argv[optind];
    return o;
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *run_task(void *arg)
{
    task *t = arg;
    t->messages = t->drain(t->options, t->connection);
    return NULL;
}

int bench_main(int argc, char **argv, bench_drain_fn drain)
{
    bench_options o = parse(argc, argv);
    task tasks[CONNECTIONS_MAX];
    int64_t messages = 0;

    pthread_barrier_init(&ready, NULL, (unsigned)o.connections + 1);
    for (int i = 0; i < o.connections; i++) {
        tasks[i] = (task){ .options = &o, .drain = drain, .connection = i };
        if (pthread_create(&tasks[i].thread, NULL, run_task, &tasks[i]) != 0)
            bench_die("cannot start a thread");
    }
    bench_ready();
    double began = now_s();
    for (int i = 0; i < o.connections; i++) {
        pthread_join(tasks[i].thread, NULL);
        messages += tasks[i].messages;
    }
    double seconds = now_s() - began;
    pthread_barrier_destroy(&ready);
    printf("messages=%lld seconds=%.4f rate=%.0f\n", (long long)messages, seconds,
           (double)messages / seconds);
    return 0;
}
