"""At most once: what fails is tried once, what was in flight at a crash is never sent again, and both are listed."""
import json
import os

import pytest

from checker import commit, read_sink
from harness import PATIENCE, Gate, is_postgres, query, scaled, wait_until
from once import Run
from test_failure import count, flaky, in_order, push  # noqa: F401 (a fixture)

MESSAGES, KILLS, RESTARTS = 4000, 10, 2


@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory", "skip-locked"])
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


@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory", "skip-locked"])
def test_other_names(sluice, db, strategy):
    """Mapped columns, a table in a schema: consumed by a node that dies, listed, resent, and delivered."""
    names = {"id": "no", "topic": "what", "entity_key": "who", "payload": "body", "attempts": "tries", "worker": "by",
             "last_error": "why", "idempotency_key": "once", "created_at": "born", "epoch": "term"}
    table = "app.box" if is_postgres(db) else "box"
    if is_postgres(db):
        query(db, "CREATE SCHEMA app")
    flags = ["--table", table, "--columns", ",".join(f"{a}={b}" for a, b in names.items())]
    out = os.path.join(sluice.cwd, "out.jsonl")
    sluice.run("init", *flags, db=db)
    sluice.run("push", "--topic", "t", "--key", "k", "--idempotency-key", "i", "1", *flags, db=db)
    run = ["run", "--sink", f"file:{out}", "--delivery", "at-most-once", "--strategy", strategy, *flags]
    with Gate(out):
        node = sluice.start(*run, "--lease", "1s", db=db)
        wait_until(lambda: count(db, table + "_consumed") == 1, 10, "it is consumed")
        node.kill9()
    wait_until(lambda: json.loads(sluice.run("dead", "list", "--unknown", "--json", *flags, db=db).stdout)["matching"] == 1,
               10, "it is listed")
    assert count(db, table) == count(db, table + "_consumed") == 0
    sluice.run("dead", "resend", "--unknown", "--yes", *flags, db=db)
    sluice.run(*run, "--drain", db=db)
    assert len(read_sink(out)) == 1 and count(db, table + "_consumed") == 0


@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory"])
def test_a_slow_sink_keeps_its_keys(sluice, db, strategy):
    """While what one node consumed is on its way, the other delivers everything else, and nothing of those keys."""
    outs = {name: os.path.join(sluice.cwd, name) for name in ("slow", "other")}

    def start(name):
        node = sluice.start("run", "--node", name, "--sink", f"file:{outs[name]}", "--strategy", strategy, "--workers", 1,
                            "--delivery", "at-most-once", "--batch", 20, "--lease", f"{max(10, round(10 * PATIENCE))}s",
                            "--poll", "20ms", db=db)
        node.wait_log("node started")
        return node

    def arrived(name):
        return read_sink(outs[name]) if os.path.exists(outs[name]) else []

    sluice.run("init", db=db)
    messages = commit(db, 50)
    with Gate(outs["slow"]):
        nodes = [start("slow")]
        wait_until(lambda: count(db, "outbox_consumed") == 20, 10, "messages are consumed")
        messages.update(commit(db, 150))  # behind them, and of other keys
        taken = {key for (key,) in query(db, "SELECT entity_key FROM outbox_consumed")}
        nodes.append(start("other"))
        if strategy != "lanes":  # a lane that should go to the other is its owner's until it has settled
            wait_until(lambda: {k for (k,) in query(db, "SELECT DISTINCT entity_key FROM outbox")} <= taken, 10,
                       "the other delivers the rest")
            assert len(arrived("other")) > 100
        assert not taken & {d.key for d in arrived("other")}
        assert arrived("slow") == []
    wait_until(lambda: count(db) == count(db, "outbox_consumed") == 0, 30, "all is delivered")
    for node in nodes:
        node.term()
        node.wait(status=0)
    ids = [d.id for name in outs for d in arrived(name)]
    assert sorted(ids) == sorted(messages) and count(db, "outbox_dead") == 0
    for name in outs:
        in_order(arrived(name))


@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory"])
def test_nodes_on_one_file_are_killed(sluice, sqlitedb, strategy):
    """SQLite: each arrives once or is listed, in the order of its key."""
    out = os.path.join(sluice.cwd, "out")
    started, messages, kills = [], {}, scaled(5, 3)

    def start():
        started.append(sluice.start("run", "--node", f"n{len(started)}", "--sink", f"file:{out}", "--strategy", strategy,
                                    "--delivery", "at-most-once", "--batch", 10, "--workers", 2, "--poll", "20ms",
                                    "--lease", f"{max(1, round(PATIENCE))}s", db=sqlitedb))
        started[-1].wait_log("node started")

    def consumed():
        return {int(worker[1:].partition("/")[0]) for (worker,) in query(sqlitedb, "SELECT worker FROM outbox_consumed")}

    sluice.run("init", db=sqlitedb)
    start()
    start()
    for _ in range(kills):
        messages.update(commit(sqlitedb, 200))
        with Gate(out):
            wait_until(lambda: len(started) - 1 in consumed(), 30, "the last one has something in flight")
            started[-1].kill9()
        start()
    wait_until(lambda: count(sqlitedb) == count(sqlitedb, "outbox_consumed") == 0, 60, "all is delivered or listed")
    for node in (started[0], started[-1]):
        node.term()
        node.wait(status=0)
    record = read_sink(out)
    listed = {id for (id,) in query(sqlitedb, "SELECT id FROM outbox_dead WHERE unknown")}
    assert len(record) == len({d.id for d in record}) and len(listed) >= kills
    assert {d.id for d in record} | listed == messages.keys()
    in_order(record)


def least():
    """At least half of the kills must have left something behind, and messages must have come through."""
    return {"kills that left something": KILLS // 2, "restarts": 1, "listed": KILLS, "listed by nodes": 1,
            "arrived": scaled(MESSAGES) // 2}


@pytest.mark.parametrize("flags", [["lanes"], ["guard"], ["advisory"], ["skip-locked"], ["skip-locked", "--hold", "transaction"]],
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
