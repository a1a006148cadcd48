"""Every ordered strategy under attack, for some seconds each; `make torture` does the same for an hour.
What is done is in tests/support/nemesis.py, what must hold in tests/support/history.py."""
import pytest

from checker import BadHistory
from harness import PATIENCE
from nemesis import COMBINATIONS, LEASE, UNORDERED, Pace, Run

SLOW = max(1, PATIENCE / 3)  # a build so slow needs longer leases
SECONDS = 12 * SLOW
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
    pace = Pace(kill=1.2, pause=2.5, restart=restart, leave=4.0)
    least = {"messages": 500, "claims": 500, "kills": 3, "pauses": 1, "restarts": 1 if restart else 0, "leaves": 1}
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
