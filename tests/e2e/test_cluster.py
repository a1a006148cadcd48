"""A cluster at work: four nodes with two workers each, many keys, one node killed and one added midway.
Order and exclusion hold, and lanes come to rest again soon."""
import os
import threading
import time

import pytest

import record as rec
from checker import BadHistory, message, read_sink
from harness import PATIENCE, connect, query, scaled, wait_until, waiting
from history import Fault, History

KEYS = 5000
BATCH = 50
LEASE = 2.0 * max(1.5, PATIENCE)
REST = LEASE + 2.0 * PATIENCE  # within this time after a change of the nodes, no lane moves any more


@pytest.fixture
def records(sluice, fault_points, tmp_path):
    with open(sluice.bin, "rb") as f:
        if b"SLUICE_RECORD" not in f.read():
            pytest.skip("the program was built without records")
    folder = tmp_path / "records"
    folder.mkdir()
    return str(folder)


class Producer(threading.Thread):
    """Commits messages at a steady pace: the first of each key, and then more and more of the first
    keys. `messages` are by id."""

    CHUNK = 1000

    def __init__(self, url, total):
        super().__init__(daemon=True)
        self.url, self.total = url, total
        self.messages = {}
        self.most = total * 3 // 4  # the rest is for who comes late
        self.stop = threading.Event()

    def run(self):
        while len(self.messages) < self.total and not self.stop.wait(0.2):
            if len(self.messages) < self.most:
                self._push(len(self.messages), min(self.CHUNK, self.most - len(self.messages)))

    def _push(self, first, n):
        rows = query(self.url, "INSERT INTO outbox (topic, entity_key, payload)"
                     " SELECT 'orders', 'k' || CASE WHEN i < ? THEN i ELSE floor(? * power(random(), 3))::int END,"
                     """ convert_to('{"n":' || i || '}', 'UTF8') FROM generate_series(?, ?) AS s (i) ORDER BY i"""
                     " RETURNING id, topic, entity_key, payload", KEYS, KEYS, first, first + n - 1)
        self.messages.update((row[0], message(*row[1:])) for row in rows)

    def wait(self, part):
        """Until this part of all is committed."""
        wait_until(lambda: len(self.messages) >= self.total * part, 60, f"{part:.0%} of the messages are committed")


