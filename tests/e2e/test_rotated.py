"""Layout rotated, as a user sees it: what was delivered stays for a while and does not count, segments are emptied by nodes,
and nothing that is still to be done goes with them. What the claims promise of it, step by step, is in
tests/contract/test_claims_rotated.c; kills and pauses are in test_crash.py and test_nemesis.py."""
import json
import os
import subprocess

import psycopg2
import pytest

from checker import check, commit, read_sink
from conftest import end_claims
from harness import Gate, all_stopped, connect, query, too_large, wait_until, waiting
from segments import SEGMENTS, next_segment, segment_of
from servers import Postgres

LAYOUT = ["--layout", "rotated"]
BATCH = 20


@pytest.fixture
def box(sluice, pgdb):
    sluice.run("init", *LAYOUT, db=pgdb)
    return pgdb


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out.jsonl")


def flags(out, *more):
    return ["run", "--sink", f"file:{out}", "--workers", 1, "--batch", BATCH, "--poll", "20ms", *more]


def status(sluice, url):
    return json.loads(sluice.run("status", "--json", db=url).stdout)


def rows(url, where="true"):
    return query(url, f"SELECT count(*) FROM outbox WHERE {where}")[0][0]


def full(url):
    """The segments that hold anything, dead rows included: only emptying as a whole makes them small again."""
    return {n for n in range(SEGMENTS) if query(url, "SELECT pg_relation_size(?::regclass)", f"outbox_s{n}")[0][0]}


def home_of(url, where):
    """The segment that holds these messages."""
    home, = {segment_of(id) for (id,) in query(url, f"SELECT id FROM outbox WHERE {where}")}
    return home


def sent(out):
    return [d.id for d in read_sink(out)] if os.path.exists(out) else []


def payloads(out, key):
    with open(out, encoding="utf-8") as f:
        return [line["payload"] for line in map(json.loads, f) if line["key"] == key]


def push(sluice, url, key, *payloads, **more):
    text = "".join(json.dumps({"topic": "t", "key": key, "payload": p, **more}) + "\n" for p in payloads)
    sluice.run("push", "--lines", "-", db=url, input=text)


def all_done(url):
    wait_until(lambda: waiting(url) == 0, 20, "all is delivered")


def go_round(url, node, keep=()):
    """Messages go through every segment, and each but those to keep is emptied by the node, beside new messages."""
    messages = {}
    for _ in range(5):
        messages.update(commit(url, 100))
        wait_until(lambda: waiting(url) <= rows(url, "held"), 20, "all but what is held is delivered")
        next_segment(url)
    assert {segment_of(id) for id in messages} == set(range(SEGMENTS))
    wait_until(lambda: full(url) <= set(keep), 20, "the segments are empty")
    assert node.running
    return messages


# -- Delivered ------------------------------------------------------------------------------------

def test_what_was_delivered_stays_and_does_not_count(sluice, box, out):
    messages = commit(box, 500)
    assert status(sluice, box)["total"] == waiting(box) == 500
    sluice.run(*flags(out, "--drain"), db=box)
    assert check(messages, read_sink(out), least=500).duplicates == 0
    assert rows(box) > 300, "rows stay"
    got = status(sluice, box)
    assert (got["total"], got["due"], got["held"], got["lag_seconds"]) == (0, 0, 0, 0)
    assert waiting(box) == 0

    sluice.run(*flags(out, "--drain", "--node", "another"), db=box)
    assert len(sent(out)) == 500, "another node knows what has been done"
    more = commit(box, 500)
    sluice.run(*flags(out, "--drain", "--node", "a-third"), db=box)
    assert check({**messages, **more}, read_sink(out), least=1000).duplicates == 0


def test_a_running_node_empties_segments(sluice, box, out):
    """The current one, too, once nothing happens."""
    node = sluice.start(*flags(out), db=box)
    messages = go_round(box, node)
    messages.update(commit(box, 300))
    wait_until(lambda: not full(box), 20, "the current segment is empty")
    node.term()
    node.wait(status=0)
    assert check(messages, read_sink(out), least=800).duplicates == 0
    assert query(box, "SELECT count(*) FROM outbox_done")[0][0] <= 5, "positions are folded"


