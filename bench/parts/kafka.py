"""Into Kafka: against kcat with the same bytes from memory, and against what the database alone allows."""
import collections
import json
import os
import re
import subprocess
import tempfile
import time

from .figures import bound_text, least, markdown, say, share, spread, whole
from .program import Meter, Way, Wrong, command, drain, environment
from .tables import KEYS, PAD, PostgresTable

import kafka  # noqa: E402  (tests/support, whose folder tables.py has added)

NAME = "kafka"
PARTITIONS = 12
WHAT = f"""PostgreSQL into a local Kafka broker, {PARTITIONS} partitions, 200-byte payloads: messages per second. kcat: the same keys and
payloads from a file in memory, idempotent, by one producer, its start-up included. ceiling: the database alone, as `sluice bench
drain` has it for one worker with lanes. of the lower: sluice as a share of the slower of the two in the same round. The broker, the database, the
program and kcat share the machine's processors. processor: its seconds for a million messages, of program and database;
and of the broker. What arrived is read back and checked: all, once, each key in order."""

Scenario = collections.namedtuple("Scenario", "name workers flags bound")


def scenarios():
    return [Scenario("kafka-1", 1, (), None), Scenario("kafka-2", 2, (), None), Scenario("kafka-4", 4, (), 0.5),
            Scenario("kafka-fence-4", 4, ("--fence", "kafka"), None),
            Scenario("kafka-exactly-once-4", 4, ("--delivery", "exactly-once"), None)]


def lines(rows):
    """What tables.py puts into the table, as kcat reads it."""
    return b"".join(f'order:{g % KEYS}\t{{"n":{g},"pad":"{"x" * (PAD - len(str(g)))}"}}\n'.encode() for g in range(1, rows + 1))


def check(broker, topic, rows):
    last, count = {}, 0
    for r in broker.read(topic):
        n = int(re.match(rb'{"n":(\d+),', r.value).group(1))
        if n <= last.get(r.key, 0):
            raise Wrong(f"message {n} of {r.key} came after {last[r.key]}")
        last[r.key], count = n, count + 1
    if count != rows:
        raise Wrong(f"{count} records of {rows} messages")


def measure_kcat(broker, path, rows):
    topic = broker.new_topic(partitions=PARTITIONS)
    before = time.monotonic()
    subprocess.run(["kcat", "-P", "-b", broker.bootstrap(), "-t", topic, "-K", "\t", "-l", path, "-X", "enable.idempotence=true",
                    "-X", "partitioner=murmur2_random", "-X", "queue.buffering.max.messages=1000000"],
                   check=True, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - before
    check(broker, topic, rows)
    return seconds


def measure_ceiling(options, table):
    data = json.loads(command([options.sluice, "bench", "drain", "--db", table.url, "--strategy", "lanes", "--workers", "1",
                               "--rounds", "1", "--rows", str(options.rows), "--batch", str(options.batch), "--json"]))
    return options.rows / data["rows"][0]["compared_with"]


def ticks_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def measure_sluice(options, s, table, broker):
    topic = broker.new_topic(partitions=PARTITIONS)
    table.fill(options.rows)
    broker_before = ticks_of(broker.pid())
    way = Way("lanes", ("--strategy", "lanes", "--target", topic, *s.flags))
    meter = Meter(table)
    run = drain(options, table, way, f"kafka://{broker.bootstrap()}", s.workers, options.rows)
    used, broker_used = meter.seconds(), ticks_of(broker.pid()) - broker_before
    check(broker, topic, options.rows)
    return run, used, broker_used


def run_scenario(options, s, table, broker, path):
    rounds = []
    for i in range(options.rounds):
        kcat = options.rows / measure_kcat(broker, path, options.rows)
        ceiling = options.rows / measure_ceiling(options, table)
        run, used, broker_used = measure_sluice(options, s, table, broker)
        rounds.append({"kcat": kcat, "ceiling": ceiling, "sluice": options.rows / run.seconds,
                       "processor": used * 1e6 / options.rows, "broker": broker_used * 1e6 / options.rows})
        say(f"{s.name} {i + 1}/{options.rounds}: kcat {kcat:,.0f}/s, ceiling {ceiling:,.0f}/s, "
            f"sluice {rounds[-1]['sluice']:,.0f}/s")
    of_lower = spread([r["sluice"] / min(r["kcat"], r["ceiling"]) for r in rounds])
    return {"part": NAME, "scenario": s.name, "rows": options.rows, "rounds": rounds,
            **{name: spread([r[name] for r in rounds]) for name in ("kcat", "ceiling", "sluice", "processor", "broker")},
            "of_kcat": spread([r["sluice"] / r["kcat"] for r in rounds]), "of_lower": of_lower,
            "bound": least(s.bound, of_lower["median"]) if s.bound else None}


def run(options, chosen, settings):
    table = PostgresTable(options)
    try:
        with kafka.Kafka() as broker, tempfile.NamedTemporaryFile(dir="/dev/shm") as messages:
            messages.write(lines(options.rows))
            messages.flush()
            settings += [table.settings(), f"Kafka {broker.version}, one node, heap of 256 MB"]
            measure_kcat(broker, messages.name, options.rows)  # a broker that has just begun is slow
            return [run_scenario(options, s, table, broker, messages.name) for s in chosen]
    finally:
        table.close()


def table(results):
    return markdown(("scenario", "kcat", "ceiling", "sluice (min..max)", "of kcat", "of the lower", "demanded",
                     "processor", "broker's"),
                    [(r["scenario"], f"{r['kcat']['median']:,.0f}", f"{r['ceiling']['median']:,.0f}", whole(r["sluice"]),
                      share(r["of_kcat"]), share(r["of_lower"]), bound_text(r), f"{r['processor']['median']:.1f} s",
                      f"{r['broker']['median']:.1f} s") for r in results])
