/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run: worker threads of the library call your handler for each message, until the program is
 * told to stop. This is `sluice run` with your own code as the sink.
 *
 *   run_handler sqlite:shop.db workers=2 drain=true
 *
 * Each further argument is a setting of sluice.yaml(5). TERM or INT ends it: what is in hand is
 * finished first.
 *
 *   cc run_handler.c $(pkg-config --cflags --libs sluice)
 */
#include <inttypes.h>
#include <signal.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <string.h>

/* Called from several threads at once, but messages of one key come one at a time and in order: one that
 * is to be tried again holds those behind it back. The message is borrowed until it returns. */
static sl_verdict handle(void *ctx, const sl_msg *m, sl_reply *reply)
{
    FILE *out = ctx;
    size_t bytes;
    const char *payload = sl_msg_payload(m, &bytes);

    fprintf(out, "%" PRId64 " %s attempt %" PRId32 ": %.*s\n", sl_msg_id(m), sl_msg_topic(m),
            sl_msg_attempt(m), (int)bytes, payload);
    if (strcmp(sl_msg_type(m), "broken") == 0) {
        sl_reply_reason(reply, "cannot be read"); /* seen in the table of dead letters */
        return SL_DEAD;
    }
    if (strcmp(sl_msg_type(m), "flaky") == 0 && sl_msg_attempt(m) < 2) {
        sl_reply_reason(reply, "not now");
        sl_reply_delay(reply, 100); /* ms; without it: retry_base, doubled each time */
        return SL_RETRY;
    }
    return SL_SENT; /* only if it is really done: the message goes from the table */
}

static void log_line(void *ctx, const char *level, const char *line)
{
    (void)level;
    fprintf(ctx, "%s\n", line);
}

static sl_runner *runner;

static void on_signal(int signo)
{
    (void)signo;
    sl_run_stop(runner); /* may be called from a signal handler */
}

static sl_rc set_all(sl_conf *conf, char **pairs, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (; rc == SL_OK && *pairs; pairs++) {
        char *value = strchr(*pairs, '=');
        if (value)
            *value++ = '\0';
        rc = sl_conf_set(conf, *pairs, value ? value : "true", err);
    }
    return rc;
}

int main(int argc, char **argv)
{
    sl_err err = { 0 };
    if (argc < 2) {
        fprintf(stderr, "usage: run_handler URL [SETTING=VALUE...]\n");
        return 2;
    }
    sl_conf *conf = sl_conf_new();
    sl_conf_log(conf, log_line, stderr);
    sl_rc rc = sl_conf_set(conf, "db", argv[1], &err);
    if (rc == SL_OK)
        rc = set_all(conf, argv + 2, &err);
    if (rc == SL_OK)
        rc = sl_run_open(&runner, conf, handle, stdout, &err);
    if (rc == SL_OK) {
        struct sigaction act = { .sa_handler = on_signal };
        sigaction(SIGTERM, &act, NULL);
        sigaction(SIGINT, &act, NULL);
        rc = sl_run(runner, &err);
    }
    if (rc != SL_OK)
        fprintf(stderr, "%s\n", err.text);
    sl_run_close(runner);
    sl_conf_free(conf);
    return rc == SL_OK ? 0 : 1;
}