def test_two_nodes(sluice, box, out):
    nodes = [sluice.start(*flags(out, "--node", name), db=box) for name in "ab"]
    messages = go_round(box, nodes[0])
    nodes[0].term()
    nodes[0].wait(status=0)
    messages.update(go_round(box, nodes[1]))
    assert check(messages, read_sink(out), least=1000).duplicates == 0


def test_assigned_in_any_way(sluice, box, out):
    messages = {}
    for how in (["ring"], ["claim"], ["birth-order"], ["static", "--static-lanes", "0-63"]):
        messages.update(commit(box, 200))
        sluice.run(*flags(out, "--drain", "--assign", *how), db=box)
        assert waiting(box) == 0
    assert check(messages, read_sink(out), least=800).duplicates == 0


# -- Not delivered --------------------------------------------------------------------------------

def test_a_parked_key(sluice, box, out):
    node = sluice.start(*flags(out), db=box)
    sluice.run("keys", "park", "--key", "p", "--yes", db=box)
    push(sluice, box, "p", 1, 2, 3)
    wait_until(lambda: rows(box, "held") == 3, 20, "they are held")
    home = home_of(box, "held")
    go_round(box, node, keep=[home])
    wait_until(lambda: rows(box) == 3, 20, "what was delivered beside them is gone")
    got = status(sluice, box)
    assert (got["total"], got["held"]) == (3, 3) and payloads(out, "p") == []
    sluice.run("keys", "resume", "--key", "p", "--yes", db=box)
    all_done(box)
    assert payloads(out, "p") == [1, 2, 3]
    push(sluice, box, "p", 4)
    wait_until(lambda: payloads(out, "p") == [1, 2, 3, 4], 20, "the key goes on")
    wait_until(lambda: not full(box), 20, "its segment is empty")


def test_messages_that_failed(sluice, box, out):
    """Retried, skipped, dead and resent, from a segment whose others have been emptied meanwhile."""
    push(sluice, box, "a", 1, 2)
    push(sluice, box, "b", 3, 4)
    push(sluice, box, None, 5)
    with too_large(sluice) as sink:
        sluice.run("run", "--sink", sink, "--drain", "--retry-base", "1h", "--retry-max", "1h", db=box)
    assert rows(box, "held") == 5
    home = home_of(box, "held")
    next_segment(box)
    node = sluice.start(*flags(out), db=box)
    go_round(box, node, keep=[home])
    assert status(sluice, box)["total"] == 5
    listed = json.loads(sluice.run("keys", "--json", db=box).stdout)
    assert {k["key"]: (k["state"], k["behind"]) for k in listed["keys"]} == {"a": ("blocked", 1), "b": ("blocked", 1)}

    sluice.run("keys", "retry", "--key", "a", "--yes", db=box)
    wait_until(lambda: payloads(out, "a") == [1, 2], 20, "what was retried")
    sluice.run("keys", "skip-head", "--key", "b", "--yes", db=box)
    wait_until(lambda: payloads(out, "b") == [4], 20, "what stood behind the one that was skipped")
    assert status(sluice, box)["dead"] == 1
    sluice.run("dead", "resend", "--all", "--yes", db=box)
    wait_until(lambda: payloads(out, "b") == [4, 3], 20, "the dead letter")
    query(box, "UPDATE outbox SET available_at = now() WHERE held")
    wait_until(lambda: payloads(out, None) == [5], 20, "the one without a key")
    wait_until(lambda: not full(box), 20, "the last segments are empty")


def test_skip_head_of_a_key_whose_delivered_messages_stay(sluice, box, out):
    """Its first message is the first that waits."""
    push(sluice, box, "k", *range(100))
    sluice.run(*flags(out, "--drain"), db=box)
    assert rows(box, "entity_key = 'k'") > 0 and len(payloads(out, "k")) == 100
    sluice.run("keys", "park", "--key", "k", "--yes", db=box)
    push(sluice, box, "k", 100, 101)
    sluice.run("keys", "skip-head", "--key", "k", "--yes", db=box)
    assert query(box, "SELECT payload FROM outbox_dead") == [(b"100",)]
    sluice.run("keys", "resume", "--key", "k", "--yes", db=box)
    sluice.run(*flags(out, "--drain"), db=box)
    assert payloads(out, "k") == [*range(100), 101] and waiting(box) == 0


