"""`sluice workers` and what `sluice status` says of nodes, lanes and keys that wait."""
import fcntl
import json
import os
import pty
import re
import struct
import termios

import pytest

from checker import commit, read_sink
from harness import Gate, is_postgres, query, scaled, too_large, wait_until

NODE = {"node", "session", "strategy", "assign", "workers", "lanes", "age_seconds", "lease_seconds", "sent", "failed",
        "per_second"}
FUTURE, PAST = "2999-01-01 00:00:00.000", "2000-01-01 00:00:00.000"


def workers(sluice, db):
    """The object of --json, whose shape never changes."""
    got = json.loads(sluice.run("workers", "--json", db=db).stdout)
    assert set(got) == {"table", "strategy", "nodes", "free_lanes", "blocked_keys", "workers"}
    for node in got["nodes"]:
        assert set(node) == NODE
        assert re.fullmatch(r"\d+", node["session"])
        assert node["lanes"] == sorted(node["lanes"])
    return got


def status(sluice, db):
    return json.loads(sluice.run("status", "--json", db=db).stdout)


def table(sluice, db):
    """The lines about nodes, as dicts by column; each cell stands under its head."""
    lines = sluice.run("workers", db=db).stdout.split("\n\n")[0].splitlines()
    heads = [(m.start(), m.end(), m.group()) for m in re.finditer(r"\S+(?: \S+)*", lines[0])]
    rows = []
    for line in lines[1:]:
        cells = [(m.start(), m.end(), m.group()) for m in re.finditer(r"\S+(?: \S+)*", line)]
        rows.append({name: next((text for a, b, text in cells if a == start or b == end), "")
                     for start, end, name in heads})
        rows[-1]["which"] = cells[-1][2] if cells[-1][0] >= heads[-1][1] else ""
    return rows


def start(sluice, db, name, *flags, sink="file:out.jsonl", strategy="lanes", lease="30s"):
    return sluice.start("run", "--sink", sink, "--strategy", strategy, "--node", name, "--lease", lease, "--poll", "50ms",
                        *flags, db=db)


def settled(sluice, db, count):
    """Until so many nodes share all lanes."""
    def look():
        got = workers(sluice, db)
        return got if len(got["nodes"]) == count and not got["free_lanes"] and \
            all(n["lanes"] for n in got["nodes"]) else None
    return wait_until(look, 20, f"{count} nodes that own all lanes")


# -- Nodes ---------------------------------------------------------------------------------------

def test_nobody(sluice, box):
    assert workers(sluice, box) == {"table": "outbox", "strategy": None, "nodes": [], "free_lanes": list(range(64)),
                                    "blocked_keys": 0, "workers": []}
    text = sluice.run("workers", db=box).stdout
    assert text == "no node lives on table outbox\nfree lanes    64 of 64 (0-63)\nblocked keys  0\n"
    got = status(sluice, box)
    assert (got["nodes"], got["free_lanes"], got["per_second"], got["strategy"]) == (0, 64, 0, None)


def test_one_node(sluice, box):
    start(sluice, box, "n1", "--workers", 3)
    got = settled(sluice, box, 1)
    node = got["nodes"][0]
    assert (got["strategy"], node["node"], node["strategy"], node["assign"]) == ("lanes", "n1", "lanes", "ring")
    assert (node["workers"], node["lanes"]) == (3, list(range(64)))
    assert 0 <= node["age_seconds"] < 60 and 0 < node["lease_seconds"] <= 30
    row, = table(sluice, box)
    assert (row["node"], row["strategy"], row["assign"], row["workers"]) == ("n1", "lanes", "ring", "3")
    assert (row["lanes"], row["which"], row["sent"], row["failed"]) == ("64", "0-63", "0", "0")
    assert row["age"].endswith(" s") and row["lease"].endswith(" s")
    text = sluice.run("workers", db=box).stdout
    assert "\nfree lanes    0 of 64\n" in text and "\nblocked keys  0\n" in text


