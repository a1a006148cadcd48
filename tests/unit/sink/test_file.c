/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "unit/sink/faults.h"

#include <pthread.h>

/* ---- Opening ---- */

static void a_file_is_created_and_lines_are_appended(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out.jsonl"), "n1/2");
    struct stat st;
    assert_int_equal(stat(in_folder("", "out.jsonl"), &st), 0);
    assert_int_equal(st.st_mode & 0777 & ~0644U, 0);
    fill_batch(&b, 0, 2, 3);
    submit_all(s, &b);
    assert_int_equal(b.settled, 0);
    assert_int_equal(file_bytes(in_folder("", "out.jsonl")), 0);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);

    sl_buf text = read_file(in_folder("", "out.jsonl"));
    assert_string_equal(
        sl_buf_text(&text),
        "{\"id\":0,\"topic\":\"t\",\"key\":\"k\",\"type\":\"\",\"payload\":\"x\","
        "\"headers\":{},\"attempt\":1,\"worker\":\"n1/2\",\"epoch\":0}\n"
        "{\"id\":1,\"topic\":\"t\",\"key\":\"k\",\"type\":\"\",\"payload\":\"x\","
        "\"headers\":{},\"attempt\":1,\"worker\":\"n1/2\",\"epoch\":0}\n");
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void what_cannot_be_opened_needs_an_operator(void **state)
{
    (void)state;
    refuse_sink("file:", SL_REFUSED, "sink file: no path\nhint: file:PATH");
    refuse_sink("file:?sync=off", SL_REFUSED, "sink file: no path");
    refuse_sink("file://host/path", SL_REFUSED, "names a host\nhint: ");
    refuse_sink(in_folder("file:", ""), SL_OPERATOR, "Is a directory");
    refuse_sink(in_folder("file:", "no/such"), SL_OPERATOR,
                "No such file or directory\nhint: the file is created, but not the folder");
    assert_int_equal(mkfifo(in_folder("", "fifo"), 0600), 0);
    refuse_sink(in_folder("file:", "fifo"), SL_OPERATOR, "is not a file\nhint: stdout: ");
}

static void without_permission_an_operator_is_needed(void **state)
{
    (void)state;
    uid_t me = geteuid();
    close(open(in_folder("", "secret"), O_CREAT | O_WRONLY, 0000));
    assert_int_equal(chmod(folder, 0755), 0);
    if (me == 0)
        assert_int_equal(seteuid(65534), 0);
    refuse_sink(in_folder("file:", "secret"), SL_OPERATOR, "Permission denied\nhint: ");
    if (me == 0) {
        refuse_sink(in_folder("file:", "new"), SL_OPERATOR, "Permission denied\nhint: ");
        assert_int_equal(seteuid(0), 0);
    }
}

static void only_a_trailing_sync_is_an_option(void **state)
{
    (void)state;
    const struct {
        const char *url;
        const char *name;
        int syncs;
    } good[] = {
        { "a", "a", 1 },
        { "b?sync=off", "b", 0 },
        { "c?sync=on", "c", 1 },
        { "what?", "what?", 1 },
        { "what?.jsonl", "what?.jsonl", 1 },
        { "?=x", "?=x", 1 },
        { "a?b=c?sync=off", "a?b=c", 0 },
    };
    sl_batch b;
    sl_batch_init(&b);
    for (size_t i = 0; i < COUNT(good); i++) {
        sl_sink *s = open_sink(in_folder("file:", good[i].url), "w");
        fill_batch(&b, 0, 1, 3);
        submit_all(s, &b);
        syncs = 0;
        poll_all(s, &b);
        expect_all(&b, SL_SENT);
        assert_int_equal(syncs, good[i].syncs);
        assert_true(file_bytes(in_folder("", good[i].name)) > 0);
        close_sink(s);
    }
    sl_batch_fini(&b);
    refuse_sink(in_folder("file:", "a?sink=off"), SL_REFUSED,
                "unknown option \"sink\"\nhint: the only one is ?sync=on|off");
    refuse_sink(in_folder("file:", "a?sync=maybe"), SL_REFUSED,
                "sync is \"maybe\"\nhint: it may be on or off");
    refuse_sink(in_folder("file:", "a?sync=off&x=y"), SL_REFUSED, "sync is \"off&x=y\"");
}

