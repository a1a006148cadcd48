/* SPDX-License-Identifier: Apache-2.0 */
/* The node in this process, under real signals. What it does to messages when it is killed, and
 * the second TERM, are for tests/e2e. */
#include "node/node.h"

#include "sink/sink.h"
#include "support/testdb.h"

#include <pthread.h>

static testdb t;
static sl_settings settings;
static sl_log log_;
static sl_err err;

/* ---- What was logged ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sl_buf lines;

static void note_line(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    pthread_mutex_lock(&lock);
    sl_buf_printf(&lines, "%s\n", line);
    pthread_mutex_unlock(&lock);
}

/* How often. */
static int logged(const char *words)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (const char *p = sl_buf_text(&lines); (p = strstr(p, words)); p++)
        n++;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- Around each test ---- */

static void set_in(sl_settings *s, const char *name, const char *value)
{
    sl_err e = { 0 };
    if (sl_settings_set(s, name, value, &e) != SL_OK)
        print_message("%s\n", e.text);
}

static void set_all(sl_settings *s)
{
    set_in(s, "db", t.url);
    set_in(s, "table", t.table);
    set_in(s, "node", "n");
    set_in(s, "sink", "null:");
    set_in(s, "poll", "20ms");
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, testdb_any(), NULL);
    sl_settings_init(&settings);
    set_all(&settings);
    sl_log_init(&log_, note_line, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_log_fini(&log_);
    sl_settings_fini(&settings);
    sl_buf_fini(&lines);
    lines = (sl_buf){ 0 };
    testdb_drop(&t);
    return 0;
}

/* A step: once these words were logged so often, send this signal. */
typedef struct step {
    const char *words;
    int times;
    int signo;
} step;

static void *walk(void *arg)
{
    for (const step *s = arg; s->words; s++) {
        int64_t until = sl_now_ns() + 30 * SL_SEC;
        while (logged(s->words) < s->times && sl_now_ns() < until)
            usleep(2000);
        kill(getpid(), s->signo);
    }
    return NULL;
}

static sl_rc run(step *steps, sl_rc (*reload)(void *, sl_settings *, sl_err *))
{
    pthread_t thread;
    sl_node_conf conf = { .settings = &settings, .log = &log_, .reload = reload, .ctx = &t };
    assert_int_equal(pthread_create(&thread, NULL, walk, steps), 0);
    sl_rc rc = sl_node_run(&conf, &err);
    pthread_join(thread, NULL);
    return rc;
}

/* ---- The tests ---- */

static void a_node_drains(void **state)
{
    (void)state;
    testdb_fill(&t, 50, 1);
    set_in(&settings, "drain", "true");
    assert_int_equal(run((step[]){ { 0 } }, NULL), SL_OK);
    assert_int_equal(testdb_count(&t), 0);
    assert_int_equal(logged("node started"), 1);
    assert_int_equal(logged("sent=50"), 1);
}

static void term_and_int_end_it(void **state)
{
    (void)state;
    static const int signals[] = { SIGTERM, SIGINT };
    for (size_t i = 0; i < COUNT(signals); i++) {
        step steps[] = { { "node started", (int)i + 1, signals[i] }, { 0 } };
        assert_int_equal(run(steps, NULL), SL_OK);
        assert_int_equal(logged("stopping after this turn"), i + 1);
        assert_int_equal(logged("workers ended"), i + 1);
    }
}

static sl_rc reload_more(void *ctx, sl_settings *out, sl_err *e)
{
    (void)e;
    assert_ptr_equal(ctx, &t);
    set_all(out);
    set_in(out, "workers", "2");
    set_in(out, "log_level", "debug");
    set_in(out, "table", "elsewhere");
    set_in(out, "lanes", "8");
    return SL_OK;
}

static void hup_reads_the_settings_again(void **state)
{
    (void)state;
    step steps[] = { { "node started", 1, SIGHUP },
                     { "node started", 2, SIGHUP },
                     { "node started", 3, SIGTERM },
                     { 0 } };
    assert_int_equal(run(steps, reload_more), SL_OK);
    assert_int_equal(settings.workers, 2);
    assert_int_equal(settings.log_level, SL_LOG_DEBUG);
    assert_int_equal(log_.level, SL_LOG_DEBUG);
    assert_string_equal(settings.table, t.table); /* only with a restart, and named */
    assert_int_equal(settings.lanes, 64);
    assert_int_equal(logged("settings reloaded"), 2);
    assert_true(logged("table lanes") >= 1);
    assert_int_equal(logged("workers=2"), 2);
}

static sl_rc reload_badly(void *ctx, sl_settings *out, sl_err *e)
{
    (void)ctx;
    set_in(out, "workers", "9");
    return sl_fail(e, SL_REFUSED, "sluice.yaml:3: unknown setting");
}

static void a_bad_file_changes_nothing(void **state)
{
    (void)state;
    step steps[] = { { "node started", 1, SIGHUP }, { "reload refused", 1, SIGTERM }, { 0 } };
    assert_int_equal(run(steps, reload_badly), SL_OK);
    assert_int_equal(settings.workers, 4);
    assert_int_equal(logged("sluice.yaml:3: unknown setting"), 1);
    assert_int_equal(logged("node started"), 1);
}

static void what_cannot_work_is_told(void **state)
{
    (void)state;
    set_in(&settings, "table", "nowhere");
    assert_int_equal(run((step[]){ { 0 } }, NULL), SL_OPERATOR);
    assert_non_null(strstr(err.text, "'nowhere' is not there"));
    set_in(&settings, "sink", "hope:");
    set_in(&settings, "table", t.table);
    assert_int_not_equal(run((step[]){ { 0 } }, NULL), SL_OK);
    assert_int_equal(logged("node started"), 0);
}

static bool has_null_sink(void)
{
    for (const sl_sink_ops *const *s = sl_sink_all; *s; s++)
        if (!strcmp((*s)->scheme, "null"))
            return true;
    print_message("skipped: this build has no sink null:\n");
    return false;
}

int main(void)
{
    if (!testdb_any() || !has_null_sink())
        return TESTDB_SKIPPED;
    /* For the threads of this test, as the node does for its own. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_node_drains),
        TEST(term_and_int_end_it),
        TEST(hup_reads_the_settings_again),
        TEST(a_bad_file_changes_nothing),
        TEST(what_cannot_work_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
