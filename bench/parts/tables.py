"""The outbox that is measured: made once, filled before each measurement."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from servers import PortLock, Postgres  # noqa: E402, F401

from .program import command  # noqa: E402

KEYS = 5000
PAYLOAD_BYTES = 200
SHOWN = ("fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
         "autovacuum", "jit")

# The payload is JSON of exactly PAYLOAD_BYTES bytes; g is the message's number.
PAD = PAYLOAD_BYTES - len('{"n":,"pad":""}')


class PostgresTable:
    def __init__(self, options, settings=None):
        self.server = Postgres(version=15, fsync=True, settings=settings)
        self.url = self.server.url()
        command([options.sluice, "init", "--db", self.url])
        self.tables = ", ".join(t for t in ("outbox", "outbox_dead", "outbox_keys", "outbox_claims")
                                if self.server.sql(f"SELECT to_regclass('{t}')"))

    def add(self, rows, key=f"'order:' || g % {KEYS}", available_at="now()"):
        """Messages 1 to rows, in one transaction. `key` and `available_at` are SQL, g the number."""
        self.server.sql(f"""
            INSERT INTO outbox (topic, entity_key, available_at, payload)
            SELECT 'orders', {key}, {available_at},
                   convert_to('{{"n":' || g || ',"pad":"' || repeat('x', {PAD} - length(g::text)) || '"}}', 'UTF8')
              FROM generate_series(1, {rows}) g""")

    def empty(self):
        self.server.sql(f"TRUNCATE {self.tables} RESTART IDENTITY")

    def fill(self, rows):
        self.empty()
        self.add(rows)
        self.server.sql("VACUUM ANALYZE outbox")
        self.server.sql("CHECKPOINT")

    def left(self):
        """Messages that wait, dead letters. What is done and stays (layout rotated) does not wait."""
        counts = self.server.sql("SELECT count(*), (SELECT count(*) FROM outbox_dead) FROM outbox o"
                                 " LEFT JOIN outbox_positions p ON p.lane = o.lane"
                                 " WHERE o.held OR p.floor IS NULL OR o.id >= p.floor")
        return tuple(map(int, counts.split("|")))

    def settings(self):
        names = ", ".join(f"'{n}'" for n in SHOWN)
        lines = self.server.sql(f"SELECT name || '=' || current_setting(name) FROM pg_settings WHERE name IN ({names})")
        version = self.server.sql("SHOW server_version").split()[0]
        return f"PostgreSQL {version}: " + " ".join(sorted(lines.split("\n")))

    def close(self):
        self.server.close()
