/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict scanner of JSON text (RFC 8259). It judges by grammar alone and cuts values out byte
 * for byte. A parser that builds values cannot: it refuses numbers beyond its range, \u0000 or
 * half a surrogate pair, all of which are valid, and forgets how a number was spelled.
 *
 * It does not look at the encoding: check with sl_is_utf8 first.
 */
#ifndef SL_FORMAT_JSON_H
#define SL_FORMAT_JSON_H

#include "core/arena.h"

enum { SL_JSON_DEPTH = 512 }; /* deeper nesting is refused: readers of our lines recurse */

typedef struct sl_json {
    const char *p;
    const char *end;
    const char *why; /* NULL, or what is wrong at p */
    bool inside;     /* of the object that sl_json_member walks through */
} sl_json;           /* set p and end, the rest zero */

void sl_json_space(sl_json *j);
/* Cuts out one value, without the space around it. False: j->why. */
bool sl_json_value(sl_json *j, sl_str *value);
/* The next member of the object at p; the name keeps its quotes. False: the object has ended,
 * or j->why is set. */
bool sl_json_member(sl_json *j, sl_str *name, sl_str *value);
/* What a string, as it was cut out, stands for. False: half a surrogate pair stands for
 * nothing. */
bool sl_json_text(sl_arena *a, sl_str quoted, sl_str *text);

#endif
