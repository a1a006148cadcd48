/* SPDX-License-Identifier: Apache-2.0 */
/* Is it UTF-8? Strict: no surrogates, no overlong forms, nothing beyond U+10FFFF. */
#ifndef SL_CORE_UTF8_H
#define SL_CORE_UTF8_H

#include "core/bytes.h"

bool sl_is_utf8(sl_str s);
size_t sl_utf8_prefix(sl_str s); /* how many bytes at its beginning are UTF-8 */

#endif
