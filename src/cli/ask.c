/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <unistd.h>

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
