/* SPDX-License-Identifier: Apache-2.0 */
/* What can be told of a SQLite file without opening it: where it lies, and who may write it. */
#ifndef SL_DB_LITE_FILE_H
#define SL_DB_LITE_FILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_lite_file {
    const char *remote; /* NULL, or the kind of network file system: "NFS" */
    bool writable;      /* by this process, as it runs */
    bool folder_writable;
    int64_t bytes;
    int64_t wal_bytes; /* of the file -wal beside it; 0: there is none */
} sl_lite_file;

/* All false and 0 for a file that is not there. */
void sl_lite_file_look(const char *path, sl_lite_file *out);

/* The kind of network file system that the file, or else its folder, lies on; NULL: none that is known. */
const char *sl_lite_file_remote(const char *path);
/* The same by statfs(2)'s f_type. */
const char *sl_lite_remote_name(long type);

#endif
