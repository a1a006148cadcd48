"""What an idle node asks of the database: statements per second, counted by pg_stat_statements."""
import collections
import json
import subprocess
import time

from .figures import bound_text, markdown, most, say
from .program import Way, Wrong, command, environment, has_way, log_line
from .tables import PostgresTable

NAME = "idle"
WHAT = """A node at its defaults (4 workers, --wake poll where there is one) on an empty table, after ten seconds to calm down:
all statements that the server ran for it, BEGIN and COMMIT included, per second."""

Scenario = collections.namedtuple("Scenario", "name strategy")
LIBRARY = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "top"}
CALM_SECONDS = 10
NOT_OURS = "query NOT LIKE '%pg_stat_statements%'"


def scenarios():
    return [Scenario(f"idle-{strategy}", strategy) for strategy in ("lanes", "guard", "advisory", "skip-locked")]


def count(table, seconds):
    """Every statement of that time but our own, with how often it ran."""
    table.server.sql("SELECT pg_stat_statements_reset()")
    began = time.monotonic()
    time.sleep(seconds)
    text = table.server.sql(f"""
        SELECT json_agg(json_build_array(calls, regexp_replace(query, '\\s+', ' ', 'g')) ORDER BY calls DESC)
          FROM pg_stat_statements WHERE {NOT_OURS}""")
    return json.loads(text or "[]"), time.monotonic() - began


def run_scenario(options, s, table, more):
    argv = [options.sluice, "run", "--db", table.url, "--sink", "null:", "--strategy", s.strategy, *more,
            "--log-format", "json"]
    node = subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(CALM_SECONDS)
        statements, seconds = count(table, options.idle_seconds)
        node.terminate()
        _, log = node.communicate(timeout=60)
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()
    log_line(log, "workers ended")
    if node.returncode or not statements:
        raise Wrong(f"the idle node ended with status {node.returncode} and {len(statements)} statements\n{log}")
    per_second = sum(calls for calls, _ in statements) / seconds
    say(f"{s.name}: {per_second:.2f} statements/s")
    return {"part": NAME, "scenario": s.name, "seconds": round(seconds, 1), "per_second": per_second,
            "statements": [{"per_second": round(calls / seconds, 2), "query": query[:200]} for calls, query in statements],
            "bound": most(2, per_second)}


def run(options, chosen, settings):
    table = PostgresTable(options, LIBRARY)
    try:
        table.server.sql("CREATE EXTENSION pg_stat_statements")
        settings.append(table.settings())
        helped = command([options.sluice, "run", "--help"])
        more = ("--wake", "poll") if "--wake" in helped else ()
        known = [s for s in chosen if has_way(options, Way(s.strategy, ("--strategy", s.strategy)), table.url)]
        for s in chosen:
            if s not in known:
                say(f"{s.name}: left out, since the program has no strategy {s.strategy}")
        return [run_scenario(options, s, table, more) for s in known]
    finally:
        table.close()


def table(results):
    return markdown(("scenario", "statements/s", "demanded", "most frequent"),
                    [(r["scenario"], f"{r['per_second']:.2f}", bound_text(r),
                      ", ".join(f"{s['per_second']:.2f} {s['query'][:40]}" for s in r["statements"][:2]).replace("|", "/"))
                     for r in results])
