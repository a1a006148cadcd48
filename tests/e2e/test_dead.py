"""sluice dead: dead letters are listed, shown, resent and dropped. How the chunks and the filters work in detail is in
tests/unit/cli/test_dead.c."""
import base64
import json
import os
import pty
import re
import subprocess
import threading

import pytest

from checker import read_sink
from conftest import assert_in_order
from harness import connect, is_postgres, query, scaled, wait_until

LISTED = {"dead_id", "id", "topic", "key", "type", "attempts", "died_at", "age_seconds", "error", "payload_bytes", "unknown"}
SHOWN = {"dead_id", "id", "topic", "key", "type", "payload", "headers", "idempotency_key", "created_at", "died_at",
         "age_seconds", "attempts", "error", "epoch", "unknown"}
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def dead(sluice, box):
    """Runs `sluice dead ...`."""
    return lambda *args, **kw: sluice.run("dead", *args, db=box, **kw)


@pytest.fixture
def bury(sluice, box):
    """Pushes messages, as lists of flags and a payload, and buries them by `sluice pull`."""
    def run(*messages, reason="no route"):
        for message in messages:
            payload = message[-1]
            sluice.run("push", *message[:-1], "-", db=box, input=payload)
        lines = sluice.run("pull", "--batch", 10000, db=box).stdout.splitlines()
        receipts = "\n".join(json.loads(line)["receipt"] for line in lines)
        sluice.run("pull", "--bury", "--reason", reason, "-", db=box, input=receipts)
        return [json.loads(line)["id"] for line in lines]
    return run


def bury_many(url, n, keys=10, topic="orders"):
    """By plain SQL, the highest id first: dead_id and id run against each other."""
    if is_postgres(url):
        source, payload = "generate_series(1, ?) AS s (i)", "convert_to(i::text, 'UTF8')"
    else:
        source = "(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ?) SELECT i FROM s)"
        payload = "CAST(i AS BLOB)"
    query(url, "INSERT INTO outbox_dead (id, topic, entity_key, event_type, payload, content_type, attempts, last_error, epoch)"
               f" SELECT i, '{topic}', 'k' || (i % {keys}), '', {payload}, 'application/json', 1, 'why', 0 FROM {source}"
               " ORDER BY i DESC", n)


def listed(done):
    got = json.loads(done.stdout)
    assert set(got) == {"table", "total", "matching", "dead_letters"}
    for letter in got["dead_letters"]:
        assert set(letter) == LISTED
        assert UTC.fullmatch(letter["died_at"]) and letter["age_seconds"] > -60
    return got


def count(url, table="outbox"):
    return query(url, f"SELECT count(*) FROM {table}")[0][0]


def age(url, dead_id, minutes):
    then = f"clock_timestamp() - {minutes} * interval '1 minute'" if is_postgres(url) else \
        f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{minutes} minutes')"
    query(url, f"UPDATE outbox_dead SET died_at = {then} WHERE dead_id = ?", dead_id)


def drained(sluice, url, path, *flags):
    sluice.run("run", "--sink", f"file:{path}", "--drain", *flags, db=url)
    return read_sink(path)


# -- list -----------------------------------------------------------------------------------------

def test_list(dead, bury):
    assert dead("list").stdout == "no dead letters in table outbox\n"
    assert listed(dead("list", "--json")) == {"table": "outbox", "total": 0, "matching": 0, "dead_letters": []}
    bury(["--topic", "orders", "--key", "order:9182", "--type", "paid", '{"n":1}'], reason="first")
    bury(["--topic", "mails", "hello"], reason="second\nline")
    lines = dead("list").stdout.splitlines()
    assert re.fullmatch(r"  dead_id  id  topic   key         attempts +age  sent  error", lines[0])
    assert re.fullmatch(r"        2   2  mails   -                  1 +(\S+ s|\d+m\d\ds)  -     second line", lines[1])
    assert re.fullmatch(r"        1   1  orders  order:9182         1 +(\S+ s|\d+m\d\ds)  -     first", lines[2])
    assert lines[3:] == ["", "2 dead letters in table outbox"]
    got = listed(dead("list", "--json"))
    assert (got["total"], got["matching"]) == (2, 2)
    mail, order = got["dead_letters"]
    assert (mail["dead_id"], mail["id"], mail["topic"], mail["key"], mail["type"]) == (2, 2, "mails", None, "")
    assert (order["topic"], order["key"], order["type"], order["attempts"], order["error"], order["payload_bytes"]) == \
        ("orders", "order:9182", "paid", 1, "first", 7)


