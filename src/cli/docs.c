/* SPDX-License-Identifier: Apache-2.0 */
/* What users read of the settings, from the table that the program itself reads. Only the form
 * differs: scdoc, YAML, Markdown, bash. */
#include "cli/docs.h"

#include "cli/help.h"
#include "core/mem.h"
#include "lib/settings_routes.h"

#include <ctype.h>

enum { TEXT_WIDTH = 80 };

/* ---- What all readers say of a setting ---- */

static const char routes_text[] =
    "Instead of sink, and in the file only: each route sends its topics to a sink of its own, "
    "on its own terms. The first route that wants a message takes it. One that no route wants "
    "stays in the table, its key waits, and the log names its topic. The order of a key holds "
    "across routes.";

static const char routes_sample[] = "routes:\n"
                                    "  - topics: [orders, \"orders.*\"]\n"
                                    "    sink: file:orders.jsonl\n"
                                    "    on_failure: park\n"
                                    "  - topics: \"*\"\n"
                                    "    sink: file:rest.jsonl\n";

static void put_upper(sl_buf *out, const char *name)
{
    for (; *name; name++)
        sl_buf_putc(out, (char)toupper((unsigned char)*name));
}

/* "--db, SLUICE_DB or SLUICE_DB_FILE" */
static void put_other_names(sl_buf *out, const sl_opt *o)
{
    char *flag = sl_cli_flag_name(o);
    bool secret = (o->flags & SL_OPT_SECRET) != 0;

    sl_buf_printf(out, "--%s%s SLUICE_", flag, secret ? "," : " or");
    put_upper(out, o->name);
    if (secret) {
        sl_buf_puts(out, " or SLUICE_");
        put_upper(out, o->name);
        sl_buf_puts(out, "_FILE");
    }
    free(flag);
}

static const char *kind_of(const sl_opt *o)
{
    return o->type == SL_OPT_BOOL ? "true|false" : o->arg ? o->arg : "VALUE";
}

/* Numbers only: the bounds of a text are of no interest to its reader. */
static void put_bounds(sl_buf *out, const sl_opt *o)
{
    if (o->min == o->max || o->type == SL_OPT_TEXT)
        return;
    sl_opt low = *o;
    low.offset = 0;
    sl_buf_puts(out, "From ");
    sl_opt_show(&low, &o->min, true, out);
    sl_buf_puts(out, " to ");
    sl_opt_show(&low, &o->max, true, out);
    sl_buf_puts(out, ". ");
}

/* Help, bounds, default and whether HUP applies it, as sentences. */
static char *sentences(const sl_opt *o)
{
    sl_buf text = { 0 };

    sl_buf_printf(&text, "%s ", o->help);
    put_bounds(&text, o);
    if (o->def)
        sl_buf_printf(&text, "Default: %s.", o->def);
    else
        sl_buf_puts(&text, "Unset by default.");
    if (o->flags & SL_OPT_RELOAD)
        sl_buf_puts(&text, " A reload applies it.");
    return text.p;
}

/* The same for a field of a route. What the top level has, too, is explained there. */
static char *route_sentences(const sl_opt *row)
{
    sl_buf text = { 0 };

    if (row->flags & SL_ROUTE_SHARED) {
        sl_buf_puts(&text, "As the setting of that name, which is the default.");
        return text.p;
    }
    sl_buf_printf(&text, "%s ", row->help);
    put_bounds(&text, row);
    text.p[--text.n] = '\0';
    return text.p;
}

/* ---- sluice.yaml(5) ---- */

/* scdoc takes these for markup; a full stop, only at the start of a line. */
static void put_scdoc(sl_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\*_<>#`[]|~", *text))
            sl_buf_putc(out, '\\');
        sl_buf_putc(out, *text);
    }
}

static void put_man_item(sl_buf *out, const sl_opt *o, const char *text)
{
    sl_buf_puts(out, "\n*");
    put_scdoc(out, o->name);
    sl_buf_puts(out, "*: ");
    put_scdoc(out, kind_of(o));
    sl_buf_puts(out, "\n\t");
    put_scdoc(out, text);
    sl_buf_putc(out, '\n');
}