def test_a_delivered_message_is_gone_for_operators(sluice, box, out):
    messages = commit(box, 100)
    sluice.run(*flags(out, "--drain"), db=box)
    last = max(messages)
    assert rows(box, f"id = {last}") == 1
    done = sluice.run("keys", "skip-head", "--message", last, "--yes", db=box, check=1)
    assert query(box, "SELECT count(*) FROM outbox_dead") == [(0,)], done.stdout + done.stderr
    assert json.loads(sluice.run("keys", "--json", db=box).stdout)["keys"] == []


def test_scheduled_messages(sluice, box, out):
    """Their key waits for them, and so does their segment."""
    node = sluice.start(*flags(out), db=box)
    query(box, "INSERT INTO outbox (topic, entity_key, payload, available_at) VALUES"
               " ('t', 'k', '1', now() + interval '1 hour'), ('t', 'k', '2', now()), ('t', NULL, '3', now() + interval '1 hour')")
    wait_until(lambda: rows(box, "held") == 3, 20, "they are put aside")
    home = home_of(box, "held")
    go_round(box, node, keep=[home])
    assert status(sluice, box)["total"] == 3
    query(box, "UPDATE outbox SET available_at = now() WHERE held")
    query(box, "UPDATE outbox_keys SET due_at = now()")
    wait_until(lambda: (payloads(out, "k"), payloads(out, None)) == ([1, 2], [3]), 20, "all three")
    wait_until(lambda: not full(box), 20, "their segment is empty")


def test_a_scheduled_message_without_a_key(sluice, box, out):
    """It alone keeps its segment: no key leads to it."""
    node = sluice.start(*flags(out), db=box)
    query(box, "INSERT INTO outbox (topic, payload, available_at) VALUES ('t', '1', now() + interval '1 hour')")
    wait_until(lambda: rows(box, "held") == 1, 20, "it is put aside")
    go_round(box, node, keep=[home_of(box, "held")])
    query(box, "UPDATE outbox SET available_at = now() WHERE held")
    wait_until(lambda: payloads(out, None) == [1], 20, "its time has come")


def test_unordered_delay(sluice, box, out):
    node = sluice.start(*flags(out, "--unordered-delay"), db=box)
    query(box, "INSERT INTO outbox (topic, entity_key, payload, available_at) VALUES"
               " ('t', 'k', '1', now() + interval '1 hour'), ('t', 'k', '2', now())")
    wait_until(lambda: os.path.exists(out) and payloads(out, "k") == [2], 20, "the one behind it")
    wait_until(lambda: rows(box, "delayed") == 1, 20, "it is put aside")
    home = home_of(box, "delayed")
    go_round(box, node, keep=[home])
    assert payloads(out, "k") == [2] and status(sluice, box)["total"] == 1
    query(box, "UPDATE outbox SET available_at = now() WHERE delayed")
    wait_until(lambda: payloads(out, "k") == [2, 1], 20, "its time has come")
    wait_until(lambda: not full(box), 20, "its segment is empty")


def failed_turns(node):
    """What is said again and again is counted in the log."""
    lines = [line for line in node.stderr().splitlines() if "turn failed, trying again" in line]
    return sum(int(line.rpartition("repeated=")[2]) if "repeated=" in line else 1 for line in lines)


