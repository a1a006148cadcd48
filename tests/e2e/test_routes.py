"""Routes: topics to sinks, each on its own terms; what no route wants; and one way that fails beside one that works."""
import json
import os
import signal

import pytest

import record
from checker import check, committed, read_sink
from conftest import STRATEGIES, assert_in_order, end_claims
from harness import Gate, is_postgres, query, wait_until

LIMIT = 1 << 24  # bytes of a file, where a test wants a sink that takes no message


@pytest.fixture
def conf(tmp_path):
    """Writes sluice.yaml: the top level, and routes; returns its path."""
    def write(*routes, **top):
        path = tmp_path / "sluice.yaml"
        top = {"poll": "20ms", "workers": 2, **top}
        path.write_text(json.dumps({**top, "routes": list(routes)}))  # JSON is YAML
        return str(path)
    return write


@pytest.fixture
def place(tmp_path):
    return lambda name: str(tmp_path / name)


def push(sluice, url, *messages):
    """(topic, key) pairs, of which the key may be None; returns what is in the table by id."""
    lines = "".join(json.dumps({"topic": topic, **({"key": key} if key is not None else {}), "payload": i}) + "\n"
                    for i, (topic, key) in enumerate(messages))
    sluice.run("push", "--lines", "-", input=lines, db=url)
    return committed(url)


def count(url, table="outbox", condition="true"):
    return query(url, f"SELECT count(*) FROM {table} WHERE {condition}")[0][0]


def untried(url):
    """Nobody's attempts are used up. With skip-locked a message has one more while it is in somebody's hands."""
    wait_until(lambda: count(url, condition="attempts > 0") == 0, 10, "no attempt is counted", every=0.001)


def ids(path):
    return [d.id for d in read_sink(path)] if os.path.exists(path) else []


def topics_in(path):
    return {d.topic for d in read_sink(path)}


def stop(node):
    node.term()
    node.wait(status=0)


# -- Who goes where ------------------------------------------------------------------------------

def test_topics_go_where_their_route_says(sluice, box, conf, place, strategy):
    """By name and by pattern; the first route that wants a message takes it; each key in order in each file."""
    topics = ["orders", "orders.eu", "orders.us", "ordersish", "payments", "a,b", "ä"]
    messages = push(sluice, box, *((topics[i % len(topics)], f"k{i % 5}" if i % 9 else None) for i in range(210)))
    path = conf({"topics": "orders.eu", "sink": f"file:{place('eu')}"},
                {"topics": ["orders", "orders.*"], "sink": f"file:{place('orders')}"},
                {"topics": ["a,b", "pay*s"], "sink": f"file:{place('some')}"},
                {"topics": "*", "sink": f"file:{place('rest')}"}, strategy=strategy, batch=50)
    sluice.run("run", "--drain", "-c", path, db=box)
    files = {"eu": {"orders.eu"}, "orders": {"orders", "orders.us"}, "some": {"a,b", "payments"}, "rest": {"ordersish", "ä"}}
    assert {name: topics_in(place(name)) for name in files} == files
    deliveries = [d for name in files for d in read_sink(place(name))]
    assert len(deliveries) == len(messages) == 210 and {d.id for d in deliveries} == messages.keys()
    for name in files:
        if strategy != "skip-locked":
            assert_in_order(read_sink(place(name)))
    assert count(box) == 0


def test_a_key_keeps_its_order_across_sinks(sluice, box, conf, place, ordered):
    """The second message of a key goes to another sink than the first, and waits for it all the same."""
    path = conf({"topics": "a", "sink": f"file:{place('a')}"}, {"topics": "b", "sink": f"file:{place('b')}"},
                strategy=ordered, workers=1)
    with Gate(place("a")) as gate:
        messages = sorted(push(sluice, box, ("a", "k"), ("b", "k"), ("a", "k"), ("b", "other"), ("b", None)))
        node = sluice.start("run", "-c", path, db=box)
        wait_until(lambda: ids(place("b")) == messages[3:], 10, "what waits for nothing is delivered")
        assert ids(place("a")) == []
        gate.open()
    wait_until(lambda: count(box) == 0, 10, "the rest is delivered")
    stop(node)
    assert ids(place("a")) == [messages[0], messages[2]]
    assert ids(place("b")) == [*messages[3:], messages[1]]


