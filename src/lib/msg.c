/* SPDX-License-Identifier: Apache-2.0 */
/* The public view of a message. Its text lives in the batch's arena and is NUL-terminated
 * there. */
#include "core/batch.h"
#include "core/err.h"

int64_t sl_msg_id(const sl_msg *m)
{
    return m->id;
}

const char *sl_msg_topic(const sl_msg *m)
{
    return m->topic.p;
}

const char *sl_msg_key(const sl_msg *m, size_t *bytes)
{
    if (bytes)
        *bytes = m->key.n;
    return m->key.p;
}

const void *sl_msg_payload(const sl_msg *m, size_t *bytes)
{
    if (bytes)
        *bytes = m->payload.n;
    return m->payload.p;
}

const char *sl_msg_type(const sl_msg *m)
{
    return m->type.p;
}

const char *sl_msg_content_type(const sl_msg *m)
{
    return m->content_type.p;
}

const char *sl_msg_headers(const sl_msg *m)
{
    return m->headers.p;
}

int64_t sl_msg_created_us(const sl_msg *m)
{
    return m->created_us;
}

int32_t sl_msg_attempt(const sl_msg *m)
{
    return m->attempt;
}

int64_t sl_msg_epoch(const sl_msg *m)
{
    return m->epoch;
}
