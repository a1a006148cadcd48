/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/tap.h"

#include "bench/watched.h"
#include "core/mem.h"
#include "unit/sink/sinks.h"

/* A sink of the test's own: it settles at once, or each second message when it is polled, the later ones first. */
typedef struct lazy {
    sl_sink base;
    sl_batch *batch;
    bool at_once;
    int closed;
} lazy;

static int closed;

static void lazy_submit(sl_sink *s, sl_batch *b, sl_msg *m)
{
    lazy *l = (lazy *)s;
    l->batch = b;
    if (l->at_once)
        sl_msg_settle(b, m, m->id % 10 == 0 ? SL_RETRY : SL_SENT, SL_NONE);
}

static void lazy_poll(sl_sink *s, int64_t timeout_ns)
{
    lazy *l = (lazy *)s;
    (void)timeout_ns;
    for (size_t i = 0; i < l->batch->count; i += 2)
        if (l->batch->msgs[i].verdict == SL_PENDING)
            sl_msg_settle(l->batch, &l->batch->msgs[i], SL_SENT, SL_NONE);
}

static void lazy_recall(sl_sink *s)
{
    sl_batch_settle_rest(((lazy *)s)->batch, SL_UNKNOWN, SL_STR("recalled"));
}

static bool lazy_follows(sl_sink *s, const sl_msg *before, const sl_msg *m)
{
    return !((lazy *)s)->at_once && m->id > before->id;
}

static void lazy_close(sl_sink *s)
{
    closed++;
    free(s);
}

static const sl_sink_ops lazy_ops = { .scheme = "lazy",
                                      .in_order = true,
                                      .submit = lazy_submit,
                                      .poll = lazy_poll,
                                      .recall = lazy_recall,
                                      .follows = lazy_follows,
                                      .close = lazy_close };

static sl_watched watched;
static sl_batch batch;
static sl_err err;

static sl_sink *wrapped(bool at_once, int64_t first, int64_t count)
{
    lazy *l = sl_alloc(sizeof *l);
    l->base.ops = &lazy_ops;
    l->at_once = at_once;
    sl_sink *s = &l->base;
    closed = 0;
    if (sl_watched_make(&watched, first, count, 0, &err) != SL_OK ||
        sl_tap_wrap(&s, watched.path, &err) != SL_OK)
        fail_msg("%s", err.text);
    sl_batch_init(&batch);
    return s;
}

static void done(sl_sink *s)
{
    s->ops->close(s);
    assert_int_equal(closed, 1);
    sl_watched_remove(&watched);
    sl_batch_fini(&batch);
}

static int64_t times(int64_t id)
{
    return watched.tap->messages[id - watched.tap->first_id].times;
}

/* What is not sent is not noted, and what nobody waits for is a stranger. */
static void what_is_settled_at_once(void **state)
{
    (void)state;
    sl_sink *s = wrapped(true, 5, 20);
    assert_string_equal(s->ops->scheme, "lazy");
    assert_true(s->ops->in_order && !s->ops->ready && !s->ops->in_doubt);
    fill_batch(&batch, 5, 25, 10); /* 5 to 29 */
    submit_all(s, &batch);
    assert_int_equal(sl_watched_count(&watched), 18); /* without 10 and 20 */
    assert_int_equal(watched.tap->strangers, 5);
    for (int64_t id = 5; id < 25; id++)
        assert_int_equal(times(id), id % 10 != 0);
    fill_batch(&batch, 5, 1, 10);
    submit_all(s, &batch);
    assert_int_equal(times(5), 2);
    assert_int_equal(sl_watched_count(&watched), 18);
    assert_false(s->ops->follows(s, &batch.msgs[0], &batch.msgs[0]));
    done(s);
}

static void what_is_settled_later(void **state)
{
    (void)state;
    sl_sink *s = wrapped(false, 1, 500);
    fill_batch(&batch, 1, 500, 10); /* more than fit at first */
    submit_all(s, &batch);
    assert_int_equal(sl_watched_count(&watched), 0);
    s->ops->poll(s, 0);
    s->ops->poll(s, 0);
    assert_int_equal(sl_watched_count(&watched), 250);
    s->ops->recall(s); /* unknown is not sent */
    assert_int_equal(sl_watched_count(&watched), 250);
    assert_true(times(1) == 1 && times(2) == 0);
    assert_true(watched.tap->messages[2].turn > watched.tap->messages[0].turn);
    done(s);
}

static void it_takes_its_time(void **state)
{
    (void)state;
    sl_sink *s = wrapped(true, 1, 9);
    watched.tap->delay_ns = 2 * SL_MS;
    int64_t before_ns = sl_now_ns();
    fill_batch(&batch, 1, 9, 10);
    submit_all(s, &batch);
    assert_true(sl_now_ns() - before_ns >= 18 * SL_MS);
    done(s);
}

static void a_file_that_is_none(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-tap-XXXXXX";
    int fd = mkstemp(path);
    for (int round = 0; round < 3; round++) {
        lazy *l = sl_alloc(sizeof *l);
        l->base.ops = &lazy_ops;
        sl_sink *s = &l->base;
        closed = 0;
        if (round == 1)
            assert_return_code(ftruncate(fd, 4096), errno);
        if (round == 2)
            unlink(path);
        assert_int_equal(sl_tap_wrap(&s, path, &err), SL_OPERATOR);
        assert_non_null(strstr(err.text, path));
        assert_null(s);
        assert_int_equal(closed, 1);
    }
    close(fd);
}

/* As a node does it. */
static void by_its_variable(void **state)
{
    (void)state;
    if (!has_sink("null"))
        skip();
    assert_int_equal(sl_watched_make(&watched, 1, 10, 0, &err), SL_OK);
    setenv(SL_TAP_ENV, watched.path, 1);
    sl_sink *s = open_sink("null:", "w");
    unsetenv(SL_TAP_ENV);
    sl_batch_init(&batch);
    fill_batch(&batch, 1, 10, 10);
    submit_all(s, &batch);
    assert_int_equal(sl_watched_count(&watched), 10);
    s->ops->close(s);
    sl_watched_remove(&watched);
    sl_batch_fini(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_settled_at_once), cmocka_unit_test(what_is_settled_later),
        cmocka_unit_test(it_takes_its_time),       cmocka_unit_test(a_file_that_is_none),
        cmocka_unit_test(by_its_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
