/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as a broker or a web server takes it: bytes, and headers beside them. docs/formats.md
 * tells what each format looks like.
 *
 * An encoder belongs to one thread. It reuses its memory for each message, so that there is one
 * encoded message at a time; what needs no change is not copied, and so points into the message.
 */
#ifndef SL_FORMAT_ENCODE_H
#define SL_FORMAT_ENCODE_H

#include "core/batch.h"
#include "core/buf.h"
#include "core/err.h"

typedef struct sl_header {
    sl_str name;
    sl_str value; /* p NULL: a header without a value */
} sl_header;

typedef struct sl_encoded {
    sl_str value; /* p NULL: none, which Kafka calls a tombstone */
    const sl_header *headers;
    size_t header_count;
} sl_encoded; /* good until the encoder is used again, or the message is gone */

typedef struct sl_encode_conf {
    const char *format;    /* "raw"; NULL: the default */
    const char *source;    /* of CloudEvents; NULL: "sluice" */
    const char *ce_prefix; /* "ce_" in Kafka, "ce-" in HTTP; NULL: "ce_" */
    bool tombstones;       /* an empty payload is no value, whatever the format */
} sl_encode_conf;

typedef struct sl_encoder sl_encoder;

/* The texts of conf are copied. SL_REFUSED names the formats there are. */
SL_CHECK sl_rc sl_encoder_new(sl_encoder **out, const sl_encode_conf *conf, sl_err *err);
void sl_encoder_free(sl_encoder *e);
/* False: the message cannot be put into this form, `why` says so for the operator (no payload in
 * it). Names and values are as the producer wrote them, a line break or a NUL included:
 * what a protocol does not allow is its sink's business. */
bool sl_encode(sl_encoder *e, const sl_msg *m, sl_encoded *out, char why[160]);

#endif
