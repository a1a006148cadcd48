"""`unordered_delay`: a scheduled message that was never tried lets later ones of its key pass, and comes when it is due.
What the claims promise of it, step by step, is in tests/contract/test_claims_delay.c."""
import json
import os
import re
import time

import pytest

from checker import read_sink
from harness import Gate, is_postgres, query, wait_until

LATER = 3600


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out.jsonl")


def push(sluice, url, *lines):
    """(key, seconds from now) each; ids count from 1 in a new table."""
    text = "".join(json.dumps({"topic": "t", "key": key, "payload": 1,
                               **({"available_at": time.time() + later} if later else {})}) + "\n" for key, later in lines)
    sluice.run("push", "--lines", "-", db=url, input=text)


def flags(strategy, out, *more):
    return ["run", "--strategy", strategy, "--sink", f"file:{out}", *more]


DELAY = "--unordered-delay"


def sent(*paths):
    return [d.id for path in paths if os.path.exists(path) for d in read_sink(path)]


def ids(url, condition="true"):
    return [id for (id,) in query(url, f"SELECT id FROM outbox WHERE {condition} ORDER BY id")]


def delayed(url):
    return query(url, f"SELECT count(*) FROM outbox WHERE {'delayed' if is_postgres(url) else 'delayed = 1'}")[0][0]


def make_due(url, condition="true"):
    past = "now()" if is_postgres(url) else "'2020-01-01'"
    query(url, f"UPDATE outbox SET available_at = {past} WHERE {condition}")


def test_later_ones_pass(sluice, box, out, ordered):
    """And it comes by itself, not before its time."""
    due_at = time.time() + 4
    push(sluice, box, ("k", 0), ("k", due_at - time.time()), ("k", 0), ("other", 0))
    node = sluice.start(*flags(ordered, out, DELAY), db=box)
    wait_until(lambda: {3, 4} <= set(sent(out)), 20, "what stands behind the delayed message")
    so_far = sorted(sent(out))
    assert time.time() > due_at or so_far == [1, 3, 4]
    wait_until(lambda: 2 in sent(out), 20, "the delayed message")
    assert time.time() > due_at - 0.01  # the clock of SQLite counts milliseconds
    push(sluice, box, ("k", 0))
    wait_until(lambda: ids(box) == [], 20, "the rest")
    assert sorted(sent(out)) == [1, 2, 3, 4, 5]
    node.term()
    node.wait(status=0)
    assert query(box, "SELECT count(*) FROM outbox_keys") == [(0,)]


def test_without_it_the_key_waits(sluice, box, out, ordered):
    push(sluice, box, ("k", 0), ("k", LATER), ("k", 0), ("other", 0))
    sluice.run(*flags(ordered, out, "--drain"), db=box)
    assert sorted(sent(out)) == [1, 4]
    assert (ids(box), delayed(box)) == ([2, 3], 0)


def test_file_and_environment(sluice, box, out, tmp_path):
    push(sluice, box, ("k", LATER), ("k", 0), ("x", LATER), ("x", 0))
    (tmp_path / "on.yaml").write_text("unordered_delay: true\n")
    sluice.run(*flags("lanes", out, "--drain", "-c", str(tmp_path / "on.yaml")), db=box)
    assert sorted(sent(out)) == [2, 4]
    push(sluice, box, ("y", LATER), ("y", 0))
    sluice.run(*flags("lanes", out, "--drain"), db=box, env={"SLUICE_UNORDERED_DELAY": "true"})
    assert sorted(sent(out)) == [2, 4, 6]


def test_drain_leaves_what_is_delayed(sluice, box, out, ordered):
    """What is due later is left, and what is due is not."""
    push(sluice, box, ("k", LATER), ("k", LATER), ("k", 0))
    sluice.run(*flags(ordered, out, DELAY, "--drain"), db=box)
    assert sent(out) == [3]
    assert (ids(box), delayed(box)) == ([1, 2], 2)
    make_due(box, "id = 2")
    sluice.run(*flags(ordered, out, "--drain"), db=box)  # the row says it, not the setting
    assert sent(out) == [3, 2]
    assert query(box, "SELECT count(*) FROM outbox_keys") == [(0,)]


