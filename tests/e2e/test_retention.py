"""retention: delivered messages are kept for a time, and purged. What a settle copies, strategy by strategy, is in
tests/contract/test_claims_kept.c."""
import json

import pytest

from checker import check, commit, read_sink
from harness import Gate, is_postgres, query, scaled, wait_until


def count(url, table="outbox_sent", where="true"):
    return query(url, f"SELECT count(*) FROM {table} WHERE {where}")[0][0]


def age(url, seconds, where="true"):
    """As if they had been delivered so long ago."""
    then = f"clock_timestamp() - {seconds} * interval '1 second'" if is_postgres(url) else \
        f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{-seconds} seconds')"
    query(url, f"UPDATE outbox_sent SET sent_at = {then} WHERE {where}")


def kept_ids(url):
    return [id for (id,) in query(url, "SELECT id FROM outbox_sent ORDER BY id")]


def start(sluice, url, out, *flags):
    p = sluice.start("run", "--sink", f"file:{out}", "--poll", "50ms", *flags, db=url)
    p.wait_log("node started")
    return p


def test_off_nothing_is_kept(sluice, box, strategy, tmp_path):
    n = len(commit(box, 50))
    sluice.run("run", "--sink", f"file:{tmp_path}/out", "--drain", "--strategy", strategy, db=box)
    assert len(read_sink(f"{tmp_path}/out")) == n
    assert count(box) == count(box, "outbox") == 0


def test_what_is_delivered_is_kept(sluice, box, strategy, tmp_path):
    """All of it, as it was, and each once."""
    messages = commit(box, 300)
    before = query(box, "SELECT id, topic, entity_key, event_type, payload, content_type, created_at FROM outbox ORDER BY id")
    sluice.run("run", "--sink", f"file:{tmp_path}/out", "--drain", "--strategy", strategy, "--retention", "1h", db=box)
    check(messages, read_sink(f"{tmp_path}/out"))
    after = query(box, "SELECT id, topic, entity_key, event_type, payload, content_type, created_at FROM outbox_sent ORDER BY id")
    assert after == before and count(box, "outbox") == 0


def test_a_pull_keeps_and_purges(sluice, box):
    for payload in "123":
        sluice.run("push", "--topic", "t", "--key", payload, payload, db=box)
    lines = [json.loads(line) for line in sluice.run("pull", db=box).stdout.splitlines()]
    sluice.run("pull", "--ack", lines[0]["receipt"], "--retention", "1h", db=box)
    sluice.run("pull", "--ack", lines[1]["receipt"], db=box)
    sluice.run("pull", "--bury", lines[2]["receipt"], "--retention", "1h", db=box)
    assert query(box, "SELECT payload FROM outbox_sent") == [(b"1",)]
    age(box, 7200)
    sluice.run("push", "--topic", "t", "4", db=box)
    sluice.run("pull", "--auto-ack", "--retention", "1h", db=box)
    assert query(box, "SELECT payload FROM outbox_sent") == [(b"4",)]


@pytest.mark.slow
def test_a_node_purges_what_is_old(sluice, box, tmp_path):
    """While it runs, and only that."""
    commit(box, scaled(1500, 600))
    n = count(box, "outbox")
    node = start(sluice, box, f"{tmp_path}/out", "--retention", "1h")
    wait_until(lambda: count(box) == n, 30, "all are kept")
    age(box, 7200, "id % 3 > 0")
    wait_until(lambda: count(box) == count(box, where="id % 3 = 0"), 30, "the old ones are gone")
    assert count(box) == len([i for i in range(1, n + 1) if i % 3 == 0])
    assert len(read_sink(f"{tmp_path}/out")) == n
    node.term()
    node.wait(status=0)
    assert "clean-up failed" not in node.stderr()


def test_what_is_kept_goes_when_retention_is_off_again(sluice, box, tmp_path):
    commit(box, 700)
    n = count(box, "outbox")
    sluice.run("run", "--sink", "null:", "--drain", "--retention", "1h", db=box)
    assert count(box) == n
    start(sluice, box, f"{tmp_path}/out")
    wait_until(lambda: count(box) == 0, 30, "nothing is kept any more")


def test_a_reload_turns_it_off(sluice, box, tmp_path):
    settings = tmp_path / "sluice.yaml"
    settings.write_text("retention: 1h\npoll: 50ms\n")
    node = sluice.start("run", "-c", settings, "--sink", f"file:{tmp_path}/out", db=box)
    node.wait_log("node started")
    commit(box, 20)
    wait_until(lambda: count(box) == 20, 30, "they are kept")
    settings.write_text("retention: 0s\npoll: 50ms\n")
    node.signal(1)
    node.wait_log("settings reloaded")
    wait_until(lambda: count(box) == 0, 30, "nothing is kept any more")
    commit(box, 20)
    wait_until(lambda: count(box, "outbox") == 0, 30, "the others are delivered")
    assert len(read_sink(f"{tmp_path}/out")) == 40 and count(box) == 0 and "change only with a restart" not in node.stderr()


@pytest.mark.slow
def test_two_nodes_purge_together(sluice, box, tmp_path):
    """Neither gets in the way of the other, and nothing young goes."""
    nodes = [start(sluice, box, f"{tmp_path}/out", "--retention", "1h", "--node", f"n{i}") for i in range(2)]
    commit(box, scaled(2000, 600))
    [(n,)] = query(box, "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM outbox_sent)")  # as of one moment
    wait_until(lambda: count(box) == n, 30, "all are kept")
    age(box, 7200, "id % 2 = 1")
    wait_until(lambda: count(box, where="id % 2 = 1") == 0, 30, "the old ones are gone")
    assert count(box) == n // 2
    for node in nodes:
        node.term()
        node.wait(status=0)
        assert "clean-up failed" not in node.stderr()


