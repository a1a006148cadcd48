/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of formats: a message, and what became of it as text. */
#ifndef TESTS_UNIT_FORMAT_ENCODED_H
#define TESTS_UNIT_FORMAT_ENCODED_H

#include "format/encode.h"
#include "format/format.h"
#include "unit/unit.h"

static inline sl_msg a_message(void)
{
    return (sl_msg){
        .id = 42,
        .epoch = 7,
        .attempt = 3,
        .created_us = INT64_C(1700000000123456), /* 2023-11-14T22:13:20.123456Z */
        .topic = SL_STR("orders"),
        .key = SL_STR("order:9182"),
        .type = SL_STR("paid"),
        .content_type = SL_STR("application/json"),
        .headers = SL_NONE,
        .payload = SL_STR("{\"paid\":true}"),
    };
}

static inline sl_encoder *encoder_of(const char *format)
{
    sl_encoder *e = NULL;
    sl_err err = { 0 };
    sl_encode_conf conf = { .format = format, .source = "/shop" };
    assert_int_equal(sl_encoder_new(&e, &conf, &err), SL_OK);
    assert_non_null(e);
    return e;
}

/* name=value for each header, a line each; a name alone has no value. */
static inline char *headers_text(const sl_encoded *got)
{
    sl_buf b = { 0 };
    for (size_t i = 0; i < got->header_count; i++) {
        sl_buf_put(&b, got->headers[i].name.p, got->headers[i].name.n);
        if (got->headers[i].value.p) {
            sl_buf_putc(&b, '=');
            sl_buf_put(&b, got->headers[i].value.p, got->headers[i].value.n);
        }
        sl_buf_putc(&b, '\n');
    }
    char *text = strdup(sl_buf_text(&b));
    sl_buf_fini(&b);
    return text;
}

/* With a value of NULL: none is wanted. */
static inline void expect_encoded(const char *format, const sl_msg *m, const char *value,
                                  const char *headers)
{
    sl_encoder *e = encoder_of(format);
    sl_encoded got;
    char why[160] = "";
    if (!sl_encode(e, m, &got, why))
        fail_msg("%s", why);
    char *text = headers_text(&got);
    assert_string_equal(text, headers);
    if (value) {
        assert_non_null(got.value.p);
        char *copy = strndup(got.value.p, got.value.n);
        assert_string_equal(copy, value);
        assert_int_equal(got.value.n, strlen(value));
        free(copy);
    } else {
        assert_null(got.value.p);
    }
    free(text);
    sl_encoder_free(e);
}

static inline void expect_refused(const char *format, const sl_msg *m, const char *reason)
{
    sl_encoder *e = encoder_of(format);
    sl_encoded got;
    char why[160] = "";
    assert_false(sl_encode(e, m, &got, why));
    assert_string_equal(why, reason);
    sl_encoder_free(e);
}

#endif
