/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence of a Kafka sink: a worker sends in transactions, under a transactional.id of its own that each session of its
 * node has anew. Whoever initialises that id makes the brokers refuse whatever is still sent by it, and ends its open
 * transaction. docs/kafka.md has the argument.
 *
 * With `exact`, each transaction also commits a position: the offset of a group named like the id, on a topic that exists
 * for that only. It is the number of the transaction, and its metadata says which messages this turn has delivered.
 */
#ifndef SL_SINK_KAFKA_TXN_H
#define SL_SINK_KAFKA_TXN_H

#include "core/batch.h"
#include "sink/kafka_conf.h"
#include "sink/kafka_put.h"

/* What a transaction has come to. */
typedef enum sl_txn_came {
    SL_TXN_GOES_ON,   /* ask again */
    SL_TXN_COMMITTED, /* its messages are delivered */
    SL_TXN_NOT,       /* they are not, and never will be */
    SL_TXN_UNKNOWN,   /* they may be; they are, or not, and that does not change any more */
} sl_txn_came;

typedef struct sl_kafka_txn {
    const sl_kafka_conf *conf;
    sl_log *log;
    rd_kafka_t *rk; /* the sink's producer; NULL: none */
    int64_t session;
    char *id;        /* of that session */
    bool ready;      /* it is initialised */
    bool open;       /* a transaction is */
    bool positioned; /* its position is part of it */
    bool committing; /* its commit was asked for: only the brokers know */
    bool lost;       /* the same, and the producer cannot find out any more */
    bool fresh;      /* then: there is a new one that can */
    int64_t number;  /* of the transaction: no other has it */
    sl_buf ids;      /* delivered in this turn, and in the open transaction */
    size_t kept;     /* so many bytes of them are committed */
    int64_t last_id, kept_id;
    size_t room;         /* bytes that brokers take */
    sl_kafka_put *stuck; /* the producer is in there, and of no further use; or NULL */
} sl_kafka_txn;

void sl_kafka_txn_fini(sl_kafka_txn *t);
/* "sluice/outbox/node/1/0/1f2e...": the worker's name with its session. */
char *sl_kafka_txn_id(const char *fence, int64_t session);
/* Of a configuration that is about to become a producer. */
void sl_kafka_txn_configure(rd_kafka_conf_t *conf, const char *id);
/* A turn begins: what the last one has delivered is settled. */
void sl_kafka_txn_turn(sl_kafka_txn *t);
/* Initialises the producer, for so long; false: not yet, `why` says so. *spoiled: and never will be. */
bool sl_kafka_txn_init(sl_kafka_txn *t, int64_t timeout_ns, bool *spoiled, char why[160]);
/* Has another used the name anew? */
bool sl_kafka_is_shut_out(rd_kafka_resp_err_t err);
/* Before the first message. False: not with this producer. */
bool sl_kafka_txn_begin(sl_kafka_txn *t);
/* Is there room in the position for one more message of this turn? */
bool sl_kafka_txn_room(const sl_kafka_txn *t);
void sl_kafka_txn_note(sl_kafka_txn *t, int64_t id);
/* All its messages have been acknowledged: commits, for so long. After all but SL_TXN_COMMITTED the producer is of no
 * further use. `why`: the last error. */
sl_txn_came sl_kafka_txn_commit(sl_kafka_txn *t, int64_t timeout_ns, char why[160]);
/* Its commit was not asked for, so it never will be. The brokers are told; if that fails, the next to initialise ends
 * it, or its time does. */
void sl_kafka_txn_abort(sl_kafka_txn *t, int64_t timeout_ns);
/* The commit was asked for and the producer has no answer: a new one finds out, which has `rk` by then. */
sl_txn_came sl_kafka_txn_find_out(sl_kafka_txn *t, int64_t timeout_ns, char why[160]);

/* Of a worker that is gone: whatever it still sends is refused from now on. Then, with `exact`, tells what its last turn
 * has delivered. */
SL_CHECK sl_rc sl_kafka_fence(const sl_sink_conf *conf, int64_t session, sl_fenced_fn fn,
                              void *ctx, sl_err *err);

#endif