def test_several_in_the_order_of_their_times(sluice, box, out, ordered):
    push(sluice, box, ("k", LATER), ("k", LATER), ("k", LATER), ("k", 0))
    node = sluice.start(*flags(ordered, out, DELAY), db=box)
    for due, before in ((2, [4]), (3, [4, 2]), (1, [4, 2, 3])):
        wait_until(lambda: sent(out) == before, 20, f"{before}")
        wait_until(lambda: delayed(box) == 4 - len(before), 20, "the delayed ones")
        make_due(box, f"id = {due}")
    wait_until(lambda: sent(out) == [4, 2, 3, 1], 20, "all of them")
    node.term()
    node.wait(status=0)


def test_never_two_at_once(sluice, box, tmp_path, recorded, ordered):
    """A delayed message becomes due while another of its key is in flight: it waits for the verdict."""
    if ordered == "advisory" and not is_postgres(box):
        pytest.skip("the write transaction is the lock: nobody else can write while one delivers")
    outs = [str(tmp_path / f"{n}.jsonl") for n in (1, 2)]
    push(sluice, box, ("k", LATER))
    sluice.run(*flags(ordered, outs[0], DELAY, "--drain"), db=box)
    assert delayed(box) == 1
    with Gate(outs[0]):
        push(sluice, box, ("k", 0))
        first = sluice.start(*flags(ordered, outs[0], DELAY, "--lease", "60s", "--workers", 1), db=box, env=recorded.env)
        wait_until(lambda: recorded.at_the_gate(first, 1), 20, "the message in flight")
        make_due(box, "id = 1")
        second = sluice.start(*flags(ordered, outs[1], DELAY, "--lease", "60s"), db=box)
        push(sluice, box, *[(f"other{i}", 0) for i in range(20)])
        if ordered != "lanes":  # it delivers, and looks for what is due before and after
            wait_until(lambda: len(sent(outs[1])) == 20, 20, "what the other node delivers")
            push(sluice, box, *[(f"more{i}", 0) for i in range(20)])
            wait_until(lambda: len(sent(outs[1])) == 40, 20, "what the other node delivers")
        assert 1 in ids(box) and 1 not in sent(*outs)
    wait_until(lambda: ids(box) == [], 60, "all of them")
    assert sorted(sent(*outs)) == list(range(1, 23 if ordered == "lanes" else 43))
    for node in (first, second):
        node.term()
    for node in (first, second):
        node.wait(status=0)


def test_a_kill_loses_nothing(sluice, box, out, ordered):
    """Delayed, and killed; killed again when it is due; no message is lost, and the key goes on."""
    push(sluice, box, *[("k", LATER if i % 2 else 0) for i in range(10)])
    node = sluice.start(*flags(ordered, out, DELAY, "--lease", "1s"), db=box)
    wait_until(lambda: delayed(box) == 5, 20, "the delayed ones")
    node.kill9()
    assert delayed(box) == 5
    make_due(box)
    node = sluice.start(*flags(ordered, out, DELAY, "--lease", "1s"), db=box)
    wait_until(lambda: len(ids(box)) < 5, 20, "the first of them")
    node.kill9()

    def drained():
        """While the lease of the killed one lasts, there may be nothing that could be delivered now."""
        sluice.run(*flags(ordered, out, "--lease", "1s", "--drain"), db=box)
        return not ids(box)
    wait_until(drained, 20, "what the killed one had, too")
    assert set(sent(out)) == set(range(1, 11))
    assert ids(box) == []


def test_nodes_with_and_without_it(sluice, box, tmp_path):
    """Whoever sees a message first decides; all of them arrive."""
    outs = [str(tmp_path / f"{n}.jsonl") for n in (1, 2)]
    nodes = [sluice.start(*flags("guard", outs[0], DELAY, "--workers", 2), db=box),
             sluice.start(*flags("guard", outs[1], "--workers", 2), db=box)]
    for _ in range(5):
        push(sluice, box, *[(f"k{i % 7}", 1 if i % 3 == 0 else 0) for i in range(60)])
    wait_until(lambda: ids(box) == [], 60, "all of them")
    assert sorted(sent(*outs)) == list(range(1, 301))
    for node in nodes:
        node.term()
    for node in nodes:
        node.wait(status=0)
    assert query(box, "SELECT count(*) FROM outbox_keys") == [(0,)]


