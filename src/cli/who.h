/* SPDX-License-Identifier: Apache-2.0 */
/* Who shares the table now, and who holds what: what `status`, `workers` and `lanes` show. */
#ifndef SL_CLI_WHO_H
#define SL_CLI_WHO_H

#include "core/buf.h"
#include "member/nodes.h"

/* A worker (or a puller) that holds messages by leases, or keys by strategy guard. */
typedef struct sl_holder {
    char *worker;
    int64_t messages, keys;
    int64_t left_us; /* until the last of it ends */
} sl_holder;

typedef struct sl_who {
    sl_node_list nodes;
    int64_t *owners; /* by lane: a node's session; 0: it is free */
    size_t lanes;
    sl_holder *holders;
    size_t holder_count;
    int64_t blocked; /* keys that wait */
    int64_t parked;  /* those of them that wait for an operator */
} sl_who;            /* zero-initialise */

/* Both may be called again: what was there is forgotten. The first reads all, and for that the whole
 * table; the second nodes and lanes only. */
SL_CHECK sl_rc sl_who_read(sl_who *w, sl_db *db, sl_err *err);
SL_CHECK sl_rc sl_who_read_lanes(sl_who *w, sl_db *db, sl_err *err);
void sl_who_fini(sl_who *w);

/* How many lanes a node owns; with 0, how many are free. */
size_t sl_who_owns(const sl_who *w, int64_t session);
/* The lanes as "0-3,9,12-15"; what is longer than `room` characters ends in "...". */
void sl_who_ranges(const sl_who *w, int64_t session, size_t room, sl_buf *out);
void sl_who_lanes_json(const sl_who *w, int64_t session, sl_buf *out); /* "[0,1,2,3,9]" */
void sl_who_holders_json(const sl_who *w, sl_buf *out);                /* an array of objects */
void sl_who_print_holders(const sl_who *w, FILE *out);                 /* a table, or nothing */

/* Nodes whose time is not over. A row is pruned by other nodes, and the last one has none. */
size_t sl_who_alive(const sl_who *w);
/* The strategy of the nodes, which is one; NULL: there are none. */
const char *sl_who_strategy(const sl_who *w);
int64_t sl_who_per_second(const sl_who *w);

/* "12.3 s", "5m12s", "3h05m", "2d04h". */
void sl_who_time(sl_buf *out, int64_t us);

#endif
