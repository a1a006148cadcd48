/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_record.h"

static rd_kafka_headers_t *headers_of(const sl_encoded *e)
{
    if (!e->header_count)
        return NULL;
    rd_kafka_headers_t *h = rd_kafka_headers_new(e->header_count);
    for (size_t i = 0; i < e->header_count; i++)
        rd_kafka_header_add(h, e->headers[i].name.p, (ssize_t)e->headers[i].name.n,
                            e->headers[i].value.p, (ssize_t)e->headers[i].value.n);
    return h;
}

rd_kafka_resp_err_t sl_kafka_produce(rd_kafka_t *rk, const sl_kafka_conf *c,
                                     const sl_kafka_topic *t, int32_t partition, sl_msg *m,
                                     const sl_encoded *e)
{
    rd_kafka_headers_t *headers = headers_of(e);
    rd_kafka_vu_t vus[8] = {
        { .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = t->rkt },
        { .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition },
        { .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)e->value.p, e->value.n } },
        { .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)m->key.p, m->key.n } },
        { .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = m },
        { .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
        /* 0: now */
        { .vtype = RD_KAFKA_VTYPE_TIMESTAMP,
          .u.i64 = c->created_time ? m->created_us / 1000 : 0 },
        { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
    };
    rd_kafka_error_t *error = rd_kafka_produceva(rk, vus, headers ? 8 : 7);
    if (!error)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    /* After a fatal error its code is that error's own, as if it were about this message. */
    rd_kafka_resp_err_t err =
        rd_kafka_error_is_fatal(error) ? RD_KAFKA_RESP_ERR__FATAL : rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    if (headers)
        rd_kafka_headers_destroy(headers);
    return err;
}
