"""sluice keys: keys that wait are listed, retried, parked and resumed, and their first message is skipped, beside running
nodes. What is known of a message in flight, step by step, is in tests/unit/cli/test_keys.c."""
import contextlib
import json
import os
import pty
import re

import pytest

from checker import read_sink
from conftest import assert_in_order, end_claims
from harness import Gate, is_postgres, query, too_large, wait_until

LISTED = {"key", "alone", "state", "by_hand", "id", "topic", "behind", "attempts", "since", "age_seconds", "due_seconds",
          "reason"}
BIG = '"' + "x" * 100_000 + '"'
# A limited node may write files of at most ROOM bytes more than the sink's has at first: not one with BIG in it, while
# a SQLite file stays far below.
EMPTY, ROOM = 16 << 20, 64 << 10


@pytest.fixture
def keys(sluice, box):
    """Runs `sluice keys ...`."""
    return lambda *args, **kw: sluice.run("keys", *args, db=box, **kw)


@pytest.fixture
def out(tmp_path):
    path = tmp_path / "out.jsonl"
    with open(path, "wb") as f:
        f.seek(EMPTY - 1)
        f.write(b"\n")
    return path


@pytest.fixture
def start(sluice, box, out):
    """Starts a node. A limited one fails with large messages, and tries them again in an hour."""
    def run(*flags, node="n1", limited=False, retry="1h", env=None):
        wrapper = sluice.wrapper
        if limited:
            sluice.wrapper = ["sh", "-c", f'ulimit -f {(EMPTY + ROOM) // 512}; exec "$@"', "sh", *wrapper]
        p = sluice.start("run", "--sink", f"file:{out}", "--node", node, "--poll", "20ms", "--retry-base", retry,
                         "--retry-max", retry, *flags, db=box, env=env)
        sluice.wrapper = wrapper
        return p
    return run


def never(url):
    return "'infinity'" if is_postgres(url) else "'9999-12-31 23:59:59.999'"


def push(sluice, url, key, *payloads, topic="t"):
    """The id of the first one."""
    before = query(url, "SELECT coalesce(max(id), 0) FROM outbox")[0][0]
    lines = [json.dumps({"topic": topic, "payload": json.loads(p), **({"key": key} if key is not None else {})})
             for p in payloads]
    sluice.run("push", "--lines", "-", db=url, input="\n".join(lines))
    return query(url, "SELECT min(id) FROM outbox WHERE id > ?", before)[0][0]


def block(sluice, url, *flags):
    """All that waits fails once, and waits for an hour."""
    with too_large(sluice) as sink:
        sluice.run("run", "--sink", sink, "--drain", "--retry-base", "1h", "--retry-max", "1h", *flags, db=url)


def park_by_policy(url, id):
    """As a node does at max_attempts."""
    query(url, f"UPDATE outbox SET available_at = {never(url)} WHERE id = ?", id)
    query(url, f"UPDATE outbox_keys SET due_at = {never(url)} WHERE head = ?", id)


def listed(done):
    got = json.loads(done.stdout)
    assert set(got) == {"table", "blocked", "parked", "alone", "keys"}
    for key in got["keys"]:
        assert set(key) == LISTED
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", key["since"]) and key["age_seconds"] > -60
    return got


def states(keys):
    return {k["key"]: k["state"] for k in listed(keys("--json"))["keys"]}


def dead(url):
    return query(url, "SELECT id, last_error, attempts FROM outbox_dead ORDER BY id")


def lines(path):
    with open(path, "rb") as f:
        f.seek(EMPTY)
        whole = f.read().rpartition(b"\n")[0]  # what fails to be written is there for a moment
        return [json.loads(line) for line in whole.splitlines()]


def assert_all_in_order(path):
    """Once nobody writes any more."""
    with open(path, "rb") as f:
        f.seek(EMPTY)
        copy = path.with_suffix(".copy")
        copy.write_bytes(f.read())
    assert_in_order(read_sink(copy))


def delivered(path, key):
    return [line["payload"] for line in lines(path) if line["key"] == key]