@pytest.mark.slow
def test_one_session_ends_and_the_others_go_on(sluice, box, out):
    """Its worker connects anew, and where to go on is asked anew; turns of the other workers, which are always on their way
    here, are not given up for that."""
    node = sluice.start(*flags(out), "--workers", 4, db=box)
    node.wait_log("node started")
    messages, ended = {}, 0
    while failed_turns(node) < 8:  # the keeper has a session, too
        assert ended < 50, f"{failed_turns(node)} turns failed, where {ended} sessions were ended"
        ended += query(box, "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname ="
                            " current_database() AND application_name = 'sluice' ORDER BY random() LIMIT 1) s")[0][0]
        for _ in range(20):
            messages.update(commit(box, 400))
        assert failed_turns(node) <= ended, "more than one for each session"
    wait_until(lambda: waiting(box) == 0, 30, "all is delivered")
    node.term()
    node.wait(status=0)
    assert "could not be renewed" not in node.stderr()
    check(messages, read_sink(out), in_flight=list(messages), duplicates_max=ended * BATCH, least=4000)


# -- Producers ------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_that_stays_open(sluice, box, out, end):
    """Messages with higher ids are delivered and may even go with their segments; when it commits, its own arrive."""
    node = sluice.start(*flags(out), db=box)
    messages = commit(box, 100)
    all_done(box)
    conn = psycopg2.connect(box)
    cur = conn.cursor()
    cur.execute("INSERT INTO outbox (topic, entity_key, payload) SELECT 'orders', 'late:' || i, '1' FROM"
                " generate_series(1, 64) i RETURNING id")
    late = [id for (id,) in cur.fetchall()]
    home = segment_of(late[0])
    for _ in range(5):
        messages.update(commit(box, 100))
        all_done(box)
        next_segment(box)
    wait_until(lambda: full(box) <= {home}, 20, "the other segments are empty")
    assert not set(late) & set(sent(out))
    (conn.commit if end == "commit" else conn.rollback)()
    conn.close()
    if end == "commit":
        wait_until(lambda: set(late) <= set(sent(out)), 20, "the late ones")
    messages.update(commit(box, 100))
    all_done(box)
    wait_until(lambda: not full(box), 20, "all segments are empty")
    node.term()
    node.wait(status=0)
    assert sorted(sent(out)) == sorted([*messages, *(late if end == "commit" else [])])


def test_one_that_commits_while_its_segment_is_about_to_be_emptied(sluice, box, out):
    """Whoever empties waits for it, for a moment, and looks again."""
    sluice.start(*flags(out), db=box)
    messages, late = {}, []
    waits = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted AND relation = ?::regclass"
    look = connect(box)

    def waited_for(segment):
        messages.update(commit(box, 10))  # while nothing happens nobody looks
        with look.cursor() as cur:
            for _ in range(100):
                cur.execute(waits.replace("?", "%s"), (segment,))
                if cur.fetchone()[0]:
                    return True
        return False
    for i in range(4):
        conn = psycopg2.connect(box)
        cur = conn.cursor()
        cur.execute("INSERT INTO outbox (topic, payload) VALUES ('late', '1') RETURNING id")
        late.append(cur.fetchone()[0])
        next_segment(box)
        wait_until(lambda: waited_for(f"outbox_s{segment_of(late[-1])}"), 30, "its segment is to be emptied", every=0)
        conn.commit()
        conn.close()
        wait_until(lambda: late[-1] in sent(out), 20, "the late one")
    look.close()
    all_done(box)
    assert sorted(sent(out)) == sorted([*messages, *late])


def test_ids_are_given_by_the_table(sluice, box, out):
    for sql in ("INSERT INTO outbox (id, topic, payload) VALUES (7, 't', '1')", "UPDATE outbox SET id = 7"):
        commit(box, 1)
        with pytest.raises(psycopg2.Error, match='column "id"'):
            query(box, sql)
    messages = commit(box, 100)
    sluice.run(*flags(out, "--drain"), db=box)
    assert set(messages) <= set(sent(out))


