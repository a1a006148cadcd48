/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as in iSCSI (RFC 3720): it finds every burst of up to 32 bits. */
#ifndef SL_CORE_CRC32C_H
#define SL_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that come in pieces: start with 0, and hand on what came of the piece before. */
uint32_t sl_crc32c(uint32_t crc, const void *bytes, size_t n);

#endif
