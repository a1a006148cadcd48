/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of sink/sink.h made executable, for every sink of the build. A sink whose other side
 * is a server names the variable with a URL for it and is left out while that is not set; any
 * other sink must have a URL here.
 */
#include "unit/sink/sinks.h"

#include <pthread.h>

static const struct place {
    const char *scheme;
    const char *url; /* %s: the folder of the test */
    const char *env;
} places[] = {
    { "file", "file:%s/out.jsonl", NULL },
    { "stdout", "stdout:", NULL },
    { "null", "null:", NULL },
    /* with a cluster of librdkafka's in the same process, for each producer one of its own */
    { "kafka", "kafka://mock:9092?test.mock.num.brokers=1", NULL },
};

/* Of the sink under test. */
static char url[512];

static bool find_url(const sl_sink_ops *ops)
{
    for (size_t i = 0; i < COUNT(places); i++) {
        if (strcmp(places[i].scheme, ops->scheme) != 0)
            continue;
        const char *from = places[i].env ? getenv(places[i].env) : places[i].url;
        if (!from)
            return false;
        const char *mark = strstr(from, "%s");
        snprintf(url, sizeof url, "%.*s%s%s", (int)(mark ? mark - from : (long)strlen(from)),
                 from, mark ? folder : "", mark ? mark + 2 : "");
        return true;
    }
    fail_msg("sink %s: has no URL in this test", ops->scheme);
    return false;
}

/* ---- The promises, one function each ---- */

static void opening_and_closing_is_harmless(void)
{
    for (int i = 0; i < 3; i++) {
        sl_sink *s = open_sink(url, "node/1");
        s->ops->close(s);
        s = open_sink(url, NULL);
        s->ops->recall(s);
        s->ops->recall(s);
        s->ops->close(s);
    }
}

static void polling_without_messages_is_harmless_and_short(void)
{
    sl_sink *s = open_sink(url, "node/1");
    int64_t start = sl_now_ns();
    for (int i = 0; i < 3; i++) {
        s->ops->poll(s, 0);
        s->ops->poll(s, 5 * SL_MS);
    }
    assert_true(sl_now_ns() - start < 5 * SL_SEC);
    close_sink(s);
}

/* sl_msg_settle asserts that a message has no verdict yet, so a second one ends the test. */
static void each_message_is_settled_exactly_once(void)
{
    sl_sink *s = open_sink(url, "node/1");
    sl_batch b;
    sl_batch_init(&b);
    for (size_t count = 0; count <= 300; count += 100) {
        fill_batch(&b, 1, count, 50);
        submit_all(s, &b);
        poll_all(s, &b);
        expect_all(&b, SL_SENT);
        s->ops->poll(s, 0);
        s->ops->recall(s);
        assert_int_equal(b.settled, count);
        assert_int_equal(sl_batch_count_of(&b, SL_SENT), count);
    }
    close_sink(s);
    sl_batch_fini(&b);
}

/* Whatever bytes a row may hold: a refusal is a verdict, with a reason. */
static void submit_never_fails(void)
{
    const sl_str odd[] = {
        SL_NONE,
        SL_STR(""),
        SL_STR("\0"),
        SL_STR("\xff\xfe"),
        SL_STR("a\r\nb: c"),
        SL_STR("{\"a\":"),
        SL_STR("\"\\ud800\""),
    };
    sl_sink *s = open_sink(url, "node \"1\"\n");
    sl_batch b;
    sl_batch_init(&b);
    for (size_t i = 0; i < COUNT(odd) * 6; i++) {
        sl_msg *m = sl_batch_add(&b);
        sl_str *fields[] = { &m->topic,        &m->key,     &m->type,
                             &m->content_type, &m->headers, &m->payload };
        *m = (sl_msg){
            .id = (int64_t)i, .delay_ns = -1, .topic = SL_STR("t"), .payload = SL_STR("1")
        };
        *fields[i % 6] = odd[i / 6];
    }
    sl_msg *huge = sl_batch_add(&b);
    huge->topic = SL_STR("t");
    huge->payload.n = 3 * 1024 * 1024;
    huge->payload.p = memset(sl_arena_alloc(&b.arena, huge->payload.n), 0x80, huge->payload.n);
    submit_all(s, &b);
    poll_all(s, &b);
    for (size_t i = 0; i < b.count; i++)
        assert_true(b.msgs[i].verdict == SL_SENT || b.msgs[i].verdict == SL_RELEASED ||
                    b.msgs[i].reason.n >
                        0); /* given back behind one that is refused: no reason */
    close_sink(s);
    sl_batch_fini(&b);
}

