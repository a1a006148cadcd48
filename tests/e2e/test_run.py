"""sluice run: drain, signals, reload, sinks that fail."""
import json
import os
import re
import select
import signal
import stat
import time

import pytest

from checker import check, commit, committed, read_sink
from conftest import assert_in_order
from harness import PATIENCE, Gate, connect, is_postgres, query, scaled, wait_until
from servers import SilentServer


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out.jsonl")


def status(sluice, url):
    return json.loads(sluice.run("status", "--json", db=url).stdout)


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


def held(url):
    """What messages, keys and lanes somebody holds."""
    return query(url, "SELECT (SELECT count(*) FROM outbox WHERE leased_until IS NOT NULL)"
                      " + (SELECT count(*) FROM outbox_claims) + (SELECT count(*) FROM outbox_nodes)")[0][0]


def assert_all_once(messages, out, strategy="lanes"):
    record = read_sink(out)
    assert check(messages, record, least=len(messages)).duplicates == 0
    if strategy != "skip-locked":
        assert_in_order(record)
    return record


def ids(path):
    return sorted(d.id for d in read_sink(path))


# -- Drain ---------------------------------------------------------------------------------------

def test_drain_of_nothing(sluice, box, out):
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=box)
    assert os.path.getsize(out) == 0


def test_drain_leaves_what_is_not_due(sluice, box, out, strategy):
    messages = commit(box, 10)
    sluice.run("push", "--topic", "later", "--key", "k", "--delay", "1h", "1", db=box)
    sluice.run("run", "--strategy", strategy, "--sink", f"file:{out}", "--drain", db=box)
    check(messages, read_sink(out), least=10)
    assert query(box, "SELECT topic, attempts FROM outbox") == [("later", 0)]
    assert status(sluice, box)["scheduled"] == 1


@pytest.mark.parametrize("strategy", ["skip-locked", "guard"])
def test_drain_leaves_what_others_hold(sluice, box, out, strategy):
    commit(box, 10)
    pulled = sluice.run("pull", "--strategy", strategy, "--batch", 4, db=box).stdout.count("\n")
    sluice.run("run", "--strategy", strategy, "--sink", f"file:{out}", "--drain", db=box)
    assert pulled == 4 and ids(out) == list(range(5, 11))
    assert query(box, "SELECT id FROM outbox ORDER BY id") == [(1,), (2,), (3,), (4,)]


@pytest.mark.threads
def test_not_before_its_time(sluice, box, out):
    """The time is the database's; here that is the same machine's."""
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "10ms", db=box)
    node.wait_log("node started")
    due = time.time() + 1
    sluice.run("push", "--lines", "-", db=box, input=json.dumps({"topic": "t", "payload": 1, "available_at": due}) + "\n")
    commit(box, 1)
    wait_until(lambda: 2 in ids(out), 10, "the message that is due")
    wait_until(lambda: 1 in ids(out), 10, "the other one")
    assert time.time() >= due - 0.001
    node.term()
    node.wait(status=0)


# -- Stopping ------------------------------------------------------------------------------------

class Stuck:
    """A node with two workers, each with ten messages in flight that the gate keeps back. SQLite has
    one writer at a time: where the claim is a transaction, only one of them has."""

    def __init__(self, sluice, url, out, recorded, *flags):
        one = not is_postgres(url) and ("advisory" in flags or "transaction" in flags)
        self.messages = commit(url, 100)
        self.gate = Gate(out)
        self.node = sluice.start("run", "--sink", f"file:{out}", "--workers", 2, "--batch", 10, *flags, db=url,
                                 env=recorded.env)
        self.in_hand = wait_until(lambda: recorded.at_the_gate(self.node, 1 if one else 2), 10, "batches in flight")
        assert len(self.in_hand) == (10 if one else 20)


LEASE_ENDS = {  # of what is held; an open transaction has no such end
    "skip-locked": "SELECT min(leased_until) FROM outbox WHERE leased_until IS NOT NULL",
    "guard": "SELECT min(ends_at) FROM outbox_claims",
    "lanes": "SELECT min(lives_until) FROM outbox_nodes",
}


