/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/usage.h"

#include "core/err.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct stat_line {
    char name[32];
    long parent;
    unsigned long long own, ended; /* ticks; of its children that were waited for */
} stat_line;

/* "PID (NAME) STATE PARENT ...", where a name may hold anything, brackets included. */
static bool read_stat(pid_t pid, stat_line *out)
{
    char path[64], text[1024];
    unsigned long long user, sys;
    long long child_user, child_sys;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *open = strchr(text, '(');
    const char *end = strrchr(text, ')');
    if (!open || !end)
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - open - 1), open + 1);
    if (sscanf(end + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
               &out->parent, &user, &sys, &child_user, &child_sys) != 5)
        return false;
    out->own = user + sys;
    out->ended = (unsigned long long)(child_user + child_sys);
    return true;
}

static double seconds(unsigned long long ticks)
{
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

double sl_usage_cpu(pid_t pid)
{
    stat_line s;
    return read_stat(pid, &s) ? seconds(s.own) : -1;
}

static unsigned long long ticks_of_children(pid_t parent)
{
    unsigned long long ticks = 0;
    DIR *dir = opendir("/proc");
    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        stat_line s;
        if (isdigit((unsigned char)e->d_name[0]) &&
            read_stat((pid_t)strtol(e->d_name, NULL, 10), &s) && s.parent == parent)
            ticks += s.own;
    }
    closedir(dir);
    return ticks;
}

/* A session that ends between two looks would be counted by neither, or by both: then it is looked again. */
static bool read_server(pid_t pid, unsigned long long *ticks)
{
    stat_line before, after;
    for (int tries = 0; tries < 100; tries++) {
        if (!read_stat(pid, &before))
            return false;
        *ticks = ticks_of_children(pid);
        if (!read_stat(pid, &after))
            return false;
        *ticks += after.own + after.ended;
        if (after.ended == before.ended)
            break;
    }
    return true;
}

/* A server in another container has pids of its own, which may be anyone's here: its name must be right. */
double sl_usage_server_cpu(pid_t session)
{
    stat_line mine, server;
    unsigned long long ticks;
    if (session <= 0 || !read_stat(session, &mine) || strncmp(mine.name, "postgres", 8) != 0 ||
        !read_stat((pid_t)mine.parent, &server) || strncmp(server.name, "postgres", 8) != 0)
        return -1;
    return read_server((pid_t)mine.parent, &ticks) ? seconds(ticks) : -1;
}

int64_t sl_usage_memory(pid_t pid)
{
    char path[64], line[256];
    long long kilobytes = 0, more;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lld", &more) == 1 ||
            sscanf(line, "RssFile: %lld", &more) == 1)
            kilobytes += more;
    if (f)
        fclose(f);
    return kilobytes * 1024;
}
