/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database dialect: one file behind one table of functions. A driver knows how to connect,
 * how to run the statements of sql/<dialect>/ and how to sort its errors into sl_rc; it knows
 * nothing of claims, leases or messages.
 *
 * A connection belongs to one thread at a time. After SL_AGAIN from `run` the connection may be
 * gone: close it and open another. All values are parameters; names are replaced by db/names.h.
 */
#ifndef SL_DB_DB_H
#define SL_DB_DB_H

#include "core/bytes.h"
#include "core/err.h"
#include "db/names.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sl_type {
    SL_T_INT8,  /* any integer type */
    SL_T_TEXT,  /* bytes in the database's encoding, UTF-8 */
    SL_T_BYTES, /* bytes */
    SL_T_TIME,  /* as int64: Unix time in microseconds */
    SL_T_BOOL,
    SL_T_INT8S, /* arrays: parameters only */
    SL_T_TEXTS,
    SL_T_BYTESS
} sl_type;

enum { SL_STMT_MAX = 16 }; /* parameters or columns of one statement */

/* A statement of sql/, made into C by tools/embed_sql.py. */
typedef struct sl_stmt {
    const char *dialect; /* "postgres" */
    const char *name;    /* "skip_locked/take" */
    const char *text;
    int index; /* within all statements: drivers keep prepared ones in an array */
    bool
        whole; /* it wants arrays of integers as a text, "[1,2,3]": without arrays, and not for each */
    int nparams, ncols;
    sl_type params[SL_STMT_MAX];
    sl_type cols[SL_STMT_MAX];
} sl_stmt;

/* A script of sql/<dialect>/schema/: several statements, run as they are, without parameters.
 */
typedef struct sl_script {
    const char *dialect;
    const char *name; /* "schema/001" */
    const char *text;
} sl_script;

extern const sl_stmt sl_stmts[];
extern const int sl_stmts_count;
extern const sl_script sl_scripts[];
extern const int sl_scripts_count;

/*
 * A value on its way in or out. Arrays stand for "do this for each": PostgreSQL gets them
 * whole, a database without arrays runs the statement once per element; all arrays of a call
 * have the same length. But a statement that wants them `whole` runs once, whatever their lengths.
 */
typedef struct sl_val {
    sl_type type;
    bool null;
    union {
        int64_t i;
        sl_str s;
        struct {
            const int64_t *v;
            size_t n;
        } ints;
        struct {
            const sl_str *v; /* absent = NULL */
            size_t n;
        } strs;
    };
} sl_val;

static inline sl_val sl_int(int64_t i)
{
    return (sl_val){ .type = SL_T_INT8, .i = i };
}
static inline sl_val sl_text(sl_str s)
{
    return (sl_val){ .type = SL_T_TEXT, .null = !s.p, .s = s };
}
static inline sl_val sl_bytes(sl_str s)
{
    return (sl_val){ .type = SL_T_BYTES, .null = !s.p, .s = s };
}
static inline sl_val sl_ints(const int64_t *v, size_t n)
{
    return (sl_val){ .type = SL_T_INT8S, .ints = { v, n } };
}
static inline sl_val sl_texts(const sl_str *v, size_t n)
{
    return (sl_val){ .type = SL_T_TEXTS, .strs = { v, n } };
}
static inline sl_val sl_bytess(const sl_str *v, size_t n)
{
    return (sl_val){ .type = SL_T_BYTESS, .strs = { v, n } };
}

/* Called for each row; the values live until it returns. Anything but SL_OK ends the call with
 * that. */
typedef sl_rc (*sl_row_fn)(void *ctx, const sl_val *cols, sl_err *err);

typedef struct sl_call {
    const sl_stmt *stmt;
    const sl_val *in; /* stmt->nparams values */
    sl_row_fn row;    /* NULL: rows are not wanted */
    void *ctx;
    int64_t affected; /* out: rows inserted, updated or deleted (or returned) */
} sl_call;

/* Of one run. A turn with verdicts of every kind, of both promises, whose messages are kept, has some 25. */
enum { SL_RUN_MAX = 32 };

/* Calls whose answer is not waited for: it comes with the next run, before its own. */
typedef struct sl_post {
    sl_call *calls; /* as of `run`; they live until then, their parameters need not */
    size_t count;
    bool answered; /* all of them succeeded, and what they wrote is committed */
} sl_post;

enum { SL_POST_MAX = 4 };

typedef struct sl_db_ops sl_db_ops;

typedef struct sl_db {
    const sl_db_ops *ops;
} sl_db; /* a driver's struct begins with it */