# -- list -----------------------------------------------------------------------------------------

def test_list(sluice, keys, box):
    assert keys().stdout == keys("list").stdout == "no key of table outbox is blocked or parked\n"
    assert listed(keys("--json")) == {"table": "outbox", "blocked": 0, "parked": 0, "alone": 0, "keys": []}
    first = push(sluice, box, "a", "1", "2", "3")
    second = push(sluice, box, "b", "4", topic="mails")
    third = push(sluice, box, None, "5")
    block(sluice, box)
    park_by_policy(box, second)
    query(box, f"UPDATE outbox SET available_at = {never(box)} WHERE id = ?", third)
    keys("park", "--key", "c", "--reason", "by me", "--yes")
    got = listed(keys("--json"))
    assert (got["blocked"], got["parked"], got["alone"]) == (1, 2, 1)
    a, = [k for k in got["keys"] if k["key"] == "a"]
    assert (a["alone"], a["state"], a["by_hand"], a["id"], a["topic"], a["behind"], a["attempts"]) == \
        (False, "blocked", False, first, "t", 2, 1)
    assert a["due_seconds"] > 600 and "File too large" in a["reason"]
    b, = [k for k in got["keys"] if k["key"] == "b"]
    assert (b["state"], b["by_hand"], b["id"], b["behind"], b["due_seconds"], b["topic"]) == \
        ("parked", False, second, 0, None, "mails")
    c, = [k for k in got["keys"] if k["key"] == "c"]
    assert (c["state"], c["by_hand"], c["id"], c["topic"], c["reason"]) == ("parked", True, None, None, "by me")
    alone, = [k for k in got["keys"] if k["alone"]]
    assert (alone["key"], alone["state"], alone["id"]) == (None, "parked", third)
    text = keys().stdout.splitlines()
    assert re.fullmatch(r"  key +state +head +behind +attempts +age +due in +reason", text[0])
    assert any(re.match(rf"  a +blocked +{first} +2 +1 .* \S+ +No|  a +blocked +{first} +2 +1 ", line) for line in text)
    assert any(re.match(rf"  message {third} +parked +{third} ", line) for line in text)
    assert text[-1] == "1 key blocked and 2 parked, 1 message parked, in table outbox"
    assert keys("--limit", 2).stdout.endswith("in table outbox; the first 2 are shown\n")

    def found(*flags):
        return {k["key"] or k["id"] for k in listed(keys("--json", *flags))["keys"]}
    assert found("--blocked") == found("--key", "a") == {"a"}
    assert found("--parked") == {"b", "c", third}
    assert found("--topic", "mails") == found("--topic", "m*") == {"b"} and found("--topic", "t") == {"a", third}
    assert found("--topic", "t", "--parked") == {third} and found("--older-than", "1h") == set()
    hour_ago = "now() - interval '2 hours'" if is_postgres(box) else "strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 hours')"
    query(box, f"UPDATE outbox_keys SET since = {hour_ago} WHERE entity_key = 'b'")
    assert found("--older-than", "1h") == {"b"} and listed(keys("--json"))["keys"][0]["key"] == "b"
    assert keys("--key", "nobody").stdout == "no key of table outbox matches\n"
    status = json.loads(sluice.run("status", "--json", db=box).stdout)
    assert (status["blocked_keys"], status["parked_keys"]) == (3, 2)
    assert "\nparked     2 of them\n" in sluice.run("status", db=box).stdout


def test_odd_texts(sluice, keys, box):
    """What a terminal would obey is not printed, and JSON has all of it. The empty key is a key like any other."""
    odd = "k\x1b[2J" + "é" * 100
    keys("park", "--key", odd, "--reason", "\x07", "--yes")
    keys("park", "--key", "", "--yes")
    text = keys().stdout + keys("resume", "--key", odd, "--dry-run").stdout
    assert "\x1b" not in text and "\x07" not in text and "k?[2J" in text
    assert {k["key"] for k in listed(keys("--json"))["keys"]} == {odd, ""}
    assert keys("resume", "--key", "", "--yes").stdout.endswith("\nresumed 1 key\n")
    assert states(keys)[odd] == "parked"


