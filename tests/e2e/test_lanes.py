"""Another number of lanes while nodes run: nothing lost, nothing twice, every key in order; and
whatever is killed or stopped on the way, the table is as before or as wanted, and delivery goes on."""
import collections
import json
import os
import signal
import threading
import time

import pytest

import record
from checker import check, commit, committed, read_sink
from harness import PATIENCE, Gate, connect, is_postgres, pause_outside, query, too_large, wait_until
from history import History

LEASE = 3 * PATIENCE
BATCH = 20


@pytest.fixture
def out(sluice):
    return os.path.join(sluice.cwd, "out.jsonl")


def start(sluice, db, name, *flags, lease=LEASE, env=None):
    return sluice.start("run", "--sink", "file:out.jsonl", "--strategy", "lanes", "--node", name, "--lease",
                        f"{round(lease * 1000)}ms", "--poll", "20ms", "--batch", BATCH, "--workers", 2, *flags, db=db,
                        env=env)


def owners(sluice, db, *flags):
    """node -> its lanes; None -> those that are free."""
    got = json.loads(sluice.run("workers", "--json", *flags, db=db).stdout)
    return {None: got["free_lanes"], **{n["node"]: n["lanes"] for n in got["nodes"]}}


def placed(sluice, db, *names, lanes=64):
    """Until these nodes, and no others, share all lanes."""
    def look():
        got = owners(sluice, db)
        return set(got) == {None, *names} and sorted(sum(got.values(), [])) == list(range(lanes)) and not got[None] and \
            all(got[name] for name in names)
    wait_until(look, 30, f"{names} share {lanes} lanes")


def empty(db, table="outbox"):
    wait_until(lambda: query(db, f"SELECT count(*) FROM {table}") == [(0,)], 60, "an empty table")


def in_order(deliveries):
    """Every key's messages by rising ids."""
    last = collections.defaultdict(int)
    for d in deliveries:
        assert d.id > last[d.key], f"key {d.key}: message {d.id} after {last[d.key]}"
        last[d.key] = d.id


def number_of(db, table="outbox"):
    """The number of lanes, wherever it is written down."""
    meta = int(query(db, f"SELECT value FROM {table}_meta WHERE name = 'lanes'")[0][0])
    assert query(db, f"SELECT count(*), min(lane), max(lane) FROM {table}_lanes") == [(meta, 0, meta - 1)]
    return meta


def paused(db):
    now = "clock_timestamp()" if is_postgres(db) else "strftime('%Y-%m-%d %H:%M:%f', 'now')"
    cast = "::timestamptz" if is_postgres(db) else ""
    return query(db, f"SELECT count(*) FROM outbox_meta WHERE name = 'lanes_pause' AND value{cast} > {now}") == [(1,)]


class Producer:
    """Commits messages, a few at a time, until it is told to stop. While `most` of them wait it pauses."""

    def __init__(self, db, most=400):
        self.messages, self._db, self._most, self._stop = {}, db, most, threading.Event()
        self.error = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            while not self._stop.is_set():
                if query(self._db, "SELECT count(*) FROM outbox")[0][0] < self._most:
                    self.messages.update(commit(self._db, 20))
                time.sleep(0.01)
        except Exception as e:  # noqa: BLE001: the test shows it
            self.error = e

    def stop(self):
        self._stop.set()
        self._thread.join()
        if self.error:
            raise self.error
        return self.messages


# -- Showing -------------------------------------------------------------------------------------

def test_shows_who_owns_how_many(sluice, box):
    assert sluice.run("lanes", db=box).stdout == "table outbox has 64 lanes\n\n  node    lanes\n  (free)     64  0-63\n"
    start(sluice, box, "n1")
    placed(sluice, box, "n1")
    assert sluice.run("lanes", db=box).stdout == \
        "table outbox has 64 lanes\n\n  node    lanes\n  n1         64  0-63\n  (free)      0\n"


# -- Refused -------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", ["0", "-1", "32769", "many", "", "1.5"])
def test_not_a_number_of_lanes(sluice, sqlitedb, n):
    sluice.run("init", db=sqlitedb)
    done = sluice.run("lanes", f"--set={n}", db=sqlitedb, check=2)
    assert "set" in done.stderr and done.stdout == ""
    assert number_of(sqlitedb) == 64


def test_already(sluice, box):
    done = sluice.run("lanes", "--set", 64, db=box, check=1)
    assert "has 64 lanes already" in done.stderr
    assert not paused(box)