def test_idempotency_keys(sluice, box, out):
    """Of what waits, of what was delivered and stays, and of what has gone with its segment."""
    node = sluice.start(*flags(out), db=box)
    line = json.dumps({"topic": "t", "key": "k", "payload": 1, "idempotency_key": "once"})

    def again():
        before = query(box, "SELECT count(*), max(id) FROM outbox")
        sluice.run("push", "--lines", "-", db=box, input=line)
        query(box, "INSERT INTO outbox (topic, payload, idempotency_key) VALUES ('t', '1', 'once') ON CONFLICT DO NOTHING")
        return query(box, "SELECT count(*), max(id) FROM outbox") != before
    sluice.run("push", "--lines", "-", db=box, input=line)
    all_done(box)
    assert not again()
    messages = go_round(box, node)
    assert not again()
    node.term()
    node.wait(status=0)
    assert payloads(out, "k") == [1] and len(sent(out)) == len(messages) + 1
    node = sluice.start(*flags(out, "--idempotency-keep", "1s"), db=box)
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox_idempotency") == [(0,)], 30, "it is forgotten")
    sluice.run("push", "--lines", "-", db=box, input=line)
    wait_until(lambda: payloads(out, "k") == [1, 1], 20, "it is another message now")


def test_retention(sluice, box, out):
    """What is kept is copied, each once, and not left standing."""
    messages = commit(box, 300)
    sluice.run(*flags(out, "--drain", "--retention", "1h"), db=box)
    assert [id for (id,) in query(box, "SELECT id FROM outbox_sent ORDER BY id")] == sorted(messages)
    assert rows(box) == 0
    node = sluice.start(*flags(out, "--retention", "1h"), db=box)
    messages.update(go_round(box, node))
    assert [id for (id,) in query(box, "SELECT id FROM outbox_sent ORDER BY id")] == sorted(messages)
    assert query(box, "SELECT count(*) FROM outbox_done") == [(0,)], "it was said that they stay"


# -- Crashes --------------------------------------------------------------------------------------

def test_what_a_former_owner_says_is_done(sluice, box, tmp_path, recorded):
    """It was stopped before it could say so, and its lanes are another's: it is not believed, and the other sends them
    again."""
    mine, theirs = str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")
    messages = commit(box, 100)
    a = sluice.start(*flags(mine, "--node", "a", "--lease", "10m"), db=box, env={**recorded.env, "SLUICE_FAULT": "sent:2:stop"})
    wait_until(lambda: all_stopped(a.pid) and len(sent(mine)) == 2 * BATCH, 20, "the stop")
    hers = recorded.in_flight(a)
    assert len(hers) == BATCH and set(hers) <= set(sent(mine)[BATCH:])
    end_claims(box)
    before = query(box, "SELECT * FROM outbox_done")
    with Gate(theirs):
        b = sluice.start(*flags(theirs, "--node", "b"), db=box, env=recorded.env)
        wait_until(lambda: recorded.at_the_gate(b, 1), 20, "the other has them")
        a.resume()
        wait_until(lambda: not recorded.in_flight(a), 20, "it gives up what it had in hand")
        assert query(box, "SELECT * FROM outbox_done") == before, "it wrote a position"
        a.kill9()
    all_done(box)
    assert sorted(sent(theirs)) == sorted(messages.keys() - set(sent(mine)[:BATCH]))


