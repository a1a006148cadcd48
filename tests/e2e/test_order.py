"""Messages of one key go in order, one worker at a time: with several nodes, with failures and schedules,
by run and by pull, and when the strategy changes. What faults do to that is in test_nemesis.py."""
import json
import signal
import threading
import time

import pytest

import record
from checker import check, commit, committed, delivery, message, read_sink, Record
from conftest import assert_in_order, claims_ended, end_claims
from harness import PATIENCE, Gate, is_postgres, query, scaled, too_large, wait_until
from history import History

BATCH = 20


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "out.jsonl")


def is_empty(url):
    return query(url, "SELECT count(*) FROM outbox") == [(0,)]


def ids(url, condition="true"):
    return [id for (id,) in query(url, f"SELECT id FROM outbox WHERE {condition} ORDER BY id")]


def owners(url):
    """How many lanes each node owns; None: nobody."""
    return dict(query(url, "SELECT n.node, count(*) FROM outbox_lanes l LEFT JOIN outbox_nodes n ON n.session = l.owner"
                           " GROUP BY n.node"))


def make_due(url):
    """All that waits for its time does so no longer."""
    past = "now()" if is_postgres(url) else "'2020-01-01'"
    query(url, f"UPDATE outbox SET available_at = {past}")
    query(url, f"UPDATE outbox_keys SET due_at = {past}")


def stop(*nodes):
    for node in nodes:
        node.term()
    for node in nodes:
        node.wait(status=0)


def assert_all_once_and_in_order(messages, *paths):
    deliveries = read_sink(*paths)
    assert check(messages, deliveries, least=len(messages)).duplicates == 0
    assert_in_order(deliveries)
    return deliveries


# -- Several nodes -------------------------------------------------------------------------------

TWO = {
    "advisory": [["--strategy", "advisory"]] * 2,
    "guard": [["--strategy", "guard"]] * 2,
    "ring": [[]] * 2,  # by default
    "claim": [["--assign", "claim"]] * 2,
    "static": [["--assign", "static", "--static-lanes", "0-31"], ["--assign", "static", "--static-lanes", "32-62,63"]],
    "birth-order": [["--assign", "birth-order"]] * 2,
}


def commit_without_a_key(url):
    [row] = query(url, "INSERT INTO outbox (topic, payload) VALUES ('orders', '1') RETURNING id, topic, entity_key, payload")
    return {row[0]: message(*row[1:])}


@pytest.mark.threads
@pytest.mark.parametrize("kind, how", [*(("pgdb", how) for how in TWO),
                                       *(("sqlitedb", how) for how in ("advisory", "guard", "ring", "static"))])
def test_two_nodes_keep_the_order(sluice, request, out, recorded, kind, how):
    """Four workers each, few keys, some messages without one, committed while they run. Each node does
    its part, and no key is ever in two hands."""
    db = request.getfixturevalue(kind)
    lanes = how not in ("advisory", "guard")
    sluice.run("init", db=db)
    nodes = [sluice.start("run", "--node", name, "--sink", f"file:{out}", "--workers", 4, "--batch", BATCH, "--poll", "5ms",
                          *flags, db=db, env=recorded.env) for name, flags in zip("ab", TWO[how], strict=True)]
    if lanes:  # a node that sees the other late owns all of them for a while
        wait_until(lambda: owners(db).keys() == {"a", "b"}, 10, "both nodes own lanes")
    messages = {}

    def at_work():
        return {d.worker.partition("/")[0] for d in read_sink(out)}
    while len(messages) < scaled(900, 90) or len(at_work()) < 2:  # one node alone would prove nothing
        messages.update(commit(db, scaled(300, 30)))
        messages.update(commit_without_a_key(db))
        wait_until(lambda: is_empty(db), 30, "delivery")
    stop(*nodes)
    deliveries = assert_all_once_and_in_order(messages, out)
    figures = History(messages, deliveries, record.read(recorded.folder), lease=30, batch=BATCH).judge(
        least={"messages": scaled(900, 90), "tenures": 64 if lanes else 0})
    print(figures)
    assert query(db, "SELECT count(*) FROM outbox_nodes") == [(0,)]
    assert owners(db) == {None: 64}


