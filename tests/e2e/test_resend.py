"""sluice resend: delivered messages that were kept are queued again. How they are found and inserted is in
tests/unit/cli/test_resend.c."""
import json
import os
import pty

import pytest

from checker import read_sink
from conftest import assert_in_order
from harness import is_postgres, query, scaled, wait_until

MEMBERS = {"table", "messages", "keys", "keyless", "missing", "resent", "purged", "refused"}


@pytest.fixture
def resend(sluice, box):
    """Runs `sluice resend ...`."""
    return lambda *args, **kw: sluice.run("resend", *args, db=box, **kw)


def keep_many(url, n, keys=10, topic="orders", bytes_each=0):
    """By plain SQL, the highest id first: sent_id and id run against each other."""
    pad = "x" * bytes_each
    if is_postgres(url):
        source, payload = "generate_series(1, ?) AS s (i)", f"convert_to(i::text || '{pad}', 'UTF8')"
    else:
        source = "(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ?) SELECT i FROM s)"
        payload = f"CAST(i || '{pad}' AS BLOB)"
    query(url, "INSERT INTO outbox_sent (id, topic, entity_key, event_type, payload, content_type, attempts, epoch)"
               f" SELECT i, '{topic}', 'k' || (i % {keys}), '', {payload}, 'application/json', 1, 0 FROM {source}"
               " ORDER BY i DESC", n)
    if is_postgres(url):
        query(url, "SELECT setval(pg_get_serial_sequence('outbox', 'id'), ?)", n)


def count(url, table="outbox"):
    return query(url, f"SELECT count(*) FROM {table}")[0][0]


def age(url, id, minutes):
    then = f"clock_timestamp() - {minutes} * interval '1 minute'" if is_postgres(url) else \
        f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{minutes} minutes')"
    query(url, f"UPDATE outbox_sent SET sent_at = {then} WHERE id = ?", id)


def payloads(path):
    return [json.loads(line)["payload"] for line in path.read_text().splitlines()]


def drained(sluice, url, path, *flags):
    sluice.run("run", "--sink", f"file:{path}", "--drain", *flags, db=url)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_resend(sluice, resend, box, strategy, tmp_path):
    """Delivered, kept, resent, delivered again: with all that the producer wrote, but for the idempotency key."""
    sluice.run("push", "--topic", "orders", "--key", "k", "--type", "paid", "--headers", "a=1", "--idempotency-key", "once",
               '{"n":1}', db=box)
    sluice.run("push", "--topic", "mails", "--content-type", "text/plain", "hello", db=box)
    flags = ("--retention", "1h", "--strategy", strategy)
    first = drained(sluice, box, tmp_path / "one", *flags)
    born = dict(query(box, "SELECT topic, created_at FROM outbox_sent"))
    assert resend("--topic", "*", "--yes").stdout == \
        "2 messages of 1 key of table outbox will be sent again, 1 of them without a key\nresent 2 messages\n"
    assert dict(query(box, "SELECT topic, created_at FROM outbox")) == born
    assert query(box, "SELECT count(*) FROM outbox WHERE idempotency_key IS NOT NULL") == [(0,)]
    again = drained(sluice, box, tmp_path / "two", *flags)
    for line in first + again:
        line.pop("worker"), line.pop("epoch")
    assert sorted(line.pop("id") for line in again) == [3, 4] and sorted(line.pop("id") for line in first) == [1, 2]
    assert sorted(again, key=str) == sorted(first, key=str)
    assert [id for (id,) in query(box, "SELECT id FROM outbox_sent ORDER BY id")] == [1, 2, 3, 4]


def test_a_second_insert_of_its_idempotency_key(sluice, resend, box):
    """While the producer has the key in use again, the resent message does not collide with it."""
    sluice.run("push", "--topic", "t", "--idempotency-key", "once", "1", db=box)
    sluice.run("run", "--sink", "null:", "--drain", "--retention", "1h", db=box)
    query(box, "INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', '2', 'once') ON CONFLICT DO NOTHING")
    before = count(box)
    resend("--id", 1, "--yes")
    assert count(box) == before + 1


