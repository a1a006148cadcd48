/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "unit/sink/faults.h"

#include <pthread.h>

static int real_stdout = -1;
static int pipe_fds[2];

/* Puts one end of a new pipe in the place of stdout. */
static int take_stdout(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    fflush(stdout);
    real_stdout = dup(STDOUT_FILENO);
    return pipe(pipe_fds) || dup2(pipe_fds[1], STDOUT_FILENO) < 0 || close(pipe_fds[1]);
}

static int give_stdout_back(void **state)
{
    (void)state;
    fflush(stdout);
    dup2(real_stdout, STDOUT_FILENO);
    close(real_stdout);
    if (pipe_fds[0] >= 0)
        close(pipe_fds[0]);
    fail_write = 0;
    fail_write_after = -1;
    return 0;
}

static void *read_pipe(void *out)
{
    read_fd(pipe_fds[0], out);
    return NULL;
}

/* What is in the pipe, up to its end, which is made here. */
static sl_buf end_pipe(void)
{
    sl_buf text = { 0 };
    assert_true(dup2(real_stdout, STDOUT_FILENO) >= 0);
    read_fd(pipe_fds[0], &text);
    return text;
}

static void lines_go_to_stdout(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    fill_batch(&b, 0, 100, 90);
    submit_all(s, &b);
    assert_int_equal(b.settled, 0);
    s->ops->poll(s, 0);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_buf text = end_pipe();
    expect_whole_lines(&text, 100, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void stdout_takes_no_options_and_must_be_open(void **state)
{
    (void)state;
    refuse_sink("stdout:x", SL_REFUSED, "sink stdout: takes nothing after the colon");
    close(STDOUT_FILENO);
    refuse_sink("stdout:", SL_OPERATOR, "standard output: Bad file descriptor");
}

static void a_reader_that_is_slow_is_waited_for(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    fill_batch(&b, 0, 2000, 100);
    submit_all(s, &b);
    s->ops->poll(s, 0);
    size_t first = b.settled;
    assert_true(first > 0 && first < 2000);
    s->ops->poll(s, 10 * SL_MS);
    assert_int_equal(b.settled, first);
    assert_int_equal(sl_batch_count_of(&b, SL_SENT), first);

    sl_buf text = { 0 };
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &text), 0);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);
    dup2(real_stdout, STDOUT_FILENO);
    pthread_join(reader, NULL);
    expect_whole_lines(&text, 2000, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void a_non_blocking_pipe_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK), 0);
    a_reader_that_is_slow_is_waited_for(state);
}

static void what_the_reader_did_not_take_is_recalled(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    fill_batch(&b, 0, 2000, 100);
    submit_all(s, &b);
    s->ops->poll(s, 0);
    size_t sent = b.settled;
    s->ops->recall(s);
    assert_int_equal(b.settled, 2000);
    assert_int_equal(sl_batch_count_of(&b, SL_SENT), sent);
    assert_int_equal(sl_batch_count_of(&b, SL_RELEASED), 2000 - sent); /* no line was cut */
    close_sink(s);
    sl_buf text = end_pipe();
    expect_whole_lines(&text, sent, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

/* One line that does not fit into the pipe, then a short one. */
static void begin_long_line(sl_sink *s, sl_batch *b)
{
    fill_batch(b, 0, 2, 300000);
    submit_all(s, b);
    s->ops->poll(s, 0);
    assert_int_equal(b->settled, 0);
}

static void *poll_shortly(void *s)
{
    ((sl_sink *)s)->ops->poll(s, 20 * SL_MS);
    return NULL;
}

static void poll_in_a_thread(sl_sink *s)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, poll_shortly, s), 0);
    pthread_join(t, NULL);
}

static void a_line_longer_than_the_pipe_keeps_the_stream(void **state)
{
    (void)state;
    sl_batch b, c;
    sl_batch_init(&b);
    sl_batch_init(&c);
    sl_sink *s = open_sink("stdout:", "w");
    sl_sink *other = open_sink("stdout:", "w");
    begin_long_line(s, &b);
    sl_buf text = { 0 };
    while (text.n < 8192) /* room for the other's line, but it is not its turn */
        text.n += (size_t)read(pipe_fds[0], sl_buf_room(&text, 4096), 4096);
    fill_batch(&c, 2, 1, 10);
    submit_all(other, &c);
    poll_in_a_thread(other);
    assert_int_equal(c.settled, 0);

    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &text), 0);
    poll_all(s, &b);
    poll_all(other, &c);
    expect_all(&b, SL_SENT);
    expect_all(&c, SL_SENT);
    close_sink(s);
    close_sink(other);
    dup2(real_stdout, STDOUT_FILENO);
    pthread_join(reader, NULL);
    expect_whole_lines(&text, 3, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
    sl_batch_fini(&c);
}

