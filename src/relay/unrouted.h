/* SPDX-License-Identifier: Apache-2.0 */
/* Topics that no route wants, as far as the log has named them: each once a minute, and not more of them than
 * somebody reads. Shared by the workers of a node. */
#ifndef SL_RELAY_UNROUTED_H
#define SL_RELAY_UNROUTED_H

#include "core/bytes.h"

#include <stdint.h>

typedef struct sl_unrouted sl_unrouted;

sl_unrouted *sl_unrouted_new(void);
void sl_unrouted_free(sl_unrouted *u);

/* Is it to be named now? NULL always says yes. */
bool sl_unrouted_news(sl_unrouted *u, sl_str topic, int64_t now_ns);

#endif