def test_list_is_limited(dead, box):
    bury_many(box, 150)
    lines = dead("list").stdout.splitlines()
    assert len(lines) == 1 + 100 + 2
    assert lines[-1] == "150 dead letters in table outbox; the newest 100 are shown"
    assert len({len(line.rpartition("  ")[0]) for line in lines[:-2]}) == 1  # they line up
    got = listed(dead("list", "--json", "--limit", 3))
    assert [d["dead_id"] for d in got["dead_letters"]] == [150, 149, 148] and got["total"] == 150
    assert len(listed(dead("list", "--json", "--limit", 1000))["dead_letters"]) == 150


def test_filters(dead, bury, box):
    bury(["--topic", "orders.eu", "--key", "a", "1"], reason="connection refused")
    bury(["--topic", "orders.us", "--key", "b", "2"], reason="Connection reset")
    bury(["--topic", "mails", "--key", "", "3"], reason="100% wrong")
    bury(["--topic", "mails", "4"], reason="'; DROP TABLE outbox; --")
    for dead_id, minutes in ((1, 1), (2, 10), (3, 120), (4, 3000)):
        age(box, dead_id, minutes)
    query(box, "UPDATE outbox_dead SET unknown = (1 = 1) WHERE dead_id IN (1, 4)")

    def found(*flags):
        got = listed(dead("list", "--json", *flags))
        assert got["total"] == 4 and got["matching"] == len(got["dead_letters"])
        return [d["dead_id"] for d in got["dead_letters"]]
    assert found() == found("--all") == found("--topic", "*") == [4, 3, 2, 1]
    assert found("--topic", "mails") == [4, 3] and found("--topic", "orders") == []
    assert found("--topic", "orders.*") == [2, 1] and found("--topic", "o%*") == []
    assert found("--key", "a") == [1] and found("--key", "") == [3]
    assert found("--error", "onnection re") == [2, 1] and found("--error", "connection") == [1]
    assert found("--error", "0% w") == [3] and found("--error", "'; DROP") == [4]
    assert found("--older-than", "1h") == [4, 3] and found("--newer-than", "1h") == [2, 1]
    assert found("--older-than", "5m", "--newer-than", "1d") == [3, 2]
    assert found("--unknown") == [4, 1] and found("--unknown", "--topic", "orders.*") == [1]
    assert found("--topic", "mails", "--older-than", "1d", "--error", "TABLE") == [4]
    text = dead("list", "--topic", "orders.*", "--limit", 1).stdout
    assert text.endswith("\n2 of 4 dead letters of table outbox match; the newest 1 are shown\n")
    assert dead("list", "--key", "nobody").stdout == "0 of 4 dead letters of table outbox match\n"
    # The same filters choose what is resent and dropped.
    assert dead("drop", "--older-than", "1d", "--yes").stdout.endswith("\ndropped 1 dead letter\n")
    assert dead("resend", "--topic", "orders.*", "--error", "refused", "--yes").stdout.endswith("\nresent 1 dead letter\n")
    assert [d["dead_id"] for d in listed(dead("list", "--json"))["dead_letters"]] == [3, 2]


def test_odd_texts(dead, bury, box):
    """What a terminal would obey is not printed, long texts are cut, and JSON has all of it."""
    key, reason = "k\x1b[2J" + "x" * 100, "e\x1b\x07é" * 50
    bury(["--topic", "t", "--key", key, "1"])
    query(box, "UPDATE outbox_dead SET last_error = ?", reason)
    text = dead("list").stdout
    assert "\x1b" not in text and "\x07" not in text and "k?[2Jxxx" in text and "..." in text
    assert max(map(len, text.splitlines())) < 200
    assert "\x1b" not in dead("show", 1).stdout
    letter, = listed(dead("list", "--json"))["dead_letters"]
    assert (letter["key"], letter["error"]) == (key, reason)