# -- retry ----------------------------------------------------------------------------------------

def test_retry(sluice, keys, box, out, start, ordered):
    """Blocked keys are due at once; parked ones are not touched, nor is what its producer has scheduled."""
    push(sluice, box, "a", BIG, "1")
    push(sluice, box, "b", BIG, "2")
    parked = push(sluice, box, "c", BIG)
    sluice.run("push", "--topic", "t", "--key", "later", "--delay", "1d", "0", db=box)
    p = start("--strategy", ordered, limited=True)

    def tried(n):
        return query(box, "SELECT count(*) FROM outbox WHERE attempts = ?", n)[0][0]

    def behind():
        return {k["key"]: k["behind"] for k in listed(keys("--json"))["keys"]}
    wait_until(lambda: tried(1) == 3 and behind() == {"a": 1, "b": 1, "c": 0, "later": 0}, 20, "keys that are blocked")
    park_by_policy(box, parked)
    done = keys("retry", "--key", "a", "--yes")
    assert done.stdout == "1 key of table outbox will be retried; 1 message waits behind\nretried 1 key\n"
    wait_until(lambda: tried(2) == 1, 20, "a second attempt")
    done = keys("retry", "--all", "--yes")
    assert done.stdout == "1 key waits for a message that is scheduled, and is left alone\n" \
        "2 keys of table outbox will be retried; 2 messages wait behind\nretried 2 keys\n"
    wait_until(lambda: tried(3) == 1 and tried(2) == 1, 20, "attempts of both")
    done = keys("retry", "--key", "c", "--key", "nobody", "--yes", check=1)
    assert "key 'c' is not blocked\nkey 'nobody' is not blocked\n" in done.stderr
    assert "2 of 2 keys are not blocked\nhint: " in done.stderr
    assert states(keys)["c"] == "parked" and states(keys)["later"] == "blocked"
    p.term()
    p.wait(status=0)
    start("--strategy", ordered)
    keys("retry", "--topic", "t", "--yes")
    wait_until(lambda: len(delivered(out, "a")) == len(delivered(out, "b")) == 2, 20, "what waited")
    assert delivered(out, "a")[1] == 1 and delivered(out, "b")[1] == 2
    assert delivered(out, "c") == delivered(out, "later") == []


# -- park and resume ------------------------------------------------------------------------------

def test_park_and_resume(sluice, keys, box, out, start, ordered):
    """Nothing of a parked key is delivered, whatever comes; then all of it, in order. The others go on."""
    for node in ("n1", "n2"):
        start("--strategy", ordered, node=node)
    push(sluice, box, "a", "1")
    push(sluice, box, "b", "1")
    wait_until(lambda: len(lines(out)) == 2, 20, "both keys")
    done = keys("park", "--key", "a", "--key", "empty", "--reason", "being repaired", "--yes")
    assert done.stdout.endswith("\nparked 2 keys\n") and "2 keys of table outbox will be parked: nothing " in done.stdout
    for n in range(2, 6):
        push(sluice, box, "a", str(n))
        push(sluice, box, "empty", str(n))
        push(sluice, box, "b", str(n))
        wait_until(lambda: len(delivered(out, "b")) == n, 20, "the other key")
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox WHERE held" if is_postgres(box) else
                             "SELECT count(*) FROM outbox WHERE held = 1") == [(8,)], 20, "what is set aside")
    assert delivered(out, "a") == [1] and delivered(out, "empty") == []
    assert keys("park", "--key", "a", "--yes").stdout.endswith("\nkey 'a' is parked already\nparked 0 keys\n")
    a, = listed(keys("--json", "--key", "a"))["keys"]
    assert (a["state"], a["behind"], a["reason"], a["by_hand"]) == ("parked", 3, "being repaired", True)
    done = keys("resume", "--key", "a", "--yes")
    assert done.stdout == "1 key of table outbox will be resumed; 3 messages wait behind\nresumed 1 key\n"
    wait_until(lambda: delivered(out, "a") == [1, 2, 3, 4, 5], 20, "the key that was resumed")
    assert delivered(out, "empty") == [] and states(keys)["empty"] == "parked"
    assert keys("resume", "--all", "--yes").stdout.endswith("\nresumed 1 key\n")
    wait_until(lambda: delivered(out, "empty") == [2, 3, 4, 5], 20, "the other one")
    wait_until(lambda: states(keys) == {}, 20, "keys that wait for nothing")
    done = keys("resume", "--key", "a", "--yes", check=1)
    assert "key 'a' is not parked\n" in done.stderr and "no key of table outbox was changed\n" in done.stdout
    sluice.close()
    assert_all_in_order(out)


