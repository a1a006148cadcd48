"""sluice pull: messages for a script, with receipts to settle them by. With guard, which is its default,
and with skip-locked; what guard keeps in order is in test_order.py."""
import json
import os
import subprocess
import time

import pytest

from checker import check, commit, committed, dead_letters, delivery, Record
from conftest import claims_ended, end_claims
from harness import PATIENCE, all_stopped, is_postgres, pause_outside, query, scaled, wait_until


@pytest.fixture(params=["guard", "skip-locked"])
def strategy(request, sluice):
    """Both that a pull can have; guard without saying so."""
    if request.param != "guard":
        env = sluice.env
        sluice.env = lambda extra=None: env({"SLUICE_STRATEGY": request.param, **(extra or {})})
    return request.param


@pytest.fixture
def pull(sluice, box):
    """Pulls, and returns the lines that were printed."""
    def run(*flags):
        return [json.loads(line) for line in sluice.run("pull", *flags, db=box).stdout.splitlines()]
    return run


def status(sluice, url):
    return json.loads(sluice.run("status", "--json", db=url).stdout)


def receipts(lines):
    return [line["receipt"] for line in lines]


def held(url):
    """Who holds what, and by which epoch: (id, holder, epoch)."""
    by_message = query(url, "SELECT id, worker, epoch FROM outbox WHERE leased_until IS NOT NULL")
    of_turn = "'k' || o.entity_key = ANY (c.keys)" if is_postgres(url) else "c.claim = 'k' || o.entity_key"
    by_key = query(url, f"SELECT o.id, c.held_by, c.epoch FROM outbox o JOIN outbox_claims c ON {of_turn}")
    return sorted(by_message + by_key)


@pytest.mark.threads
def test_pull_and_ack(sluice, box, strategy, pull):
    messages = commit(box, 5)
    lines = pull("--node", "me", "--batch", 3)
    assert [line["id"] for line in lines] == [1, 2, 3]
    epoch = lines[0]["epoch"]
    dot = "." if strategy == "guard" else ""  # with the last message of its key, the key is free
    assert lines[0] == {"id": 1, "topic": "orders", "key": "order:1", "type": "", "payload": {"n": 1}, "headers": {},
                        "attempt": 1, "worker": "me", "epoch": epoch, "receipt": f"1:{epoch}{dot}"}
    assert held(box) == [(id, "me", epoch) for id in (1, 2, 3)]
    got = status(sluice, box)
    messages_held, keys_held = (0, 3) if strategy == "guard" else (3, 0)  # guard leases keys
    assert (got["total"], got["due"], got["leased"]) == (5, 5 - messages_held, messages_held)
    assert [(w["worker"], w["messages"], w["keys"]) for w in got["workers"]] == [("me", messages_held, keys_held)]
    assert sluice.run("pull", "--ack", *receipts(lines), db=box).stdout == ""
    assert query(box, "SELECT id FROM outbox ORDER BY id") == [(4,), (5,)]
    rest = pull()
    assert sorted([line["id"] for line in lines + rest]) == sorted(messages)
    assert pull() == []


def test_a_pull_that_stood_still_for_too_long_gives_all_back(sluice, box, strategy, fault_points, tmp_path):
    """It took, stood still, was forgotten, and wakes up while others share the table in another way."""
    commit(box, 5)
    out = tmp_path / "out.jsonl"
    puller = sluice.start("pull", "--lease", "1s", db=box, env={"SLUICE_FAULT": "pulled:1:stop"})
    wait_until(lambda: all_stopped(puller.pid), 10, "the stop")
    assert len(held(box)) == 5
    wait_until(lambda: claims_ended(box), 10, "the end of what it holds")
    sluice.run("run", "--strategy", "lanes", "--sink", f"file:{out}", "--drain", db=box)
    assert len(out.read_text().splitlines()) == 5
    puller.resume()
    puller.wait(status=0)
    assert puller.stdout() == ""
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_nothing_to_pull(sluice, box):
    done = sluice.run("pull", db=box)
    assert (done.stdout, done.stderr) == ("", "")


