/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ids are final: whoever drew one of them has committed or given up, so that no message can appear among
 * them any more. Ids are committed in another order than they are given out, so the server is asked for two
 * things, one after the other: the last id that was given out, and who is writing to the table. A writer locks
 * the table before it draws. So once all of those writers have gone, every id up to that one is final, for
 * whatever is read from then on.
 *
 * Only for tables that give out their ids themselves, to everybody: layout `rotated`.
 */
#ifndef SL_MEMBER_FINAL_H
#define SL_MEMBER_FINAL_H

#include "member/floor.h"

typedef struct sl_final sl_final; /* may be shared by threads */

sl_final *sl_final_new(void);
void sl_final_free(sl_final *f);
/* The server may have been started anew, or be another: who is waited for may have another name by now, and ids
 * may be given again. */
void sl_final_doubt(sl_final *f);
/* All ids up to this one, for what is read after this call. */
int64_t sl_final_upto(const sl_final *f);
/* It would be good to know of ids up to this one. */
void sl_final_want(sl_final *f, int64_t id);

/* One question on its way. */
typedef struct sl_final_asked {
    sl_writers writers;
    int64_t given;
    uint64_t round;
    bool asked;
} sl_final_asked;

enum { SL_FINAL_CALLS = 2 };
/* Is it time to ask? Then so many calls are to be run first, and sl_final_answered to be called, whatever happens. */
size_t sl_final_ask(sl_final *f, sl_db *db, sl_final_asked *a, sl_call calls[SL_FINAL_CALLS]);
/* Returns what the answer shows to be final for whatever was read after it, in the same trip, too; 0: nothing. */
int64_t sl_final_answered(sl_final *f, sl_final_asked *a, bool ok);
void sl_final_asked_fini(sl_final_asked *a);

#endif
