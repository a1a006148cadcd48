"""Looks at the database beside the nodes, and never writes to it."""
import collections
import contextlib
import sqlite3

NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
COUNTS = """
SELECT (SELECT count(*) FROM orders),
       count(*),
       ifnull((julianday('now') - julianday(min(created_at))) * 86400.0, 0)
  FROM outbox"""
HOLDS = f"""
SELECT substr(worker, 1, instr(worker, '/') - 1), count(*)
  FROM outbox
 WHERE leased_until > {NOW}
 GROUP BY 1"""
HELD_BY = f"""
SELECT id, entity_key, json_extract(CAST(payload AS TEXT), '$.seq'), worker,
       (julianday(leased_until) - julianday('now')) * 86400.0
  FROM outbox
 WHERE leased_until > {NOW} AND worker LIKE ? || '/%'
 ORDER BY id"""

Counts = collections.namedtuple("Counts", "pushed waiting lag")
Held = collections.namedtuple("Held", "id key seq worker seconds_left")


class Observer:
    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute("PRAGMA query_only = ON")

    def counts(self):
        pushed, waiting, lag = self.db.execute(COUNTS).fetchone()
        return Counts(pushed, waiting, max(0.0, lag))

    def holds(self):
        """How many messages each node holds now."""
        return dict(self.db.execute(HOLDS))

    def held_by(self, node):
        return [Held(*row) for row in self.db.execute(HELD_BY, (node,))]

    def orders(self):
        """What the shop's own table says was committed."""
        return set(self.db.execute("SELECT customer, seq FROM orders"))

    def outbox(self):
        """What has not been settled."""
        return set(self.db.execute(
            "SELECT entity_key, json_extract(CAST(payload AS TEXT), '$.seq') FROM outbox"))

    @contextlib.contextmanager
    def nobody_writes(self):
        """Takes the turn of a writer, but writes nothing. Readers go on."""
        writer = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            writer.execute("ROLLBACK")
            writer.close()

    def close(self):
        self.db.close()
