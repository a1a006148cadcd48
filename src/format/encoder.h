/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats share, and nobody else needs: the encoder, and the list of headers that it makes. */
#ifndef SL_FORMAT_ENCODER_H
#define SL_FORMAT_ENCODER_H

#include "core/keymap.h"
#include "format/encode.h"

enum { SL_WHY_BYTES = 160 };

/* A format. `encode` finds the producer's headers in the list already: it adds or replaces headers,
 * and returns the value in *value. False: why. */
typedef struct sl_encode_ops {
    const char *name;
    bool (*encode)(sl_encoder *e, const sl_msg *m, sl_str *value, char *why);
} sl_encode_ops;

/* Written by Meson; ends with NULL. The first is the default. */
extern const sl_encode_ops *const sl_encode_all[];

struct sl_encoder {
    const sl_encode_ops *ops;
    char *source;
    char *ce_prefix;
    bool tombstones;
    sl_header *headers;
    size_t count;
    size_t cap;
    sl_keymap seen; /* names of the producer's, only when there are many */
    sl_arena arena; /* texts and numbers of this message */
    sl_buf value;   /* of a format that makes one */
};

/* Fills why; false, to be returned. */
bool sl_encode_refuse(char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The JSON object of the producer, as headers in its order. False: why. */
bool sl_headers_take(sl_encoder *e, sl_str json, char *why);
/* Ours: takes the place of the producer's of that name, in any spelling. The bytes are borrowed. */
void sl_headers_put(sl_encoder *e, sl_str name, sl_str value);
void sl_headers_put_int(sl_encoder *e, sl_str name, int64_t v);
/* sluice-id, sluice-type and sluice-epoch. */
void sl_headers_put_ours(sl_encoder *e, const sl_msg *m);
/* In any spelling; NULL: there is none. */
const sl_header *sl_headers_find(const sl_encoder *e, sl_str name);

#endif
