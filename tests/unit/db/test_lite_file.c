/* SPDX-License-Identifier: Apache-2.0 */
#include "db/lite_file.h"

#include "unit/unit.h"

#include <stdio.h>
#include <sys/stat.h>

static void network_file_systems_are_known(void **state)
{
    (void)state;
    assert_string_equal(sl_lite_remote_name(0x6969), "NFS");
    assert_string_equal(sl_lite_remote_name(0x517b), "SMB");
    assert_string_equal(sl_lite_remote_name((long)0xfe534d42), "SMB");
    assert_string_equal(sl_lite_remote_name((long)0xff534d42), "CIFS");
    assert_string_equal(sl_lite_remote_name((long)(int32_t)0xff534d42), "CIFS"); /* 32 bits */
    assert_null(sl_lite_remote_name(0xef53));                                    /* ext4 */
    assert_null(sl_lite_remote_name(0x01021994));                                /* tmpfs */
    assert_null(sl_lite_remote_name(0));
}

static void put(const char *path, size_t bytes)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < bytes; i++)
        fputc('x', f);
    fclose(f);
}

static void a_file_is_looked_at(void **state)
{
    (void)state;
    char folder[] = "/tmp/sluice-lite-XXXXXX", path[64], wal[64];
    sl_lite_file f;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.db", folder);
    snprintf(wal, sizeof wal, "%s/a.db-wal", folder);
    put(path, 10);
    sl_lite_file_look(path, &f);
    assert_true(f.writable && f.folder_writable);
    assert_int_equal(f.bytes, 10);
    assert_int_equal(f.wal_bytes, 0);
    put(wal, 3);
    sl_lite_file_look(path, &f);
    assert_int_equal(f.wal_bytes, 3);
    chmod(path, 0444);
    chmod(folder, 0555);
    sl_lite_file_look(path, &f);
    if (geteuid() != 0) { /* who may write anything */
        assert_false(f.writable);
        assert_false(f.folder_writable);
    }
    chmod(folder, 0755);
    unlink(path);
    unlink(wal);
    sl_lite_file_look(path, &f);
    assert_false(f.writable);
    assert_true(f.folder_writable);
    assert_int_equal(f.bytes, 0);
    rmdir(folder);
}

static void a_bare_name_is_in_this_folder(void **state)
{
    (void)state;
    sl_lite_file f;
    sl_lite_file_look("there-is-no-such-file.db", &f);
    assert_false(f.writable);
    assert_int_equal(f.bytes, 0);
    sl_lite_file_look("/nowhere/at/all.db", &f);
    assert_null(f.remote);
    assert_false(f.folder_writable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_file_systems_are_known),
        cmocka_unit_test(a_file_is_looked_at),
        cmocka_unit_test(a_bare_name_is_in_this_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
