/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "core/clock.h"
#include "core/err.h"

#include <sys/stat.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };

void sl_progress_begin_of(sl_progress *p, const char *verb, uint64_t messages)
{
    *p = (sl_progress){ .verb = verb,
                        .shown = verb && isatty(STDERR_FILENO),
                        .total_bytes = messages,
                        .begun_ns = sl_now_ns() };
}

void sl_progress_begin(sl_progress *p, const char *verb, FILE *input)
{
    struct stat st;
    bool file = fstat(fileno(input), &st) == 0 && S_ISREG(st.st_mode);
    sl_progress_begin_of(p, verb, file ? (uint64_t)st.st_size : 0);
}

static void draw_bar(const sl_progress *p, uint64_t bytes)
{
    uint64_t done = p->total_bytes ? bytes * BAR_WIDTH / p->total_bytes : 0;
    if (!p->total_bytes)
        return;
    fputs(" [", stderr);
    for (uint64_t i = 0; i < BAR_WIDTH; i++)
        fputc(i < done ? '#' : '.', stderr);
    fprintf(stderr, "] %3u%%", (unsigned)(bytes * 100 / p->total_bytes));
}

void sl_progress_step(sl_progress *p, uint64_t messages, uint64_t bytes)
{
    int64_t now_ns = sl_now_ns();
    if (!p->shown || now_ns - p->drawn_ns < 100 * SL_MS)
        return;
    p->drawn_ns = now_ns;
    double seconds = (double)(now_ns - p->begun_ns) / 1e9;
    fprintf(stderr, "\r\033[K%s", p->verb);
    draw_bar(p, bytes);
    fprintf(stderr, " %llu messages, %.0f/s", (unsigned long long)messages,
            seconds > 0 ? (double)messages / seconds : 0);
    fflush(stderr);
}

void sl_progress_end(sl_progress *p)
{
    if (p->shown && p->drawn_ns)
        fputs("\r\033[K", stderr);
}