def test_auto_ack(sluice, box, strategy, pull):
    commit(box, 5)
    assert len(pull("--auto-ack", "--batch", 4)) == 4
    assert len(pull("--auto-ack")) == 1
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_auto_ack_to_a_full_disk_gives_the_messages_back(sluice, box, strategy):
    commit(box, 5)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(sluice.argv("pull", "--auto-ack", db=box), env=sluice.env(), stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output" in done.stderr
    got = status(sluice, box)
    assert (got["due"], got["leased"]) == (5, 0)


def test_retry(sluice, box, strategy, pull):
    commit(box, 3)
    lines = pull()
    sluice.run("pull", "--retry", lines[0]["receipt"], db=box)
    sluice.run("pull", "--retry", "--delay", "1h", "--reason", "mail server\nis down", lines[1]["receipt"], db=box)
    again = pull()
    assert [(line["id"], line["attempt"]) for line in again] == [(1, 2)]
    assert again[0]["epoch"] > lines[0]["epoch"]
    assert status(sluice, box)["scheduled"] == 1
    assert [id for id, _, _ in held(box)] == [1, 3]
    assert query(box, "SELECT last_error, attempts, worker FROM outbox WHERE id = 2") == [("mail server is down", 1, None)]


def test_bury(sluice, box, strategy, pull):
    messages = commit(box, 3)
    query(box, "UPDATE outbox SET headers = '{\"a\":\"1\"}', event_type = 'T', idempotency_key = 'once' WHERE id = 1")
    lines = pull()
    sluice.run("pull", "--bury", "--reason", "no such address", *receipts(lines)[:2], db=box)
    assert dead_letters(box) == {1, 2}
    assert status(sluice, box)["dead"] == 2
    [dead] = query(box, "SELECT topic, entity_key, event_type, payload, content_type, headers, idempotency_key, attempts,"
                        " last_error, epoch FROM outbox_dead WHERE id = 1")
    dead = [json.loads(v) if v == '{"a":"1"}' else v for v in dead]
    assert dead == ["orders", "order:1", "T", b'{"n":1}', "application/json", {"a": "1"}, "once", 1, "no such address",
                    lines[0]["epoch"]]
    sluice.run("pull", "--ack", lines[2]["receipt"], db=box)
    record = Record(delivery(1, json.dumps(line, separators=(",", ":"))) for line in lines[2:])
    check(messages, record, dead=dead_letters(box))
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_receipts_from_standard_input(sluice, box, strategy, pull):
    commit(box, 1000)
    lines = pull("--batch", 1000)
    text = "\n".join(receipts(lines)[:998]) + "\r\n\n"
    sluice.run("pull", "--ack", "-", db=box, input=text)
    assert query(box, "SELECT id FROM outbox ORDER BY id") == [(999,), (1000,)]
    sluice.run("pull", "--ack", lines[998]["receipt"], "-", db=box, input=lines[999]["receipt"])
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_receipt_works_once(sluice, box, strategy, pull):
    commit(box, 2)
    first, second = receipts(pull())
    sluice.run("pull", "--ack", first, db=box)
    for verdict in ("--ack", "--retry", "--bury"):
        done = sluice.run("pull", verdict, first, db=box, check=1)
        assert "1 of 1 messages are no longer yours" in done.stderr
    done = sluice.run("pull", "--ack", first, second, db=box, check=1)
    assert "1 of 2 messages are no longer yours" in done.stderr and "the others are settled" in done.stderr
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]
    assert dead_letters(box) == set()


