"""The programs of examples/, run as a reader of them would, against real databases. They are looked
for beside the program under test: in the folder examples/ of its build."""
import os
import re

import pytest

from harness import ROOT, Sluice, is_postgres, query, wait_until

SOURCES = os.path.join(ROOT, "examples")


@pytest.fixture
def example(sluice, tmp_path):
    """example("pull") is a Sluice whose program is that example."""
    made = []

    def make(name):
        cwd = tmp_path / f"{name}-{len(made)}"
        cwd.mkdir()
        helper = Sluice(cwd)
        helper.bin = os.path.join(os.path.dirname(sluice.bin), "examples", name)
        assert os.path.exists(helper.bin), f"{helper.bin} was not built"
        made.append(helper)
        return helper
    yield make
    for helper in made:
        helper.close()
        helper.assert_no_reports()


@pytest.fixture
def push_order(db, example):
    """Runs the push example of the database's kind; returns what subprocess.run does."""
    name, target = ("push_postgres", db) if is_postgres(db) else ("push_sqlite", db[len("sqlite:"):])
    helper = example(name)
    return lambda order, **kw: helper.run(target, order, **kw)


def push(sluice, db, kind, payload):
    sluice.run("push", "--topic", "mails", "--type", kind, payload, db=db)


def left(db):
    return query(db, "SELECT count(*) FROM outbox")[0][0]


def dead(db):
    return query(db, "SELECT event_type, attempts, last_error FROM outbox_dead ORDER BY id")


def test_push_commits_order_and_message_together(sluice, db, push_order):
    sluice.run("init", db=db)
    push_order("9182")
    assert query(db, "SELECT id FROM orders") == [("9182",)]
    rows = query(db, "SELECT topic, entity_key, event_type, payload, content_type FROM outbox")
    assert rows == [("orders", "order:9182", "paid", b'{"paid":true}', "application/json")]


def test_push_that_fails_leaves_neither(sluice, db, push_order):
    """The order is there already, so that the whole second transaction is refused."""
    sluice.run("init", db=db)
    push_order("1")
    again = push_order("1", check=1)
    assert "orders" in again.stderr
    push_order("2")
    assert query(db, "SELECT entity_key FROM outbox ORDER BY id") == [("order:1",), ("order:2",)]
    assert query(db, "SELECT id FROM orders ORDER BY id") == [("1",), ("2",)]


def test_push_without_tables_says_what_to_do(db, push_order):
    if not is_postgres(db):
        open(db[len("sqlite:"):], "wb").close()  # an empty database
    failed = push_order("1", check=1)
    assert "outbox" in failed.stderr and "hint: " in failed.stderr and "sluice init" in failed.stderr
    assert query(db, "SELECT count(*) FROM orders") == [(0,)]


@pytest.mark.threads
def test_pull_decides_message_by_message(sluice, db, example):
    sluice.run("init", db=db)
    for kind in ("plain", "flaky", "broken"):
        push(sluice, db, kind, kind)
    out = example("pull").run(db).stdout
    assert re.findall(r"attempt (\d): (\w+)", out) == [
        ("1", "plain"), ("1", "flaky"), ("1", "broken"), ("2", "flaky")]
    assert left(db) == 0
    assert dead(db) == [("broken", 1, "cannot be read")]


def test_pull_keeps_the_order_of_a_key(sluice, db, example):
    """What stands behind a message that comes later is not worked on before it."""
    sluice.run("init", db=db)
    for key, kind in (("k", "plain"), ("k", "flaky"), ("k", "plain"), ("k", "flaky"), ("other", "plain"), ("k", "broken"),
                      ("k", "plain")):
        sluice.run("push", "--topic", "mails", "--type", kind, "--key", key, kind, db=db)
    out = example("pull").run(db).stdout
    tried = [(int(id), int(attempt)) for id, attempt in re.findall(r"^(\d+) mails attempt (\d):", out, re.M)]
    assert tried.index((5, 1)) < tried.index((2, 2)), "other keys go on"
    assert [t for t in tried if t[0] != 5] == [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2), (6, 1), (7, 1)]
    assert left(db) == 0 and dead(db) == [("broken", 1, "cannot be read")]


@pytest.mark.threads
def test_handler_runs_until_it_is_told_to_stop(sluice, db, example):
    sluice.run("init", db=db)
    node = example("run_handler").start(db, "workers=2", "poll=20ms")
    for kind in ("plain", "flaky", "broken"):
        push(sluice, db, kind, kind)
    wait_until(lambda: left(db) == 0 and dead(db), what="all three are settled")
    node.term()
    node.wait(status=0)
    # Worker threads write side by side: the order of lines is theirs.
    assert sorted(re.findall(r"attempt (\d): (\w+)", node.stdout())) == [
        ("1", "broken"), ("1", "flaky"), ("1", "plain"), ("2", "flaky")]
    assert dead(db) == [("broken", 1, "cannot be read")]


@pytest.mark.threads
def test_handler_keeps_the_order_of_a_key(sluice, db, example, ordered):
    """A message that is to be retried holds its key back, a dead one does not; other keys go on."""
    sluice.run("init", "--lanes", 1, db=db)
    for key, kind in (("k", "plain"), ("k", "flaky"), ("k", "plain"), ("k", "broken"), ("k", "plain"), ("other", "flaky"),
                      ("other", "plain"), ("third", "plain"), (None, "plain")):
        sluice.run("push", "--topic", "mails", "--type", kind, *(["--key", key] if key else []), kind, db=db)
    node = example("run_handler").start(db, "workers=1", "poll=20ms", f"strategy={ordered}")  # one: the order of lines
    wait_until(lambda: left(db) == 0, what="all are settled")
    node.term()
    node.wait(status=0)
    tried = [(int(id), int(attempt)) for id, attempt in re.findall(r"^(\d+) mails attempt (\d):", node.stdout(), re.M)]
    assert sorted(tried[:5]) == [(1, 1), (2, 1), (6, 1), (8, 1), (9, 1)]
    assert [t for t in tried if t[0] < 6] == [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (5, 1)]
    assert [t for t in tried if t[0] in (6, 7)] == [(6, 1), (6, 2), (7, 1)]
    assert dead(db) == [("broken", 1, "cannot be read")]


def test_handler_drains(sluice, db, example):
    sluice.run("init", db=db)
    for i in range(20):
        push(sluice, db, "plain", str(i))
    out = example("run_handler").run(db, "drain", "batch=3").stdout
    assert sorted(int(n) for n in re.findall(r": (\d+)$", out, re.M)) == list(range(20))
    assert left(db) == 0


@pytest.mark.parametrize("name", ["pull", "run_handler"])
def test_example_says_that_the_database_is_missing(sqlitedb, example, name):
    failed = example(name).run(sqlitedb, check=1)
    assert "does not exist" in failed.stderr


def test_handler_names_a_wrong_setting(sqlitedb, example):
    failed = example("run_handler").run(sqlitedb, "wrokers=2", check=1)
    assert "did you mean workers?" in failed.stderr


@pytest.mark.parametrize("name", sorted(f for f in os.listdir(SOURCES) if f.endswith(".c")))
def test_example_is_short_and_needs_only_the_public_header(name):
    with open(os.path.join(SOURCES, name), encoding="utf-8") as f:
        text = f.read()
    assert text.count("\n") < 110
    ours = [h for h in re.findall(r'#include ["<]([^">]+)', text) if "/" in h]
    assert ours == ["sluice/sluice.h"]
