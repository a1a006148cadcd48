/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `sluice doctor`: each reads one thing (sql/<dialect>/doctor/) and has it judged
 * (cli/doctor_judge.h). Nothing is changed. */
#ifndef SL_CLI_DOCTOR_LOOK_H
#define SL_CLI_DOCTOR_LOOK_H

#include "cli/doctor_judge.h"
#include "cli/open.h"
#include "cli/who.h"

typedef struct sl_look {
    const sl_settings *settings;
    const sl_names *names;
    sl_db *db; /* opened by sl_conf_look_db */
    sl_norms norms;
    bool deep;            /* what reads the whole file, too */
    bool sinks;           /* what the sinks have to say, too */
    const char *sink_url; /* of this one, in place of those of the settings; or NULL */
} sl_look;

/* While it is under way. */
typedef struct sl_looking {
    const sl_look *look;
    sl_db *db;
    sl_findings *out;
    sl_schema schema;
    bool ours;  /* there are tables of ours, as far as can be seen */
    sl_who who; /* nodes, if they could be read */
    bool who_known;
} sl_looking;

/* Makes all checks. One that fails is a finding of its own; only a database that is gone, or a schema that
 * is newer than the program, ends it. */
SL_CHECK sl_rc sl_look_all(const sl_look *look, sl_findings *out, sl_err *err);

/* A column as text of its own; free it. */
char *sl_look_text(sl_val v);
/* Runs a statement without parameters; `row` gets `ctx`. */
SL_CHECK sl_rc sl_look_ask(sl_looking *l, const char *stmt, sl_row_fn row, void *ctx,
                           sl_err *err);

/* Those of what init made: cli/doctor_made.c. */
SL_CHECK sl_rc sl_look_schema(sl_looking *l,
                              sl_err *err); /* the first: fills schema and ours */
SL_CHECK sl_rc sl_look_columns(sl_looking *l, sl_err *err);
SL_CHECK sl_rc sl_look_capture(sl_looking *l, sl_err *err);
SL_CHECK sl_rc sl_look_indexes(sl_looking *l, sl_err *err);
SL_CHECK sl_rc sl_look_grants(sl_looking *l, sl_err *err);

#endif