@pytest.mark.threads
def test_a_lease_ends(sluice, box, strategy, pull):
    """Then the message is someone else's, and the old receipt is worth nothing."""
    commit(box, 2)
    old = pull("--lease", "10m", "--node", "slow")
    assert pull() == []
    end_claims(box)
    new = pull("--node", "next", "--lease", "1h")
    attempt = 1 if strategy == "guard" else 2  # guard counts what failed, not what was taken
    assert [(line["id"], line["attempt"]) for line in new] == [(1, attempt), (2, attempt)]
    assert new[0]["epoch"] == new[1]["epoch"] > old[1]["epoch"]
    for verdict in ("--ack", "--retry", "--bury"):
        done = sluice.run("pull", verdict, *receipts(old), db=box, check=1)
        assert "2 of 2 messages are no longer yours" in done.stderr
    assert held(box) == [(id, "next", new[0]["epoch"]) for id in (1, 2)]
    assert dead_letters(box) == set()
    sluice.run("pull", "--ack", *receipts(new), db=box)
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_receipt_outlives_its_lease_if_nobody_came(sluice, box, strategy, pull):
    commit(box, 1)
    [line] = pull("--lease", "1s")
    wait_until(lambda: claims_ended(box), 10, "the end of the lease")
    sluice.run("pull", "--ack", line["receipt"], db=box)
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_wait(sluice, box):
    """Until the first message, or until the time is over."""
    waiting = sluice.start("pull", "--wait", "1m", "--poll", "20ms", "--auto-ack", db=box)
    other = sluice.start("pull", "--wait", "200ms", db=box)
    started = time.monotonic()
    other.wait(10, status=0)
    assert time.monotonic() - started >= 0.1 and other.stdout() == ""
    assert waiting.running
    commit(box, 1)
    waiting.wait(10, status=0)
    assert json.loads(waiting.stdout())["id"] == 1


@pytest.fixture
def waiting(sluice, box):
    """A pull that waits for longer than its lease, as node 'p'."""
    process = sluice.start("pull", "--wait", "1h", "--lease", f"{int(1500 * PATIENCE)}ms", "--poll", "50ms", "--auto-ack",
                           "--node", "p", db=box)
    wait_until(lambda: lives_until(box, "p"), 10, "a node")
    return process


def lives_until(url, node):
    return {row[0] for row in query(url, f"SELECT lives_until FROM outbox_nodes WHERE node = '{node}'")}


def test_a_pull_that_waits_stays_a_node(sluice, box, waiting):
    """Who shares the table in another way is refused, not let in beside it once the first lease is over."""
    seen = set()

    def five():  # beats, of which a lease has three
        seen.update(lives_until(box, "p"))
        return len(seen) >= 5
    wait_until(five, 30, "heartbeats")
    done = sluice.run("run", "--sink", "null:", "--drain", db=box, check=1)
    assert "node 'p' lives and shares this table by strategy guard, not lanes" in done.stderr
    commit(box, 1)
    waiting.wait(10, status=0)
    assert json.loads(waiting.stdout())["id"] == 1
    sluice.run("run", "--sink", "null:", "--drain", db=box)


def test_a_pull_that_was_forgotten_joins_again(sluice, box, waiting):
    query(box, "DELETE FROM outbox_nodes")
    wait_until(lambda: lives_until(box, "p"), 10, "the node again")
    commit(box, 1)
    waiting.wait(10, status=0)


def test_a_pull_that_was_forgotten_finds_another_strategy(sluice, box, waiting):
    pause_outside(waiting, box)
    wait_until(lambda: claims_ended(box), 10, "the end of its life")
    node = sluice.start("run", "--sink", "null:", "--node", "n", db=box)
    node.wait_log("node started")
    waiting.resume()
    waiting.wait(10, status=1)
    assert "node 'n' lives and shares this table by strategy lanes, not guard" in waiting.stderr()