# -- show -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("payload,type,name,value", [
    (b'{"a":\n[1.50, 2]}', "application/json", "payload", '{"a": [1.50, 2]}'),
    ("Grüße\n".encode(), "text/plain", "payload", '"Grüße\\n"'),
    (b"{broken", "application/json", "payload", '"{broken"'),
    (b"\x00\xff\x80", "application/octet-stream", "payload_base64",
     f'"{base64.b64encode(bytes([0, 255, 128])).decode()}"'),
    (b"", "application/octet-stream", "payload", '""'),
])
def test_show(dead, bury, payload, type, name, value):
    bury(["--topic", "orders", "--key", "k", "--type", "paid", "--content-type", type, "--headers", "a=1",
          "--idempotency-key", "once", payload])
    line = dead("show", 1, "--json").stdout
    assert f'"{name}":{value},"headers"' in line
    got = json.loads(line)
    more = set() if type == "application/json" else {"content_type"}
    assert set(got) == (SHOWN - {"payload"}) | {name} | more
    assert UTC.fullmatch(got["created_at"]) and UTC.fullmatch(got["died_at"])
    assert (got["dead_id"], got["topic"], got["key"], got["type"], got["headers"], got["idempotency_key"],
            got["attempts"], got["error"]) == (1, "orders", "k", "paid", {"a": "1"}, "once", 1, "no route")
    text = dict(line.split(None, 1) for line in dead("show", 1).stdout.splitlines())
    assert text[name] == value and text["content_type"] == type and text["key"] == "k"
    assert text["idempotency_key"] == "once" and text["error"] == "no route"


def test_show_one_that_is_not_there(dead):
    done = dead("show", 7, check=1)
    assert done.stdout == "" and "table 'outbox' has no dead letter 7\nhint: " in done.stderr


# -- resend ---------------------------------------------------------------------------------------

@pytest.mark.threads
def test_resend(sluice, dead, bury, box, tmp_path):
    """All that the producer wrote comes back, as a message that was never tried."""
    bury(["--topic", "orders", "--key", "k", "--type", "paid", "--content-type", "text/plain", "--headers", "a=1",
          "--idempotency-key", "once", "x"])
    created = query(box, "SELECT created_at FROM outbox_dead")
    done = dead("resend", "--all", "--yes")
    assert done.stdout == "1 dead letter of table outbox will be resent\nresent 1 dead letter\n"
    assert query(box, "SELECT id, attempts, last_error, idempotency_key FROM outbox") == [(2, 0, None, "once")]
    assert query(box, "SELECT created_at FROM outbox") == created
    assert count(box, "outbox_dead") == 0
    drained(sluice, box, tmp_path / "out")
    line = json.loads((tmp_path / "out").read_text())
    assert (line["topic"], line["key"], line["type"], line["content_type"], line["headers"], line["payload"],
            line["attempt"]) == ("orders", "k", "paid", "text/plain", {"a": "1"}, "x", 1)


def test_resend_keeps_the_order_of_a_key(sluice, dead, box, ordered, tmp_path):
    """Whatever the order of their death was; and they come behind what waits already."""
    bury_many(box, 40, keys=3)
    for key in ("k0", "k1", "k2"):
        sluice.run("push", "--topic", "orders", "--key", key, "0", db=box)
    dead("resend", "--all", "--yes")
    drained(sluice, box, tmp_path / "out", "--strategy", ordered)
    got = {}
    for line in map(json.loads, (tmp_path / "out").read_text().splitlines()):
        got.setdefault(line["key"], []).append(line["payload"])
    assert got == {f"k{k}": [0] + [i for i in range(1, 41) if i % 3 == k] for k in range(3)}


def test_resend_some(dead, box):
    bury_many(box, 10)
    assert dead("resend", 3, 1, 3, "--yes").stdout == \
        "2 dead letters of table outbox will be resent\nresent 2 dead letters\n"
    assert query(box, "SELECT payload FROM outbox ORDER BY id") == [(b"8",), (b"10",)]
    done = dead("resend", 3, 4, 99, "--yes", check=1)
    assert done.stdout.endswith("\nresent 1 dead letter\n")
    assert "there is no dead letter 3\nthere is no dead letter 99\n" in done.stderr
    assert "2 of 3 dead letters were not there\nhint: " in done.stderr
    assert count(box) == 3 and count(box, "outbox_dead") == 7


