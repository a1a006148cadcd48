/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file grows in steps of a chunk. A chunk is allocated on disk before it is mapped (a full disk
 * would else be a SIGBUS) and stays mapped until the process ends. An event's place is reserved by
 * one atomic addition, so that threads share the file without a lock.
 */
#include "core/record.h"

#ifdef SL_FAULT_POINTS

#include "core/clock.h"
#include "core/err.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SLOT_BYTES = 64,
    CHUNK_BYTES = 1024 * 1024,
    SLOTS_PER_CHUNK = CHUNK_BYTES / SLOT_BYTES,
    CHUNKS_MAX = 4096,
};

static_assert(sizeof(sl_rec_head) == SLOT_BYTES, "the header takes one slot");
static_assert(sizeof(sl_rec_event) == SLOT_BYTES, "an event takes one slot");

static struct {
    pthread_once_t once;
    pthread_mutex_t growing;
    int fd; /* -1: nothing is recorded */
    sl_rec_head *head;
    _Atomic(char *) chunks[CHUNKS_MAX];
} rec = { .once = PTHREAD_ONCE_INIT, .growing = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void give_up(const char *what, int error)
{
    fprintf(stderr, "SLUICE_RECORD: %s: %s\n", what, strerror(error));
    abort();
}

static char *map_chunk(size_t number)
{
    off_t at = (off_t)number * CHUNK_BYTES;
    int e = posix_fallocate(rec.fd, at, CHUNK_BYTES);
    if (e != 0)
        give_up("cannot grow the file", e);
    char *p = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rec.fd, at);
    if (p == MAP_FAILED)
        give_up("cannot map the file", errno);
    return p;
}

static void *slot_at(uint64_t number)
{
    uint64_t chunk = number / SLOTS_PER_CHUNK;
    if (chunk >= CHUNKS_MAX)
        give_up("the file is full", EFBIG);
    char *p = atomic_load_explicit(&rec.chunks[chunk], memory_order_acquire);
    if (!p) {
        pthread_mutex_lock(&rec.growing);
        p = atomic_load_explicit(&rec.chunks[chunk], memory_order_relaxed);
        if (!p) {
            p = map_chunk(chunk);
            atomic_store_explicit(&rec.chunks[chunk], p, memory_order_release);
        }
        pthread_mutex_unlock(&rec.growing);
    }
    return p + number % SLOTS_PER_CHUNK * SLOT_BYTES;
}

/* The magic number comes last: a file without it has no events. */
static void open_file(void)
{
    const char *dir = getenv("SLUICE_RECORD");
    char path[PATH_MAX];
    int64_t start_ns = sl_now_ns();
    if (!dir || !*dir)
        return;
    int n = snprintf(path, sizeof path, "%s/%ld-%lld.rec", dir, (long)getpid(),
                     (long long)start_ns);
    if (n < 0 || (size_t)n >= sizeof path)
        give_up(dir, ENAMETOOLONG);
    rec.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (rec.fd < 0)
        give_up(path, errno);
    rec.head = slot_at(0);
    rec.head->pid = getpid();
    rec.head->start_ns = start_ns;
    atomic_thread_fence(memory_order_release);
    rec.head->magic = SL_REC_MAGIC;
}

static uint64_t hash(sl_str key)
{
    if (!key.p)
        return 0;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

void sl_record(sl_rec_kind kind, const char *worker, int64_t id, sl_str key, int64_t epoch,
               int32_t extra)
{
    int64_t at_ns = sl_now_ns();
    pthread_once(&rec.once, open_file);
    if (rec.fd < 0)
        return;
    uint64_t number = atomic_fetch_add_explicit(&rec.head->next, 1, memory_order_relaxed);
    sl_rec_event *e = slot_at(number + 1);
    e->at_ns = at_ns;
    e->id = id;
    e->key_hash = hash(key);
    e->epoch = epoch;
    e->extra = extra;
    e->kind = (uint16_t)kind;
    size_t n = strlen(worker);
    size_t cut = n > sizeof e->worker ? n - sizeof e->worker : 0;
    memcpy(e->worker, worker + cut, n - cut);
    atomic_store_explicit(&e->seal, SL_REC_MAGIC + number + 1, memory_order_release);
}

#else
typedef int sl_record_unused; /* a translation unit is not empty */
#endif
