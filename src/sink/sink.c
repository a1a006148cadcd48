/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/sink.h"

#include "core/buf.h"
#include "core/mem.h"
#include "core/opt.h"
#include "sink/tap.h"

#include <strings.h>

enum { SHOWN_BYTES = 40 };

static const sl_sink_ops *find(const char *scheme)
{
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        if (strcasecmp(scheme, (*ops)->scheme) == 0)
            return *ops;
    return NULL;
}

static const char *nearest_example(const char *scheme)
{
    sl_near near = { .wanted = scheme };
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        sl_near_try(&near, (*ops)->scheme);
    return near.best ? find(near.best)->example : NULL;
}

/* Only what looks like a scheme or a path is repeated: anything else may hold a password. */
static sl_rc unknown(const char *scheme, bool has_colon, sl_err *err)
{
    sl_buf hint = { 0 };
    const char *near = nearest_example(scheme);
    if (near)
        sl_buf_printf(&hint, "did you mean %s? ", near);
    sl_buf_puts(&hint, "this build has");
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        sl_buf_printf(&hint, "%s %s", ops == sl_sink_all ? "" : ",", (*ops)->example);
    const char *shown = strpbrk(scheme, "=@ \t?") ? "..." : scheme;
    sl_rc rc = sl_fail(err, SL_REFUSED, "%s \"%.*s\"\nhint: %s",
                       has_colon ? "unknown sink" : "sink without a scheme:", SHOWN_BYTES,
                       shown, sl_buf_text(&hint));
    sl_buf_fini(&hint);
    return rc;
}

sl_rc sl_sink_find(const sl_sink_ops **out, const char *url, sl_err *err)
{
    size_t n = strcspn(url, ":");
    char *scheme = sl_strndup(url, n);
    *out = url[n] == ':' ? find(scheme) : NULL;
    sl_rc rc = *out ? SL_OK : unknown(scheme, url[n] == ':', err);
    free(scheme);
    return rc;
}

sl_rc sl_sink_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    const sl_sink_ops *ops;
    const char *tap = getenv(SL_TAP_ENV);
    sl_rc rc = sl_sink_find(&ops, conf->url ? conf->url : "", err);
    if (rc == SL_OK)
        rc = ops->open(out, conf, err);
    return rc == SL_OK && tap && *tap ? sl_tap_wrap(out, tap, err) : rc;
}