def test_very_many_are_named(dead, box):
    bury_many(box, 300)
    done = dead("resend", *range(1, 10001), "--yes", check=1)
    assert done.stdout.endswith("\nresent 300 dead letters\n")
    assert "there is no dead letter 301\n" in done.stderr and "\n... and 9690 more\n" in done.stderr
    assert "9700 of 10000 dead letters were not there" in done.stderr


def test_the_server_goes_away(sluice, pgdb):
    """What was done is said, and the rest goes the next time."""
    sluice.run("init", db=pgdb)
    bury_many(pgdb, 700)
    conn = connect(pgdb)
    conn.autocommit = False
    cur = conn.cursor()
    cur.execute("SELECT 1 FROM outbox_dead WHERE id = 600 FOR UPDATE")
    p = sluice.start("dead", "resend", "--all", "--yes", db=pgdb)
    wait_until(lambda: query(pgdb, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                   " AND query LIKE '%FOR UPDATE%'"), 10, "a resend that waits")
    p.wait(status=3)
    conn.rollback()
    conn.close()
    assert p.stdout().endswith("\nresent 500 dead letters\n") and "sluice dead: after 500 of 700: " in p.stderr()
    sluice.run("dead", "resend", "--all", "--yes", db=pgdb)
    assert [int(p) for p, in query(pgdb, "SELECT payload FROM outbox ORDER BY id")] == list(range(1, 701))


def test_nothing_to_resend(dead, box):
    assert dead("resend", "--all", "--yes").stdout == "no dead letter of table outbox matches\n"
    done = dead("resend", 5, "--yes", check=1)
    assert "there is no dead letter 5\n" in done.stderr
    assert dead("drop", "--topic", "x*", "--yes").stdout == "no dead letter of table outbox matches\n"


@pytest.mark.parametrize("strategy", ["lanes", "guard", "skip-locked"])
def test_resend_while_nodes_run(sluice, dead, box, strategy, tmp_path):
    """Each is delivered once, and in order where that is promised."""
    n = scaled(2000, 100)
    bury_many(box, n)
    out = tmp_path / "out"
    for name in ("n1", "n2"):
        sluice.start("run", "--sink", f"file:{out}", "--strategy", strategy, "--node", name, "--poll", "20ms", db=box)
    for key in range(10):
        sluice.run("push", "--topic", "orders", "--key", f"k{key}", "0", db=box)
    dead("resend", "--all", "--yes")
    wait_until(lambda: out.exists() and len(out.read_bytes().splitlines()) == n + 10, 30, "all delivered")
    sluice.close()
    record = read_sink(out)
    assert len({d.id for d in record}) == n + 10 == len(record)
    if strategy == "skip-locked":
        return
    assert_in_order(record)
    keys = {}
    for line in map(json.loads, out.read_text().splitlines()):
        keys.setdefault(line["key"], []).append(line["payload"])
    for key, payloads in keys.items():
        assert [p for p in payloads if p] == sorted(p for p in payloads if p), key


def test_two_resend_at_once(sluice, box):
    """Each dead letter goes once, and a key keeps its order."""
    n = scaled(3000, 600)
    bury_many(box, n)
    both = [sluice.start("dead", "resend", "--all", "--yes", db=box) for _ in range(2)]
    for p in both:
        p.wait(status=0)
    resent = sum(int(x) for p in both for x in re.findall(r"^resent (\d+) dead", p.stdout(), re.M))
    assert resent == n == count(box) and count(box, "outbox_dead") == 0
    rows = query(box, "SELECT entity_key, payload FROM outbox ORDER BY id")
    for key in {k for k, _ in rows}:
        numbers = [int(p) for k, p in rows if k == key]
        assert numbers == sorted(set(numbers))


