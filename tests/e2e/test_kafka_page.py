"""What docs/kafka.md says, line by line, against a broker."""
import json

import pytest

from harness import query, wait_until
from kafkaclient import PASSWORD, USER

OTHER = 300  # messages that are in nobody's way


def murmur2(data):
    """As org.apache.kafka.common.utils.Utils.murmur2, and its partition of a key."""
    m, h = 0x5bd1e995, (0x9747b28c ^ len(data)) & 0xffffffff
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & 0xffffffff
        k = (k ^ k >> 24) * m & 0xffffffff
        h = (h * m & 0xffffffff) ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & 0xffffffff
    h = (h ^ h >> 13) * m & 0xffffffff
    return h ^ h >> 15


def push(sluice, db, lines):
    sluice.run("push", "--lines", "-", input="".join(json.dumps(line) + "\n" for line in lines), db=db)


def some(topic, n=OTHER, keys=17):
    return [{"topic": topic, "key": f"k{i % keys}", "payload": i} for i in range(n)]


def ids(records):
    return [int(dict(r.headers)["sluice-id"]) for r in records]


def count(db):
    return query(db, "SELECT count(*) FROM outbox")[0][0]


def test_a_record(box, sluice, kafka):
    """Key, value and headers; the partition is the one that Java's clients choose, whose own tests say what murmur2
    of `foobar` is."""
    assert murmur2(b"foobar") == -790332482 & 0xffffffff
    topic = kafka.new_topic(partitions=12)
    keys = [f"order:{i}" for i in range(100)]
    push(sluice, box, [{"topic": topic, "key": k, "type": "paid", "headers": {"tenant": "acme"}, "payload": {"k": k}}
                          for k in keys])
    sluice.run("run", "--sink", f"kafka://{kafka.bootstrap()}", "--drain", db=box)
    records = kafka.read(topic)
    assert sorted(r.key.decode() for r in records) == sorted(keys)
    for r in records:
        assert json.loads(r.value) == {"k": r.key.decode()}
        headers = dict(r.headers)
        assert [n for n, _ in r.headers] == ["tenant", "sluice-id", "sluice-type", "sluice-epoch"]
        assert (headers["tenant"], headers["sluice-type"]) == (b"acme", b"paid")
        assert r.partition == (murmur2(r.key) & 0x7fffffff) % 12


def test_order_and_no_duplicates(box, sluice, kafka):
    """Two nodes at once: all of it, once, and each key by id in one partition."""
    topic = kafka.new_topic(partitions=3)
    push(sluice, box, some(topic, 3000))
    nodes = [sluice.start("run", "--sink", f"kafka://{kafka.bootstrap()}", "--batch", "100", db=box)
             for _ in range(2)]
    wait_until(lambda: count(box) == 0, 60, "all is delivered")
    for node in nodes:
        node.term()
        node.wait(status=0)
    records = kafka.read(topic)
    assert sorted(ids(records)) == list(range(1, 3001))
    by_key = {}
    for r in records:
        by_key.setdefault(r.key, []).append(r)
    for of_key in by_key.values():
        assert len({r.partition for r in of_key}) == 1
        assert ids(of_key) == sorted(ids(of_key))


def test_the_target(litebox, sluice, kafka):
    prefix = kafka.new_topic()
    for name in (f"{prefix}.a.paid", f"{prefix}.b."):
        kafka.create(name)
    push(sluice, litebox, [{"topic": "a", "key": "k", "type": "paid", "payload": 1}, {"topic": "b", "key": "k", "payload": 2}])
    sluice.run("run", "--sink", f"kafka://{kafka.bootstrap()}", "--target", prefix + ".{topic}.{type}", "--drain",
               db=litebox)
    assert [r.value for r in kafka.read(f"{prefix}.a.paid")] == [b"1"]
    assert [r.value for r in kafka.read(f"{prefix}.b.")] == [b"2"]


@pytest.mark.parametrize("prop", ["enable.idempotence=false", "acks=1", "enable.gapless.guarantee=false",
                                  "queuing.strategy=lifo", "delivery.report.only.error=true", "bootstrap.servers=h:1",
                                  "transactional.id=x", "partitioner=random", "no.such.property=1"])
def test_properties_that_are_refused(litebox, sluice, prop):
    done = sluice.run("run", "--sink", "kafka://127.0.0.1:1", "--kafka", prop, "--drain", db=litebox, check=False)
    assert done.returncode in (1, 2) and prop.split("=")[0] in done.stderr and "hint:" in done.stderr


def test_brokers_are_away(litebox, sluice, own_kafka):
    """No message loses an attempt, and all goes when they are back."""
    topic = own_kafka.new_topic()
    own_kafka.kill()
    push(sluice, litebox, some(topic))
    node = sluice.start("run", "--sink", f"kafka://{own_kafka.bootstrap()}", "--kafka", "message.timeout.ms=500", db=litebox)
    node.wait_log("sink is down", 60)
    assert query(litebox, "SELECT count(*), max(attempts) FROM outbox") == [(OTHER, 0)]
    own_kafka.start()
    wait_until(lambda: count(litebox) == 0, 90, "all is delivered")
    node.term()
    node.wait(status=0)
    assert set(ids(own_kafka.read(topic))) == set(range(1, OTHER + 1))


