/* SPDX-License-Identifier: Apache-2.0 */
/* The routes among the settings: their table of fields, and what a route takes from the top level. */
#ifndef SL_LIB_SETTINGS_ROUTES_H
#define SL_LIB_SETTINGS_ROUTES_H

#include "lib/settings.h"
#include "lib/yaml_nodes.h"

/* The top level has this, too: it is described there, and holds for the routes that do not say otherwise. */
enum { SL_ROUTE_SHARED = 1 << 8 };

/* The fields of sl_route_conf, the topics first. Of one that is shared only the name and the place are here: ask
 * sl_route_field. */
extern const sl_opt sl_route_table[];
sl_opt sl_route_field(const sl_opt *row);

/* The i-th route with what it takes from the top level. It borrows from the settings. */
sl_route_conf sl_route_of(const sl_settings *s, size_t i);
/* Where its value comes from. */
sl_from sl_route_from(const sl_settings *s, size_t i, const sl_opt *row);

/* An empty route at the end, good until the next one. */
sl_route_conf *sl_routes_add(sl_settings *s, const char *where);
SL_CHECK sl_rc sl_route_put(sl_route_conf *c, const sl_opt *row, const char *value,
                            sl_err *err);
static inline bool sl_route_given(const sl_route_conf *c, const sl_opt *row)
{
    return c->given >> (row - sl_route_table) & 1;
}

/* Is this route's sink one with a fence, and is that wanted? */
bool sl_route_fenced(const sl_route_conf *c);
/* `wanted`: fence was given, for this one. `where`: before the message. */
SL_CHECK sl_rc sl_route_check_fence(const sl_route_conf *c, bool wanted, const char *where,
                                    sl_err *err);

void sl_routes_clear(sl_settings *s);
bool sl_routes_same(const sl_settings *a, const sl_settings *b); /* as they were given */
void sl_routes_copy(sl_settings *to, const sl_settings *from);

/* Settings and routes that contradict each other. */
SL_CHECK sl_rc sl_routes_check(const sl_settings *s, sl_err *err);

/* Reads `routes:` of the file. (lib/settings_routes_yaml.c) */
SL_CHECK sl_rc sl_routes_read(sl_settings *s, const sl_yaml *y, const yaml_node_t *node,
                              sl_err *err);

#endif
