/* SPDX-License-Identifier: Apache-2.0 */
#include "version.h"

#include <sluice/sluice.h>

const char *sl_version(void)
{
    return SL_VERSION;
}
