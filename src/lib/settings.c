/* SPDX-License-Identifier: Apache-2.0 */
/* The table is the one place that knows a setting; a new one is a row here and a member of
 * sl_settings. */
#include "lib/settings.h"

#include "claim/claim.h"
#include "core/clock.h"
#include "db/names.h"
#include "lib/layout.h"
#include "lib/settings_routes.h"
#include "member/assign.h"
#include "sink/sink.h"

#include <assert.h>
#include <errno.h>

#define AT(member) offsetof(sl_settings, member)

const sl_opt sl_settings_table[] = {
    { "db", SL_OPT_TEXT, AT(db), "sqlite:sluice.db", 1, 0, SL_OPT_SECRET | SL_FOR_DB, "URL",
      "The database: sqlite:PATH, postgresql://... or any libpq conninfo string. Without it, "
      "DATABASE_URL is used." },
    { "table", SL_OPT_TEXT, AT(table), "outbox", 1, 0, SL_FOR_DB, "NAME",
      "The outbox table, NAME or SCHEMA.NAME. Side tables are named after it." },
    { "columns", SL_OPT_MAP, AT(columns), NULL, 0, 0, SL_FOR_DB, "OURS=THEIRS,...",
      "Other names for columns of the table, as "
      "entity_key=aggregate_id,attempts=retry_count." },
    { "layout", SL_OPT_CHOICE, AT(layout), "sluice", 0, 0, SL_FOR_DB, "sluice|debezium|rotated",
      "What the table is: Sluice's own; one for Debezium's outbox event router, whose "
      "inserts then become messages of a table beside it, NAME_sluice, with target and "
      "format as Debezium has them unless they are given (docs/debezium.md); or, on "
      "PostgreSQL and with strategy lanes, a ring of segments that are emptied as a whole, "
      "which is faster (docs/rotated.md). Nodes see for themselves that a table is rotated." },
    { "debezium", SL_OPT_MAP, AT(debezium), NULL, 0, 0, SL_FOR_DB, "NAME=VALUE,...",
      "With layout: debezium, options of the outbox event router by their own names, as "
      "route.by.field=kind. On a command line a comma inside a value is written \\,." },
    { "lanes", SL_OPT_INT, AT(lanes), "64", 1, 32768, SL_FOR_INIT | SL_FOR_RUN, "N",
      "How many hash buckets of keys the table has. Fixed when the table is made; a node that "
      "is "
      "told another number refuses to start." },
    { "inbox_table", SL_OPT_TEXT, AT(inbox_table), SL_INBOX_DEFAULT, 1, 0, SL_FOR_INIT, "NAME",
      "The table in which receivers note what they have handled, NAME or SCHEMA.NAME: made by "
      "`sluice init --inbox`, used by sl_inbox_pg and sl_inbox_sqlite." },
    { "connect_timeout", SL_OPT_TIME, AT(connect_timeout_ns), "10s", 100 * SL_MS, 3600 * SL_SEC,
      SL_FOR_DB, "TIME", "Give up connecting to the database after this time." },
    { "statement_timeout", SL_OPT_TIME, AT(statement_timeout_ns), "60s", 100 * SL_MS,
      86400 * SL_SEC, SL_FOR_DB, "TIME",
      "A statement without an answer for this long counts as a lost connection." },
    { "sink", SL_OPT_TEXT, AT(sink), NULL, 1, 0, SL_OPT_SECRET | SL_FOR_RUN, "URL",
      "Where messages go: kafka://HOST:PORT, file:PATH, stdout: or null:. With several, see "
      "routes." },
    { "target", SL_OPT_TEXT, AT(target), NULL, 1, 0, SL_FOR_RUN, "TEXT",
      "Kafka's topic for a message: a name, or one with {topic} and {type} of the message in "
      "it. Without it, the message's topic." },
    { "format", SL_OPT_TEXT, AT(format), NULL, 1, 0, SL_FOR_RUN, "NAME",
      "What Kafka gets of a message: raw (the payload, and headers), plain (only the "
      "producer's headers), cloudevents, cloudevents-json, json or protobuf. Without it, "
      "raw." },
    { "source", SL_OPT_TEXT, AT(source), NULL, 1, 0, SL_FOR_RUN, "URI",
      "The attribute `source` of CloudEvents. Without it, sluice." },
    { "tombstones", SL_OPT_BOOL, AT(tombstones), "false", 0, 0, SL_FOR_RUN, NULL,
      "A message with an empty payload goes to Kafka without a value, in every format: a "
      "tombstone, by which a compacted topic forgets the key." },
    { "kafka", SL_OPT_MAP, AT(kafka), NULL, 0, 0, SL_OPT_SECRET | SL_FOR_RUN, "NAME=VALUE,...",
      "Properties of librdkafka by their own names, as linger.ms=5,compression.type=zstd. A "
      "password may be file:PATH or env:NAME. A route has its own beside them." },
    { "strategy", SL_OPT_TEXT, AT(strategy), "lanes", 1, 0, SL_FOR_RUN | SL_FOR_PULL, "NAME",
      "How workers share the table: lanes, guard or advisory (messages of one key in order, "
      "one at "
      "a time) or skip-locked (any worker takes any message; no order). A pull uses guard "
      "unless "
      "told otherwise." },
    { "assign", SL_OPT_CHOICE, AT(assign), "ring", 0, 0, SL_FOR_RUN,
      "ring|claim|static|birth-order",
      "Strategy lanes: which node wishes which lanes: by a consistent hash, fair shares of "
      "what is "
      "free, as configured, or by order of start." },
    { "static_lanes", SL_OPT_TEXT, AT(static_lanes), NULL, 1, 0, SL_FOR_RUN, "LIST",
      "With assign: static, the lanes of this node, as 0-15,32." },
    { "hold", SL_OPT_CHOICE, AT(hold), "lease", 0, 0, SL_FOR_RUN, "lease|transaction",
      "Strategy skip-locked: what holds a claim until the verdict: a lease with an epoch, or "
      "an "
      "open transaction, which is faster and must be short." },
    { "workers", SL_OPT_INT, AT(workers), "4", 1, 256, SL_OPT_RELOAD | SL_FOR_RUN, "N",
      "Worker threads, each with a database connection of its own." },
    { "batch", SL_OPT_INT, AT(batch), "500", 1, 10000, SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL,
      "N",
      "Messages taken in one claim. Larger is faster; a crash repeats at most this many." },
    { "batch_bytes", SL_OPT_SIZE, AT(batch_bytes), "8M", 1, INT64_C(1) << 40,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "SIZE",
      "Payload bytes taken in one claim; one larger message is still taken, alone." },
    { "lease", SL_OPT_TIME, AT(lease_ns), "30s", SL_SEC, 86400 * SL_SEC,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "TIME",
      "How long a claim lasts without renewal. After a crash, others wait this long." },
    { "wake", SL_OPT_CHOICE, AT(wake), "poll", 0, 0, SL_FOR_RUN | SL_FOR_PULL, "poll|notify",
      "How an idle node learns of new messages: it looks, with growing pauses up to `poll`; or "
      "whoever commits one wakes it, and it looks each `poll` all the same." },
    { "poll", SL_OPT_TIME, AT(poll_ns), "1s", SL_MS, 3600 * SL_SEC,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "TIME",
      "How long an idle node sleeps at most before one of its workers looks again." },
    { "retry_base", SL_OPT_TIME, AT(retry_base_ns), "1s", SL_MS, 86400 * SL_SEC,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "TIME",
      "Delay after the first failed delivery of a message; it doubles each time, with "
      "jitter." },
    { "retry_max", SL_OPT_TIME, AT(retry_max_ns), "5m", SL_MS, 30 * 86400 * SL_SEC,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "TIME",
      "The longest delay between two deliveries of a message." },
    { "max_attempts", SL_OPT_INT, AT(max_attempts), "20", 1, 1000000, SL_FOR_RUN, "N",
      "How often a message is tried before on_failure decides. An outage of the whole sink "
      "uses "
      "up nobody's attempts." },
    { "on_failure", SL_OPT_CHOICE, AT(on_failure), "block", 0, 0, SL_FOR_RUN, "block|park|skip",
      "When max_attempts are used up: keep trying at the longest delay; stop, and wait for an "
      "operator (sluice keys); or make a dead letter of the message (sluice dead). Its key "
      "waits "
      "with the first two, and goes on with the last. A message that the sink refuses for good "
      "is "
      "parked, or with skip a dead letter, at once." },
    { "delivery", SL_OPT_CHOICE, AT(delivery), "at-least-once", 0, 0, SL_FOR_RUN,
      "at-least-once|at-most-once|exactly-once",
      "What a crash in the middle of a delivery means: the message is sent again; or never, "
      "and "
      "is listed (sluice dead list --unknown) if it is not known to be sent; or, into Kafka, "
      "that is found out, for consumers with isolation.level read_committed." },
    { "fence", SL_OPT_CHOICE, AT(fence), "none", 0, 0, SL_FOR_RUN, "none|kafka",
      "Strategy lanes: into Kafka in transactions, so that the brokers refuse what a node "
      "sends late, when others have taken over from it. delivery: exactly-once has it." },
    { "idempotency_keep", SL_OPT_TIME, AT(idempotency_keep_ns), "7d", SL_SEC,
      3650 * 86400 * SL_SEC, SL_OPT_RELOAD | SL_FOR_RUN, "TIME",
      "How long an idempotency key is kept after its message is gone from the table, and is no "
      "dead letter either. Until then another message with it is left out." },
    { "journal", SL_OPT_TEXT, AT(journal), NULL, 1, 0, SL_FOR_RUN, "PATH",
      "With at-most-once: a file of this node on a local disk that knows what was being sent "
      "when "
      "the node crashed, so that it can finish or report it. Wants a node name that stays." },
    { "retention", SL_OPT_TIME, AT(retention_ns), "0s", 0, 10 * 365 * 86400 * SL_SEC,
      SL_OPT_RELOAD | SL_FOR_RUN | SL_FOR_PULL, "TIME",
      "How long delivered messages are kept, for `sluice resend`; 0s: not at all. The same for "
      "all nodes." },
    { "unordered_delay", SL_OPT_BOOL, AT(unordered_delay), "false", 0, 0,
      SL_FOR_RUN | SL_FOR_PULL, NULL,
      "Later messages of a key pass one whose available_at is in the future and that was never "
      "tried; it comes when it is due. Without this its key waits for it." },
    { "node", SL_OPT_TEXT, AT(node), NULL, 1, 0, SL_FOR_RUN | SL_FOR_PULL, "NAME",
      "This node's name in logs and leases; host name and process id by default." },
    { "drain", SL_OPT_BOOL, AT(drain), "false", 0, 0, SL_FOR_RUN, NULL,
      "End with status 0 as soon as nothing that could be delivered now is left." },
    { "log_format", SL_OPT_CHOICE, AT(log_format), "logfmt", 0, 0, SL_OPT_RELOAD | SL_FOR_LOG,
      "logfmt|json", "Log lines on standard error as key=value pairs or as JSON objects." },
    { "log_level", SL_OPT_CHOICE, AT(log_level), "info", 0, 0, SL_OPT_RELOAD | SL_FOR_LOG,
      "error|warn|info|debug", "Log this level and what is worse." },
    { .name = NULL },
};

