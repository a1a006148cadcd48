/* SPDX-License-Identifier: Apache-2.0 */
#include "format/encode.h"

#include "core/mem.h"
#include "core/opt.h"
#include "format/encoder.h"

#include <stdarg.h>

#define DEFAULT_SOURCE "sluice"
#define DEFAULT_PREFIX "ce_"

enum { SHOWN_BYTES = 40, KEEP_BYTES = 4 * 1024 * 1024 };

/* Formats that a build may lack, and how to have them. */
static const struct optional {
    const char *name;
    const char *hint;
} optional[] = {
    { "protobuf", "build it with protobuf-c: meson configure -Dprotobuf=enabled" },
};

static const sl_encode_ops *find(const char *name)
{
    for (const sl_encode_ops *const *ops = sl_encode_all; *ops; ops++)
        if (strcmp(name, (*ops)->name) == 0)
            return *ops;
    return NULL;
}

static sl_rc unknown(const char *name, sl_err *err)
{
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (strcmp(name, optional[i].name) == 0)
            return sl_fail(err, SL_REFUSED, "this build has no format \"%s\"\nhint: %s", name,
                           optional[i].hint);
    sl_near near = { .wanted = name };
    sl_buf names = { 0 };
    for (const sl_encode_ops *const *ops = sl_encode_all; *ops; ops++) {
        sl_near_try(&near, (*ops)->name);
        sl_buf_printf(&names, "%s%s", ops == sl_encode_all ? "" : ", ", (*ops)->name);
    }
    sl_rc rc = sl_fail(err, SL_REFUSED, "unknown format \"%.*s\"\nhint: %s%s%sthere are %s",
                       SHOWN_BYTES, name, near.best ? "did you mean " : "",
                       near.best ? near.best : "", near.best ? "? " : "", sl_buf_text(&names));
    sl_buf_fini(&names);
    return rc;
}

/* CloudEvents want a URI reference that is not empty. Only characters that no URI has are looked
 * for: what it means is nobody's business here. */
static sl_rc check_source(const char *source, sl_err *err)
{
    bool good = *source != '\0';
    for (const char *p = source; *p; p++)
        good = good && *p > ' ' && *p < 0x7f && !strchr("\"<>\\^`{|}", *p);
    return good ? SL_OK
                : sl_fail(err, SL_REFUSED,
                          "source \"%.*s\" is no URI reference\n"
                          "hint: for example /shop/orders or https://shop.example/orders",
                          SHOWN_BYTES, source);
}

sl_rc sl_encoder_new(sl_encoder **out, const sl_encode_conf *conf, sl_err *err)
{
    const char *source = conf->source ? conf->source : DEFAULT_SOURCE;
    const sl_encode_ops *ops = conf->format ? find(conf->format) : sl_encode_all[0];
    if (!ops)
        return unknown(conf->format, err);
    sl_rc rc = check_source(source, err);
    if (rc != SL_OK)
        return rc;
    sl_encoder *e = sl_alloc(sizeof *e);
    e->ops = ops;
    e->tombstones = conf->tombstones;
    e->source = sl_strdup(source);
    e->ce_prefix = sl_strdup(conf->ce_prefix ? conf->ce_prefix : DEFAULT_PREFIX);
    *out = e;
    return SL_OK;
}

void sl_encoder_free(sl_encoder *e)
{
    if (!e)
        return;
    sl_arena_fini(&e->arena);
    sl_buf_fini(&e->value);
    sl_keymap_fini(&e->seen);
    free(e->headers);
    free(e->source);
    free(e->ce_prefix);
    free(e);
}

bool sl_encode_refuse(char *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, SL_WHY_BYTES, fmt, args);
    va_end(args);
    return false;
}

/* A single huge message does not stay in memory for ever. */
static void forget(sl_encoder *e)
{
    if (e->value.cap > KEEP_BYTES)
        sl_buf_fini(&e->value);
    else
        sl_buf_reset(&e->value);
    sl_arena_reset(&e->arena);
    e->count = 0;
}

bool sl_encode(sl_encoder *e, const sl_msg *m, sl_encoded *out, char why[SL_WHY_BYTES])
{
    forget(e);
    *out = (sl_encoded){ 0 };
    if (!sl_headers_take(e, m->headers, why) || !e->ops->encode(e, m, &out->value, why))
        return false;
    if (e->tombstones && m->payload.n == 0)
        out->value = (sl_str){ 0 };
    out->headers = e->headers;
    out->header_count = e->count;
    return true;
}
