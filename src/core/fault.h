/* SPDX-License-Identifier: Apache-2.0 */
/* Places where a test may kill or stop the process: SLUICE_FAULT=name:n kills it, as SIGKILL would, at
 * the n-th passage of SL_FAULT("name"), counted over all threads; name:n:stop stops it, as SIGSTOP
 * would. Compiled in only with -Dfault_points=true. */
#ifndef SL_CORE_FAULT_H
#define SL_CORE_FAULT_H

#ifdef SL_FAULT_POINTS
void sl_fault(const char *name);
#define SL_FAULT(name) sl_fault(name)
#else
#define SL_FAULT(name) ((void)0)
#endif

#endif
