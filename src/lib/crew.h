/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads of a node. Each has a connection, a claim, a sink and a batch of its own;
 * they share the stop flag and nothing else. A worker that loses its database closes all of it
 * and comes back with growing pauses; a failure that needs a human stops the whole crew.
 */
#ifndef SL_LIB_CREW_H
#define SL_LIB_CREW_H

#include "core/log.h"
#include "lib/routes.h"

typedef struct sl_crew sl_crew;

/* Unless rehearse_fd is negative, tries everything once on this thread first (connection, schema,
 * grants, sink), so that what cannot work fails here; SL_STOPPED if rehearse_fd becomes readable
 * meanwhile. Then starts the threads. settings, stop and log must outlive the crew. */
SL_CHECK sl_rc sl_crew_start(sl_crew **out, const sl_settings *settings, sl_sink_maker make,
                             void *make_ctx, sl_stop *stop, sl_log *log, int rehearse_fd,
                             sl_err *err);
/* Until all workers have ended: SL_OK when stopped or drained, else what stopped them. */
SL_CHECK sl_rc sl_crew_wait(sl_crew *crew, sl_err *err);
void sl_crew_free(sl_crew *crew);

/* The sum over all workers. */
void sl_crew_counts(const sl_crew *crew, sl_counts *out);
int sl_crew_ended_fd(const sl_crew *crew); /* readable once the last worker has ended */

#endif