typedef struct sl_dsn {
    const char *url;
    const char *app;       /* shown in the server's list of sessions */
    const sl_names *names; /* must outlive the connection */
    int64_t connect_ns;    /* give up connecting after */
    int64_t statement_ns;  /* a statement without an answer for so long: connection lost */
    int64_t idle_in_tx_ns; /* 0, or the server ends a transaction that idles longer */
    bool
        steady; /* runs the same statements over and over: one plan for each, whatever the values are */
    bool create; /* a missing SQLite file is made */
    bool look;   /* change nothing: nothing is set or prepared on the session, so that it may go
                              through a pooler; a SQLite file is left as it is, wherever it is */
    int wake_fd; /* -1, or gives up waiting when readable, with SL_STOPPED */
    bool hasty;  /* it gives up at once then; else it waits a moment for an answer */
} sl_dsn;

struct sl_db_ops {
    const char *name;    /* "postgres": the folder under sql/ */
    const char *example; /* "postgresql://user@host/database" */
    const char *library; /* "libpq": what is linked, and its version as that library counts */
    int (*library_version)(void);
    bool
        session_locks; /* there are locks that outlive a transaction, and end with the session */
    bool (*accepts)(const char *url);
    SL_CHECK sl_rc (*open)(sl_db **out, const sl_dsn *dsn, sl_err *err);
    /* Wraps a connection that the caller owns; nothing is prepared or left behind on it, and
     * close does not close it. */
    SL_CHECK sl_rc (*adopt)(sl_db **out, void *native, const sl_names *names, sl_err *err);
    void (*close)(sl_db *db);
    /* Runs calls in order, SL_RUN_MAX at most, in one round trip where the database can. The first failure ends it:
     * an open transaction is then rolled back, unless the connection is adopted. */
    SL_CHECK sl_rc (*run)(sl_db *db, sl_call *calls, size_t count, sl_err *err);
    /* Sends calls, SL_POST_MAX at most, that are a transaction of their own, outside of any other. The next thing done
     * with the connection has to be a `run`, which may be empty: it fails if they have failed, and gives no rows then.
     * So both take one round trip. But the server has run both: what that run writes is written even if they failed.
     * NULL: that cannot be. */
    SL_CHECK sl_rc (*post)(sl_db *db, sl_post *post, sl_err *err);
    SL_CHECK sl_rc (*script)(sl_db *db, const char *sql, sl_err *err);
    void (*rollback)(sl_db *db); /* harmless outside a transaction */
    /* Between two runs: waits until someone else may have committed a message (*woken), fd is readable, or
     * the time has come. What happened before a call with until_ns 0, which does not wait, is forgotten:
     * whoever looks at the table after that and then waits misses nothing, on PostgreSQL by what sql/.../wake
     * has said, on SQLite by the file. */
    SL_CHECK sl_rc (*await)(sl_db *db, int fd, int64_t until_ns, bool *woken, sl_err *err);
    /* Between two runs, without asking the server: has it hung up? Then it has ended the transaction
     * and let go of its locks. Cheap enough for each message. */
    bool (*alive)(sl_db *db);
    bool (*in_tx)(sl_db *db); /* has whoever uses the connection begun a transaction? */
};

/* The dialects of this build, ended by NULL; written by Meson. */
extern const sl_db_ops *const sl_db_all[];

const sl_db_ops *sl_db_named(const char *name); /* NULL: not in this build */
/* By the URL. SL_OPERATOR names the databases there are. */
SL_CHECK sl_rc sl_db_find(const sl_db_ops **out, const char *url, sl_err *err);
SL_CHECK sl_rc sl_db_open(sl_db **out, const sl_dsn *dsn, sl_err *err);
void sl_db_close(sl_db *db);

/* Statements that this process has run, on all its connections, BEGIN and COMMIT included. */
uint64_t sl_db_statements(void);
void sl_db_count(size_t statements); /* for drivers */

/* A statement of this connection's dialect; asserts that it exists. */
const sl_stmt *sl_db_stmt(const sl_db *db, const char *name);
/* Few have no twin in the other dialects. */
bool sl_db_has(const sl_db *db, const char *name);
const sl_script *sl_script_named(const char *dialect, const char *name); /* or NULL */

/* Runs one statement alone. */
SL_CHECK sl_rc sl_db_run1(sl_db *db, const char *stmt, const sl_val *in, sl_row_fn row,
                          void *ctx, int64_t *affected, sl_err *err);

#endif
