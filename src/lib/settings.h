/* SPDX-License-Identifier: Apache-2.0 */
/* All settings of a node, with the table that names, bounds, documents and reads them. Modules
 * below get their own small structs filled from this one; there are no globals. */
#ifndef SL_LIB_SETTINGS_H
#define SL_LIB_SETTINGS_H

#include "core/opt.h"

/* Which commands take a setting as a flag (above the bits of core/opt.h). */
enum {
    SL_FOR_DB = 1 << 8, /* every command that opens the database */
    SL_FOR_INIT = 1 << 9,
    SL_FOR_RUN = 1 << 10,
    SL_FOR_PULL = 1 << 11,
    SL_FOR_LOG = 1 << 12 /* every command that logs */
};

/* Where a value came from. */
typedef enum sl_from {
    SL_FROM_DEFAULT,
    SL_FROM_DATABASE_URL,
    SL_FROM_FILE,
    SL_FROM_ENV,
    SL_FROM_FLAG /* or a call of sl_settings_set */
} sl_from;

enum { SL_SETTINGS_MAX = 64 };

typedef enum sl_delivery {
    SL_DELIVERY_AT_LEAST_ONCE,
    SL_DELIVERY_AT_MOST_ONCE,
    SL_DELIVERY_EXACTLY_ONCE
} sl_delivery;

/* A route of the file: topics, the sink they go to, and its own terms. (lib/settings_routes.h) */
typedef struct sl_route_conf {
    char *where; /* "sluice.yaml:12", for messages */
    unsigned
        given; /* a bit for each row of sl_route_table; of the others some are as at the top level */
    sl_opt_list topics; /* patterns, at least one */
    char *sink;
    int delivery;
    int fence;
    int64_t retry_base_ns;
    int64_t retry_max_ns;
    int64_t max_attempts;
    int on_failure;
    int64_t batch;       /* 0: as much as a worker has */
    int64_t concurrency; /* 0: all workers */
    char *format;
    char *target;
    char *source;
    bool tombstones;
    sl_opt_map kafka; /* beside those of the top level */
} sl_route_conf;

typedef struct sl_settings {
    char *db;
    char *table;
    int layout; /* sl_layout, lib/layout.h */
    sl_opt_map debezium;
    sl_opt_map columns;
    int64_t lanes;
    char *inbox_table;
    int64_t connect_timeout_ns;
    int64_t statement_timeout_ns;

    char *sink;
    char *format;
    char *target;
    char *source;
    bool tombstones;  /* an empty payload is no value */
    sl_opt_map kafka; /* properties of librdkafka */
    char *strategy;
    int assign; /* sl_assign */
    char *static_lanes;
    int hold; /* sl_hold */
    int64_t workers;
    int64_t batch;
    int64_t batch_bytes;
    int64_t lease_ns;
    int wake; /* 0 poll, 1 notify */
    int64_t poll_ns;
    int delivery; /* sl_delivery */
    int fence;    /* 0 none, 1 kafka */
    char *journal;
    int64_t retry_base_ns;
    int64_t retry_max_ns;
    int64_t max_attempts;
    int on_failure; /* sl_on_failure */
    int64_t idempotency_keep_ns;
    int64_t retention_ns; /* 0: delivered messages are not kept */
    bool unordered_delay;
    char *node;
    bool drain;

    sl_route_conf *routes; /* none: all topics go to `sink` */
    size_t route_count;

    int log_format; /* 0 logfmt, 1 json */
    int log_level;  /* sl_log_level */

    uint8_t from[SL_SETTINGS_MAX]; /* sl_from, by the table's index */
} sl_settings;

extern const sl_opt sl_settings_table[];

void sl_settings_init(sl_settings *s); /* all defaults */
void sl_settings_fini(sl_settings *s);
SL_CHECK sl_rc sl_settings_set(sl_settings *s, const char *name, const char *value,
                               sl_err *err);

/* The same for a row of the table, noting where the value came from. */
SL_CHECK sl_rc sl_settings_put(sl_settings *s, const sl_opt *o, const char *value, sl_from from,
                               sl_err *err);
/* Was it given, or is it the default? */
bool sl_settings_given(const sl_settings *s, const char *name);
const char *sl_from_name(sl_from from); /* "default", "file", ... */

/* Errors read "sluice.yaml:12: unknown setting 'wokers'" with a hint line "did you mean ...". */
SL_CHECK sl_rc sl_settings_load_file(sl_settings *s, const char *path, sl_err *err);
/* SLUICE_<NAME>, and for secrets SLUICE_<NAME>_FILE. An unknown SLUICE_ variable is refused, but
 * for those that container platforms set for a service of that name. */
SL_CHECK sl_rc sl_settings_load_env(sl_settings *s, char *const *environ_, sl_err *err);
/* DATABASE_URL, as the database unless something says otherwise: call it first. */
SL_CHECK sl_rc sl_settings_load_database_url(sl_settings *s, sl_err *err);
/* Reads a whole small file: settings or a secret. */
SL_CHECK sl_rc sl_settings_read(const char *path, sl_buf *out, sl_err *err);
/* Is anything sent with a fence; is anything delivered exactly once? */
bool sl_settings_fence(const sl_settings *s);
bool sl_settings_exact(const sl_settings *s);
/* Is anything delivered at most once? */
bool sl_settings_consume(const sl_settings *s);
/* Settings that contradict each other. */
SL_CHECK sl_rc sl_settings_check(const sl_settings *s, sl_err *err);

#endif
