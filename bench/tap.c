/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes when a running sluice got how many messages, so that bench/run can tell the rate of any
 * stretch of a run, without starting, connecting and waiting. Loaded with LD_PRELOAD, it stands
 * between the program and libpq's PQgetResult. A result with the columns of a claim is a batch:
 * one line, "<CLOCK_MONOTONIC ns> <messages>", in the file that BENCH_TAP names. Rows that only
 * say that a message must wait do not count. One write(2) per batch is all that it costs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef PGresult *(*get_result_fn)(PGconn *pg);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static get_result_fn real_get_result;
static int out = -1;

static void tap_open(void)
{
    const char *path = getenv("BENCH_TAP");
    *(void **)&real_get_result = dlsym(RTLD_NEXT, "PQgetResult");
    if (path)
        out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (!real_get_result || out < 0) {
        fputs("tap: no PQgetResult, or no file in BENCH_TAP\n", stderr);
        abort();
    }
}

/* As sql/postgres/ has them: the columns of every claim, and `wait` in those that keep order. */
enum { COL_TOPIC = 4, COL_PAYLOAD = 9, CLAIM_COLS = 10, COL_WAIT = 11 };

static bool is_claim(const PGresult *res)
{
    return PQresultStatus(res) == PGRES_TUPLES_OK && PQnfields(res) >= CLAIM_COLS &&
           PQfnumber(res, "topic") == COL_TOPIC;
}

static bool may_go(const PGresult *res, int row)
{
    static const char none[8];
    return !PQgetisnull(res, row, COL_PAYLOAD) &&
           (PQnfields(res) <= COL_WAIT || memcmp(PQgetvalue(res, row, COL_WAIT), none, 8) == 0);
}

static int messages_in(const PGresult *res)
{
    int n = 0;
    for (int i = 0; i < PQntuples(res); i++)
        n += may_go(res, i);
    return n;
}

static void note(int messages)
{
    char line[64];
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    int n = snprintf(line, sizeof line, "%lld %d\n",
                     (long long)ts.tv_sec * 1000000000 + ts.tv_nsec, messages);
    if (write(out, line, (size_t)n) != n)
        abort();
}

__attribute__((visibility("default"))) PGresult *PQgetResult(PGconn *pg)
{
    pthread_once(&once, tap_open);
    PGresult *res = real_get_result(pg);
    int messages = res && is_claim(res) ? messages_in(res) : 0;
    if (messages > 0)
        note(messages);
    return res;
}