@pytest.mark.threads
def test_term_finishes_the_batches_in_hand(sluice, box, out, recorded, strategy):
    sig = signal.SIGINT if strategy == "guard" else signal.SIGTERM
    stuck = Stuck(sluice, box, out, recorded, "--strategy", strategy, "--lease",
                  "60s" if strategy == "advisory" else f"{int(4 * PATIENCE)}s")  # after a whole one they are recalled
    stuck.node.signal(sig)
    stuck.node.wait_log("stopping after this turn")
    if strategy in LEASE_ENDS:
        before = query(box, LEASE_ENDS[strategy])
        wait_until(lambda: query(box, LEASE_ENDS[strategy]) > before, 10, "it holds on to them: the leases are renewed")
    assert stuck.node.running and recorded.in_flight(stuck.node) == stuck.in_hand
    stuck.gate.open()
    stuck.node.wait(status=0)
    assert ids(out) == stuck.in_hand
    got = status(sluice, box)
    left = 100 - len(stuck.in_hand)
    assert (got["total"], got["due"], got["leased"]) == (left, left, 0) and held(box) == 0
    assert f"sent={len(stuck.in_hand)}" in stuck.node.stderr()


@pytest.mark.threads
def test_a_second_term_gives_back_what_is_in_hand(sluice, box, out, recorded, strategy):
    stuck = Stuck(sluice, box, out, recorded, "--strategy", strategy)
    stuck.node.term()
    stuck.node.wait_log("stopping after this turn")
    stuck.node.term()
    stuck.node.wait(10, status=0)  # the gate is still closed
    assert "stopping now" in stuck.node.stderr()
    stuck.gate.open()
    assert ids(out) == []
    assert held(box) == 0, "everything is given back"
    assert query(box, "SELECT DISTINCT attempts, worker FROM outbox") == [(0, None)], "as if never taken"
    sluice.run("run", "--strategy", strategy, "--sink", f"file:{out}", "--drain", db=box)
    record = assert_all_once(stuck.messages, out, strategy)
    assert {d.attempt for d in record} == {1}


def test_a_second_term_ends_open_transactions(sluice, pgdb, out, recorded):
    sluice.run("init", db=pgdb)
    stuck = Stuck(sluice, pgdb, out, recorded, "--strategy", "skip-locked", "--hold", "transaction")
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                   " AND state = 'idle in transaction'") == [(2,)], 10, "two open transactions")
    stuck.node.term()
    stuck.node.wait_log("stopping after this turn")
    stuck.node.term()
    stuck.node.wait(10, status=0)
    stuck.gate.open()
    sluice.run("run", "--strategy", "skip-locked", "--sink", f"file:{out}", "--drain", db=pgdb)
    assert_all_once(stuck.messages, out, "skip-locked")


@pytest.mark.parametrize("strategy", ["skip-locked", "lanes"])
def test_stopping_with_a_pipe_that_nobody_reads(sluice, box, out, strategy):
    """What fits is sent and settled; the rest is given back."""
    messages = commit(box, 2000)
    r, w = os.pipe()
    node = sluice.start("run", "--strategy", strategy, "--sink", "stdout:", "--workers", 1, "--batch", 2000, db=box,
                        stdout=w)
    wait_until(lambda: not select.select([], [w], [], 0)[1], 10, "a full pipe")
    os.close(w)
    node.term()
    node.wait_log("stopping after this turn")
    assert node.running
    node.term()
    node.wait(10, status=0)
    with open(out, "wb") as f:
        while piece := os.read(r, 65536):
            f.write(piece)
    os.close(r)
    first = read_sink(out)
    assert 0 < len(first) < 2000
    assert held(box) == 0, "the rest is given back"
    sluice.run("run", "--strategy", strategy, "--sink", f"file:{out}", "--drain", db=box)
    record = read_sink(out)
    if strategy == "lanes":
        assert_in_order(record)
    summary = check(messages, record, in_flight=[d.id for d in first][-1:], torn_max=1, least=2000)
    print(f"{len(first)} lines read from the pipe; {summary}")


def test_term_is_heard_while_connecting(sluice):
    """An operator who mistyped the host should not have to wait."""
    with SilentServer() as server:
        node = sluice.start("run", "--sink", "null:", "--connect-timeout", "1m", db=server.url())
        wait_until(lambda: server.connections, 10, "the connection")
        node.term()
        try:
            node.popen.wait(1 + 4 * PATIENCE)  # less than it would wait for the server
        finally:
            node.kill9()