@pytest.mark.threads
def test_reloads_keep_the_order(sluice, box, out, recorded, ordered):
    """Each one ends the workers and begins anew: claims change hands, and nothing else does."""
    flags = ["--strategy", ordered, "--sink", f"file:{out}", "--workers", 2, "--batch", BATCH, "--poll", "5ms"]
    nodes = [sluice.start("run", *flags, "--node", name, db=box, env=recorded.env) for name in "ab"]
    for node in nodes:
        node.wait_log("node started")  # and hears signals
    messages = {}
    for i in range(4):
        messages.update(commit(box, scaled(300, 30)))
        node, reloads = nodes[i % 2], i // 2
        node.signal(signal.SIGHUP)
        wait_until(lambda: node.stderr().count("settings reloaded") > reloads, 10, "a reload")
    wait_until(lambda: is_empty(box), 30, "delivery")
    stop(*nodes)
    deliveries = assert_all_once_and_in_order(messages, out)
    History(messages, deliveries, record.read(recorded.folder), lease=30, batch=BATCH).judge(
        least={"messages": len(messages)})


def test_static_lanes_are_those_of_the_list(sluice, box, out):
    """What is in other lanes waits for who owns them; a lane that is named twice is one."""
    messages = commit(box, 200)
    lane_of = dict(query(box, "SELECT id, lane FROM outbox"))
    mine = {id for id, lane in lane_of.items() if lane < 16 or lane == 40}
    node = sluice.start("run", "--sink", f"file:{out}", "--assign", "static", "--static-lanes", "0-15,40,3", "--poll",
                        "20ms", "--node", "a", db=box)
    wait_until(lambda: set(ids(box)) == messages.keys() - mine, 10, "its own are delivered")
    wait_until(lambda: owners(box) == {"a": 17, None: 47}, 10, "lanes of the first")
    other = sluice.start("run", "--sink", f"file:{out}", "--assign", "static", "--static-lanes", "16-63", "--poll", "20ms",
                         "--node", "b", db=box)
    wait_until(lambda: is_empty(box), 10, "and the rest by another")
    wait_until(lambda: owners(box) == {"a": 17, "b": 47}, 10, "who came first keeps what both want")
    stop(node, other)
    deliveries = assert_all_once_and_in_order(messages, out)
    assert {d.id for d in deliveries if d.worker.startswith("a/")} == mine


def test_who_joins_between_a_beat_and_its_list_and_leaves_is_not_waited_for(sluice, pgdb, out):
    """The beat has not counted it, the list has it, and the next beat counts as the first: its lanes are free."""
    sluice.run("init", db=pgdb)
    query(pgdb, """CREATE FUNCTION ghost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO outbox_nodes OVERRIDING SYSTEM VALUE
        SELECT * FROM jsonb_populate_record(NEW, '{"session": 1, "node": "ghost", "born": -1}') ON CONFLICT DO NOTHING;
        RETURN NULL; END $$""")
    query(pgdb, "CREATE TRIGGER ghost AFTER UPDATE ON outbox_nodes FOR EACH ROW EXECUTE FUNCTION ghost()")
    node = sluice.start("run", "--sink", f"file:{out}", "--poll", "20ms", "--node", "b", db=pgdb)
    wait_until(lambda: 0 < owners(pgdb).get("b", 0) < 64, 10, "the node leaves some lanes to the other")
    query(pgdb, "DROP TRIGGER ghost ON outbox_nodes")
    query(pgdb, "DELETE FROM outbox_nodes WHERE node = 'ghost'")
    wait_until(lambda: owners(pgdb) == {"b": 64}, 20, "the node takes them")
    stop(node)


def test_a_node_that_stops_frees_its_lanes_at_once(sluice, box, out):
    """Long before its lease, of 30 s, would end: the other sees it at its next heartbeat."""
    flags = ["--sink", f"file:{out}", "--poll", "20ms"]
    a, b = [sluice.start("run", *flags, "--node", name, db=box) for name in "ab"]
    wait_until(lambda: owners(box).keys() == {"a", "b"}, 10, "both nodes own lanes")
    a.term()
    asked = time.monotonic()
    a.wait(status=0)
    assert "a" not in owners(box)
    messages = commit(box, 200)  # for all lanes
    wait_until(lambda: is_empty(box), 20, "the other delivers all")
    took = time.monotonic() - asked
    print(f"{took:.2f} s")
    assert took < 15  # with the lease it would be 20 at least, since a heartbeat comes at a third of it
    assert owners(box) == {"b": 64}
    stop(b)
    assert {d.worker[0] for d in assert_all_once_and_in_order(messages, out)} == {"b"}


