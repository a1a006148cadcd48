"""fence: kafka and delivery: exactly-once, against a real broker: what a node sends late is refused, and what a killed one
had delivered is not sent again. `seen` is what a read_committed consumer sees. Every test counts what its fault hit."""
import collections
import random
import re

import pytest

from checker import commit
from harness import PATIENCE, all_stopped, query, scaled, wait_until

BATCH = 40
Seen = collections.namedtuple("Seen", "id epoch key")

MODES = {"none": [], "fence": ["--fence", "kafka"], "exact": ["--delivery", "exactly-once"]}
POINTS = ["taken", "produced", "committing", "committed", "sent", "settled"]


def seen(kafka, topic, committed=True):
    """In the order of the log, which has one partition."""
    found = []
    for r in kafka.read(topic, committed=committed):
        headers = dict(r.headers)
        found.append(Seen(int(headers["sluice-id"]), int(headers["sluice-epoch"]), r.key))
    return found


def twice(found):
    return [id for id, n in collections.Counter(r.id for r in found).items() if n > 1]


def stale(found):
    """Records behind one of their key with a higher epoch: whoever sent them was no longer the owner."""
    highest, late = {}, []
    for r in found:
        if r.epoch < highest.get(r.key, 0):
            late.append(r)
        highest[r.key] = max(r.epoch, highest.get(r.key, 0))
    return late


def reordered(found):
    """Of each message the first time that it is seen: ids of a key that fall."""
    last, known, wrong = {}, set(), []
    for r in found:
        if r.id in known:
            continue
        known.add(r.id)
        if r.id < last.get(r.key, 0):
            wrong.append(r)
        last[r.key] = r.id
    return wrong


class Nodes:
    def __init__(self, sluice, url, kafka, mode):
        self.sluice, self.url, self.kafka = sluice, url, kafka
        self.topic = kafka.new_topic()
        self.flags = [*MODES[mode], "--sink", f"kafka://{kafka.bootstrap()}/{self.topic}", "--batch", BATCH,
                      "--poll", "20ms", "--lease", f"{2 * PATIENCE:g}s"]
        self.messages = {}
        sluice.run("init", "--lanes", 8, db=url)

    def commit(self, n):
        self.messages.update(commit(self.url, n))

    def start(self, node, *flags, fault=None, workers=1):
        p = self.sluice.start("run", *self.flags, "--node", node, "--workers", workers, *flags, db=self.url,
                              env={"SLUICE_FAULT": fault} if fault else None)
        p.node = node
        return p

    def waiting(self):
        return query(self.url, "SELECT count(*) FROM outbox")[0][0]

    def fences(self):
        return query(self.url, "SELECT count(*) FROM outbox_fences")[0][0]

    def wait_empty(self):
        wait_until(lambda: self.waiting() == 0, 60, "all is delivered")

    def seen(self):
        return seen(self.kafka, self.topic)


@pytest.mark.parametrize("mode", ["fence", "exact"])
def test_each_once_and_in_order(sluice, db, real_kafka, mode):
    nodes = Nodes(sluice, db, real_kafka, mode)
    nodes.commit(500)
    nodes.start("a", "--drain", workers=2).wait(timeout=60, status=0)
    found = nodes.seen()
    assert sorted(r.id for r in found) == sorted(nodes.messages)
    assert not reordered(found) and not stale(found)
    assert nodes.fences() == 0, "a node that ends leaves nothing to do"


def pause_and_take_over(nodes, point):
    """One stands still right before its messages leave, or between the last of them and their commit, for longer than its
    lease; another takes over, and delivers everything. Then the first goes on. How much was there before that."""
    nodes.commit(200)
    paused = nodes.start("a", "--kafka", "linger.ms=300",
                         fault=f"{point}:{BATCH if point == 'produced' else 1}:stop")
    wait_until(lambda: all_stopped(paused.pid), 30, "it stands still")
    assert nodes.waiting() == 200
    other = nodes.start("b")
    nodes.wait_empty()
    before = len(nodes.seen())
    paused.resume()
    paused.wait_log("this node was forgotten by the others", timeout=30)
    nodes.commit(100)  # of the same keys
    nodes.wait_empty()
    paused.term()
    paused.wait(timeout=30, status=0)
    other.term()
    other.wait(timeout=30, status=0)
    return before


@pytest.mark.parametrize("mode", ["fence", "exact"])
@pytest.mark.parametrize("point", ["produced", "committing"])
def test_a_paused_node_is_shut_out(sluice, pgdb, real_kafka, fault_points, mode, point):
    nodes = Nodes(sluice, pgdb, real_kafka, mode)
    assert pause_and_take_over(nodes, point) == 200
    found = nodes.seen()
    assert not stale(found)
    assert not reordered(found)
    assert sorted(r.id for r in found) == sorted(nodes.messages), "no stale write, and so none twice"
    assert nodes.fences() == 0