#define COUNT (sizeof sl_settings_table / sizeof sl_settings_table[0] - 1)
_Static_assert(COUNT <= SL_SETTINGS_MAX, "sl_settings.from has room for every setting");

enum { FILE_MAX_BYTES = 1 << 20 };

void sl_settings_init(sl_settings *s)
{
    *s = (sl_settings){ 0 };
    sl_opt_defaults(sl_settings_table, s);
}

void sl_settings_fini(sl_settings *s)
{
    sl_opt_free(sl_settings_table, s);
    sl_routes_clear(s);
}

const char *sl_from_name(sl_from from)
{
    static const char *const names[] = {
        [SL_FROM_DEFAULT] = "default", [SL_FROM_DATABASE_URL] = "DATABASE_URL",
        [SL_FROM_FILE] = "file",       [SL_FROM_ENV] = "environment",
        [SL_FROM_FLAG] = "flag",
    };
    return names[from];
}

sl_rc sl_settings_put(sl_settings *s, const sl_opt *o, const char *value, sl_from from,
                      sl_err *err)
{
    assert(o >= sl_settings_table && o < sl_settings_table + COUNT);
    sl_rc rc = sl_opt_set(o, s, value, err);
    if (rc == SL_OK)
        s->from[o - sl_settings_table] = (uint8_t)from;
    return rc;
}

