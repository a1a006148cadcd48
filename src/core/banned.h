/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that nobody here needs: they overflow, keep hidden state or depend on the locale. Included
 * by core/err.h, and so by every source file. */
#ifndef SL_CORE_BANNED_H
#define SL_CORE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok gmtime localtime ctime asctime atoi   \
    atol

#endif
