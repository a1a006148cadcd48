/* SPDX-License-Identifier: Apache-2.0 */
/* How a message becomes bytes, and bytes become a message: the JSON line that `file:` and
 * `stdout:` write and `sluice pull` prints, and the JSON line that `sluice push --lines` reads.
 */
#ifndef SL_FORMAT_FORMAT_H
#define SL_FORMAT_FORMAT_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/err.h"
#include "core/utf8.h"

/*
 * Appends one JSON object and a line end:
 *   {"id":1,"topic":"orders","key":"order:9182","type":"","payload":{...},"headers":{},"attempt":1,
 *    "worker":"n1/2","epoch":7}
 * A JSON payload (by content type and by being valid) is embedded as it is, line breaks between
 * its tokens made spaces; other UTF-8 text is a string; other bytes are "payload_base64". A
 * content type other than application/json is added as "content_type"; "key" is null when
 * absent, and so is the payload. `extra` is put before the closing brace, NULL or e.g.
 * ",\"receipt\":\"12:7\"".
 */
void sl_format_line(sl_buf *out, const sl_msg *m, const char *worker, const char *extra);
/* Of such a line what the producer wrote, "topic" to "headers", without a comma at either end. */
void sl_format_members(sl_buf *out, const sl_msg *m);
void sl_format_payload(sl_buf *out, const sl_msg *m); /* "payload" or "payload_base64" alone */

/*
 * {"topic":..,"key":..,"payload":<any JSON> or "payload_base64":..,"type":..,"headers":{},
 *  "content_type":..,"idempotency_key":..,"available_at":<RFC 3339 text or Unix seconds>}
 * The payload's bytes are the very bytes of the line, except that a JSON string with a
 * content_type that is not JSON stands for its text. "id", "attempt", "worker", "epoch" and
 * "receipt" are ignored, so that what `file:` wrote or `sluice pull` printed can be pushed
 * again; only text that calls itself JSON and is not, printed as a string, comes back as a JSON
 * string. An optional member may be null, which is as good as absent. The strings live in the
 * arena. SL_REFUSED says what is wrong.
 */
SL_CHECK sl_rc sl_line_parse(sl_draft *out, const char *line, size_t bytes, sl_arena *arena,
                             sl_err *err);

bool sl_is_json(sl_str s);                 /* one valid JSON value, UTF-8, nothing after it */
bool sl_is_json_type(sl_str content_type); /* application/json, text/json, anything +json */
/* Quoted and escaped; a byte that is not UTF-8 becomes U+FFFD. */
void sl_json_string(sl_buf *out, sl_str s);

/* Valid JSON, its line breaks made spaces: they stand only between tokens, where a space is as good;
 * so it stays the same value, and one line. */
void sl_json_one_line(sl_buf *out, sl_str json);

enum { SL_INT_BYTES = 20 };
/* Decimal, at the end of `room`: printf would take longer than all the rest of a line. */
sl_str sl_int_text(char room[SL_INT_BYTES], int64_t v);

void sl_base64_encode(sl_buf *out, sl_str s);
bool sl_base64_decode(sl_buf *out, sl_str s); /* false: not base64 */

#endif
