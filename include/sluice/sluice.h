/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsluice: put messages into an outbox table inside your own transaction, and take them out
 * again, reliably.
 *
 *   push   sl_push_pg / sl_push_sqlite   on your connection, in your transaction
 *   pull   sl_pull and its batch          acknowledge, retry or bury message by message
 *   run    sl_run                         worker threads call your handler
 *   inbox  sl_inbox_pg / sl_inbox_sqlite  a receiver handles each message once
 *
 * Every function that can fail returns an sl_rc, which says what to do next, and fills an
 * sl_err, whose text says what happened. Nothing is printed. All types are opaque except
 * sl_err, sl_draft and sl_pushed; zero-initialise those, later versions may give meaning to
 * their reserved members.
 *
 * Threads: different handles may be used from different threads at the same time; one handle
 * only from one thread at a time, except where a function says otherwise. Running out of memory
 * aborts the process.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_API __attribute__((visibility("default")))
#define SL_CHECK __attribute__((warn_unused_result))

/* ---- Errors ---- */

typedef enum sl_rc {
    SL_OK = 0,
    SL_AGAIN,    /* passing: back off and try the same thing again */
    SL_REFUSED,  /* this input can never work: mend it or drop it, then go on */
    SL_OPERATOR, /* settings, grants or schema: stop and tell a human */
    SL_NEWER,    /* the schema is newer than this library: upgrade, do not restart */
    SL_STOPPED   /* you asked for a stop */
} sl_rc;

typedef struct sl_err {
    sl_rc rc;
    char text[512]; /* lower case, no full stop, names the thing; may hold a "hint: " line */
} sl_err;

/* "1.2.3", of the library at run time. */
SL_API const char *sl_version(void);

/* ---- Settings: the same names as on the command line and in sluice.yaml (sluice.yaml(5)) --
 */

/* A conf must outlive the handles that were opened with it, and not change meanwhile. */

typedef struct sl_conf sl_conf;

SL_API sl_conf *sl_conf_new(void);
SL_API void sl_conf_free(sl_conf *conf);
SL_API SL_CHECK sl_rc sl_conf_set(sl_conf *conf, const char *name, const char *value,
                                  sl_err *err);
SL_API SL_CHECK sl_rc sl_conf_load(sl_conf *conf, const char *path, sl_err *err);

/* Receives every log line of handles opened with this conf; called from their threads. */
typedef void (*sl_log_fn)(void *ctx, const char *level, const char *line);
SL_API void sl_conf_log(sl_conf *conf, sl_log_fn fn, void *ctx);

/* ---- Push ---- */

/* A message that is to be pushed. Only topic and payload are required. */
typedef struct sl_draft {
    const char *topic;
    const char *key; /* the entity; NULL: no order wanted. At most 512 bytes, not terminated */
    size_t key_bytes;
    const void *payload; /* any bytes; NULL only with payload_bytes = 0 */
    size_t payload_bytes;
    const char *type;            /* NULL: '' */
    const char *content_type;    /* NULL: application/json */
    const char *headers;         /* NULL, or a JSON object of strings */
    const char *idempotency_key; /* NULL, or no two messages carry it: idempotency_keep */
    int64_t available_at_us;     /* 0: now; else Unix time in microseconds, not before it */
    void *reserved[4];
} sl_draft;

typedef struct sl_pushed {
    size_t inserted;
    size_t
        duplicates; /* drafts whose idempotency_key is taken, also by one that was delivered */
    void *reserved[2];
} sl_pushed;

struct pg_conn; /* PGconn of libpq */
struct sqlite3; /* of SQLite */

/*
 * Insert drafts on the caller's own connection, inside the caller's own transaction if one is
 * open; one statement per 2,000 drafts or 16 MB, so that without a transaction of the caller's a
 * larger push may succeed in part. The ids rise in the order of the drafts. `conf`
 * says which table and columns (NULL: outbox); nothing else of it is used. The connection must
 * be idle and not in pipeline mode; it is left as it was. On failure inside a PostgreSQL
 * transaction that transaction is aborted, as after any failed statement. The role needs
 * INSERT, no more.
 */
SL_API SL_CHECK sl_rc sl_push_pg(struct pg_conn *conn, const sl_conf *conf,
                                 const sl_draft *drafts, size_t count, sl_pushed *out,
                                 sl_err *err);
SL_API SL_CHECK sl_rc sl_push_sqlite(struct sqlite3 *db, const sl_conf *conf,
                                     const sl_draft *drafts, size_t count, sl_pushed *out,
                                     sl_err *err);

/* ---- Inbox ---- */

/*
 * For a receiver, whoever delivered the message to it: is this the first time that this consumer
 * handles it? Notes the pair in the table of the setting `inbox_table` (NULL: inbox_seen; made by
 * `sluice init --inbox`), on the caller's own connection, inside the caller's own transaction, which
 * must be open. *fresh is 1: do the work in the same transaction; or 0: it was done, leave it out.
 * Either way, commit, and acknowledge the message after that. If it is rolled back, so is the note.
 *
 * While another transaction has noted the same pair and is not over, this waits for its end. SL_AGAIN:
 * roll back, and handle the message again from the start. Both texts: 1 to 512 bytes of UTF-8. The
 * role needs INSERT, no more. The connection must be idle, as for a push.
 */
