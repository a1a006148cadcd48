/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is put together in a buffer of its own and handed over whole. Both forms share one way
 * to escape text, JSON's: a log line stays one line, and nothing that a server, a key or a file
 * name holds can reach an operator's terminal as a control sequence.
 */
#include "core/log.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/err.h"

#include <assert.h>
#include <stdarg.h>

#define FOLD_NS (5 * SL_SEC)

static const char *const level_names[] = {
    [SL_LOG_ERROR] = "error",
    [SL_LOG_WARN] = "warn",
    [SL_LOG_INFO] = "info",
    [SL_LOG_DEBUG] = "debug",
};

void sl_log_init(sl_log *log, sl_log_write write, void *ctx)
{
    *log = (sl_log){ .level = SL_LOG_INFO,
                     .timestamps = true,
                     .write = write,
                     .ctx = ctx,
                     .last_ns = INT64_MIN };
    int failed = pthread_mutex_init(&log->lock, NULL);
    assert(!failed);
    (void)failed;
}

const char *sl_log_level_name(sl_log_level level)
{
    assert((size_t)level < sizeof level_names / sizeof level_names[0]);
    return level_names[level];
}

/* The code point at p, which is n > 0 bytes long, and in *used its bytes; -1 where it is not
 * UTF-8. */
static int32_t decode(const unsigned char *p, size_t n, size_t *used)
{
    static const int32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t want = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    *used = 1;
    if (want == 0 || want > n || p[0] > 0xf4)
        return -1;
    int32_t c = want == 1 ? p[0] : p[0] & (0xff >> (want + 1));
    for (size_t i = 1; i < want; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        c = (c << 6) | (p[i] & 0x3f);
    }
    if (c < smallest[want] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        return -1;
    *used = want;
    return c;
}

/* C0, DEL and C1: a terminal may obey any of them. */
static bool is_control(int32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

static void put_escaped(sl_buf *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = strlen(text);
    size_t used;

    for (; n > 0; p += used, n -= used) {
        int32_t c = decode(p, n, &used);
        if (c == '\n')
            sl_buf_puts(out, "\\n");
        else if (c == '\t')
            sl_buf_puts(out, "\\t");
        else if (c == '"' || c == '\\')
            sl_buf_printf(out, "\\%c", (char)c);
        else if (c < 0 || is_control(c))
            sl_buf_printf(out, "\\u%04x", c < 0 ? 0xfffdU : (unsigned)c);
        else
            sl_buf_put(out, p, used);
    }
}

static void put_quoted(sl_buf *out, const char *text)
{
    sl_buf_putc(out, '"');
    put_escaped(out, text);
    sl_buf_putc(out, '"');
}

/* Plain ASCII without anything that splits a logfmt line needs no quotes. */
static bool is_bare(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '"' || *p == '=' || *p == '\\')
            return false;
    return *text != '\0';
}

static void put_pair(sl_buf *out, bool json, const char *name, const char *value)
{
    if (out->n > 0)
        sl_buf_putc(out, json ? ',' : ' ');
    else if (json)
        sl_buf_putc(out, '{');
    if (json)
        put_quoted(out, name);
    else
        sl_buf_puts(out, name);
    sl_buf_putc(out, json ? ':' : '=');
    if (json || !is_bare(value))
        put_quoted(out, value);
    else
        sl_buf_puts(out, value);
}

static void put_time(sl_buf *out, bool json)
{
    int64_t now_us = sl_wall_us();
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    char day[32], text[48];

    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03dZ", day, (int)(now_us / 1000 % 1000));
    put_pair(out, json, "time", text);
}

static void put_head(sl_buf *out, const sl_log *log, sl_log_level level, const char *sentence)
{
    if (log->timestamps)
        put_time(out, log->json);
    put_pair(out, log->json, "level", sl_log_level_name(level));
    put_pair(out, log->json, "msg", sentence);
}

/* A count is the one value that is no string in JSON. */
static void put_repeated(sl_buf *out, sl_log *log)
{
    if (log->folded > 0)
        sl_buf_printf(out, log->json ? ",\"repeated\":%llu" : " repeated=%llu",
                      (unsigned long long)log->folded);
    log->folded = 0;
}

static void hand_over(sl_log *log, sl_log_level level, sl_buf *line)
{
    if (log->json)
        sl_buf_putc(line, '}');
    log->write(log->ctx, level, line->p);
}

/* Lines that were counted and not written must not be lost when another sentence comes. */
static void flush_folded(sl_log *log)
{
    if (log->folded == 0)
        return;
    sl_buf line = { 0 };
    sl_log_level level = (sl_log_level)(log->last[0] - '0');

    put_head(&line, log, level, log->last + 1);
    put_repeated(&line, log);
    hand_over(log, level, &line);
    sl_buf_fini(&line);
}

/* FNV-1a over the value of the pair "error": another failure is another line, whoever met it. */
static uint64_t error_hash(va_list ap)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *name; (name = va_arg(ap, const char *)) != NULL;) {
        const char *value = va_arg(ap, const char *);
        if (value && !strcmp(name, "error"))
            for (const char *p = value; *p; p++)
                h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    return h;
}

/* Is this line the last one again? Remembers it if not. `last` begins with the level's digit. */
static bool folds(sl_log *log, sl_log_level level, const char *sentence, uint64_t error)
{
    char now[sizeof log->last];
    int64_t now_ns = sl_now_ns();

    if (level > SL_LOG_WARN)
        return false; /* state changes, and the pairs say whose */
    snprintf(now, sizeof now, "%d%s", (int)level, sentence);
    bool same = strcmp(now, log->last) == 0 && error == log->last_error;
    if (same && log->last_ns > now_ns - FOLD_NS) {
        log->folded++;
        return true;
    }
    if (!same)
        flush_folded(log);
    memcpy(log->last, now, strlen(now) + 1);
    log->last_ns = now_ns;
    log->last_error = error;
    return false;
}

void sl_log_line(sl_log *log, sl_log_level level, const char *sentence, ...)
{
    if (!log || !log->write || level > log->level)
        return;
    va_list ap;
    va_start(ap, sentence);
    uint64_t error = error_hash(ap);
    va_end(ap);
    pthread_mutex_lock(&log->lock);
    if (!folds(log, level, sentence, error)) {
        sl_buf line = { 0 };
        put_head(&line, log, level, sentence);
        va_start(ap, sentence);
        for (const char *name; (name = va_arg(ap, const char *)) != NULL;) {
            const char *value = va_arg(ap, const char *);
            if (value)
                put_pair(&line, log->json, name, value);
        }
        va_end(ap);
        if (level <= SL_LOG_WARN)
            put_repeated(&line, log);
        hand_over(log, level, &line);
        sl_buf_fini(&line);
    }
    pthread_mutex_unlock(&log->lock);
}

void sl_log_fini(sl_log *log)
{
    if (log->write)
        flush_folded(log);
    pthread_mutex_destroy(&log->lock);
}
