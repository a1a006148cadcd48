/* SPDX-License-Identifier: Apache-2.0 */
#include "core/record.h"

#include "unit/unit.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum { THREADS = 4, EACH = 10000 }; /* together more than two chunks */

static char dir[] = "/tmp/sluice-record-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? setenv("SLUICE_RECORD", dir, 1) : -1;
}

/* The path of the only file in the folder; false if there is none. */
static bool only_file(char *path, size_t bytes)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    int found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            snprintf(path, bytes, "%s/%s", dir, e->d_name);
            found++;
        }
    }
    closedir(d);
    assert_true(found <= 1);
    return found == 1;
}

static int remove_files(void **state)
{
    (void)state;
    char path[512];
    if (only_file(path, sizeof path))
        unlink(path);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unsetenv("SLUICE_RECORD");
    return rmdir(dir);
}

#ifdef SL_FAULT_POINTS

/* The whole file; the caller frees it. */
static sl_rec_event *read_back(sl_rec_head *head)
{
    char path[512];
    struct stat st;
    assert_true(only_file(path, sizeof path));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    size_t n = (size_t)st.st_size / sizeof(sl_rec_event) - 1;
    sl_rec_event *events = malloc(n * sizeof *events);
    assert_non_null(events);
    assert_int_equal(fread(head, sizeof *head, 1, f), 1);
    assert_int_equal(fread(events, sizeof *events, n, f), n);
    fclose(f);
    assert_int_equal(head->magic, SL_REC_MAGIC);
    assert_true(head->next < n);
    assert_int_equal(events[head->next].seal, 0);
    return events;
}

static void record_and_die(void)
{
    SL_RECORD(SL_REC_TAKEN, "n1/2", 42, SL_STR("a"), 7, 1);
    SL_RECORD(SL_REC_RESULT, "n1/2", INT64_MIN, SL_NONE, -1, -3);
    SL_RECORD(SL_REC_SEND, "a-node-with-a-long-name/12", 0, SL_STR(""), 0, 0);
    raise(SIGKILL);
}

static void events_survive_a_kill(void **state)
{
    (void)state;
    sl_rec_head head;
    assert_int_equal(death_of(record_and_die), SIGKILL);
    sl_rec_event *e = read_back(&head);
    assert_int_equal(head.next, 3);
    assert_true(head.pid > 0 && head.pid != getpid());
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(e[i].seal, SL_REC_MAGIC + i + 1);
        assert_true(e[i].at_ns > 0 && (i == 0 || e[i].at_ns >= e[i - 1].at_ns));
    }
    assert_int_equal(e[0].kind, SL_REC_TAKEN);
    assert_int_equal(e[0].id, 42);
    assert_int_equal(e[0].epoch, 7);
    assert_int_equal(e[0].extra, 1);
    assert_int_equal(e[0].key_hash, UINT64_C(0xaf63dc4c8601ec8c)); /* FNV-1a of "a" */
    assert_memory_equal(e[0].worker, "n1/2\0", 6);
    assert_int_equal(e[1].id, INT64_MIN);
    assert_int_equal(e[1].extra, -3);
    assert_int_equal(e[1].key_hash, 0);
    assert_int_equal(e[2].key_hash, UINT64_C(0xcbf29ce484222325)); /* empty is a key */
    assert_memory_equal(e[2].worker, "ith-a-long-name/12", 18);
    free(e);
}

static void *record_many(void *arg)
{
    int thread = *(int *)arg;
    for (int i = 0; i < EACH; i++)
        SL_RECORD(SL_REC_SEND, "n/1", i, SL_STR("k"), thread, 0);
    return NULL;
}

static void record_in_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, record_many, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void threads_share_the_file(void **state)
{
    (void)state;
    sl_rec_head head;
    int64_t next[THREADS] = { 0 };
    assert_int_equal(death_of(record_in_threads), 0);
    sl_rec_event *e = read_back(&head);
    assert_int_equal(head.next, THREADS * EACH);
    for (uint64_t i = 0; i < head.next; i++) {
        assert_int_equal(e[i].seal, SL_REC_MAGIC + i + 1);
        assert_in_range(e[i].epoch, 0, THREADS - 1);
        assert_int_equal(e[i].id, next[e[i].epoch]++);
    }
    free(e);
}

static void into_no_folder(void)
{
    setenv("SLUICE_RECORD", "/nowhere/at/all", 1);
    SL_RECORD(SL_REC_SEND, "n/1", 1, SL_NONE, 1, 0);
}

static void without_the_wish(void)
{
    unsetenv("SLUICE_RECORD");
    SL_RECORD(SL_REC_SEND, "n/1", 1, SL_NONE, 1, 0);
}

static void a_record_with_holes_is_none(void **state)
{
    (void)state;
    char path[512];
    assert_true(aborts(into_no_folder));
    assert_int_equal(death_of(without_the_wish), 0);
    assert_false(only_file(path, sizeof path));
}

#else

static void record_once(void)
{
    SL_RECORD(SL_REC_SEND, "n/1", 1, SL_NONE, 1, 0);
}

/* This is the build that users have. */
static void nothing_is_recorded(void **state)
{
    (void)state;
    char path[512];
    assert_int_equal(death_of(record_once), 0);
    assert_false(only_file(path, sizeof path));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef SL_FAULT_POINTS
        cmocka_unit_test_teardown(events_survive_a_kill, remove_files),
        cmocka_unit_test_teardown(threads_share_the_file, remove_files),
        cmocka_unit_test_teardown(a_record_with_holes_is_none, remove_files),
#else
        cmocka_unit_test_teardown(nothing_is_recorded, remove_files),
#endif
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