def test_resume_what_the_policy_parked(sluice, keys, box, out, start, ordered):
    """The first message is tried as if for the first time."""
    first = push(sluice, box, "a", "1", "2")
    block(sluice, box, "--strategy", ordered)
    query(box, "UPDATE outbox SET attempts = 7 WHERE id = ?", first)
    park_by_policy(box, first)
    start("--strategy", ordered)
    push(sluice, box, "b", "0")
    wait_until(lambda: delivered(out, "b") == [0], 20, "the other key")
    keys("retry", "--all", "--yes")
    assert states(keys) == {"a": "parked"}
    assert keys("resume", "--message", first + 1, "--yes").stdout == "no key of table outbox matches\n"
    keys("resume", "--message", first, "--yes")
    wait_until(lambda: delivered(out, "a") == [1, 2], 20, "the key that was resumed")
    assert [line["attempt"] for line in lines(out) if line["id"] == first] == [1]


def test_a_parked_key_keeps_its_lane(sluice, keys, box, out):
    """The lane of a key without messages is that which its messages will have, also with another number of lanes."""
    names = ["", "a", "order:9182", "käse", "日本", "x" * 512, "é" * 256, "mixed ascii äöü " * 9]
    for name in names:
        keys("park", "--key", name, "--yes")

    def compare():
        for name in names:
            sluice.run("push", "--topic", "t", "--key", name, "1", db=box)
        rows = query(box, "SELECT k.entity_key, k.lane, o.lane FROM outbox_keys k JOIN outbox o ON o.entity_key = k.entity_key")
        query(box, "DELETE FROM outbox")
        assert {row[0] for row in rows} == set(names)
        assert [(key, ours) for key, ours, theirs in rows if ours != theirs] == []
        return [row[1] for row in rows]
    assert max(compare()) < 64
    sluice.run("lanes", "--set", 7, db=box)
    assert states(keys) == {name: "parked" for name in names}
    assert max(compare()) < 7


# -- skip-head ------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["blocked", "policy", "by hand"])
def test_skip_head(sluice, keys, box, out, start, ordered, how):
    """Beside nodes that deliver other keys. The key goes on in order, unless an operator stopped it."""
    first = push(sluice, box, "a", BIG, "2", "3")
    for node in ("n1", "n2"):
        start("--strategy", ordered, node=node, limited=True)
    wait_until(lambda: states(keys) == {"a": "blocked"} and listed(keys("--json"))["keys"][0]["behind"] == 2, 20,
               "a key that is blocked")
    if how == "policy":
        park_by_policy(box, first)
    elif how == "by hand":
        keys("park", "--key", "a", "--yes")
    for n in range(5):
        push(sluice, box, "b", str(n))
    wait_until(lambda: delivered(out, "b") == list(range(5)), 20, "the other key")
    done = keys("skip-head", "--key", "a", "--wait", "60s", "--yes")
    assert done.stdout.startswith(
        f"message {first}, the first of key 'a' of table outbox, will become a dead letter; 2 messages wait behind it\n"
        f"skipped message {first}: it is a dead letter now\n")
    (id, error, attempts), = dead(box)
    assert (id, attempts) == (first, 1) and "File too large" in error
    if how == "by hand":
        assert "key 'a' was parked by hand, and still is: " in done.stdout
        push(sluice, box, "b", "5")
        wait_until(lambda: delivered(out, "b") == list(range(6)), 20, "the other key")
        assert delivered(out, "a") == [] and states(keys) == {"a": "parked"}
        keys("resume", "--key", "a", "--yes")
    wait_until(lambda: delivered(out, "a") == [2, 3], 20, "what stood behind it")
    wait_until(lambda: states(keys) == {}, 20, "keys that wait for nothing")
    query(box, "UPDATE outbox_dead SET payload = '4'")
    sluice.run("dead", "resend", "--all", "--yes", db=box)
    wait_until(lambda: delivered(out, "a") == [2, 3, 4], 20, "what was resent")
    sluice.close()
    assert_all_in_order(out)


