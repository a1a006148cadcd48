"""`sluice doctor --sink`: the other side is described as it is; each fault is made for real on a real broker."""
import json

import pytest

from harness import wait_until
from kafka import Kafka, Unreachable


def look(sluice, db, *flags):
    """Findings of the sinks alone, in their order, and the exit status."""
    done = sluice.run("doctor", "--json", "--sink", *flags, db=db, check=False)
    assert done.stderr == ""
    found = json.loads(done.stdout)["findings"]
    assert done.returncode == (1 if any(f["state"] == "bad" for f in found) else 0)
    return [f for f in found if f["check"] in ("brokers", "topic", "partitioner", "sink")]


def about(findings, name):
    """State and text of each finding about a topic."""
    return [(f["state"], f["found"]) for f in findings if f["found"].startswith(name)]


def test_topics_of_what_waits(box, sluice, kafka):
    """Those of waiting messages, each once; a template is filled in."""
    first, second = kafka.new_topic(partitions=3), kafka.new_topic(partitions=2)
    for topic in (first, first, second):
        sluice.run("push", "--topic", topic, "--key", "k", "{}", db=box)
    found = look(sluice, box, f"kafka://{kafka.bootstrap()}")
    assert [f["state"] for f in found if f["check"] == "brokers"] == ["ok"]
    for topic in (first, second):
        assert any("one replica" in text for _, text in about(found, topic)), found
    found = look(sluice, box, f"kafka://{kafka.bootstrap()}/{second}")
    assert about(found, second) and not about(found, first)


def test_settings_of_a_topic(box, sluice, real_kafka):
    """Compaction and sizes, told by the broker, meet what waits."""
    topic = real_kafka.new_topic(configs={"cleanup.policy": "compact", "max.message.bytes": "1000"})
    url = f"kafka://{real_kafka.bootstrap()}/{topic}"
    before = about(look(sluice, box, url), topic)
    assert [s for s, _ in before] == ["warn"] and "one replica" in before[0][1]
    sluice.run("push", "--topic", "t", "--key", "k", "x" * 2000, db=box)
    sluice.run("push", "--topic", "t", "{}", db=box)
    after = [text for _, text in about(look(sluice, box, url), topic)]
    assert any("1 messages without a key wait" in t for t in after), after
    assert any("2000 bytes waits, max.message.bytes is 1000" in t for t in after), after


def test_more_in_sync_than_there_are(box, sluice, real_kafka):
    topic = real_kafka.new_topic(configs={"min.insync.replicas": "2"})
    states = dict((text, s) for s, text in about(look(sluice, box, f"kafka://{real_kafka.bootstrap()}/{topic}"), topic))
    assert states[f"{topic}: it has 1 replicas, min.insync.replicas is 2"] == "bad"


def test_a_topic_that_is_missing(box, sluice, real_kafka):
    """It is said, with what the brokers do then; and looking does not make it."""
    url = f"kafka://{real_kafka.bootstrap()}/not-there"
    assert about(look(sluice, box, url), "not-there") == [("warn", "not-there is not there")]
    sluice.run("push", "--topic", "t", "{}", db=box)
    (state, text), = about(look(sluice, box, url), "not-there")
    assert state == "bad" and "auto.create.topics.enable" in text
    assert "not-there" not in real_kafka._metadata().topics


def test_looking_creates_nothing(litebox, sluice):
    """Where asking for a topic would."""
    try:
        cluster = Kafka(settings={"auto.create.topics.enable": "true", "num.partitions": 4})
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")
    with cluster:
        assert about(look(sluice, litebox, f"kafka://{cluster.bootstrap()}/not-there"), "not-there") == [
            ("warn", "not-there is not there; the brokers will make it, with 4 partitions and 1 replicas")]
        later = cluster.new_topic()  # the controller makes them one after the other
        assert set(cluster._metadata().topics) == {later}


def test_routes_are_asked_with_their_own_terms(box, sluice, kafka, tmp_path):
    """A route's topic that is named in full is looked at, although nothing waits for it."""
    topic, fixed = kafka.new_topic(), kafka.new_topic()
    conf = tmp_path / "routes.yaml"
    conf.write_text(f"routes:\n- topics: {topic}\n  sink: kafka://{kafka.bootstrap()}\n"
                    f"- topics: mails.*\n  sink: kafka://{kafka.bootstrap()}\n  target: {fixed}\n"
                    f"  kafka: {{partitioner: consistent_random}}\n- topics: '*'\n  sink: 'null:'\n")
    found = look(sluice, box, "-c", str(conf))
    assert about(found, topic) and about(found, fixed)
    assert [f["state"] for f in found if f["check"] == "partitioner"] == ["warn"]
    assert about(found, "null:")


def test_what_is_not_there(box, sluice):
    found = look(sluice, box, "kafka://127.0.0.1:1")
    assert [(f["check"], f["state"]) for f in found] == [("brokers", "bad")]
    assert "Connection refused" in found[0]["found"]
    done = sluice.run("doctor", "--sink", db=box, check=False)
    assert done.returncode == 2 and "no sink is set" in done.stderr
    done = sluice.run("doctor", "--sink", "kafak://h", db=box, check=False)
    assert done.returncode == 2 and "did you mean kafka://HOST:PORT" in done.stderr


def test_brokers_that_die(litebox, sluice):
    """Of three, one is killed."""
    try:
        cluster = Kafka(nodes=3)
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")
    with cluster:
        topic = cluster.new_topic(partitions=3)
        url = f"kafka://{cluster.bootstrap()}/{topic}"

        def states():
            return [(s, t[len(topic) + 2:]) for s, t in about(look(sluice, litebox, url), topic)]

        wait_until(lambda: states() == [("ok", "3 partitions, 3 replicas, min.insync.replicas 2, all in sync")])
        cluster.kill(cluster.leader(topic))
        wait_until(lambda: ("warn", "of 3 of 3 partitions not all replicas are in sync") in states(), 60)
