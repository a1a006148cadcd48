"""One message per idempotency key, whoever pushes it, how often, and when: also after it was delivered."""
import collections
import io
import json
import os
import random
import threading

import pytest

from harness import connect, is_postgres, query, scaled, wait_until

INSERT = "INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', '{0}', '{0}') ON CONFLICT DO NOTHING"


class Sink:
    """The lines of a file that grows."""

    def __init__(self, path):
        self.path, self.lock, self.at, self.keys = path, threading.Lock(), 0, []

    def delivered(self):
        """All keys so far, in order; payloads are the keys."""
        with self.lock:
            if os.path.exists(self.path):
                with open(self.path, "rb") as f:
                    f.seek(self.at)
                    whole = f.read().rpartition(b"\n")[0]
                self.at += len(whole) + 1 if whole else 0
                self.keys += [str(json.loads(line)["payload"]) for line in whole.splitlines()]
            return self.keys


def storm(db, sink, keys, connections):
    """Each key from each connection, in an order of its own; in between, keys that have just been delivered. Returns how
    many of these there were."""
    late, failed = [], []

    def produce(seed):
        rng, conn = random.Random(seed), connect(db)
        try:
            cur = conn.cursor()
            if not is_postgres(db):
                cur.execute("PRAGMA synchronous = OFF")  # only the node's commits need the disk
            for key in rng.sample(keys, len(keys)):
                cur.execute(INSERT.format(key))
                gone = sink.delivered()[-20:] if rng.random() < 0.2 else []
                if gone:
                    cur.execute(INSERT.format(rng.choice(gone)))
                    late.append(1)
        except Exception as e:
            failed.append(e)
            raise
        finally:
            conn.close()

    threads = [threading.Thread(target=produce, args=(seed,)) for seed in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    return len(late)


def deliver_while_pushed(sluice, db, keys, connections, tmp_path):
    """Two storms beside a node: the second when all of the first is delivered and deleted. Returns what arrived."""
    sink = Sink(tmp_path / "out.jsonl")
    node = sluice.start("run", "--sink", "file:out.jsonl", "--workers", 2, "--poll", "5ms", db=db)
    node.wait_log("node started")
    late = 0
    for _ in range(2):
        late += storm(db, sink, keys, connections)
        wait_until(lambda: query(db, "SELECT count(*) FROM outbox") == [(0,)], 60, "an empty outbox")
    assert late > 0
    node.term()
    node.wait(status=0)
    return collections.Counter(sink.delivered())


def many(db):
    """Keys and connections: SQLite has one writer at a time, whoever it is."""
    return [str(n) for n in range(scaled(1000))], 16 if is_postgres(db) else 4


def each_once(delivered, keys):
    assert sorted(delivered) == sorted(keys)
    assert not {key: n for key, n in delivered.items() if n > 1}


def test_one_key_from_many_connections_at_once(sluice, db, tmp_path):
    """1,000 keys, each pushed by 16 connections at once, before and after its delivery: 1,000 messages."""
    sluice.run("init", db=db)
    keys, connections = many(db)
    each_once(deliver_while_pushed(sluice, db, keys, connections, tmp_path), keys)
    assert query(db, "SELECT count(*) FROM outbox_idempotency") == [(len(keys),)]


def test_without_the_trigger_it_is_noticed(sluice, db, tmp_path):
    """With the unique index alone, a key is free as soon as its message is delivered."""
    sluice.run("init", db=db)
    keys, connections = many(db)
    keys = keys[:100]
    for name in ("idempotency",) if is_postgres(db) else ("idempotency", "register"):
        query(db, f"DROP TRIGGER outbox_tr_{name}" + (" ON outbox" if is_postgres(db) else ""))
    delivered = deliver_while_pushed(sluice, db, keys, connections, tmp_path)
    with pytest.raises(AssertionError):
        each_once(delivered, keys)


def test_push_tells_duplicates_after_delivery(sluice, db):
    sluice.run("init", db=db)
    push = ("push", "--topic", "t", "--idempotency-key", "order:1/paid", "1")
    assert sluice.run(*push, db=db).stdout == "pushed 1 message\n"
    sluice.run("run", "--sink", "null:", "--drain", db=db)
    assert sluice.run(*push, db=db).stdout == "pushed 0 messages, 1 duplicate left out\n"
    text = "".join(f'{{"topic":"t","payload":1,"idempotency_key":"{key}"}}\n' for key in ("order:1/paid", "new", "new"))
    assert sluice.run("push", "--lines", "-", db=db, input=text).stdout == "pushed 1 message, 2 duplicates left out\n"


def test_two_producers_at_once(sluice, pgdb):
    """The second waits for the first, and is left out if that commits, or not if it rolls back. SQLite has one writer."""
    sluice.run("init", db=pgdb)
    for end, rows in (("ROLLBACK", 1), ("COMMIT", 0)):
        query(pgdb, "DELETE FROM outbox; DELETE FROM outbox_idempotency")
        first, counts = connect(pgdb), []
        first.cursor().execute("BEGIN; " + INSERT.format("k"))

        def second():
            conn = connect(pgdb)
            cur = conn.cursor()
            cur.execute(INSERT.format("k"))
            counts.append(cur.rowcount)
            conn.close()

        thread = threading.Thread(target=second)
        thread.start()
        wait_until(lambda: query(pgdb, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                       " AND datname = current_database()"), 10, "a producer that waits")
        first.cursor().execute(end)
        thread.join()
        first.close()
        assert counts == [rows]
        assert query(pgdb, "SELECT count(*) FROM outbox") == [(1,)]


def test_copy(sluice, pgdb):
    """Rows that are copied in are no exception."""
    sluice.run("init", db=pgdb)
    conn = connect(pgdb)
    with conn.cursor() as cur:
        for _ in range(2):
            cur.copy_expert("COPY outbox (topic, payload, idempotency_key) FROM STDIN",
                            io.StringIO("t\t1\ta\nt\t2\tb\nt\t3\ta\nt\t4\t\\N\n"))
    conn.close()
    assert query(pgdb, "SELECT payload FROM outbox ORDER BY id") == [(b"1",), (b"2",), (b"4",), (b"4",)]


def test_a_path_of_the_producer_s_own_changes_nothing(sluice, pg, pgdb):
    """The trigger works as the owner of the tables: it must not be led to another table, nor be put on one."""
    psycopg2 = pytest.importorskip("psycopg2")
    name = f"sly_{os.getpid()}"
    query(pgdb, "CREATE SCHEMA app")
    sluice.run("init", "--table", "app.outbox", db=pgdb)
    pg.sql(f"CREATE ROLE {name} LOGIN")
    query(pgdb, f"GRANT USAGE ON SCHEMA app TO {name}; GRANT INSERT ON app.outbox TO {name};"
                f" GRANT TEMP ON DATABASE {pgdb.rpartition('/')[2]} TO {name}")
    conn = connect(pgdb.replace("postgres@", f"{name}@"))
    cur = conn.cursor()
    cur.execute("CREATE TEMP TABLE outbox_idempotency (idempotency_key text PRIMARY KEY, seq int)")
    cur.execute("SET search_path = pg_temp, app")
    for _ in range(2):
        cur.execute(INSERT.format("k").replace("outbox", "app.outbox"))
    cur.execute("SELECT count(*) FROM pg_temp.outbox_idempotency")
    assert cur.fetchall() == [(0,)]
    cur.execute("CREATE TEMP TABLE mine (idempotency_key text)")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        cur.execute("CREATE TRIGGER t BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION app.outbox_register()")
    conn.close()
    assert query(pgdb, "SELECT idempotency_key FROM app.outbox_idempotency") == [("k",)]
    assert query(pgdb, "SELECT count(*) FROM app.outbox") == [(1,)]


def test_older_tables_are_registered(sluice, db):
    """Living messages and dead letters with a key; a key that both have, once."""
    sluice.run("init", db=db)
    pg = is_postgres(db)
    for key in ("a", "b"):
        query(db, INSERT.format(key))
    query(db, INSERT.format("x").replace("'x')", "NULL)"))
    for key in ("'b'", "'c'", "'c'", "NULL"):
        query(db, "INSERT INTO outbox_dead (id, topic, payload, attempts, epoch, idempotency_key)"
                  f" VALUES (1, 't', '1', 1, 0, {key})")
    for trigger in ("idempotency",) if pg else ("idempotency", "register"):
        query(db, f"DROP TRIGGER outbox_tr_{trigger}" + (" ON outbox" if pg else ""))
    query(db, "DROP INDEX outbox_ix_idem_dead")
    query(db, "DROP TABLE outbox_idempotency")
    query(db, "DROP INDEX outbox_ix_parked")
    for column in ("fence", "doubt", "tried"):
        query(db, f"ALTER TABLE outbox_keys DROP COLUMN {column}")
    query(db, "ALTER TABLE outbox_dead DROP COLUMN unknown")
    for index in ("held", "delayed"):
        query(db, f"DROP INDEX outbox_ix_{index}")
    query(db, "ALTER TABLE outbox DROP COLUMN delayed")
    if pg:
        query(db, "CREATE INDEX outbox_ix_held ON outbox (entity_key, id) WHERE held")
    query(db, "UPDATE outbox_meta SET value = '3' WHERE name = 'schema_version'")
    if pg:
        query(db, "DROP FUNCTION outbox_register()")
    assert "migrated table outbox from schema version 3 to 5" in sluice.run("init", db=db).stdout
    assert query(db, "SELECT idempotency_key FROM outbox_idempotency ORDER BY 1") == [("a",), ("b",), ("c",)]
    query(db, INSERT.format("c"))
    assert query(db, "SELECT count(*) FROM outbox") == [(3,)]
    made = query(db, "SELECT indexdef FROM pg_indexes WHERE indexname = 'outbox_ix_held'" if pg else
                 "SELECT sql FROM sqlite_master WHERE name = 'outbox_ix_held'")
    assert len(made) == 1 and "delayed" in made[0][0]  # made anew, where it was there


def test_resend_against_a_producer(sluice, pgdb):
    """A dead letter goes back while its key is pushed: the producer waits, and finds the key taken. SQLite has one
    writer at a time."""
    sluice.run("init", db=pgdb)
    query(pgdb, INSERT.format("k"))
    receipt = json.loads(sluice.run("pull", db=pgdb).stdout)["receipt"]
    sluice.run("pull", "--bury", receipt, db=pgdb)
    operator = connect(pgdb)
    cur = operator.cursor()
    cur.execute("BEGIN; DELETE FROM outbox_idempotency WHERE idempotency_key = 'k'")  # as sql/postgres/dead/unregister.sql
    counts = []

    def produce():
        conn = connect(pgdb)
        c = conn.cursor()
        c.execute(INSERT.format("k"))
        counts.append(c.rowcount)
        conn.close()

    thread = threading.Thread(target=produce)
    thread.start()
    wait_until(lambda: query(pgdb, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                   " AND datname = current_database()"), 10, "a producer that waits")
    cur.execute("INSERT INTO outbox (topic, payload, idempotency_key) SELECT topic, payload, idempotency_key FROM outbox_dead;"
                " DELETE FROM outbox_dead; COMMIT")
    thread.join()
    operator.close()
    assert counts == [0]
    assert query(pgdb, "SELECT count(*) FROM outbox") == [(1,)]
    assert query(pgdb, "SELECT count(*) FROM outbox_idempotency") == [(1,)]


def test_resend_keeps_the_key_taken(sluice, db):
    sluice.run("init", db=db)
    query(db, INSERT.format("k"))
    for _ in range(2):
        receipt = json.loads(sluice.run("pull", db=db).stdout)["receipt"]
        sluice.run("pull", "--bury", receipt, db=db)
        query(db, INSERT.format("k"))
        assert query(db, "SELECT count(*) FROM outbox") == [(0,)]
        sluice.run("dead", "resend", "--all", "--yes", db=db)
        query(db, INSERT.format("k"))
        assert query(db, "SELECT idempotency_key FROM outbox") == [("k",)]
    assert query(db, "SELECT count(*) FROM outbox_idempotency") == [(1,)]


def test_a_node_forgets_keys(sluice, db):
    """After their message was delivered and `idempotency_keep` is over; not those of messages that wait."""
    sluice.run("init", db=db)
    query(db, INSERT.format("gone"))
    query(db, INSERT.format("waits"))
    later = "now() + interval '1 day'" if is_postgres(db) else "datetime('now', '+1 day')"
    query(db, f"UPDATE outbox SET available_at = {later} WHERE idempotency_key = 'waits'")
    sluice.start("run", "--sink", "null:", "--idempotency-keep", "1s", db=db)
    wait_until(lambda: query(db, "SELECT idempotency_key FROM outbox_idempotency") == [("waits",)], 30, "one is forgotten")
    query(db, INSERT.format("gone"))
    wait_until(lambda: query(db, "SELECT idempotency_key FROM outbox") == [("waits",)], 30, "it is delivered again")
