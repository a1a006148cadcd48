/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka's mock cluster as a server of its own, for tests that want errors by the script, or that find
 * no Kafka to run:
 *
 *   mockkafka BROKERS
 *
 * The first line that it writes are the addresses, as bootstrap.servers has them. Then each line of standard
 * input is a command, and answered by `ok` or by what is wrong with it:
 *
 *   topic NAME PARTITIONS REPLICATION
 *   topicerror NAME ERROR                  in the metadata of a topic; 0 heals it
 *   leader NAME PARTITION BROKER
 *   error API ERROR [xTIMES]               the answer to the next requests, on any broker
 *   brokererror BROKER API ERROR MS        the next answer of one broker, which is late
 *   clear API                              the errors that nobody has met yet
 *   rtt BROKER MS
 *   down BROKER
 *   up BROKER
 *
 * API is a name (Produce) or its number in the protocol, ERROR a number, or a name without RD_KAFKA_RESP_ERR_
 * (MSG_SIZE_TOO_LARGE; _TRANSPORT closes the connection). It ends when its standard input does.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 8
#define MAX_TIMES 1000

typedef rd_kafka_mock_cluster_t cluster;

/* A number of words that a command has behind its name, at least; the first is argv[0]. */
typedef struct command {
    const char *name;
    int words;
    const char *(*run)(cluster *mock, char **argv); /* NULL, or what is wrong */
} command;

static const struct api {
    const char *name;
    int16_t number;
} apis[] = {
    { "Produce", 0 },
    { "Fetch", 1 },
    { "ListOffsets", 2 },
    { "Metadata", 3 },
    { "OffsetCommit", 8 },
    { "OffsetFetch", 9 },
    { "FindCoordinator", 10 },
    { "JoinGroup", 11 },
    { "Heartbeat", 12 },
    { "SyncGroup", 14 },
    { "ApiVersions", 18 },
    { "InitProducerId", 22 },
    { "AddPartitionsToTxn", 24 },
    { "AddOffsetsToTxn", 25 },
    { "EndTxn", 26 },
    { "TxnOffsetCommit", 28 },
};

static int number(const char *word, long least, long most, long *found)
{
    char *end;
    *found = strtol(word, &end, 10);
    return end != word && !*end && *found >= least && *found <= most;
}

static int api_of(const char *word, int16_t *found)
{
    long n;
    for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++)
        if (strcmp(word, apis[i].name) == 0) {
            *found = apis[i].number;
            return 1;
        }
    if (!number(word, 0, 100, &n))
        return 0;
    *found = (int16_t)n;
    return 1;
}

static int error_of(const char *word, rd_kafka_resp_err_t *found)
{
    const struct rd_kafka_err_desc *all;
    size_t n;
    long code;
    int by_number = number(word, -1000, 1000, &code);
    rd_kafka_get_err_descs(&all, &n);
    for (size_t i = 0; i < n; i++)
        if (by_number ? all[i].code == code : all[i].name && strcmp(all[i].name, word) == 0) {
            *found = all[i].code;
            return 1;
        }
    return 0;
}

static const char *result(rd_kafka_resp_err_t err)
{
    return err ? rd_kafka_err2str(err) : NULL;
}

static const char *run_topic(cluster *mock, char **argv)
{
    long partitions, replication;
    if (!number(argv[2], 1, 1000, &partitions) || !number(argv[3], 1, 100, &replication))
        return "numbers of partitions and replicas are wanted";
    return result(rd_kafka_mock_topic_create(mock, argv[1], (int)partitions, (int)replication));
}

static const char *run_topicerror(cluster *mock, char **argv)
{
    rd_kafka_resp_err_t err;
    if (!error_of(argv[2], &err))
        return "no such error";
    rd_kafka_mock_topic_set_error(mock, argv[1], err);
    return NULL;
}

static const char *run_leader(cluster *mock, char **argv)
{
    long partition, broker;
    if (!number(argv[2], 0, 1000, &partition) || !number(argv[3], -1, 100, &broker))
        return "numbers of a partition and a broker are wanted";
    return result(
        rd_kafka_mock_partition_set_leader(mock, argv[1], (int32_t)partition, (int32_t)broker));
}