def test_resend_keeps_the_order_of_a_key(sluice, resend, box, ordered, tmp_path):
    """Behind what waits, in the order of the old ids, also across the transactions."""
    n = scaled(1600, 600)
    keep_many(box, n)
    for key in range(10):
        sluice.run("push", "--topic", "orders", "--key", f"k{key}", "0", db=box)
    resend("--topic", "orders", "--yes")
    lines = drained(sluice, box, tmp_path / "out", "--strategy", ordered)
    keys = {}
    for line in lines:
        keys.setdefault(line["key"], []).append(line["payload"])
    assert len(keys) == 10 and len(lines) == n + 10
    for key, got in keys.items():
        assert got[0] == 0 and got[1:] == sorted(got[1:]), key


def test_filters(resend, box):
    for topic, n in (("orders.eu", 3), ("mails", 2)):
        keep_many(box, n, topic=topic)
    query(box, "UPDATE outbox_sent SET id = id + 100, entity_key = NULL WHERE topic = 'mails'")
    for id, minutes in ((1, 5), (2, 90), (3, 300), (101, 90), (102, 90)):
        age(box, id, minutes)

    def found(*flags):
        got = json.loads(resend("--dry-run", "--json", *flags).stdout)
        assert set(got) == MEMBERS and got["resent"] == 0
        return got["messages"], got["keys"], got["keyless"]
    assert found("--topic", "*") == (5, 3, 2)
    assert found("--topic", "orders.*") == (3, 3, 0) and found("--topic", "orders") == (0, 0, 0)
    assert found("--key", "k2") == (1, 1, 0) and found("--key", "") == (0, 0, 0)
    assert found("--topic", "*", "--since", "1h") == (1, 1, 0)
    assert found("--topic", "*", "--until", "1h") == (4, 2, 2)
    assert found("--topic", "*", "--since", "2h", "--until", "1h") == (3, 1, 2)
    assert found("--key", "k2", "--since", "1h") == (0, 0, 0)
    assert found("--id", "1,2", "--id", "102") == found("--id", 102, 1, 2, 2) == (3, 2, 1)
    assert count(box) == 0


def test_by_id(resend, box):
    keep_many(box, 5)
    done = resend("--id", 4, 2, 77, "--yes", check=1)
    assert done.stdout == "2 messages of 2 keys of table outbox will be sent again\nresent 2 messages\n"
    assert "message 77: it is not kept\n" in done.stderr and "1 of 3 messages are not kept\nhint: " in done.stderr
    assert [p for (p,) in query(box, "SELECT payload FROM outbox ORDER BY id")] == [b"2", b"4"]
    done = resend("--id", 88, "--yes", "--json", check=1)
    assert json.loads(done.stdout) == {"table": "outbox", "messages": 0, "keys": 0, "keyless": 0, "missing": 1, "resent": 0,
                                       "purged": 0, "refused": 0}


def test_nothing_matches(resend, box):
    assert resend("--key", "nobody", "--yes").stdout == "no kept message of table outbox matches\n"


@pytest.mark.parametrize("answer", [b"y\n", b"n\n", b"\n", b"\x04"])
def test_on_a_terminal(sluice, box, answer):
    keep_many(box, 3, keys=2)
    ours, theirs = pty.openpty()
    p = sluice.start("resend", "--topic", "orders", db=box, stdin=theirs)
    wait_until(lambda: "[y/N]" in p.stderr(), 10, "the question")
    assert p.stdout() == "3 messages of 2 keys of table outbox will be sent again\n"
    assert "resend them? [y/N] " in p.stderr() and count(box) == 0
    os.write(ours, answer)
    yes = answer.startswith(b"y")
    p.wait(status=0 if yes else 1)
    assert count(box) == (3 if yes else 0) and count(box, "outbox_sent") == 3
    assert yes or "nothing was resent" in p.stderr()
    os.close(ours)
    os.close(theirs)