class Ownership(threading.Thread):
    """Looks at the lanes again and again. `changes` are (time, owner by lane), where an owner that is no
    node is none."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url = url
        self.changes = []
        self.stop = threading.Event()

    def run(self):
        conn = connect(self.url)
        cur = conn.cursor()
        while not self.stop.wait(0.02):
            cur.execute("SELECT l.lane, n.node FROM outbox_lanes l LEFT JOIN outbox_nodes n ON n.session = l.owner")
            now = dict(cur.fetchall())
            if not self.changes or now != self.changes[-1][1]:
                self.changes.append((time.monotonic(), now))
        conn.close()

    def now(self):
        return self.changes[-1][1] if self.changes else {}

    def all_owned_by(self, names):
        return self.now() and set(self.now().values()) == set(names)

    def rest_after(self, moment, names):
        """How long after this moment the last lane moved, once all are owned by these nodes, and a
        while longer."""
        wait_until(lambda: self.all_owned_by(names), 30, f"all lanes belong to {sorted(names)}")
        wait_until(lambda: time.monotonic() - self.changes[-1][0] > 2, 30, "no lane moves for two seconds")
        return self.changes[-1][0] - moment


class Cluster:
    def __init__(self, sluice, url, records):
        self.sluice, self.url, self.records = sluice, url, records
        self.out = os.path.join(sluice.cwd, "out.jsonl")
        self.faults = []

    def start(self, node):
        p = self.sluice.start("run", "--node", node, "--strategy", "lanes", "--assign", "ring", "--sink",
                              f"file:{self.out}", "--workers", 2, "--batch", BATCH, "--lease", f"{LEASE:g}s",
                              "--poll", "50ms", db=self.url, env={"SLUICE_RECORD": self.records})
        p.wait_log("node started")
        return p

    def kill(self, node):
        """With work in flight: it is stopped, looked at, and killed if it has some. Returns when."""
        def look():
            node.pause()
            if tail.follow().in_flight():
                return True
            node.resume()
            return False
        with rec.Tail(self.records, node.pid) as tail:
            wait_until(look, 10, "work in flight")
            at = rec.now_ns()
            node.kill9()
            now = rec.now_ns()
            killed_at = time.monotonic()
        self.faults.append(Fault("kill", node.pid, at, now, now))
        return killed_at


def moved(before, after):
    return {lane: (before[lane], after[lane]) for lane in before if before[lane] != after[lane]}


def kill_and_add(cluster, producer, watch, nodes):
    """How long it took until lanes came to rest, after the one and after the other."""
    producer.wait(0.25)
    before = watch.now()
    killed_at = cluster.kill(nodes.pop("c"))
    after_kill = watch.rest_after(killed_at, "abd")
    without = watch.now()
    assert {old for old, _ in moved(before, without).values()} == {"c"}, "only the lanes of the dead one moved"

    producer.wait(0.5)
    added_at = time.monotonic()
    nodes["e"] = cluster.start("e")
    after_join = watch.rest_after(added_at, "abde")
    producer.most = producer.total
    assert {new for _, new in moved(without, watch.now()).values()} == {"e"}, "lanes moved to the new one only"
    return after_kill, after_join


@pytest.mark.slow
def test_one_is_killed_and_one_is_added(sluice, pgdb, records, record_property):
    total = scaled(200_000, least=KEYS * 2)
    sluice.run("init", db=pgdb)
    cluster, watch, producer = Cluster(sluice, pgdb, records), Ownership(pgdb), Producer(pgdb, total)
    nodes = {name: cluster.start(name) for name in "abcd"}
    watch.start()
    try:
        wait_until(lambda: watch.all_owned_by("abcd"), 30, "every node has lanes")
        producer.start()
        rests = kill_and_add(cluster, producer, watch, nodes)
        producer.wait(1)
        wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox") == [(0,)], 60, "everything is delivered")
    finally:
        for thread in (producer, watch):
            thread.stop.set()
        watch.join()
    for p in nodes.values():
        p.term()
    for p in nodes.values():
        p.wait(status=0)
    history = History(producer.messages, read_sink(cluster.out), rec.read(records), cluster.faults, lease=LEASE,
                      batch=BATCH)
    figures = history.judge({"messages": total, "claims": total, "kills": 1, "workers": 9})
    text = f"lanes rested {rests[0]:.2f} s after the kill and {rests[1]:.2f} s after the join; {figures}"
    record_property("history", text)
    print(text)
    assert len({m.key for m in producer.messages.values()}) == KEYS  # all were served, as nothing is lost
    assert max(rests) <= REST, text


@pytest.mark.parametrize("layout", ["sluice", "rotated"])
def test_a_late_commit_is_not_overtaken(sluice, pgdb, layout):
    """Producers of different keys do not wait for each other: a message may be committed after one with a
    higher id was delivered. The next of its key, whose producer waited for that commit, still comes
    after it."""
    out = os.path.join(sluice.cwd, "out.jsonl")
    sluice.run("init", "--lanes", 1, "--layout", layout, db=pgdb)
    sluice.start("run", "--strategy", "lanes", "--workers", 1, "--poll", "20ms", "--sink", f"file:{out}", db=pgdb)
    insert = "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', %s, '1') RETURNING id"
    ids = []
    late, other = connect(pgdb).cursor(), connect(pgdb).cursor()
    for _ in range(5):
        late.execute("BEGIN")
        late.execute(insert, ("late",))
        ids.append(late.fetchone()[0])
        other.execute(insert, ("other",))
        wait_until(lambda: waiting(pgdb) == 0, 10, "the other key's message is delivered")
        late.execute("COMMIT")
        late.execute(insert, ("late",))
        ids.append(late.fetchone()[0])
        wait_until(lambda: waiting(pgdb) == 0, 10, "everything is delivered")
    delivered = [d.id for d in read_sink(out) if d.key == "late"]
    if delivered != ids:
        raise BadHistory(f"committed as {ids}, delivered as {delivered}")
