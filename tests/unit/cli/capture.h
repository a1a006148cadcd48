/* SPDX-License-Identifier: Apache-2.0 */
/* What a command prints: standard output or standard error, kept in a file of its own. */
#ifndef TESTS_UNIT_CLI_CAPTURE_H
#define TESTS_UNIT_CLI_CAPTURE_H

#include "unit/unit.h"

#include <stdio.h>

typedef struct capture {
    FILE *stream, *file;
    int saved_fd;
    char text[32768];
} capture;

static inline void capture_begin(capture *c, FILE *stream)
{
    fflush(stream);
    c->stream = stream;
    c->file = tmpfile();
    assert_non_null(c->file);
    c->saved_fd = dup(fileno(stream));
    assert_true(dup2(fileno(c->file), fileno(stream)) >= 0);
}

static inline const char *capture_end(capture *c)
{
    fflush(c->stream);
    dup2(c->saved_fd, fileno(c->stream));
    close(c->saved_fd);
    rewind(c->file);
    size_t n = fread(c->text, 1, sizeof c->text - 1, c->file);
    c->text[n] = '\0';
    fclose(c->file);
    return c->text;
}

#endif