static void submitting_and_polling_may_alternate(void)
{
    sl_sink *s = open_sink(url, "node/1");
    sl_batch b;
    sl_batch_init(&b);
    fill_batch(&b, 1, 50, 50);
    for (size_t i = 0; i < b.count; i++) {
        s->ops->submit(s, &b, &b.msgs[i]);
        if (i % 3 == 0)
            s->ops->poll(s, 0);
    }
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_batch_fini(&b);
}

/* After a recall nothing is borrowed: the batch is freed, and the sink must not look at it. */
static void recall_settles_all_and_borrows_nothing(void)
{
    sl_sink *s = open_sink(url, "node/1");
    for (size_t polls = 0; polls < 3; polls++) {
        sl_batch b;
        sl_batch_init(&b);
        fill_batch(&b, 1, 200, 50);
        submit_all(s, &b);
        for (size_t i = 0; i < polls; i++)
            s->ops->poll(s, 0);
        s->ops->recall(s);
        assert_int_equal(b.settled, b.count);
        for (size_t i = 0; i < b.count; i++) {
            sl_verdict v = b.msgs[i].verdict;
            assert_true(v == SL_SENT || v == SL_UNKNOWN || v == SL_RELEASED);
            assert_true(v == SL_SENT || b.msgs[i].reason.n > 0);
        }
        sl_batch_fini(&b);
        s->ops->poll(s, SL_MS);
        s->ops->recall(s);
    }
    s->ops->close(s);
}

static void *send_some(void *count)
{
    sl_sink *s = open_sink(url, "node/2");
    sl_batch b;
    sl_batch_init(&b);
    for (int round = 0; round < 10; round++) {
        fill_batch(&b, 1, 20, 50);
        submit_all(s, &b);
        poll_all(s, &b);
        *(size_t *)count += sl_batch_count_of(&b, SL_SENT);
    }
    close_sink(s);
    sl_batch_fini(&b);
    return NULL;
}

static void every_worker_has_a_sink_of_its_own(void)
{
    pthread_t t[4];
    size_t sent[4] = { 0 };
    for (size_t i = 0; i < COUNT(t); i++)
        assert_int_equal(pthread_create(&t[i], NULL, send_some, &sent[i]), 0);
    for (size_t i = 0; i < COUNT(t); i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(sent[i], 200);
    }
}

/* ---- For each sink ---- */

static const struct promise {
    const char *text;
    void (*check)(void);
} promises[] = {
    { "opening and closing is harmless", opening_and_closing_is_harmless },
    { "polling without messages is harmless", polling_without_messages_is_harmless_and_short },
    { "each message is settled exactly once", each_message_is_settled_exactly_once },
    { "submit never fails", submit_never_fails },
    { "submitting and polling may alternate", submitting_and_polling_may_alternate },
    { "recall settles all and borrows nothing", recall_settles_all_and_borrows_nothing },
    { "every worker has a sink of its own", every_worker_has_a_sink_of_its_own },
};

/* What stdout: writes goes into a file of the test, not into its report. */
static int real_stdout = -1;

static int hide_stdout(void **state)
{
    if (make_folder(state))
        return -1;
    fflush(stdout);
    real_stdout = dup(STDOUT_FILENO);
    int fd = open(in_folder("", "stdout"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int rc = dup2(fd, STDOUT_FILENO);
    close(fd);
    return rc < 0;
}

static int show_stdout(void **state)
{
    fflush(stdout);
    dup2(real_stdout, STDOUT_FILENO);
    close(real_stdout);
    return remove_folder(state);
}

typedef struct pair {
    const sl_sink_ops *ops;
    const struct promise *promise;
} pair;

static void the_sink_keeps_the_promise(void **state)
{
    const pair *p = *state;
    if (!find_url(p->ops))
        skip();
    p->promise->check();
}

enum { PAIRS_MAX = 256 };

int main(void)
{
    static pair pairs[PAIRS_MAX];
    static char names[PAIRS_MAX][96];
    static struct CMUnitTest tests[PAIRS_MAX];
    size_t n = 0;
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        for (size_t i = 0; i < COUNT(promises) && n < PAIRS_MAX; i++, n++) {
            pairs[n] = (pair){ *ops, &promises[i] };
            snprintf(names[n], sizeof names[n], "%s: %s", (*ops)->scheme, promises[i].text);
            tests[n] = (struct CMUnitTest){ .name = names[n],
                                            .test_func = the_sink_keeps_the_promise,
                                            .setup_func = hide_stdout,
                                            .teardown_func = show_stdout,
                                            .initial_state = &pairs[n] };
        }
    return _cmocka_run_group_tests("sinks", tests, n, NULL, NULL);
}
