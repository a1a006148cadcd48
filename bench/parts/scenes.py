"""`sluice bench`, scenario by scenario, on a server of this run's own, and what is demanded of its ratios."""
import collections
import contextlib
import json
import os
import statistics
import subprocess
import tempfile

from .figures import least, markdown, most, say
from .program import Wrong, environment
from .tables import PortLock, PostgresTable

NAME = "scenes"
WHAT = """`sluice bench SCENARIO --db ...`, which checks what was delivered: nothing lost, nothing twice, each key in its order.
compared with: the ceiling (drain), the sleeping alone (processors), a run without what the row names. statements, WAL bytes and dead
rows: for a message (idle: for a second); processor: seconds for a million messages, of the node and of the server. `processors`
and `hot` have batches of 100. For `*-far` the server is 250 microseconds away, in each direction."""

FAR_US = 250  # of drain-far: as between two machines of one region
RATES = (1000, 5000, 20000, 40000, 60000)  # of latency-*

# judge: from rows to [(what, value, bound)], where a bound is of figures.least or most.
Scenario = collections.namedtuple("Scenario", "name db args judge")


# -- what is demanded -------------------------------------------------------------------------------

def ratio(bound):
    """Of each row but the first, which it is compared with."""
    return lambda rows: [(r["name"], r["ratio"], least(bound, r["ratio"])) for r in rows[1:]]


def drained(rows):
    """By name, the bounds of design section 7; and that a second worker is of use."""
    bounds = {"lanes, 1 worker": 0.85, "skip-locked by transaction, 1 worker": 0.7, "advisory, 1 worker": 0.6}
    found = [(r["name"], r["ratio"], least(bounds[r["name"]], r["ratio"])) for r in rows if r["name"] in bounds]
    rate = {r["name"]: r["per_second"] for r in rows}
    if "lanes, 2 workers" in rate:
        gain = rate["lanes, 2 workers"] / rate["lanes, 1 worker"]
        found.append(("lanes, 2 workers: of one", gain, least(1.3, gain)))
    return found


def drained_sqlite(rows):
    return [(r["name"], r["ratio"], least(0.7, r["ratio"])) for r in rows]


def eight_of_one(rows):
    gain = rows[-1]["per_second"] / rows[0]["per_second"]
    return [("8 workers: of one", gain, least(6.8, gain))]


def far(rows):
    """The bare loop waits for each of its two trips, a worker for one."""
    return [(r["name"], r["ratio"], least(1, r["ratio"])) for r in rows[:1]]


def largest(rows):
    return [(rows[-1]["name"], rows[-1]["ratio"], least(0.8, rows[-1]["ratio"]))]


def reached(rows):
    """Were as many committed as was asked for? Else the other figures are those of a lower rate."""
    return [("rate, of what was asked for", rows[-1]["ratio"], least(0.99, rows[-1]["ratio"]))]


def steady(rows):
    """The rate is the one that was asked for; p99 is near p50, and in the second half of the time not worse than in the first."""
    whole = rows[-1]
    parts = [r for r in rows if r["name"].startswith("after ") and r["messages"]]
    spread = whole["p99_ms"] / whole["p50_ms"]
    half = len(parts) // 2
    growth = (statistics.median(r["p99_ms"] for r in parts[half:]) / statistics.median(r["p99_ms"] for r in parts[:half]))
    return reached(rows) + [("p99 of p50", spread, most(5, spread)), ("p99, second half of first", growth, most(1.5, growth))]


def idle(rows):
    return [(r["name"], r["statements_per_message"], most(2, r["statements_per_message"])) for r in rows]


def scenarios():
    strategies = ("lanes", "guard", "advisory", "skip-locked")
    pg = [Scenario(f"drain-{s}", "postgres", ("drain", "--strategy", s), drained) for s in strategies]
    pg += [Scenario("processors", "postgres", ("processors",), eight_of_one),
           Scenario("backlog", "postgres", ("backlog",), largest)]
    pg += [Scenario(f"{what}-{s}", "postgres", (what, "--strategy", s), ratio(bound))
           for what, bound in (("blocked", 0.8), ("snapshot", 0.6)) for s in strategies[:3]]
    pg += [Scenario(f"hot-{s}", "postgres", ("hot", "--strategy", s), ratio(0.8)) for s in strategies[:3]]
    pg += [Scenario(f"idle-{s}", "postgres", ("idle", "--strategy", s), idle) for s in strategies]
    pg += [Scenario("nodes", "postgres", ("nodes",), lambda rows: []),
           Scenario("steady", "postgres", ("steady", "--wake", "notify", "--batch", "4000"), steady)]
    pg += [Scenario(f"latency-{rate}", "postgres", ("steady", "--wake", "notify", "--rate", str(rate), "--seconds", "15s"),
                    reached) for rate in RATES]
    rotated = ("--strategy", "lanes", "--layout", "rotated")
    pg += [Scenario("drain-rotated", "postgres", ("drain", *rotated), lambda rows: []),
           Scenario("backlog-rotated", "postgres", ("backlog", *rotated), largest),
           Scenario("blocked-rotated", "postgres", ("blocked", *rotated), ratio(0.8)),
           Scenario("snapshot-rotated", "postgres", ("snapshot", *rotated), ratio(0.6)),
           Scenario("hot-rotated", "postgres", ("hot", *rotated), ratio(0.8)),
           Scenario("steady-rotated", "postgres", ("steady", "--wake", "notify", "--batch", "4000", *rotated), steady)]
    pg += [Scenario("drain-far", "far", ("drain", "--strategy", "lanes"), far),
           Scenario("drain-rotated-far", "far", ("drain", *rotated), lambda rows: [])]
    return pg + [Scenario("drain-sqlite", "sqlite", ("drain",), drained_sqlite)]


