/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_put.h"

#include "core/clock.h"
#include "core/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct sl_kafka_put {
    rd_kafka_t *rk;
    rd_kafka_topic_partition_list_t *parts;
    rd_kafka_consumer_group_metadata_t *group;
    int timeout_ms;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t came;
    bool over; /* the call has come back */
    bool left; /* nobody waits for it */
    rd_kafka_error_t *error;
};

static void put_free(sl_kafka_put *p)
{
    if (p->error)
        rd_kafka_error_destroy(p->error);
    rd_kafka_topic_partition_list_destroy(p->parts);
    rd_kafka_consumer_group_metadata_destroy(p->group);
    pthread_cond_destroy(&p->came);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void *call(void *arg)
{
    sl_kafka_put *p = arg;
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(p->rk, p->parts, p->group, p->timeout_ms);
    pthread_mutex_lock(&p->lock);
    p->over = true;
    p->error = error;
    bool left = p->left;
    pthread_cond_signal(&p->came);
    pthread_mutex_unlock(&p->lock);
    if (left) {
        rd_kafka_destroy(p->rk);
        put_free(p);
    }
    return NULL;
}

static sl_kafka_put *put_new(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *parts,
                             rd_kafka_consumer_group_metadata_t *group, int timeout_ms)
{
    sl_kafka_put *p = sl_alloc(sizeof *p);
    pthread_condattr_t attr;
    p->rk = rk;
    p->parts = parts;
    p->group = group;
    p->timeout_ms = timeout_ms;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->came, &attr);
    pthread_condattr_destroy(&attr);
    return p;
}

/* False: it has not come back in time. */
static bool wait_for(sl_kafka_put *p, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ns / SL_SEC);
    until.tv_nsec += ns % SL_SEC;
    until.tv_sec += until.tv_nsec / SL_SEC;
    until.tv_nsec %= SL_SEC;
    pthread_mutex_lock(&p->lock);
    while (!p->over && pthread_cond_timedwait(&p->came, &p->lock, &until) == 0)
        ;
    bool over = p->over;
    pthread_mutex_unlock(&p->lock);
    return over;
}

rd_kafka_error_t *sl_kafka_put_offsets(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *parts,
                                       rd_kafka_consumer_group_metadata_t *group,
                                       int timeout_ms, int64_t patience_ns,
                                       sl_kafka_put **stuck)
{
    pthread_t thread;
    sl_kafka_put *p = put_new(rk, parts, group, timeout_ms);
    if (pthread_create(&thread, NULL, call, p) != 0) {
        put_free(p);
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE,
                                  "cannot start a thread");
    }
    if (!wait_for(p, timeout_ms * SL_MS + patience_ns)) {
        pthread_detach(thread);
        *stuck = p;
        return rd_kafka_error_new(SL_KAFKA_STUCK, "librdkafka does not come back");
    }
    pthread_join(thread, NULL);
    rd_kafka_error_t *error = p->error;
    p->error = NULL;
    put_free(p);
    return error;
}

bool sl_kafka_put_leave(sl_kafka_put *p)
{
    pthread_mutex_lock(&p->lock);
    p->left = !p->over;
    bool left = p->left;
    pthread_mutex_unlock(&p->lock);
    if (!left)
        put_free(p);
    return !left;
}
