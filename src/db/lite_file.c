/* SPDX-License-Identifier: Apache-2.0 */
#include "db/lite_file.h"

#include "core/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

const char *sl_lite_remote_name(long type)
{
    static const struct {
        uint32_t type;
        const char *name;
    } remote[] = {
        { 0x6969, "NFS" },
        { 0x517b, "SMB" },
        { 0xfe534d42, "SMB" },
        { 0xff534d42, "CIFS" },
    };
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        if ((uint32_t)type == remote[i].type)
            return remote[i].name;
    return NULL;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? sl_strndup(path, (size_t)(slash - path) + 1) : sl_strdup(".");
}

const char *sl_lite_file_remote(const char *path)
{
    struct statfs fs;
    char *folder = folder_of(path);
    bool known = statfs(path, &fs) == 0 || statfs(folder, &fs) == 0; /* it may be a new file */
    free(folder);
    return known ? sl_lite_remote_name((long)fs.f_type) : NULL; /* else opening it will tell */
}

static int64_t bytes_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static bool may_write(const char *path)
{
    return access(path, W_OK) == 0;
}

void sl_lite_file_look(const char *path, sl_lite_file *out)
{
    char *folder = folder_of(path);
    char *wal = sl_asprintf("%s-wal", path);
    *out = (sl_lite_file){
        .remote = sl_lite_file_remote(path),
        .writable = may_write(path),
        .folder_writable = may_write(folder),
        .bytes = bytes_of(path),
        .wal_bytes = bytes_of(wal),
    };
    free(folder);
    free(wal);
}
