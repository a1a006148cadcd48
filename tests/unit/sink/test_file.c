/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "unit/sink/sinks.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>

/* ---- Faults: these stand in for the C library's, and fail when told to ---- */

static _Atomic int fail_fdatasync; /* an errno, or 0 */
static _Atomic int fail_ftruncate;
static _Atomic int fail_flock;
static _Atomic int fail_write_after =
    -1; /* after so many more calls, each of at most 10 bytes */
static _Atomic int fail_write;
static _Atomic int syncs;

static int told(int e)
{
    errno = e;
    return -1;
}

int fdatasync(int fd)
{
    syncs++;
    return fail_fdatasync ? told(fail_fdatasync) : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    return fail_ftruncate ? told(fail_ftruncate) : (int)syscall(SYS_ftruncate, fd, size);
}

int flock(int fd, int how)
{
    bool fails = fail_flock && how != LOCK_UN;
    return fails ? told(fail_flock) : (int)syscall(SYS_flock, fd, how);
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (fail_write && fail_write_after == 0)
        return told(fail_write);
    if (fail_write) {
        fail_write_after--;
        n = n < 10 ? n : 10;
    }
    return syscall(SYS_write, fd, p, n);
}

static int no_faults(void **state)
{
    fail_fdatasync = fail_ftruncate = fail_flock = fail_write = 0;
    fail_write_after = -1;
    return remove_folder(state);
}

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
    s->ops->poll(s, 0);
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
    refuse_sink("file:", SL_OPERATOR, "sink file: no path\nhint: file:PATH");
    refuse_sink("file:?sync=off", SL_OPERATOR, "sink file: no path");
    refuse_sink("file://host/path", SL_OPERATOR, "names a host\nhint: ");
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
        s->ops->poll(s, 0);
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
    s->ops->poll(s, 0);
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
            send_three(s, &b, SL_RETRY, strerror(errors[i]));
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
    send_three(s, &b, SL_RETRY, "cannot lock the file: No locks available");
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
        send_three(s, &b, SL_RETRY, "No space left on device");
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
    s->ops->poll(s, 0);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    expect_whole_lines(&text, 3, 1);
    sl_buf_fini(&text);
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
    s->ops->poll(s, 0);
    append_raw("{\"id\""); /* someone died later */
    fill_batch(&b, 1, 1, 3);
    submit_all(s, &b);
    s->ops->poll(s, 0);
    expect_all(&b, SL_SENT);
    close_sink(s);
    sl_buf text = read_file(in_folder("", "out"));
    assert_int_equal(strncmp(text.p, "{\"id\":1,\"top\n{\"id\":0,", 20), 0);
    assert_non_null(strstr(text.p, "\"epoch\":0}\n{\"id\"\n{\"id\":1,"));
    sl_buf_fini(&text);
    sl_batch_fini(&b);
}

enum { WRITERS = 6, ROUNDS = 40, PER_ROUND = 9 };

/* Each writer sends the same ids, in batches of lines that are not all short. */
static void write_rounds(const char *url, const char *worker)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_sink *s = open_sink(url, worker);
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = round % 8 == 0 ? 20000 : 50;
        fill_batch(&b, round * PER_ROUND, PER_ROUND, bytes);
        submit_all(s, &b);
        poll_all(s, &b);
        expect_all(&b, SL_SENT);
    }
    close_sink(s);
    sl_batch_fini(&b);
}

static void *writer(void *url)
{
    write_rounds(url, "thread");
    return NULL;
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
    s->ops->poll(s, 0);
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
    send_one(s, &b, 0, SL_RETRY);
    assert_non_null(strstr(b.msgs[0].reason.p, "cannot open file \""));
    assert_null(strchr(b.msgs[0].reason.p, '\n'));
    send_one(s, &b, 0, SL_RETRY);
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
    s->ops->poll(s, 0);
    expect_all(&b, SL_SENT);
    assert_true(file_bytes(in_folder("", "out")) > 20 * 1024 * 1024);
    send_one(s, &b, 0, SL_SENT);
    close_sink(s);
    sl_batch_fini(&b);
}

/* ---- stdout: ---- */

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
    assert_int_equal(b.msgs[2].verdict, SL_RETRY);
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
        expect_all(&b, SL_RETRY);
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
    assert_int_equal(sl_batch_count_of(&b, SL_RETRY), 2000 - sent);
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

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, no_faults)
#define STDOUT_TEST(f) cmocka_unit_test_setup_teardown(f, take_both, give_both_back)

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
        FILE_TEST(a_torn_line_is_ended_first),
        FILE_TEST(threads_append_whole_lines),
        FILE_TEST(processes_append_whole_lines),
        FILE_TEST(a_killed_appender_spoils_no_line_of_others),
        FILE_TEST(a_renamed_or_removed_file_is_opened_again),
        FILE_TEST(a_file_that_cannot_be_opened_again_is_retried),
        FILE_TEST(a_truncated_file_is_appended_to),
        FILE_TEST(a_huge_message_does_not_keep_its_memory),
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