@pytest.mark.parametrize("layout", ["sluice", "rotated"])
def test_ids_that_are_given_again(sluice, own_pg, out, layout):
    """A standby that was behind takes over: ids that the node has seen go to other messages now, and those arrive, too."""
    name = own_pg.new_database().rpartition("/")[2]
    sluice.run("init", "--layout", layout, db=own_pg.url(name))
    standby = own_pg.standby()
    both = f"postgresql://postgres@127.0.0.1:{own_pg.port},127.0.0.1:{standby.port}/{name}?target_session_attrs=read-write"
    node = sluice.start(*flags(out, "--lease", "10m"), db=both)
    commit(own_pg.url(name), 40)
    all_done(own_pg.url(name))
    end = own_pg.sql("SELECT pg_current_wal_insert_lsn()")
    wait_until(lambda: standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{end}'") == "t", 20, "the standby has it all")
    standby.stop()
    commit(own_pg.url(name), 300)
    all_done(own_pg.url(name))
    assert len(sent(out)) == 340
    own_pg.kill()
    standby.start()
    standby.promote()
    url = standby.url(name)
    new = commit(url, 300)
    assert set(new) & set(sent(out)), "ids are given again"
    wait_until(lambda: waiting(url) == 0, 20, "all is delivered")
    assert set(new) <= set(sent(out)[340:])
    node.term()
    node.wait(status=0)


# -- Refused --------------------------------------------------------------------------------------

@pytest.mark.parametrize("command, words", [
    *((["run", "--sink", "null:", "--drain", "--strategy", s], f"cannot be shared by strategy '{s}'\nhint: strategy: lanes")
      for s in ("guard", "advisory", "skip-locked")),
    (["run", "--sink", "null:", "--drain", "--delivery", "at-most-once"], "cannot be delivered at most once\nhint: "),
    (["lanes", "--set", "32"], "the number of lanes of table 'outbox' cannot be changed: it is of layout rotated"),
    (["pull"], "a table of layout rotated cannot be shared by strategy"),
])
def test_refused(sluice, box, command, words):
    commit(box, 10)
    done = sluice.run(*command, db=box, check=1)
    assert words in done.stderr and "hint: " in done.stderr and done.stdout == ""
    assert waiting(box) == rows(box) == 10
    assert query(box, "SELECT count(*) FROM outbox_lanes") == [(64,)]


def test_an_ordinary_table_is_not_made_into_one(sluice, pgdb):
    sluice.run("init", db=pgdb)
    for command in (["init"], ["run", "--sink", "null:", "--drain"], ["status"]):
        done = sluice.run(*command, *LAYOUT, db=pgdb, check=1)
        assert "table 'outbox' is there, and not of layout rotated\nhint: make one of another name" in done.stderr
    assert query(pgdb, "SELECT relkind FROM pg_class WHERE relname = 'outbox'") in ([("r",)], [(b"r",)])
    sluice.run("init", *LAYOUT, "--table", "other", db=pgdb)
    sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, "--table", "other", db=pgdb)


def test_init_again(sluice, box):
    """With and without the layout: it is there. Another number of lanes is not."""
    for more in ([], LAYOUT):
        assert "up to date" in sluice.run("init", *more, db=box).stdout
    commit(box, 10)
    sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, db=box)
    assert waiting(box) == 0


def test_not_on_sqlite(sluice, sqlitedb, litebox):
    for command in (["init", "--print"], ["init"]):
        done = sluice.run(*command, *LAYOUT, db=sqlitedb.replace("outbox.db", "new.db"), check=1)
        assert "layout rotated is for PostgreSQL only\nhint: leave the layout out" in done.stderr
    assert "layout rotated" in sluice.run("run", "--sink", "null:", "--drain", *LAYOUT, db=litebox, check=1).stderr


def test_a_sequence_that_was_set_back(sluice, box, out):
    """No node starts, and what the hint says mends it."""
    first = commit(box, 200)
    sluice.run(*flags(out, "--drain"), db=box)
    query(box, "SELECT setval('outbox_ids', 10)")
    done = sluice.run(*flags(out, "--drain"), db=box, check=1)
    assert "the sequence of ids was set back behind what has been delivered" in done.stderr and "hint: " in done.stderr
    query(box, "SELECT setval('outbox_ids', (SELECT max(floor) FROM outbox_positions))")
    second = commit(box, 200)
    sluice.run(*flags(out, "--drain"), db=box)
    assert check({**first, **second}, read_sink(out), least=400).duplicates == 0


# -- Names, printing, doctor ----------------------------------------------------------------------

def dump(pg, url):
    done = subprocess.run([os.path.join(pg.bin, "pg_dump"), "--schema-only", "--no-owner", "-d", url], text=True,
                          capture_output=True, check=True).stdout
    return [line for line in done.split("\n") if not line.startswith(("\\", "--"))]


