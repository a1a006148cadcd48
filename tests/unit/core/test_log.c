/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include "core/clock.h"
#include "core/err.h"

#include "unit/unit.h"

typedef struct sheet {
    int lines;
    sl_log_level level;
    char last[4096];
    char before[4096];
} sheet;

static void keep(void *ctx, sl_log_level level, const char *line)
{
    sheet *s = ctx;
    memcpy(s->before, s->last, sizeof s->last);
    snprintf(s->last, sizeof s->last, "%s", line);
    s->level = level;
    s->lines++;
}

static void open_log(sl_log *log, sheet *s)
{
    *s = (sheet){ 0 };
    sl_log_init(log, keep, s);
    log->timestamps = false;
}

static void pairs_are_quoted_when_they_must_be(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    sl_log_line(&log, SL_LOG_INFO, "worker started", "worker", "n1/2", "none", NULL, "empty",
                "", "path", "a b=c", NULL);
    assert_string_equal(s.last, "level=info msg=\"worker started\" worker=n1/2 empty=\"\" "
                                "path=\"a b=c\"");
    assert_int_equal(s.level, SL_LOG_INFO);
    sl_log_line(&log, SL_LOG_INFO, "stop", NULL);
    assert_string_equal(s.last, "level=info msg=stop");
    sl_log_fini(&log);
}

static void json_lines_hold_the_same(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    log.json = true;
    sl_log_line(&log, SL_LOG_ERROR, "gone", "count", "3", "text", "a \"b\"", NULL);
    assert_string_equal(s.last, "{\"level\":\"error\",\"msg\":\"gone\",\"count\":\"3\","
                                "\"text\":\"a \\\"b\\\"\"}");
    log.timestamps = true;
    sl_log_line(&log, SL_LOG_INFO, "x", NULL);
    assert_memory_equal(s.last, "{\"time\":\"2", 10);
    sl_log_fini(&log);
}

