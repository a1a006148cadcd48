"""fence: kafka and delivery: exactly-once, against a real broker: what a node sends late is refused, and what a killed one
had delivered is not sent again. `seen` is what a read_committed consumer sees. Every test counts what its fault hit."""
import collections
import re

import pytest

from checker import commit
from harness import PATIENCE, all_stopped, query, wait_until

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
        return self.sluice.start("run", *self.flags, "--node", node, "--workers", workers, *flags, db=self.url,
                                 env={"SLUICE_FAULT": fault} if fault else None)

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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", ["produced", "committing"])
def test_a_paused_node_is_shut_out(sluice, pgdb, real_kafka, fault_points, mode, point):
    """It stands still right before its messages leave, or between the last of them and their commit, for longer than its
    lease; another takes over, and delivers everything. Then the first goes on."""
    if mode == "none" and point == "committing":
        pytest.skip("there is no commit")
    nodes = Nodes(sluice, pgdb, real_kafka, mode)
    nodes.commit(200)
    paused = nodes.start("a", "--kafka", "linger.ms=300",
                         fault=f"{point}:{BATCH if point == 'produced' else 1}:stop")
    wait_until(lambda: all_stopped(paused.pid), 30, "it stands still")
    assert nodes.waiting() == 200
    other = nodes.start("b")
    nodes.wait_empty()
    before = nodes.seen()
    assert sorted(r.id for r in before) == sorted(nodes.messages)
    paused.resume()
    paused.wait_log("this node was forgotten by the others", timeout=30)
    nodes.commit(100)  # of the same keys
    nodes.wait_empty()
    paused.term()
    paused.wait(timeout=30, status=0)
    other.term()
    other.wait(timeout=30, status=0)
    found = nodes.seen()
    if mode == "none":  # else this test would not notice
        assert stale(found) and twice(found)
        return
    assert not stale(found)
    assert not reordered(found)
    assert sorted(r.id for r in found) == sorted(nodes.messages), "no stale write, and so none twice"
    assert nodes.fences() == 0


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
