/* SPDX-License-Identifier: Apache-2.0 */
/* URLs that libpq would misread. Knows their form, not libpq. */
#ifndef SL_DB_PG_URL_H
#define SL_DB_PG_URL_H

#include <stdbool.h>

/* Does the URL's password hold a character that should have been escaped? libpq would then take a
 * part of it for a host or a port, and say so in its messages. A conninfo string never does. */
bool sl_pg_url_is_torn(const char *url);

#endif
