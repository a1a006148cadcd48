/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice doctor --sink`: what the sinks have to say about where messages would go. The topics are those that the
 * settings name, and those of messages that wait, as far as was looked. */
#ifndef SL_CLI_DOCTOR_SINK_H
#define SL_CLI_DOCTOR_SINK_H

#include "cli/doctor.h"
#include "lib/settings.h"
#include "sink/sink.h"

typedef struct sl_waits {
    sl_sink_wait *v; /* owns its texts */
    size_t count;
    int64_t messages;
} sl_waits; /* zero-initialise */

void sl_waits_add(sl_waits *w, sl_str topic, sl_str type, int64_t count, int64_t keyless,
                  int64_t largest);
void sl_waits_fini(sl_waits *w);

/* url: a sink to look at in place of those of the settings, or NULL: then there is at least one. */
SL_CHECK sl_rc sl_doctor_sinks(const sl_settings *s, const char *url, const sl_waits *waits,
                               sl_findings *out, sl_err *err);

#endif
