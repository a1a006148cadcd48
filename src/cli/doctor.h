/* SPDX-License-Identifier: Apache-2.0 */
/* What `sluice doctor` found: a list of findings, each with a state and a remedy, and how it is shown. */
#ifndef SL_CLI_DOCTOR_H
#define SL_CLI_DOCTOR_H

#include "core/buf.h"
#include "core/err.h"

#include <stdint.h>
#include <stdio.h>

typedef enum sl_health {
    SL_FINE,  /* "ok" */
    SL_WARN,  /* "warn": will hurt if nothing changes */
    SL_BAD,   /* "bad": hurts now, or may lose something */
    SL_UNSEEN /* "unknown": could not be looked at */
} sl_health;

enum { SL_HEALTHS = SL_UNSEEN + 1 };

typedef struct sl_finding {
    sl_health state;
    const char *check; /* "indexes": a literal */
    char *found;
    char *todo; /* NULL: nothing */
} sl_finding;

typedef struct sl_findings {
    sl_finding *v;
    size_t count, cap;
} sl_findings; /* zero-initialise */

const char *sl_health_name(sl_health h);

/* Adds one; a remedy may follow by sl_advise, before the next is added. */
void sl_found(sl_findings *all, sl_health state, const char *check, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void sl_advise(sl_findings *all, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What kept a check from being made: the text, and its hint as the remedy. */
void sl_found_unseen(sl_findings *all, const char *check, const sl_err *err);
void sl_findings_fini(sl_findings *all);

size_t sl_findings_of(const sl_findings *all, sl_health state); /* how many */
/* bad before warn before unknown before ok; ok of an empty list. */
sl_health sl_findings_worst(const sl_findings *all);

void sl_findings_json(const sl_findings *all, const char *table, sl_buf *out);
/* A table that lines up; where it is wider than `width` (0: no limit), text goes on in lines below. */
void sl_findings_print(const sl_findings *all, size_t width, FILE *out);

/* "812 bytes", "64 kB", "1.5 GB", for people. */
void sl_put_bytes(sl_buf *out, int64_t bytes);

#endif