def test_arguments(sluice, sqlitedb):
    sluice.run("init", db=sqlitedb)
    assert "--set N" in sluice.run("lanes", 16, db=sqlitedb, check=2).stderr


def test_no_table(sluice, pgdb, sqlitedb):
    assert "is not there" in sluice.run("lanes", "--set", 16, db=pgdb, check=1).stderr
    sluice.run("lanes", "--set", 16, db=sqlitedb, check=3)


def test_not_the_owner_of_the_table(sluice, pg, pgdb):
    """A failure in the last step leaves all as it was."""
    sluice.run("init", db=pgdb)
    role = f"relay_{os.getpid()}"
    query(pgdb, f"CREATE ROLE {role} LOGIN")
    try:
        query(pgdb, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
        done = sluice.run("lanes", "--set", 16, db=f"{pgdb}{'&' if '?' in pgdb else '?'}user={role}", check=1)
        assert "must be owner" in done.stderr
        assert number_of(pgdb) == 64 and not paused(pgdb)
    finally:
        query(pgdb, f"DROP OWNED BY {role}")
        query(pgdb, f"DROP ROLE {role}")


# -- While nodes deliver -------------------------------------------------------------------------

def test_nobody_runs(sluice, box, out):
    """The ends of what is possible, and back."""
    messages = commit(box, 300)
    for before, n in ((64, 1), (1, 32768), (32768, 7)):
        done = sluice.run("lanes", "--set", n, db=box)
        assert done.stdout == f"table outbox has {n} lanes now, {before} before\n"
        assert number_of(box) == n
        low, high = query(box, "SELECT min(lane), max(lane) FROM outbox")[0]
        assert 0 <= low <= high < n
    sluice.run("run", "--sink", "file:out.jsonl", "--strategy", "lanes", "--drain", db=box)
    record_ = read_sink(out)
    in_order(record_)
    check(messages, record_, least=300)


@pytest.mark.threads
def test_while_two_nodes_deliver(sluice, box, out):
    """64, 16, 100: with a producer, and with nodes that have messages in flight each time."""
    folder = os.path.join(sluice.cwd, "record")
    os.makedirs(folder)
    with open(sluice.bin, "rb") as f:
        records = b"SLUICE_RECORD" in f.read()
    env = {"SLUICE_RECORD": folder} if records else {}
    nodes = [start(sluice, box, name, env=env) for name in ("n1", "n2")]
    placed(sluice, box, "n1", "n2")
    producer = Producer(box)
    for n in (16, 100):
        before = len(producer.messages)
        wait_until(lambda: len(producer.messages) > before + 100, 30, "messages")
        sluice.run("lanes", "--set", n, db=box)
        placed(sluice, box, "n1", "n2", lanes=n)
        assert number_of(box) == n
    messages = producer.stop()
    empty(box)
    for node in nodes:
        node.term()
        node.wait(status=0)
    deliveries = read_sink(out)
    in_order(deliveries)
    summary = check(messages, deliveries, least=200)
    assert {w.split("/")[0] for w in summary.workers} == {"n1", "n2"}
    if records:
        History(messages, deliveries, record.read(folder), lease=LEASE, batch=BATCH).judge(least={"messages": 200})


def test_keys_that_wait(sluice, box, out):
    """Heads that failed, and those behind them, are found in their new lanes."""
    messages = commit(box, 300)
    with too_large(sluice) as sink:
        sluice.run("run", "--sink", sink, "--strategy", "lanes", "--drain", "--retry-base", "1h", "--retry-max", "1h", db=box)
    assert query(box, "SELECT count(*) FROM outbox_keys") == [(97,)]
    sluice.run("lanes", "--set", 10, db=box)
    assert query(box, "SELECT count(*) FROM outbox_keys k JOIN outbox o ON o.id = k.head WHERE o.lane = k.lane") == [(97,)]
    query(box, "UPDATE outbox SET available_at = '2000-01-01'")
    query(box, "UPDATE outbox_keys SET due_at = '2000-01-01'")
    start(sluice, box, "n1")
    start(sluice, box, "n2")
    empty(box)
    deliveries = read_sink(out)
    in_order(deliveries)
    check(messages, deliveries, least=300)
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox_keys") == [(0,)], 10, "no key that waits")


def test_two_changes_at_once(sluice, box):
    start(sluice, box, "n1")
    placed(sluice, box, "n1")
    several = [sluice.start("lanes", "--set", n, db=box) for n in (8, 32)]
    for p in several:
        p.wait(60, status=0)
    assert number_of(box) in (8, 32)
    placed(sluice, box, "n1", lanes=number_of(box))


@pytest.mark.parametrize("strategy", ["guard", "skip-locked"])
def test_nodes_that_need_no_lanes(sluice, box, out, strategy):
    """They own none, and are not waited for."""
    sluice.start("run", "--sink", "file:out.jsonl", "--strategy", strategy, "--poll", "20ms", db=box)
    producer = Producer(box)
    wait_until(lambda: len(producer.messages) > 100, 30, "messages")
    sluice.run("lanes", "--set", 16, db=box)
    messages = producer.stop()
    empty(box)
    check(messages, read_sink(out), least=100)


# -- What holds it up ----------------------------------------------------------------------------

def test_messages_in_flight(sluice, box, out):
    """They are delivered by who took them, once, before the number changes."""
    messages = commit(box, 30)
    with Gate(out) as gate:
        start(sluice, box, "n1", lease=600)  # a sink without an answer is recalled after a lease
        placed(sluice, box, "n1")
        change = sluice.start("lanes", "--set", 16, db=box)
        wait_until(lambda: paused(box), 10, "the pause")
        time.sleep(1)  # it must not get on: only time can show that
        assert change.running and number_of(box) == 64
        gate.open()
        change.wait(30, status=0)
    placed(sluice, box, "n1", lanes=16)
    empty(box)
    deliveries = read_sink(out)
    in_order(deliveries)
    check(messages, deliveries, least=30)


@pytest.mark.slow
def test_a_node_that_is_stopped(sluice, box, out):
    """It is waited for until its lease ends. When it wakes up it begins anew, with the new lanes."""
    lease = 4 * PATIENCE
    node = start(sluice, box, "n1", lease=lease)
    placed(sluice, box, "n1")
    pause_outside(node, box)
    begun = time.monotonic()
    left = json.loads(sluice.run("workers", "--json", db=box).stdout)["nodes"][0]["lease_seconds"]
    sluice.run("lanes", "--set", 16, db=box)
    took = time.monotonic() - begun
    assert left - 0.1 < took < lease + 5 * PATIENCE
    start(sluice, box, "n2", lease=lease)
    placed(sluice, box, "n2", lanes=16)
    node.resume()
    placed(sluice, box, "n1", "n2", lanes=16)
    messages = commit(box, 200)
    empty(box)
    deliveries = read_sink(out)
    in_order(deliveries)
    check(messages, deliveries, least=200)


def test_gives_up(sluice, box, out):
    """In time, naming who was in the way; and the others go on at once."""
    stopped = start(sluice, box, "slow", lease=60)
    other = start(sluice, box, "other", lease=60)
    placed(sluice, box, "slow", "other")
    pause_outside(stopped, box)
    begun = time.monotonic()
    done = sluice.run("lanes", "--set", 16, "--wait", "2s", db=box, check=1)
    assert 2 <= time.monotonic() - begun < 10 * PATIENCE
    assert "node 'slow'" in done.stderr and "node 'other'" not in done.stderr
    assert "still has 64 lanes" in done.stderr and "hint:" in done.stderr
    assert number_of(box) == 64 and not paused(box)
    wait_until(lambda: owners(sluice, box)["other"], 20, "lanes of the other")
    stopped.resume()
    placed(sluice, box, "slow", "other")
    messages = commit(box, 100)
    empty(box)
    check(messages, read_sink(out), least=100)
    assert other.running


@pytest.mark.slow
def test_a_transaction_of_a_producer(sluice, pgdb):
    """A lock that cannot be had is tried for again and again; producers go on between."""
    sluice.run("init", db=pgdb)
    conn = connect(pgdb)
    conn.cursor().execute("BEGIN; INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    done = sluice.run("lanes", "--set", 16, "--wait", "4s", db=pgdb, check=1)
    assert "could not be locked" in done.stderr and "lock timeout" in done.stderr
    assert number_of(pgdb) == 64 and not paused(pgdb)
    change = sluice.start("lanes", "--set", 16, db=pgdb)
    for _ in range(3):  # waits for the lock that is waited for, and no longer
        commit(pgdb, 1)
    assert change.running
    conn.cursor().execute("COMMIT")
    conn.close()
    change.wait(status=0)
    assert number_of(pgdb) == 16
    assert query(pgdb, "SELECT count(*) FROM outbox") == [(4,)]


# -- Killed --------------------------------------------------------------------------------------

def end_pause_soon(db):
    """It would end by itself, within half a minute."""
    left = "extract(EPOCH FROM value::timestamptz - clock_timestamp())::float8" if is_postgres(db) else \
        "(julianday(value) - julianday('now')) * 86400.0"
    (seconds,), = query(db, f"SELECT {left} FROM outbox_meta WHERE name = 'lanes_pause'")
    assert 0 < seconds <= 30
    soon = "(clock_timestamp() + interval '1 second')::text" if is_postgres(db) else \
        "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 second')"
    query(db, f"UPDATE outbox_meta SET value = {soon} WHERE name = 'lanes_pause'")


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_while_it_waits(sluice, box, out, sig):
    """The number is as before, and the nodes go on: when told politely, at once."""
    messages = commit(box, 30)
    with Gate(out) as gate:
        start(sluice, box, "n1", lease=600)  # a sink without an answer is recalled after a lease
        placed(sluice, box, "n1")
        change = sluice.start("lanes", "--set", 16, db=box)
        wait_until(lambda: paused(box), 10, "the pause")
        change.signal(sig)
        assert change.wait() == (-sig if sig == signal.SIGKILL else 1)
        if sig == signal.SIGKILL:
            assert paused(box)
        else:
            assert not paused(box) and "interrupted" in change.stderr()
        gate.open()
    if sig == signal.SIGKILL:
        wait_until(lambda: len(owners(sluice, box)[None]) == 64, 20, "that the node gave up its lanes")
        end_pause_soon(box)
    assert number_of(box) == 64
    placed(sluice, box, "n1")
    messages.update(commit(box, 100))
    empty(box)
    deliveries = read_sink(out)
    in_order(deliveries)
    check(messages, deliveries, least=130)


@pytest.mark.slow
def test_killed_while_it_changes_the_table(sluice, pgdb, out):
    sluice.run("init", db=pgdb)
    start(sluice, pgdb, "n1")
    placed(sluice, pgdb, "n1")
    conn = connect(pgdb)
    conn.cursor().execute("BEGIN; INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '1')")
    change = sluice.start("lanes", "--set", 16, db=pgdb)
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE"
                                   " '%DROP COLUMN%' AND datname = current_database()") == [(1,)], 20, "the last step")
    change.kill9()
    conn.cursor().execute("COMMIT")
    conn.close()
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%DROP COLUMN%' AND"
                                   " datname = current_database() AND pid <> pg_backend_pid()") == [(0,)], 20,
               "the end of its session")
    assert number_of(pgdb) == 64
    end_pause_soon(pgdb)
    messages = {**committed(pgdb), **commit(pgdb, 100)}
    placed(sluice, pgdb, "n1")
    empty(pgdb)
    deliveries = read_sink(out)
    in_order(deliveries)
    check(messages, deliveries, least=100)
    sluice.run("lanes", "--set", 16, db=pgdb)
    placed(sluice, pgdb, "n1", lanes=16)