def test_skip_head_without_nodes(sluice, keys, box, out):
    """By hand, a key that no node has looked at, message by message."""
    first = push(sluice, box, "a", "1", "2", "3")
    keys("park", "--key", "a", "--yes")
    assert f"skipped message {first}: " in keys("skip-head", "--key", "a", "--yes").stdout
    assert f"skipped message {first + 1}: " in keys("skip-head", "--key", "a", "--yes").stdout
    assert dead(box) == [(first, "skipped by an operator", 0), (first + 1, "skipped by an operator", 0)]
    keys("resume", "--all", "--yes")
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=box)
    assert delivered(out, "a") == [3]
    done = keys("skip-head", "--key", "a", "--yes", check=1)
    assert "key 'a' is not blocked or parked\n" in done.stderr and "can be skipped\nhint: " in done.stderr
    keys("park", "--key", "a", "--yes")
    assert "can be skipped\nhint: " in keys("skip-head", "--key", "a", "--yes", check=1).stderr


@contextlib.contextmanager
def in_flight(start, out, recorded, strategy, ids, *flags, **kw):
    """A node that stands before the file with these messages in its hands."""
    with Gate(out) as gate:
        p = start("--strategy", strategy, "--workers", 1, *flags, env=recorded.env, **kw)
        wait_until(lambda: recorded.at_the_gate(p, 1) == ids, 20, "messages in flight")
        yield p, gate


def has_write_lock(url, strategy):
    """On SQLite, who delivers by advisory has the only write transaction: an operator has to wait for it."""
    return strategy == "advisory" and not is_postgres(url)


@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_not_while_it_is_in_flight(sluice, keys, box, out, start, ordered, recorded, held, parked):
    """Held, since it had failed before, or for the first time; parked meanwhile, or not. It is delivered, and no dead
    letter."""
    if has_write_lock(box, ordered):
        pytest.skip("the operator waits for the write transaction")
    first = push(sluice, box, "a", "1", "2")
    if held:
        block(sluice, box, "--strategy", ordered)
        keys("retry", "--all", "--yes")
    with in_flight(start, out, recorded, ordered, [first, first + 1]) as (_, gate):
        if parked:
            keys("park", "--key", "a", "--yes")
        done = keys("skip-head", "--key", "a", "--wait", "500ms", "--yes", check=1)
        if held or parked:
            who = "" if ordered == "advisory" else r"n1(/1)?"
            assert re.search(rf"message {first} may be in flight: (node|worker|a worker) ?{who}", done.stderr)
            assert states(keys) == {"a": "parked" if parked else "blocked"}
            waits = sluice.start("keys", "skip-head", "--key", "a", "--wait", "60s", "--yes", db=box)
            wait_until(lambda: waits.stdout(), 10, "one that waits")
        assert dead(box) == []
        gate.open()
        if held or parked:
            waits.wait(status=1)
            assert re.search(rf"message {first} is (gone|not the first)", waits.stderr())
    wait_until(lambda: delivered(out, "a") == [1, 2], 20, "what was in flight")
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox") == [(0,)], 20, "both settled")
    assert dead(box) == []
    wait_until(lambda: states(keys) == ({"a": "parked"} if parked else {}), 20, "the state of the key")