@pytest.mark.threads
def test_two_nodes(sluice, box):
    for name in ("n1", "n2"):
        start(sluice, box, name, "--workers", 1)
    got = settled(sluice, box, 2)
    first, second = got["nodes"]
    assert {first["node"], second["node"]} == {"n1", "n2"}
    assert sorted(first["lanes"] + second["lanes"]) == list(range(64))
    rows = table(sluice, box)
    assert sum(int(row["lanes"]) for row in rows) == 64
    for row in rows:
        assert len(row["which"]) <= 40
        assert re.fullmatch(r"(\d+(-\d+)?,)*(\d+(-\d+)?|\.\.\.)", row["which"])
    messages = commit(box, scaled(500, 50))
    wait_until(lambda: sum(n["sent"] for n in workers(sluice, box)["nodes"]) == len(messages), 20, "all counted as sent")
    assert all(n["failed"] == 0 for n in workers(sluice, box)["nodes"])
    got = status(sluice, box)
    assert (got["nodes"], got["free_lanes"], got["strategy"], got["leased"]) == (2, 0, "lanes", 0)
    text = sluice.run("status", db=box).stdout
    assert re.search(r"^nodes      2 by strategy lanes, \d+ messages/s$", text, re.M)
    assert "\nlanes      64 owned, 0 free\n" in text
    assert len(read_sink(os.path.join(sluice.cwd, "out.jsonl"))) == len(messages)


def test_a_rate(sluice, box):
    """It is that of the last beat, so that it comes and goes."""
    start(sluice, box, "n1", sink="null:")
    settled(sluice, box, 1)
    wait_until(lambda: commit(box, scaled(500, 50)) and status(sluice, box)["per_second"] > 0, 20, "a rate")
    wait_until(lambda: status(sluice, box)["per_second"] == 0, 20, "no rate")


def test_a_node_that_leaves_is_gone_at_once(sluice, box):
    node = start(sluice, box, "n1", lease="30s")
    settled(sluice, box, 1)
    node.term()
    node.wait(status=0)
    got = workers(sluice, box)
    assert got["nodes"] == [] and len(got["free_lanes"]) == 64


def test_a_node_that_was_killed(sluice, box):
    """With nobody there to prune it, it stays in the list, but not among the living."""
    node = start(sluice, box, "n1", lease="3s")
    settled(sluice, box, 1)
    node.kill9()
    wait_until(lambda: status(sluice, box)["nodes"] == 0, 20, "the end of its lease")
    row, = table(sluice, box)
    assert row["lease"] == "over"
    node, = workers(sluice, box)["nodes"]
    assert node["lease_seconds"] <= 0
    text = sluice.run("status", db=box).stdout
    assert "\nnodes      0\n" in text


def test_odd_names(sluice, box):
    """What a terminal would obey is not printed, and JSON stays JSON."""
    start(sluice, box, 'n"1\x1b[2Jé')
    settled(sluice, box, 1)
    assert workers(sluice, box)["nodes"][0]["node"] == 'n"1\x1b[2Jé'
    assert table(sluice, box)[0]["node"] == 'n"1?[2Jé'


@pytest.mark.parametrize("width", [100, 120, 250])
def test_a_terminal(sluice, sqlitedb, width):
    """As much of the lanes as fits into its lines."""
    sluice.run("init", "--lanes", 1024, db=sqlitedb)
    for name in ("n1", "n2"):
        start(sluice, sqlitedb, name)
    settled(sluice, sqlitedb, 2)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    shown = sluice.start("workers", db=sqlitedb, stdout=theirs)
    shown.wait(status=0)
    lines = os.read(ours, 65536).decode().replace("\r", "").splitlines()
    os.close(ours)
    os.close(theirs)
    nodes = [line for line in lines if re.match(r"  n[12] ", line)]
    assert len(nodes) == 2 and all(line.endswith(",...") for line in nodes)
    assert max(map(len, nodes)) <= width
    assert min(map(len, nodes)) > width - 12


def test_other_names(sluice, db):
    """Mapped columns, and a table in a schema."""
    name, conf = "inbox", ["--columns", "lane=bucket,held=aside,worker=who,epoch=term"]
    if is_postgres(db):
        query(db, "CREATE SCHEMA app")
        name = "app.inbox"
    sluice.run("init", "--table", name, *conf, db=db)
    sluice.start("run", "--sink", "null:", "--strategy", "lanes", "--node", "n1", "--table", name, *conf, db=db)
    wait_until(lambda: not json.loads(sluice.run("workers", "--json", "--table", name, *conf, db=db).stdout)["free_lanes"],
               20, "a node that owns all lanes")
    got = json.loads(sluice.run("status", "--json", "--table", name, *conf, db=db).stdout)
    assert (got["table"], got["nodes"], got["free_lanes"]) == (name, 1, 0)