@pytest.mark.parametrize("strategy", STRATEGIES[2:])
def test_what_a_route_does_not_say(sluice, box, conf, place, strategy):
    """Is as at the top level, which a flag may set: here it is the policy."""
    broken = {"topics": "a", "sink": "file:" + at_its_limit(place("full")), "on_failure": "park"}
    path = conf(broken, {**broken, "topics": "b", "on_failure": "block", "max_attempts": 1000},
                {"topics": "c", "sink": broken["sink"]}, strategy=strategy, max_attempts=1, retry_base="10ms", retry_max="20ms",
                on_failure="park")
    push(sluice, box, ("a", "a"), ("b", "b"), ("c", "c"))
    node = start_limited(sluice, "run", "-c", path, "--on-failure", "skip", db=box)
    wait_until(lambda: count(box, "outbox_dead") == 1 and parked(box) == ["a"], 10, "both have failed")
    wait_until(lambda: query(box, "SELECT attempts FROM outbox WHERE topic = 'b'")[0][0] > 2, 10, "b is tried")
    assert query(box, "SELECT topic FROM outbox_dead") == [("c",)]
    assert query(box, "SELECT attempts FROM outbox WHERE topic = 'a'") == [(1,)]
    stop(node)


@pytest.mark.parametrize("strategy", STRATEGIES[2:])  # with the others, of SQLite one worker alone has messages
def test_limits_of_a_route(sluice, box, conf, place, recorded, strategy):
    """Of four workers one may use it, with three messages at once; the others have theirs, and wait."""
    path = conf({"topics": "*", "sink": f"file:{place('out')}", "batch": 3, "concurrency": 1}, strategy=strategy, workers=4,
                batch=5)
    messages = push(sluice, box, *(("t", f"k{i}") for i in range(40)))

    def events(kind):
        return [e for e in record.read(recorded.folder) if e.kind == kind]
    with Gate(place("out")):
        node = sluice.start("run", "-c", path, db=box, env=recorded.env)
        wait_until(lambda: len({e.worker for e in events(record.TAKEN)}) == 4, 20, "each worker has some")
        wait_until(lambda: len(events(record.SEND)) >= 3, 10, "some are under way")
        assert len(events(record.SEND)) == 3 and len({e.worker for e in events(record.SEND)}) == 1
    wait_until(lambda: count(box) == 0, 30, "delivery")
    stop(node)
    assert check(messages, read_sink(place("out")), least=40).duplicates == 0
    assert len({e.worker for e in events(record.SEND)}) > 1  # each had its turn


# -- No route ------------------------------------------------------------------------------------

def test_what_no_route_wants_waits_for_one(sluice, box, conf, place, strategy):
    """It stays where it is, its key waits, nobody's attempts are used up, and the log names each topic, not each
    message. With a route for it, all of it is delivered, in order."""
    orders = {"topics": "orders", "sink": f"file:{place('orders')}"}
    top = {"strategy": strategy, "retry_base": "10ms", "retry_max": "50ms"}
    messages = push(sluice, box, ("orders", "k"), ("odd", "k"), ("orders", "k"), ("odd", "k"), ("orders", "other"),
                    *(("odd", None) for _ in range(20)), *(("odder", f"o{i}") for i in range(20)))
    every = sorted(messages)
    free = [every[0], every[4], *([every[2]] if strategy == "skip-locked" else [])]
    node = sluice.start("run", "-c", conf(orders, **top), db=box)
    wait_until(lambda: set(ids(place("orders"))) == set(free), 10, "what has a route is delivered")

    def due():
        return query(box, "SELECT available_at FROM outbox WHERE id = ?", every[1])[0][0]
    for _ in range(3):  # it is looked at again and again
        before = due()
        wait_until(lambda: due() != before, 10, "another look")
    assert set(ids(place("orders"))) == set(free)
    wait_until(lambda: count(box) == len(messages) - len(free), 10, "what was delivered is settled")
    wait_until(lambda: count(box, condition="last_error IS NULL AND topic = 'odder'") == 0, 10, "each was looked at")
    if strategy != "skip-locked":
        wait_until(lambda: count(box, "outbox_keys") == 21, 10, "keys that wait")
    untried(box)
    assert query(box, "SELECT last_error FROM outbox WHERE id = ?", every[1]) == [("no route wants topic 'odd'",)]
    if strategy != "skip-locked":
        assert dict(query(box, "SELECT entity_key, reason FROM outbox_keys WHERE entity_key IN ('k', 'o7')")) == \
            {"k": "no route wants topic 'odd'", "o7": "no route wants topic 'odder'"}
        assert json.loads(sluice.run("status", "--json", db=box).stdout)["blocked_keys"] == 21
    stop(node)
    errors = [line for line in node.stderr().splitlines() if "no route wants" in line]
    assert len(errors) == 2 and all("level=error" in line and "hint=" in line for line in errors)
    assert {topic for topic in ("odd", "odder") if any(f"topic '{topic}'" in line for line in errors)} == {"odd", "odder"}

    node = sluice.start("run", "-c", conf(orders, {"topics": "odd*", "sink": f"file:{place('orders')}"}, **top), db=box)
    wait_until(lambda: count(box) == 0, 10, "the rest is delivered")
    stop(node)
    deliveries = read_sink(place("orders"))
    assert check(messages, deliveries, least=len(messages)).duplicates == 0
    assert {d.attempt for d in deliveries} == {1}
    if strategy != "skip-locked":
        assert_in_order(deliveries)
    assert "no route" not in node.stderr()