bool sl_settings_given(const sl_settings *s, const char *name)
{
    const sl_opt *o = sl_opt_find(sl_settings_table, name);
    assert(o);
    return s->from[o - sl_settings_table] != SL_FROM_DEFAULT;
}

sl_rc sl_settings_set(sl_settings *s, const char *name, const char *value, sl_err *err)
{
    const sl_opt *o = sl_opt_find(sl_settings_table, name);
    if (o)
        return sl_settings_put(s, o, value, SL_FROM_FLAG, err);

    const char *nearest = sl_opt_nearest(sl_settings_table, name);
    if (nearest)
        return sl_fail(err, SL_REFUSED, "unknown setting '%.80s'\nhint: did you mean %s?", name,
                       nearest);
    return sl_fail(err, SL_REFUSED, "unknown setting '%.80s'", name);
}

sl_rc sl_settings_load_database_url(sl_settings *s, sl_err *err)
{
    const char *url = getenv("DATABASE_URL");
    if (!url || !*url)
        return SL_OK;
    return sl_settings_put(s, sl_opt_find(sl_settings_table, "db"), url, SL_FROM_DATABASE_URL,
                           err);
}

static sl_rc read_all(FILE *f, const char *path, sl_buf *out, sl_err *err)
{
    size_t n;

    do {
        n = fread(sl_buf_room(out, BUFSIZ), 1, BUFSIZ, f);
        sl_buf_took(out, n);
    } while (n > 0 && out->n <= FILE_MAX_BYTES);
    if (ferror(f))
        return sl_fail(err, SL_OPERATOR, "cannot read '%s': %s", path, strerror(errno));
    if (out->n > FILE_MAX_BYTES)
        return sl_fail(err, SL_OPERATOR, "'%s' is larger than %d bytes", path, FILE_MAX_BYTES);
    return SL_OK;
}

