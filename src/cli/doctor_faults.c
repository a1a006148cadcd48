/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_faults.h"

/* PostgreSQL's, as in PQlibVersion; SQLite's, as in SQLITE_VERSION_NUMBER; librdkafka's, a final release. */
#define PG(major, minor) ((major)*10000 + (minor))
#define LITE(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define RDK(major, minor, patch) ((major) << 24 | (minor) << 16 | (patch) << 8 | 0xff)

/* CVE-2025-12818, release notes of 18.1, 17.7, 16.11, 15.15, 14.20 and 13.23. */
#define WRAPAROUND                                                                             \
    "a server's very large answer may be written beyond its buffer (CVE-2025-12818)"
/* https://sqlite.org/wal.html#walresetbug; mended in 3.51.3, 3.50.7 and 3.44.6. */
#define WAL_RESET                                                                              \
    "two connections that checkpoint and write at once may corrupt the file (the WAL-reset "   \
    "bug)"

static const struct {
    const char *library;
    int64_t from, before; /* the first that has it, the first that has not */
    const char *fault, *fixed;
    bool loses; /* messages that were reported as delivered */
} faults[] = {
    { "libpq", 0, PG(13, 23), WRAPAROUND, "13.23" },
    { "libpq", PG(14, 0), PG(14, 20), WRAPAROUND, "14.20" },
    { "libpq", PG(15, 0), PG(15, 15), WRAPAROUND, "15.15" },
    { "libpq", PG(16, 0), PG(16, 11), WRAPAROUND, "16.11" },
    { "libpq", PG(17, 0), PG(17, 7), WRAPAROUND, "17.7" },
    { "libpq", PG(18, 0), PG(18, 1), WRAPAROUND, "18.1" },
    { "libpq", PG(14, 0), PG(14, 5),
      "answers of statements that are sent together may be mixed up (pipeline mode, idle "
      "state)",
      "14.5" },
    { "sqlite3", LITE(3, 7, 0), LITE(3, 44, 6), WAL_RESET, "3.44.6, 3.50.7 or 3.51.3" },
    { "sqlite3", LITE(3, 45, 0), LITE(3, 50, 7), WAL_RESET, "3.50.7 or 3.51.3" },
    { "sqlite3", LITE(3, 51, 0), LITE(3, 51, 3), WAL_RESET, "3.51.3" },
    { "librdkafka", 0, RDK(1, 9, 0),
      "a topic that vanishes from the metadata for a moment may lose messages that were "
      "reported as delivered",
      "1.9.0", true },
    { "librdkafka", RDK(2, 2, 0), RDK(2, 5, 0),
      "the idempotent producer may fail for good when it retries a large batch", "2.5.0" },
    { "postgres", PG(14, 0), PG(14, 4),
      "an index that was made or rebuilt CONCURRENTLY may lack rows",
      "14.4, then REINDEX those indexes" },
    { "postgres", 0, PG(14, 0), "its major version gets no fixes any more (end of life)",
      "a newer major version" },
};

void sl_put_version(sl_buf *out, const char *library, int64_t version)
{
    long long v = version;
    if (!strcmp(library, "librdkafka"))
        sl_buf_printf(out, "%lld.%lld.%lld", v >> 24 & 0xff, v >> 16 & 0xff, v >> 8 & 0xff);
    else if (!strcmp(library, "sqlite3"))
        sl_buf_printf(out, "%lld.%lld.%lld", v / 1000000, v / 1000 % 1000, v % 1000);
    else
        sl_buf_printf(out, "%lld.%lld", v / 10000, v % 10000);
}

void sl_judge_library(sl_findings *out, const char *check, const char *library, int64_t version)
{
    sl_buf text = { 0 };
    size_t before = out->count;
    sl_put_version(&text, library, version);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (!strcmp(faults[i].library, library) && version >= faults[i].from &&
            version < faults[i].before) {
            sl_found(out, faults[i].loses ? SL_BAD : SL_WARN, check, "%s %s: %s", library,
                     sl_buf_text(&text), faults[i].fault);
            sl_advise(out, "upgrade to %s, unless your distribution has mended it",
                      faults[i].fixed);
        }
    if (out->count == before)
        sl_found(out, SL_FINE, check, "%s %s", library, sl_buf_text(&text));
    sl_buf_fini(&text);
}
