/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <unistd.h>

enum { SHOWN = 10 };

int sl_ask_check(const sl_cli *cli, const char *verb)
{
    if (isatty(STDIN_FILENO))
        return SL_EXIT_OK;
    return sl_cli_usage(cli,
                        "there is no terminal to ask on\nhint: --yes to %s them, "
                        "--dry-run to see how many there are",
                        verb);
}

bool sl_ask(const char *verb, bool one)
{
    char answer[16] = "";
    fprintf(stderr, "%s %s? [y/N] ", verb, one ? "it" : "them");
    fflush(stderr);
    if (!fgets(answer, sizeof answer, stdin))
        fputc('\n', stderr);
    return answer[0] == 'y' || answer[0] == 'Y';
}

void sl_notes_add(sl_notes *n, const char *head, const char *why)
{
    if (n->count++ >= SHOWN)
        return;
    sl_buf_printf(&n->text, "%s: ", head);
    for (; *why; why++) /* an idempotency key may hold what a terminal would obey */
        sl_buf_putc(&n->text, (unsigned char)*why < ' ' || *why == 0x7f ? '?' : *why);
    sl_buf_putc(&n->text, '\n');
}

void sl_notes_print(const sl_notes *n, FILE *out)
{
    fputs(sl_buf_text(&n->text), out);
    if (n->count > SHOWN)
        fprintf(out, "... and %zu more\n", n->count - SHOWN);
}

void sl_notes_fini(sl_notes *n)
{
    sl_buf_fini(&n->text);
    n->count = 0;
}