def test_a_locked_table(sluice, pgdb, out):
    """A migration elsewhere locks the table: statements time out, and delivery goes on afterwards."""
    sluice.run("init", db=pgdb)
    node = sluice.start("run", "--sink", f"file:{out}", "--workers", 1, "--poll", "10ms", "--statement-timeout",
                        f"{int(1000 * PATIENCE)}ms", db=pgdb)
    messages = commit(pgdb, 10)
    wait_until(lambda: is_empty(pgdb), 10, f"delivery by {node}")
    other = connect(pgdb)
    cur = other.cursor()
    cur.execute("BEGIN; LOCK TABLE outbox")
    node.wait_log("no answer within the time-out")
    cur.execute("COMMIT")
    messages.update(commit(pgdb, 10))
    wait_until(lambda: is_empty(pgdb), 20, f"delivery by {node}")
    assert check(messages, read_sink(out), least=20).duplicates == 0

    # A second TERM does not wait for an answer.
    cur.execute("BEGIN; LOCK TABLE outbox")
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                   " AND application_name = 'sluice' AND datname = current_database()") != [(0,)], 10,
               "the worker waits")
    node.term()
    node.wait_log("stopping after this turn")
    node.term()
    node.wait(10, status=0)
    other.close()


# -- Reload --------------------------------------------------------------------------------------

class Reloading:
    """A node whose settings come from a file."""

    def __init__(self, sluice, url, out, env=None, **settings):
        self.url = url
        self.out = out
        self.path = os.path.join(sluice.cwd, "sluice.yaml")
        self.write(**settings)
        self.node = sluice.start("run", "-c", self.path, "--sink", f"file:{out}", "--poll", "20ms", db=url, env=env)

    def write(self, **settings):
        with open(self.path, "w") as f:
            f.writelines(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())

    def hup(self, **settings):
        self.write(**settings)
        self.node.signal(signal.SIGHUP)

    def deliver(self, n=10):
        """The node works; returns what it wrote."""
        messages = commit(self.url, n)
        wait_until(lambda: is_empty(self.url), 10, f"delivery by {self.node}")
        return [d for d in read_sink(self.out) if d.id in messages]


@pytest.mark.threads
def test_reload_applies_new_settings(sluice, box, out, recorded, strategy):
    run = Reloading(sluice, box, out, recorded.env, strategy=strategy, workers=1, batch=5, log_level="error")
    assert {d.worker.rpartition("/")[2] for d in run.deliver()} == {"1"}
    assert run.node.stderr() == ""
    run.hup(strategy=strategy, workers=3, batch=2, log_level="info", log_format="json")
    run.node.wait_log("settings reloaded")
    run.node.wait_log('"workers":"3"')
    one = strategy == "advisory" and not is_postgres(box)
    with Gate(out):
        commit(box, 60)
        in_hand = wait_until(lambda: recorded.at_the_gate(run.node, 1 if one else 3), 10, "a batch for each worker")
        assert len(in_hand) == (2 if one else 6)
    wait_until(lambda: is_empty(box), 10, "the rest")
    run.node.term()
    run.node.wait(status=0)
    for line in run.node.stderr().splitlines():
        assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("text", ["workers: many\n", "wrokers: 3\n", "workers: 3\nworkers: 4\n", "workers: [\n",
                                  "- workers\n", "workers: 0\n", "retry_base: 1h\n", "strategy: none\n", None])
def test_a_broken_file_is_refused_and_the_run_goes_on(sluice, sqlitedb, out, text):
    sluice.run("init", db=sqlitedb)
    run = Reloading(sluice, sqlitedb, out, workers=2)
    run.deliver()
    if text is None:
        os.remove(run.path)
    else:
        with open(run.path, "w") as f:
            f.write(text)
    run.node.signal(signal.SIGHUP)
    run.node.wait_log("reload refused, going on as before")
    assert run.deliver()
    assert run.node.stderr().count("node started") == 1
    run.hup(workers=1)  # mended
    run.node.wait_log("settings reloaded")
    run.deliver()
    run.node.term()
    run.node.wait(status=0)