@pytest.mark.parametrize("held", [False, True])
def test_it_waits_until_it_has_failed(sluice, keys, box, out, start, ordered, recorded, held):
    """What was in flight when the key was parked fails: then it is skipped, and was never delivered."""
    if has_write_lock(box, ordered):
        pytest.skip("the operator waits for the write transaction")
    first = push(sluice, box, "a", BIG, "2")
    if held:
        block(sluice, box, "--strategy", ordered)
        keys("retry", "--all", "--yes")
    # The retry comes so soon that nobody sees the message wait.
    with in_flight(start, out, recorded, ordered, [first, first + 1], limited=True, retry="1ms") as (_, gate):
        keys("park", "--key", "a", "--yes")
        p = sluice.start("keys", "skip-head", "--key", "a", "--wait", "60s", "--yes", db=box)
        wait_until(lambda: p.stdout(), 10, "one that waits")
        assert p.running and dead(box) == []
        gate.open()
        p.wait(status=0)
    (id, error, attempts), = dead(box)
    assert (id, attempts) == (first, 1 + held) and "File too large" in error
    keys("resume", "--key", "a", "--yes")
    wait_until(lambda: delivered(out, "a") == [2], 20, "what stood behind it")
    assert len(lines(out)) == 1


def test_a_key_that_fails_again_and_again(sluice, keys, box, out, start, ordered):
    """It is due or in flight nearly all the time, and is skipped between two attempts."""
    first = push(sluice, box, "a", BIG, "2")
    start("--strategy", ordered, limited=True, retry="150ms")
    wait_until(lambda: states(keys).get("a") == "blocked", 20, "a key that is blocked")
    keys("skip-head", "--key", "a", "--wait", "60s", "--yes")
    assert [row[0] for row in dead(box)] == [first]
    wait_until(lambda: delivered(out, "a") == [2], 20, "what stood behind it")
    wait_until(lambda: states(keys) == {}, 20, "keys that wait for nothing")
    assert len(lines(out)) == 1


def test_the_node_that_has_it_dies(sluice, keys, box, out, start, ordered, recorded):
    """Until its lease is over it may have the message, and then it may not."""
    if has_write_lock(box, ordered):
        pytest.skip("the operator waits for the write transaction")
    first = push(sluice, box, "a", "1", "2")
    with in_flight(start, out, recorded, ordered, [first, first + 1], "--lease", "10m") as (p, _):
        keys("park", "--key", "a", "--yes")
        p.kill9()
    if ordered != "advisory":
        assert " may be in flight: " in keys("skip-head", "--key", "a", "--wait", "1ms", "--yes", check=1).stderr
    skip = sluice.start("keys", "skip-head", "--key", "a", "--wait", "5m", "--yes", db=box)
    wait_until(lambda: skip.stdout(), 10, "one that waits")
    assert ordered == "advisory" or (skip.running and dead(box) == [])
    end_claims(box)
    skip.wait(status=0)
    assert [row[0] for row in dead(box)] == [first]
    keys("resume", "--key", "a", "--yes")
    start("--strategy", ordered, node="n2")
    wait_until(lambda: delivered(out, "a") == [2], 60, "what stood behind it")


def test_skip_while_all_goes_on(sluice, keys, box, out, start, ordered):
    """Many keys, many failures, and an operator who skips each; each message is delivered or a dead letter, never both,
    and keys keep their order."""
    bad = set()
    for k in range(6):
        first = push(sluice, box, f"k{k}", "0", BIG, "1", BIG, "2")
        bad |= {first + 1, first + 3}
    for node in ("n1", "n2"):
        start("--strategy", ordered, "--batch", 1, node=node, limited=True, retry="100ms")
    while len(lines(out)) < 18 or len(dead(box)) < 12:
        for key in listed(keys("--json"))["keys"]:
            if key["id"] in bad and key["attempts"] > 0:
                keys("skip-head", "--message", key["id"], "--wait", "20s", "--yes", check=False)
    assert {row[0] for row in dead(box)} == bad
    assert not bad & {line["id"] for line in lines(out)}
    for k in range(6):
        assert delivered(out, f"k{k}") == [0, 1, 2]
    wait_until(lambda: states(keys) == {}, 20, "keys that wait for nothing")
    sluice.close()
    assert_all_in_order(out)


# -- Messages alone -------------------------------------------------------------------------------

