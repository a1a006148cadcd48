"""wake: notify. Whoever commits a message wakes a node that sleeps; with a `poll` of a minute nothing else
could be the reason that it is delivered at once."""
import contextlib
import json
import statistics
import time

import psycopg2
import pytest

import record
from checker import check, commit, read_sink
from harness import PATIENCE, Gate, connect, is_postgres, query, wait_until

SOON = 5  # seconds; a poll would take ten times as long
ARMED = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ExclusiveLock'"
STRATEGIES = ["lanes", "guard", "advisory", "skip-locked"]


def start(sluice, box, out, *flags):
    node = sluice.start("run", "--wake", "notify", "--poll", "60s", "--sink", f"file:{out}", *flags, db=box)
    node.wait_log("node started")
    return node


def delivered(out, n):
    return out.exists() and len(out.read_text().splitlines()) >= n


def armed(url, nodes=1):
    """Have that many sessions, of strategy lanes, had their last look (ordered/peek) before they sleep? Only PostgreSQL knows."""
    return query(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sluice%' AND state = 'idle'"
                      r" AND query ~ '^WITH few AS MATERIALIZED \(\s+SELECT o\.held'")[0][0] >= nodes


@pytest.mark.threads
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_commit_wakes_a_node(sluice, box, tmp_path, strategy):
    """Again and again, whatever it does at that moment."""
    out = tmp_path / "out.jsonl"
    node = start(sluice, box, out, "--strategy", strategy)
    messages, took = {}, []
    for i in range(20):
        began = time.monotonic()
        messages.update(commit(box, 1))
        wait_until(lambda: delivered(out, i + 1), SOON, f"message {i + 1}")
        took.append(time.monotonic() - began)
    # A heartbeat wakes it, too, but only each 2 s: then nearly all would take so long. A slow machine is no reason to fail.
    assert statistics.quantiles(took)[0] < 0.8, took
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=20).duplicates == 0


def test_all_of_a_burst_are_delivered(sluice, box, tmp_path):
    out = tmp_path / "out.jsonl"
    node = start(sluice, box, out, "--workers", 4, "--batch", 10)
    messages = commit(box, 1000)
    wait_until(lambda: delivered(out, 1000), SOON * 2, "all of them")
    node.term()
    node.wait(status=0)
    check(messages, read_sink(out), least=1000)


def test_a_long_transaction_hides_nobody_else(sluice, pgdb, tmp_path):
    """A producer that is at work would not notify: meanwhile the node looks."""
    sluice.run("init", db=pgdb)
    out = tmp_path / "out.jsonl"
    with psycopg2.connect(pgdb) as long:
        long.cursor().execute("INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'a', '1')")
        node = start(sluice, pgdb, out)
        query(pgdb, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'b', '2')")
        wait_until(lambda: delivered(out, 1), SOON, "the other's message")
    wait_until(lambda: delivered(out, 2), SOON, "its own")
    node.term()
    node.wait(status=0)


def test_the_one_that_was_looked_at_is_killed(sluice, pgdb, tmp_path):
    """Producers look at one session. When it dies another takes its place, within a poll."""
    sluice.run("init", db=pgdb)
    out = tmp_path / "out.jsonl"
    nodes = [start(sluice, pgdb, out, "--node", name, "--lease", "2s", "--poll", "1s") for name in "ab"]
    wait_until(lambda: armed(pgdb, 2), 10, "both sleep")
    nodes[0].kill9()
    query(pgdb, "INSERT INTO outbox (topic, payload) SELECT 't', '1' FROM generate_series(1, 100)")
    wait_until(lambda: delivered(out, 100), 10, "what came after that")
    nodes[1].term()
    nodes[1].wait(status=0)


