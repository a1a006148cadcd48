/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of libraries and servers that are known to hurt. Only what public release notes say, and only
 * what touches what Sluice does with them. A distribution may have mended a fault under an old number:
 * that cannot be seen from here, so a fault is a warning, but for one that loses messages. */
#ifndef SL_CLI_DOCTOR_FAULTS_H
#define SL_CLI_DOCTOR_FAULTS_H

#include "cli/doctor.h"

/* "libpq", "sqlite3", "librdkafka", "postgres" (the server), with the version as that library counts:
 * 150004 is libpq 15.4, 3040001 is SQLite 3.40.1, 0x020300ff is librdkafka 2.3.0. */
void sl_judge_library(sl_findings *out, const char *check, const char *library,
                      int64_t version);
/* That version for people. */
void sl_put_version(sl_buf *out, const char *library, int64_t version);

#endif
