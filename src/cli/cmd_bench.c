/* SPDX-License-Identifier: Apache-2.0 */
/* `sluice bench`: which scenario, how much of it, and the report. How it is measured is in src/bench. */
#include "cli/bench_print.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/mem.h"

#include <signal.h>
#include <unistd.h>

typedef struct bench_flags {
    int64_t rows, keys, bytes, rate, producers, rounds, seconds_ns;
    bool json;
} bench_flags;

#define FLAG(member) offsetof(bench_flags, member)

static const sl_opt flags[] = {
    { "rows", SL_OPT_INT, FLAG(rows), "0", 0, 100000000, SL_OPT_CLI_ONLY, "N",
      "Messages in each run (drain and nodes 400000, blocked and snapshot 100000, processors "
      "and "
      "hot 10000); of backlog the most that wait (10000000)." },
    { "keys", SL_OPT_INT, FLAG(keys), "5000", 1, 10000000, SL_OPT_CLI_ONLY, "N",
      "Keys, which take turns." },
    { "bytes", SL_OPT_INT, FLAG(bytes), "200", 1, 1000000, SL_OPT_CLI_ONLY, "N",
      "Of a payload, about." },
    { "rate", SL_OPT_INT, FLAG(rate), "0", 0, 10000000, SL_OPT_CLI_ONLY, "N",
      "Of steady: messages a second; 0 is half of what a drain in batches of 500 reaches, "
      "which is measured first." },
    { "producers", SL_OPT_INT, FLAG(producers), "0", 0, 64, SL_OPT_CLI_ONLY, "N",
      "Of steady: so many sessions commit messages, each at its share of the rate; 0 is one "
      "for "
      "each 70000 messages a second." },
    { "seconds", SL_OPT_TIME, FLAG(seconds_ns), "30s", SL_SEC, 86400 * SL_SEC, SL_OPT_CLI_ONLY,
      "TIME", "Of steady and idle: for how long." },
    { "rounds", SL_OPT_INT, FLAG(rounds), "3", 1, SL_BENCH_ROUNDS_MAX, SL_OPT_CLI_ONLY, "N",
      "Of drain, and of the drains that steady takes its rate from: the one in the middle "
      "counts." },
    { "json", SL_OPT_BOOL, FLAG(json), "false", 0, 0, SL_OPT_CLI_ONLY, NULL,
      "Print one JSON object; its members are documented in sluice(1) and stay." },
    { .name = NULL },
};

typedef struct report {
    sl_bench_row *rows;
    size_t count;
    const char *doing;
    sl_progress progress;
} report;

static volatile sig_atomic_t asked_to_stop;

static void note_signal(int signal)
{
    (void)signal;
    asked_to_stop = 1;
}

static bool stopped(void *ctx)
{
    (void)ctx;
    return asked_to_stop;
}

/* ---- What the bench tells ---- */

static void say(void *ctx, const char *what)
{
    report *r = ctx;
    sl_progress_end(&r->progress);
    free((char *)(uintptr_t)r->doing);
    r->doing = sl_strdup(what);
    sl_progress_begin_of(&r->progress, r->doing, 0);
}

static void show(void *ctx, int64_t done, int64_t total)
{
    report *r = ctx;
    if (r->progress.total_bytes != (uint64_t)total)
        sl_progress_begin_of(&r->progress, r->doing, (uint64_t)total);
    sl_progress_step(&r->progress, (uint64_t)done, (uint64_t)done);
}

static void keep(void *ctx, const sl_bench_row *row)
{
    report *r = ctx;
    r->rows = sl_realloc(r->rows, (r->count + 1) * sizeof *r->rows);
    r->rows[r->count++] = *row;
}

/* ---- The command ---- */

static sl_bench_wish wish_of(const bench_flags *own)
{
    return (sl_bench_wish){ .rows = own->rows,
                            .keys = own->keys,
                            .bytes = own->bytes,
                            .rate = own->rate,
                            .producers = own->producers,
                            .rounds = own->rounds,
                            .seconds = own->seconds_ns / SL_SEC };
}

/* The tables are removed and the nodes ended, whoever interrupts. */
static void catch_signals(void)
{
    struct sigaction act = { .sa_handler = note_signal };
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
}

/* Also what was measured before something went wrong. */
static void print(const sl_cli *cli, const sl_scene *scene, const char *database,
                  const report *r)
{
    const bench_flags *own = cli->own;
    if (own->json)
        sl_bench_print_json(scene, database, &cli->settings, r->rows, r->count, stdout);
    else if (r->count)
        sl_bench_print_table(scene, r->rows, r->count, stdout);
}