@pytest.mark.parametrize("settings", [
    {"table": "elsewhere", "strategy": "skip-locked", "hold": "transaction", "node": "renamed"},
    {"lanes": "7", "assign": "static", "static_lanes": "0-3"}])
def test_reload_keeps_what_needs_a_restart(sluice, box, out, settings):
    run = Reloading(sluice, box, out, workers=1)
    before = run.deliver()
    nodes = "SELECT node, strategy, assign FROM outbox_nodes"
    known = query(box, nodes)
    run.hup(workers=1, **settings)
    run.node.wait_log("settings reloaded")
    assert f'only with a restart" settings="{" ".join(settings)}"' in run.node.stderr()
    after = run.deliver()
    assert {d.worker for d in after} == {d.worker for d in before}
    assert query(box, nodes) == known
    run.node.term()
    run.node.wait(status=0)


def test_flags_win_over_a_reloaded_file(sluice, box, out):
    run = Reloading(sluice, box, out, workers=1)
    run.deliver()
    run.hup(workers=1, sink="null:", poll="1h")
    run.node.wait_log("settings reloaded")
    assert "restart" not in run.node.stderr()
    assert run.deliver()
    run.node.term()
    run.node.wait(status=0)


@pytest.mark.threads
def test_reload_finishes_the_batches_in_hand(sluice, box, out, recorded, strategy):
    """They are sent once, by the old workers."""
    stuck = Stuck(sluice, box, out, recorded, "--strategy", strategy)
    stuck.node.signal(signal.SIGHUP)
    stuck.node.signal(signal.SIGHUP)
    assert recorded.in_flight(stuck.node) == stuck.in_hand
    stuck.gate.open()
    wait_until(lambda: is_empty(box), 10, "the rest, by the new workers")
    stuck.node.wait_log("settings reloaded")
    stuck.node.term()
    stuck.node.wait(status=0)
    assert_all_once(stuck.messages, out, strategy)


def test_term_during_a_reload(sluice, box, out, recorded):
    """It stops after the turn, and does not take the first TERM for a second one."""
    stuck = Stuck(sluice, box, out, recorded)
    stuck.node.signal(signal.SIGHUP)
    stuck.node.term()
    stuck.node.wait_log("stopping after this turn")
    stuck.gate.open()
    stuck.node.wait(status=0)
    assert ids(out) == stuck.in_hand


def test_the_last_of_two_reloads_counts(sluice, box, out, recorded):
    with Gate(out):
        run = Reloading(sluice, box, out, recorded.env, workers=1, batch=10)
        commit(box, 10)
        wait_until(lambda: recorded.at_the_gate(run.node, 1), 10, "a batch in flight")
        run.hup(workers=2, table="elsewhere")
        run.node.wait_log("only with a restart")  # the first one was read
        run.hup(workers=3)
        wait_until(lambda: not is_pending(run.node, signal.SIGHUP), 10, "the second one was read")
    run.node.wait_log("settings reloaded")
    run.deliver()
    assert "workers=3" in run.node.stderr()


def is_pending(process, sig):
    with open(f"/proc/{process.pid}/status") as f:
        pending = re.search(r"ShdPnd:\s*(\w+)", f.read()).group(1)
    return int(pending, 16) >> (sig - 1) & 1


# -- The file ------------------------------------------------------------------------------------

@pytest.mark.threads
@pytest.mark.parametrize("hup", [False, True])
def test_rotation(sluice, box, out, hup):
    """A renamed file is let go, with or without a signal."""
    run = Reloading(sluice, box, out, workers=2)
    run.deliver()
    os.rename(out, out + ".1")
    if hup:
        run.hup(workers=2)
        run.node.wait_log("settings reloaded")
    messages = commit(box, 10)
    wait_until(lambda: is_empty(box), 10, "delivery")
    assert ids(out) == sorted(messages) and len(read_sink(out + ".1")) == 10
    os.remove(out)
    run.deliver()
    assert len(read_sink(out)) == 10
    run.node.term()
    run.node.wait(status=0)


