/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_conf.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#define ANSWER_MIN_NS SL_SEC
#define ANSWER_MAX_NS (20 * SL_SEC)

enum { ERRSTR_BYTES = 512, SECRET_MAX_BYTES = 64 * 1024, NAME_MAX_BYTES = 249 };

/* ---- Properties that are not the user's ---- */

#define GIVES_UP "what it gives up by itself is overtaken by those behind it"
#define YES "true", "t", "1"
#define NO "false", "f", "0"

/* Whatever it is set to, only this value keeps the promise. */
static const struct fixed {
    const char *name;
    const char *values[3]; /* that are as good as not saying it */
    const char *why;
} fixed[] = {
    { "enable.idempotence", { YES }, "without it a retry changes the order of messages" },
    { "acks", { "all", "-1" }, "a message counts as sent when all replicas in sync have it" },
    { "request.required.acks",
      { "all", "-1" },
      "a message counts as sent when all replicas in sync have it" },
    { "enable.gapless.guarantee", { YES }, "without it a failed message is overtaken" },
    { "retries", { "2147483647" }, GIVES_UP },
    { "message.send.max.retries", { "2147483647" }, GIVES_UP },
    { "queuing.strategy", { "fifo" }, "messages of a key are sent in their order" },
    { "delivery.report.only.error",
      { NO },
      "what was delivered could not be taken from the table" },
    { "log.queue", { NO }, "nobody reads that queue: it would grow for ever" },
    { "bootstrap.servers",
      { NULL },
      "the brokers stand in the URL, kafka://HOST:PORT,HOST:PORT" },
    { "metadata.broker.list",
      { NULL },
      "the brokers stand in the URL, kafka://HOST:PORT,HOST:PORT" },
    { "transactional.id", { NULL }, "it is part of the fence, and chosen by it" },
};

static const char *const secrets[] = { "sasl.password", "ssl.key.password", "ssl.key.pem",
                                       "ssl.keystore.password",
                                       "sasl.oauthbearer.client.secret" };

static const struct partitioner {
    const char *name;
    sl_kafka_partitioner fn;
} partitioners[] = {
    { "murmur2_random", rd_kafka_msg_partitioner_murmur2 },
    { "murmur2", rd_kafka_msg_partitioner_murmur2 },
    { "consistent_random", rd_kafka_msg_partitioner_consistent },
    { "consistent", rd_kafka_msg_partitioner_consistent },
    { "fnv1a_random", rd_kafka_msg_partitioner_fnv1a },
    { "fnv1a", rd_kafka_msg_partitioner_fnv1a },
};

static bool is_secret(const char *name)
{
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (!strcmp(secrets[i], name))
            return true;
    return false;
}

static sl_rc check_fixed(const char *name, const char *value, sl_err *err)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strcmp(fixed[i].name, name) != 0)
            continue;
        for (size_t k = 0; k < 3 && fixed[i].values[k]; k++)
            if (!strcasecmp(fixed[i].values[k], value))
                return SL_OK;
        return sl_fail(err, SL_REFUSED,
                       "sink kafka: %s cannot be %.40s: %s\nhint: leave it out", name,
                       fixed[i].values[0] ? value : "set", fixed[i].why);
    }
    return SL_OK;
}

/* ---- Secrets ---- */

static sl_rc read_secret_file(const char *name, const char *path, sl_buf *out, sl_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, sl_buf_room(out, SECRET_MAX_BYTES), SECRET_MAX_BYTES);
    int e = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return sl_fail(err, SL_OPERATOR, "sink kafka: cannot read %s from \"%s\": %s", name,
                       path, strerror(e));
    sl_buf_took(out, (size_t)n);
    while (out->n > 0 && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
        out->p[--out->n] = '\0';
    return SL_OK;
}

/* file:PATH and env:NAME stand for what is there. */
static sl_rc resolve(const char *name, const char *value, sl_buf *out, sl_err *err)
{
    if (is_secret(name) && !strncmp(value, "file:", 5))
        return read_secret_file(name, value + 5, out, err);
    if (is_secret(name) && !strncmp(value, "env:", 4)) {
        const char *found = getenv(value + 4);
        if (!found)
            return sl_fail(err, SL_REFUSED,
                           "sink kafka: %s is to come from the environment, and %s is not set",
                           name, value + 4);
        value = found;
    }
    sl_buf_puts(out, value);
    return SL_OK;
}

