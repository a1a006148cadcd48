/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of Debezium's outbox event router, by their own names. What is not supported is refused, with a reason,
 * unless it is given the value that it has anyway: https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html
 */
#ifndef SL_DB_DEBEZIUM_H
#define SL_DB_DEBEZIUM_H

#include "core/buf.h"
#include "core/err.h"
#include "core/opt.h"

/* `column:header:alias` of table.fields.additional.placement. */
typedef struct sl_placed {
    char *column;
    char *alias; /* the header's name */
} sl_placed;

typedef struct sl_debezium {
    /* Columns of their table. The texts belong to the options, or are constant. */
    const char *id, *key, *type, *payload, *topic, *tracing;
    const char *timestamp;   /* NULL: the time of the insert */
    bool type_given;         /* else it need not be there */
    const char *replacement; /* "outbox.event.${routedByValue}" */
    bool tombstone;          /* of an empty payload too */
    bool error_on_missing;   /* a column that is to be placed */
    sl_placed *headers;
    size_t header_count;
} sl_debezium;

SL_CHECK sl_rc sl_debezium_read(sl_debezium *out, const sl_opt_map *options, sl_err *err);
void sl_debezium_fini(sl_debezium *d);

/* Kafka's topic, as the setting `target` has it: outbox.event.{topic}. */
void sl_debezium_target(const sl_debezium *d, sl_buf *out);
/* What the trigger is made by, as one text: it tells whether it was made by the same. */
void sl_debezium_text(const sl_debezium *d, sl_buf *out);

#endif
