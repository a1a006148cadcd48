/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_txn.h"

#include "core/clock.h"
#include "core/fault.h"
#include "core/mem.h"
#include "sink/kafka_ids.h"
#include "sink/kafka_position.h"

/* offset.metadata.max.bytes of a broker, if nobody has changed it. */
enum { METADATA_BYTES = 4096, METADATA_MIN_BYTES = 64, ID_MAX_CHARS = 13 };
#define FENCE_NS (20 * SL_SEC)
#define ABORT_NS (2 * SL_SEC)
/* It begins anew with each call. */
#define POSITION_NS (2 * SL_SEC)

static int ms_of(int64_t ns)
{
    return ns <= 0 ? 0 : (int)((ns + SL_MS - 1) / SL_MS);
}

void sl_kafka_txn_fini(sl_kafka_txn *t)
{
    free(t->id);
    sl_buf_fini(&t->ids);
    *t = (sl_kafka_txn){ 0 };
}

char *sl_kafka_txn_id(const char *fence, int64_t session)
{
    return sl_asprintf("%s/%llx", fence, (unsigned long long)session);
}

/* A message that is given up aborts the transaction: so none is overtaken, and it need not live for ever. */
void sl_kafka_txn_configure(rd_kafka_conf_t *conf, const char *id)
{
    char ms[32] = "60000", ignored[128];
    size_t n = sizeof ms;
    rd_kafka_conf_get(conf, "transaction.timeout.ms", ms, &n);
    rd_kafka_conf_set(conf, "transactional.id", id, ignored, sizeof ignored);
    rd_kafka_conf_set(conf, "message.timeout.ms", ms, ignored, sizeof ignored);
    rd_kafka_conf_set(conf, "enable.gapless.guarantee", "false", ignored, sizeof ignored);
}

void sl_kafka_txn_turn(sl_kafka_txn *t)
{
    sl_buf_reset(&t->ids);
    t->kept = 0;
    t->last_id = t->kept_id = 0;
}

/* ---- Errors ---- */

static void note(char why[160], const rd_kafka_error_t *error)
{
    snprintf(why, 160, "Kafka: %.150s", rd_kafka_error_string(error));
}

static bool is_fatal(const rd_kafka_t *rk, const rd_kafka_error_t *error)
{
    char ignored[8];
    return rd_kafka_error_is_fatal(error) ||
           rd_kafka_fatal_error((rd_kafka_t *)(uintptr_t)rk, ignored, sizeof ignored);
}

