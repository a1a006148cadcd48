/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts everything and keeps nothing: to measure what the database alone allows, and to empty
 * a table. */
#include "core/mem.h"
#include "sink/sink.h"

extern const sl_sink_ops sl_sink_null;

static sl_rc null_open(sl_sink **out, const sl_sink_conf *conf, sl_err *err)
{
    const char *rest = strchr(conf->url, ':');
    if (rest && rest[1])
        return sl_fail(err, SL_REFUSED, "sink null: takes nothing after the colon");
    *out = sl_alloc(sizeof **out);
    (*out)->ops = &sl_sink_null;
    return SL_OK;
}

static void null_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    (void)s;
    sl_msg_settle(b, m, SL_SENT, SL_NONE);
}

static void null_poll(sl_sink *s, int64_t timeout_ns)
{
    (void)s;
    (void)timeout_ns;
}

static void null_recall(sl_sink *s)
{
    (void)s;
}

static void null_close(sl_sink *s)
{
    free(s);
}

const sl_sink_ops sl_sink_null = {
    .scheme = "null",
    .example = "null:",
    .in_order = true,
    .open = null_open,
    .submit = null_submit,
    .poll = null_poll,
    .recall = null_recall,
    .close = null_close,
};