@pytest.mark.parametrize("args, words", [
    (["--ack"], ["which messages?", "receipts"]),
    (["--ack", "-"], ["which messages?"]),
    (["--ack", "nonsense"], ["'nonsense' is not a receipt", "ID:EPOCH"]),
    (["--ack", "1"], ["'1' is not a receipt"]),
    (["--ack", "1:"], ["is not a receipt"]),
    (["--ack", "1:2:3"], ["is not a receipt"]),
    (["--ack", "1:2x"], ["is not a receipt"]),
    (["1:1"], ["what to do with '1:1'?", "--ack, --retry or --bury"]),
    (["--ack", "--bury", "1:1"], ["one of --ack, --retry, --bury and --auto-ack"]),
    (["--ack", "--auto-ack", "1:1"], ["one of --ack, --retry, --bury and --auto-ack"]),
    (["--wait", "5"], ["'5' will not do for wait"]),
    (["--wait", "2d"], ["too large for wait"]),
    (["--batch", "0"], ["'0' is too small for batch", "from 1 to 10000"]),
    (["--batch", "many"], ["'many' will not do for batch"]),
    (["--lease", "10ms"], ["too small for lease"]),
    (["--sink", "null:"], ["--sink is no flag of this command", "sluice run"]),
    (["--akc", "1:1"], ["unknown flag --akc", "did you mean --ack?"]),
])
def test_wrong_use(sluice, sqlitedb, args, words):
    done = sluice.run("pull", *args, db=sqlitedb, check=2)
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


def test_a_wrong_receipt_on_standard_input_is_named(sluice, box, pull):
    commit(box, 1)
    [line] = pull()
    done = sluice.run("pull", "--ack", "-", db=box, input=f"{line['receipt']}\nnonsense\n", check=2)
    assert "standard input, line 2: not a receipt" in done.stderr
    assert query(box, "SELECT count(*) FROM outbox") == [(1,)], "nothing is settled"


@pytest.mark.parametrize("receipt", ["99999999999999999999:1", "1:99999999999999999999", "-1:1", "0x1:1", "1:2", "7:1"])
def test_receipts_of_nothing_settle_nothing(sluice, box, pull, receipt):
    commit(box, 1)
    pull()
    sluice.run("pull", "--ack", "--", receipt, db=box, check=2 if "x" in receipt else 1)
    assert query(box, "SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.threads
def test_many_pullers(sluice, box, strategy):
    """Eight at once, none with a message of another: every claim is exclusive."""
    n = scaled(800, 80)
    commit(box, n)
    query(box, "UPDATE outbox SET entity_key = 'k' || id")  # else the first holds all keys
    messages = committed(box)
    several = [sluice.start("pull", "--batch", n // 8, "--node", f"p{i}", db=box) for i in range(8)]
    record = Record()
    for p in several:
        p.wait(status=0)
        record += [delivery(0, line) for line in p.stdout().splitlines()]
    left = [json.loads(line) for line in sluice.run("pull", "--batch", n, db=box).stdout.splitlines()]
    record += [delivery(0, json.dumps(line, separators=(",", ":"))) for line in left]
    summary = check(messages, record, fenced=True, least=n)
    print(f"{len(several)} claims at once, {len(left)} messages left over; {summary}")
    assert summary.duplicates == 0 and len(summary.workers) >= 2


def test_the_script_of_the_manual(sluice, box, strategy):
    """pull | handle | pull --ack -, as `sluice pull --help` shows it."""
    commit(box, 20)
    script = ('"$SLUICE" pull --db "$URL" | while read -r line; do echo "$line" >> handled; '
              'printf "%s\\n" "$line" | sed "s/.*\\"receipt\\":\\"\\([0-9:.+]*\\)\\".*/\\1/"; done |'
              ' "$SLUICE" pull --db "$URL" --ack -')
    subprocess.run(["sh", "-c", script], cwd=sluice.cwd, env={**sluice.env(), "SLUICE": sluice.bin, "URL": box}, check=True)
    with open(os.path.join(sluice.cwd, "handled")) as f:
        assert [json.loads(line)["id"] for line in f] == list(range(1, 21))
    assert query(box, "SELECT count(*) FROM outbox") == [(0,)]


def test_batch_bytes(sluice, box, pull):
    for size in (600, 600, 10):
        query(box, "INSERT INTO outbox (topic, payload) VALUES ('t', ?)", b"1" * size)
    assert [line["id"] for line in pull("--batch-bytes", "1000")] == [1, 2]
    assert [line["id"] for line in pull("--batch-bytes", "1")] == [3]