static void put_man_routes(sl_buf *out)
{
    sl_buf_puts(out, "\n# ROUTES\n\n");
    put_scdoc(out, routes_text);
    sl_buf_printf(out, "\n\n```\n%s```\n", routes_sample);
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        sl_opt field = sl_route_field(row);
        char *text = route_sentences(row);
        put_man_item(out, &field, text);
        free(text);
    }
}

void sl_docs_man(sl_buf *out)
{
    sl_buf_puts(out, "# SETTINGS\n");
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        sl_buf names = { 0 };
        char *text = sentences(o);

        put_other_names(&names, o);
        put_man_item(out, o, text);
        sl_buf_puts(out, "\n\tAlso ");
        put_scdoc(out, names.p);
        sl_buf_puts(out, ".\n");
        sl_buf_fini(&names);
        free(text);
    }
    put_man_routes(out);
}

/* ---- A sample file ---- */

static void put_sample_value(sl_buf *out, const sl_opt *o)
{
    if (o->type == SL_OPT_MAP)
        sl_buf_puts(out, " {}");
    else
        sl_buf_printf(out, " %s", o->def ? o->def : kind_of(o));
    if (o->type == SL_OPT_CHOICE)
        sl_buf_printf(out, "  # %s", o->arg);
}

static void put_commented(sl_buf *out, const char *lines)
{
    for (const char *end; *lines; lines = end + 1) {
        end = strchr(lines, '\n');
        sl_buf_printf(out, "# %.*s\n", (int)(end - lines), lines);
    }
}

static void put_sample_routes(sl_buf *out)
{
    sl_buf_puts(out, "\n# ");
    sl_help_wrap(out, routes_text, 2, "# ", TEXT_WIDTH);
    sl_buf_puts(out, "\n#\n");
    put_commented(out, routes_sample);
    sl_buf_puts(out, "#\n# The fields of a route:\n");
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        char *text = route_sentences(row);
        sl_buf_printf(out, "#   %s: ", row->name);
        sl_help_wrap(out, text, 6 + strlen(row->name), "#     ", TEXT_WIDTH);
        sl_buf_putc(out, '\n');
        free(text);
    }
}

void sl_docs_yaml(sl_buf *out)
{
    sl_help_wrap(
        out,
        "# All settings of sluice, with their defaults. Flags go before the environment, "
        "the environment goes before this file. Name it with -c FILE or SLUICE_CONFIG.",
        0, "# ", TEXT_WIDTH);
    sl_buf_putc(out, '\n');
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        char *text = sentences(o);

        sl_buf_puts(out, "\n# ");
        sl_help_wrap(out, text, 2, "# ", TEXT_WIDTH);
        sl_buf_printf(out, "\n#%s:", o->name);
        put_sample_value(out, o);
        sl_buf_putc(out, '\n');
        free(text);
    }
    put_sample_routes(out);
}

/* ---- A table for the documentation ---- */

static void put_cell(sl_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            sl_buf_putc(out, '\\');
        sl_buf_putc(out, *text);
    }
}

void sl_docs_markdown(sl_buf *out)
{
    sl_buf_puts(out, "| setting | value | default | reload | what it does |\n"
                     "|---|---|---|---|---|\n");
    for (const sl_opt *o = sl_settings_table; o->name; o++) {
        sl_buf_printf(out, "| `%s` | `", o->name);
        put_cell(out, kind_of(o));
        sl_buf_printf(out, "` | %s%s%s | %s | ", o->def ? "`" : "", o->def ? o->def : "unset",
                      o->def ? "`" : "", o->flags & SL_OPT_RELOAD ? "yes" : "no");
        put_bounds(out, o);
        put_cell(out, o->help);
        sl_buf_puts(out, " |\n");
    }
    sl_buf_puts(out, "\n| field of a route | value | what it does |\n|---|---|---|\n");
    for (const sl_opt *row = sl_route_table; row->name; row++) {
        sl_opt field = sl_route_field(row);
        char *text = route_sentences(row);
        sl_buf_printf(out, "| `%s` | `", row->name);
        put_cell(out, kind_of(&field));
        sl_buf_puts(out, "` | ");
        put_cell(out, text);
        sl_buf_puts(out, " |\n");
        free(text);
    }
}