/* Sends a short line after one that was given up, and checks that it stands for itself. */
static void expect_next_line_alone(sl_sink *s, sl_batch *b)
{
    sl_buf text = { 0 };
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &text), 0);
    fill_batch(b, 0, 1, 10);
    submit_all(s, b);
    poll_all(s, b);
    expect_all(b, SL_SENT);
    close_sink(s);
    dup2(real_stdout, STDOUT_FILENO);
    pthread_join(reader, NULL);
    char *end = memchr(text.p, '\n', text.n);
    assert_non_null(end);
    sl_buf rest = { .p = end + 1, .n = text.n - (size_t)(end + 1 - text.p) };
    expect_whole_lines(&rest, 1, 1);
    sl_buf_fini(&text);
}

static void a_line_that_was_given_up_is_ended_by_the_next_writer(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    begin_long_line(s, &b);
    s->ops->recall(s);
    assert_int_equal(b.msgs[0].verdict, SL_UNKNOWN);
    assert_int_equal(b.msgs[1].verdict, SL_RELEASED);
    expect_next_line_alone(s, &b);
    sl_batch_fini(&b);
}

static void a_write_that_fails_inside_a_line_is_unknown_for_that_line(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    fill_batch(&b, 0, 3, 10);
    submit_all(s, &b);
    fail_write_after = 15; /* of ten bytes each: inside the second line */
    fail_write = EIO;
    s->ops->poll(s, 0);
    fail_write = 0;
    assert_int_equal(b.msgs[0].verdict, SL_SENT);
    assert_int_equal(b.msgs[1].verdict, SL_UNKNOWN);
    assert_int_equal(b.msgs[2].verdict, SL_RELEASED);
    assert_string_equal(b.msgs[2].reason.p, "cannot write to stdout: Input/output error");
    sl_buf text = { 0 };
    while (text.n < 150)
        text.n += (size_t)read(pipe_fds[0], sl_buf_room(&text, 150), 150 - text.n);
    sl_buf_fini(&text);
    expect_next_line_alone(s, &b);
    sl_batch_fini(&b);
}

static void without_a_reader_nothing_went_out(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    close(pipe_fds[0]);
    pipe_fds[0] = -1;
    for (int round = 0; round < 2; round++) {
        fill_batch(&b, 0, 3, 10);
        submit_all(s, &b);
        s->ops->poll(s, 0);
        expect_all(&b, SL_RELEASED);
        assert_string_equal(b.msgs[0].reason.p, "cannot write to stdout: Broken pipe");
    }
    close_sink(s);
    sl_batch_fini(&b);
}

static void a_reader_that_goes_away_leaves_what_it_did_not_take(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("stdout:", "w");
    fill_batch(&b, 0, 2000, 100);
    submit_all(s, &b);
    s->ops->poll(s, 0);
    size_t sent = b.settled;
    close(pipe_fds[0]);
    pipe_fds[0] = -1;
    s->ops->poll(s, 0);
    assert_int_equal(sl_batch_count_of(&b, SL_SENT), sent);
    assert_int_equal(sl_batch_count_of(&b, SL_RELEASED), 2000 - sent);
    close_sink(s);
    sl_batch_fini(&b);
}

static void threads_share_stdout_line_by_line(void **state)
{
    (void)state;
    char url[] = "stdout:";
    sl_buf text = { 0 };
    pthread_t reader, t[WRITERS];
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, &text), 0);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, writer, url), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(t[i], NULL);
    dup2(real_stdout, STDOUT_FILENO);
    pthread_join(reader, NULL);
    expect_whole_lines(&text, ROUNDS * PER_ROUND, WRITERS);
    sl_buf_fini(&text);
}

static void stdout_may_be_a_file(void **state)
{
    (void)state;
    int fd = open(in_folder("", "redirected"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0);
    close(fd);
    write_rounds("stdout:", "w");
    dup2(real_stdout, STDOUT_FILENO);
    sl_buf text = read_file(in_folder("", "redirected"));
    expect_whole_lines(&text, ROUNDS * PER_ROUND, 1);
    sl_buf_fini(&text);
}

static int take_both(void **state)
{
    return make_folder(state) || take_stdout(state);
}

static int give_both_back(void **state)
{
    return give_stdout_back(state) || no_faults(state);
}

#define STDOUT_TEST(f) cmocka_unit_test_setup_teardown(f, take_both, give_both_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STDOUT_TEST(lines_go_to_stdout),
        STDOUT_TEST(stdout_takes_no_options_and_must_be_open),
        STDOUT_TEST(a_reader_that_is_slow_is_waited_for),
        STDOUT_TEST(a_non_blocking_pipe_is_waited_for),
        STDOUT_TEST(what_the_reader_did_not_take_is_recalled),
        STDOUT_TEST(a_line_longer_than_the_pipe_keeps_the_stream),
        STDOUT_TEST(a_line_that_was_given_up_is_ended_by_the_next_writer),
        STDOUT_TEST(a_write_that_fails_inside_a_line_is_unknown_for_that_line),
        STDOUT_TEST(without_a_reader_nothing_went_out),
        STDOUT_TEST(a_reader_that_goes_away_leaves_what_it_did_not_take),
        STDOUT_TEST(threads_share_stdout_line_by_line),
        STDOUT_TEST(stdout_may_be_a_file),
    };
    return has_sink("file") ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
