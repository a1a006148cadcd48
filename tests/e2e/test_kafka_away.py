"""Brokers that go away, stand still or were never there: nothing is lost, nobody's attempts are used up, order is kept; and
nodes that are killed and paused meanwhile. `make torture-kafka` does the same at length, with three brokers."""
import collections
import socket
import time

import pytest

from checker import BadHistory, check
from conftest import assert_in_order
from harness import PATIENCE, query, scaled, wait_until
from kafka import Kafka, Unreachable
from kafkaclient import history_of
from kafkarun import Run
from test_kafka import commit_to, count, drained, ids, push, stop, url_of

SLOW = max(1, PATIENCE / 3)  # a build so slow needs longer leases
NODE = ["--poll", "20ms", "--workers", 2, "--batch", 50]


@pytest.fixture(scope="module")
def broker():
    """One for the tests of this file, which leave it running."""
    try:
        cluster = Kafka()
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")
    with cluster:
        yield cluster


@pytest.fixture
def box(sluice, pgdb):
    sluice.run("init", db=pgdb)
    return pgdb


def in_flight(*nodes):
    """How many they may have had under way: two workers, a batch each. librdkafka itself cannot tell of all of them whether
    they arrived, so their own count of unknown ones is no bound."""
    return 2 * 50 * len(nodes)


def once_each_in_order(messages, records, most):
    """Everything is there, no more than so many once more; and of each key, what came first rises."""
    got = history_of(records)
    times = collections.Counter(d.id for d in got)
    assert times.keys() == messages.keys()
    assert len(got) - len(messages) <= most, f"{len(got) - len(messages)} duplicates, and {most} were in flight"
    first = list({d.id: d for d in reversed(got)}.values())[::-1]
    first.sort(key=lambda d: d.line)
    assert_in_order(first)


# -- The broker goes away ------------------------------------------------------------------------

@pytest.mark.slow
def test_a_broker_goes_and_comes_back(sluice, box, broker):
    """Stopped in good order while messages are in flight. Nobody loses an attempt; what is committed meanwhile waits."""
    topic = broker.new_topic(partitions=3)
    nodes = [sluice.start("run", "--sink", url_of(broker), "--node", f"n{i}", "--lease", f"{6 * SLOW:g}s", "--max-attempts", 1,
                          "--on-failure", "skip", *NODE, db=box) for i in range(2)]
    messages = commit_to(box, topic, scaled(3000, 500), keys=60)
    wait_until(lambda: count(box) < len(messages), 30, "they are at it")
    broker.stop()
    try:
        messages.update(commit_to(box, topic, 500, keys=60))
        for node in nodes:
            node.wait_log("sink is down", 60)
        assert count(box, condition="attempts > 0") == 0 and count(box, "outbox_dead") == 0
        assert count(box) >= 500
    finally:
        broker.start()
    drained(box, 60)
    stop(*nodes)
    assert count(box, "outbox_dead") == 0
    once_each_in_order(messages, broker.read(topic), in_flight(*nodes))
    assert any("sink is up again" in node.stderr() for node in nodes)


@pytest.mark.slow
def test_a_broker_stands_still(sluice, box, broker):
    """For longer than it is waited for: what was on its way may be there twice, and nothing else."""
    topic = broker.new_topic(partitions=3)
    node = sluice.start("run", "--sink", url_of(broker), "--lease", f"{6 * SLOW:g}s", *NODE, db=box)
    messages = commit_to(box, topic, scaled(2000, 500), keys=60)
    wait_until(lambda: count(box) < len(messages), 30, "it is at it")
    broker.pause()
    try:
        left = count(box)
        messages.update(commit_to(box, topic, 500, keys=60))
        node.wait_log("sink is down", 60)
        assert count(box) >= left + 500 - 100  # what had been confirmed, of two batches
        assert count(box, condition="attempts > 0") == 0
    finally:
        broker.resume()
    drained(box, 60)
    stop(node)
    once_each_in_order(messages, broker.read(topic), in_flight(node))


