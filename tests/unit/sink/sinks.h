/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sinks have in common: batches to send, and a folder for the files. */
#ifndef TESTS_UNIT_SINK_SINKS_H
#define TESTS_UNIT_SINK_SINKS_H

#include "core/buf.h"
#include "core/clock.h"
#include "core/err.h"
#include "sink/sink.h"

#include "unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Each sink can be left out of the build; its test then ends with 77, which means skipped. */
static inline bool has_sink(const char *scheme)
{
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        if (strcmp((*ops)->scheme, scheme) == 0)
            return true;
    print_message("skipped: this build has no sink %s:\n", scheme);
    return false;
}

static inline sl_sink *open_sink(const char *url, const char *worker)
{
    sl_sink *s = NULL;
    sl_err err = { 0 };
    sl_sink_conf conf = { .url = url, .worker = worker };
    if (sl_sink_open(&s, &conf, &err) != SL_OK)
        fail_msg("%s: %s", url, err.text);
    return s;
}

static inline void refuse_sink(const char *url, sl_rc rc, const char *text)
{
    sl_sink *s = NULL;
    sl_err err = { 0 };
    sl_sink_conf conf = { .url = url, .worker = "w" };
    sl_rc got = sl_sink_open(&s, &conf, &err);
    if (got != rc || !strstr(err.text, text))
        fail_msg("%s: %s: %s", url ? url : "(null)", sl_rc_name(got), err.text);
    assert_null(s);
}

/* Messages with the ids first, first + 1, ... and payloads of so many bytes, at least 2. */
static inline void fill_batch(sl_batch *b, int64_t first, size_t count, size_t payload_bytes)
{
    sl_batch_reset(b);
    for (size_t i = 0; i < count; i++) {
        char *payload = sl_arena_alloc(&b->arena, payload_bytes);
        memset(payload, 'x', payload_bytes);
        payload[0] = payload[payload_bytes - 1] = '"';
        sl_msg *m = sl_batch_add(b);
        m->id = first + (int64_t)i;
        m->attempt = 1;
        m->topic = SL_STR("t");
        m->key = SL_STR("k");
        m->type = SL_STR("");
        m->content_type = SL_STR("application/json");
        m->payload = (sl_str){ payload, payload_bytes };
    }
}

static inline void submit_all(sl_sink *s, sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        s->ops->submit(s, b, &b->msgs[i]);
}

/* Polls until every message has its verdict. */
static inline void poll_all(sl_sink *s, const sl_batch *b)
{
    int64_t until = sl_now_ns() + 30 * SL_SEC;
    while (b->settled < b->count && sl_now_ns() < until)
        s->ops->poll(s, 50 * SL_MS);
    assert_int_equal(b->settled, b->count);
}

static inline void expect_all(const sl_batch *b, sl_verdict v)
{
    for (size_t i = 0; i < b->count; i++) {
        assert_int_equal(b->msgs[i].verdict, v);
        assert_true((b->msgs[i].reason.p == NULL) == (v == SL_SENT));
    }
}

static inline void close_sink(sl_sink *s)
{
    s->ops->recall(s);
    s->ops->close(s);
}

/* ---- A folder for each test ---- */

static char folder[64];

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sluice-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* One of a few buffers: good for some more calls. */
static inline const char *in_folder(const char *before, const char *name)
{
    static char paths[8][256];
    static size_t next;
    char *path = paths[next++ % COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s%s/%s", before, folder, name);
    return path;
}

static inline void read_fd(int fd, sl_buf *out)
{
    ssize_t n;
    while ((n = read(fd, sl_buf_room(out, 65536), 65536)) > 0)
        out->n += (size_t)n;
    assert_true(n == 0);
    *sl_buf_room(out, 0) = '\0';
}

static inline sl_buf read_file(const char *path)
{
    sl_buf b = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    read_fd(fd, &b);
    close(fd);
    return b;
}

static inline off_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* Checks that the text is whole lines, and that each id from 0 on is there as often as it
 * should.
 */
static inline void expect_whole_lines(const sl_buf *text, size_t ids, unsigned times)
{
    unsigned *seen = calloc(ids, sizeof *seen);
    assert_non_null(seen);
    size_t lines = 0;
    const char *p = sl_buf_text(text);
    const char *end = p + text->n;
    for (const char *next; p < end; p = next + 1, lines++) {
        next = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(next);
        static const char head[] = "{\"id\":";
        static const char tail[] = ",\"epoch\":0}";
        assert_memory_equal(p, head, sizeof head - 1);
        assert_memory_equal(next - (sizeof tail - 1), tail, sizeof tail - 1);
        char *digits_end;
        unsigned long id = strtoul(p + sizeof head - 1, &digits_end, 10);
        assert_true(*digits_end == ',' && id < ids);
        assert_null(memmem(p + 1, (size_t)(next - p - 1), head, sizeof head - 1));
        seen[id]++;
    }
    assert_int_equal(lines, ids * times);
    for (size_t i = 0; i < ids; i++)
        assert_int_equal(seen[i], times);
    free(seen);
}

#endif
