/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a journal as the file system sees it: one process has it, and another one takes its place at
 * once or not at all. PATH.new is only ever touched by who holds the lock on PATH.
 *
 * Errors: SL_AGAIN, the disk is full, and PATH is as it was; else SL_OPERATOR.
 */
#ifndef SL_JOURNAL_FILE_H
#define SL_JOURNAL_FILE_H

#include "core/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens or creates (0600, empty) and locks it, until it is closed; removes what is left of a new file that
 * did not come so far. */
SL_CHECK sl_rc sl_jf_open(int *fd, const char *path, sl_err *err);

/* A new file of zeros, locked, beside PATH. On failure there is none. */
SL_CHECK sl_rc sl_jf_make(int *fd, const char *path, uint64_t bytes, uint64_t *inode,
                          sl_err *err);
/* Closes and removes what sl_jf_make made. */
void sl_jf_abandon(int fd, const char *path);
/* Syncs it and gives it the name PATH, for good. Only if *named is set on failure, it has the name, but
 * perhaps not after the next power cut. */
SL_CHECK sl_rc sl_jf_replace(int fd, const char *path, bool *named, sl_err *err);

/* A second name for PATH, PATH.bad or the like, which *name becomes (free it). */
SL_CHECK sl_rc sl_jf_keep(const char *path, char **name, sl_err *err);

/* All bytes or none that count: a short write is a failure. */
SL_CHECK sl_rc sl_jf_write(int fd, const char *path, const void *bytes, size_t n, uint64_t at,
                           sl_err *err);
SL_CHECK sl_rc sl_jf_sync_folder(const char *path, sl_err *err);

#endif
