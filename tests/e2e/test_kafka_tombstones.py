"""Tombstones: a message with an empty payload goes to Kafka without a value, where that is asked for."""
import json


def deliver(sluice, db, url, *flags):
    sluice.run("run", "--sink", url, "--drain", *flags, db=db)


def test_an_empty_payload(db, sluice, kafka):
    """Pushed by each of the ways; what is not empty keeps its value, JSON's null included."""
    topic = kafka.new_topic()
    sluice.run("init", db=db)
    sluice.run("push", "--topic", topic, "--key", "k", "{}", db=db)
    sluice.run("push", "--topic", topic, "--key", "k", "", db=db)
    lines = [{"topic": topic, "key": "k", "payload_base64": ""}, {"topic": topic, "key": "k", "payload": None}]
    sluice.run("push", "--lines", "-", input="".join(json.dumps(line) + "\n" for line in lines), db=db)
    deliver(sluice, db, f"kafka://{kafka.bootstrap()}", "--tombstones")
    records = kafka.read(topic)
    assert [r.value for r in records] == [b"{}", None, None, b"null"]
    assert {r.key for r in records} == {b"k"}
    assert [dict(r.headers)["sluice-id"] for r in records] == [b"1", b"2", b"3", b"4"]


def test_not_unless_it_is_asked_for(db, sluice, kafka):
    topic = kafka.new_topic()
    sluice.run("init", db=db)
    sluice.run("push", "--topic", topic, "--key", "k", "", db=db)
    deliver(sluice, db, f"kafka://{kafka.bootstrap()}")
    assert [r.value for r in kafka.read(topic)] == [b""]


def test_in_an_envelope_and_by_route(db, sluice, kafka, tmp_path):
    """A route's own setting counts, in a format that makes a value of anything."""
    first, second = kafka.new_topic(), kafka.new_topic()
    conf = tmp_path / "routes.yaml"
    conf.write_text(f"format: json\ntombstones: true\nroutes:\n- topics: {first}\n  sink: kafka://{kafka.bootstrap()}\n"
                    f"- topics: {second}\n  sink: kafka://{kafka.bootstrap()}\n  tombstones: false\n")
    sluice.run("init", db=db)
    for topic in (first, second):
        sluice.run("push", "--topic", topic, "--key", "k", "", db=db)
    sluice.run("run", "-c", str(conf), "--drain", db=db)
    assert [r.value for r in kafka.read(first)] == [None]
    (record,) = kafka.read(second)
    assert json.loads(record.value)["payload"] == ""


def test_a_compacted_topic_takes_it(db, sluice, real_kafka):
    topic = real_kafka.new_topic(configs={"cleanup.policy": "compact"})
    sluice.run("init", db=db)
    for payload in ("{}", ""):
        sluice.run("push", "--topic", topic, "--key", "k", payload, db=db)
    deliver(sluice, db, f"kafka://{real_kafka.bootstrap()}", "--tombstones")
    assert [(r.key, r.value) for r in real_kafka.read(topic)] == [(b"k", b"{}"), (b"k", None)]
