"""How long a message waits: for an idle node, and for the end of a dead one's claim."""
import sqlite3
import time

import pytest

from checker import check, commit, read_sink
from harness import PATIENCE, Gate, connect, is_postgres, query, wait_until


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


def holds_transaction(url):
    """Does somebody have messages locked in an open transaction?"""
    if is_postgres(url):
        return query(url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                          " AND application_name = 'sluice' AND state = 'idle in transaction'") != [(0,)]
    conn = connect(url)
    conn.execute("PRAGMA busy_timeout = 0")
    try:
        conn.execute("BEGIN IMMEDIATE")
        conn.execute("ROLLBACK")
        return False
    except sqlite3.OperationalError:
        return True
    finally:
        conn.close()


def test_an_idle_node_looks_again_within_poll(sluice, db, tmp_path):
    """Also one that has been idle for so long that its pauses do not grow any more."""
    sluice.run("init", db=db)
    out = tmp_path / "out.jsonl"
    node = sluice.start("run", "--sink", f"file:{out}", "--workers", 1, "--poll", "400ms", db=db)
    messages = commit(db, 1)
    wait_until(lambda: is_empty(db), what="the first message")
    waited = []
    for _ in range(3):
        time.sleep(1.3)  # 5 ms, doubled seven times, is more than 400 ms: this is what is measured
        committed = time.monotonic()
        messages.update(commit(db, 1))
        wait_until(lambda: is_empty(db), what="delivery")
        waited.append(time.monotonic() - committed)
    print(f"waited {waited} s")
    assert max(waited) <= 0.4 * 1.2 + PATIENCE  # give or take 20 %, and this machine's own time
    node.term()
    node.wait(status=0)
    check(messages, read_sink(out), least=4)


def kill_with_a_batch_in_hand(sluice, db, out, hold, lease):
    """Returns when it was started: no lease of it can have begun before."""
    started = time.monotonic()
    with Gate(out):
        node = sluice.start("run", "--sink", f"file:{out}", "--workers", 1, "--hold", hold, "--lease", lease, db=db)
        wait_until(lambda: holds_transaction(db) if hold == "transaction" else
                   query(db, "SELECT count(*) FROM outbox WHERE leased_until IS NOT NULL") == [(10,)],
                   what="a batch in hand")
        node.kill9()
    return started


def test_a_dead_node_s_messages_are_free_when_the_lease_ends(sluice, db, tmp_path):
    """Not earlier, and not much later."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "b.jsonl"
    started = kill_with_a_batch_in_hand(sluice, db, tmp_path / "a.jsonl", "lease", "2s")
    ended = time.monotonic()
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "50ms", db=db)
    wait_until(lambda: is_empty(db), what="delivery")
    assert time.monotonic() - started >= 2
    assert time.monotonic() - ended <= 2 + 0.06 + PATIENCE
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=10).duplicates == 0


def test_a_dead_node_s_messages_are_free_at_once_with_transactions(sluice, db, tmp_path):
    """Long before the lease, which bounds the transaction, is over."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "b.jsonl"
    kill_with_a_batch_in_hand(sluice, db, tmp_path / "a.jsonl", "transaction", "1h")
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "50ms", "--hold", "transaction", db=db)
    wait_until(lambda: is_empty(db), what="delivery")
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=10).duplicates == 0


@pytest.mark.threads
def test_a_lease_is_renewed_while_the_sink_works(sluice, db, tmp_path):
    """After a third of it, so that nobody else takes the batch."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with Gate(out):
        slow = sluice.start("run", "--sink", f"file:{out}", "--workers", 1, "--lease", f"{int(3 * PATIENCE)}s", db=db)
        wait_until(lambda: query(db, "SELECT count(*) FROM outbox WHERE leased_until IS NOT NULL") == [(10,)],
                   what="a batch in hand")
        ends = query(db, "SELECT max(leased_until) FROM outbox")
        wait_until(lambda: query(db, "SELECT min(leased_until) FROM outbox") > ends, what="a renewal")
        sluice.run("run", "--sink", f"file:{other}", "--drain", db=db)
    assert len(read_sink(other)) == 0
    wait_until(lambda: is_empty(db), what="delivery")
    slow.term()
    slow.wait(status=0)
    assert check(messages, read_sink(out), fenced=True, least=10).duplicates == 0


def test_a_sink_without_an_answer_is_recalled(sluice, db, tmp_path):
    """After a whole lease: the batch goes back untried, and is taken again."""
    sluice.run("init", db=db)
    messages = commit(db, 10)
    out = tmp_path / "a.jsonl"
    with Gate(out):
        node = sluice.start("run", "--sink", f"file:{out}", "--workers", 1, "--lease", "1s", db=db)
        wait_until(lambda: query(db, "SELECT count(*) FROM outbox WHERE epoch > 1") == [(10,)], what="a second claim")
    wait_until(lambda: is_empty(db), what="delivery")
    node.term()
    node.wait(status=0)
    record = read_sink(out)
    assert check(messages, record, fenced=True, least=10).duplicates == 0
    assert {d.attempt for d in record} == {1}