/* ---- Shell completion ---- */

static void put_flag_word(sl_buf *out, const sl_opt *o)
{
    char *flag = sl_cli_flag_name(o);
    sl_buf_printf(out, " --%s", flag);
    free(flag);
}

/* "a|b|c" as words with blanks. */
static void put_words(sl_buf *out, const char *words)
{
    for (; *words; words++)
        sl_buf_putc(out, *words == '|' ? ' ' : *words);
}

/* One line of `case $cmd in`: the command's flags, and the words that its first argument may
 * be. */
static void put_command_case(sl_buf *out, const sl_cmd *cmd)
{
    sl_buf_printf(out, "    %s)\n        flags='--help%s", cmd->name,
                  cmd->groups ? " --config" : "");
    for (const sl_opt *o = cmd->opts; o && o->name; o++)
        put_flag_word(out, o);
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        if (sl_cli_takes(cmd, o))
            put_flag_word(out, o);
    sl_buf_puts(out, "'\n        words='");
    if (cmd->words)
        put_words(out, cmd->words);
    sl_buf_puts(out, "'\n        ;;\n");
}

/* A flag of one command may have other values than one of the same name elsewhere: "cmd flag".
 */
static void put_value_case(sl_buf *out, const char *cmd, const sl_opt *o)
{
    if (o->type == SL_OPT_BOOL)
        return;
    char *flag = sl_cli_flag_name(o);
    bool file = o->arg && strcmp(o->arg, "FILE") == 0;

    sl_buf_printf(out, "    %s' --%s')\n        ", cmd, flag);
    if (o->type == SL_OPT_CHOICE) {
        sl_buf_puts(out, "values='");
        put_words(out, o->arg);
        sl_buf_puts(out, "'\n        ");
    }
    sl_buf_printf(out, "takes=%s\n        ;;\n",
                  file                       ? "file"
                  : o->type == SL_OPT_CHOICE ? "words"
                                             : "anything");
    free(flag);
}

static const char completion_head[] =
    "# bash completion for sluice; made by 'sluice config docs completion'\n"
    "\n"
    "_sluice()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local cmd=${COMP_WORDS[1]} flags='' words='' values='' takes='' commands\n"
    "    COMPREPLY=()\n"
    "    # readline splits --flag=value at the equals sign\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == '=' ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n";

static const char completion_tail[] =
    "    case $takes in\n"
    "    file)\n"
    "        compopt -o filenames 2> /dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        ;;\n"
    "    words)\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
    "        ;;\n"
    "    anything) ;;\n"
    "    *)\n"
    "        if [[ $cur == -* ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
    "        elif ((COMP_CWORD == 2)) && [[ -n $words ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "        else\n"
    "            compopt -o filenames 2> /dev/null\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        fi\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "complete -F _sluice sluice\n";

static void put_commands(sl_buf *out)
{
    sl_buf_puts(out, "    commands='");
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        sl_buf_printf(out, "%s ", (*c)->name);
    sl_buf_puts(out,
                "help'\n"
                "    if ((COMP_CWORD == 1)); then\n"
                "        mapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" "
                "-- \"$cur\")\n"
                "        return\n"
                "    fi\n");
}

void sl_docs_completion(sl_buf *out)
{
    sl_buf_puts(out, completion_head);
    put_commands(out);
    sl_buf_puts(out, "    case $cmd in\n    help)\n        words=$commands\n        ;;\n");
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        put_command_case(out, *c);
    sl_buf_puts(out, "    esac\n    case \"$cmd $prev\" in\n    *' -c' | *' --config')\n"
                     "        takes=file\n        ;;\n");
    for (const sl_cmd *const *c = sl_cmd_all; *c; c++)
        for (const sl_opt *o = (*c)->opts; o && o->name; o++)
            put_value_case(out, (*c)->name, o);
    for (const sl_opt *o = sl_settings_table; o->name; o++)
        put_value_case(out, "*", o);
    sl_buf_puts(out, "    esac\n");
    sl_buf_puts(out, completion_tail);
}