# -- Who holds what ------------------------------------------------------------------------------

def test_leases(sluice, box):
    commit(box, 10)
    with Gate(os.path.join(sluice.cwd, "out.jsonl")):
        start(sluice, box, "n1", "--hold", "lease", "--workers", 1, strategy="skip-locked", lease="30s")
        wait_until(lambda: status(sluice, box)["leased"] == 10, 20, "ten leases")
        holder, = workers(sluice, box)["workers"]
        assert (holder["worker"], holder["messages"], holder["keys"]) == ("n1/1", 10, 0)
        assert 0 < holder["lease_seconds"] <= 30
        assert re.search(r"\n  worker +messages +keys +lease ends\n  n1/1 +10 +0 +\d+\.\d s\n",
                         sluice.run("workers", db=box).stdout)
        assert status(sluice, box)["workers"][0]["messages"] == 10


def test_keys_of_guard(sluice, box):
    for key in ("a", "a", "b"):
        sluice.run("push", "--topic", "t", "--key", key, "1", db=box)
    with Gate(os.path.join(sluice.cwd, "out.jsonl")):
        start(sluice, box, "n1", "--workers", 1, strategy="guard", lease="30s")
        wait_until(lambda: workers(sluice, box)["workers"], 20, "claims")
        got = workers(sluice, box)
        assert got["strategy"] == "guard" and got["nodes"][0]["lanes"] == []
        holder, = got["workers"]
        assert (holder["worker"], holder["messages"], holder["keys"]) == ("n1/1", 0, 2)
        assert 0 < holder["lease_seconds"] <= 30
        assert status(sluice, box)["workers"] == [{**holder, "lease_seconds": pytest.approx(30, abs=30)}]


# -- What waits ----------------------------------------------------------------------------------

def test_counts(sluice, box):
    """Made by hand: a key that waits for its head, one whose time has come, one that an operator
    has parked; and messages without a key."""
    held, free = ("true", "false") if is_postgres(box) else ("1", "0")
    rows = [("waits", held, FUTURE), ("waits", held, PAST), ("waits", free, PAST),  # the last is not put aside yet
            ("ready", held, PAST), ("ready", held, FUTURE),
            ("parked", held, PAST),
            (None, held, FUTURE), (None, held, PAST),
            (None, free, FUTURE), ("other", free, PAST)]
    for key, is_held, time in rows:
        query(box, f"INSERT INTO outbox (topic, payload, entity_key, held, available_at) VALUES ('t', '1', ?, {is_held}, ?)",
              key, time)
    for key, time in (("waits", FUTURE), ("ready", PAST), ("parked", FUTURE)):
        query(box, "INSERT INTO outbox_keys (entity_key, lane, head, due_at) VALUES (?, 0, 1, ?)", key, time)
    got = status(sluice, box)
    assert got["total"] == len(rows)
    assert got["held"] == 7
    assert got["scheduled"] == 4
    assert got["due"] == 4  # one of waits, ready and other, and one without a key
    assert (got["leased"], got["blocked_keys"], got["dead"]) == (0, 3, 0)
    text = sluice.run("status", db=box).stdout
    for line in ("due        4", "scheduled  4", "held       7", "blocked    3 keys"):
        assert f"\n{line}\n" in text
    assert workers(sluice, box)["blocked_keys"] == 3


def test_counts_of_a_failing_sink(sluice, box):
    """Heads wait for their retry, the others behind them: nothing is due."""
    for n in range(3):
        for key in ("a", "b"):
            sluice.run("push", "--topic", "t", "--key", key, str(n), db=box)
    with too_large(sluice) as sink:
        sluice.run("run", "--sink", sink, "--drain", "--strategy", "lanes", "--retry-base", "1h", "--retry-max", "1h", db=box)
    got = status(sluice, box)
    assert (got["total"], got["due"], got["held"], got["blocked_keys"]) == (6, 0, 6, 2)
    assert got["scheduled"] >= 2