def test_killed_in_the_middle(sluice, box, strategy, tmp_path):
    """Nothing is lost, and each message is kept once: by whoever deleted it, however often it was delivered."""
    out = f"{tmp_path}/out"
    flags = ("--strategy", strategy, "--retention", "1h", "--lease", "1s", "--batch", "50")
    messages, hits = {}, 0
    while hits < 2:  # a node that had nothing left to do proves nothing
        kept = count(box)
        victim = start(sluice, box, out, *flags)
        messages.update(commit(box, scaled(1500, 300)))
        wait_until(lambda: count(box) > kept, 30, "some are kept")
        victim.kill9()
        hits += count(box, "outbox") > 0
    [(left, kept)] = query(box, "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM outbox_sent)")
    assert left + kept == len(messages)
    start(sluice, box, out, *flags)
    wait_until(lambda: count(box, "outbox") == 0, 60, "the rest is delivered")
    assert {d.id for d in read_sink(out)} == set(messages)
    assert kept_ids(box) == sorted(messages)


def test_a_settle_that_fails_keeps_nothing(sluice, box, strategy, tmp_path):
    """The copy and the deletion are one: when the deletion cannot be, neither is the copy."""
    out = f"{tmp_path}/out"
    if is_postgres(box):
        query(box, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.topic = 'bad' THEN"
                   " RAISE 'not now' USING errcode = '40001'; END IF; RETURN OLD; END $$")
        query(box, "CREATE TRIGGER t_no BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION no()")
    else:
        query(box, "CREATE TRIGGER t_no BEFORE DELETE ON outbox WHEN OLD.topic = 'bad' BEGIN"
                   " SELECT RAISE(ABORT, 'not now'); END")
    sluice.run("push", "--topic", "bad", "--key", "k", "1", db=box)
    node = start(sluice, box, out, "--strategy", strategy, "--retention", "1h", "--lease", "1s")
    wait_until(lambda: read_sink(out) and "error" in node.stderr() or not node.running, 30, "a failed settle")
    assert count(box) == 0 and count(box, "outbox") == 1
    node.kill9()
    query(box, "DROP TRIGGER t_no" + (" ON outbox" if is_postgres(box) else ""))
    start(sluice, box, out, "--strategy", strategy, "--retention", "1h", "--lease", "1s")
    wait_until(lambda: count(box, "outbox") == 0, 60, "it is delivered")
    assert kept_ids(box) == [1]


def test_the_database_goes_away(sluice, own_pg, tmp_path):
    """The node waits and goes on, and so does its clean-up; that is told once."""
    url = own_pg.new_database()
    sluice.run("init", db=url)
    node = start(sluice, url, f"{tmp_path}/out", "--retention", "1s", "--lease", "2s")
    commit(url, 10)
    wait_until(lambda: len(read_sink(f"{tmp_path}/out")) == 10, 30, "delivered")
    own_pg.stop()
    node.wait_log("clean-up failed, trying again later", 60)
    own_pg.start()
    commit(url, 10)
    node.wait_log("clean-up goes on", 60)
    wait_until(lambda: count(url) == 0 and count(url, "outbox") == 0, 60, "delivered, kept and purged")
    assert node.stderr().count("clean-up failed") == 1
    node.term()
    node.wait(status=0)


def test_a_missing_grant_is_found_at_the_start(sluice, pg, pgdb):
    sluice.run("init", db=pgdb)
    role = "keeper_" + pgdb.rsplit("/", 1)[1]
    pg.sql(f"CREATE ROLE {role} LOGIN")
    query(pgdb, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
    query(pgdb, f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
    url = pgdb.replace("postgres@", f"{role}@")
    run = ("run", "--sink", "null:", "--drain")
    sluice.run(*run, "--retention", "1h", db=url)
    for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        query(pgdb, f"REVOKE {privilege} ON outbox_sent FROM {role}")
        assert "outbox_sent" in sluice.run(*run, "--retention", "1h", db=url, check=1).stderr
        sluice.run(*run, db=url)  # who keeps nothing needs nothing
        query(pgdb, f"GRANT {privilege} ON outbox_sent TO {role}")


def test_the_purge_does_not_wait_for_a_slow_sink(sluice, box, tmp_path):
    """Workers that wait for their sink, and a clean-up that goes on meanwhile."""
    commit(box, 20)
    sluice.run("run", "--sink", "null:", "--drain", "--retention", "1h", db=box)
    age(box, 7200)
    strategy = "lanes"  # SQLite has one writer: no transaction may be open while it sends
    with Gate(f"{tmp_path}/out"):
        commit(box, 20)
        start(sluice, box, f"{tmp_path}/out", "--retention", "1h", "--strategy", strategy)
        wait_until(lambda: count(box) == 0, 30, "what was old is gone")
        assert count(box, "outbox") == 20
    wait_until(lambda: count(box) == 20, 30, "they are delivered, and kept")


def test_a_busy_node_vacuums(sluice, pgdb, tmp_path):
    """By itself, where autovacuum has not come; and not while little goes through."""
    sluice.run("init", db=pgdb)
    query(pgdb, "ALTER TABLE outbox SET (autovacuum_enabled = false)")

    def vacuums():
        return query(pgdb, "SELECT vacuum_count FROM pg_stat_all_tables WHERE relname = 'outbox'")[0][0]
    start(sluice, pgdb, f"{tmp_path}/out")
    for _ in range(4):
        commit(pgdb, 1000)
    wait_until(lambda: count(pgdb, "outbox") == 0, 60, "delivered")
    assert vacuums() == 0
    for _ in range(2):
        commit(pgdb, 1000)
    wait_until(vacuums, 60, "a vacuum")
