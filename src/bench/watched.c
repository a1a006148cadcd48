/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/watched.h"

#include "core/clock.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory, where there is a place for that: it is written to with each message. */
static int make_file(char **path)
{
    const char *tmp = getenv("TMPDIR");
    *path = sl_strdup("/dev/shm/sluice-bench-XXXXXX");
    int fd = mkostemp(*path, O_CLOEXEC);
    if (fd >= 0)
        return fd;
    free(*path);
    *path = sl_asprintf("%s/sluice-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkostemp(*path, O_CLOEXEC);
}

sl_rc sl_watched_make(sl_watched *w, int64_t first_id, int64_t count, int64_t delay_ns,
                      sl_err *err)
{
    void *p = MAP_FAILED;
    int fd = make_file(&w->path);
    w->bytes = sl_tap_bytes(count);
    if (fd >= 0 && ftruncate(fd, (off_t)w->bytes) == 0)
        p = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int e = errno;
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED) {
        sl_watched_remove(w);
        return sl_fail(err, SL_OPERATOR, "cannot make a file to note deliveries in: %s",
                       strerror(e));
    }
    w->tap = p;
    w->tap->magic = SL_TAP_MAGIC;
    w->tap->first_id = first_id;
    w->tap->count = count;
    w->tap->delay_ns = delay_ns;
    return SL_OK;
}

void sl_watched_remove(sl_watched *w)
{
    if (w->tap)
        munmap(w->tap, w->bytes);
    if (w->path)
        unlink(w->path);
    free(w->path);
    *w = (sl_watched){ 0 };
}

int64_t sl_watched_count(const sl_watched *w)
{
    return w->tap->turns;
}

static const sl_tapped *of(const sl_watched *w, int64_t id)
{
    return &w->tap->messages[id - w->tap->first_id];
}

/* As bench/fill.sql chose it; the hot one is the last. */
static int64_t key_of(const sl_fill *f, int64_t from, int64_t id)
{
    if (f->drawn)
        return f->drawn[id - from];
    return f->hot && id % f->hot == 0 ? f->keys : id % f->keys;
}

sl_rc sl_watched_check(const sl_watched *w, const sl_fill *fill, int64_t from, int64_t upto,
                       bool all, bool ordered, sl_err *err)
{
    int64_t lost = 0, twice = 0, early = 0;
    int64_t *last = sl_alloc((size_t)(fill->keys + 1) * sizeof *last);
    for (int64_t id = from; id <= upto; id++) {
        const sl_tapped *m = of(w, id);
        int64_t *before = &last[key_of(fill, from, id)];
        lost += m->times == 0;
        twice += m->times > 1;
        early += m->times > 0 && m->turn < *before;
        if (m->turn > *before)
            *before = m->turn;
    }
    free(last);
    if ((all && lost) || twice || (ordered && early) || w->tap->strangers)
        return sl_fail(err, SL_OPERATOR,
                       "the run was wrong, its figures mean nothing: of %lld messages %lld "
                       "were lost, %lld came twice, "
                       "%lld before one of their key; %lld others came",
                       (long long)(upto - from + 1), (long long)(all ? lost : 0),
                       (long long)twice, (long long)(ordered ? early : 0),
                       (long long)w->tap->strangers);
    return SL_OK;
}

int sl_by_double(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

double sl_percentile(const double *sorted, size_t n, double p)
{
    double place = p * (double)n;
    size_t at = (size_t)place;
    at += (double)at < place; /* rounded up */
    return n ? sorted[at > 0 ? at - 1 : 0] : NAN;
}

double sl_watched_rate(const sl_watched *w, int64_t from, int64_t upto, double share,
                       bool (*pick)(void *ctx, int64_t id), void *ctx)
{
    double *at = sl_alloc((size_t)(upto - from + 1) * sizeof *at);
    size_t n = 0, wanted = 0;
    for (int64_t id = from; id <= upto; id++) {
        if (pick && !pick(ctx, id))
            continue;
        wanted++;
        if (of(w, id)->times > 0)
            at[n++] = (double)of(w, id)->at_ns;
    }
    qsort(at, n, sizeof *at, sl_by_double);
    size_t last = (size_t)(share * (double)wanted + 0.5);
    last = last < n ? last : n - (n > 0);
    double rate = last > 0 && at[last] > at[0] ? (double)last * 1e9 / (at[last] - at[0]) : 0;
    free(at);
    return rate;
}
