/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/idle.h"

#include "core/clock.h"
#include "core/mem.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The one who watched was woken, and is likely to be back in a moment: so long it is waited for. */
#define SHORTLY_NS (5 * SL_MS)

typedef enum watched { NOBODY, WATCHED, SHORTLY } watched;

struct sl_idle {
    _Atomic watched watched;
    _Atomic unsigned handed; /* so often the watch was handed over */
    size_t count;
    struct bed {
        int bell; /* each has its own, so that each hears it once */
        _Atomic bool taken;
        _Atomic bool called; /* to help, at once */
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
    return atomic_exchange(&i->watched, WATCHED) != WATCHED;
}

void sl_idle_ring(sl_idle *i)
{
    i->watched = NOBODY;
    for (size_t k = 0; k < i->count; k++) {
        i->beds[k].called = true;
        eventfd_write(i->beds[k].bell, 1);
    }
}

/* One of those that sleep. */
static void wake_one(sl_idle *i, bool to_help)
{
    for (size_t k = 0; k < i->count; k++) {
        struct bed *bed = &i->beds[k];
        if (!bed->taken || !atomic_exchange(&bed->taken, false))
            continue;
        if (to_help)
            bed->called = true;
        eventfd_write(bed->bell, 1);
        return;
    }
}

void sl_idle_call(sl_idle *i)
{
    wake_one(i, true);
}

void sl_idle_hand_over(sl_idle *i)
{
    i->handed++;
    i->watched =
        SHORTLY; /* before the beds are looked at: whoever lies down after that sees it */
    wake_one(i, false);
}

void sl_idle_pass_on(sl_idle *i)
{
    if (i->watched == SHORTLY)
        sl_idle_hand_over(i);
}

/* Until the bell rings, for so long at most. */
static void lie(const struct bed *bed, const sl_stop *stop, int ms)
{
    struct pollfd fds[] = { { .fd = bed->bell, .events = POLLIN },
                            { .fd = stop->fd_soon, .events = POLLIN } };
    (void)!poll(fds, 2, ms);
}

/* The watch was handed over. False: nobody took it up again, and this one has to. */
static bool somebody_is_back(const sl_idle *i, struct bed *bed, sl_stop *stop)
{
    eventfd_t rung;
    unsigned handed = i->handed;
    int64_t left_ns, until_ns = sl_now_ns() + SHORTLY_NS;
    while (i->watched == SHORTLY && i->handed == handed && !bed->called &&
           sl_stop_level_of(stop) == SL_GO && (left_ns = until_ns - sl_now_ns()) > 0) {
        lie(bed, stop, (int)(left_ns / SL_MS) + 1);
        (void)!eventfd_read(bed->bell, &rung);
    }
    return i->watched == WATCHED || i->handed != handed;
}

/* In bed as long as somebody watches. Who is woken to watch gets up only if the one who did is not back soon. */
void sl_idle_sleep(sl_idle *i, size_t worker, sl_stop *stop)
{
    eventfd_t rung;
    struct bed *bed = &i->beds[worker];
    do {
        bed->taken = true;
        if (i->watched == WATCHED && !bed->called)
            lie(bed, stop, -1);
        (void)!eventfd_read(bed->bell, &rung);
        bed->taken = true;
    } while (i->watched != NOBODY && !bed->called && somebody_is_back(i, bed, stop) &&
             !bed->called && sl_stop_level_of(stop) == SL_GO);
    bed->taken = false;
    bed->called = false;
    (void)!eventfd_read(bed->bell, &rung);
}
