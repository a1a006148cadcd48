/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/idle.h"

#include "core/mem.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sl_idle {
    _Atomic bool watched;
    size_t count;
    int bells[]; /* one for each worker, so that each hears it once */
};

sl_idle *sl_idle_new(size_t workers)
{
    sl_idle *i = sl_alloc(sizeof *i + workers * sizeof i->bells[0]);
    for (; i->count < workers; i->count++) {
        i->bells[i->count] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (i->bells[i->count] < 0) {
            sl_idle_free(i);
            return NULL;
        }
    }
    return i;
}

void sl_idle_free(sl_idle *i)
{
    for (size_t k = 0; i && k < i->count; k++)
        close(i->bells[k]);
    free(i);
}

bool sl_idle_watch(sl_idle *i)
{
    return !atomic_exchange(&i->watched, true);
}

void sl_idle_ring(sl_idle *i)
{
    i->watched = false;
    for (size_t k = 0; k < i->count; k++)
        eventfd_write(i->bells[k], 1);
}

void sl_idle_sleep(sl_idle *i, size_t worker, sl_stop *stop)
{
    eventfd_t rung;
    struct pollfd fds[] = { { .fd = i->bells[worker], .events = POLLIN },
                            { .fd = stop->fd_soon, .events = POLLIN } };
    (void)!poll(fds, 2, -1);
    (void)!eventfd_read(i->bells[worker], &rung);
}