def test_many_of_one_key(sluice, box, out, ordered):
    """2,000 of them before it, and a message that is due passes; then all of them come."""
    push(sluice, box, *[("k", LATER)] * 2000, ("k", 0))
    sluice.run(*flags(ordered, out, DELAY, "--drain"), db=box)
    assert sent(out) == [2001]
    assert delayed(box) == 2000
    node = sluice.start(*flags(ordered, out, DELAY), db=box)
    push(sluice, box, ("k", 0))
    wait_until(lambda: sent(out) == [2001, 2002], 20, "the one behind them")
    make_due(box)
    wait_until(lambda: ids(box) == [], 60, "all of them")
    assert sent(out)[2:] == list(range(1, 2001))
    node.term()
    node.wait(status=0)


def test_pull(sluice, box):
    push(sluice, box, ("k", LATER), ("k", 0))
    first = [json.loads(line) for line in sluice.run("pull", DELAY, db=box).stdout.splitlines()]
    assert [m["id"] for m in first] == [2]
    sluice.run("pull", "--ack", *[m["receipt"] for m in first], db=box)
    make_due(box)
    wait_until(lambda: '"id":1,' in sluice.run("pull", db=box).stdout, 20, "the delayed message")


def test_operators(sluice, box, out):
    """They are no heads: a key that is blocked by another is shown, retried and skipped without them."""
    push(sluice, box, ("k", LATER), ("k", LATER), ("k", 0))
    sluice.run(*flags("lanes", out, DELAY, "--drain"), db=box)
    status = json.loads(sluice.run("status", "--json", db=box).stdout)
    assert (status["total"], status["due"], status["scheduled"], status["held"], status["blocked_keys"]) == (2, 0, 2, 2, 0)
    assert json.loads(sluice.run("keys", "--json", db=box).stdout)["keys"] == []
    make_due(box, "id = 2")
    assert json.loads(sluice.run("status", "--json", db=box).stdout)["due"] == 1
    sluice.run("keys", "park", "--key", "k", "--yes", db=box)
    sluice.run(*flags("lanes", out, "--drain"), db=box)
    assert (sent(out), delayed(box)) == ([3], 1)  # the second waits for the operator now, and the first for its time
    sluice.run("keys", "skip-head", "--key", "k", "--yes", db=box)
    assert query(box, "SELECT id FROM outbox_dead") == [(2,)]
    sluice.run("keys", "resume", "--key", "k", "--yes", db=box)  # it was parked by hand
    sluice.run(*flags("lanes", out, "--drain"), db=box)
    assert (sent(out), delayed(box)) == ([3], 1)
    assert re.search(r"keys +0 blocked", sluice.run("doctor", db=box, check=False).stdout)
    make_due(box)
    sluice.run(*flags("lanes", out, "--drain"), db=box)
    assert sent(out) == [3, 1]


def test_lanes_are_changed(sluice, box, out):
    """The number of lanes changes while messages are delayed."""
    push(sluice, box, *[(f"k{i}", LATER) for i in range(20)])
    sluice.run(*flags("lanes", out, DELAY, "--drain"), db=box)
    assert delayed(box) == 20
    sluice.run("lanes", "--set", 7, db=box)
    make_due(box)
    sluice.run(*flags("lanes", out, "--drain"), db=box)
    assert sorted(sent(out)) == list(range(1, 21))


def test_another_strategy_takes_them_over(sluice, box, out):
    """Those that keep order find what another has delayed; skip-locked takes what is due."""
    push(sluice, box, ("k", LATER), ("k", LATER), ("k", LATER), ("k", LATER))
    sluice.run(*flags("lanes", out, DELAY, "--drain"), db=box)
    for id, strategy in ((3, "guard"), (4, "advisory"), (2, "skip-locked"), (1, "lanes")):
        assert delayed(box) == len(ids(box))
        make_due(box, f"id = {id}")
        sluice.run(*flags(strategy, out, "--drain"), db=box)
    assert sent(out) == [3, 4, 2, 1]