@pytest.mark.parametrize("strategy", ["skip-locked", "lanes"])
def test_messages_alone(sluice, keys, box, out, start, strategy):
    first = push(sluice, box, None, "1", "2", "3")
    key = "k" if strategy == "skip-locked" else None  # there a key is not what waits
    fourth = push(sluice, box, key, "4")
    query(box, f"UPDATE outbox SET available_at = {never(box)}, attempts = 9, last_error = 'no'")
    start("--strategy", strategy)
    push(sluice, box, None, "5")
    wait_until(lambda: [line["payload"] for line in lines(out)] == [5], 20, "the other message")
    got = listed(keys("--json"))
    assert (got["blocked"], got["parked"], got["alone"]) == (0, 0, 4)
    assert [(k["id"], k["key"], k["alone"], k["reason"]) for k in got["keys"]] == \
        [(first + i, None, True, "no") for i in range(3)] + [(fourth, key, True, "no")]
    done = keys("skip-head", "--message", first, "--yes")
    assert f"message {first} of table outbox, will become a dead letter; 0 messages wait behind it\n" in done.stdout
    assert dead(box) == [(first, "no", 9)]
    assert keys("resume", "--message", first + 1, "--yes").stdout == \
        "1 message of table outbox will be resumed; 0 messages wait behind\nresumed 1 message\n"
    wait_until(lambda: [line["payload"] for line in lines(out)] == [5, 2], 20, "what was resumed")
    assert lines(out)[1]["attempt"] == 1
    assert keys("resume", "--all", "--yes").stdout.endswith("\nresumed 2 messages\n")
    wait_until(lambda: sorted(line["payload"] for line in lines(out)) == [2, 3, 4, 5], 20, "the rest")
    done = keys("skip-head", "--message", first, "--yes", check=1)
    assert f"message {first} is neither parked nor the first of a key that waits\nhint: " in done.stderr


# -- May it be done? ------------------------------------------------------------------------------

VERBS = ["retry", "park", "resume", "skip-head"]


def one_of_each(sluice, url):
    """A blocked key and one that the policy has parked."""
    push(sluice, url, "blocked", "1", "2")
    parked = push(sluice, url, "parked", "3")
    block(sluice, url)
    park_by_policy(url, parked)


def snapshot(url):
    return query(url, "SELECT id, attempts, available_at FROM outbox ORDER BY id"), dead(url), \
        query(url, "SELECT entity_key, due_at, fence FROM outbox_keys ORDER BY 1")


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_terminal(sluice, keys, box, verb):
    one_of_each(sluice, box)
    key = "parked" if verb == "resume" else "blocked"
    before = snapshot(box)
    done = keys(verb, "--key", key, check=2)
    assert done.stdout == "" and "no terminal to ask on\nhint: --yes" in done.stderr
    assert " would b" in keys(verb, "--key", key, "--dry-run").stdout
    assert snapshot(box) == before
    keys(verb, "--key", key, "--yes")
    assert snapshot(box) != before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("answer", [b"y\n", b"n\n", b"\x04"])
