"""Looks at the database beside the nodes, and never writes to it."""
import collections
import contextlib
import sqlite3

COUNTS = """
SELECT (SELECT count(*) FROM orders),
       count(*),
       ifnull((julianday('now') - julianday(min(created_at))) * 86400.0, 0)
  FROM outbox"""
OWNS = """
SELECT n.node, count(DISTINCT l.lane), count(o.id)
  FROM outbox_nodes n
  JOIN outbox_lanes l ON l.owner = n.session
  LEFT JOIN outbox o ON o.lane = l.lane
 GROUP BY n.node"""
IN_LANES_OF = """
SELECT o.id, o.entity_key, json_extract(CAST(o.payload AS TEXT), '$.seq'), o.lane,
       (julianday(n.lives_until) - julianday('now')) * 86400.0
  FROM outbox_nodes n
  JOIN outbox_lanes l ON l.owner = n.session
  JOIN outbox o ON o.lane = l.lane
 WHERE n.node = ?
 ORDER BY o.id"""

Counts = collections.namedtuple("Counts", "pushed waiting lag")
Owned = collections.namedtuple("Owned", "lanes waiting")  # lanes of a node, and messages in them
Waiting = collections.namedtuple("Waiting", "id key seq lane seconds_left")


class Observer:
    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute("PRAGMA query_only = ON")

    def counts(self):
        pushed, waiting, lag = self.db.execute(COUNTS).fetchone()
        return Counts(pushed, waiting, max(0.0, lag))

    def owned(self):
        """What each node owns now."""
        return {node: Owned(*rest) for node, *rest in self.db.execute(OWNS)}

    def in_lanes_of(self, node):
        """The messages that nobody but this node may deliver now."""
        return [Waiting(*row) for row in self.db.execute(IN_LANES_OF, (node,))]

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