def test_without_a_terminal(resend, box):
    keep_many(box, 3)
    assert "hint: --yes to resend them" in resend("--topic", "orders", check=2).stderr
    assert resend("--topic", "orders", "--dry-run").stdout == "3 messages of 3 keys of table outbox would be sent again\n"
    assert count(box) == 0


def test_while_nodes_run(sluice, resend, box, strategy, tmp_path):
    """What nodes deliver meanwhile is resent once, in order where that is promised; and what was kept stays kept."""
    n = scaled(1500, 100)
    out = tmp_path / "out"
    nodes = [sluice.start("run", "--sink", f"file:{out}", "--strategy", strategy, "--node", name, "--poll", "20ms",
                          "--retention", "1h", db=box) for name in ("n1", "n2")]
    for node in nodes:
        node.wait_log("node started")
    keep_many(box, n)
    resend("--topic", "orders", "--yes")
    wait_until(lambda: count(box) == 0 and count(box, "outbox_sent") == 2 * n, 60, "all delivered and kept")
    sluice.close()
    record = read_sink(out)
    assert len({d.id for d in record}) == n == len(record)
    assert sorted(payloads(out)) == list(range(1, n + 1))
    if strategy != "skip-locked":
        assert_in_order(record)
        keys = {}
        for line in map(json.loads, out.read_text().splitlines()):
            keys.setdefault(line["key"], []).append(line["payload"])
        assert all(got == sorted(got) for got in keys.values())


def test_beside_the_purge(sluice, box, tmp_path):
    """Each is either resent or purged before; nothing waits for the other for long."""
    n = scaled(6000, 1200)
    keep_many(box, n)
    query(box, "UPDATE outbox_sent SET sent_at = '2001-01-01 00:00:00.000'")
    resending = sluice.start("resend", "--topic", "*", "--yes", "--json", db=box)
    wait_until(lambda: count(box) > 0 or not resending.running, 30, "the first ones")
    node = sluice.start("run", "--sink", f"file:{tmp_path}/out", "--retention", "1h", "--poll", "50ms", db=box)
    resending.wait(60, status=0)
    got = json.loads(resending.stdout())
    assert got["resent"] + got["purged"] == got["messages"] == n and got["refused"] == 0
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox_sent WHERE sent_at < '2002-01-01'") == [(0,)], 60,
               "the old ones are purged")
    wait_until(lambda: count(box) == 0, 60, "all delivered")
    assert len({d.id for d in read_sink(f"{tmp_path}/out")}) == got["resent"]
    assert node.running and "clean-up failed" not in node.stderr()


def test_two_resend_at_once(sluice, box):
    """Both do what they are told: each message twice, and each of the two in order."""
    n = scaled(3000, 1200)
    keep_many(box, n)
    both = [sluice.start("resend", "--topic", "orders", "--yes", db=box) for _ in range(2)]
    for p in both:
        p.wait(60, status=0)
        assert f"resent {n} messages" in p.stdout()
    rows = query(box, "SELECT entity_key, payload FROM outbox ORDER BY id")
    assert len(rows) == 2 * n
    for key in {k for k, _ in rows}:
        got = [int(p) for k, p in rows if k == key]
        assert sorted(got) == sorted(2 * sorted(set(got)))
        assert [i for at, i in enumerate(got) if i not in got[:at]] == sorted(set(got))


