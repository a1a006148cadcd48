/* SPDX-License-Identifier: Apache-2.0 */
/* The member "available_at" of a line. */
#include "unit/format/lines.h"

static int64_t time_of(const char *json)
{
    sl_buf line = { 0 };
    sl_buf_printf(&line, "{\"topic\":\"t\",\"payload\":1,\"available_at\":%s}", json);
    sl_draft d = parsed((sl_str){ line.p, line.n });
    sl_buf_fini(&line);
    return d.available_at_us;
}

static void time_refused(const char *json, const char *text)
{
    sl_buf line = { 0 };
    sl_buf_printf(&line, "{\"topic\":\"t\",\"payload\":1,\"available_at\":%s}", json);
    refused((sl_str){ line.p, line.n }, text);
    sl_buf_fini(&line);
}

static void times_are_rfc_3339(void **state)
{
    (void)state;
    const struct {
        const char *json;
        int64_t us;
    } cases[] = {
        { "\"1970-01-01T00:00:01Z\"", 1000000 },
        { "\"2001-09-09T01:46:40Z\"", INT64_C(1000000000000000) },
        { "\"2001-09-09t01:46:40z\"", INT64_C(1000000000000000) },
        { "\"2001-09-09 01:46:40+00:00\"", INT64_C(1000000000000000) },
        { "\"2001-09-09T03:16:40.25+01:30\"", INT64_C(1000000000250000) },
        { "\"2001-09-08T20:46:40-05:00\"", INT64_C(1000000000000000) },
        { "\"2001-09-09T01:46:40.1234567890Z\"", INT64_C(1000000000123456) },
        { "\"2038-01-19T03:14:08Z\"", INT64_C(2147483648000000) },
        { "\"2000-02-29T00:00:00Z\"", INT64_C(951782400000000) },
        { "\"2024-02-29T12:00:00Z\"", INT64_C(1709208000000000) },
        { "\"2024-12-31T00:00:00Z\"", INT64_C(1735603200000000) },
        { "\"2016-12-31T23:59:60Z\"", INT64_C(1483228800000000) }, /* a leap second */
        { "\"9999-12-31T23:59:59.999999Z\"", INT64_C(253402300799999999) },
        { "\"1969-12-31T23:59:59Z\"", 1 }, /* 0 would mean now; the past is the past */
        { "\"0000-01-01T00:00:00Z\"", 1 },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(time_of(cases[i].json), cases[i].us);
}

/* Against the C library, over four centuries. */
static void every_day_is_counted_right(void **state)
{
    (void)state;
    for (int64_t day = 1; day < 146097 + 366; day++) {
        time_t t = (time_t)(day * 86400 + 45296);
        struct tm tm;
        char text[40];
        assert_non_null(gmtime_r(&t, &tm));
        assert_true(strftime(text, sizeof text, "\"%Y-%m-%dT%H:%M:%SZ\"", &tm) > 0);
        if (time_of(text) != (int64_t)t * 1000000)
            fail_msg("%s", text);
        sl_arena_reset(&arena);
    }
}

static void times_are_unix_seconds(void **state)
{
    (void)state;
    const struct {
        const char *json;
        int64_t us;
    } cases[] = {
        { "1", 1000000 },
        { "1700000000", INT64_C(1700000000000000) },
        { "1700000000.25", INT64_C(1700000000250000) },
        { "1700000000.123456", INT64_C(1700000000123456) },
        { "1700000000.1234569999999999999999999", INT64_C(1700000000123456) },
        { "1.7e9", INT64_C(1700000000000000) },
        { "17E+8", INT64_C(1700000000000000) },
        { "170000000000000e-5", INT64_C(1700000000000000) },
        { "0.0000000000000000000000017e33", INT64_C(1700000000000000) },
        { "1700000000000000000000000000e-18", INT64_C(1700000000000000) },
        { "1e-7", 1 },
        { "0", 1 },
        { "-5", 1 },
        { "0e99999999999", 1 },
        { "1e-99999999999", 1 },
        { "253402300799.999999", INT64_C(253402300799999999) },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        if (time_of(cases[i].json) != cases[i].us)
            fail_msg("%s: %lld", cases[i].json, (long long)time_of(cases[i].json));
}

static void other_times_are_refused(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "now",
        "2027",
        "2027-01-31",
        "2027-01-31T08:30Z",
        "2027-01-31T08:30:00",
        "2027-01-31T08:30:00.Z",
        "2027-01-31T08:30:00+01",
        "2027-01-31T08:30:00+0100",
        "2027-01-31T08:30:00+24:00",
        "2027-01-31T08:30:00+01:60",
        "2027-01-31T08:30:00Z ",
        " 2027-01-31T08:30:00Z",
        "2027-1-31T08:30:00Z",
        "2027-13-01T08:30:00Z",
        "2027-00-01T08:30:00Z",
        "2027-01-00T08:30:00Z",
        "2027-01-32T08:30:00Z",
        "2027-04-31T08:30:00Z",
        "2027-02-29T08:30:00Z",
        "2100-02-29T08:30:00Z",
        "2027-01-31T24:00:00Z",
        "2027-01-31T08:60:00Z",
        "2027-01-31T08:30:61Z",
        "2027/01/31T08:30:00Z",
        "+027-01-31T08:30:00Z",
        "2027-01-31_08:30:00Z",
        "12027-01-31T08:30:00Z",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        char json[64];
        snprintf(json, sizeof json, "\"%s\"", texts[i]);
        time_refused(json, "which is no RFC 3339 time\nhint: for example 20");
    }
    time_refused("\"2027-01-31T08:30:00\\u0000Z\"", "NUL");
    time_refused("true", "\"available_at\" is a boolean, not a time\nhint: ");
    time_refused("{}", "\"available_at\" is an object, not a time");
    time_refused("1700000000000", "beyond the year 9999\nhint: a number counts seconds");
    time_refused("253402300800", "beyond the year 9999");
    time_refused("1e999", "beyond the year 9999");
    time_refused("123456789012345678901234567890", "beyond the year 9999");
    time_refused("\"9999-12-31T23:59:59-01:00\"", "beyond the year 9999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(times_are_rfc_3339, forget),
        cmocka_unit_test_teardown(every_day_is_counted_right, forget),
        cmocka_unit_test_teardown(times_are_unix_seconds, forget),
        cmocka_unit_test_teardown(other_times_are_refused, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
