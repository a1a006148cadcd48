"""Sluice into null: against a bare loop of SQL, drain against drain."""
import collections
import os
import re
import time

from .figures import bound_text, least, markdown, say, share, spread, whole
from .program import WAYS, Meter, Run, Way, Wrong, command, drain, has_way
from .tables import ROOT, TABLES

NAME = "ceilings"
WHAT = """Ceiling and sluice drain the same table in turns. Messages per second, without starting and connecting but in
the last column. by processor: the ratio of the processor time of client and server together, which a busy machine
disturbs less. pg-transaction, pg-lease and sqlite: a loop of the program's own statements; pg-lanes and pg-advisory:
a loop of the least that such a strategy can do (bench/sql), see bench/ceiling_*.c for what they leave out."""

Scenario = collections.namedtuple("Scenario", "name db way ceiling args workers bound")
OURS = os.path.join(ROOT, "sql")
BARE = os.path.join(ROOT, "bench", "sql")


def scenario(db, short, way, ceiling, workers, *args, bound=None):
    return Scenario(f"{short}-{workers}", db, way, ceiling, args, workers, bound)


def skip_locked(db, short, hold, workers, ceiling, bound=None):
    way = Way(f"skip-locked-{hold}", ("--strategy", "skip-locked", "--hold", hold))
    return scenario(db, f"{short}-{hold}", way, ceiling, workers, "--sql", OURS, "--hold", hold, bound=bound)


def scenarios():
    ways = {w.name: w for w in WAYS}
    found = [skip_locked("postgres", "pg", hold, workers, "ceiling",
                         0.7 if (hold, workers) == ("transaction", 1) else None)
             for hold in ("transaction", "lease") for workers in (1, 2, 4)]
    found += [scenario("postgres", "pg-lanes", ways["lanes"], "ceiling_lanes", workers, "--sql", BARE,
                       bound=0.7 if workers == 1 else None) for workers in (1, 2)]
    found.append(scenario("postgres", "pg-advisory", ways["advisory"], "ceiling_advisory", 1, "--sql", BARE, bound=0.6))
    found += [skip_locked("sqlite", "sqlite", hold, 1, "ceiling_sqlite") for hold in ("transaction", "lease")]
    return found


def measure_ceiling(options, s, table):
    meter, before = Meter(table), time.monotonic()
    out = command([os.path.join(options.programs, s.ceiling), *s.args, "--batch", str(options.batch),
                   "--connections", str(s.workers), table.ceiling_arg])
    seconds_all, used = time.monotonic() - before, meter.seconds()
    messages, seconds = re.fullmatch(r"messages=(\d+) seconds=([\d.]+) rate=\d+\n", out).groups()
    if int(messages) != options.rows or table.left() != (0, 0):
        raise Wrong(f"the ceiling took {messages} of {options.rows} messages and left {table.left()}")
    return Run(float(seconds), seconds_all, used)


def measure_sluice(options, s, table):
    return drain(options, table, s.way, "null:", s.workers, options.rows)


def run_scenario(options, s, table):
    """All rounds of one scenario. Who goes first alternates, so that what the first run leaves
    behind for the second (a warm cache, a full log) hurts both alike."""
    pairs = []
    for i in range(options.rounds):
        runs = {}
        for how in (measure_ceiling, measure_sluice)[::1 if i % 2 == 0 else -1]:
            table.fill(options.rows)
            runs[how] = how(options, s, table)
        pairs.append((runs[measure_ceiling], runs[measure_sluice]))
        say(f"{s.name} {i + 1}/{options.rounds}: " + ", ".join(
            f"{name} {options.rows / run.seconds:,.0f}/s" for name, run in zip(("ceiling", "sluice"), pairs[-1])))
    return summary(options, s, pairs)


def summary(options, s, pairs):
    """The median of the rounds' ratios is disturbed less by a slow moment than a ratio of medians."""
    ratio = spread([c.seconds / n.seconds for c, n in pairs])
    return {
        "part": NAME, "scenario": s.name, "rows": options.rows, "rounds": len(pairs), "batch": options.batch,
        "workers": s.workers, "verified": True,
        "ceiling": spread([options.rows / c.seconds for c, _ in pairs]),
        "sluice": spread([options.rows / n.seconds for _, n in pairs]),
        "sluice_with_start": spread([options.rows / n.whole_seconds for _, n in pairs]),
        "ratio": ratio, "processor_ratio": spread([c.processor_seconds / n.processor_seconds for c, n in pairs]),
        "bound": least(s.bound, ratio["median"]) if s.bound else None,
    }


def possible(options, s, table):
    if not os.path.exists(os.path.join(options.programs, s.ceiling)):
        say(f"{s.name}: left out, since the build has no {s.ceiling}")
        return False
    table.empty()
    if not has_way(options, s.way, table.url):
        say(f"{s.name}: left out, since the program has no strategy {s.way.name}")
        return False
    return True


def run(options, chosen, settings):
    results = []
    for db in dict.fromkeys(s.db for s in chosen):
        table = TABLES[db](options)
        try:
            settings.append(table.settings())
            say(settings[-1])
            mine = [s for s in chosen if s.db == db and possible(options, s, table)]
            for s in mine[:1]:  # once and not counted: a new server makes its log files while it is first written to
                table.fill(options.rows)
                measure_ceiling(options, s, table)
            results += [run_scenario(options, s, table) for s in mine]
        finally:
            table.close()
    return results


def table(results):
    return markdown(("scenario", "ceiling (min..max)", "sluice (min..max)", "ratio (min..max)", "demanded",
                     "by processor", "with start-up"),
                    [(r["scenario"], whole(r["ceiling"]), whole(r["sluice"]), share(r["ratio"]), bound_text(r),
                      f"{r['processor_ratio']['median']:.2f}", f"{r['sluice_with_start']['median']:,.0f}") for r in results])
