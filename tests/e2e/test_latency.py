"""How long a message waits: for an idle node, and for the end of a dead one's claim."""
import collections
import time

import pytest

import record
from checker import check, commit, read_sink
from harness import PATIENCE, Gate, is_postgres, query, wait_until

CLAIMS = {
    "lease": ["--strategy", "skip-locked", "--hold", "lease"],
    "guard": ["--strategy", "guard"],
    "lanes": ["--strategy", "lanes"],
    "transaction": ["--strategy", "skip-locked", "--hold", "transaction"],
    "advisory": ["--strategy", "advisory"],
}
leased = pytest.mark.parametrize("claim", ["lease", "guard", "lanes"])
in_transaction = pytest.mark.parametrize("claim", ["transaction", "advisory"])

LEASE = 1.5 * PATIENCE  # seconds

# When what is held ends, if nobody renews it.
ENDS = {"lease": "SELECT min(leased_until) FROM outbox WHERE leased_until IS NOT NULL",
        "guard": "SELECT min(ends_at) FROM outbox_claims",
        "lanes": "SELECT lives_until FROM outbox_nodes WHERE node = 'slow'"}


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.parametrize("strategy, times", [("lanes", 4), ("skip-locked", 2)])
def test_an_idle_node_looks_again_within_poll(sluice, db, tmp_path, strategy, times):
    """Also one that has been idle for so long that its pauses do not grow any more."""
    sluice.run("init", db=db)
    out = tmp_path / "out.jsonl"
    node = sluice.start("run", "--strategy", strategy, "--sink", f"file:{out}", "--workers", 1, "--poll", "400ms", db=db)
    messages = commit(db, 1)
    wait_until(lambda: is_empty(db), what="the first message")
    waited = []
    for _ in range(times):
        time.sleep(1.3)  # 5 ms, doubled seven times, is more than 400 ms: this is what is measured
        committed = time.monotonic()
        messages.update(commit(db, 1))
        wait_until(lambda: is_empty(db), what="delivery")
        waited.append(time.monotonic() - committed)
    print(f"waited {waited} s")
    # Give or take 20 %, and this machine's own time. Pauses that grow on would be of more than a second each time.
    assert min(waited) <= 0.4 * 1.2 + 0.5
    node.term()
    node.wait(status=0)
    check(messages, read_sink(out), least=times + 1)


def epoch(db, sql):
    """The one time that this statement gives, in seconds."""
    column, rest = sql.removeprefix("SELECT ").split(" ", 1)
    seconds = f"extract(EPOCH FROM {column})::float8" if is_postgres(db) else f"(julianday({column}) - 2440587.5) * 86400.0"
    return query(db, f"SELECT {seconds} {rest}")[0][0]


def kill_with_a_batch_in_hand(sluice, db, out, recorded, claim, lease):
    with Gate(out):
        node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--workers", 1, "--lease", lease, "--node", "slow",
                            db=db, env=recorded.env)
        assert len(wait_until(lambda: recorded.at_the_gate(node, 1), what="a batch in hand")) == 10
        node.kill9()


@leased
def test_a_dead_node_s_messages_are_free_when_the_lease_ends(sluice, db, tmp_path, recorded, claim):
    """Not earlier, and not much later."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "b.jsonl"
    started = time.time()
    kill_with_a_batch_in_hand(sluice, db, tmp_path / "a.jsonl", recorded, claim, f"{round(LEASE * 1000)}ms")
    ends, killed = epoch(db, ENDS[claim]), time.time()
    assert started + LEASE < ends < killed + LEASE + 0.1
    node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--poll", "50ms", db=db)
    wait_until(lambda: is_empty(db), 20, what="delivery")
    assert time.time() > ends - 0.01
    assert time.time() < max(ends, killed) + 5 * PATIENCE
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=10).duplicates == 0


@in_transaction
def test_a_dead_node_s_messages_are_free_at_once_with_transactions(sluice, db, tmp_path, recorded, claim):
    """Long before the lease, which bounds the transaction, is over."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "b.jsonl"
    kill_with_a_batch_in_hand(sluice, db, tmp_path / "a.jsonl", recorded, claim, "1h")
    node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--poll", "50ms", db=db)
    wait_until(lambda: is_empty(db), what="delivery")
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=10).duplicates == 0


@pytest.mark.threads
@leased
def test_a_lease_is_renewed_while_the_sink_works(sluice, db, tmp_path, recorded, claim):
    """After a third of it and again, so that nobody else takes the batch; a whole lease is all that it gets."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    flags = [*CLAIMS[claim], "--workers", 1, "--lease", f"{round(2 * LEASE * 1000)}ms", "--poll", "20ms"]
    with Gate(out):
        slow = sluice.start("run", *flags, "--node", "slow", "--sink", f"file:{out}", db=db, env=recorded.env)
        wait_until(lambda: recorded.at_the_gate(slow, 1), what="a batch in hand")
        seen = {query(db, ENDS[claim])[0]}
        rival = sluice.start("run", *flags, "--sink", f"file:{other}", db=db)
        rival.wait_log("node started")
        wait_until(lambda: seen.add(query(db, ENDS[claim])[0]) or len(seen) >= 3, what="two renewals")
        assert (None,) not in seen and max(seen) == query(db, ENDS[claim])[0] and not is_empty(db)
    wait_until(lambda: is_empty(db), what="delivery")
    for node in (slow, rival):
        node.term()
        node.wait(status=0)
    assert len(read_sink(other)) == 0
    assert check(messages, read_sink(out), fenced=True, least=10).duplicates == 0


@leased
def test_a_sink_without_an_answer_is_recalled(sluice, db, tmp_path, recorded, claim):
    """After a whole lease: the batch goes back untried, and is taken again."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "a.jsonl"

    def takes():
        times = collections.Counter(e.id for e in record.read(recorded.folder) if e.kind == record.TAKEN)
        return min(times[id] for id in messages)
    with Gate(out):
        node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--workers", 1, "--lease",
                            f"{round(LEASE * 1000)}ms", db=db, env=recorded.env)
        wait_until(lambda: takes() >= 2, what="a second claim")
    wait_until(lambda: is_empty(db), what="delivery")
    node.term()
    node.wait(status=0)
    deliveries = read_sink(out)
    assert check(messages, deliveries, fenced=True, least=10).duplicates == 0
    assert {d.attempt for d in deliveries} == {1}