def test_a_file_that_cannot_be_written_for_a_while(sluice, box, tmp_path, strategy):
    folder = tmp_path / "sink"
    folder.mkdir()
    out = str(folder / "out.jsonl")
    run = Reloading(sluice, box, out, strategy=strategy, workers=1, retry_base="20ms", retry_max="20ms")
    run.deliver()
    os.rename(folder, tmp_path / "away")
    messages = commit(box, 10)
    run.node.wait_log("sink is down")
    assert "No such file or directory" in run.node.stderr()
    wait_until(lambda: query(box, "SELECT count(*), max(attempts) FROM outbox") == [(10, 0)], 10,  # but in somebody's hands
               "no attempt is counted", every=0.001)
    os.rename(tmp_path / "away", folder)
    wait_until(lambda: is_empty(box), 10, "delivery")
    record = read_sink(out)
    record[:] = [d for d in record if d.id in messages]
    assert check(messages, record, least=10).duplicates == 0 and {d.attempt for d in record} == {1}
    run.node.wait_log("sink is up again")
    run.node.term()
    run.node.wait(status=0)


def test_full_device(sluice, box, out, strategy):
    """Nothing can be written: nothing is lost, no message loses an attempt, and --drain says so and ends."""
    commit(box, 50)
    query(box, "UPDATE outbox SET entity_key = NULL WHERE id > 40")
    messages = committed(box)
    flags = ["--strategy", strategy, "--drain"]
    done = sluice.run("run", *flags, "--sink", "file:/dev/full", "--max-attempts", 1, "--on-failure", "skip", db=box, check=1)
    assert "sink is down" in done.stderr and "No space left on device" in done.stderr
    assert "what is left stays in the table" in done.stderr
    assert query(box, "SELECT count(*), min(attempts), max(attempts) FROM outbox") == [(50, 0, 0)]
    assert status(sluice, box)["due"] == 50
    sluice.run("run", *flags, "--sink", f"file:{out}", db=box)
    record = assert_all_once(messages, out, strategy)
    assert {d.attempt for d in record} == {1}


@pytest.mark.parametrize("flags", [["--strategy", "skip-locked", "--hold", "transaction"], ["--strategy", "skip-locked"],
                                   ["--strategy", "advisory"], ["--strategy", "guard"], ["--strategy", "lanes"]],
                         ids=" ".join)
def test_file_size_limit(sluice, pgdb, out, flags):
    """As on a full disk: what does not fit is cut off again, and tried later."""
    sluice.run("init", db=pgdb)
    messages = commit(pgdb, 200)
    flags = ["--sink", f"file:{out}", "--batch", 15, *flags, "--retry-base", "1ms", "--retry-max", "1ms"]
    wrapper = sluice.wrapper
    sluice.wrapper = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh", *wrapper]  # 16 blocks of 512 bytes
    node = sluice.start("run", *flags, "--workers", 1, db=pgdb)
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox WHERE attempts > 2")[0][0] > 0, 10, "retries")
    node.term()
    node.wait(status=0)
    sluice.wrapper = wrapper
    assert 0 < len(read_sink(out)) < 200 and read_sink(out).torn == []
    assert os.path.getsize(out) <= 8192
    [(error,)] = query(pgdb, "SELECT DISTINCT last_error FROM outbox WHERE last_error IS NOT NULL")
    assert "File too large" in error
    wait_until(lambda: status(sluice, pgdb)["due"] == query(pgdb, "SELECT count(*) FROM outbox")[0][0], 10, "all is due")
    sluice.run("run", *flags, "--drain", db=pgdb)
    assert_all_once(messages, out, flags[5])


def test_a_torn_last_line_is_ended_first(sluice, box, out):
    """Someone died inside a write: no whole line may be glued to the piece."""
    with open(out, "w") as f:
        f.write('{"id":1,"to')
    messages = commit(box, 3)
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=box)
    record = read_sink(out)
    check(messages, record, torn_max=1, least=3)
    assert record.torn == [1]


def test_the_file_is_appended_to_and_not_executable(sluice, box, out):
    with open(out, "w") as f:
        f.write("before\n")
    os.chmod(out, 0o600)
    commit(box, 1)
    sluice.run("run", "--sink", f"file:{out}", "--drain", db=box)
    with open(out) as f:
        assert f.readline() == "before\n" and f.readline().startswith('{"id":1,')
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o600