static void an_absolute_url_is_understood(void **state)
{
    (void)state;
    close_sink(open_sink(in_folder("file://", "out"), "w"));
    assert_int_equal(file_bytes(in_folder("", "out")), 0);
}

/* ---- Failing ---- */

/* Submits three messages and polls once; the file must then hold `before` again, or more. */
static void send_three(sl_sink *s, sl_batch *b, sl_verdict v, const char *reason)
{
    fill_batch(b, 0, 3, 100);
    submit_all(s, b);
    poll_all(s, b);
    expect_all(b, v);
    if (reason && !strstr(b->msgs[2].reason.p, reason))
        fail_msg("%s", b->msgs[2].reason.p);
}

static void a_full_disk_cuts_back_and_retries(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    send_three(s, &b, SL_SENT, NULL);
    off_t before = file_bytes(in_folder("", "out"));

    /* The limit lets the first line and a part of the second through. */
    struct rlimit old;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit tight = { .rlim_cur = (rlim_t)before * 3 / 2, .rlim_max = old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    send_three(s, &b, SL_RETRY, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(file_bytes(in_folder("", "out")), before);

    send_three(s, &b, SL_SENT, NULL);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 3, 2);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void a_write_that_fails_half_way_leaves_nothing(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    const int errors[] = { ENOSPC, EIO, EDQUOT };
    for (size_t i = 0; i < COUNT(errors); i++)
        for (int calls = 0; calls < 20; calls += 7) {
            fail_write_after = calls;
            fail_write = errors[i];
            send_three(s, &b, SL_RELEASED, strerror(errors[i]));
            fail_write = 0;
            assert_int_equal(file_bytes(in_folder("", "out")), 0);
        }
    close_sink(s);
    sl_batch_fini(&b);
}

static void short_writes_go_on(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    fail_write = ENOSPC;
    fail_write_after = 1000;
    send_three(s, &b, SL_SENT, NULL);
    fail_write = 0;
    assert_true(fail_write_after < 1000 - 40);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 3, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void what_cannot_be_cut_back_is_unknown(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    fail_write_after = 3;
    fail_write = ENOSPC;
    fail_ftruncate = EIO;
    send_three(s, &b, SL_UNKNOWN, "could not be taken back: cannot append to ");
    fail_write = fail_ftruncate = 0;
    assert_int_equal(file_bytes(in_folder("", "out")), 30);

    send_three(s, &b, SL_SENT, NULL);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    assert_int_equal(text.p[30], '\n');
    sl_buf rest = { .p = text.p + 31, .n = text.n - 31 };
    expect_whole_lines(&rest, 3, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void a_failed_sync_is_unknown(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    fail_fdatasync = EIO;
    send_three(s, &b, SL_UNKNOWN, "cannot sync \"");
    fail_fdatasync = 0;
    send_three(s, &b, SL_SENT, NULL);
    close_sink(s);
    sl_batch_fini(&b);
}

static void a_file_that_cannot_be_locked_is_retried(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    fail_flock = ENOLCK;
    send_three(s, &b, SL_RELEASED, "cannot lock the file: No locks available");
    fail_flock = 0;
    assert_int_equal(file_bytes(in_folder("", "out")), 0);
    close_sink(s);
    sl_batch_fini(&b);
}

static void devices_are_written_to(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink("file:/dev/null", "w");
    send_three(s, &b, SL_SENT, NULL);
    fail_write_after = 3;
    fail_write = ENOSPC;
    send_three(s, &b, SL_UNKNOWN, "could not be taken back");
    fail_write = 0;
    close_sink(s);
    if (access("/dev/full", W_OK) == 0) {
        s = open_sink("file:/dev/full", "w");
        send_three(s, &b, SL_RELEASED, "No space left on device");
        close_sink(s);
    }
    sl_batch_fini(&b);
}

/* ---- Sharing the file ---- */

static void a_locked_file_is_waited_for_and_then_recalled(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    int fd = open(in_folder("", "out"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    fill_batch(&b, 0, 3, 10);
    submit_all(s, &b);
    int64_t start = sl_now_ns();
    s->ops->poll(s, 30 * SL_MS);
    int64_t took = sl_now_ns() - start;
    assert_true(took > 20 * SL_MS && took < 10 * SL_SEC);
    s->ops->poll(s, 0);
    assert_int_equal(b.settled, 0);
    s->ops->recall(s);
    expect_all(&b, SL_RELEASED);

    fill_batch(&b, 0, 3, 10);
    submit_all(s, &b);
    s->ops->poll(s, 0);
    assert_int_equal(b.settled, 0);
    close(fd);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 3, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

/* Whether it may still send has to be asked again. */
static void who_is_stopped_before_the_lock_writes_nothing(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    fill_batch(&b, 0, 3, 10);
    submit_all(s, &b);
    slow_flock_ns = 200 * SL_MS;
    s->ops->poll(s, 50 * SL_MS);
    slow_flock_ns = 0;
    assert_int_equal(b.settled, 0);
    assert_int_equal(file_bytes(in_folder("", "out")), 0);
    int fd = open(in_folder("", "out"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0); /* nor does it keep the others waiting */
    close(fd);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_batch_fini(&b);
}

static void append_raw(const char *bytes)
{
    int fd = open(in_folder("", "out"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
    close(fd);
}

static void a_torn_line_is_ended_first(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    append_raw("{\"id\":1,\"top");
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    assert_int_equal(file_bytes(in_folder("", "out")),
                     12); /* not before there is a line to add */
    fill_batch(&b, 0, 1, 3);
    submit_all(s, &b);
    poll_all(s, &b);
    append_raw("{\"id\""); /* someone died later */
    fill_batch(&b, 1, 1, 3);
    submit_all(s, &b);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    assert_int_equal(strncmp(text.p, "{\"id\":1,\"top\n{\"id\":0,", 20), 0);
    assert_non_null(strstr(text.p, "\"epoch\":0}\n{\"id\"\n{\"id\":1,"));
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void threads_append_whole_lines(void **state)
{
    (void)state;
    char url[256];
    snprintf(url, sizeof url, "%s", in_folder("file:", "out?sync=off"));
    pthread_t t[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, writer, url), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(t[i], NULL);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, ROUNDS * PER_ROUND, WRITERS);
    sl_buf_fini(&text);
}

static void processes_append_whole_lines(void **state)
{
    (void)state;
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            write_rounds(in_folder("file:", "out?sync=off"), "process");
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, ROUNDS * PER_ROUND, WRITERS);
    sl_buf_fini(&text);
}

static void send_big_lines_until_killed(void)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out?sync=off"), "victim");
    for (;;) {
        fill_batch(&b, 0, 20, 100000);
        submit_all(s, &b);
        poll_all(s, &b);
    }
}

enum { KILLS = 20 };

/* Whole lines and torn ones; a torn one must not have swallowed a line of the survivor. */
static size_t whole_lines_of_survivor(const sl_buf *text)
{
    size_t whole = 0, torn = 0;
    const char *p = text->p;
    for (const char *next; p < text->p + text->n; p = next + 1) {
        next = memchr(p, '\n', (size_t)(text->p + text->n - p));
        assert_non_null(next);
        size_t n = (size_t)(next - p);
        bool survivor = memmem(p, n, "survivor", 8) != NULL;
        bool good = sl_is_json((sl_str){ p, n });
        assert_true(good || !survivor);
        whole += survivor;
        torn += !good;
    }
    assert_true(torn <= KILLS);
    return whole;
}

static void a_killed_appender_spoils_no_line_of_others(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out?sync=off"), "survivor");
    for (int round = 0; round < KILLS; round++) {
        pid_t pid = fork();
        if (pid == 0)
            send_big_lines_until_killed();
        nanosleep(&(struct timespec){ .tv_nsec = (2 + round % 5) * SL_MS }, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fill_batch(&b, round, 1, 10);
        submit_all(s, &b);
        poll_all(s, &b);
        expect_all(&b, SL_SENT);
    }
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    assert_int_equal(whole_lines_of_survivor(&text), KILLS);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

/* ---- Rotation ---- */

static void send_one(sl_sink *s, sl_batch *b, int64_t id, sl_verdict v)
{
    fill_batch(b, id, 1, 3);
    submit_all(s, b);
    poll_all(s, b);
    expect_all(b, v);
}

static void a_renamed_or_removed_file_is_opened_again(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    send_one(s, &b, 0, SL_SENT);
    assert_int_equal(rename(in_folder("", "out"), in_folder("", "out.1")), 0);
    send_one(s, &b, 0, SL_SENT);
    send_one(s, &b, 1, SL_SENT);
    assert_int_equal(unlink(in_folder("", "out.1")), 0);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 2, 1);
    sl_buf_fini(&text);

    assert_int_equal(unlink(in_folder("", "out")), 0);
    send_one(s, &b, 0, SL_SENT);
    text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 1, 1);
    sl_buf_fini(&text);
    close_sink(s);
    sl_batch_fini(&b);
}

static void a_file_that_cannot_be_opened_again_is_retried(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    assert_int_equal(mkdir(in_folder("", "sub"), 0755), 0);
    sl_sink *s = open_sink(in_folder("file:", "sub/out"), "w");
    send_one(s, &b, 0, SL_SENT);
    assert_int_equal(rename(in_folder("", "sub"), in_folder("", "moved")), 0);
    send_one(s, &b, 0, SL_RELEASED);
    assert_non_null(strstr(b.msgs[0].reason.p, "cannot open file \""));
    assert_null(strchr(b.msgs[0].reason.p, '\n'));
    send_one(s, &b, 0, SL_RELEASED);
    assert_int_equal(mkdir(in_folder("", "sub"), 0755), 0);
    send_one(s, &b, 0, SL_SENT);
    close_sink(s);
    sl_batch_fini(&b);
}

static void a_truncated_file_is_appended_to(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out"), "w");
    send_one(s, &b, 7, SL_SENT);
    assert_int_equal(truncate(in_folder("", "out"), 0), 0);
    send_one(s, &b, 0, SL_SENT);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 1, 1);
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

static void a_huge_message_does_not_keep_its_memory(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(in_folder("file:", "out?sync=off"), "w");
    fill_batch(&b, 0, 1, 20 * 1024 * 1024);
    submit_all(s, &b);
    poll_all(s, &b);
    expect_all(&b, SL_SENT);
    assert_true(file_bytes(in_folder("", "out")) > 20 * 1024 * 1024);
    send_one(s, &b, 0, SL_SENT);
    close_sink(s);
    sl_batch_fini(&b);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, no_faults)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_file_is_created_and_lines_are_appended),
        FILE_TEST(what_cannot_be_opened_needs_an_operator),
        FILE_TEST(without_permission_an_operator_is_needed),
        FILE_TEST(only_a_trailing_sync_is_an_option),
        FILE_TEST(an_absolute_url_is_understood),
        FILE_TEST(a_full_disk_cuts_back_and_retries),
        FILE_TEST(a_write_that_fails_half_way_leaves_nothing),
        FILE_TEST(short_writes_go_on),
        FILE_TEST(what_cannot_be_cut_back_is_unknown),
        FILE_TEST(a_failed_sync_is_unknown),
        FILE_TEST(a_file_that_cannot_be_locked_is_retried),
        FILE_TEST(devices_are_written_to),
        FILE_TEST(a_locked_file_is_waited_for_and_then_recalled),
        FILE_TEST(who_is_stopped_before_the_lock_writes_nothing),
        FILE_TEST(a_torn_line_is_ended_first),
        FILE_TEST(threads_append_whole_lines),
        FILE_TEST(processes_append_whole_lines),
        FILE_TEST(a_killed_appender_spoils_no_line_of_others),
        FILE_TEST(a_renamed_or_removed_file_is_opened_again),
        FILE_TEST(a_file_that_cannot_be_opened_again_is_retried),
        FILE_TEST(a_truncated_file_is_appended_to),
        FILE_TEST(a_huge_message_does_not_keep_its_memory),
    };
    return has_sink("file") ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
