"""At most once with a journal: a node that died finishes or lists what it had consumed, never both, and nothing
arrives twice. docs/journal.md says what follows from what."""
import json
import os

import pytest

from checker import commit, committed, read_sink
from conftest import end_claims
from harness import Gate, is_postgres, query, wait_until

STRATEGIES = ["lanes", "guard", "advisory", "skip-locked"]
HOLDS = {"lanes": [], "guard": [], "advisory": [], "skip-locked": ["--hold", "lease"]}


class Node:
    """One node with a journal, again and again."""

    def __init__(self, sluice, url, strategy):
        self.sluice, self.url, self.strategy = sluice, url, strategy
        self.out = os.path.join(sluice.cwd, "out.jsonl")
        self.journal = os.path.join(sluice.cwd, "node.journal")
        sluice.run("init", db=url)

    def flags(self, *more):
        return ["run", "--node", "a", "--journal", self.journal, "--delivery", "at-most-once", "--strategy", self.strategy,
                *HOLDS[self.strategy], "--sink", f"file:{self.out}", "--workers", 1, "--batch", 20, "--lease", "10m",
                "--poll", "20ms", *more]

    def die_at(self, point):
        node = self.sluice.start(*self.flags(), db=self.url, env={"SLUICE_FAULT": f"{point}:1"})
        assert node.wait() == -9

    def drain(self):
        """Runs until nothing is left, once the earlier life is over; what it says of that."""
        end_claims(self.url)
        node = self.sluice.start(*self.flags(), db=self.url)
        wait_until(lambda: query(self.url, "SELECT count(*) FROM outbox") == [(0,)] and
                   query(self.url, "SELECT count(*) FROM outbox_consumed") == [(0,)], 30, "all is delivered or listed")
        node.term()
        node.wait(status=0)
        lines = [line for line in node.stderr().splitlines() if "earlier life" in line]
        return lines[0] if lines else ""

    def arrived(self):
        return [d.id for d in read_sink(self.out)] if os.path.exists(self.out) else []

    def listed(self):
        return query(self.url, "SELECT id, last_error FROM outbox_dead WHERE unknown ORDER BY id")


@pytest.fixture(params=STRATEGIES)
def node(request, sluice, db, fault_points):
    return Node(sluice, db, request.param)


def test_killed_before_the_first_byte(node):
    """Nothing of it has left: without order it goes back and arrives; with order later ones may have passed it."""
    messages = commit(node.url, 50)
    node.die_at("consumed")
    assert query(node.url, "SELECT count(*) FROM outbox_consumed WHERE journal IS NOT NULL") == [(20,)]
    assert node.arrived() == []
    told = node.drain()
    arrived, listed = node.arrived(), node.listed()
    assert len(arrived) == len(set(arrived)) and sorted(arrived + [id for id, _ in listed]) == sorted(messages)
    if node.strategy == "skip-locked":
        assert listed == [] and "back=20" in told
    else:
        assert len(listed) == 20 and {reason for _, reason in listed} == {"not sent: the node ended before"}


def test_killed_after_the_answer(node):
    """The journal knows that they were sent: they are finished, and nobody is asked."""
    messages = commit(node.url, 50)
    node.die_at("sent")
    assert len(node.arrived()) == 20
    told = node.drain()
    assert sorted(node.arrived()) == sorted(messages) and node.listed() == []
    assert "sent=20" in told


def test_killed_while_it_sends(node):
    """Nobody knows: listed, and never sent by itself."""
    messages = commit(node.url, 50)
    with Gate(node.out):
        victim = node.sluice.start(*node.flags(), db=node.url)
        wait_until(lambda: query(node.url, "SELECT count(*) FROM outbox_consumed") == [(20,)], 10, "messages are consumed")
        wait_until(lambda: json.loads(node.sluice.run("journal", node.journal, "--json").stdout)["messages"], 10,
                   "they are named in the journal")
        victim.kill9()
    node.drain()
    arrived, listed = node.arrived(), node.listed()
    assert len(arrived) == 30 and len(listed) == 20
    assert sorted(arrived + [id for id, _ in listed]) == sorted(messages)
    assert {reason for _, reason in listed} == {"the node ended while it was sent"}


def test_a_journal_that_is_lost(node):
    """Then nothing is known, and nothing is sent again."""
    commit(node.url, 50)
    node.die_at("consumed")
    os.remove(node.journal)
    node.drain()
    assert len(node.listed()) == 20 and len(node.arrived()) == 30


def test_what_a_journal_wants(sluice, db):
    sluice.run("init", db=db)
    for flags, text in ((["--journal", "j"], "at-most-once only"),
                        (["--journal", "j", "--delivery", "at-most-once"], "--node NAME")):
        done = sluice.run("run", "--sink", "null:", "--drain", *flags, db=db, check=2)
        assert text in done.stderr
    assert committed(db) == {} and is_postgres(db) in (True, False)


def test_a_full_disk_stops_the_node(sluice, db, tmp_path):
    """Before it breaks the promise: nothing was consumed, and nothing is lost."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    done = sluice.run("run", "--sink", f"file:{tmp_path}/out.jsonl", "--drain", "--node", "a", "--delivery", "at-most-once",
                      "--journal", "/dev/full", db=db, check=False)
    assert done.returncode == 1 and "/dev/full" in done.stderr
    assert committed(db).keys() == messages.keys() and query(db, "SELECT count(*) FROM outbox_consumed") == [(0,)]