def test_a_reader_that_goes_away(sluice, box, out, strategy):
    """sluice run --sink stdout: | head: what was not taken stays, untried but for the line that was cut, and the
    program lives."""
    messages = commit(box, 3000)
    r, w = os.pipe()
    node = sluice.start("run", "--strategy", strategy, "--sink", "stdout:", "--workers", 2, "--batch", 500, "--retry-base",
                        "1h", "--retry-max", "1h", db=box, stdout=w)
    os.close(w)
    with open(out, "wb") as f:
        f.write(os.read(r, 4096))
    os.close(r)
    node.wait_log("sink is down")
    assert "Broken pipe" in node.stderr()
    node.term()
    node.wait(status=0)
    left = committed(box)
    failed = query(box, "SELECT id, attempts, last_error FROM outbox WHERE attempts > 0")
    assert 0 < len(left) < len(messages)
    assert len(failed) <= 2 and all(row[1:] == (1, "only a part of the line was written") for row in failed)


# -- Several nodes on one file -------------------------------------------------------------------

@pytest.mark.threads
@pytest.mark.parametrize("flags", [["--strategy", "skip-locked", "--hold", "transaction"], ["--strategy", "skip-locked"],
                                   ["--strategy", "advisory"], ["--strategy", "guard"], ["--strategy", "lanes"]],
                         ids=" ".join)