def test_killed_in_the_middle(sluice, box):
    """A beginning of each key is resent, once, and nothing else; all stay kept."""
    n = scaled(25000, 3000)
    keep_many(box, n)

    def killed():
        """What it has done until then; all: it was too fast."""
        query(box, "DELETE FROM outbox")
        p = sluice.start("resend", "--topic", "orders", "--yes", db=box)
        wait_until(lambda: count(box) > 0 or not p.running, 30, "the first ones")
        p.kill9()
        if is_postgres(box):
            wait_until(lambda: query(box, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice'"
                                          " AND datname = current_database()") == [(0,)], 30, "the end of its session")
        return query(box, "SELECT entity_key, payload FROM outbox ORDER BY id")
    rows = next(rows for rows in (killed() for _ in range(10)) if len(rows) < n)
    assert 0 < len(rows) < n and len(rows) % 500 == 0 and count(box, "outbox_sent") == n
    assert [int(p) for _, p in rows] == list(range(1, len(rows) + 1))


def test_a_message_that_the_table_refuses(resend, box):
    keep_many(box, 3)
    query(box, "INSERT INTO outbox_sent (id, topic, payload, attempts, epoch) VALUES (9, '', '', 1, 0)")
    done = resend("--topic", "*", "--yes", "--json", check=1)
    got = json.loads(done.stdout)
    assert (got["messages"], got["resent"], got["refused"]) == (4, 3, 1)
    assert "message 9 is not resent: " in done.stderr and "1 of 4 messages were not resent" in done.stderr


@pytest.mark.parametrize("args, words", [
    ([], "which messages are to be resent?"),
    (["--since", "1h", "--yes"], "which messages are to be resent?"),
    (["7"], "what is '7'?"),
    (["--id", "7", "--key", "k"], "messages by id or by filter, not both"),
    (["--id", "7", "--since", "1h"], "messages by id or by filter, not both"),
    (["--id", "x", "--yes"], "'x' is no id of a message"),
    (["--id", "-1", "--yes"], "'-1' is no id of a message"),
    (["--id", "7", "x", "--yes"], "'x' is no id of a message"),
    (["--id", "", "--yes"], "--id is empty"),
    (["--topic", "", "--yes"], "--topic is empty"),
    (["--topic", "t", "--since", "1h", "--until", "2h", "--yes"], "--since is not before --until"),
    (["--topic", "t", "--limit", "2"], "unknown flag --limit"),
])
def test_wrong_use(sluice, sqlitedb, args, words):
    sluice.run("init", db=sqlitedb)
    assert words in sluice.run("resend", *args, db=sqlitedb, check=2).stderr


def test_no_table(sluice, db):
    if not is_postgres(db):
        assert "does not exist" in sluice.run("resend", "--id", 1, "--yes", db=db, check=3).stderr
        return
    assert "hint: run 'sluice init' once" in sluice.run("resend", "--id", 1, "--yes", db=db, check=1).stderr


def test_no_server(sluice):
    sluice.run("resend", "--id", 1, "--yes", db="postgresql://127.0.0.1:1/x", check=3)


def test_other_names(sluice, db, tmp_path):
    """Mapped columns, and a table in a schema."""
    names = {"id": "no", "topic": "what", "entity_key": "who", "payload": "body", "attempts": "tries",
             "last_error": "why", "idempotency_key": "once", "created_at": "born", "epoch": "term"}
    flags = ["--table", "inbox", "--columns", ",".join(f"{a}={b}" for a, b in names.items())]
    if is_postgres(db):
        query(db, "CREATE SCHEMA app")
        flags[1] = "app.inbox"
    sluice.run("init", *flags, db=db)
    sluice.run("push", "--topic", "t", "--key", "k", "--idempotency-key", "i", "1", *flags, db=db)
    sluice.run("run", "--sink", "null:", "--drain", "--retention", "1h", *flags, db=db)
    sluice.run("resend", "--key", "k", "--topic", "t*", "--yes", *flags, db=db)
    assert query(db, f"SELECT no, what, who, once, tries FROM {flags[1]}") == [(2, "t", "k", None, 0)]
    sluice.run("run", "--sink", "null:", "--drain", *flags, db=db)
