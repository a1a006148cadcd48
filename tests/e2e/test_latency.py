"""How long a message waits: for an idle node, and for the end of a dead one's claim."""
import collections
import time

import pytest

import record
from checker import check, commit, read_sink
from conftest import claims_ended
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

# When what is held ends, if nobody renews it.
ENDS = {"lease": "SELECT min(leased_until) FROM outbox WHERE leased_until IS NOT NULL",
        "guard": "SELECT min(ends_at) FROM outbox_claims",
        "lanes": "SELECT lives_until FROM outbox_nodes WHERE node = 'slow'"}


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


@pytest.mark.parametrize("strategy, times", [("lanes", 3), ("skip-locked", 1)])
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
    assert max(waited) <= 0.4 * 1.2 + PATIENCE  # give or take 20 %, and this machine's own time
    node.term()
    node.wait(status=0)
    check(messages, read_sink(out), least=times + 1)


def kill_with_a_batch_in_hand(sluice, db, out, recorded, claim, lease):
    """Returns when it was started: nothing that it held can have begun before."""
    started = time.monotonic()
    with Gate(out):
        node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--workers", 1, "--lease", lease, db=db,
                            env=recorded.env)
        assert len(wait_until(lambda: recorded.at_the_gate(node, 1), what="a batch in hand")) == 10
        node.kill9()
    return started


@leased
def test_a_dead_node_s_messages_are_free_when_the_lease_ends(sluice, db, tmp_path, recorded, claim):
    """Not earlier, and not much later."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "b.jsonl"
    started = kill_with_a_batch_in_hand(sluice, db, tmp_path / "a.jsonl", recorded, claim, "1500ms")
    ended = time.monotonic()
    assert not claims_ended(db)
    node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--poll", "50ms", db=db)
    wait_until(lambda: is_empty(db), what="delivery")
    assert time.monotonic() - started >= 1.5
    assert time.monotonic() - ended <= 1.5 + 0.06 + PATIENCE
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
    flags = [*CLAIMS[claim], "--workers", 1, "--lease", f"{int(1500 * PATIENCE)}ms", "--poll", "20ms"]
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
        node = sluice.start("run", *CLAIMS[claim], "--sink", f"file:{out}", "--workers", 1, "--lease", "1s", db=db,
                            env=recorded.env)
        wait_until(lambda: takes() >= 2, what="a second claim")
    wait_until(lambda: is_empty(db), what="delivery")
    node.term()
    node.wait(status=0)
    deliveries = read_sink(out)
    assert check(messages, deliveries, fenced=True, least=10).duplicates == 0
    assert {d.attempt for d in deliveries} == {1}