def test_many_topics_without_a_route(sluice, box, conf):
    """Somebody writes an id into the topic: the log stays readable."""
    push(sluice, box, *((f"t{i}", None) for i in range(100)))
    node = sluice.start("run", "-c", conf({"topics": "orders", "sink": "null:"}), db=box)
    wait_until(lambda: count(box, condition="last_error IS NOT NULL") == 100, 20, "each was looked at")
    stop(node)
    assert node.stderr().count("no route wants topic") == 20


# -- One way fails -------------------------------------------------------------------------------

def test_a_sink_that_is_down_stops_no_other(sluice, box, conf, tmp_path, place, strategy):
    """Its folder is gone for a while: nothing is lost, and each key is in order when it is there again."""
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()
    path = conf({"topics": "a", "sink": f"file:{folder}/a"}, {"topics": "b", "sink": f"file:{place('b')}"},
                strategy=strategy, max_attempts=1, on_failure="skip", workers=1)
    push(sluice, box, ("a", "a0"))
    node = sluice.start("run", "-c", path, db=box)
    wait_until(lambda: count(box) == 0, 10, "its worker has opened the file")
    folder.rename(away)
    for _ in range(3):
        push(sluice, box, *((topic, f"{topic}{n % 7}") for n in range(50) for topic in "ab"))
        wait_until(lambda: count(box, condition="topic = 'b'") == 0, 20, "the other route goes on")
        wait_until(lambda: count(box, condition="topic = 'a' AND last_error IS NOT NULL") > 0, 20, "a is known to wait")
    assert count(box, condition="topic = 'a'") == 150 and len(ids(away / "a")) == 1
    untried(box)
    away.rename(folder)
    wait_until(lambda: count(box) == 0, 60, "it is up again, and all is delivered")
    stop(node)
    deliveries = [*read_sink(folder / "a"), *read_sink(place("b"))]
    assert len(deliveries) == len({d.id for d in deliveries}) == 301
    if strategy != "skip-locked":
        assert_in_order(deliveries)


def at_its_limit(path):
    """A file that takes no more from a program under LIMIT: that is a failure of each message, and no outage."""
    with open(path, "wb") as f:
        f.truncate(LIMIT)
    return path


def start_limited(sluice, *args, **kw):
    wrapper = sluice.wrapper
    sluice.wrapper = ["bash", "-c", f'ulimit -f {LIMIT // 1024}; exec "$@"', "bash", *wrapper]
    try:
        return sluice.start(*args, **kw)
    finally:
        sluice.wrapper = wrapper


def parked(url):
    """The keys that wait for an operator."""
    return [key for (key,) in query(url, "SELECT entity_key FROM outbox_keys WHERE due_at "
                                    + ("= 'infinity'" if is_postgres(url) else "> '9000'") + " ORDER BY 1")]


def test_each_route_has_its_policy(sluice, box, conf, place, ordered):
    """Skip makes a dead letter, and the key goes on, also on the other route; park does not."""
    full = "file:" + at_its_limit(place("full"))
    path = conf({"topics": "skip", "sink": full, "on_failure": "skip", "max_attempts": 2},
                {"topics": "park", "sink": full, "on_failure": "park", "max_attempts": 3},
                {"topics": "*", "sink": f"file:{place('good')}"}, strategy=ordered, retry_base="10ms", retry_max="20ms")
    every = sorted(push(sluice, box, ("skip", "s"), ("good", "s"), ("park", "p"), ("good", "p"), ("good", "g")))
    node = start_limited(sluice, "run", "-c", path, db=box)
    wait_until(lambda: sorted(ids(place("good"))) == [every[1], every[4]] and parked(box) == ["p"], 10, "all is decided")
    assert query(box, "SELECT id, attempts FROM outbox_dead") == [(every[0], 2)]
    stop(node)
    assert query(box, "SELECT id, coalesce(attempts, 0) FROM outbox ORDER BY id") == [(every[2], 3), (every[3], 0)]