/* ---- One property ---- */

static sl_rc set_raw(sl_kafka_conf *c, const char *name, const char *value, sl_err *err)
{
    char why[ERRSTR_BYTES] = "";
    rd_kafka_conf_res_t res = rd_kafka_conf_set(c->rk, name, value, why, sizeof why);
    if (res == RD_KAFKA_CONF_OK)
        return SL_OK;
    if (res == RD_KAFKA_CONF_UNKNOWN)
        return sl_fail(
            err, SL_REFUSED,
            "sink kafka: no property \"%.80s\"\nhint: librdkafka's CONFIGURATION.md lists "
            "them; ours are format, target and source",
            name);
    if (is_secret(name)) /* its text repeats the value */
        return sl_fail(err, SL_REFUSED, "sink kafka: the value of %s is refused", name);
    return sl_fail(err, SL_REFUSED, "sink kafka: %s: %s", name,
                   why); /* which may call it otherwise */
}

static sl_rc set_partitioner(sl_kafka_conf *c, const char *value, sl_err *err)
{
    c->partitioner = NULL;
    for (size_t i = 0; i < sizeof partitioners / sizeof partitioners[0]; i++)
        if (!strcmp(partitioners[i].name, value))
            c->partitioner = partitioners[i].fn;
    if (c->partitioner)
        return SL_OK;
    return sl_fail(
        err, SL_REFUSED,
        "sink kafka: no partitioner \"%.40s\"\nhint: murmur2_random (as Java's), murmur2, "
        "consistent_random, consistent, fnv1a_random or fnv1a: a key must stay in its place",
        value);
}

static sl_rc set_timeout(sl_kafka_conf *c, const char *name, const char *value, sl_err *err)
{
    char *end;
    long long ms = strtoll(value, &end, 10);
    if (*value && !*end && ms >= 100 && ms <= 86400000) {
        c->answer_ns = ms * SL_MS;
        return SL_OK;
    }
    return sl_fail(err, SL_REFUSED,
                   "sink kafka: %s is \"%.40s\"\nhint: milliseconds, from 100 to 86400000",
                   name, value);
}

/* librdkafka takes topic.acks for acks: what is checked is what it means. */
static const char *meant_by(const char *name)
{
    bool of_its_own = !strncmp(name, "topic.metadata.", 15) || !strcmp(name, "topic.blacklist");
    return !strncmp(name, "topic.", 6) && !of_its_own ? name + 6 : name;
}

static sl_rc set_prop(sl_kafka_conf *c, const char *name, const char *value, sl_err *err)
{
    sl_buf text = { 0 };
    name = meant_by(name);
    sl_rc rc = check_fixed(name, value, err);
    if (rc != SL_OK)
        return rc;
    if (!strcmp(name, "partitioner"))
        return set_partitioner(c, value, err);
    if (!strcmp(name, "message.timeout.ms") || !strcmp(name, "delivery.timeout.ms"))
        return set_timeout(c, name, value, err);
    rc = resolve(name, value, &text, err);
    if (rc == SL_OK)
        rc = set_raw(c, name, sl_buf_text(&text), err);
    if (text.p)
        explicit_bzero(text.p, text.cap);
    sl_buf_fini(&text);
    return rc;
}

static void set_text(char **member, const char *value)
{
    free(*member);
    *member = sl_strdup(value);
}

/* ---- The URL ---- */

static int hex_of(char c)
{
    const char *at = c ? strchr("0123456789abcdef", c | 0x20) : NULL;
    return at ? (int)(at - "0123456789abcdef") : -1;
}

static void unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        int high = *p == '%' ? hex_of(p[1]) : -1;
        int low = high >= 0 ? hex_of(p[2]) : -1;
        *to++ = low >= 0 ? (char)(high * 16 + low) : *p;
        p += low >= 0 ? 2 : 0;
    }
    *to = '\0';
}