# -- Names ---------------------------------------------------------------------------------------

def test_mapped_columns(sluice, db, out):
    name = "inbox"
    flags = ["--columns", "lane=bucket,held=aside,entity_key=partition_key,id=position,epoch=term"]
    if is_postgres(db):
        query(db, "CREATE SCHEMA app")
        name = "app.inbox"
    flags += ["--table", name]
    sluice.run("init", *flags, db=db)
    sluice.start("run", "--sink", "file:out.jsonl", "--strategy", "lanes", "--poll", "20ms", *flags, db=db)
    wait_until(lambda: not owners(sluice, db, *flags)[None], 20, "a node that owns all lanes")
    for n in range(20):
        query(db, f"INSERT INTO {name} (topic, partition_key, payload) VALUES ('t', ?, '1')", f"k{n % 5}")
    sluice.run("lanes", "--set", 16, *flags, db=db)
    assert query(db, f"SELECT count(*), max(bucket) FROM {name}_lanes") == [(16, 15)]
    for n in range(20):
        query(db, f"INSERT INTO {name} (topic, partition_key, payload) VALUES ('t', ?, '1')", f"k{n % 5}")
    empty(db, name)
    deliveries = read_sink(out)
    in_order(deliveries)
    assert len(deliveries) == 40
    assert "16 lanes" in sluice.run("init", *flags, db=db).stdout