sl_rc sl_settings_read(const char *path, sl_buf *out, sl_err *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return sl_fail(err, SL_OPERATOR, "cannot open '%s': %s", path, strerror(errno));
    sl_rc rc = read_all(f, path, out, err);
    fclose(f);
    return rc;
}

static sl_rc check_strategy(const sl_settings *s, sl_err *err)
{
    if (sl_claim_named(s->strategy))
        return SL_OK;
    sl_buf names = { 0 };
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++)
        sl_buf_printf(&names, "%s%s", names.n ? ", " : "", (*c)->name);
    sl_rc rc = sl_fail(err, SL_REFUSED, "unknown strategy '%.80s'\nhint: there are: %s",
                       s->strategy, sl_buf_text(&names));
    sl_buf_fini(&names);
    return rc;
}

static sl_rc check_assign(const sl_settings *s, sl_err *err)
{
    if (s->assign == SL_ASSIGN_STATIC && !s->static_lanes)
        return sl_fail(err, SL_REFUSED,
                       "assign is static, but static_lanes does not say which lanes\n"
                       "hint: --static-lanes 0-15");
    if (s->assign != SL_ASSIGN_STATIC && s->static_lanes)
        return sl_fail(err, SL_REFUSED,
                       "static_lanes is for assign: static only\nhint: --assign static");
    return SL_OK;
}