static sl_rc set_from_url(sl_kafka_conf *c, char *pair, sl_err *err)
{
    char *value = strchr(pair, '=');
    if (!value) /* not repeated: it may be the rest of a password */
        return sl_fail(err, SL_REFUSED,
                       "sink kafka: a property in the URL has no value\nhint: ?NAME=VALUE&..., "
                       "with an & in a value as %%26");
    *value++ = '\0';
    unescape(pair);
    unescape(value);
    if (!strcmp(pair, "format"))
        set_text(&c->format, value);
    else if (!strcmp(pair, "source"))
        set_text(&c->source, value);
    else if (!strcmp(pair, "target"))
        set_text(&c->target, value);
    else if (!strcmp(pair, "positions"))
        set_text(&c->positions, value);
    else
        return set_prop(c, pair, value, err);
    return SL_OK;
}

/* Behind a secret, what is wrong may be the rest of it. */
static sl_rc read_query(sl_kafka_conf *c, char *query, sl_err *err)
{
    char *rest = NULL;
    bool behind = false;
    sl_rc rc = SL_OK;
    for (char *pair = strtok_r(query, "&", &rest); pair && rc == SL_OK;
         pair = strtok_r(NULL, "&", &rest)) {
        rc = set_from_url(c, pair, err);
        if (rc != SL_OK && behind)
            return sl_fail(err, rc,
                           "sink kafka: a property in the URL, behind a secret, is refused\n"
                           "hint: an & in a value is written %%26");
        behind |= is_secret(meant_by(pair)); /* which ends at its name by now */
    }
    return rc;
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool is_broker(const char *text, size_t n)
{
    const char *end = text + n;
    const char *close = *text == '[' ? memchr(text, ']', n) : NULL;
    const char *colon =
        memchr(close ? close : text, ':', (size_t)(end - (close ? close : text)));
    const char *host_end = colon ? colon : end;
    long port = 0;
    if (host_end == text || (*text == '[' && (!close || close + 1 != host_end)))
        return false;
    for (const char *p = text; p < host_end; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-[]:%", *p))
            return false;
    for (const char *p = colon ? colon + 1 : end; p < end; p++)
        if (!isdigit((unsigned char)*p) || (port = port * 10 + (*p - '0')) > 65535)
            return false;
    return !colon || port > 0;
}

static sl_rc check_brokers(const char *text, sl_err *err)
{
    if (strchr(text, '@'))
        return sl_fail(err, SL_REFUSED,
                       "sink kafka: a name and password cannot stand in the URL\nhint: kafka: "
                       "{sasl.username: ..., sasl.password: \"file:PATH\"}");
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (n == 0 || !is_broker(p, n))
            return sl_fail(err, SL_REFUSED,
                           "sink kafka: %s in the URL\nhint: kafka://HOST:9092,HOST:9092",
                           *text ? "not a broker" : "no broker");
        p += n;
        if (!*p)
            return SL_OK;
    }
}

static sl_rc read_url(sl_kafka_conf *c, const char *url, sl_err *err)
{
    const char *rest = strchr(url, ':') + 1;
    if (strncmp(rest, "//", 2) != 0)
        return sl_fail(err, SL_REFUSED,
                       "sink kafka: no broker in the URL\nhint: kafka://HOST:9092");
    char *text = sl_strdup(rest + 2);
    char *query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    char *path = strchr(text, '/');
    if (path)
        *path++ = '\0';
    sl_rc rc = check_brokers(text, err);
    if (rc == SL_OK && path && *path) {
        unescape(path);
        set_text(&c->target, path);
    }
    if (rc == SL_OK && query)
        rc = read_query(c, query, err);
    set_text(&c->brokers, text);
    free(text);
    return rc;
}

/* ---- The target ---- */

bool sl_kafka_is_name(sl_str s)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (s.n == 0 || s.n > NAME_MAX_BYTES || sl_str_eq(s, SL_STR(".")) ||
        sl_str_eq(s, SL_STR("..")))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!s.p[i] || !strchr(good, s.p[i]))
            return false;
    return true;
}