SL_API SL_CHECK sl_rc sl_inbox_pg(struct pg_conn *conn, const sl_conf *conf,
                                  const char *consumer, const char *message_id, int *fresh,
                                  sl_err *err);
SL_API SL_CHECK sl_rc sl_inbox_sqlite(struct sqlite3 *db, const sl_conf *conf,
                                      const char *consumer, const char *message_id, int *fresh,
                                      sl_err *err);

/* ---- Messages ---- */

/* Valid until the batch it came from is ended, or until the handler returns. */
typedef struct sl_msg sl_msg;

SL_API int64_t sl_msg_id(const sl_msg *m);
SL_API const char *sl_msg_topic(const sl_msg *m);
SL_API const char *sl_msg_key(const sl_msg *m, size_t *bytes); /* NULL: none */
SL_API const void *sl_msg_payload(const sl_msg *m, size_t *bytes);
SL_API const char *sl_msg_type(const sl_msg *m);
SL_API const char *sl_msg_content_type(const sl_msg *m);
SL_API const char *sl_msg_headers(const sl_msg *m); /* NULL, or a JSON object */
SL_API int64_t sl_msg_created_us(const sl_msg *m);
SL_API int32_t sl_msg_attempt(const sl_msg *m); /* 1 at the first delivery */
SL_API int64_t sl_msg_epoch(const sl_msg *m);   /* grows each time the message changes owner */

/* ---- Pull ---- */

typedef struct sl_puller sl_puller;

/* Opens the conf's database; the messages of the current batch stay leased to this puller, kept
 * alive by a thread and a connection of its own. */
SL_API SL_CHECK sl_rc sl_pull_open(sl_puller **out, const sl_conf *conf, sl_err *err);
SL_API void sl_pull_close(sl_puller *p); /* gives back what has no verdict */

/*
 * Take up to `max` messages, waiting up to wait_ms for the first (0: do not wait). Ends the
 * batch before it, as sl_pull_end does. *count is 0 if none came. The messages are in the order
 * of their ids.
 */
SL_API SL_CHECK sl_rc sl_pull(sl_puller *p, size_t max, int64_t wait_ms, size_t *count,
                              sl_err *err);
SL_API const sl_msg *sl_pull_msg(const sl_puller *p, size_t i);

/* Record the verdict on message i of the batch. A later verdict on the same message replaces it
 * until it has been written. */
SL_API void sl_pull_ack(sl_puller *p, size_t i);
SL_API void sl_pull_retry(sl_puller *p, size_t i, int64_t delay_ms, const char *reason);
SL_API void sl_pull_bury(sl_puller *p, size_t i, const char *reason);

/* Write the verdicts recorded so far, in one transaction; messages without one stay leased.
 * SL_AGAIN with "lease lost" in the text: the batch outlived its lease and someone else may
 * have delivered those messages as well; the others were written. */
SL_API SL_CHECK sl_rc sl_pull_settle(sl_puller *p, sl_err *err);
/* The same, and give back the messages without a verdict. */
SL_API SL_CHECK sl_rc sl_pull_end(sl_puller *p, sl_err *err);

/* ---- Run ---- */

typedef struct sl_runner sl_runner;
typedef struct sl_reply sl_reply;

typedef enum sl_verdict {
    SL_PENDING = 0,
    SL_SENT,    /* delivered: the message is done */
    SL_RETRY,   /* later: after the reply's delay, or the growing default */
    SL_DEAD,    /* never: into the table of dead letters, whatever `on_failure` says */
    SL_UNKNOWN, /* it may or may not have arrived: sent again */
    SL_RELEASED, /* not tried: given back as if never taken. From a handler: what it needs is out of
                    order as a whole; no attempt is used up, and one message at a time is tried
                    after growing pauses until it goes again */
    SL_HELD      /* no verdict yet: stays claimed (pull only) */
} sl_verdict;

/* Called from worker threads, several at a time. Returns SL_SENT, SL_RETRY, SL_DEAD or SL_RELEASED. Leases are
 * renewed between calls: a single call must end well before `lease`. */
typedef sl_verdict (*sl_handler)(void *ctx, const sl_msg *m, sl_reply *reply);
SL_API void sl_reply_reason(sl_reply *reply, const char *reason);
SL_API void sl_reply_delay(sl_reply *reply, int64_t delay_ms);

SL_API SL_CHECK sl_rc sl_run_open(sl_runner **out, const sl_conf *conf, sl_handler fn,
                                  void *ctx, sl_err *err);
/* Blocks until sl_run_stop, until all is drained (setting `drain`), or until a failure that
 * needs a human. A lost database is waited for. */
SL_API SL_CHECK sl_rc sl_run(sl_runner *r, sl_err *err);
/* From any thread or a signal handler: finish what is in hand, then return from sl_run. */
SL_API void sl_run_stop(sl_runner *r);
SL_API void sl_run_close(sl_runner *r);

#ifdef __cplusplus
}
#endif
#endif
