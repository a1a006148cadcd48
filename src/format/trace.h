/* SPDX-License-Identifier: Apache-2.0 */
/* The trace that a message is part of, as W3C Trace Context writes it. */
#ifndef SL_FORMAT_TRACE_H
#define SL_FORMAT_TRACE_H

#include "core/bytes.h"

/* One that a receiver would not ignore: lower case, neither id all zeros, no version ff. */
bool sl_is_traceparent(sl_str s);

#endif