bool sl_settings_consume(const sl_settings *s)
{
    bool once = s->route_count == 0 && s->delivery == SL_DELIVERY_AT_MOST_ONCE;
    for (size_t i = 0; i < s->route_count; i++)
        once |= sl_route_of(s, i).delivery == SL_DELIVERY_AT_MOST_ONCE;
    return once;
}

bool sl_settings_exact(const sl_settings *s)
{
    bool exact = s->route_count == 0 && s->delivery == SL_DELIVERY_EXACTLY_ONCE;
    for (size_t i = 0; i < s->route_count; i++)
        exact |= sl_route_of(s, i).delivery == SL_DELIVERY_EXACTLY_ONCE;
    return exact;
}

bool sl_settings_fence(const sl_settings *s)
{
    bool fence = false;
    for (size_t i = 0; i < s->route_count; i++) {
        sl_route_conf c = sl_route_of(s, i);
        fence |= sl_route_fenced(&c);
    }
    sl_route_conf all = { .sink = s->sink, .delivery = s->delivery, .fence = s->fence };
    return s->route_count ? fence : sl_route_fenced(&all);
}

/* The argument of docs/kafka.md is about lanes: who takes over has to know from whom. */
static sl_rc check_fence(const sl_settings *s, sl_err *err)
{
    sl_route_conf all = { .sink = s->sink, .delivery = s->delivery, .fence = s->fence };
    sl_rc rc =
        s->route_count || !s->sink ? SL_OK : sl_route_check_fence(&all, s->fence != 0, "", err);
    if (rc != SL_OK || !sl_settings_fence(s) || !strcmp(s->strategy, "lanes"))
        return rc;
    return sl_fail(err, SL_REFUSED,
                   "%s needs strategy lanes, not %s: only a lane tells from whom it is taken "
                   "over\nhint: --strategy lanes",
                   sl_settings_exact(s) ? "delivery: exactly-once" : "fence: kafka",
                   s->strategy);
}

static sl_rc check_journal(const sl_settings *s, sl_err *err)
{
    if (s->journal && !sl_settings_consume(s))
        return sl_fail(
            err, SL_REFUSED,
            "journal is for delivery: at-most-once only\nhint: nothing is lost at least "
            "once; leave it out");
    if (s->journal && !s->node)
        return sl_fail(
            err, SL_REFUSED,
            "journal needs a node name that is the same at the next start\nhint: --node NAME");
    return SL_OK;
}

sl_rc sl_settings_check(const sl_settings *s, sl_err *err)
{
    if (s->retry_base_ns > s->retry_max_ns)
        return sl_fail(
            err, SL_REFUSED,
            "retry_base is longer than retry_max\n"
            "hint: retry_max is the longest of the delays that grow from retry_base");
    sl_names names;
    const sl_sink_ops *ignored;
    sl_rc named = sl_layout_names(&names, s, err);
    if (named != SL_OK)
        return named;
    named = sl_names_inbox(&names, s->inbox_table, err);
    sl_names_fini(&names);
    if (named != SL_OK)
        return named;
    sl_rc rc = s->sink ? sl_sink_find(&ignored, s->sink, err) : SL_OK;
    if (rc == SL_OK)
        rc = check_strategy(s, err);
    if (rc == SL_OK)
        rc = sl_routes_check(s, err);
    if (rc == SL_OK)
        rc = check_fence(s, err);
    if (rc == SL_OK)
        rc = check_journal(s, err);
    return rc == SL_OK ? check_assign(s, err) : rc;
}
