/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's inbox: handling the same message twice is a no-op, since the note that it was handled is part of the
 * transaction that handles it. Used on the caller's connection, like a push. */
#include "core/utf8.h"
#include "lib/conf.h"

enum { TEXT_MAX_BYTES = 512 };

static sl_rc check_text(const char *what, const char *text, sl_err *err)
{
    if (!text || !*text)
        return sl_fail(err, SL_REFUSED, "the %s is missing", what);
    if (strlen(text) > TEXT_MAX_BYTES)
        return sl_fail(err, SL_REFUSED, "the %s has %zu bytes, %d are allowed", what,
                       strlen(text), TEXT_MAX_BYTES);
    if (!sl_is_utf8(sl_str_of(text)))
        return sl_fail(err, SL_REFUSED, "the %s is not UTF-8", what);
    return SL_OK;
}

static sl_rc note(sl_db *db, const char *consumer, const char *message_id, int *fresh,
                  sl_err *err)
{
    int64_t noted = 0;
    /* Else the note would be there before the work is done, and stay if that is never done. */
    if (!db->ops->in_tx(db))
        return sl_fail(err, SL_REFUSED,
                       "no transaction is open\nhint: BEGIN, note the message, do the work, "
                       "COMMIT: else a crash in between loses the message");
    sl_val in[] = { sl_text(sl_str_of(consumer)), sl_text(sl_str_of(message_id)) };
    sl_rc rc = sl_db_run1(db, "inbox/note", in, NULL, NULL, &noted, err);
    *fresh = rc == SL_OK && noted == 1;
    return rc;
}

static sl_rc note_names(sl_names *out, const sl_conf *conf, sl_err *err)
{
    return conf ? sl_conf_names(out, &conf->settings, err)
                : sl_names_init(out, "outbox", NULL, err);
}

static sl_rc note_on(const char *dialect, void *native, const sl_conf *conf,
                     const char *consumer, const char *message_id, int *fresh, sl_err *err)
{
    sl_db *db;
    sl_names names;
    const sl_db_ops *ops = sl_db_named(dialect);
    *fresh = 0;
    if (!ops)
        return sl_fail(err, SL_OPERATOR, "this build of libsluice has no %s", dialect);
    sl_rc rc = check_text("consumer", consumer, err);
    if (rc == SL_OK)
        rc = check_text("message id", message_id, err);
    if (rc == SL_OK)
        rc = note_names(&names, conf, err);
    if (rc != SL_OK)
        return rc;
    rc = ops->adopt(&db, native, &names, err);
    if (rc == SL_OK) {
        rc = note(db, consumer, message_id, fresh, err);
        sl_db_close(db);
    }
    sl_names_fini(&names);
    return rc;
}

sl_rc sl_inbox_pg(struct pg_conn *conn, const sl_conf *conf, const char *consumer,
                  const char *message_id, int *fresh, sl_err *err)
{
    return note_on("postgres", conn, conf, consumer, message_id, fresh, err);
}

sl_rc sl_inbox_sqlite(struct sqlite3 *db, const sl_conf *conf, const char *consumer,
                      const char *message_id, int *fresh, sl_err *err)
{
    return note_on("sqlite", db, conf, consumer, message_id, fresh, err);
}
