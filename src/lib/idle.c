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
    struct bed {
        int bell; /* each has its own, so that each hears it once */
        _Atomic bool taken;
    } beds[];
};

sl_idle *sl_idle_new(size_t workers)
{
    sl_idle *i = sl_alloc(sizeof *i + workers * sizeof i->beds[0]);
    for (; i->count < workers; i->count++) {
        i->beds[i->count].bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (i->beds[i->count].bell < 0) {
            sl_idle_free(i);
            return NULL;
        }
    }
    return i;
}

void sl_idle_free(sl_idle *i)
{
    for (size_t k = 0; i && k < i->count; k++)
        close(i->beds[k].bell);
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
        eventfd_write(i->beds[k].bell, 1);
}

void sl_idle_call(sl_idle *i)
{
    for (size_t k = 0; k < i->count; k++)
        if (i->beds[k].taken && atomic_exchange(&i->beds[k].taken, false)) {
            eventfd_write(i->beds[k].bell, 1);
            return;
        }
}

void sl_idle_hand_over(sl_idle *i)
{
    i->watched =
        false; /* before the beds are looked at: whoever lies down after that sees it */
    sl_idle_call(i);
}

void sl_idle_sleep(sl_idle *i, size_t worker, sl_stop *stop)
{
    eventfd_t rung;
    struct bed *bed = &i->beds[worker];
    struct pollfd fds[] = { { .fd = bed->bell, .events = POLLIN },
                            { .fd = stop->fd_soon, .events = POLLIN } };
    bed->taken = true;
    if (i->watched)
        (void)!poll(fds, 2, -1);
    bed->taken = false;
    (void)!eventfd_read(bed->bell, &rung);
}
