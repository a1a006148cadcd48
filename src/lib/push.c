/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/push.h"

#include "core/arena.h"
#include "core/utf8.h"
#include "lib/conf.h"

/* One statement carries at most so much: enough to make round trips cheap, little enough to
 * keep neither side busy for long. */
enum { CHUNK_DRAFTS = 2000, CHUNK_BYTES = 16 << 20, KEY_MAX_BYTES = 512 };

/* The columns of a chunk, one array each. */
typedef struct chunk {
    size_t n;
    sl_str *topic, *key, *type, *payload, *content_type, *headers, *idempotency_key;
    int64_t *available_us;
} chunk;

static sl_str *strs(sl_arena *a, size_t n)
{
    return sl_arena_alloc(a, n * sizeof(sl_str));
}

static void chunk_init(chunk *c, sl_arena *a, size_t room)
{
    *c = (chunk){
        .topic = strs(a, room),
        .key = strs(a, room),
        .type = strs(a, room),
        .payload = strs(a, room),
        .content_type = strs(a, room),
        .headers = strs(a, room),
        .idempotency_key = strs(a, room),
        .available_us = sl_arena_alloc(a, room * sizeof(int64_t)),
    };
}

static void chunk_add(chunk *c, const sl_draft *d)
{
    size_t i = c->n++;
    c->topic[i] = sl_str_of(d->topic);
    c->key[i] = (sl_str){ d->key, d->key ? d->key_bytes : 0 };
    c->type[i] = sl_str_of(d->type);
    c->payload[i] = (sl_str){ d->payload ? d->payload : "", d->payload_bytes };
    c->content_type[i] = sl_str_of(d->content_type);
    c->headers[i] = sl_str_of(d->headers);
    c->idempotency_key[i] = sl_str_of(d->idempotency_key);
    c->available_us[i] = d->available_at_us;
}

static sl_rc check_text(sl_str s, const char *what, const char *who, sl_err *err)
{
    if (s.p && !sl_is_utf8(s))
        return sl_fail(err, SL_REFUSED, "%s: the %s is not UTF-8", who, what);
    return SL_OK;
}

static sl_rc check_texts(const sl_draft *d, const char *who, sl_err *err)
{
    const struct {
        sl_str s;
        const char *what;
    } texts[] = {
        { sl_str_of(d->topic), "topic" },
        { { d->key, d->key ? d->key_bytes : 0 }, "key" },
        { sl_str_of(d->type), "type" },
        { sl_str_of(d->content_type), "content type" },
        { sl_str_of(d->headers), "headers" },
        { sl_str_of(d->idempotency_key), "idempotency key" },
    };
    sl_rc rc = SL_OK;
    for (size_t t = 0; rc == SL_OK && t < sizeof texts / sizeof texts[0]; t++)
        rc = check_text(texts[t].s, texts[t].what, who, err);
    return rc;
}

/* What the database would refuse too, but not every one, and without saying which message it was. */
static sl_rc check_draft(const sl_draft *d, const char *who, sl_err *err)
{
    if (!d->topic || !*d->topic)
        return sl_fail(err, SL_REFUSED, "%s has no topic", who);
    if (d->key && d->key_bytes > KEY_MAX_BYTES)
        return sl_fail(err, SL_REFUSED, "%s: the key has %zu bytes, %d are allowed", who,
                       d->key_bytes, KEY_MAX_BYTES);
    if (d->key && memchr(d->key, '\0', d->key_bytes))
        return sl_fail(err, SL_REFUSED, "%s: the key holds a NUL byte", who);
    if (!d->payload && d->payload_bytes)
        return sl_fail(err, SL_REFUSED, "%s has a payload size but no payload", who);
    if (d->idempotency_key && !*d->idempotency_key)
        return sl_fail(err, SL_REFUSED,
                       "%s: the idempotency key is empty\nhint: leave it out if there is none",
                       who);
    return check_texts(d, who, err);
}

static sl_rc check_drafts(const sl_draft *drafts, size_t count, sl_err *err)
{
    sl_rc rc = SL_OK;
    char who[40] = "the message";
    for (size_t i = 0; rc == SL_OK && i < count; i++) {
        if (count > 1)
            snprintf(who, sizeof who, "message %zu", i);
        rc = check_draft(&drafts[i], who, err);
    }
    return rc;
}

static sl_rc insert(sl_db *db, const chunk *c, sl_pushed *out, sl_err *err)
{
    int64_t inserted;
    sl_val in[] = { sl_texts(c->topic, c->n),
                    sl_texts(c->key, c->n),
                    sl_texts(c->type, c->n),
                    sl_bytess(c->payload, c->n),
                    sl_texts(c->content_type, c->n),
                    sl_texts(c->headers, c->n),
                    sl_texts(c->idempotency_key, c->n),
                    sl_ints(c->available_us, c->n) };
    sl_rc rc = sl_db_run1(db, "push/insert", in, NULL, NULL, &inserted, err);
    if (rc == SL_OK) {
        out->inserted += (size_t)inserted;
        out->duplicates += c->n - (size_t)inserted;
    }
    return rc;
}

sl_rc sl_push_db(sl_db *db, const sl_draft *drafts, size_t count, sl_pushed *out, sl_err *err)
{
    sl_arena arena = { 0 };
    sl_pushed ignored;
    sl_pushed *sum = out ? out : &ignored;

    *sum = (sl_pushed){ 0 };
    sl_rc rc = check_drafts(drafts, count, err);
    for (size_t i = 0; rc == SL_OK && i < count;) {
        chunk c;
        size_t bytes = 0;
        sl_arena_reset(&arena);
        chunk_init(&c, &arena, count - i < CHUNK_DRAFTS ? count - i : CHUNK_DRAFTS);
        for (; i < count && c.n < CHUNK_DRAFTS && (c.n == 0 || bytes < CHUNK_BYTES); i++) {
            bytes += drafts[i].payload_bytes;
            chunk_add(&c, &drafts[i]);
        }
        rc = insert(db, &c, sum, err);
    }
    sl_arena_fini(&arena);
    return rc;
}

static sl_rc push_on(const char *dialect, void *native, const sl_conf *conf,
                     const sl_draft *drafts, size_t count, sl_pushed *out, sl_err *err)
{
    const sl_db_ops *ops = sl_db_named(dialect);
    if (!ops)
        return sl_fail(err, SL_OPERATOR, "this build of libsluice has no %s", dialect);
    sl_names names;
    sl_rc rc = conf ? sl_conf_names(&names, &conf->settings, err)
                    : sl_names_init(&names, "outbox", NULL, err);
    if (rc != SL_OK)
        return rc;
    sl_db *db;
    rc = ops->adopt(&db, native, &names, err);
    if (rc == SL_OK) {
        rc = sl_push_db(db, drafts, count, out, err);
        sl_db_close(db);
    }
    sl_names_fini(&names);
    return rc;
}

sl_rc sl_push_pg(struct pg_conn *conn, const sl_conf *conf, const sl_draft *drafts,
                 size_t count, sl_pushed *out, sl_err *err)
{
    return push_on("postgres", conn, conf, drafts, count, out, err);
}

sl_rc sl_push_sqlite(struct sqlite3 *db, const sl_conf *conf, const sl_draft *drafts,
                     size_t count, sl_pushed *out, sl_err *err)
{
    return push_on("sqlite", db, conf, drafts, count, out, err);
}