def test_on_a_terminal(sluice, box, verb, answer):
    one_of_each(sluice, box)
    before = snapshot(box)
    ours, theirs = pty.openpty()
    p = sluice.start("keys", verb, "--key", "parked" if verb == "resume" else "blocked", db=box, stdin=theirs)
    wait_until(lambda: f"{verb} it? [y/N] " in p.stderr(), 10, "the question")
    assert " will b" in p.stdout() and snapshot(box) == before
    os.write(ours, answer)
    yes = answer.startswith(b"y")
    p.wait(status=0 if yes else 1)
    assert (snapshot(box) == before) == (not yes)
    assert yes or "nothing was " in p.stderr()
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("args,words", [
    (["lst"], "'lst' cannot be done\nhint: did you mean list?"),
    (["skip"], "'skip' cannot be done\nhint: "),
    (["retry", "a"], "'a' is one argument too many\nhint: --key 'a'"),
    (["list", "--yes"], "--yes is for all but list"),
    (["--dry-run"], "--dry-run is for all but list"),
    (["--limit", "0"], "limit"),
    (["--older-than", "soon"], "older"),
    (["--topic", ""], "--topic is empty"),
    (["--topic", b"\xff"], "--topic is not UTF-8"),
    (["--key", b"\xff"], "--key is not UTF-8"),
    (["park", "--key", "x" * 513], "--key has 513 bytes, and a key at most 512"),
    (["--blocked", "--parked"], "--blocked and --parked"),
    (["--key", "a", "--key", "b"], "list takes one --key"),
    (["--message", "1"], "--message is for resume and skip-head"),
    (["--reason", "x"], "--reason is for park"),
    (["retry"], "which keys are to be retried?\nhint: --key K"),
    (["retry", "--json", "--all"], "--json is for list"),
    (["retry", "--parked", "--yes"], "parked keys are not retried\nhint: sluice keys resume"),
    (["retry", "--all", "--key", "a"], "--all and another filter"),
    (["retry", "--wait", "1s", "--all"], "--wait is for skip-head"),
    (["resume", "--blocked", "--yes"], "blocked keys are not resumed\nhint: sluice keys retry"),
    (["resume", "--message", "1", "--key", "a"], "--message and another filter"),
    (["resume", "--message", "0"], "message"),
    (["park", "--yes"], "which key is to be parked?"),
    (["park", "--all", "--yes"], "--all is for retry and resume"),
    (["park", "--topic", "t", "--yes"], "park takes no filter"),
    (["skip-head", "--yes"], "skip-head takes one key, or one message"),
    (["skip-head", "--key", "a", "--key", "b", "--yes"], "skip-head takes one key, or one message"),
    (["skip-head", "--key", "a", "--message", "1", "--yes"], "skip-head takes one key, or one message"),
    (["skip-head", "--parked", "--yes"], "skip-head takes no filter"),
])
def test_wrong_use(sluice, sqlitedb, args, words):
    done = sluice.run("keys", *[os.fsdecode(a) for a in args], db=sqlitedb, check=2)
    assert done.stdout == "" and words in done.stderr and "hint: " in done.stderr


@pytest.mark.parametrize("args", [["list"], ["retry", "--all", "--yes"], ["park", "--key", "a", "--yes"],
                                  ["resume", "--all", "--yes"], ["skip-head", "--key", "a", "--yes"]])
def test_no_table(sluice, db, args):
    """Status 1 with a hint, or 3 where there is no file; 4 for a schema of the future."""
    done = sluice.run("keys", *args, db=db, check=1 if is_postgres(db) else 3)
    assert "sluice init" in done.stderr
    sluice.run("init", db=db)
    query(db, "UPDATE outbox_meta SET value = '999' WHERE name = 'schema_version'")
    sluice.run("keys", *args, db=db, check=4)


def test_other_names(sluice, db, tmp_path):
    """Another table, and other names of columns."""
    names = ["--table", "events", "--columns", "entity_key=aggregate_id,available_at=not_before,attempts=retry_count"]
    out = tmp_path / "out.jsonl"
    sluice.run("init", *names, db=db)
    for payload in ("1", "2", "3"):
        sluice.run("push", *names, "--topic", "t", "--key", "a", payload, db=db)
    with too_large(sluice) as sink:
        sluice.run("run", *names, "--sink", sink, "--drain", "--retry-base", "1h", "--retry-max", "1h", db=db)
    sluice.run("keys", "park", *names, "--key", "b", "--yes", db=db)
    got = listed(sluice.run("keys", "--json", *names, db=db))
    assert [(k["key"], k["state"]) for k in got["keys"]] == [("a", "blocked"), ("b", "parked")]
    sluice.run("keys", "skip-head", *names, "--key", "a", "--yes", db=db)
    sluice.run("keys", "retry", *names, "--all", "--yes", db=db)
    sluice.run("keys", "resume", *names, "--all", "--yes", db=db)
    sluice.run("run", *names, "--sink", f"file:{out}", "--drain", db=db)
    assert [json.loads(line)["payload"] for line in out.read_text().splitlines()] == [2, 3]
