/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Care after a crash. A message may be what ended the program; with nothing written before the send, nobody
 * would ever know, and the program would end again and again. So when a node has died, the others and its
 * successor go slowly for a while: one worker at a time, one message, then two, four, eight, and each
 * attempt is counted in the database before it is made; and what was tried before goes alone. A message that
 * ends the program then runs out of attempts, and takes hardly any other with it. Otherwise an attempt costs no write.
 * Messages that were tried before may as well have failed in the ordinary way, and may never end: so the care
 * ends, at the latest, some time after the last death.
 */
#ifndef SL_RELAY_CARE_H
#define SL_RELAY_CARE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_care sl_care;

sl_care *sl_care_new(int64_t most_ns); /* so long after the last death */
void sl_care_free(sl_care *c);

/* Some node has died. From any thread. */
void sl_care_alarm(sl_care *c);

/* Is care taken? Then whoever enters may have to wait for others. */
bool sl_care_taken(const sl_care *c);

/* Before a turn of at most `max` messages: how many it may take. *careful: it is alone, has to count first,
 * and to say how it ended. */
int64_t sl_care_enter(sl_care *c, int64_t max, bool *careful);

/* Only if careful. */
typedef enum sl_step {
    SL_STEP_STAY,   /* nothing was there, or it failed */
    SL_STEP_LARGER, /* all is well */
    SL_STEP_SINGLE  /* the same, but some were tried before: the next one is alone, too */
} sl_step;

void sl_care_leave(sl_care *c, sl_step next);

#endif