static int measure(sl_cli *cli, const sl_scene *scene)
{
    const bench_flags *own = cli->own;
    sl_err err = { 0 };
    report r = { 0 };
    char database[64] = "";
    sl_bench b = { .settings = &cli->settings,
                   .wish = wish_of(own),
                   .say = say,
                   .progress = show,
                   .row = keep,
                   .stopped = stopped,
                   .database = database,
                   .ctx = &r };
    catch_signals();
    sl_rc rc = sl_bench_run(&b, scene, &err);
    sl_progress_end(&r.progress);
    print(cli, scene, database, &r);
    free(r.rows);
    free((char *)(uintptr_t)r.doing);
    if (rc == SL_OK)
        return SL_EXIT_OK;
    return sl_cli_fail(cli, rc == SL_REFUSED ? SL_EXIT_USAGE : sl_cli_status_of(&err), &err);
}

static int which(const sl_cli *cli)
{
    sl_buf names = { 0 };
    for (const sl_scene *const *s = sl_scene_all; *s; s++)
        sl_buf_printf(&names, "%s%s", s == sl_scene_all ? "" : ", ", (*s)->name);
    int status = cli->argc == 0
                     ? sl_cli_usage(cli, "which scenario?\nhint: %s", sl_buf_text(&names))
                     : sl_cli_usage(cli, "there is no scenario '%.60s'\nhint: %s", cli->argv[0],
                                    sl_buf_text(&names));
    sl_buf_fini(&names);
    return status;
}

static int run(sl_cli *cli)
{
    const sl_scene *scene = cli->argc ? sl_scene_named(cli->argv[0]) : NULL;
    if (!scene)
        return which(cli);
    if (cli->argc > 1)
        return sl_cli_usage(cli, "one scenario at a time, not also '%.60s'", cli->argv[1]);
    return measure(cli, scene);
}

const sl_cmd sl_cmd_bench = {
    .name = "bench",
    .summary = "measure, against a ceiling",
    .synopsis = "sluice bench SCENARIO [--db URL] [--sink URL] [--rows N] [--json] ...",
    .details =
        "Starts nodes of this program on tables of its own and tells how fast they were: "
        "beside a bare loop of SQL on the same "
        "table in the same run, or beside themselves under other circumstances. Only the "
        "ratios say something about the "
        "program; the other figures are as much about the machine. What was delivered is "
        "checked: if a message is lost, "
        "comes twice or out of the order of its key, the run has failed.\n"
        "\n"
        "Scenarios:\n"
        "  drain       a full table until it is empty, by each strategy with 1 to 8 workers, "
        "beside a bare loop of SQL\n"
        "  steady      producers at a steady rate: how long messages take from commit to "
        "delivery\n"
        "  processors  10,000 messages into a sink that takes a millisecond for each, by 1, 2, "
        "4 and 8 workers\n"
        "  backlog     the rate while 10 thousand to 10 million messages wait\n"
        "  blocked     the rate beside 100,000 messages that wait behind failed ones of their "
        "keys\n"
        "  snapshot    the rate beside a session that holds an old snapshot open\n"
        "  hot         half of all messages on one key: what the others have of it\n"
        "  idle        what a node costs that has nothing to do, for a second (processor: "
        "microseconds of it)\n"
        "  nodes       a full table until it is empty, by 1, 2, 4 and 8 processes\n"
        "\n"
        "In PostgreSQL it makes a schema sluice_bench and drops it at the end; of SQLite, a "
        "file beside the one that is named, with "
        "-bench at the end of its name. Nothing else is touched. --strategy and --workers "
        "limit what is measured; other "
        "settings of a node, as --batch, --wake and --sink (null: unless given), are those "
        "that its nodes have.\n"
        "\n"
        "statements, WAL bytes and dead rows are for one message, cpu and db cpu are seconds "
        "for a million messages of the nodes "
        "and of the server, if that is on this machine. WAL bytes and dead rows are all that "
        "the server counted meanwhile.\n"
        "\n"
        "With --json one object: scenario, version, database, processors, batch, "
        "compared_with, rows (name, messages, "
        "per_second, compared_with, ratio, p50_ms, p99_ms, p999_ms, statements_per_message, "
        "wal_bytes_per_message, "
        "dead_rows_per_message, cpu_seconds_per_million, db_cpu_seconds_per_million, "
        "memory_bytes, reached: whether steady could commit at the rate that it is compared "
        "with, else null).\n"
        "\n"
        "Examples:\n"
        "  sluice bench drain --db sqlite:/tmp/try.db\n"
        "  sluice bench drain --db postgresql://me@db/test --strategy lanes --workers 2\n"
        "  sluice bench steady --db postgresql://me@db/test --wake notify --rate 20000 "
        "--seconds 10m\n",
    .groups = SL_FOR_DB | SL_FOR_RUN,
    .opts = flags,
    .own_bytes = sizeof(bench_flags),
    .run = run,
    .words = "drain|steady|processors|backlog|blocked|snapshot|hot|idle|nodes",
};
