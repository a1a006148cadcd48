"""The databases that are measured: made once, filled before each measurement."""
import os
import shutil
import sqlite3
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from servers import Postgres  # noqa: E402

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
        self.ceiling_arg = self.url
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
        """Messages in the table, dead letters."""
        counts = self.server.sql("SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM outbox_dead)")
        return tuple(map(int, counts.split("|")))

    def settings(self):
        names = ", ".join(f"'{n}'" for n in SHOWN)
        lines = self.server.sql(f"SELECT name || '=' || current_setting(name) FROM pg_settings WHERE name IN ({names})")
        version = self.server.sql("SHOW server_version").split()[0]
        return f"PostgreSQL {version}: " + " ".join(sorted(lines.split("\n")))

    def close(self):
        self.server.close()


class SqliteTable:
    """One full file, copied for each measurement."""

    def __init__(self, options):
        self.sluice = options.sluice
        self.dir = tempfile.mkdtemp(prefix="sluice-bench-")
        self.full = os.path.join(self.dir, "full.db")
        self.full_rows = 0
        self.path = os.path.join(self.dir, "outbox.db")
        self.url = f"sqlite:{self.path}"
        self.ceiling_arg = self.path
        command([options.sluice, "init", "--db", f"sqlite:{self.full}"])

    def _fill_once(self, rows):
        conn = sqlite3.connect(self.full, isolation_level=None)
        conn.execute("DELETE FROM outbox")
        conn.execute(f"""
            WITH RECURSIVE series(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM series WHERE g < {rows})
            INSERT INTO outbox (topic, entity_key, payload)
            SELECT 'orders', 'order:' || g % {KEYS},
                   CAST('{{"n":' || g || ',"pad":"' || printf('%.*c', {PAD} - length(g), 'x') || '"}}' AS BLOB)
              FROM series""")
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        conn.close()
        self.full_rows = rows

    def _remove(self):
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.path + end):
                os.remove(self.path + end)

    def empty(self):
        self._remove()
        command([self.sluice, "init", "--db", self.url])

    def fill(self, rows):
        if self.full_rows != rows:
            self._fill_once(rows)
        self._remove()
        shutil.copyfile(self.full, self.path)
        os.sync()

    def left(self):
        conn = sqlite3.connect(self.path)
        try:
            return conn.execute("SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM outbox_dead)").fetchone()
        finally:
            conn.close()

    def settings(self):
        return f"SQLite {sqlite3.sqlite_version}: journal_mode=wal synchronous=full"

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


TABLES = {"postgres": PostgresTable, "sqlite": SqliteTable}