bool sl_kafka_is_shut_out(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR__FENCED || err == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
           err == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

/* ---- Initialising ---- */

bool sl_kafka_txn_init(sl_kafka_txn *t, int64_t timeout_ns, bool *spoiled, char why[160])
{
    rd_kafka_error_t *error = rd_kafka_init_transactions(t->rk, ms_of(timeout_ns));
    *spoiled = false;
    if (error) {
        note(why, error);
        *spoiled = !rd_kafka_error_is_retriable(error);
        rd_kafka_error_destroy(error);
        return false;
    }
    t->ready = true;
    t->room = t->room ? t->room : METADATA_BYTES;
    return true;
}

/* ---- A transaction ---- */

bool sl_kafka_txn_begin(sl_kafka_txn *t)
{
    if (t->open)
        return !t->committing && !t->lost;
    if (!t->ready)
        return false;
    rd_kafka_error_t *error = rd_kafka_begin_transaction(t->rk);
    if (error) {
        rd_kafka_error_destroy(error);
        return false;
    }
    t->open = true;
    t->positioned = t->committing = t->lost = false;
    t->number = (int64_t)(sl_random() >> 2); /* no other transaction's, of whatever producer */
    return true;
}

bool sl_kafka_txn_room(const sl_kafka_txn *t)
{
    return t->ids.n + ID_MAX_CHARS <= t->room;
}

void sl_kafka_txn_note(sl_kafka_txn *t, int64_t id)
{
    sl_kafka_ids_put(&t->ids, &t->last_id, id);
}

static sl_txn_came ended(sl_kafka_txn *t, sl_txn_came came)
{
    t->open = t->committing = t->lost = t->positioned = false;
    if (came == SL_TXN_COMMITTED) {
        t->kept = t->ids.n;
        t->kept_id = t->last_id;
    } else if (t->ids.p) {
        t->ids.n = t->kept;
        t->ids.p[t->kept] = '\0';
        t->last_id = t->kept_id;
    }
    return came;
}

/* The position as a part of it. */
static sl_txn_came position(sl_kafka_txn *t, int64_t timeout_ns, char why[160])
{
    timeout_ns = timeout_ns > POSITION_NS ? timeout_ns : POSITION_NS;
    rd_kafka_error_t *error = sl_kafka_position_put(t->rk, t->id, t->conf->positions, t->number,
                                                    &t->ids, ms_of(timeout_ns), &t->stuck);
    if (!error) {
        t->positioned = true;
        return SL_TXN_GOES_ON;
    }
    sl_txn_came came = SL_TXN_GOES_ON;
    note(why, error);
    if (rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE)
        t->room = t->room / 2 > METADATA_MIN_BYTES ? t->room / 2 : METADATA_MIN_BYTES;
    if (t->stuck) { /* nobody asks for its commit: the next to initialise ends it */
        sl_log_line(t->log, SL_LOG_WARN, "librdkafka hangs, a new producer goes on", "error",
                    why, NULL);
        came = ended(t, SL_TXN_NOT);
    } else if (!rd_kafka_error_is_retriable(error)) {
        sl_kafka_txn_abort(t, ABORT_NS);
        came = SL_TXN_NOT;
    }
    rd_kafka_error_destroy(error);
    return came;
}

sl_txn_came sl_kafka_txn_commit(sl_kafka_txn *t, int64_t timeout_ns, char why[160])
{
    if (t->conf->exact && !t->positioned) {
        sl_txn_came came = position(t, timeout_ns, why);
        if (!t->positioned)
            return came;
    }
    if (!t->committing)
        SL_FAULT("committing");
    t->committing = true;
    rd_kafka_error_t *error = rd_kafka_commit_transaction(t->rk, ms_of(timeout_ns));
    if (!error) {
        SL_FAULT("committed");
        return ended(t, SL_TXN_COMMITTED);
    }
    sl_txn_came came = SL_TXN_GOES_ON;
    note(why, error);
    if (is_fatal(t->rk, error) ||
        (!rd_kafka_error_is_retriable(error) && !rd_kafka_error_txn_requires_abort(error))) {
        /* Another has initialised the id, or the brokers have given the transaction up: after the commit, or before. */
        t->lost = true;
        t->fresh = false;
    } else if (rd_kafka_error_txn_requires_abort(error)) {
        sl_kafka_txn_abort(t, ABORT_NS);
        came = SL_TXN_NOT;
    }
    rd_kafka_error_destroy(error);
    return came;
}

void sl_kafka_txn_abort(sl_kafka_txn *t, int64_t timeout_ns)
{
    rd_kafka_error_t *error = t->open && t->rk && !t->stuck
                                  ? rd_kafka_abort_transaction(t->rk, ms_of(timeout_ns))
                                  : NULL;
    if (error)
        rd_kafka_error_destroy(error);
    ended(t, SL_TXN_NOT);
}

/* To initialise the id ends its transaction, one way or the other; then its position tells which. */
sl_txn_came sl_kafka_txn_find_out(sl_kafka_txn *t, int64_t timeout_ns, char why[160])
{
    bool spoiled;
    int64_t number = 0;
    if (!t->ready && !sl_kafka_txn_init(t, timeout_ns, &spoiled, why)) {
        t->fresh = !spoiled;
        return SL_TXN_GOES_ON;
    }
    if (!t->conf->exact)
        return ended(t, SL_TXN_UNKNOWN);
    if (!sl_kafka_position_get(t->conf, t->id, &number, NULL, why))
        return SL_TXN_GOES_ON;
    return ended(t, number == t->number ? SL_TXN_COMMITTED : SL_TXN_NOT);
}

/* ---- Of another ---- */

static sl_rc fence_by(rd_kafka_t *rk, const sl_kafka_conf *c, const char *id, sl_fenced_fn fn,
                      void *ctx, sl_err *err)
{
    char why[160] = "";
    int64_t number;
    sl_buf ids = { 0 };
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, ms_of(FENCE_NS));
    if (error) {
        sl_fail(err, SL_AGAIN, "cannot fence %.200s: %s", id, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        return SL_AGAIN;
    }
    if (!c->exact)
        return SL_OK;
    sl_rc rc = SL_OK;
    if (!sl_kafka_position_get(c, id, &number, &ids, why))
        rc = sl_fail(err, SL_AGAIN, "cannot read the position of %.200s: %s", id, why);
    else if (!sl_kafka_ids_each((sl_str){ sl_buf_text(&ids), ids.n }, fn, ctx))
        rc = sl_fail(err, SL_AGAIN,
                     "the position of %.200s cannot be understood\nhint: delete that consumer "
                     "group; what its last turn delivered may then be delivered twice",
                     id);
    sl_buf_fini(&ids);
    return rc;
}

sl_rc sl_kafka_fence(const sl_sink_conf *from, int64_t session, sl_fenced_fn fn, void *ctx,
                     sl_err *err)
{
    char why[512] = "";
    sl_kafka_conf c;
    sl_rc rc = sl_kafka_conf_read(&c, from, err);
    if (rc != SL_OK)
        return rc;
    char *id = sl_kafka_txn_id(c.fence, session);
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(c.rk);
    sl_kafka_txn_configure(conf, id);
    rd_kafka_conf_set(conf, "log_level", "0", why,
                      sizeof why); /* what fails is told by its caller */
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk) {
        rc = fence_by(rk, &c, id, fn, ctx, err);
        rd_kafka_destroy(rk);
    } else {
        rd_kafka_conf_destroy(conf);
        rc = sl_fail(err, SL_AGAIN, "sink kafka: %s", why);
    }
    free(id);
    sl_kafka_conf_fini(&c);
    return rc;
}