static const char *run_error(cluster *mock, char **argv)
{
    int16_t api;
    rd_kafka_resp_err_t err, all[MAX_TIMES];
    long times = 1;
    if (!api_of(argv[1], &api) || !error_of(argv[2], &err))
        return "no such API, or no such error";
    if (argv[3] && (argv[3][0] != 'x' || !number(argv[3] + 1, 1, MAX_TIMES, &times)))
        return "x1 to x1000 are wanted as the number of times";
    for (long i = 0; i < times; i++)
        all[i] = err;
    rd_kafka_mock_push_request_errors_array(mock, api, (size_t)times, all);
    return NULL;
}

static const char *run_brokererror(cluster *mock, char **argv)
{
    int16_t api;
    rd_kafka_resp_err_t err;
    long broker, ms;
    if (!api_of(argv[2], &api) || !error_of(argv[3], &err))
        return "no such API, or no such error";
    if (!number(argv[1], 1, 100, &broker) || !number(argv[4], 0, 3600000, &ms))
        return "numbers of a broker and of milliseconds are wanted";
    return result(rd_kafka_mock_broker_push_request_error_rtts(mock, (int32_t)broker, api, 1,
                                                               err, (int)ms));
}

static const char *run_clear(cluster *mock, char **argv)
{
    int16_t api;
    if (!api_of(argv[1], &api))
        return "no such API";
    rd_kafka_mock_clear_request_errors(mock, api);
    return NULL;
}

static const char *run_rtt(cluster *mock, char **argv)
{
    long broker, ms;
    if (!number(argv[1], 1, 100, &broker) || !number(argv[2], 0, 3600000, &ms))
        return "numbers of a broker and of milliseconds are wanted";
    return result(rd_kafka_mock_broker_set_rtt(mock, (int32_t)broker, (int)ms));
}

static const char *run_down(cluster *mock, char **argv)
{
    long broker;
    if (!number(argv[1], 1, 100, &broker))
        return "the number of a broker is wanted";
    return result(rd_kafka_mock_broker_set_down(mock, (int32_t)broker));
}

static const char *run_up(cluster *mock, char **argv)
{
    long broker;
    if (!number(argv[1], 1, 100, &broker))
        return "the number of a broker is wanted";
    return result(rd_kafka_mock_broker_set_up(mock, (int32_t)broker));
}

static const command commands[] = {
    { "topic", 4, run_topic },
    { "topicerror", 3, run_topicerror },
    { "leader", 4, run_leader },
    { "error", 3, run_error },
    { "brokererror", 5, run_brokererror },
    { "clear", 2, run_clear },
    { "rtt", 3, run_rtt },
    { "down", 2, run_down },
    { "up", 2, run_up },
};

static const char *obey(cluster *mock, char *line)
{
    char *argv[MAX_WORDS + 1] = { 0 }, *rest = NULL;
    int words = 0;
    for (char *w = strtok_r(line, " \n", &rest); w; w = strtok_r(NULL, " \n", &rest)) {
        if (words == MAX_WORDS)
            return "too many words";
        argv[words++] = w;
    }
    for (size_t i = 0; words && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return words < commands[i].words ? "too few words" : commands[i].run(mock, argv);
    return "no such command";
}

int main(int argc, char **argv)
{
    char reason[512], line[1024];
    long brokers;
    if (argc != 2 || !number(argv[1], 1, 100, &brokers)) {
        fprintf(stderr, "usage: mockkafka BROKERS\n");
        return 2;
    }
    rd_kafka_t *handle =
        rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), reason, sizeof reason);
    cluster *mock = handle ? rd_kafka_mock_cluster_new(handle, (int)brokers) : NULL;
    if (!mock) {
        fprintf(stderr, "mockkafka: %s\n", handle ? "no cluster" : reason);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s\n", rd_kafka_mock_cluster_bootstraps(mock));
    while (fgets(line, sizeof line, stdin)) {
        const char *wrong = obey(mock, line);
        printf("%s\n", wrong ? wrong : "ok");
    }
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(handle);
    return 0;
}
