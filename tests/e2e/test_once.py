"""At most once: what fails is tried once, what was in flight at a crash is never sent again, and both are listed."""
import json

import pytest

from harness import query, scaled, wait_until
from once import Run
from test_failure import count, flaky, in_order, push  # noqa: F401 (a fixture)

MESSAGES, KILLS, RESTARTS = 4000, 10, 2


@pytest.mark.parametrize("strategy", ["lanes", "guard", "skip-locked"])
def test_what_fails_is_tried_once(sluice, db, flaky, strategy):  # noqa: F811
    """It is a dead letter that may have been delivered; its key goes on at once."""
    node = flaky(db, strategy=strategy, delivery="at-most-once")
    kinds = ['{"n":%d}', '{"n":%d,"fail":1}', '{"n":%d}', '{"n":%d,"dead":1}', '{"n":%d,"fail":-1}', '{"n":%d}']
    n = scaled(300, 30)
    messages = push(sluice, db, [(f"k{i % 20}", kinds[i % 6] % i) for i in range(n)])
    process = node.start()
    wait_until(lambda: count(db) == 0 and count(db, "outbox_consumed") == 0, 30, "all have a verdict")
    process.term()
    process.wait(status=0)
    record = node.record()
    failed = {id for i, id in enumerate(sorted(messages)) if i % 6 in (1, 3, 4)}
    assert {d.id for d in record} == messages.keys() - failed and len(record) == len(messages) - len(failed)
    assert {d.attempt for d in record} == {1}
    if strategy != "skip-locked":
        in_order(record)
    got = json.loads(sluice.run("dead", "list", "--unknown", "--json", "--limit", 1000, db=db).stdout)
    assert {d["id"] for d in got["dead_letters"]} == failed and got["total"] == got["matching"] == len(failed)
    assert {d["attempts"] for d in got["dead_letters"]} == {1}
    assert query(db, "SELECT count(*) FROM outbox_keys") == [(0,)]


def least():
    """At least half of the kills must have left something behind, and messages must have come through."""
    return {"kills that left something": KILLS // 2, "restarts": 1, "listed": KILLS, "arrived": scaled(MESSAGES) // 2}


@pytest.mark.parametrize("flags", [["lanes"], ["guard"], ["skip-locked"], ["skip-locked", "--hold", "transaction"]],
                         ids=lambda flags: "-".join(word.lstrip("-") for word in flags))
def test_killed_again_and_again(sluice, own_pg, flags):
    run = Run(sluice, own_pg, flags[0], scaled(MESSAGES, 1200), kills=KILLS, restarts=RESTARTS, flags=flags[1:])
    figures, wrong = run.play(least())
    print(figures)
    assert not wrong, "\n".join([str(figures), *wrong])


def test_at_least_once_is_noticed(sluice, own_pg):
    """The same faults and the same judge: it must complain of duplicates, and of nothing that is missing."""
    run = Run(sluice, own_pg, "lanes", scaled(MESSAGES, 1200), kills=KILLS, restarts=RESTARTS, delivery="at-least-once")
    figures, wrong = run.play({})
    print(figures)
    assert figures["kills"] > 0 and figures["duplicates"] > 0 and figures["missing"] == 0
    assert any(text.startswith("twice: ") for text in wrong)