# -- running ----------------------------------------------------------------------------------------

def flags(options, s):
    if s.args[0] in ("processors", "hot"):  # they choose smaller batches
        return []
    given = [] if "--batch" in s.args else ["--batch", str(options.batch)]
    if s.name.startswith("latency-"):
        return given
    if s.args[0] == "drain":
        given += ["--rounds", str(options.rounds), "--rows", str(options.rows if s.db != "sqlite" else options.rows // 4)]
    if s.args[0] == "nodes":
        given += ["--rows", str(options.rows // 2)]
    if s.args[0] in ("blocked", "snapshot"):
        given += ["--rows", str(options.rows // 4)]
    if s.args[0] == "backlog":
        given += ["--rows", str(options.backlog)]
    if s.args[0] in ("steady", "idle"):
        given += ["--seconds", f"{options.seconds}s"]
    if s.args[0] == "steady" and options.rate:
        given += ["--rate", str(options.rate)]
    return given


def command(options, s):
    """As anyone can repeat it, but for the program's folder and the database."""
    return ["sluice", "bench", *s.args, *flags(options, s)]


def measure(options, s, url):
    argv = [options.sluice, *command(options, s)[1:], "--json"]
    done = subprocess.run(argv, env={**environment(), "SLUICE_DB": url}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(f"{' '.join(argv)} ended with status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def run_scenario(options, s, url):
    data = measure(options, s, url)
    found = s.judge(data["rows"])
    for what, value, bound in found:
        say(f"{s.name}: {what}: {value:.2f}" + ("" if bound["good"] else ", LESS THAN DEMANDED"))
    return {"part": NAME, "scenario": s.name, "command": " ".join(command(options, s)), "database": data["database"],
            "rows": data["rows"], "compared_with": data["compared_with"], "demands": [{"what": w, "value": v, "bound": b} for w, v, b in found],
            "bound": {"good": all(b["good"] for _, _, b in found)} if found else None}


@contextlib.contextmanager
def reach(options, table, delay_us):
    """The URL of the table's database, or of one that is so far away, in each direction."""
    if not delay_us:
        yield table.url
        return
    lock = PortLock()
    relay = subprocess.Popen([os.path.join(options.programs, "far"), str(lock.port), str(table.server.port), str(delay_us)],
                             stdout=subprocess.PIPE, text=True)
    try:
        if relay.stdout.readline() != "listening\n":
            raise Wrong("bench/far does not listen")
        yield table.url.replace(f":{table.server.port}/", f":{lock.port}/")
    finally:
        relay.kill()
        relay.communicate()
        lock.release()


def run(options, chosen, settings):
    results = []
    pg = [s for s in chosen if s.db in ("postgres", "far")]
    if pg:
        table = PostgresTable(options)
        try:
            settings.append(table.settings())
            table.fill(options.rows)  # a new server makes its log files while it is first written to
            table.empty()
            for s in pg:
                with reach(options, table, FAR_US if s.db == "far" else 0) as url:
                    results.append(run_scenario(options, s, url))
        finally:
            table.close()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        results += [run_scenario(options, s, "sqlite:" + os.path.join(folder, "outbox.db")) for s in chosen if s.db == "sqlite"]
    return results


# -- telling ----------------------------------------------------------------------------------------

FIGURES = (("messages/s", "per_second", "{:,.0f}"), ("compared with", "compared_with", "{:,.0f}"), ("ratio", "ratio", "{:.2f}"),
           ("p50 ms", "p50_ms", "{:.2f}"), ("p99 ms", "p99_ms", "{:.2f}"), ("p99.9 ms", "p999_ms", "{:.2f}"),
           ("statements", "statements_per_message", "{:.4f}"), ("WAL bytes", "wal_bytes_per_message", "{:,.0f}"),
           ("dead rows", "dead_rows_per_message", "{:.2f}"), ("processor", "cpu_seconds_per_million", "{:.1f}"),
           ("server's", "db_cpu_seconds_per_million", "{:.1f}"), ("memory MB", "memory_bytes", None))


def cell(row, name, form):
    value = row[name]
    if value is None:
        return ""
    return f"{value / 1e6:.1f}" if form is None else form.format(value)


def demand_text(demand):
    bound = demand["bound"]
    sign = f">= {bound['least']}" if "least" in bound else f"<= {bound['most']}"
    return f"- {demand['what']}: {demand['value']:.2f}, demanded {sign}: {'good' if bound['good'] else 'MISSED'}"


def table(results):
    parts = []
    for r in results:
        shown = [f for f in FIGURES if any(row[f[1]] is not None for row in r["rows"])]
        rows = [(row["name"], f"{row['messages']:,}", *(cell(row, name, form) for _, name, form in shown)) for row in r["rows"]]
        parts += [f"### {r['scenario']} ({r['database']})", "", f"`{r['command']}`", "",
                  markdown(("", "messages", *(head for head, _, _ in shown)), rows), "",
                  *map(demand_text, r["demands"]), *([""] if r["demands"] else [])]
    return "\n".join(parts)