def test_one_resends_what_another_drops(sluice, box):
    n = scaled(3000, 600)
    bury_many(box, n)
    drop = sluice.start("dead", "drop", "--all", "--yes", db=box)
    resend = sluice.start("dead", "resend", "--all", "--yes", db=box)
    for p in (drop, resend):
        p.wait(status=0)
    dropped = sum(int(x) for x in re.findall(r"^dropped (\d+) dead", drop.stdout(), re.M))
    resent = sum(int(x) for x in re.findall(r"^resent (\d+) dead", resend.stdout(), re.M))
    assert (resent, dropped + resent, count(box, "outbox_dead")) == (count(box), n, 0)


def test_it_waits_for_another_operator(sluice, pgdb):
    """Who has the first messages of a key in an open transaction is waited for, not overtaken. SQLite has one writer at
    a time."""
    box = pgdb
    sluice.run("init", db=box)
    bury_many(box, 20, keys=1)
    conn = connect(box)
    conn.autocommit = False
    cur = conn.cursor()
    cur.execute("DELETE FROM outbox_dead WHERE id = 1")
    p = sluice.start("dead", "resend", "--all", "--yes", db=box)
    wait_until(lambda: query(box, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'"),
               10, "a resend that waits")
    assert count(box) == 0
    conn.commit()
    conn.close()
    p.wait(status=0)
    assert p.stdout().endswith("\nresent 19 dead letters, 1 had gone meanwhile\n")
    assert count(box) == 19


# -- Idempotency keys -----------------------------------------------------------------------------

def test_an_idempotency_key_that_is_taken(sluice, dead, bury, box):
    for n in (1, 2, 3):
        bury(["--topic", "t", "--key", "k", "--idempotency-key", f"once\x1b{n}", str(n)])
    push = ("push", "--topic", "t", "--idempotency-key", "once\x1b2", "living")
    assert sluice.run(*push, db=box).stdout == "pushed 0 messages, 1 duplicate left out\n"  # a dead letter has it
    query(box, "DELETE FROM outbox_idempotency WHERE idempotency_key = 'once\x1b2'")        # as if it were older
    sluice.run(*push, db=box)
    done = dead("resend", "--all", "--yes", check=1)
    assert done.stdout.endswith("\nresent 2 dead letters\n")
    assert re.search(r"dead letter 2 stays: message \d has its idempotency key 'once\?2'\n", done.stderr)
    assert "1 of 3 dead letters were not resent\nhint: " in done.stderr
    assert query(box, "SELECT dead_id FROM outbox_dead") == [(2,)]
    assert count(box) == 3
    query(box, "DELETE FROM outbox")
    dead("resend", 2, "--yes")
    assert query(box, "SELECT idempotency_key FROM outbox") == [("once\x1b2",)]


def test_many_idempotency_keys_that_are_taken(dead, box):
    """In the same chunk twice; only some are named."""
    bury_many(box, 30)
    query(box, "UPDATE outbox_dead SET idempotency_key = 'same'")
    done = dead("resend", "--all", "--yes", check=1)
    assert done.stdout.endswith("\nresent 1 dead letter\n")
    assert len(re.findall(r"^dead letter \d+ stays: ", done.stderr, re.M)) == 10 and "\n... and 19 more\n" in done.stderr
    assert count(box, "outbox_dead") == 29


def test_a_producer_comes_in_between(sluice, pgdb):
    """It holds the key in an open transaction while the resend inserts. SQLite has one writer at a time."""
    box = pgdb
    sluice.run("init", db=box)
    bury_many(box, 3)
    query(box, "UPDATE outbox_dead SET idempotency_key = 'once' WHERE dead_id = 2")
    conn = connect(box)
    conn.autocommit = False
    cur = conn.cursor()
    cur.execute("INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', 'x', 'once')")
    p = sluice.start("dead", "resend", "--all", "--yes", db=box)
    wait_until(lambda: query(box, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT%'"),
               10, "a resend that waits")
    conn.commit()
    conn.close()
    p.wait(status=1)
    assert p.stdout().endswith("\nresent 2 dead letters\n") and "dead letter 2 stays: " in p.stderr()
    assert count(box) == 3 and count(box, "outbox_dead") == 1


# -- drop -----------------------------------------------------------------------------------------

def test_drop(dead, box):
    bury_many(box, 5)
    assert dead("drop", 2, 4, "--yes").stdout == \
        "2 dead letters of table outbox will be dropped\ndropped 2 dead letters\n"
    assert query(box, "SELECT dead_id FROM outbox_dead ORDER BY dead_id") == [(1,), (3,), (5,)]
    dead("drop", "--all", "--yes")
    assert count(box, "outbox_dead") == 0 and count(box) == 0


# -- May it be done? ------------------------------------------------------------------------------

@pytest.mark.parametrize("verb", ["resend", "drop"])
def test_without_a_terminal(dead, box, verb):
    bury_many(box, 3)
    done = dead(verb, "--all", check=2)
    assert done.stdout == "" and "no terminal to ask on\nhint: --yes" in done.stderr
    done = dead(verb, "--all", "--dry-run")
    assert done.stdout == f"3 dead letters of table outbox would be {'resent' if verb == 'resend' else 'dropped'}\n"
    assert count(box, "outbox_dead") == 3 and count(box) == 0


@pytest.mark.parametrize("verb", ["resend", "drop"])
@pytest.mark.parametrize("answer", [b"y\n", b"yes\n", b"n\n", b"\n", b"\x04"])
def test_on_a_terminal(sluice, box, verb, answer):
    bury_many(box, 2)
    ours, theirs = pty.openpty()
    p = sluice.start("dead", verb, "--all", db=box, stdin=theirs)
    wait_until(lambda: "[y/N]" in p.stderr(), 10, "the question")
    assert p.stdout().startswith("2 dead letters of table outbox will be ")
    assert f"{verb} them? [y/N] " in p.stderr() and count(box, "outbox_dead") == 2
    os.write(ours, answer)
    yes = answer.startswith(b"y")
    p.wait(status=0 if yes else 1)
    assert count(box, "outbox_dead") == (0 if yes else 2)
    assert yes or "nothing was " in p.stderr()
    os.close(ours)
    os.close(theirs)


def test_what_may_have_been_delivered(sluice, box, dead):
    """It is marked, can be picked, and the question of resend tells of it."""
    bury_many(box, 4)
    query(box, "UPDATE outbox_dead SET unknown = (1 = 1) WHERE dead_id <= 2")
    assert [line.split()[-2] for line in dead("list").stdout.splitlines()[1:5]] == ["-", "-", "maybe", "maybe"]
    assert [d["unknown"] for d in listed(dead("list", "--json"))["dead_letters"]] == [False, False, True, True]
    assert json.loads(dead("show", 1, "--json").stdout)["unknown"] is True
    assert "sent             maybe\n" in dead("show", 1).stdout and "sent             -\n" in dead("show", 3).stdout
    for verb, told in (("resend", True), ("drop", False)):
        ours, theirs = pty.openpty()
        p = sluice.start("dead", verb, "--all", db=box, stdin=theirs)
        wait_until(lambda: "[y/N]" in p.stderr(), 10, "the question")
        assert ("2 of them may have been delivered, and would be twice\n" in p.stderr()) == told
        os.write(ours, b"n\n")
        p.wait(status=1)
        os.close(ours)
        os.close(theirs)
    dead("drop", "--unknown", "--yes")
    assert query(box, "SELECT dead_id FROM outbox_dead ORDER BY dead_id") == [(3,), (4,)]


def test_what_a_dead_node_left_is_listed(dead, box):
    """Of a node that lives nothing is; nor is what a journal knows more of, or one of a longer name."""
    insert = ("INSERT INTO outbox_consumed (id, topic, event_type, payload, content_type, attempts, epoch, worker, journal,"
              " idempotency_key) VALUES (?, 't', '', 'x', '', 0, 1, ?, ?, ?)")
    query(box, "INSERT INTO outbox_nodes (session, node, strategy, assign, workers, born, lives_until)"
               " VALUES (1, 'a', 'lanes', 'ring', 1, 1, '2100-01-01 00:00:00.000')")
    for id, worker, journal in ((1, "a/0", None), (2, "b/0", None), (3, "b/1", 7), (4, "a/b/12", None), (5, "a1/0", None)):
        query(box, insert, id, worker, journal, f"i{id}")
    query(box, insert, 6, "a/1", None, None)
    query(box, "UPDATE outbox_consumed SET consumed_at = '2000-01-01 00:00:00.000' WHERE id = 6")  # in an earlier life
    for verb in (["list", "--json"], ["show", 1], ["resend", "--error", "nothing", "--yes"], ["drop", "--key", "k", "--yes"]):
        dead(*verb)
        got = {d["id"]: d for d in listed(dead("list", "--unknown", "--json"))["dead_letters"]}
        assert sorted(got) == [2, 4, 5, 6] and got[2]["attempts"] == 1
        assert got[2]["error"] == "consumed by b/0, which ended before the answer"
        assert query(box, "SELECT id FROM outbox_consumed ORDER BY id") == [(1,), (3,)]
    dead("drop", "--unknown", "--yes")
    query(box, "UPDATE outbox_consumed SET worker = 'c/0', journal = NULL")
    assert dead("drop", "--unknown", "--yes").stdout.endswith("dropped 2 dead letters\n")  # by the command itself


def test_progress_on_a_terminal(sluice, box):
    """Only there, and wiped at the end."""
    bury_many(box, scaled(2000, 600))
    ours, theirs = pty.openpty()
    shown = []

    def read():
        try:
            while data := os.read(ours, 65536):
                shown.append(data)
        except OSError:
            pass
    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(sluice.argv("dead", "resend", "--all", "--yes", db=box), env=sluice.env(), stderr=theirs,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=sluice.cwd)
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert done.returncode == 0 and b"resending [" in b"".join(shown)


# -- Wrong use ------------------------------------------------------------------------------------

@pytest.mark.parametrize("args,words", [
    ([], "what is to be done is missing\nhint: list, show, resend or drop"),
    (["lst"], "'lst' cannot be done\nhint: did you mean list?"),
    (["revive"], "'revive' cannot be done\nhint: "),
    (["list", "7"], "list takes no argument '7'\nhint: sluice dead show 7"),
    (["list", "--yes"], "--yes is for resend and drop"),
    (["list", "--dry-run"], "--dry-run is for resend and drop"),
    (["list", "--limit", "0"], "limit"),
    (["list", "--limit", "x"], "limit"),
    (["list", "--older-than", "soon"], "older"),
    (["list", "--older-than", "-1s"], "older"),
    (["list", "--error", ""], "--error is empty"),
    (["list", "--topic", ""], "--topic is empty"),
    (["list", "--all", "--key", "k"], "--all and another filter"),
    (["list", "--topic", b"\xff"], "--topic is not UTF-8"),
    (["show"], "show takes the number of one dead letter"),
    (["show", "1", "2"], "show takes the number of one dead letter"),
    (["show", "x"], "'x' is no number of a dead letter\nhint: "),
    (["show", "1x"], "'1x' is no number"),
    (["show", "0"], "'0' is no number"),
    (["show", "+1"], "'+1' is no number"),
    (["show", " 1"], "' 1' is no number"),
    (["show", ""], "'' is no number"),
    (["show", "99999999999999999999"], "is no number"),
    (["show", "1", "--topic", "t"], "by number or by filter, not both"),
    (["show", "1", "--limit", "3"], "--limit is for list"),
    (["resend"], "which dead letters are to be resent?\nhint: "),
    (["resend", "--yes"], "which dead letters are to be resent?\nhint: "),
    (["drop", "--yes"], "which dead letters are to be dropped?\nhint: "),
    (["drop", "--dry-run"], "which dead letters are to be dropped?\nhint: "),
    (["drop", "1", "--all", "--yes"], "by number or by filter, not both"),
    (["drop", "1", "--topic", "t", "--yes"], "by number or by filter, not both"),
    (["drop", "1", "two", "--yes"], "'two' is no number"),
    (["drop", "--all", "--limit", "3", "--yes"], "--limit is for list"),
    (["resend", "--all", "--json", "--yes"], "--json is for list and show"),
    (["resend", "--error", "", "--yes"], "--error is empty"),
    (["resend", "--al", "--yes"], "unknown flag --al"),
])
def test_wrong_use(sluice, sqlitedb, args, words):
    sluice.run("init", db=sqlitedb)
    bury_many(sqlitedb, 2)
    done = sluice.run("dead", *[os.fsdecode(a) for a in args], db=sqlitedb, check=2)
    assert done.stdout == "" and words in done.stderr and "\nhint: " in done.stderr
    assert count(sqlitedb, "outbox_dead") == 2


@pytest.mark.parametrize("args", [["list"], ["show", "1"], ["resend", "--all", "--yes"], ["drop", "1", "--yes"]])
def test_no_table(sluice, db, args):
    """Status 1 with a hint, or 3 where there is no file; 4 for a schema of the future."""
    done = sluice.run("dead", *args, db=db, check=1 if is_postgres(db) else 3)
    assert "sluice init" in done.stderr
    sluice.run("init", db=db)
    query(db, "UPDATE outbox_meta SET value = '999' WHERE name = 'schema_version'")
    sluice.run("dead", *args, db=db, check=4)


def test_no_server(sluice):
    done = sluice.run("dead", "list", db="postgresql://nobody@127.0.0.1:1/none", check=3)
    assert "sluice dead: " in done.stderr


# -- Large and elsewhere --------------------------------------------------------------------------

def refuse(url, id):
    """This dead letter cannot be deleted, and no constraint says so, for which each would be tried alone. Returns the
    statement that lets it go."""
    if is_postgres(url):
        query(url, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'integer overflow'; END $$")
        query(url, f"CREATE TRIGGER t_no BEFORE DELETE ON outbox_dead FOR EACH ROW WHEN (OLD.id = {id}) EXECUTE FUNCTION no()")
        return "DROP TRIGGER t_no ON outbox_dead"
    query(url, f"CREATE TRIGGER t_no BEFORE DELETE ON outbox_dead WHEN OLD.id = {id} BEGIN"
               " SELECT abs(-9223372036854775807 - 1); END")
    return "DROP TRIGGER t_no"


@pytest.mark.parametrize("verb", ["resend", "drop"])
def test_many(sluice, dead, box, verb):
    """No transaction is large: when one in the middle fails, all before it is done, and stays done."""
    n = scaled(5000, 2000)
    bury_many(box, n)
    let_go = refuse(box, n // 2 + 1)
    done = dead(verb, "--all", "--yes", check=1)
    assert "integer overflow" in done.stderr
    left = count(box, "outbox_dead")
    assert 500 <= left <= n - 500 and (n - left) % 500 == 0
    assert count(box) == (n - left if verb == "resend" else 0)
    query(box, let_go)
    dead(verb, "--all", "--yes")
    assert count(box, "outbox_dead") == 0 and count(box) == (n if verb == "resend" else 0)


def test_killed_in_the_middle(sluice, dead, box):
    """Nothing is lost and nothing is there twice; the rest goes the next time."""
    n = scaled(25000, 2000)
    bury_many(box, n)
    p = sluice.start("dead", "resend", "--all", "--yes", db=box)
    wait_until(lambda: count(box) > 0 or not p.running, 10, "the first ones")
    p.kill9()
    wait_until(lambda: count(box) + count(box, "outbox_dead") == n, 10, "the end of its transaction")
    dead("resend", "--all", "--yes")
    rows = query(box, "SELECT entity_key, payload FROM outbox ORDER BY id")
    assert len(rows) == n
    for key in {k for k, _ in rows}:
        numbers = [int(p) for k, p in rows if k == key]
        assert numbers == sorted(set(numbers))


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
    receipt = json.loads(sluice.run("pull", *flags, db=db).stdout)["receipt"]
    sluice.run("pull", "--bury", "--reason", "because", receipt, *flags, db=db)
    got = json.loads(sluice.run("dead", "list", "--json", "--error", "cause", *flags, db=db).stdout)
    assert got["table"] == flags[1] and got["dead_letters"][0]["key"] == "k"
    assert json.loads(sluice.run("dead", "show", 1, "--json", *flags, db=db).stdout)["payload"] == 1
    sluice.run("dead", "resend", "--key", "k", "--topic", "t*", "--yes", *flags, db=db)
    assert query(db, f"SELECT no, what, who, once, tries FROM {flags[1]}") == [(2, "t", "k", "i", 0)]
    sluice.run("run", "--sink", f"file:{tmp_path}/out", "--drain", *flags, db=db)
    assert len((tmp_path / "out").read_text().splitlines()) == 1
