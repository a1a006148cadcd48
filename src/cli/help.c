/* SPDX-License-Identifier: Apache-2.0 */
/* Help is laid out in a buffer first, as wide as the terminal, and printed at once. */
#include "cli/help.h"

#include "core/mem.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80, WIDTH_MIN = 50, WIDTH_MAX = 100, LEFT_MAX = 30 };

typedef struct page {
    sl_buf text;
    size_t width;
    bool bold;
} page;

/* ---- Layout ---- */

static size_t width_of(FILE *out)
{
    struct winsize size;
    size_t width = WIDTH_DEFAULT;

    if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* https://no-color.org: any value but an empty one. */
static bool may_be_bold(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static page page_for(FILE *out)
{
    return (page){ .width = width_of(out), .bold = may_be_bold(out) };
}

static void print(page *p, FILE *out)
{
    fputs(sl_buf_text(&p->text), out);
    sl_buf_fini(&p->text);
}

static void put_bold(page *p, const char *text)
{
    sl_buf_printf(&p->text, p->bold ? "\033[1m%s\033[0m" : "%s", text);
}

static void put_heading(page *p, const char *text)
{
    sl_buf_putc(&p->text, '\n');
    put_bold(p, text);
    sl_buf_putc(&p->text, '\n');
}

void sl_help_wrap(sl_buf *out, const char *text, size_t column, const char *prefix,
                  size_t width)
{
    bool fresh = true; /* no word on this line yet */

    for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (!fresh && column + 1 + n > width) {
            sl_buf_printf(out, "\n%s", prefix);
            column = strlen(prefix);
            fresh = true;
        }
        if (!fresh)
            sl_buf_putc(out, ' ');
        sl_buf_put(out, p, n);
        column += n + !fresh;
        fresh = false;
        p += n;
    }
}

/* Paragraphs are wrapped; lines that begin with a blank are examples and stay as they are. */
static void put_prose(page *p, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = sl_strndup(text, n);
        if (*line == ' ')
            sl_buf_puts(&p->text, line);
        else
            sl_help_wrap(&p->text, line, 0, "", p->width);
        sl_buf_putc(&p->text, '\n');
        free(line);
        text += n + (text[n] == '\n');
    }
}

/* "Usage: " and the synopsis, whose further lines stand below its first. */
static void put_usage(page *p, const char *synopsis)
{
    put_bold(p, "Usage:");
    for (bool first = true; *synopsis; first = false) {
        size_t n = strcspn(synopsis, "\n");
        sl_buf_printf(&p->text, "%s%.*s\n", first ? " " : "       ", (int)n, synopsis);
        synopsis += n + (synopsis[n] == '\n');
    }
}

/* ---- Tables of flags ---- */

static char *left_of(const sl_opt *o)
{
    char *flag = sl_cli_flag_name(o);
    char *left = o->type == SL_OPT_BOOL
                     ? sl_asprintf("--%s", flag)
                     : sl_asprintf("--%s %s", flag, o->arg ? o->arg : "VALUE");
    free(flag);
    return left;
}

static void put_row(page *p, const char *left, const char *right, size_t left_width)
{
    size_t column = left_width + 4;
    char *indent = sl_asprintf("%*s", (int)column, "");

    sl_buf_puts(&p->text, "  ");
    put_bold(p, left);
    if (strlen(left) > left_width)
        sl_buf_printf(&p->text, "\n%s", indent);
    else
        sl_buf_printf(&p->text, "%*s", (int)(left_width - strlen(left) + 2), "");
    sl_help_wrap(&p->text, right, column, indent, p->width);
    sl_buf_putc(&p->text, '\n');
    free(indent);
}

static void put_option(page *p, const sl_opt *o, size_t left_width)
{
    bool show = o->def && *o->def && strcmp(o->def, "false") != 0;
    char *left = left_of(o);
    char *right = show ? sl_asprintf("%s (default: %s)", o->help, o->def) : sl_strdup(o->help);

    put_row(p, left, right, left_width);
    free(left);
    free(right);
}

static size_t widest(const sl_opt *table, const sl_cmd *cmd, size_t width)
{
    for (const sl_opt *o = table; o && o->name; o++) {
        char *left = left_of(o);
        size_t n = strlen(left);
        if ((table == cmd->opts || sl_cli_takes(cmd, o)) && n <= LEFT_MAX && n > width)
            width = n;
        free(left);
    }
    return width;
}

static void put_options(page *p, const sl_cmd *cmd)
{
    size_t width = strlen("-c, --config FILE");
    width = widest(cmd->opts, cmd, width);
    width = widest(sl_settings_table, cmd, width);

    put_heading(p, "Flags:");
    for (const sl_opt *o = cmd->opts; o && o->name; o++)
        put_option(p, o, width);
    if (cmd->groups)
        put_row(p, "-c, --config FILE",
                "Read settings from this YAML file; else SLUICE_CONFIG.", width);
    put_row(p, "-h, --help", "Show this help.", width);
    if (!cmd->groups)
        return;
    put_heading(p,
                "Settings (in the file with '_' for '-', in the environment as SLUICE_NAME):");
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        if (sl_cli_takes(cmd, o))
            put_option(p, o, width);
}

/* ---- Pages ---- */

void sl_help_command(const sl_cmd *cmd, FILE *out)
{
    page p = page_for(out);

    put_usage(&p, cmd->synopsis);
    sl_buf_putc(&p.text, '\n');
    put_prose(&p, cmd->details ? cmd->details : cmd->summary);
    put_options(&p, cmd);
    print(&p, out);
}

void sl_help_program(FILE *out)
{
    page p = page_for(out);
    size_t width = 0;

    put_usage(&p, "sluice COMMAND [FLAGS] [ARGUMENTS]");
    sl_buf_putc(&p.text, '\n');
    put_prose(&p, "Takes messages out of a SQL table and delivers them where they belong.");
    put_heading(&p, "Commands:");
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        width = strlen((*c)->name) > width ? strlen((*c)->name) : width;
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        put_row(&p, (*c)->name, (*c)->summary, width);
    sl_buf_putc(&p.text, '\n');
    put_prose(&p,
              "The database is --db URL, SLUICE_DB or DATABASE_URL: sqlite:PATH, "
              "postgresql://... or any libpq conninfo string; sqlite:sluice.db by default.\n"
              "'sluice COMMAND --help' shows a command's flags.");
    print(&p, out);
}