def test_without_a_fence_it_is_noticed(sluice, pgdb, real_kafka, fault_points):
    """Whether it sends before it sees that it is late is up to its threads: it has a few tries."""
    for _ in range(5):
        nodes = Nodes(sluice, pgdb, real_kafka, "none")
        before = pause_and_take_over(nodes, "produced")
        found = nodes.seen()
        if stale(found) and twice(found) and len(found) > before + 100:
            return
    pytest.fail("nothing stale in five tries")


@pytest.mark.parametrize("mode", ["fence", "exact"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_in_the_middle(sluice, pgdb, real_kafka, fault_points, mode, point):
    """The second turn of a node ends with SIGKILL at this point; another takes over."""
    nodes = Nodes(sluice, pgdb, real_kafka, mode)
    nodes.commit(200)
    n = BATCH + BATCH // 2 if point == "produced" else 2
    nodes.start("a", fault=f"{point}:{n}").wait(timeout=60, status=-9)
    left = nodes.waiting()
    delivered = {r.id for r in nodes.seen()}
    doubtful = len(delivered) - (200 - left)  # delivered, and the table does not know
    assert (doubtful > 0) == (point in ("committed", "sent")), f"{doubtful} of {len(delivered)}"
    other = nodes.start("b", "--drain")
    other.wait(timeout=60, status=0)
    found = nodes.seen()
    assert {r.id for r in found} == set(nodes.messages), "nothing is lost"
    assert not reordered(found) and not stale(found)
    told = re.search(r"a node that is gone is shut out.* delivered=(\d+)", other.stderr())
    assert told, other.stderr()
    if mode == "exact":
        assert not twice(found)
        assert int(told.group(1)) == doubtful
    else:  # else this test would not notice
        assert len(twice(found)) == doubtful
    assert nodes.fences() == 0


@pytest.mark.parametrize("mode", ["fence", "exact"])
def test_without_shutting_out_it_is_noticed(sluice, pgdb, real_kafka, fault_points, mode):
    """The same pause before the commit, but the rows that tell others to shut the node out are taken away. (A pause before
    that would not show: the node looks at its lease before it commits.)"""
    nodes = Nodes(sluice, pgdb, real_kafka, mode)
    nodes.commit(200)
    paused = nodes.start("a", fault="committing:1:stop")
    wait_until(lambda: all_stopped(paused.pid), 30, "it stands still")
    query(pgdb, "DELETE FROM outbox_fences")
    nodes.start("b")
    nodes.wait_empty()
    paused.resume()
    paused.wait_log("this node was forgotten by the others", timeout=30)
    wait_until(lambda: len(nodes.seen()) > 200, 30, "what it had sent appears")
    found = nodes.seen()
    assert len(twice(found)) == BATCH


@pytest.mark.parametrize("mode", ["fence", "exact"])
def test_a_database_that_goes_away_in_between(sluice, own_pg, real_kafka, fault_points, mode):
    """Kafka has the messages, and the connection that was to settle them is gone; the node lives, and so does its lease."""
    nodes = Nodes(sluice, own_pg.new_database(), real_kafka, mode)
    nodes.commit(200)
    p = nodes.start("a", "--lease", f"{60 * PATIENCE:g}s", fault="committed:2:stop", workers=2)
    wait_until(lambda: all_stopped(p.pid), 30, "it stands still")
    own_pg.restart()
    p.resume()
    nodes.wait_empty()
    p.term()
    p.wait(timeout=60, status=0)
    found = nodes.seen()
    assert {r.id for r in found} == set(nodes.messages)
    assert not reordered(found)
    if mode == "exact":
        assert not twice(found)
        assert "what was delivered is settled" in p.stderr()
    else:  # else this test would not notice
        assert twice(found)


def test_killed_under_the_same_name(sluice, pgdb, real_kafka, fault_points):
    nodes = Nodes(sluice, pgdb, real_kafka, "exact")
    nodes.commit(200)
    nodes.start("a", fault="committed:2", workers=2).wait(timeout=60, status=-9)
    nodes.start("a", "--drain", workers=1).wait(timeout=60, status=0)
    assert sorted(r.id for r in nodes.seen()) == sorted(nodes.messages)
    assert nodes.fences() == 0


@pytest.mark.parametrize("point", ["committed", "sent"])
def test_several_transactions_in_a_turn(sluice, pgdb, real_kafka, fault_points, point):
    """Messages of one key that go to two topics: the second waits for the first, so a turn has several commits. The
    position then tells of all of them."""
    nodes = Nodes(sluice, pgdb, real_kafka, "exact")
    topics = [nodes.topic, real_kafka.new_topic()]
    for i in range(20):
        query(pgdb, "INSERT INTO outbox (topic, entity_key, payload) VALUES (?, 'k', '{}')", topics[i % 2])
    nodes.flags = [f"kafka://{real_kafka.bootstrap()}" if str(f).startswith("kafka://") else f for f in nodes.flags]
    nodes.flags += ["--batch", 400]  # a lane's part of it is more than there is
    nodes.start("a", fault=f"{point}:{7 if point == 'committed' else 1}").wait(timeout=60, status=-9)
    assert nodes.waiting() == 20
    assert sum(len(seen(real_kafka, t)) for t in topics) == (7 if point == "committed" else 20)
    nodes.start("b", "--drain").wait(timeout=60, status=0)
    found = sorted(r.id for t in topics for r in seen(real_kafka, t))
    assert found == sorted(set(found)) and len(found) == 20


@pytest.mark.slow
def test_brokers_that_go_away(sluice, pgdb, own_kafka):
    """The broker is killed again and again while nodes send: some commits stay without an answer for a while."""
    nodes = Nodes(sluice, pgdb, own_kafka, "exact")
    running = [nodes.start(name, workers=2) for name in ("a", "b")]
    for _ in range(2):
        nodes.commit(2000)
        wait_until(lambda: nodes.waiting() < 2000, 60, "some are delivered")
        own_kafka.kill()
        own_kafka.start()
    wait_until(lambda: nodes.waiting() == 0, 120, "all is delivered")
    for p in running:
        p.term()
    for p in running:
        p.wait(timeout=60, status=0)
    found = nodes.seen()
    assert sorted(r.id for r in found) == sorted(nodes.messages)
    assert not reordered(found)
    assert nodes.fences() == 0


def test_a_turn_larger_than_its_position(sluice, sqlitedb, real_kafka):
    """What the position has no room for waits for the next turn."""
    nodes = Nodes(sluice, sqlitedb, real_kafka, "exact")
    nodes.commit(9000)
    nodes.start("a", "--drain", "--batch", 9000).wait(timeout=60, status=0)
    found = nodes.seen()
    assert sorted(r.id for r in found) == sorted(nodes.messages)
    assert not reordered(found)


@pytest.mark.slow
def test_killed_and_paused_again_and_again(sluice, pgdb, real_kafka):
    """Three nodes; at any moment one of them is killed and replaced, or paused for longer than its lease."""
    rng = random.Random(1)
    nodes = Nodes(sluice, pgdb, real_kafka, "exact")
    running = [nodes.start(f"n{i}", workers=2) for i in range(3)]
    faults = collections.Counter()
    for i in range(scaled(8, 3)):
        nodes.commit(1500)
        wait_until(lambda: nodes.waiting() < 1400, 60, "some are delivered")
        victim = running.pop(rng.randrange(len(running)))
        faults["in the middle"] += nodes.waiting() > 0
        if i % 3 != 2:
            victim.kill9()
            faults["killed"] += 1
            running.append(nodes.start(f"m{i}", workers=2))
        else:
            victim.pause()
            wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox_nodes WHERE node = ?", victim.node)[0][0] == 0,
                       60, "it is forgotten")
            victim.resume()
            faults["paused"] += 1
            running.append(victim)
    nodes.wait_empty()
    for p in running:
        p.term()
    for p in running:
        p.wait(timeout=60, status=0)
    assert faults["killed"] and faults["paused"] and faults["in the middle"] > 1, faults
    found = nodes.seen()
    assert sorted(r.id for r in found) == sorted(nodes.messages)
    assert not reordered(found) and not stale(found)


@pytest.mark.parametrize("flags, text", [
    (["--fence", "kafka", "--sink", "null:"], "only a sink kafka: has it"),
    (["--delivery", "exactly-once", "--sink", "null:"], "only a sink kafka: has it"),
    (["--fence", "kafka", "--sink", "kafka://127.0.0.1:1", "--strategy", "guard"], "needs strategy lanes"),
    (["--delivery", "exactly-once", "--sink", "kafka://127.0.0.1:1", "--strategy", "skip-locked"],
     "needs strategy lanes"),
])
def test_what_cannot_be(sluice, sqlitedb, flags, text):
    assert text in sluice.run("run", *flags, db=sqlitedb, check=2).stderr