@pytest.mark.slow
def test_a_short_stop_is_not_even_noticed(sluice, box, broker):
    """librdkafka sends again what it got no answer for, and the broker knows it by its number: no duplicate."""
    topic = broker.new_topic(partitions=3)
    node = sluice.start("run", "--sink", url_of(broker), "--lease", "120s", "--kafka", "message.timeout.ms=80000", *NODE, db=box)
    messages = commit_to(box, topic, scaled(2000, 500), keys=60)
    wait_until(lambda: count(box) < len(messages), 30, "it is at it")
    broker.restart()
    drained(box, 60)
    stop(node)
    assert " unknown=0 " in node.stderr()
    deliveries = history_of(broker.read(topic))
    assert check(messages, deliveries, least=len(messages)).duplicates == 0
    assert_in_order(deliveries)


# -- The broker was never there ------------------------------------------------------------------

@pytest.fixture(params=["refuses", "is silent"])
def nobody(request):
    """The URL of an address where no broker is."""
    if request.param == "refuses":
        yield "kafka://127.0.0.1:9"
        return
    with socket.create_server(("127.0.0.1", 0)) as server:  # nobody accepts, nobody answers
        yield f"kafka://127.0.0.1:{server.getsockname()[1]}"


def test_drain_gives_up(sluice, box, nobody):
    for i in range(100):
        push(box, "t", f"k{i}")
    started = time.monotonic()
    done = sluice.run("run", "--drain", "--sink", nobody, "--lease", f"{3 * SLOW:g}s", *NODE, db=box, check=1)
    assert time.monotonic() - started < 20 * PATIENCE
    assert "the sink is down: Kafka: " in done.stderr and "what is left stays in the table" in done.stderr
    assert count(box) == 100 and count(box, condition="attempts > 0") == 0 and count(box, "outbox_dead") == 0


def test_it_leaves_at_once(sluice, box, nobody, recorded):
    """TERM, with messages in hand that nobody takes."""
    for i in range(100):
        push(box, "t", f"k{i}")
    node = sluice.start("run", "--sink", nobody, *NODE, db=box, env=recorded.env)
    wait_until(lambda: recorded.in_flight(node), 20, "it has messages in hand")
    started = time.monotonic()
    node.term()
    node.wait(30, status=0)
    assert time.monotonic() - started < 10 * PATIENCE
    assert count(box) == 100 and count(box, condition="attempts > 0") == 0


def test_it_leaves_while_a_broker_stands_still(sluice, box, broker):
    """With messages on their way, which are unknown then, and come again."""
    topic = broker.new_topic()
    messages = commit_to(box, topic, 2000)
    node = sluice.start("run", "--sink", url_of(broker), "--lease", f"{6 * SLOW:g}s", *NODE, db=box)
    wait_until(lambda: count(box) < 2000, 30, "it is at it")
    broker.pause()
    try:
        started = time.monotonic()
        node.term()
        node.wait(40)
        assert time.monotonic() - started < 15 * PATIENCE
    finally:
        broker.resume()
    second = sluice.start("run", "--sink", url_of(broker), *NODE, db=box)
    drained(box)
    stop(second)
    once_each_in_order(messages, broker.read(topic), in_flight(node))


# -- All at once ---------------------------------------------------------------------------------

@pytest.mark.slow
def test_order_survives(sluice, pg, own_kafka, fault_points, record_property):
    n = scaled(20000, 3000)
    run = Run(sluice, pg, own_kafka, messages=n, keys=1000, kills=5, pauses=3, brokers=1, nodes=3, batch=50,
              lease=1.5 * max(2, PATIENCE))
    least = {"messages": n, "kills": 5, "pauses": 3, "broker kills": 1, "partitions": 12, "in flight at a kill": 5}
    try:
        figures, wrong = run.play(least)
    finally:
        run.close()
    record_property("figures", str(figures))
    print(figures)
    if wrong:
        raise BadHistory("\n".join(wrong))


@pytest.mark.slow
def test_without_order_it_is_noticed(sluice, pg, kafka, fault_points):
    """skip-locked promises nothing, and is caught: the judge is not blind."""
    run = Run(sluice, pg, kafka, messages=3000, keys=5, kills=0, pauses=0, brokers=0, nodes=3, batch=20, strategy="skip-locked",
              lease=30)
    try:
        figures, wrong = run.play()
    finally:
        run.close()
    assert figures["out of order"] >= 10 and figures["overlaps"] >= 10
    assert figures["lost"] == figures["duplicates"] == figures["keys in two partitions"] == 0
    assert {line.split(":")[0] for line in wrong if not line.startswith(" ")} <= {"order", "exclusion", "epochs"}