def test_several_processes_on_one_sqlite_file(sluice, sqlitedb, out, flags):
    """Three nodes and two producers: every message once, whatever waits for whom."""
    n = scaled(1000, 100)
    sluice.run("init", db=sqlitedb)
    nodes = [sluice.start("run", "--sink", f"file:{out}", "--node", f"n{i}", "--workers", 2, "--batch", 20, *flags,
                          "--poll", "5ms", db=sqlitedb) for i in range(3)]
    for node in nodes:
        node.wait_log("node started")
    messages, pushed = {}, 0

    def at_work():
        return {d.worker.partition("/")[0] for d in read_sink(out)}
    while len(messages) < n or len(at_work()) < 2:  # one node alone would prove nothing
        messages.update(commit(sqlitedb, n // 5))
        several = [sluice.start("push", "--topic", "pushed", "1", db=sqlitedb) for _ in range(2)]
        for p in several:
            p.wait(status=0)
        pushed += len(several)
    wait_until(lambda: is_empty(sqlitedb), 30, "everything is delivered")
    for node in nodes:
        node.term()
    for node in nodes:
        node.wait(status=0)
    record = read_sink(out)
    others = [d.id for d in record if d.topic == "pushed"]
    assert len(others) == len(set(others)) == pushed
    record[:] = [d for d in record if d.topic != "pushed"]
    summary = check(messages, record, least=n)
    if flags[1] != "skip-locked":
        assert_in_order(record)
    print(f"{len(at_work())} of {len(nodes)} nodes at work, {pushed} messages pushed meanwhile; {summary}")
    assert summary.duplicates == 0 and len(at_work()) >= 2


# -- Wrong use -----------------------------------------------------------------------------------

@pytest.mark.parametrize("args, words", [
    ([], ["where should messages go?", "--sink"]),
    (["--sink", "null:", "x"], ["run takes no argument 'x'"]),
    (["--sink", ""], ["where should messages go?"]),
    (["--sink", "null:", "--workers", "0"], ["'0' is too small for workers", "from 1 to 256"]),
    (["--sink", "null:", "--workers", "1000000"], ["too large for workers"]),
    (["--sink", "null:", "--workers", "two"], ["'two' will not do for workers"]),
    (["--sink", "null:", "--workers", "2.5"], ["'2.5' will not do for workers"]),
    (["--sink", "null:", "--lease", "30"], ["'30' will not do for lease", "30s"]),
    (["--sink", "null:", "--lease", "500ms"], ["too small for lease"]),
    (["--sink", "null:", "--hold", "tight"], ["'tight' will not do for hold", "lease|transaction"]),
    (["--sink", "null:", "--strategy", "lans"], ["unknown strategy 'lans'", "skip-locked"]),
    (["--sink", "null:", "--retry-base", "1h"], ["retry_base is longer than retry_max"]),
    (["--sink", "null:", "--batch-bytes", "8X"], ["'8X' will not do for batch_bytes"]),
    (["--sink", "null:", "--wrokers", "2"], ["unknown flag --wrokers", "did you mean --workers?"]),
    (["--sink", "null:", "--lanes", "0"], ["'0' is too small for lanes", "from 1 to 32768"]),
    (["--sink", "null:", "--assign", "random"], ["'random' will not do for assign", "ring|claim|static|birth-order"]),
    (["--sink", "null:", "--assign", "static"], ["static_lanes does not say which lanes", "hint: --static-lanes 0-15"]),
    (["--sink", "null:", "--static-lanes", "0-3"], ["static_lanes is for assign: static only"]),
    (["--sink", "null:", "--wake", "shout"], ["'shout' will not do for wake"]),
    (["--sink", "null:", "--drain=maybe"], ["'maybe' will not do for drain"]),
    (["-c"], ["-c needs the name of a file"]),
    (["-c", "/none.yaml"], ["cannot open '/none.yaml'"]),
    (["--sink", "flie:x"], ['unknown sink "flie"', "did you mean file:PATH?"]),
    (["--sink", "out.jsonl"], ["sink without a scheme", "file:PATH"]),
    (["--sink", "null:x"], ["takes nothing after the colon"]),
    (["--sink", "stdout:x"], ["takes nothing after the colon"]),
    (["--sink", "file:x?sync=maybe"], ["sync", "on or off"]),
    (["--sink", "file:"], ["no path"]),
])
def test_wrong_use(sluice, sqlitedb, args, words):
    sluice.run("init", db=sqlitedb)
    done = sluice.run("run", "--drain", *args, db=sqlitedb, check=2)
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("sink, words", [
    ("file:/none/at/all/out.jsonl", ["No such file or directory", "hint: "]), ("file:/", ["Is a directory"]),
    ("file:fifo", ["is not a file", "stdout:"])])
def test_sinks_that_cannot_be_opened(sluice, sqlitedb, tmp_path, sink, words):
    os.mkfifo(tmp_path / "fifo")
    sluice.run("init", db=sqlitedb)
    done = sluice.run("run", "--sink", sink, "--drain", db=sqlitedb, check=1)
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("sink", [
    "kafka://user:c4n4ry@broker", "user:c4n4ry@broker",
    "host=h password=c4n4ry"])
def test_a_sink_url_is_not_shown(sluice, sqlitedb, sink):
    sluice.run("init", db=sqlitedb)
    done = sluice.run("run", "--sink", sink, "--drain", db=sqlitedb, check=2)
    assert "c4n4ry" not in done.stderr


# -- The log -------------------------------------------------------------------------------------

LOGFMT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?: |$)')


def logfmt(line):
    pairs = LOGFMT.findall(line)
    assert "".join(f"{name}={value} " for name, value in pairs).rstrip() == line, f"no logfmt: {line}"
    return {name: json.loads(value) if value.startswith('"') else value for name, value in pairs}


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_log_formats(sluice, box, form):
    """Also with a sink whose name would break a line."""
    name = 'a "b"\n\x1b[31mé=c\\'
    commit(box, 2)
    done = sluice.run("run", "--sink", f"file:{name}", "--drain", "--log-format", form, "--node", "n", db=box)
    lines = [logfmt(line) if form == "logfmt" else json.loads(line) for line in done.stderr.splitlines()]
    assert [line["msg"] for line in lines] == ["node started", "workers ended"]
    for line in lines:
        assert list(line)[:3] == ["time", "level", "msg"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert lines[0]["sink"] == f"file:{name}" and lines[0]["table"] == "outbox" and lines[0]["workers"] == "4"
    assert lines[1]["sent"] == "2"
    assert "\x1b" not in done.stderr


def test_log_level(sluice, box):
    for level, expected in (("error", 0), ("warn", 0), ("info", 2), ("debug", 2)):
        done = sluice.run("run", "--sink", "null:", "--drain", "--log-level", level, db=box)
        assert len(done.stderr.splitlines()) >= expected
        assert (done.stderr == "") == (expected == 0)


def test_the_log_never_holds_a_payload(sluice, box):
    sluice.run("push", "--topic", "t", "--key", "c4n4ry-key", "c4n4ry-payload", db=box)
    for sink, status in (("file:/dev/full", 1), ("null:", 0)):
        done = sluice.run("run", "--sink", sink, "--drain", "--log-level", "debug", "--retry-base", "1ms", "--retry-max",
                          "1ms", db=box, check=status)
        assert "c4n4ry" not in done.stderr
