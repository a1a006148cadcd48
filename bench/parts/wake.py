"""How soon a message is delivered after its commit where commits wake the node, against a bare client that is
woken the same way; and what producers pay for it."""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import psycopg2

from .figures import bound_text, least, markdown, most, say
from .program import Wrong, environment, log_line
from .tables import PostgresTable

NAME = "wake"
WHAT = """latency: one message each 20 ms on an idle system, milliseconds from the answer to its COMMIT until its line is in the
file; a bare client (bench/listen.c) on a table whose trigger always notifies, against a node with --wake notify.
producers: 16 connections insert single messages as fast as they can while a node with one worker delivers into null:,
against the same without the trigger, where the node polls. The server's fsync is on."""

Scenario = collections.namedtuple("Scenario", "name measure")
EVERY_SECONDS = 0.02
MESSAGES = 500
PRODUCER_SECONDS = 8


def scenarios():
    return [Scenario("wake-latency", latency), Scenario("wake-producers", producers)]


# -- latency ---------------------------------------------------------------------------------------

# A process of its own, so that its clock is not the producer's turn: when did each line come?
TAIL = """
import json, sys, time
seen = {}
with open(sys.argv[1], "rb") as f:
    while len(seen) < int(sys.argv[2]):
        at = f.tell()
        line = f.readline()
        if line.endswith(b"\\n"):
            seen[json.loads(line)["id"]] = time.monotonic_ns()
        else:
            f.seek(at)
            time.sleep(0.0001)
print(json.dumps(seen))
"""


def percentiles(milliseconds):
    cut = statistics.quantiles(milliseconds, n=100)
    return {"p50": cut[49], "p99": cut[98]}


def produce(url, table, path):
    """Commits the messages; returns the milliseconds until each was in the file."""
    tail = subprocess.Popen([sys.executable, "-c", TAIL, path, str(MESSAGES)], stdout=subprocess.PIPE, text=True)
    conn = psycopg2.connect(url)
    conn.autocommit = True
    cursor, committed = conn.cursor(), {}
    for i in range(MESSAGES):
        cursor.execute(f"INSERT INTO {table} (topic, entity_key, payload) VALUES ('t', %s, '{{}}') RETURNING id",
                       (f"order:{i % 100}",))
        committed[str(cursor.fetchone()[0])] = time.monotonic_ns()
        time.sleep(EVERY_SECONDS)
    conn.close()
    try:
        text, _ = tail.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        tail.kill()
        raise Wrong("not all messages came into the file") from None
    seen = json.loads(text)
    return [max(seen[i] - at, 0) / 1e6 for i, at in committed.items()]


def bare(options, table, path):
    table.server.sql("""
        CREATE TABLE IF NOT EXISTS bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, topic text, entity_key text,
                                         payload bytea);
        CREATE OR REPLACE FUNCTION bare_wake() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_notify('bare', ''); RETURN NULL; END $$;
        CREATE OR REPLACE TRIGGER bare_wake AFTER INSERT ON bare FOR EACH STATEMENT EXECUTE FUNCTION bare_wake();
        TRUNCATE bare RESTART IDENTITY""")
    client = subprocess.Popen([os.path.join(options.programs, "listen"), table.url, "bare", "bare", path],
                              stdout=subprocess.PIPE, text=True)
    try:
        client.stdout.readline()
        return produce(table.url, "bare", path)
    finally:
        client.kill()
        client.communicate()


def node(options, table, sink, *flags):
    argv = [options.sluice, "run", "--db", table.url, "--sink", sink, *flags, "--log-format", "json"]
    return subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def end(process):
    process.terminate()
    _, log = process.communicate(timeout=60)
    log_line(log, "workers ended")
    if process.returncode:
        raise Wrong(f"the node ended with status {process.returncode}\n{log}")
    return log


def woken(options, table, path):
    table.empty()
    process = node(options, table, f"file:{path}", "--wake", "notify")
    try:
        process.stderr.readline()
        open(path, "a", encoding="utf-8").close()
        time.sleep(1)  # until it has come to rest
        return produce(table.url, "outbox", path)
    finally:
        end(process)


def latency(options, table):
    rounds = []
    for i in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            got = {name: percentiles(run(options, table, os.path.join(folder, name)))
                   for name, run in (("bare", bare), ("woken", woken))}
        say(f"wake-latency {i + 1}/{options.rounds}: "
            + ", ".join(f"{name} p50 {p['p50']:.2f} ms, p99 {p['p99']:.2f} ms" for name, p in got.items()))
        rounds.append(got)
    results = []
    for p in ("p50", "p99"):
        ratio = statistics.median(r["woken"][p] / r["bare"][p] for r in rounds)
        results.append({"part": NAME, "scenario": f"wake-latency {p}",
                        "without": f"{statistics.median(r['bare'][p] for r in rounds):.2f} ms",
                        "with": f"{statistics.median(r['woken'][p] for r in rounds):.2f} ms",
                        "ratio": ratio, "rounds": rounds, "bound": most(3, ratio)})
    return results


# -- producers -------------------------------------------------------------------------------------

INSERT = "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'order:' || (random() * 5000)::int, '{}');\n"


def insert_rate(options, table, flags):
    table.empty()
    process = node(options, table, "null:", "--workers", "1", *flags)
    try:
        process.stderr.readline()
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(INSERT)
            script.flush()
            done = subprocess.run([os.path.join(table.server.bin, "pgbench"), "-n", "-c", "16", "-j", "2", "-T",
                                   str(PRODUCER_SECONDS), "-f", script.name, table.url],
                                  env=environment(), capture_output=True, text=True, timeout=120)
        for line in done.stdout.splitlines():
            if line.startswith("tps = "):
                return float(line.split()[2])
        raise Wrong(f"pgbench: {done.stdout}{done.stderr}")
    finally:
        end(process)


def producers(options, table):
    rounds = []
    for i in range(options.rounds):
        with_trigger = insert_rate(options, table, ("--wake", "notify"))
        table.server.sql("ALTER TABLE outbox DISABLE TRIGGER outbox_tr_wake")
        without = insert_rate(options, table, ("--wake", "poll"))
        table.server.sql("ALTER TABLE outbox ENABLE TRIGGER outbox_tr_wake")
        rounds.append({"without": without, "with": with_trigger})
        say(f"wake-producers {i + 1}/{options.rounds}: {without:,.0f}/s without, {with_trigger:,.0f}/s with the trigger")
    ratio = statistics.median(r["with"] / r["without"] for r in rounds)
    return [{"part": NAME, "scenario": "wake-producers",
             "without": f"{statistics.median(r['without'] for r in rounds):,.0f}/s",
             "with": f"{statistics.median(r['with'] for r in rounds):,.0f}/s",
             "ratio": ratio, "rounds": rounds, "bound": least(0.9, ratio)}]


def run(options, chosen, settings):
    table = PostgresTable(options)
    try:
        settings.append(table.settings())
        return [r for s in chosen for r in s.measure(options, table)]
    finally:
        table.close()


def table(results):
    return markdown(("scenario", "bare, or without", "woken, or with", "ratio", "demanded"),
                    [(r["scenario"], r["without"], r["with"], f"{r['ratio']:.2f}", bound_text(r)) for r in results])
