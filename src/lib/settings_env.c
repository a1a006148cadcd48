/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SLUICE_WORKERS=8. A variable that is empty counts as not set: compose files and unit files
 * make such variables out of what their author left out. One that is misspelt is refused, so
 * that it cannot be ignored for months; those that Kubernetes and Docker make up for a service
 * whose name begins with "sluice" must not stop the program, though.
 */
#include "lib/settings.h"

#include <ctype.h>

static const char prefix[] = "SLUICE_";

/* Is `var` (n bytes, behind the prefix) this setting's name in capitals, then `suffix`? */
static bool is_variable_of(const sl_opt *o, const char *var, size_t n, const char *suffix)
{
    size_t length = strlen(o->name);

    if (n != length + strlen(suffix) || memcmp(var + length, suffix, strlen(suffix)) != 0)
        return false;
    for (size_t i = 0; i < length; i++)
        if (var[i] != toupper((unsigned char)o->name[i]))
            return false;
    return true;
}

static const sl_opt *find_variable(const char *var, size_t n, const char *suffix)
{
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        if (!(o->flags & SL_OPT_CLI_ONLY) && is_variable_of(o, var, n, suffix))
            return o;
    return NULL;
}

static bool ends_with(const char *s, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n >= m && memcmp(s + n - m, end, m) == 0;
}

/* SLUICE_PORT, SLUICE_SERVICE_HOST, SLUICE_DB_PORT_5432_TCP_ADDR and their like. */
static bool is_platform(const char *var, size_t n)
{
    return strncmp(var, "PORT", 4) == 0 || strncmp(var, "SERVICE_", 8) == 0 ||
           ends_with(var, n, "_PORT") || memmem(var, n, "_PORT_", 6) ||
           memmem(var, n, "_SERVICE_", 9);
}

/* Read by the program itself, by a node of sluice bench, or by the fault points of a test build. */
static bool is_not_a_setting(const char *var, size_t n)
{
    return (n == 6 && memcmp(var, "CONFIG", n) == 0) ||
           (n == 5 && memcmp(var, "FAULT", n) == 0) || (n == 3 && memcmp(var, "TAP", n) == 0) ||
           (n == 6 && memcmp(var, "RECORD", n) == 0);
}

static sl_rc fail_unknown(const char *var, size_t n, sl_err *err)
{
    sl_buf name = { 0 }, hint = { 0 };

    for (size_t i = 0; i < n; i++)
        sl_buf_putc(&name, (char)tolower((unsigned char)var[i]));
    const char *nearest = sl_opt_nearest(sl_settings_table, sl_buf_text(&name));
    if (nearest) {
        sl_buf_printf(&hint, "\nhint: did you mean %s", prefix);
        while (*nearest)
            sl_buf_putc(&hint, (char)toupper((unsigned char)*nearest++));
        sl_buf_putc(&hint, '?');
    }
    sl_rc rc = sl_fail(err, SL_REFUSED, "unknown variable %s%.*s%s", prefix,
                       n > 80 ? 80 : (int)n, var, sl_buf_text(&hint));
    sl_buf_fini(&name);
    sl_buf_fini(&hint);
    return rc;
}

/* Editors and `echo` end a file with a line end that is no part of the secret. */
static void trim_line_end(sl_buf *text)
{
    if (text->n == 0 || text->p[text->n - 1] != '\n')
        return;
    text->n--;
    if (text->n > 0 && text->p[text->n - 1] == '\r')
        text->n--;
    text->p[text->n] = '\0';
}

static sl_rc put_file(sl_settings *s, const sl_opt *o, const char *path, sl_err *err)
{
    sl_buf text = { 0 };

    sl_rc rc = sl_settings_read(path, &text, err);
    trim_line_end(&text);
    if (rc == SL_OK && strlen(sl_buf_text(&text)) != text.n)
        rc = sl_fail(err, SL_REFUSED, "'%s' holds a NUL character", path);
    if (rc == SL_OK)
        rc = sl_settings_put(s, o, sl_buf_text(&text), SL_FROM_ENV, err);
    sl_buf_fini(&text);
    return rc;
}

static sl_rc put_variable(sl_settings *s, const char *var, size_t n, const char *value,
                          sl_err *err)
{
    const sl_opt *plain = find_variable(var, n, "");
    const sl_opt *file = plain ? NULL : find_variable(var, n, "_FILE");
    const sl_opt *o = plain ? plain : file;
    sl_rc rc;

    if (!o && (is_not_a_setting(var, n) || is_platform(var, n)))
        return SL_OK;
    if (!o)
        return fail_unknown(var, n, err);
    if (!*value)
        return SL_OK;
    if (file && !(file->flags & SL_OPT_SECRET))
        rc = sl_fail(err, SL_REFUSED, "%s cannot be read from a file\nhint: only secrets can",
                     file->name);
    else if (s->from[o - sl_settings_table] == SL_FROM_ENV)
        rc = sl_fail(err, SL_REFUSED, "%s is set twice in the environment", o->name);
    else
        rc = file ? put_file(s, o, value, err) : sl_settings_put(s, o, value, SL_FROM_ENV, err);
    return rc == SL_OK ? SL_OK : sl_fail_in(err, "%s%.*s", prefix, (int)n, var);
}

sl_rc sl_settings_load_env(sl_settings *s, char *const *environ_, sl_err *err)
{
    sl_err unseen = { 0 };

    err = err ? err : &unseen; /* the name is put before a text that must be there */
    for (char *const *e = environ_; *e; e++) {
        const char *equals = strchr(*e, '=');
        if (!equals || strncmp(*e, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *var = *e + sizeof prefix - 1;
        sl_rc rc = put_variable(s, var, (size_t)(equals - var), equals + 1, err);
        if (rc != SL_OK)
            return rc;
    }
    return SL_OK;
}
