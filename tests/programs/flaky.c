/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node whose sink does as each message says, for end-to-end tests: sl_run with a handler.
 *
 *   flaky OUT SETTING=VALUE...
 *
 * Delivered messages are appended to OUT as lines of a file: sink. Until OUT.healed is there, a payload with
 *   "fail":N   is not delivered for N attempts (-1: for ever),
 *   "dead":1   can never be delivered, as a sink would say,
 *   "kill":1   ends the program, as SIGKILL would, in the middle of its delivery,
 *   "down":1   finds that nothing can be delivered now.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sluice/sluice.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sl_runner *runner;

typedef struct place {
    int fd;
    char healed[512];
} place;

static void on_signal(int signo)
{
    (void)signo;
    sl_run_stop(runner);
}

/* What a payload says of a word; 0: nothing. */
static long said(const char *payload, const char *word)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", word);
    const char *at = strstr(payload, quoted);
    return at ? strtol(at + strlen(quoted), NULL, 10) : 0;
}

static void write_line(const place *p, const sl_msg *m, const char *payload)
{
    char line[4096];
    size_t key_bytes;
    const char *key = sl_msg_key(m, &key_bytes);
    int n = snprintf(line, sizeof line,
                     "{\"id\":%" PRId64
                     ",\"topic\":\"%s\",\"key\":%s%.*s%s,\"type\":\"\",\"payload\":%s,"
                     "\"headers\":{},\"attempt\":%" PRId32
                     ",\"worker\":\"flaky-%ld\",\"epoch\":%" PRId64 "}\n",
                     sl_msg_id(m), sl_msg_topic(m), key ? "\"" : "null",
                     key ? (int)key_bytes : 0, key ? key : "", key ? "\"" : "", payload,
                     sl_msg_attempt(m), (long)getpid(), sl_msg_epoch(m));
    if (write(p->fd, line, (size_t)n) != n)
        abort();
}

static sl_verdict handle(void *ctx, const sl_msg *m, sl_reply *reply)
{
    const place *p = ctx;
    char payload[2048];
    size_t bytes;
    const char *bytes_at = sl_msg_payload(m, &bytes);
    snprintf(payload, sizeof payload, "%.*s", (int)bytes, bytes_at);
    bool healed = access(p->healed, F_OK) == 0;
    long fails = said(payload, "fail");

    if (!healed && said(payload, "kill"))
        raise(SIGKILL);
    if (!healed && said(payload, "down")) {
        sl_reply_reason(reply, "nothing goes");
        return SL_RELEASED;
    }
    if (!healed && (fails < 0 || sl_msg_attempt(m) <= fails)) {
        sl_reply_reason(reply, fails < 0 ? "not today" : "not now");
        return SL_RETRY;
    }
    if (!healed && said(payload, "dead")) {
        sl_reply_reason(reply, "not this one");
        return SL_DEAD;
    }
    write_line(p, m, payload);
    return SL_SENT;
}

static void log_line(void *ctx, const char *level, const char *line)
{
    (void)level;
    fprintf(ctx, "%s\n", line);
}

static int fail(const sl_err *err)
{
    fprintf(stderr, "flaky: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    sl_err err = { 0 };
    place p;
    sl_conf *conf = sl_conf_new();
    if (argc < 2)
        return 2;
    snprintf(p.healed, sizeof p.healed, "%s.healed", argv[1]);
    p.fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    sl_conf_log(conf, log_line, stderr);
    for (char **pair = argv + 2; *pair; pair++) {
        char *value = strchr(*pair, '=');
        if (!value)
            return 2;
        *value++ = '\0';
        if (sl_conf_set(conf, *pair, value, &err) != SL_OK)
            return fail(&err);
    }
    if (p.fd < 0 || sl_run_open(&runner, conf, handle, &p, &err) != SL_OK)
        return fail(&err);
    signal(SIGTERM, on_signal);
    sl_rc rc = sl_run(runner, &err);
    sl_run_close(runner);
    sl_conf_free(conf);
    close(p.fd);
    return rc == SL_OK ? 0 : fail(&err);
}