/* One line stays one line, and a terminal never sees a control character. */
static void no_control_character_gets_out(void **state)
{
    (void)state;
    static const struct {
        const char *value, *shown;
    } rows[] = {
        { "a\nb", "\"a\\nb\"" },
        { "a\tb", "\"a\\tb\"" },
        { "\r\033[31m", "\"\\u000d\\u001b[31m\"" },
        { "\x7f", "\"\\u007f\"" },
        { "\xc2\x9b", "\"\\u009b\"" },  /* C1: control sequence introducer */
        { "\xc3\xa9", "\"\xc3\xa9\"" }, /* text beyond ASCII stays */
        { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
        { "a\xff"
          "b",
          "\"a\\ufffdb\"" },       /* no UTF-8 */
        { "\xc3", "\"\\ufffd\"" }, /* cut off */
        { "\xe2\x82", "\"\\ufffd\\ufffd\"" },
        { "\xc0\x80", "\"\\ufffd\\ufffd\"" },            /* overlong */
        { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" }, /* surrogate */
        { "\xf5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
        { "back\\slash", "\"back\\\\slash\"" },
        { "plain-1.5/x:y", "plain-1.5/x:y" },
    };
    sl_log log;
    sheet s;

    open_log(&log, &s);
    for (size_t i = 0; i < COUNT(rows); i++) {
        sl_log_line(&log, SL_LOG_INFO, "m", "v", rows[i].value, NULL);
        assert_string_equal(s.last + strlen("level=info msg=m v="), rows[i].shown);
    }
    sl_log_fini(&log);
}

static void lines_begin_with_the_time(void **state)
{
    (void)state;
    sl_log log;
    sheet s;
    int year, month, day, hour, minute, second, ms;

    open_log(&log, &s);
    log.timestamps = true;
    sl_log_line(&log, SL_LOG_INFO, "x", NULL);
    assert_int_equal(sscanf(s.last, "time=%d-%d-%dT%d:%d:%d.%3dZ level=info", &year, &month,
                            &day, &hour, &minute, &second, &ms),
                     7);
    assert_true(year > 2000 && month <= 12 && day <= 31 && hour < 24 && minute < 60);
    sl_log_fini(&log);
}

static void only_the_level_and_worse_are_written(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    sl_log_line(&log, SL_LOG_DEBUG, "x", NULL);
    assert_int_equal(s.lines, 0);
    log.level = SL_LOG_ERROR;
    sl_log_line(&log, SL_LOG_WARN, "x", NULL);
    assert_int_equal(s.lines, 0);
    sl_log_line(&log, SL_LOG_ERROR, "x", NULL);
    assert_int_equal(s.lines, 1);
    log.level = SL_LOG_DEBUG;
    sl_log_line(&log, SL_LOG_DEBUG, "x", NULL);
    assert_string_equal(s.last, "level=debug msg=x");
    sl_log_fini(&log);

    sl_log_line(NULL, SL_LOG_ERROR, "x", NULL);
    sl_log_init(&log, NULL, NULL);
    sl_log_line(&log, SL_LOG_ERROR, "x", NULL);
    sl_log_fini(&log);
}

static void repeats_are_folded(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    for (int i = 0; i < 10; i++)
        sl_log_line(&log, SL_LOG_WARN, "database lost", "worker", "a", NULL);
    assert_int_equal(s.lines, 1);
    log.last_ns -= 3600 * SL_SEC; /* later */
    sl_log_line(&log, SL_LOG_WARN, "database lost", "worker", "a", NULL);
    assert_int_equal(s.lines, 2);
    assert_string_equal(s.last, "level=warn msg=\"database lost\" worker=a repeated=9");
    sl_log_fini(&log);
    assert_int_equal(s.lines, 2);
}

static void folded_lines_are_told_before_another(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    log.json = true;
    sl_log_line(&log, SL_LOG_WARN, "lost", NULL);
    sl_log_line(&log, SL_LOG_WARN, "lost", NULL);
    sl_log_line(&log, SL_LOG_ERROR, "lost", "why", "x",
                NULL); /* another level is another line */
    assert_int_equal(s.lines, 3);
    assert_string_equal(s.before, "{\"level\":\"warn\",\"msg\":\"lost\",\"repeated\":1}");
    assert_string_equal(s.last, "{\"level\":\"error\",\"msg\":\"lost\",\"why\":\"x\"}");
    sl_log_line(&log, SL_LOG_ERROR, "lost", NULL);
    sl_log_fini(&log);
    assert_int_equal(s.lines, 4);
    assert_string_equal(s.last, "{\"level\":\"error\",\"msg\":\"lost\",\"repeated\":1}");
}

static void info_is_not_folded(void **state)
{
    (void)state;
    sl_log log;
    sheet s;

    open_log(&log, &s);
    sl_log_line(&log, SL_LOG_INFO, "worker started", "worker", "1", NULL);
    sl_log_line(&log, SL_LOG_INFO, "worker started", "worker", "2", NULL);
    assert_int_equal(s.lines, 2);
    sl_log_fini(&log);
}

/* Sentences longer than the memory of them still fold and still come out whole. */
static void long_sentences_fold_and_stay_whole(void **state)
{
    (void)state;
    char sentence[1000];
    sl_log log;
    sheet s;

    memset(sentence, 'x', sizeof sentence - 1);
    sentence[sizeof sentence - 1] = '\0';
    open_log(&log, &s);
    sl_log_line(&log, SL_LOG_WARN, sentence, NULL);
    sl_log_line(&log, SL_LOG_WARN, sentence, NULL);
    assert_int_equal(s.lines, 1);
    assert_int_equal(strlen(s.last), strlen("level=warn msg=") + sizeof sentence - 1);
    sl_log_fini(&log);
}

static void *log_many(void *log)
{
    for (int i = 0; i < 1000; i++)
        sl_log_line(log, SL_LOG_INFO, "tick", "who", "someone", NULL);
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    (void)state;
    pthread_t threads[4];
    sl_log log;
    sheet s;

    open_log(&log, &s);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, &log), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s.lines, 4000);
    sl_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_quoted_when_they_must_be),
        cmocka_unit_test(json_lines_hold_the_same),
        cmocka_unit_test(no_control_character_gets_out),
        cmocka_unit_test(lines_begin_with_the_time),
        cmocka_unit_test(only_the_level_and_worse_are_written),
        cmocka_unit_test(repeats_are_folded),
        cmocka_unit_test(folded_lines_are_told_before_another),
        cmocka_unit_test(info_is_not_folded),
        cmocka_unit_test(long_sentences_fold_and_stay_whole),
        cmocka_unit_test(threads_do_not_mix_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
