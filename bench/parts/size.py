"""Do the tables stay small? Many messages go through a table in which few wait."""
import collections
import time

import psycopg2

from .figures import bound_text, markdown, most, say
from .program import Node, Way, Wrong
from .tables import KEYS, PAD, PostgresTable

NAME = "size"
WHAT = """The outbox with its indexes and all side tables, in bytes on the disk. First with 10,000 messages that wait, before any
node has run; then after --size-rows messages went through, pushed in transactions of 1,000 while about 10,000 wait and a
node drains them. The server's own settings for autovacuum, whose naptime is a minute; the node's role owns the tables.
`most` is the largest that was seen in between."""

Scenario = collections.namedtuple("Scenario", "name way")
WAITING = 10000
CHUNK = 1000
WORKERS = {"lanes": 2, "guard": 1}  # two of guard may read what only one of them then has: that would count twice
LIMIT_SECONDS = 900
RATIO = 3

SIZES = """
    SELECT json_object_agg(c.relname, json_build_array(pg_table_size(c.oid), pg_indexes_size(c.oid)))
      FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE 'outbox%'"""


def scenarios():
    return [Scenario(f"size-{name}", Way(name, ("--strategy", name))) for name in WORKERS]


class Session:
    """One connection: each statement is a transaction of its own."""

    def __init__(self, table):
        self.connection = psycopg2.connect(table.url)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def one(self, statement):
        self.cursor.execute(statement)
        return self.cursor.fetchone()[0]

    def push(self, first):
        """Messages from this number on."""
        self.cursor.execute(f"""
            INSERT INTO outbox (topic, entity_key, payload)
            SELECT 'orders', 'order:' || g % {KEYS},
                   convert_to('{{"n":' || g || ',"pad":"' || repeat('x', {PAD} - length(g::text)) || '"}}', 'UTF8')
              FROM generate_series({first}, {first + CHUNK - 1}) g""")

    def sizes(self):
        return {name: heap + indexes for name, (heap, indexes) in self.one(SIZES).items()}

    def close(self):
        self.connection.close()


def run_through(options, node, session, pushed):
    """Pushes as fast as the node takes, until all are through. The largest sum of sizes, and the seconds."""
    began, largest, looked = time.monotonic(), 0, 0
    while node.taken < options.size_rows:
        if time.monotonic() - began > LIMIT_SECONDS:
            raise Wrong(f"only {node.taken} of {options.size_rows} messages in {LIMIT_SECONDS} s")
        if pushed < options.size_rows and pushed - node.taken < WAITING:
            session.push(pushed + 1)
            pushed += CHUNK
        else:
            time.sleep(0.002)
        if time.monotonic() - looked > 0.5:
            looked = time.monotonic()
            largest = max(largest, sum(session.sizes().values()))
    return largest, time.monotonic() - began


def run_scenario(options, s):
    table = PostgresTable(options)
    session = Session(table)
    try:
        for first in range(1, WAITING, CHUNK):
            session.push(first)
        before = session.sizes()
        with Node(options, table, s.way, WORKERS[s.way.name]) as node:
            largest, seconds = run_through(options, node, session, WAITING)
            sent = node.stop()
        after = session.sizes()
        vacuums = session.one("SELECT vacuum_count || '+' || autovacuum_count FROM pg_stat_all_tables"
                              " WHERE relname = 'outbox'")
        if sent != options.size_rows or table.left() != (0, 0):
            raise Wrong(f"{sent} of {options.size_rows} messages were sent, {table.left()} are left")
        settings = table.settings()
    finally:
        session.close()
        table.close()
    ratio = sum(after.values()) / sum(before.values())
    say(f"{s.name}: {sum(before.values()):,} -> {sum(after.values()):,} bytes, at most {largest:,}: {ratio:.2f},"
        f" {sent / seconds:,.0f} messages/s, vacuums {vacuums}")
    return {"part": NAME, "scenario": s.name, "messages": sent, "per_second": sent / seconds, "before": before,
            "after": after, "largest": largest, "ratio": ratio, "vacuums": vacuums, "bound": most(RATIO, ratio)}, settings


def run(options, chosen, settings):
    results = []
    for s in chosen:
        result, server = run_scenario(options, s)
        results.append(result)
        settings.append(server)
    return results


def table(results):
    def kb(n):
        return f"{n / 1024:,.0f}"
    rows = [(r["scenario"], f"{r['messages']:,}", f"{r['per_second']:,.0f}", kb(sum(r["before"].values())),
             kb(sum(r["after"].values())), kb(r["largest"]), f"{r['ratio']:.2f}", bound_text(r), r["vacuums"])
            for r in results]
    side = "; ".join(f"{r['scenario']}: " + ", ".join(f"{name} {kb(r['before'][name])} -> {kb(n)}"
                                                      for name, n in sorted(r["after"].items())) for r in results)
    return markdown(("scenario", "messages", "messages/s", "kB before", "kB after", "most", "ratio", "demanded",
                     "vacuums: own + auto"), rows) + "\n\nkB of each: " + side