/* What no message could go to is said now, rather than of each of them. */
static sl_rc check_target(const char *target, sl_err *err)
{
    sl_buf name = { 0 };
    for (const char *p = target; *p; p++) {
        size_t skip = !strncmp(p, "{topic}", 7) ? 7 : !strncmp(p, "{type}", 6) ? 6 : 0;
        sl_buf_putc(&name, skip ? 'x' : *p);
        p += skip ? skip - 1 : 0;
    }
    bool good = sl_kafka_is_name((sl_str){ name.p, name.n });
    sl_buf_fini(&name);
    if (good)
        return SL_OK;
    return sl_fail(
        err, SL_REFUSED,
        "sink kafka: target \"%.80s\" is no name for a topic\nhint: letters, digits, "
        "dots, dashes and underscores, and {topic} or {type} of the message",
        target);
}

/* ---- As a whole ---- */

/* What follows from the promises, and what suits a batch that is handed over at once. */
static sl_rc set_ours(sl_kafka_conf *c, sl_err *err)
{
    static const char *const ours[][2] = {
        { "client.id", "sluice" },
        { "enable.idempotence", "true" },
        { "enable.gapless.guarantee", "true" },
        { "message.timeout.ms", "0" }, /* either all that is under way fails, or nothing */
        { "linger.ms", "0" },
        { "socket.keepalive.enable", "true" },
        { "socket.nagle.disable", "true" },
        { "log.connection.close", "false" },
    };
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < sizeof ours / sizeof ours[0]; i++)
        rc = set_raw(c, ours[i][0], ours[i][1], err);
    return rc;
}

static sl_rc set_theirs(sl_kafka_conf *c, const sl_sink_conf *from, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; rc == SL_OK && from->props[k] && i < from->props[k]->count; i++)
            rc = set_prop(c, from->props[k]->names[i], from->props[k]->values[i], err);
    return rc;
}

static int64_t answer_of(const sl_sink_conf *from)
{
    int64_t ns = from->answer_ns ? from->answer_ns : ANSWER_MAX_NS;
    ns = ns < ANSWER_MAX_NS ? ns : ANSWER_MAX_NS;
    return ns > ANSWER_MIN_NS ? ns : ANSWER_MIN_NS;
}

sl_rc sl_kafka_conf_read(sl_kafka_conf *c, const sl_sink_conf *from, sl_err *err)
{
    *c = (sl_kafka_conf){ .rk = rd_kafka_conf_new(),
                          .partitioner = rd_kafka_msg_partitioner_murmur2,
                          .created_time = from->created_time,
                          .answer_ns = answer_of(from) };
    if (from->format)
        set_text(&c->format, from->format);
    if (from->source)
        set_text(&c->source, from->source);
    if (from->target)
        set_text(&c->target, from->target);
    if (from->fence)
        set_text(&c->fence, from->fence);
    c->exact = from->fence && from->exact;
    set_text(&c->positions, "sluice-positions");
    sl_rc rc = set_ours(c, err);
    if (rc == SL_OK)
        rc = set_theirs(c, from, err);
    if (rc == SL_OK)
        rc = read_url(c, from->url, err);
    if (rc == SL_OK)
        rc = set_raw(c, "bootstrap.servers", c->brokers, err);
    if (rc == SL_OK && !c->target)
        set_text(&c->target, "{topic}");
    if (rc == SL_OK && c->exact && rd_kafka_version() < 0x02000000)
        rc = sl_fail(err, SL_REFUSED,
                     "sink kafka: exactly-once needs librdkafka 2.0 or newer, this is %s",
                     rd_kafka_version_str());
    if (rc == SL_OK)
        rc = check_target(c->target, err);
    if (rc != SL_OK)
        sl_kafka_conf_fini(c);
    return rc;
}

void sl_kafka_conf_fini(sl_kafka_conf *c)
{
    if (c->rk)
        rd_kafka_conf_destroy(c->rk);
    free(c->brokers);
    free(c->target);
    free(c->format);
    free(c->source);
    free(c->fence);
    free(c->positions);
    *c = (sl_kafka_conf){ 0 };
}