@pytest.mark.parametrize("more", [[], ["--table", "app.events", "--columns", "entity_key=aggregate_id", "--lanes", "8"]])
def test_print_makes_the_same_tables(sluice, pg, pgdb, out, more):
    other = pg.new_database()
    for url in (pgdb, other):
        query(url, "CREATE SCHEMA app")
    script = sluice.run("init", "--print", *LAYOUT, *more, db="postgresql:").stdout
    subprocess.run([os.path.join(pg.bin, "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-d", other], input=script, text=True,
                   check=True, capture_output=True)
    sluice.run("init", *LAYOUT, *more, db=pgdb)
    assert dump(pg, other) == dump(pg, pgdb)
    assert "up to date" in sluice.run("init", *LAYOUT, *more, db=other).stdout
    table = more[1] if more else "outbox"
    key = "aggregate_id" if more else "entity_key"
    node = sluice.start(*flags(out, *more[:4]), db=other)
    query(other, f"INSERT INTO {table} (topic, {key}, payload) SELECT 't', 'k' || i, '1' FROM generate_series(1, 300) i")
    wait_until(lambda: waiting(other, table) == 0, 20, "all is delivered")
    sizes = "SELECT sum(pg_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = ?::regclass"
    wait_until(lambda: query(other, sizes, table) == [(0,)], 20, "its segments are empty")
    assert len(sent(out)) == 300
    node.term()
    node.wait(status=0)
    pg.drop_database(other)


@pytest.fixture(scope="module")
def server():
    """As it should be: the doctor has nothing to say of it."""
    with Postgres(fsync=True, settings={"autovacuum_naptime": "1h"}) as s:
        yield s


def doctor(sluice, url, *more):
    done = sluice.run("doctor", "--json", *more, db=url, check=False)
    return {f["check"]: f for f in json.loads(done.stdout)["findings"] if f["state"] != "ok" and f["check"] != "library"}


def test_doctor(sluice, server, out):
    """Nothing is wrong with one that is new, at work, or full of what has been delivered; what is wrong is found."""
    url = server.new_database()
    sluice.run("init", *LAYOUT, db=url)
    assert doctor(sluice, url, "--deep") == {}
    commit(url, 3000)
    sluice.run(*flags(out, "--drain"), db=url)
    query(url, "UPDATE outbox SET available_at = now() - interval '1 day', created_at = now() - interval '1 day'")
    assert rows(url) > 2000 and doctor(sluice, url, "--deep") == {}
    query(url, "ANALYZE")
    assert doctor(sluice, url) == {}
    query(url, "DROP INDEX outbox_ix_lane")
    assert set(doctor(sluice, url)) == {"indexes"}
    sluice.run("init", *LAYOUT, db=url, check=False)
    server.drop_database(url)


def test_least_privilege(sluice, server, out):
    """What the doctor names is enough: to deliver, and to empty segments."""
    url = server.new_database()
    sluice.run("init", *LAYOUT, db=url)
    role = "relay_" + url.rpartition("/")[2]
    query(url, f"CREATE ROLE {role} LOGIN")
    query(url, f"GRANT pg_read_all_stats TO {role}")
    relay = url.replace("postgres@", role + "@")
    assert "permission denied" in sluice.run(*flags(out, "--drain"), db=relay, check=1).stderr
    found = doctor(sluice, relay)["grants"]
    for statement in found["do"].split("; "):
        query(url, statement)
    assert doctor(sluice, relay) == {}
    sluice.run("keys", "park", "--key", "p", "--yes", db=relay)
    push(sluice, url, "p", 1)
    node = sluice.start(*flags(out), db=relay)
    wait_until(lambda: rows(url, "held") == 1, 20, "it is held")
    messages = go_round(url, node, keep=[home_of(url, "held")])
    wait_until(lambda: rows(url) == 1, 20, "what was delivered beside it is gone")
    sluice.run("keys", "resume", "--key", "p", "--yes", db=relay)
    wait_until(lambda: not full(url), 20, "all segments are empty")
    node.term()
    node.wait(status=0)
    assert len(sent(out)) == len(messages) + 1

    query(url, f"REVOKE TRUNCATE ON outbox_s1 FROM {role}")
    assert doctor(sluice, relay)["grants"]["do"] == f'GRANT TRUNCATE ON outbox_s1 TO "{role}"'
    server.drop_database(url)