def test_drain_waits_for_the_lanes_of_a_dead_node(sluice, box, out, recorded):
    """They come back when its lease ends, and then all is delivered."""
    lease = max(2, PATIENCE)
    flags = ["--sink", f"file:{out}"]
    messages = commit(box, 200)
    started = time.monotonic()
    with Gate(out):
        dead = sluice.start("run", *flags, "--lease", f"{lease:g}s", "--batch", 10, "--node", "a", db=box, env=recorded.env)
        wait_until(lambda: recorded.at_the_gate(dead, 4), 10, "batches in flight")
        dead.kill9()
    sluice.run("run", *flags, "--drain", "--node", "b", db=box)
    assert time.monotonic() - started >= lease
    assert_all_once_and_in_order(messages, out)
    assert is_empty(box)


# -- What waits holds its key back, and no other -------------------------------------------------

BIG = b'"' + b"x" * 20_000 + b'"'


def test_a_message_that_fails(sluice, pgdb, out, strategy):
    """Large ones do not fit into the file: those behind them wait, untried, and all other keys go. Without
    order they do not wait."""
    keeps = strategy != "skip-locked"
    rows = [(f"k{i % 4}" if i % 5 else None, BIG if i in (6, 9, 14) else b"%d" % i) for i in range(1, 33)]
    sluice.run("init", db=pgdb)
    for key, payload in rows:
        query(pgdb, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', ?, ?)", key, payload)
    messages = committed(pgdb)
    flags = ["--strategy", strategy, "--sink", f"file:{out}", "--batch", 1, "--retry-base", "1h", "--retry-max", "1h",
             "--drain"]
    wrapper = sluice.wrapper
    sluice.wrapper = ["sh", "-c", 'ulimit -f 16; exec "$@"', "sh", *wrapper]  # 16 blocks of 512 bytes
    sluice.run("run", *flags, db=pgdb)
    sluice.wrapper = wrapper
    behind = [i for i, (key, _) in enumerate(rows, 1) if (key == "k2" and i > 6) or (key == "k1" and i > 9)]
    failed = [6, 9] if keeps else [6, 9, 14]
    assert ids(pgdb) == sorted({6, 9, 14} | set(behind if keeps else []))
    assert ids(pgdb, "attempts > 0") == failed == ids(pgdb, "last_error LIKE '%File too large%'")
    assert query(pgdb, "SELECT entity_key, head FROM outbox_keys ORDER BY 1") == ([("k1", 9), ("k2", 6)] if keeps else [])

    make_due(pgdb)
    sluice.run("run", *flags, db=pgdb)
    deliveries = read_sink(out)
    assert check(messages, deliveries, least=32).duplicates == 0
    assert {d.id for d in deliveries if d.attempt == 2} == set(failed)
    if keeps:
        assert_in_order(deliveries)
        assert query(pgdb, "SELECT count(*) FROM outbox_keys") == [(0,)]


def test_a_message_that_is_scheduled(sluice, box, out, ordered):
    """Those behind it wait with it; those before it, and without a key, do not."""
    flags = ["--strategy", ordered, "--sink", f"file:{out}", "--drain"]
    lines = [("k", 0), ("k", 1), ("k", 0), ("other", 0), (None, 1), (None, 0), ("other", 0)]
    text = "".join(json.dumps({"topic": "t", "key": key, "payload": 1, **({"available_at": time.time() + 3600} if later
                                                                          else {})}) + "\n" for key, later in lines)
    sluice.run("push", "--lines", "-", db=box, input=text)
    messages = committed(box)
    sluice.run("run", *flags, db=box)
    assert ids(box) == [2, 3, 5]
    query(box, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '1')")  # comes behind them, too
    messages = {**messages, 8: committed(box)[8]}
    sluice.run("run", *flags, db=box)
    assert ids(box) == [2, 3, 5, 8]
    make_due(box)
    sluice.run("run", *flags, db=box)
    assert {d.attempt for d in assert_all_once_and_in_order(messages, out)} == {1}


def test_times_that_are_null(sluice, db, out, ordered):
    """As in a table that was adopted: they are due. Nor do leases of skip-locked make them forgotten."""
    id = "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY" if is_postgres(db) else "INTEGER PRIMARY KEY AUTOINCREMENT"
    bytes = "bytea" if is_postgres(db) else "BLOB"
    time = "timestamptz" if is_postgres(db) else "TEXT"
    query(db, f"CREATE TABLE outbox (id {id}, topic text, entity_key text, payload {bytes}, available_at {time})")
    query(db, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', 'k', '1'), ('t', NULL, '2'), ('t', 'k', '3'),"
              " ('t', 'other', '4')")
    sluice.run("init", db=db)
    messages = committed(db)
    sluice.run("pull", "--strategy", "skip-locked", "--batch", 2, "--lease", "1s", db=db)
    flags = ["--strategy", ordered, "--sink", f"file:{out}", "--drain"]
    sluice.run("run", *flags, db=db)
    wait_until(lambda: claims_ended(db), 10, "the end of the leases")
    sluice.run("run", *flags, db=db)
    assert_all_once_and_in_order(messages, out)


# -- One strategy at a time ----------------------------------------------------------------------

@pytest.mark.parametrize("first, kind", [("lanes", "pgdb"), ("advisory", "pgdb"), ("guard", "sqlitedb"),
                                         ("skip-locked", "sqlitedb")])
def test_nodes_with_another_strategy_are_refused(sluice, request, out, first, kind):
    """Until all of the others have stopped, or their lease is over."""
    box = request.getfixturevalue(kind)
    sluice.run("init", db=box)
    others = [s for s in ("skip-locked", "advisory", "guard", "lanes") if s != first]
    flags = ["--sink", f"file:{out}", "--poll", "20ms", "--lease", "10m"]
    node = sluice.start("run", *flags, "--strategy", first, "--node", "first", db=box)
    node.wait_log("node started")

    def refused(*command):
        done = sluice.run(*command, db=box, check=1)
        assert done.stdout == ""
        for words in (f"node 'first' lives and shares this table by strategy {first}, not ", "hint: stop all nodes of the one",
                      "one that crashed is forgotten in "):
            assert words in done.stderr
    for other in others:
        refused("run", *flags, "--strategy", other, "--drain")
    if first != "guard":
        refused("pull")
    node.kill9()
    refused("run", *flags, "--strategy", others[0], "--drain")
    end_claims(box)
    messages = commit(box, 10)
    sluice.run("run", *flags, "--strategy", others[0], "--drain", db=box)

    node = sluice.start("run", *flags, "--strategy", first, "--node", "first", db=box)
    node.wait_log("node started")
    stop(node)
    messages.update(commit(box, 10))
    sluice.run("run", *flags, "--strategy", others[1], "--drain", db=box)
    assert check(messages, read_sink(out), least=20).duplicates == 0


def test_what_was_pulled_keeps_other_strategies_away(sluice, box):
    """A pull holds keys by guard when its process is long gone: until they are settled, or the lease ends."""
    commit(box, 1)
    [line] = map(json.loads, sluice.run("pull", db=box).stdout.splitlines())
    done = sluice.run("run", "--sink", "null:", "--drain", db=box, check=1)
    assert "keys are still leased" in done.stderr and "hint: settle what was pulled" in done.stderr
    sluice.run("pull", "--ack", line["receipt"], db=box)
    sluice.run("run", "--sink", "null:", "--drain", db=box)


def test_one_strategy_after_the_other(sluice, box, out):
    """With messages that wait when it changes: nothing is lost, and what was not delivered without order
    is in order."""
    messages, seen = {}, 0
    for strategy in ("skip-locked", "lanes", "guard", "advisory", "skip-locked", "lanes"):
        flags = ["--strategy", strategy, "--retry-base", "1ms", "--retry-max", "1ms"]
        messages.update(commit(box, 150))
        with too_large(sluice) as sink:
            failing = sluice.start("run", *flags, "--sink", sink, "--batch", 10, "--poll", "5ms", db=box)
        wait_until(lambda: ids(box, "attempts > 0"), 10, "failures")
        stop(failing)
        assert len(ids(box)) == 150
        messages.update(commit(box, 50))
        sluice.run("run", *flags, "--sink", f"file:{out}", "--drain", db=box)
        assert is_empty(box)
        deliveries = read_sink(out)
        if strategy != "skip-locked":
            assert_in_order(deliveries[seen:])
            assert query(box, "SELECT count(*) FROM outbox_keys") == [(0,)]
        seen = len(deliveries)
    assert check(messages, deliveries, least=1200).duplicates == 0
    assert query(box, "SELECT count(*) FROM outbox_claims") == [(0,)]


# -- Names and numbers ---------------------------------------------------------------------------

def test_a_node_name_twice(sluice, box, out):
    """The younger one notices that another beats under its name, and ends; the elder goes on."""
    flags = ["--sink", f"file:{out}", "--poll", "20ms", "--lease", f"{round(1500 * PATIENCE)}ms", "--node", "same"]
    elder = sluice.start("run", *flags, db=box)
    elder.wait_log("node started")
    younger = sluice.start("run", *flags, db=box)
    younger.wait(10, status=1)
    assert "node name 'same' is taken: another process beats under it" in younger.stderr()
    assert "hint: give each node a --node of its own" in younger.stderr()
    messages = commit(box, 100)
    wait_until(lambda: is_empty(box), 10, "delivery by the elder")
    assert owners(box) == {"same": 64}
    elder.kill9()  # started again by who watches over it, at once and with its name: it is no other
    again = sluice.start("run", *flags, db=box)
    messages.update(commit(box, 100))
    wait_until(lambda: is_empty(box), 10, "delivery after the lease of the dead")
    wait_until(lambda: query(box, "SELECT count(*) FROM outbox_nodes") == [(1,)], 10, "the dead is forgotten")
    assert again.running
    stop(again)
    assert_all_once_and_in_order(messages, out)


@pytest.mark.parametrize("strategy", ["lanes", "guard"])
def test_another_number_of_lanes(sluice, box, strategy):
    for args, env in (["--lanes", "32"], {}), ([], {"SLUICE_LANES": "32"}):
        done = sluice.run("run", "--strategy", strategy, "--sink", "null:", "--drain", *args, db=box, env=env, check=1)
        assert "the table has 64 lanes, this node is told 32" in done.stderr and "sluice lanes --set 32" in done.stderr
    sluice.run("run", "--strategy", strategy, "--sink", "null:", "--drain", "--lanes", "64", db=box)
    assert query(box, "SELECT count(*) FROM outbox_nodes") == [(0,)], "who was refused leaves nothing behind"


@pytest.mark.parametrize("lanes, words", [
    ("x", ["'x' is no lane", "hint: give lanes as 0-15,32"]), ("1,,2", ["'' is no lane"]), ("-1", ["'-1' is no lane"]),
    ("1-", ["'1-' is no lane"]), ("5-3", ["'5-3' is a reversed range of lanes", "hint: 3-5"]),
    ("64", ["'64' is out of range: there are 64 lanes", "hint: from 0 to 63"]), ("60-64", ["'60-64' is out of range"]),
    ("99999999999999999999", ["99999999999999999999"])])
def test_wrong_lists_of_lanes(sluice, sqlitedb, lanes, words):
    sluice.run("init", db=sqlitedb)
    done = sluice.run("run", "--sink", "null:", "--drain", "--assign", "static", f"--static-lanes={lanes}", db=sqlitedb,
                      check=2)
    for word in words:
        assert word in done.stderr
    assert query(sqlitedb, "SELECT count(*) FROM outbox_nodes") == [(0,)], "who was refused leaves nothing behind"


# -- Pulling -------------------------------------------------------------------------------------

def pulled(sluice, url, *flags):
    return [json.loads(line) for line in sluice.run("pull", *flags, db=url).stdout.splitlines()]


@pytest.mark.parametrize("strategy", ["lanes", "advisory"])
def test_pull_needs_a_lease_that_outlives_it(sluice, box, strategy):
    for command in (["pull"], ["pull", "--ack", "1:1"]):
        done = sluice.run(*command, "--strategy", strategy, db=box, check=2)
        assert f"a pull cannot share a table by strategy '{strategy}'" in done.stderr
        assert "hint: guard, or skip-locked if order does not matter" in done.stderr and done.stdout == ""


def test_a_key_is_pulled_by_one_at_a_time(sluice, box):
    """All of it that fits is given together; it is free again with the receipt that ends with a dot."""
    for key in ("k", "k", "other", "k", None, "k"):
        query(box, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', ?, '1')", key)
    mine = pulled(sluice, box, "--batch", 2, "--lease", "1h")
    assert [line["id"] for line in mine] == [1, 2] and [line["receipt"][-1] == "." for line in mine] == [False, True]
    theirs = pulled(sluice, box, "--lease", "1h")
    assert [line["id"] for line in theirs] == [3, 5]
    assert pulled(sluice, box) == []
    sluice.run("pull", "--ack", mine[0]["receipt"], db=box)
    assert pulled(sluice, box) == []
    sluice.run("pull", "--ack", mine[1]["receipt"], db=box)
    assert [line["id"] for line in pulled(sluice, box, "--auto-ack")] == [4, 6]
    sluice.run("pull", "--ack", *(line["receipt"] for line in theirs), db=box)
    assert is_empty(box)


def test_what_a_puller_retries_holds_its_key_back(sluice, box):
    for key in ("k", "k", "k", "other"):
        query(box, "INSERT INTO outbox (topic, entity_key, payload) VALUES ('t', ?, '1')", key)
    lines = pulled(sluice, box, "--lease", "10m")
    assert [line["id"] for line in lines] == [1, 2, 3, 4]
    sluice.run("pull", "--bury", lines[0]["receipt"], db=box)
    sluice.run("pull", "--retry", "--delay", "1h", lines[1]["receipt"], db=box)
    end_claims(box)
    commit(box, 1)
    query(box, "UPDATE outbox SET entity_key = 'k' WHERE id = 5")
    assert [line["id"] for line in pulled(sluice, box, "--auto-ack")] == [4]
    assert pulled(sluice, box) == []
    make_due(box)
    assert [(line["id"], line["attempt"]) for line in pulled(sluice, box, "--auto-ack")] == [(2, 2), (3, 1), (5, 1)]


@pytest.mark.threads
def test_scripts_that_pull_keep_the_order(sluice, box):
    """Three of them, each with pull, work, pull --ack, as often as it takes; and never two with one key."""
    commit(box, 120)
    query(box, "UPDATE outbox SET entity_key = 'k' || (id % 12)")
    messages = committed(box)
    log, lock, wrong, hands = [], threading.Lock(), [], {}

    def take(name, lines):
        keys = {line["key"] for line in lines}
        with lock:
            wrong.extend(f"{name} got {key}, which {hands[key]} has" for key in keys & hands.keys())
            hands.update(dict.fromkeys(keys, name))
            log.extend(lines)
        return keys

    first = threading.Barrier(3)  # each has some, before the others have all

    def script(name):
        waited = False
        while not is_empty(box) and not wrong:
            lines = pulled(sluice, box, "--batch", 4, "--node", name)
            keys = take(name, lines)
            waited = waited or first.wait(30 * PATIENCE) >= 0
            is_empty(box)  # the work
            with lock:  # before others can see that they are free
                for key in keys:
                    del hands[key]
            if lines:
                sluice.run("pull", "--ack", *(line["receipt"] for line in lines), db=box)

    def careful(name):
        try:
            script(name)
        except Exception as e:
            wrong.append(repr(e))
    threads = [threading.Thread(target=careful, args=(name,)) for name in ("p1", "p2", "p3")]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60 * PATIENCE)
    assert not wrong
    deliveries = Record(delivery(n, json.dumps(line, separators=(",", ":"))) for n, line in enumerate(log))
    assert check(messages, deliveries, fenced=True, least=len(messages)).duplicates == 0
    assert_in_order(deliveries)
    assert len({d.worker for d in deliveries}) == 3
    assert query(box, "SELECT count(*) FROM outbox_claims") == [(0,)]


# -- Ids that nobody drew ------------------------------------------------------------------------

def test_under_load_it_is_the_janitor_that_looks_below(sluice, pgdb, out):
    """A row whose id is below all that were delivered. Again and again, since a worker that has just begun may find the
    first one by itself."""
    sluice.run("init", db=pgdb)
    node = sluice.start("run", "--sink", f"file:{out}", "--strategy", "lanes", "--workers", 2, "--log-level", "debug",
                        "--log-format", "json", db=pgdb)
    below = 0

    def found():
        nonlocal below
        query(pgdb, "INSERT INTO outbox (topic, entity_key, payload) SELECT 'many', 'k' || g % 50, '' FROM generate_series(1, 1000) g")
        below += len(query(pgdb, "INSERT INTO outbox (id, topic, entity_key, payload) OVERRIDING SYSTEM VALUE"
                                  " VALUES (1, 'below', 'late', '') ON CONFLICT DO NOTHING RETURNING id"))
        return '"chore":"below"' in node.stderr()
    wait_until(found, 60, "something to be found below the floors")
    wait_until(lambda: is_empty(pgdb), 60, "all to be delivered")
    stop(node)
    with open(out) as f:
        topics = [json.loads(line)["topic"] for line in f]
    assert topics.count("below") == below > 0
