"""Every strategy, one beside the other: messages per second into null: and into a file."""
import collections
import os
import tempfile

from .figures import markdown, say, spread, whole
from .program import WAYS, Wrong, drain, has_way
from .tables import TABLES

NAME = "speed"
WHAT = """Messages per second of a drain, without starting and connecting. file: writes a line of JSON for each message."""

Scenario = collections.namedtuple("Scenario", "name db way sink workers")
WORKERS = (1, 2, 4)


def scenarios():
    return [Scenario(f"speed-{short}-{way.name}-{sink}-{workers}", db, way, sink, workers)
            for db, short in (("postgres", "pg"), ("sqlite", "sqlite"))
            for way in WAYS for sink in ("null", "file") for workers in WORKERS]


def measure(options, s, table):
    table.fill(options.rows)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        path = os.path.join(folder, "out.jsonl")
        run_ = drain(options, table, s.way, "null:" if s.sink == "null" else f"file:{path}", s.workers, options.rows)
        if s.sink == "file":
            with open(path, "rb") as f:
                lines = sum(1 for _ in f)
            if lines != options.rows:
                raise Wrong(f"{lines} lines of {options.rows} messages")
    return options.rows / run_.seconds


def run_database(options, chosen, table):
    table.empty()
    known = [w for w in WAYS if has_way(options, w, table.url)]
    for way in WAYS:
        if way not in known:
            say(f"speed: {way.name} left out, since the program has no such strategy for this database")
    chosen = [s for s in chosen if s.way in known]
    rates = {s: [] for s in chosen}
    if chosen:
        measure(options, chosen[0], table)  # once and not counted
    for i in range(options.speed_rounds):  # whole rounds, so that a slow minute hurts all alike
        for s in chosen[::1 if i % 2 == 0 else -1]:
            rates[s].append(measure(options, s, table))
            say(f"{s.name} {i + 1}/{options.speed_rounds}: {rates[s][-1]:,.0f}/s")
    return [{"part": NAME, "scenario": s.name, "db": s.db, "way": s.way.name, "sink": s.sink, "workers": s.workers,
             "rows": options.rows, "rounds": options.speed_rounds, "batch": options.batch, "rate": spread(rates[s]),
             "verified": True} for s in chosen]


def run(options, chosen, settings):
    results = []
    for db in dict.fromkeys(s.db for s in chosen):
        table = TABLES[db](options)
        try:
            settings.append(table.settings())
            results += run_database(options, [s for s in chosen if s.db == db], table)
        finally:
            table.close()
    return results


def table(results):
    cells = {}
    for r in results:
        name = {"postgres": "PostgreSQL", "sqlite": "SQLite"}[r["db"]]
        cells.setdefault((f"{name}, {r['way']}, {r['sink']}:"), {})[r["workers"]] = whole(r["rate"])
    return markdown(("database, strategy, sink", *(f"{w} worker{'s' if w > 1 else ''}" for w in WORKERS)),
                    [(name, *(row.get(w, "") for w in WORKERS)) for name, row in cells.items()])