@pytest.mark.parametrize("strategy", ["lanes", "guard", "advisory", "skip-locked"])
def test_each_route_has_its_delivery(sluice, box, conf, place, strategy):
    """A node is killed with messages of both in hand. Those of one route come again; those of the other never do, and
    are listed."""
    path = conf({"topics": "twice", "sink": f"file:{place('twice')}"},
                {"topics": "once", "sink": f"file:{place('once')}", "delivery": "at-most-once"},
                strategy=strategy, lease="10m", workers=1)
    messages = push(sluice, box, *((topic, f"{topic}{i}") for i in range(10) for topic in ("once", "twice")))
    once = {id for id, message in messages.items() if message.topic == "once"}
    with Gate(place("once")), Gate(place("twice")):
        node = sluice.start("run", "-c", path, db=box)
        wait_until(lambda: count(box, "outbox_consumed") == 10, 10, "they are consumed before they are sent")
        assert count(box) == 10 and not {id for (id,) in query(box, "SELECT id FROM outbox")} & once
        node.kill9()
    assert ids(place("once")) == ids(place("twice")) == []
    end_claims(box)
    late = push(sluice, box, ("once", "late"))
    node = sluice.start("run", "-c", path, db=box)
    wait_until(lambda: count(box) == 0, 30, "the others are delivered")

    def listed():  # where the node that died had them, or where others have put them since
        return {id for (id,) in query(box, "SELECT id FROM outbox_consumed UNION SELECT id FROM outbox_dead")}
    wait_until(lambda: ids(place("once")) == [max(late)] and listed() == once, 10, "so is a new one")
    stop(node)
    assert sorted(ids(place("twice"))) == sorted(messages.keys() - once)
    assert listed() == once


def test_at_most_once_and_a_sink_that_is_down(sluice, box, conf, tmp_path, place):
    """What cannot be sent is not consumed: it waits, and is sent when the sink is up."""
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()
    path = conf({"topics": "a", "sink": f"file:{folder}/a", "delivery": "at-most-once"},
                {"topics": "b", "sink": f"file:{place('b')}", "delivery": "at-most-once"}, workers=1)
    push(sluice, box, ("a", "x"))
    node = sluice.start("run", "-c", path, db=box)
    wait_until(lambda: count(box) == 0 and count(box, "outbox_consumed") == 0, 10, "it is up")
    folder.rename(away)
    push(sluice, box, *((topic, f"{topic}{i}") for i in range(20) for topic in "ab"))
    node.wait_log("sink is down")
    wait_until(lambda: len(ids(place("b"))) == 20, 10, "the other goes on")
    away.rename(folder)
    wait_until(lambda: count(box) == 0, 30, "it is up again")
    wait_until(lambda: len(ids(folder / "a")) == 21, 10, "all was sent")
    stop(node)
    assert count(box, "outbox_consumed") == 0


# -- Around it -----------------------------------------------------------------------------------

def test_a_node_says_which_routes_it_has(sluice, box, conf):
    path = conf({"topics": ["a", "b.*"], "sink": "null:", "on_failure": "skip"}, {"topics": "*", "sink": "stdout:"})
    done = sluice.run("run", "--drain", "-c", path, "--delivery", "at-most-once", db=box)
    lines = done.stderr.splitlines()
    [started] = [line for line in lines if 'msg="node started"' in line]
    assert " routes=2 " in started and "sink=" not in started
    assert [line.partition("msg=route ")[2] for line in lines if "msg=route " in line] == [
        "topics=a,b.* sink=null: delivery=at-most-once on_failure=skip",
        "topics=* sink=stdout: delivery=at-most-once on_failure=block"]


def test_routes_change_with_a_restart_only(sluice, box, conf, place):
    one = {"topics": "*", "sink": f"file:{place('one')}"}
    path = conf(one)
    node = sluice.start("run", "-c", path, db=box)
    node.wait_log("node started")
    for routes in ([{**one, "sink": f"file:{place('two')}"}], [{**one, "batch": 3}], [{"topics": "a", "sink": "null:"}, one]):
        reloads = node.stderr().count("settings reloaded")
        conf(*routes, workers=3)
        node.signal(signal.SIGHUP)
        wait_until(lambda: node.stderr().count("settings reloaded") > reloads, 10, "a reload")
        assert "only with a restart" in node.stderr() and "settings=routes" in node.stderr()
    push(sluice, box, ("a", "k"), ("b", "k"))
    wait_until(lambda: len(ids(place("one"))) == 2, 10, "delivery by the routes of the start")
    stop(node)
    assert "workers=3" in node.stderr()
    assert not os.path.exists(place("two"))


def test_a_sink_or_routes(sluice, box, conf):
    path = conf({"topics": "*", "sink": "null:"})
    done = sluice.run("run", "-c", path, "--sink", "null:", db=box, check=2)
    assert "there are routes and a sink" in done.stderr and "(flag)" in done.stderr
    done = sluice.run("run", "-c", path, db=box, env={"SLUICE_SINK": "null:"}, check=2)
    assert "(environment)" in done.stderr
    done = sluice.run("run", db=box, check=2)
    assert "where should messages go?" in done.stderr and "routes:" in done.stderr
