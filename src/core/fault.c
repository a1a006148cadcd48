/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fault.h"

#ifdef SL_FAULT_POINTS

#include "core/err.h"

#include <signal.h>
#include <stdatomic.h>

void sl_fault(const char *name)
{
    static _Atomic long passed;
    const char *wish = getenv("SLUICE_FAULT");
    size_t n = strlen(name);
    if (!wish || strncmp(wish, name, n) != 0 || wish[n] != ':')
        return;
    char *how;
    long at = strtol(wish + n + 1, &how, 10);
    if (atomic_fetch_add(&passed, 1) + 1 == at)
        raise(strcmp(how, ":stop") == 0 ? SIGSTOP : SIGKILL);
}

#else
typedef int sl_fault_unused; /* a translation unit is not empty */
#endif
