"""Every ordered strategy under attack, for some seconds each; `make torture` does the same for an hour.
What is done is in tests/support/nemesis.py, what must hold in tests/support/history.py."""
import os

import pytest

import record as rec
from checker import BadHistory, check, commit, read_sink
from harness import PATIENCE, Gate, wait_until, waiting
from nemesis import COMBINATIONS, LEASE, UNORDERED, Pace, Run

SLOW = max(1, PATIENCE * 2 / 3)  # a build so slow needs longer leases: none may end by itself
SECONDS = 12 * max(1, PATIENCE / 3)
RESTARTED = ("advisory", "lanes/ring")  # where the database goes away, too


@pytest.fixture
def records(sluice, fault_points):
    with open(sluice.bin, "rb") as f:
        if b"SLUICE_RECORD" not in f.read():
            pytest.skip("the program was built without records")


def attack(sluice, pg, combination, pace, least):
    run = Run(sluice, pg, combination, seed=1, seconds=SECONDS, pace=pace, lease=LEASE * SLOW)
    try:
        return run.play(least), run.wrong
    finally:
        run.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBINATIONS)
def test_order_survives(sluice, own_pg, records, name, record_property):
    restart = 4.0 if name in RESTARTED else None
    pace = Pace(kill=1.2, pause=2.5 * SLOW, restart=restart, leave=4.0)
    if COMBINATIONS[name].init:  # a segment is emptied when all of it was delivered
        pace = Pace(kill=2.4, pause=5.0 * SLOW, restart=None, leave=5.0)
    least = {"messages": 500, "claims": 500, "kills": 3, "pauses": 1, "restarts": 1 if restart else 0, "leaves": 1,
             "truncations": 1 if COMBINATIONS[name].init else 0}
    figures, wrong = attack(sluice, own_pg, COMBINATIONS[name], pace, least)
    record_property("figures", str(figures))
    print(figures)
    if wrong:
        raise BadHistory("\n".join(wrong))


@pytest.mark.slow
def test_without_order_it_is_noticed(sluice, own_pg, records):
    """skip-locked promises nothing, and is caught at once: the judge is not blind. Nothing is lost, and
    nothing comes twice without a reason."""
    figures, wrong = attack(sluice, own_pg, UNORDERED, Pace(2.0, None, None, None), {})
    assert figures["out of order"] >= 10 and figures["overlaps"] >= 10
    assert figures["lost"] == 0 and figures["duplicates"] <= figures["bound"]
    kinds = {line.split(":")[0] for line in wrong if not line.startswith(" ")}
    assert kinds <= {"order", "exclusion", "epochs"}


@pytest.mark.parametrize("name", ["advisory", "guard", "lanes/ring", "lanes/claim", "lanes/birth-order", "lanes/ring/rotated"])
def test_a_node_that_wakes_up_knows_better(sluice, pgdb, records, tmp_path, name):
    """It was paused with messages in hand and not yet written, for longer than its lease; another node has
    delivered them meanwhile. It notices before it writes."""
    mine, theirs = os.path.join(sluice.cwd, "a.jsonl"), os.path.join(sluice.cwd, "b.jsonl")
    flags = [*COMBINATIONS[name].flags, "--workers", 1, "--batch", 20, "--poll", "20ms",
             "--lease", f"{round(LEASE * SLOW * 1000)}ms"]
    sluice.run("init", *COMBINATIONS[name].init, db=pgdb)
    messages = commit(pgdb, 50)
    with Gate(mine):
        a = sluice.start("run", "--node", "a", "--sink", f"file:{mine}", *flags, db=pgdb,
                         env={"SLUICE_RECORD": str(tmp_path)})
        with rec.Tail(tmp_path, a.pid) as tail:
            wait_until(lambda: tail.follow().in_flight(rec.SEND), 10, "messages in hand")
            a.pause()
            held = len(tail.follow().in_flight())
            b = sluice.start("run", "--node", "b", "--sink", f"file:{theirs}", *flags, db=pgdb)
            wait_until(lambda: waiting(pgdb) == 0, 30, "all is delivered by the other")
            a.resume()
            wait_until(lambda: not tail.follow().in_flight(), 10, "it gives up what it had in hand")
    for p in (a, b):
        p.term()
        p.wait(status=0)
    assert held > 0 and len(read_sink(mine)) == 0
    assert check(messages, read_sink(theirs), least=50).duplicates == 0