def test_a_topic_that_comes_late(litebox, sluice, real_kafka):
    late, there = "late-" + real_kafka.new_topic(), real_kafka.new_topic()
    push(sluice, litebox, some(late, 20, keys=1) + [{"topic": there, "key": "other", "payload": i} for i in range(20)])
    node = sluice.start("run", "--sink", f"kafka://{real_kafka.bootstrap()}", "--retry-base", "100ms", "--retry-max",
                        "500ms", db=litebox)
    wait_until(lambda: count(litebox) == 20, 60, "the other topic is delivered")
    real_kafka.create(late)
    wait_until(lambda: count(litebox) == 0, 60, "the late one, too")
    node.term()
    node.wait(status=0)
    assert ids(real_kafka.read(late)) == list(range(1, 21))


def test_one_that_is_too_large(box, sluice, real_kafka):
    """The topic takes less than the client would send: only the one at fault is a dead letter."""
    topic = real_kafka.new_topic(configs={"max.message.bytes": "10000"})
    lines = some(topic)
    lines[100]["payload"] = "x" * 20000
    push(sluice, box, lines)
    sluice.run("run", "--sink", f"kafka://{real_kafka.bootstrap()}", "--on-failure", "skip", "--drain", db=box)
    assert query(box, "SELECT id, last_error FROM outbox_dead") == [(101, "Kafka: Broker: Message size too large")]
    got = ids(real_kafka.read(topic))
    assert sorted(got) == [i for i in range(1, OTHER + 1) if i != 101]


@pytest.mark.parametrize("listener", ["ssl", "mtls", "sasl_plaintext", "sasl_ssl"])
def test_tls_and_sasl(litebox, sluice, real_kafka, tmp_path, listener):
    """The secret is in a file; nothing shows it, not even a failure."""
    topic = real_kafka.new_topic()
    props = real_kafka.properties(listener)
    brokers = props.pop("bootstrap.servers")
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    if "sasl.password" in props:
        props["sasl.password"] = f"file:{secret}"
    conf = tmp_path / "sluice.yaml"
    conf.write_text(f"sink: kafka://{brokers}\nkafka: {json.dumps(props)}\n")
    push(sluice, litebox, some(topic, 10))
    done = sluice.run("run", "-c", str(conf), "--drain", db=litebox)
    assert sorted(ids(real_kafka.read(topic))) == list(range(1, 11))
    shown = sluice.run("config", "show", "-c", str(conf), db=litebox)
    doctor = sluice.run("doctor", "--sink", "-c", str(conf), db=litebox, check=False)
    assert "one replica" not in doctor.stdout and "no message waits" in doctor.stdout
    assert PASSWORD not in done.stderr + shown.stdout + doctor.stdout


def test_a_wrong_password(litebox, sluice, real_kafka, tmp_path):
    wrong = "n0t-the-secret"
    conf = tmp_path / "sluice.yaml"
    conf.write_text(f"sink: kafka://{real_kafka.bootstrap('sasl_plaintext')}/t\nkafka: {{security.protocol: sasl_plaintext, "
                    f"sasl.mechanisms: PLAIN, sasl.username: {USER}, sasl.password: {wrong}, message.timeout.ms: 1000}}\n")
    push(sluice, litebox, some("t", 10))
    done = sluice.run("run", "-c", str(conf), "--drain", db=litebox, check=False, timeout=120)
    doctor = sluice.run("doctor", "--sink", "-c", str(conf), db=litebox, check=False)
    assert done.returncode == 1 and "sink is down" in done.stderr
    assert doctor.returncode == 1 and "uthentication" in doctor.stdout
    assert wrong not in done.stderr + done.stdout + doctor.stdout + doctor.stderr
    assert query(litebox, "SELECT count(*), max(attempts) FROM outbox") == [(10, 0)]


def test_more_partitions(litebox, sluice, real_kafka):
    """A node that starts afterwards uses them all."""
    topic = real_kafka.new_topic(partitions=1)
    push(sluice, litebox, some(topic))
    sluice.run("run", "--sink", f"kafka://{real_kafka.bootstrap()}", "--drain", db=litebox)
    real_kafka.raise_partitions(topic, 4)
    push(sluice, litebox, some(topic))
    sluice.run("run", "--sink", f"kafka://{real_kafka.bootstrap()}", "--drain", db=litebox)
    records = [r for r, i in zip(real_kafka.read(topic), ids(real_kafka.read(topic))) if i > OTHER]
    assert len(records) == OTHER
    assert all(r.partition == (murmur2(r.key) & 0x7fffffff) % 4 for r in records)


def test_a_node_is_paused(litebox, sluice, own_kafka):
    """With a request on its way. Another takes over; what comes twice is at most what the first had in hand, and the
    first time each message comes is in order."""
    topic, batch = own_kafka.new_topic(), 10
    flags = ["run", "--sink", f"kafka://{own_kafka.bootstrap()}", "--workers", "1", "--batch", str(batch), "--lease", "6s"]
    push(sluice, litebox, some(topic, 1, keys=1))
    first = sluice.start(*flags, "--kafka", "debug=protocol", "--log-level", "debug", db=litebox)
    wait_until(lambda: count(litebox) == 0, 60, "the first message is delivered")
    own_kafka.pause()
    requests = first.stderr().count("Sent ProduceRequest")
    push(sluice, litebox, some(topic, 100, keys=1))
    wait_until(lambda: first.stderr().count("Sent ProduceRequest") > requests, 60, "a request is on its way")
    first.pause()
    own_kafka.resume()
    second = sluice.start(*flags, db=litebox)
    wait_until(lambda: count(litebox) == 0, 90, "the other node delivers")
    first.resume()
    for node in (first, second):
        node.term()
        node.wait(60, status=0)
    got = ids(own_kafka.read(topic))
    assert list(dict.fromkeys(got)) == list(range(1, 102))
    assert 0 < len(got) - 101 <= batch
