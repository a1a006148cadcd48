/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a sink as a whole is out of order, that is no message's fault: the breaker opens, nothing is taken
 * for it, and nobody's attempts are used up. After growing pauses one worker tries with one message. If
 * that goes well the breaker closes. Shared by the workers of a node.
 */
#ifndef SL_RELAY_BREAKER_H
#define SL_RELAY_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sl_breaker sl_breaker;

sl_breaker *sl_breaker_new(int64_t base_ns, int64_t max_ns); /* the pauses */
void sl_breaker_free(sl_breaker *b);

typedef enum sl_pass {
    SL_PASS_ALL, /* closed */
    SL_PASS_ONE, /* a probe, and yours alone */
    SL_PASS_NONE /* open */
} sl_pass;

/* *wait_ns: with SL_PASS_NONE, how long to wait before the next question. Whoever gets a pass tells what
 * came of it. */
sl_pass sl_breaker_ask(sl_breaker *b, int64_t *wait_ns);

typedef enum sl_came { SL_CAME_NOTHING, SL_CAME_UP, SL_CAME_DOWN } sl_came;

/* True: it has just opened, or closed. */
bool sl_breaker_tell(sl_breaker *b, sl_pass pass, sl_came came);
unsigned sl_breaker_failures(sl_breaker *b); /* in a row; 0: closed */

#endif