def test_after_a_restart_it_is_woken_again(sluice, own_pg, tmp_path):
    url = own_pg.url()
    sluice.run("init", db=url)
    out = tmp_path / "out.jsonl"
    node = start(sluice, url, out)
    own_pg.restart("immediate")
    query(url, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
    wait_until(lambda: delivered(out, 1), 20, "the first after the restart")
    for i in range(3):
        query(url, "INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
        wait_until(lambda: delivered(out, i + 2), SOON, "those that follow")
    node.term()
    node.wait(status=0)


@pytest.mark.parametrize("strategy", ["guard", "skip-locked"])
def test_a_pull_that_waits_is_woken(sluice, box, strategy):
    puller = sluice.start("pull", "--wake", "notify", "--poll", "60s", "--wait", "60s", "--strategy", strategy, db=box)
    if is_postgres(box):
        wait_until(lambda: query(box, ARMED)[0][0] == 1, 10, "it sleeps")
    began = time.monotonic()
    commit(box, 1)
    puller.wait(status=0)
    assert json.loads(puller.stdout())["id"] == 1
    assert time.monotonic() - began < SOON * PATIENCE


def test_producers_need_no_rights_for_it(sluice, pgdb, tmp_path):
    """The trigger asks nothing of the tables."""
    sluice.run("init", db=pgdb)
    user = f"p{abs(hash(pgdb)) % 10**8}"
    query(pgdb, f"CREATE ROLE {user}")
    query(pgdb, f"GRANT INSERT ON outbox TO {user}")
    out = tmp_path / "out.jsonl"
    node = start(sluice, pgdb, out)
    try:
        query(pgdb, f"SET ROLE {user}; INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
        wait_until(lambda: delivered(out, 1), SOON, "it")
    finally:
        node.term()
        node.wait(status=0)
        query(pgdb, f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.mark.threads
def test_while_two_are_at_work_a_third_looks(sluice, pgdb, tmp_path, fault_points):
    """One was woken by the first message. Whoever gets up in its place finds the second one, which came right after it; then
    the next stands by, and hears of the third."""
    sluice.run("init", db=pgdb)
    for i in range(5):
        out, records = tmp_path / f"{i}.jsonl", tmp_path / str(i)
        records.mkdir()
        with Gate(out), contextlib.closing(connect(pgdb)) as producer:
            node = sluice.start("run", "--wake", "notify", "--poll", "60s", "--sink", f"file:{out}", "--workers", 4, db=pgdb,
                                env={"SLUICE_RECORD": str(records)})
            node.wait_log("node started")
            wait_until(lambda: armed(pgdb), 10, "it sleeps")
            with record.Tail(records, node.pid) as tail:
                for keys in (("a", "b"), ("c",)):  # in three lanes
                    for key in keys:
                        producer.cursor().execute(f"INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', '{key}', '1')")
                        time.sleep(0.003)  # the second one, while somebody stands by
                    wanted = "abc".index(keys[-1]) + 1
                    wait_until(lambda: len(tail.follow().in_flight()) >= wanted, SOON, f"{keys} in flight")
        wait_until(lambda: delivered(out, 3), SOON, "all of them")
        node.term()
        node.wait(status=0)


def alone(sluice, url, out):
    """How long a message takes that comes alone, as a rule."""
    took = []
    node = start(sluice, url, out, "--workers", 1)
    for i in range(15):
        wait_until(lambda: query(url, ARMED)[0][0] == 1, 10, "it sleeps")
        began = time.monotonic()
        query(url, f"INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'key {i}', '1')")
        wait_until(lambda: delivered(out, i + 1), SOON * 2, f"message {i + 1}", every=0.002)
        took.append(time.monotonic() - began)
    node.term()
    node.wait(status=0)
    return statistics.median(took)


@pytest.mark.alone
def test_many_lanes_are_all_looked_at(sluice, pgdb, tmp_path):
    """More than one statement looks at: a message in any of them is found when it is heard of, not part by part after pauses."""
    sluice.run("init", db=pgdb)
    few = alone(sluice, pgdb, tmp_path / "few.jsonl")
    sluice.run("lanes", "--set", 4096, db=pgdb)
    many = alone(sluice, pgdb, tmp_path / "many.jsonl")
    print(few, many)
    assert many < few * 4 + 0.05, f"{many:g} s instead of {few:g}"


def notified(producer, commits):
    """How many of so many commits notified somebody, and whether they followed each other within a millisecond."""
    del producer.notifies[:]
    cursor = producer.cursor()
    began = time.monotonic()
    for _ in range(commits):
        cursor.execute("INSERT INTO outbox (topic, payload) VALUES ('t', '1')")
        time.sleep(0.0003)  # the rate that is wanted: so that the node is done with each before the next one
    took = time.monotonic() - began
    producer.poll()
    mine = [n for n in producer.notifies if n.pid == producer.get_backend_pid()]  # a node that no longer sleeps says so, too
    return len(mine), took < commits / 1000


@pytest.mark.alone
@pytest.mark.parametrize("workers", [1, 3])
def test_while_commits_follow_each_other_closely_nobody_notifies(sluice, pgdb, workers):
    """The node naps then: who finds it armed has to notify, and to wait for others who do. A machine with other work
    delays the node's turns, which it takes for a slow rhythm: one time of several counts."""
    sluice.run("init", db=pgdb)
    node = sluice.start("run", "--wake", "notify", "--poll", "60s", "--sink", "null:", "--workers", workers, db=pgdb)
    node.wait_log("node started")
    wait_until(lambda: armed(pgdb), 10, "it sleeps")
    seen, tries = [], 0
    with contextlib.closing(psycopg2.connect(pgdb)) as producer:
        producer.autocommit = True
        producer.cursor().execute("LISTEN outbox_tr_wake")
        # While it sleeps. One of its workers may be asleep before the others have ended their first turns.
        wait_until(lambda: query(pgdb, ARMED)[0][0] and notified(producer, 1)[0] == 1, 10, "a commit while it sleeps notifies")
        notified(producer, 100)  # it learns the rhythm
        while tries < 30 and not any(n < 25 for n in seen):
            n, close = notified(producer, 200)
            tries += 1
            seen += [n] if close else []
    wait_until(lambda: query(pgdb, "SELECT count(*) FROM outbox")[0][0] == 0, SOON * 2, "all of them")
    node.term()
    node.wait(status=0)
    if not seen:
        pytest.skip("too slow a machine: commits never followed each other within a millisecond")
    print(seen)
    assert min(seen) < 25, f"of 200 commits, so many notified: {seen}"
