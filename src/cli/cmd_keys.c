/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice keys`: what is wanted, whether it may be done, and what became of it. How it is done is in cli/keys.h, how it
 * looks in cli/keys_print.h. */
#include "cli/ask.h"
#include "cli/keys.h"
#include "cli/keys_print.h"
#include "cli/open.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/utf8.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 100000, KEY_BYTES = 512, NAMED = 10 };
#define AGE_MAX_NS (INT64_C(100) * 365 * 86400 * SL_SEC)
#define WAIT_DEFAULT_NS (10 * SL_SEC)

typedef struct keys_flags {
    sl_opt_list keys;
    char *topic, *reason;
    int64_t message, older_ns, limit, wait_ns; /* 0: not given */
    bool blocked, parked, all, json, yes, dry_run;
} keys_flags;

#define AT(member) offsetof(keys_flags, member)

static const sl_opt flags[] = {
    { "key", SL_OPT_LIST, AT(keys), NULL, 0, 0, SL_OPT_CLI_ONLY, "K",
      "Only this key; may be given several times." },
    { "message", SL_OPT_INT, AT(message), NULL, 1, INT64_MAX, SL_OPT_CLI_ONLY, "ID",
      "With resume and skip-head: the message with this id, if it is parked alone, or else the "
      "key whose first message it is." },
    { "topic", SL_OPT_TEXT, AT(topic), NULL, 0, 0, SL_OPT_CLI_ONLY, "T",
      "Only keys whose first message has this topic; with a * at the end, one that begins "
      "so." },
    { "blocked", SL_OPT_BOOL, AT(blocked), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Only keys that wait for the retry or the time of their first message." },
    { "parked", SL_OPT_BOOL, AT(parked), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Only keys and messages that wait for an operator." },
    { "older_than", SL_OPT_TIME, AT(older_ns), NULL, SL_MS, AGE_MAX_NS, SL_OPT_CLI_ONLY, "TIME",
      "Only keys that have waited longer than this, on the database's clock." },
    { "all", SL_OPT_BOOL, AT(all), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "All keys that are blocked, with retry, or parked, with resume." },
    { "limit", SL_OPT_INT, AT(limit), NULL, 1, LIMIT_MAX, SL_OPT_CLI_ONLY, "N",
      "With list: show no more than the first N, 100 if it is not given." },
    { "json", SL_OPT_BOOL, AT(json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With list: print one JSON object; its members are documented in sluice(1) and stay." },
    { "reason", SL_OPT_TEXT, AT(reason), NULL, 0, 0, SL_OPT_CLI_ONLY, "TEXT",
      "With park: why, for those who see it in the list." },
    { "wait", SL_OPT_TIME, AT(wait_ns), NULL, SL_MS, 86400 * SL_SEC, SL_OPT_CLI_ONLY, "TIME",
      "With skip-head: wait this long for whoever may have the message in flight, 10s if it is "
      "not given." },
    { "yes", SL_OPT_BOOL, AT(yes), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With all but list: do not ask." },
    { "dry_run", SL_OPT_BOOL, AT(dry_run), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "With all but list: only say what would be done." },
    { .name = NULL },
};

typedef enum verb { LIST, RETRY, PARK, RESUME, SKIP_HEAD, VERBS } verb;

static const struct {
    const char *name, *done;
} verbs[] = {
    [LIST] = { "list", "" },
    [RETRY] = { "retry", "retried" },
    [PARK] = { "park", "parked" },
    [RESUME] = { "resume", "resumed" },
    [SKIP_HEAD] = { "skip-head", "skipped" },
};

typedef struct work {
    const sl_cli *cli;
    sl_cli_db *d;
    verb verb;
    sl_keys_filter filter; /* without a key */
    sl_key_refs refs;
    size_t scheduled; /* keys that are left alone */
    size_t missing;   /* of those that were named */
    sl_progress progress;
} work;

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- list ---- */

static sl_rc list(work *w, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    sl_keys_filter f = w->filter;
    if (own->keys.count)
        f.key = sl_str_of(own->keys.v[0]);
    sl_keys_page p = { .table = w->cli->settings.table,
                       .filtered =
                           f.key.p || f.topic.p || f.prefix.p || f.state || f.older_us };
    sl_rc rc = sl_keys_count(&p.counts, w->d->db, &f, err);
    sl_keys_page_begin(&p, own->json);
    if (rc == SL_OK)
        rc = sl_keys_list(w->d->db, &f, own->limit ? own->limit : LIMIT_DEFAULT,
                          sl_keys_page_row, &p, err);
    if (rc == SL_OK)
        sl_keys_page_print(&p, stdout);
    sl_keys_page_fini(&p);
    return rc;
}

/* ---- What is to be moved ---- */

static void note_missing(work *w, sl_str key)
{
    sl_buf name = { 0 };
    if (w->missing++ < NAMED) {
        sl_keys_put_name(&name, key);
        fprintf(stderr, "%s is not %s\n", sl_buf_text(&name),
                w->verb == RETRY    ? "blocked"
                : w->verb == RESUME ? "parked"
                                    : "blocked or parked");
    }
    sl_buf_fini(&name);
}

/* A head that was never tried waits for its own time: an operator does not move that. And of a message that was named,
 * the key counts only where it is the first. */
static void leave_some(work *w)
{
    size_t kept = 0;
    int64_t message = w->filter.message;
    for (size_t i = 0; i < w->refs.count; i++) {
        const sl_key_ref *r = &w->refs.v[i];
        bool scheduled = w->verb == RETRY && r->id && r->attempts == 0;
        w->scheduled += scheduled;
        if (!scheduled && (!message || r->id == message))
            w->refs.v[kept++] = *r;
    }
    w->refs.count = kept;
}

static bool named_before(const sl_opt_list *keys, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(keys->v[k], keys->v[i]) == 0)
            return true;
    return false;
}

static sl_rc find(work *w, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    sl_keys_filter f = w->filter;
    sl_rc rc = SL_OK;
    if (w->verb != SKIP_HEAD)
        f.state = w->verb == RETRY ? SL_KEYS_BLOCKED : SL_KEYS_PARKED;
    if (own->keys.count == 0)
        rc = sl_keys_find(&w->refs, w->d->db, &f, err);
    for (size_t i = 0; rc == SL_OK && i < own->keys.count; i++) {
        size_t had = w->refs.count;
        if (named_before(&own->keys, i))
            continue;
        f.key = sl_str_of(own->keys.v[i]);
        rc = sl_keys_find(&w->refs, w->d->db, &f, err);
        if (rc == SL_OK && w->refs.count == had)
            note_missing(w, f.key);
    }
    if (rc == SL_OK)
        leave_some(w);
    return rc;
}

/* Keys, messages alone, and messages that wait behind. */
static void count(const work *w, int64_t *keys, int64_t *alone, int64_t *behind)
{
    *keys = *alone = *behind = 0;
    for (size_t i = 0; i < w->refs.count; i++) {
        *(w->refs.v[i].key.p ? keys : alone) += 1;
        *behind += w->refs.v[i].behind;
    }
}

/* "2 keys and 1 message" */
static void put_amount(sl_buf *out, int64_t keys, int64_t messages)
{
    if (keys || !messages)
        sl_buf_printf(out, "%lld key%s", (long long)keys, plural(keys));
    if (messages)
        sl_buf_printf(out, "%s%lld message%s", keys ? " and " : "", (long long)messages,
                      plural(messages));
}

/* Says what is about to be done. *go: it is to be done. */
static sl_rc confirm(const work *w, const char *what, int64_t n, bool *go, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    printf("%s\n", what);
    fflush(stdout);
    *go = !own->dry_run;
    if (own->dry_run || own->yes || sl_ask(verbs[w->verb].name, n == 1))
        return SL_OK;
    return sl_fail(err, SL_OPERATOR, "nothing was %s", verbs[w->verb].done);
}

static const char *will(const work *w)
{
    return ((const keys_flags *)w->cli->own)->dry_run ? "would" : "will";
}

/* ---- retry and resume ---- */

static void note_step(void *ctx, size_t seen)
{
    work *w = ctx;
    sl_progress_step(&w->progress, seen, seen);
}

static void summarise(const work *w, const sl_keys_job *job)
{
    sl_buf amount = { 0 };
    int64_t gone = (int64_t)w->refs.count - job->keys - job->messages;
    put_amount(&amount, job->keys, job->messages);
    printf("%s %s", verbs[w->verb].done, sl_buf_text(&amount));
    if (gone > 0)
        printf(", %lld had gone on meanwhile", (long long)gone);
    printf("\n");
    fflush(stdout);
    sl_buf_fini(&amount);
}

static sl_rc act(work *w, sl_err *err)
{
    sl_keys_job job = {
        .db = w->d->db, .resume = w->verb == RESUME, .step = note_step, .ctx = w
    };
    sl_progress_begin_of(&w->progress, w->verb == RESUME ? "resuming" : "retrying",
                         w->refs.count);
    sl_rc rc = sl_keys_move(&job, &w->refs, err);
    sl_progress_end(&w->progress);
    summarise(w, &job);
    if (rc != SL_OK)
        return sl_fail_in(err, "after %lld of %zu", (long long)(job.keys + job.messages),
                          w->refs.count);
    return SL_OK;
}

static sl_rc confirm_and_act(work *w, sl_err *err)
{
    int64_t keys, alone, behind;
    bool go;
    sl_buf what = { 0 };
    if (w->scheduled)
        printf("%zu key%s for a message that is scheduled, and %s left alone\n", w->scheduled,
               w->scheduled == 1 ? " waits" : "s wait", w->scheduled == 1 ? "is" : "are");
    if (w->refs.count == 0) {
        printf("no key of table %s %s\n", w->cli->settings.table,
               w->missing || w->scheduled ? "was changed" : "matches");
        return SL_OK;
    }
    count(w, &keys, &alone, &behind);
    put_amount(&what, keys, alone);
    sl_buf_printf(&what, " of table %s %s be %s; %lld message%s behind", w->cli->settings.table,
                  will(w), verbs[w->verb].done, (long long)behind,
                  behind == 1 ? " waits" : "s wait");
    sl_rc rc = confirm(w, sl_buf_text(&what), (int64_t)w->refs.count, &go, err);
    sl_buf_fini(&what);
    return rc == SL_OK && go ? act(w, err) : rc;
}

static sl_rc move(work *w, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    sl_rc rc = find(w, err);
    if (rc == SL_OK)
        rc = confirm_and_act(w, err);
    if (rc == SL_OK && w->missing)
        rc = sl_fail(err, SL_OPERATOR,
                     "%zu of %zu keys are not %s\nhint: 'sluice keys list' shows the keys that "
                     "wait; a parked one is resumed, a blocked one is retried",
                     w->missing, own->keys.count, w->verb == RETRY ? "blocked" : "parked");
    return rc;
}

/* ---- park ---- */

static sl_rc park_one(const work *w, const char *text, size_t *parked, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    bool now = false;
    sl_buf name = { 0 };
    sl_str key = sl_str_of(text);
    sl_keys_put_name(&name, key);
    sl_rc rc = sl_keys_park(w->d->db, &w->d->names, key, sl_str_of(own->reason), &now, err);
    if (rc == SL_OK && !now)
        printf("%s is parked already\n", sl_buf_text(&name));
    else if (rc != SL_OK)
        rc = sl_fail_in(err, "%s", sl_buf_text(&name));
    *parked += now;
    sl_buf_fini(&name);
    return rc;
}

static sl_rc park(work *w, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    sl_buf what = { 0 };
    size_t parked = 0;
    bool go;
    if (own->keys.count == 1)
        sl_keys_put_name(&what, sl_str_of(own->keys.v[0]));
    else
        sl_buf_printf(&what, "%zu keys", own->keys.count);
    sl_buf_printf(&what,
                  " of table %s %s be parked: nothing of %s is delivered until it is "
                  "resumed, but for what is in flight at that moment",
                  w->cli->settings.table, will(w), own->keys.count == 1 ? "it" : "them");
    sl_rc rc = confirm(w, sl_buf_text(&what), (int64_t)own->keys.count, &go, err);
    sl_buf_fini(&what);
    if (rc != SL_OK || !go)
        return rc;
    for (size_t i = 0; rc == SL_OK && i < own->keys.count; i++)
        rc = park_one(w, own->keys.v[i], &parked, err);
    printf("parked %zu key%s\n", parked, plural((int64_t)parked));
    return rc;
}

/* ---- skip-head ---- */

/* A message that is parked alone, under skip-locked, may have a key that waits as well. */
static const sl_key_ref *choose(const work *w)
{
    const keys_flags *own = w->cli->own;
    for (size_t i = 0; i < w->refs.count; i++)
        if (own->message ? w->refs.v[i].id == own->message : w->refs.v[i].key.p != NULL)
            return &w->refs.v[i];
    return NULL;
}

static sl_rc fail_no_head(const work *w, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    if (own->message)
        return sl_fail(err, SL_OPERATOR,
                       "message %lld is neither parked nor the first of a key that waits\n"
                       "hint: see 'sluice keys list'",
                       (long long)own->message);
    return sl_fail(err, SL_OPERATOR,
                   "only the first message of a blocked or parked key can be skipped\n"
                   "hint: see 'sluice keys list'");
}

static sl_rc skip_one(const work *w, sl_str key, int64_t id, sl_err *err)
{
    const keys_flags *own = w->cli->own;
    sl_key_skip s = { .db = w->d->db,
                      .names = &w->d->names,
                      .key = key,
                      .id = id,
                      .wait_ns = own->wait_ns ? own->wait_ns : WAIT_DEFAULT_NS };
    sl_buf name = { 0 };
    sl_rc rc = sl_keys_skip(&s, err);
    sl_keys_put_name(&name, key);
    if (rc == SL_OK)
        printf("skipped message %lld: it is a dead letter now\n", (long long)id);
    if (rc == SL_OK && s.stays)
        printf("%s was parked by hand, and still is: 'sluice keys resume' lets it go on\n",
               sl_buf_text(&name));
    sl_buf_fini(&name);
    return rc;
}

static sl_rc skip_head(work *w, sl_err *err)
{
    bool go;
    sl_buf what = { 0 };
    sl_rc rc = find(w, err);
    const sl_key_ref *r = rc == SL_OK ? choose(w) : NULL;
    int64_t id = r ? r->id : 0;
    if (r && r->key.p && !id) /* no node has set it aside yet */
        rc = sl_keys_first(w->d->db, r->key, &id, err);
    if (rc == SL_OK && !id)
        rc = fail_no_head(w, err);
    if (rc != SL_OK)
        return rc;
    sl_buf_printf(&what, "message %lld", (long long)id);
    if (r->key.p) {
        sl_buf_puts(&what, ", the first of ");
        sl_keys_put_name(&what, r->key);
    }
    sl_buf_printf(&what, " of table %s, %s become a dead letter; %lld message%s behind it",
                  w->cli->settings.table, will(w), (long long)r->behind,
                  r->behind == 1 ? " waits" : "s wait");
    rc = confirm(w, sl_buf_text(&what), 1, &go, err);
    sl_buf_fini(&what);
    return rc == SL_OK && go ? skip_one(w, r->key, id, err) : rc;
}

/* ---- Wrong use ---- */

static bool asks(const work *w)
{
    return w->verb != LIST;
}

static int check_key(const sl_cli *cli, const char *key)
{
    if (!sl_is_utf8(sl_str_of(key)))
        return sl_cli_usage(cli, "--key is not UTF-8");
    if (strlen(key) > KEY_BYTES)
        return sl_cli_usage(cli, "--key has %zu bytes, and a key at most %d", strlen(key),
                            KEY_BYTES);
    return SL_EXIT_OK;
}

static int check_texts(const work *w)
{
    const keys_flags *own = w->cli->own;
    int status = SL_EXIT_OK;
    for (size_t i = 0; status == SL_EXIT_OK && i < own->keys.count; i++)
        status = check_key(w->cli, own->keys.v[i]);
    if (status != SL_EXIT_OK)
        return status;
    if ((own->topic && !sl_is_utf8(sl_str_of(own->topic))) ||
        (own->reason && !sl_is_utf8(sl_str_of(own->reason))))
        return sl_cli_usage(w->cli, "--%s is not UTF-8", own->topic ? "topic" : "reason");
    /* A variable of a script that is not set must not mean everything. */
    if (own->topic && !*own->topic)
        return sl_cli_usage(w->cli, "--topic is empty\nhint: leave it out for every topic");
    return SL_EXIT_OK;
}

/* Flags of some commands only. */
static int check_places(const work *w)
{
    const keys_flags *own = w->cli->own;
    const struct {
        const char *flag;
        bool given, fits;
        const char *place;
    } places[] = {
        { "limit", own->limit != 0, w->verb == LIST, "list" },
        { "json", own->json, w->verb == LIST, "list" },
        { "yes", own->yes, asks(w), "all but list" },
        { "dry-run", own->dry_run, asks(w), "all but list" },
        { "reason", own->reason != NULL, w->verb == PARK, "park" },
        { "wait", own->wait_ns != 0, w->verb == SKIP_HEAD, "skip-head" },
        { "message", own->message != 0, w->verb == RESUME || w->verb == SKIP_HEAD,
          "resume and skip-head" },
        { "all", own->all, w->verb != PARK && w->verb != SKIP_HEAD, "retry and resume" },
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (places[i].given && !places[i].fits)
            return sl_cli_usage(w->cli, "--%s is for %s", places[i].flag, places[i].place);
    return SL_EXIT_OK;
}

static bool filtered(const keys_flags *own)
{
    return own->topic || own->blocked || own->parked || own->older_ns;
}

/* park and skip-head act on what is named, and on nothing else. */
static int check_named(const work *w)
{
    const keys_flags *own = w->cli->own;
    if (filtered(own))
        return sl_cli_usage(w->cli, "%s takes no filter\nhint: --key K", verbs[w->verb].name);
    if (w->verb == PARK && !own->keys.count)
        return sl_cli_usage(w->cli, "which key is to be parked?\nhint: --key K");
    if (w->verb == SKIP_HEAD && own->keys.count + (own->message != 0) != 1)
        return sl_cli_usage(w->cli, "skip-head takes one key, or one message\nhint: --key K, "
                                    "or --message ID");
    return SL_EXIT_OK;
}

static int check_choice(const work *w)
{
    const keys_flags *own = w->cli->own;
    bool named = own->keys.count || own->message;
    if (own->blocked && own->parked)
        return sl_cli_usage(w->cli, "--blocked and --parked\nhint: leave both out for all");
    if (w->verb == RETRY && own->parked)
        return sl_cli_usage(w->cli, "parked keys are not retried\nhint: sluice keys resume");
    if (w->verb == RESUME && own->blocked)
        return sl_cli_usage(w->cli, "blocked keys are not resumed\nhint: sluice keys retry");
    if (own->all && (named || filtered(own)))
        return sl_cli_usage(w->cli, "--all and another filter\nhint: leave --all out");
    if (own->message && (own->keys.count || filtered(own)))
        return sl_cli_usage(w->cli, "--message and another filter\nhint: leave one of them "
                                    "out");
    if (w->verb == LIST && own->keys.count > 1)
        return sl_cli_usage(w->cli, "list takes one --key");
    if (asks(w) && !own->all && !named && !filtered(own))
        return sl_cli_usage(w->cli,
                            "which keys are to be %s?\nhint: --key K, a filter such as "
                            "--topic T, or --all",
                            verbs[w->verb].done);
    return SL_EXIT_OK;
}

static int read_verb(work *w)
{
    const sl_cli *cli = w->cli;
    sl_near near = { .wanted = cli->argc ? cli->argv[0] : "" };
    w->verb = VERBS;
    for (int i = 0; i < (int)VERBS; i++) {
        if (!cli->argc || strcmp(cli->argv[0], verbs[i].name) == 0)
            w->verb = cli->argc ? (verb)i : LIST;
        sl_near_try(&near, verbs[i].name);
    }
    if (w->verb < VERBS && cli->argc > 1)
        return sl_cli_usage(cli, "'%.60s' is one argument too many\nhint: --key '%.60s'",
                            cli->argv[1], cli->argv[1]);
    if (w->verb < VERBS)
        return SL_EXIT_OK;
    if (near.best)
        return sl_cli_usage(cli, "'%.60s' cannot be done\nhint: did you mean %s?", cli->argv[0],
                            near.best);
    return sl_cli_usage(cli,
                        "'%.60s' cannot be done\nhint: list, retry, park, resume or "
                        "skip-head",
                        cli->argv[0]);
}

static void read_filter(work *w)
{
    const keys_flags *own = w->cli->own;
    sl_str topic = sl_str_of(own->topic);
    bool prefix = topic.n && topic.p[topic.n - 1] == '*';
    w->filter = (sl_keys_filter){
        .message = own->message,
        .topic = prefix ? SL_NONE : topic,
        .prefix = prefix ? (sl_str){ topic.p, topic.n - 1 } : SL_NONE,
        .state = own->blocked  ? SL_KEYS_BLOCKED
                 : own->parked ? SL_KEYS_PARKED
                               : SL_KEYS_ANY,
        .older_us = own->older_ns / 1000,
    };
}

static int read_work(work *w)
{
    const keys_flags *own = w->cli->own;
    int status = read_verb(w);
    if (status == SL_EXIT_OK)
        status = check_texts(w);
    if (status == SL_EXIT_OK)
        status = check_places(w);
    if (status == SL_EXIT_OK)
        status = w->verb == PARK || w->verb == SKIP_HEAD ? check_named(w) : check_choice(w);
    read_filter(w);
    if (status == SL_EXIT_OK && asks(w) && !own->yes && !own->dry_run)
        status = sl_ask_check(w->cli, verbs[w->verb].name);
    return status;
}

/* ---- The command ---- */

static int run(sl_cli *cli)
{
    static sl_rc (*const how[])(work *, sl_err *) = {
        [LIST] = list, [RETRY] = move, [PARK] = park, [RESUME] = move, [SKIP_HEAD] = skip_head
    };
    sl_err err = { 0 };
    sl_cli_db d = { 0 };
    work w = { .cli = cli, .d = &d };
    int status = read_work(&w);
    if (status == SL_EXIT_OK) {
        sl_rc rc = sl_cli_open(&d, cli, false, &err);
        if (rc == SL_OK)
            rc = how[w.verb](&w, &err);
        if (rc != SL_OK)
            status = sl_cli_fail(cli, sl_cli_status_of(&err), &err);
    }
    sl_cli_close(&d);
    sl_key_refs_fini(&w.refs);
    return status;
}

const sl_cmd sl_cmd_keys = {
    .name = "keys",
    .summary = "list, retry, park, resume keys that wait; skip their first message",
    .synopsis =
        "sluice keys [list] [--key K] [FILTERS] [--limit N] [--json]\n"
        "sluice keys retry --key K... | FILTERS | --all [--yes | --dry-run]\n"
        "sluice keys park --key K... [--reason TEXT] [--yes | --dry-run]\n"
        "sluice keys resume --key K... | --message ID | FILTERS | --all [--yes | --dry-run]\n"
        "sluice keys skip-head --key K | --message ID [--wait TIME] [--yes | --dry-run]",
    .details =
        "A key is blocked while its first message, which failed or is scheduled, is not due. "
        "It "
        "is parked when only an operator lets it go on: by the failure policy, or by hand. A "
        "message without a key, and any message under strategy skip-locked, is parked alone.\n"
        "\n"
        "'list' shows them, the longest waiting first. 'retry' makes blocked keys due now, "
        "whatever the delay was; scheduled messages keep their time. 'park' stops a key, "
        "whether it has messages or not: nothing of it is delivered, but for what is in flight "
        "at that moment. 'resume' lets parked keys and messages go on; the first message is "
        "tried as if for the first time.\n"
        "\n"
        "'skip-head' makes a dead letter of the first message of a blocked or parked key, and "
        "the key goes on, unless it was parked by hand. It waits for whoever may have that "
        "message in flight, and gives up after --wait. Meanwhile the key may be parked; if the "
        "command is killed it stays so: resume it, or skip again.\n"
        "\n"
        "All but 'list' say what they are about to do and ask; without a terminal they need "
        "--yes. They may be repeated, and run beside nodes and each other.\n"
        "\n"
        "The filters --topic, --blocked, --parked and --older-than may be combined.\n"
        "\n"
        "Examples:\n"
        "  sluice keys --parked\n"
        "  sluice keys retry --topic 'orders.*'\n"
        "  sluice keys park --key order:9182 --reason 'being repaired'\n"
        "  sluice keys skip-head --key order:9182\n",
    .groups = SL_FOR_DB,
    .opts = flags,
    .own_bytes = sizeof(keys_flags),
    .run = run,
    .words = "list|retry|park|resume|skip-head",
};
