/* SPDX-License-Identifier: Apache-2.0 */
#include "db/pg_url.h"

#include "core/err.h"

/* A host with a port that is no number: the port is half a password. */
static bool has_odd_port(const char *hosts, const char *end)
{
    for (const char *p = hosts; p < end;) {
        const char *stop = memchr(p, ',', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *name_end = *p == '[' ? memchr(p, ']', (size_t)(stop - p)) : p;
        const char *colon = name_end ? memchr(name_end, ':', (size_t)(stop - name_end)) : NULL;
        if (*p == '[' && !name_end)
            return true;
        if (colon && colon + 1 + strspn(colon + 1, "0123456789") < stop)
            return true;
        p = stop + 1;
    }
    return false;
}

bool sl_pg_url_is_torn(const char *url)
{
    const char *authority = strstr(url, "://");
    if (!authority || strncmp(url, "postgres", 8) != 0)
        return false;
    authority += 3;
    const char *end = authority + strcspn(authority, "/?#");
    const char *path_end = authority + strcspn(authority, "?");
    const char *at = memchr(authority, '@', (size_t)(end - authority));
    if (at && memchr(at + 1, '@', (size_t)(end - at - 1)))
        return true;
    if (end < path_end && memchr(end, '@', (size_t)(path_end - end)))
        return true;
    return has_odd_port(at ? at + 1 : authority, end);
}
