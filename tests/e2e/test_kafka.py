"""The sink kafka:, by what is in the log afterwards: every record of it is read back. What happens when brokers
go away is in test_kafka_away.py."""
import contextlib
import json
import os
import socket
import struct
import threading

import pytest

import record
from checker import check, message
from conftest import assert_in_order
from harness import PATIENCE, is_postgres, query, scaled, wait_until
from kafkaclient import PASSWORD, USER, history_of, scram_works, wanderers

CANARY = "c4nary-of-a-test"
NODE = ["--poll", "20ms", "--workers", 2]


@pytest.fixture
def pgbox(sluice, pgdb):
    sluice.run("init", db=pgdb)
    return pgdb


def url_of(kafka, listener="plaintext"):
    return f"kafka://{kafka.bootstrap(listener)}"


def commit_to(url, topic, n, keys=50):
    """n messages to this topic; returns them by id."""
    if is_postgres(url):
        source, payload = "generate_series(1, ?) AS s (i)", "convert_to(i::text, 'UTF8')"
    else:
        source = "(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ?) SELECT i FROM s)"
        payload = "CAST(CAST(i AS TEXT) AS BLOB)"
    rows = query(url, "INSERT INTO outbox (topic, entity_key, payload, content_type) SELECT ?, 'k' || (i % ?),"
                      f" {payload}, 'text/plain' FROM {source} RETURNING id, topic, entity_key, payload",
                 topic, keys, n)
    return {row[0]: message(*row[1:]) for row in rows}


def push(url, topic, key="k", payload=b"1", type="", headers="{}", content_type="application/json"):
    """One message; returns its id."""
    return query(url, "INSERT INTO outbox (topic, entity_key, payload, event_type, headers, content_type)"
                      f" VALUES (?, ?, ?, ?, {'CAST(? AS jsonb)' if is_postgres(url) else '?'}, ?) RETURNING id",
                 topic, key, payload, type, headers, content_type)[0][0]


def count(url, table="outbox", condition="true"):
    return query(url, f"SELECT count(*) FROM {table} WHERE {condition}")[0][0]


def ids(records):
    return [int(dict(r.headers)["sluice-id"]) for r in records]


def drained(url, timeout=30):
    wait_until(lambda: count(url) == 0, timeout, "everything is delivered")


def stop(*nodes):
    for node in nodes:
        node.term()
    for node in nodes:
        node.wait(status=0)


def conf(path, routes=None, **settings):
    """Writes it and returns its name; JSON is YAML."""
    path.write_text(json.dumps({"poll": "20ms", "workers": 2, **settings, **({"routes": routes} if routes else {})}))
    return str(path)


def murmur2(data):
    """As org.apache.kafka.common.utils.Utils has it."""
    m, mask = 0x5bd1e995, 0xffffffff
    h = (0x9747b28c ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    for i in range(len(rest) - 1, -1, -1):
        h ^= rest[i] << (8 * i)
    if rest:
        h = h * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7fffffff


# -- What arrives --------------------------------------------------------------------------------

@pytest.mark.slow
def test_every_key_in_its_partition_and_in_order(sluice, box, kafka):
    """Three nodes, twelve partitions: everything, once, each key where Java's producer would put it."""
    topic = kafka.new_topic(partitions=12)
    messages = commit_to(box, topic, scaled(6000, 600), keys=200)
    nodes = [sluice.start("run", "--drain", "--sink", url_of(kafka), "--node", f"n{i}", "--batch", 100, *NODE, db=box)
             for i in range(3)]
    for node in nodes:
        node.wait(90, status=0)
    records = kafka.read(topic)
    deliveries = history_of(records)
    assert check(messages, deliveries, least=len(messages)).duplicates == 0
    assert_in_order(deliveries)
    assert {r.partition for r in records} == set(range(12)) and wanderers(records) == {}
    assert all(r.partition == murmur2(r.key) % 12 for r in records)
    assert count(box) == 0 and count(box, "outbox_dead") == 0


BYTES = [bytes(range(256)), b"\0", b"\r\n\"\\", b"\xff" * 70000, b"{}", b""]


def test_what_a_record_is(sluice, box, kafka):
    """Bytes are what was committed, headers come in their order, and a key may be any text, or none."""
    topic = kafka.new_topic()
    headers = '{"tenant": "acme", "empty": "", "ü": "ß\\n"}'
    first = push(box, topic, "straße", b'{"a":1}', "paid", headers)
    second = push(box, topic, None, b"plain", content_type="text/plain")
    rest = [push(box, topic, f"k{i}", payload) for i, payload in enumerate(BYTES)]
    sluice.run("run", "--drain", "--sink", url_of(kafka), *NODE, db=box)
    got = {int(dict(r.headers)["sluice-id"]): r for r in kafka.read(topic)}
    assert got.keys() == {first, second, *rest}
    a, b = got[first], got[second]
    assert (a.key, a.value) == ("straße".encode(), b'{"a":1}')
    found = dict(a.headers)
    assert int(found.pop("sluice-epoch")) > 0
    assert found == {"tenant": b"acme", "empty": b"", "ü": "ß\n".encode(), "sluice-id": b"%d" % first,
                     "sluice-type": b"paid"}
    assert (b.key, b.value, dict(b.headers)["content-type"]) == (None, b"plain", b"text/plain")
    assert "sluice-type" not in dict(b.headers)
    assert [got[id].value for id in rest] == BYTES
    assert [got[id].key for id in rest] == [b"k%d" % i for i in range(len(BYTES))]


def test_no_payload_is_a_tombstone(sluice, pgbox, kafka):
    query(pgbox, "ALTER TABLE outbox ALTER payload DROP NOT NULL")
    topic = kafka.new_topic()
    for payload in (b"1", None, b""):
        push(pgbox, topic, "k", payload)
    sluice.run("run", "--drain", "--sink", url_of(kafka), *NODE, db=pgbox)
    assert [(r.key, r.value) for r in kafka.read(topic)] == [(b"k", b"1"), (b"k", None), (b"k", b"")]


def test_messages_without_a_key_go_anywhere(sluice, box, kafka):
    topic = kafka.new_topic(partitions=4)
    query(box, "INSERT INTO outbox (topic, payload) SELECT ?, '1' FROM (VALUES (1),(2),(3),(4),(5),(6),(7),(8)) a,"
               " (VALUES (1),(2),(3),(4),(5),(6),(7),(8)) b, (VALUES (1),(2),(3),(4),(5),(6),(7),(8)) c", topic)
    sluice.run("run", "--drain", "--sink", url_of(kafka), *NODE, db=box)
    records = kafka.read(topic)
    assert len(set(ids(records))) == len(records) == 512
    assert {r.key for r in records} == {None} and len({r.partition for r in records}) > 1


@pytest.mark.parametrize("name, check_value", [
    ("cloudevents", lambda r: dict(r.headers)["ce_source"] == b"/shop" and r.value == b'{"a":1}'),
    ("json", lambda r: json.loads(r.value)["payload"] == {"a": 1}),
    ("plain", lambda r: r.headers == [] and r.value == b'{"a":1}')])
def test_formats(sluice, pgbox, kafka, name, check_value):
    topic = kafka.new_topic()
    push(pgbox, topic, "k", b'{"a":1}', "paid")
    sluice.run("run", "--drain", "--sink", url_of(kafka), "--format", name, "--source", "/shop", *NODE, db=pgbox)
    (got,) = kafka.read(topic)
    assert check_value(got)


# -- Where it goes -------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["flag", "url"])
def test_a_target_is_a_template(sluice, box, kafka, how):
    """Topics of a key that differ still keep its order in each."""
    base = kafka.new_topic()
    for topic in ("a", "b"):
        for type in ("x", "y"):
            kafka.create(f"{base}.{topic}-{type}")
    sent = [(topic, type, push(box, topic, "k", b"1", type)) for _ in range(5) for topic in "ab" for type in "xy"]
    words = (["--sink", url_of(kafka), "--target", base + ".{topic}-{type}"] if how == "flag" else
             ["--sink", url_of(kafka) + f"/{base}.%7Btopic%7D-%7Btype%7D"])
    sluice.run("run", "--drain", *words, *NODE, db=box)
    for topic in "ab":
        for type in "xy":
            assert ids(kafka.read(f"{base}.{topic}-{type}")) == [id for t, y, id in sent if (t, y) == (topic, type)]
    assert kafka.read(base) == []


def test_a_fixed_target(sluice, box, kafka):
    topic = kafka.new_topic()
    sent = [push(box, name, "k") for name in ("a", "b", "no kafka topic / at all", "a")]
    sluice.run("run", "--drain", "--sink", url_of(kafka), "--target", topic, *NODE, db=box)
    assert ids(kafka.read(topic)) == sent


def codecs(kafka, topic):
    """Of the batches in the log of a topic with one partition, from the broker's own file."""
    path = os.path.join(kafka.dir, "1", "data", f"{topic}-0", "0" * 20 + ".log")
    with open(path, "rb") as f:
        data = f.read()
    at, found = 0, set()
    while at < len(data):
        length, = struct.unpack_from(">i", data, at + 8)
        found.add(["none", "gzip", "snappy", "lz4", "zstd"][struct.unpack_from(">h", data, at + 21)[0] & 7])
        at += 12 + length
    return found


def test_routes_have_properties_of_their_own(sluice, box, real_kafka, tmp_path):
    """Beside those of the top level, which count where a route says nothing else."""
    topics = {name: real_kafka.new_topic() for name in ("a", "b", "c")}
    for name in topics:
        query(box, "INSERT INTO outbox (topic, entity_key, payload) VALUES (?, 'k', ?)", name, b"x" * 5000)
    sink = url_of(real_kafka)
    path = conf(tmp_path / "routes.yaml", kafka={"compression.type": "gzip"}, routes=[
        {"topics": "a", "sink": sink, "target": topics["a"], "kafka": {"compression.type": "zstd"}},
        {"topics": "b", "sink": sink, "target": topics["b"], "kafka": {"linger.ms": 0}, "format": "plain"},
        {"topics": "c", "sink": sink + f"/{topics['c']}?compression.type=none"}])
    sluice.run("run", "--drain", "-c", path, db=box)
    assert {name: codecs(real_kafka, topic) for name, topic in topics.items()} == \
        {"a": {"zstd"}, "b": {"gzip"}, "c": {"none"}}
    assert [len(real_kafka.read(topic)) for topic in topics.values()] == [1, 1, 1]
    assert real_kafka.read(topics["b"])[0].headers == []


# -- What is refused -----------------------------------------------------------------------------

@pytest.mark.parametrize("words, said", [
    (["--kafka", "enable.idempotence=false"], "enable.idempotence cannot be false"),
    (["--kafka", "acks=1"], "acks cannot be 1"),
    (["--kafka", "request.required.acks=0"], "request.required.acks cannot be 0"),
    (["--kafka", "bootstrap.servers=h:1"], "bootstrap.servers cannot be set"),
    (["--kafka", "transactional.id=x"], "transactional.id cannot be set"),
    (["--kafka", "max.in.flight=1000000"], "max.in.flight"),
    (["--kafka", "linger.m=5"], 'no property "linger.m"'),
    (["--kafka", "linger.ms=soon"], "Invalid value"),
    (["--kafka", "partitioner=random"], 'no partitioner "random"'),
    (["--kafka", "message.timeout.ms=1"], "message.timeout.ms"),
    (["--format", "xml"], 'unknown format "xml"'),
    (["--format", "cloudevents", "--source", "a b"], "no URI reference"),
    (["--sink", "kafka:"], "no broker in the URL"),
    (["--sink", "kafka://"], "no broker in the URL"),
    (["--sink", "kafka://u:p@h:1"], "cannot stand in the URL"),
    (["--sink", "kafka://h:1?linger.ms"], "has no value"),
    (["--kafka", "sasl.password=env:NOT_THERE"], "NOT_THERE is not set")])
def test_wrong_settings_end_it_at_once(sluice, sqlitedb, words, said):
    """With status 2, before anything is taken."""
    sluice.run("init", db=sqlitedb)
    words = words if "--sink" in words else ["--sink", "kafka://127.0.0.1:9", *words]
    done = sluice.run("run", "--drain", *words, db=sqlitedb, check=2)
    assert said in done.stderr and done.stdout == ""


def test_a_password_that_cannot_be_read(sluice, sqlitedb):
    sluice.run("init", db=sqlitedb)
    done = sluice.run("run", "--sink", "kafka://127.0.0.1:9", "--kafka", "sasl.password=file:nowhere", db=sqlitedb, check=1)
    assert 'cannot read sasl.password from "nowhere"' in done.stderr


def test_messages_that_kafka_cannot_take(sluice, box, kafka):
    """Their own fault: a dead letter each, and the others of their keys go on."""
    topic = kafka.new_topic()
    bad = {push(box, "no/topic", "a"): "no name for a Kafka topic", push(box, "x" * 250, "b"): "no name for a Kafka topic",
           push(box, "..", "c"): "no name for a Kafka topic", push(box, "ümlaut", "d"): "no name for a Kafka topic",
           push(box, topic, "e", headers='{"": "1"}'): "a name is empty",
           push(box, topic, "f", headers=json.dumps({"n" * 32768: "1"})): "more than 32767",
           push(box, topic, "h", payload=b"x" * 1_100_000): "size too large"}
    good = [push(box, topic, key) for key in "abcdefh"]
    sluice.run("run", "--drain", "--sink", url_of(kafka), "--on-failure", "skip", *NODE, db=box)
    assert sorted(ids(kafka.read(topic))) == good
    letters = dict(query(box, "SELECT id, last_error FROM outbox_dead"))
    assert letters.keys() == bad.keys()
    for id, said in bad.items():
        assert said in letters[id].replace("Message ", ""), letters[id]


def test_a_refused_message_parks_its_key(sluice, box, kafka):
    topic = kafka.new_topic()
    push(box, "no/topic", "a")
    behind, other = push(box, topic, "a"), push(box, topic, "b")
    node = sluice.start("run", "--sink", url_of(kafka), "--on-failure", "park", *NODE, db=box)
    wait_until(lambda: ids(kafka.read(topic)) == [other], 20, "the other key goes on")
    wait_until(lambda: query(box, "SELECT entity_key FROM outbox_keys") == [("a",)], 20, "the key is parked")
    stop(node)
    assert ids(kafka.read(topic)) == [other] and count(box, condition=f"id = {behind}") == 1


# -- Who may come in -----------------------------------------------------------------------------

def security(kafka, listener, mechanism="PLAIN", **other):
    found = kafka.properties(listener, mechanism)
    del found["bootstrap.servers"]
    found.update((name.replace("_", "."), value) for name, value in other.items())
    return found


def let_in(sluice, url, kafka, listener, props, tmp_path, env=None):
    """Sends one message by such a listener; returns the process."""
    topic = kafka.new_topic()
    push(url, topic)
    path = conf(tmp_path / "secure.yaml", sink=url_of(kafka, listener), kafka=props, log_level="debug")
    done = sluice.run("run", "--drain", "-c", path, db=url, env=env)
    assert len(kafka.read(topic)) == 1 and PASSWORD not in done.stderr
    return done


@pytest.mark.parametrize("listener", ["ssl", "mtls", "sasl_plaintext", "sasl_ssl"])
def test_secure_listeners(sluice, pgbox, real_kafka, tmp_path, listener):
    let_in(sluice, pgbox, real_kafka, listener, security(real_kafka, listener), tmp_path)


@pytest.mark.parametrize("how", ["file", "env"])
def test_a_password_from_elsewhere(sluice, pgbox, real_kafka, tmp_path, how):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    value = "env:KAFKA_PASSWORD" if how == "env" else f"file:{tmp_path}/password"
    let_in(sluice, pgbox, real_kafka, "sasl_plaintext", security(real_kafka, "sasl_plaintext", sasl_password=value), tmp_path,
           env={"KAFKA_PASSWORD": PASSWORD} if how == "env" else None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(sluice, pgbox, real_kafka, tmp_path, mechanism):
    if not scram_works():
        pytest.skip("librdkafka before 2.6.1 sends its nonce twice, and Kafka 4 takes that for a wrong password")
    let_in(sluice, pgbox, real_kafka, "sasl_ssl", security(real_kafka, "sasl_ssl", mechanism), tmp_path)


def other_ca(tmp_path):
    """Of somebody else."""
    from kafka import make_certificates
    folder = tmp_path / "other"
    folder.mkdir()
    make_certificates(str(folder))
    return str(folder / "ca.pem")


@pytest.fixture
def elsewhere():
    """Makes an address known by another name: whoever connects to 127.0.0.2 is passed on."""
    servers = []

    def pipe(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(server, address):
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                upstream = socket.create_connection(address)
                for pair in ((client, upstream), (upstream, client)):
                    threading.Thread(target=pipe, args=pair, daemon=True).start()

    def make(address):
        host, port = address.rsplit(":", 1)
        servers.append(socket.create_server(("127.0.0.2", 0)))
        threading.Thread(target=serve, args=(servers[-1], (host, int(port))), daemon=True).start()
        return f"127.0.0.2:{servers[-1].getsockname()[1]}"
    yield make
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize("what", ["ca", "name", "no certificate", "password", "scram password", "plaintext to tls"])
def test_kept_out(sluice, pgbox, real_kafka, tmp_path, request, what):
    """The sink is down: nothing is lost, no attempt is counted, --drain ends with status 1, and the log says why
    without the password."""
    kafka = real_kafka
    if what == "ca":
        listener, props, said = "ssl", security(kafka, "ssl", ssl_ca_location=other_ca(tmp_path)), "certificate verify failed"
    elif what == "name":
        listener, props, said = "ssl", security(kafka, "ssl"), "certificate"
    elif what == "no certificate":
        listener, props, said = "mtls", {**security(kafka, "ssl")}, "Kafka: "
    elif what == "plaintext to tls":
        listener, props, said = "ssl", {}, "Kafka: "
    else:
        listener = "sasl_plaintext" if what == "password" else "sasl_ssl"
        mechanism = "PLAIN" if what == "password" else "SCRAM-SHA-256"
        props, said = security(kafka, listener, mechanism, sasl_password=CANARY), "uthentication"
    sink = url_of(kafka, listener)
    if what == "name":  # the certificate is for 127.0.0.1 and localhost
        sink = f"kafka://{request.getfixturevalue('elsewhere')(kafka.bootstrap(listener))}"
    topic = kafka.new_topic()
    id = push(pgbox, topic)
    path = conf(tmp_path / "out.yaml", sink=sink, kafka={**props, "message.timeout.ms": int(1500 * PATIENCE)}, log_level="debug")
    done = sluice.run("run", "--drain", "-c", path, db=pgbox, check=1)
    assert said in done.stderr, done.stderr
    assert CANARY not in done.stderr and PASSWORD not in done.stderr
    assert query(pgbox, "SELECT id, attempts FROM outbox") == [(id, 0)] and kafka.read(topic) == []
    assert count(pgbox, "outbox_dead") == 0
    right = security(kafka, "sasl_ssl")
    path = conf(tmp_path / "in.yaml", sink=url_of(kafka, "sasl_ssl"), kafka=right)
    sluice.run("run", "--drain", "-c", path, db=pgbox)
    assert ids(kafka.read(topic)) == [id]


def test_secrets_are_shown_nowhere(sluice, sqlitedb, tmp_path):
    """Not by `config`, not in an error, not in the log, and not in what `ps` shows of a value that a file has."""
    sluice.run("init", db=sqlitedb)
    path = conf(tmp_path / "secret.yaml", sink="kafka://127.0.0.1:9", log_level="debug", db=sqlitedb,
                kafka={"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": USER,
                       "sasl.password": CANARY, "ssl.key.password": CANARY, "message.timeout.ms": 300})
    push(sqlitedb, "t")
    for words, status in ((["run", "--drain"], 1), (["config", "check"], False), (["config", "show"], False)):
        done = sluice.run(*words, "-c", path, check=status)
        assert CANARY not in done.stdout + done.stderr
    done = sluice.run("run", "-c", path, "--kafka", f"security.protocol=ssl,ssl.key.pem={CANARY}", check=2)
    assert "ssl.key.pem" in done.stderr and CANARY not in done.stdout + done.stderr


# -- What an operator does to topics -------------------------------------------------------------

@pytest.mark.parametrize("policy", ["skip", "park"])
@pytest.mark.parametrize("place", [0, 7])
def test_one_too_large_among_others(sluice, pgbox, real_kafka, policy, place):
    """The broker takes less than the producer thinks, and refuses a whole request for one message of it: that one is
    at fault, and no other; and none overtakes another, also right after the producer was made (place 0)."""
    topic = real_kafka.new_topic(configs={"max.message.bytes": "60000"})
    rows = query(pgbox, "INSERT INTO outbox (topic, entity_key, payload) SELECT ?, 'k' || (i % 3),"
                        " convert_to(repeat('x', CASE WHEN i = ? THEN 150000 ELSE 1000 END), 'UTF8')"
                        " FROM generate_series(0, 199) AS s (i) RETURNING id, entity_key", topic, place)
    guilty, key = rows[place]
    node = sluice.start("run", "--sink", url_of(real_kafka) + "?batch.size=20000", "--on-failure", policy, "--workers", 1,
                        "--poll", "20ms", db=pgbox)
    behind = {id for id, k in rows if k == key and id >= guilty} if policy == "park" else set()
    wait_until(lambda: count(pgbox) == len(behind) and (policy == "park" or count(pgbox, "outbox_dead") == 1), 30,
               "all that can be is delivered")
    stop(node)
    got = ids(real_kafka.read(topic))
    assert sorted(got) == sorted({id for id, _ in rows} - behind - {guilty})
    for k in ("k0", "k1", "k2"):
        mine = [id for id in got if id in {i for i, other in rows if other == k}]
        assert mine == sorted(mine), f"key {k}"
    table = "outbox_dead" if policy == "skip" else "outbox"
    assert "too large" in query(pgbox, f"SELECT last_error FROM {table} WHERE id = ?", guilty)[0][0]
    if policy == "park":
        assert query(pgbox, "SELECT entity_key, head FROM outbox_keys") == [(key, guilty)]


def test_a_topic_that_is_not_there_yet(sluice, box, real_kafka):
    """It is waited for, other topics go on meanwhile, and nothing is a dead letter."""
    late, there = real_kafka.new_topic() + "-late", real_kafka.new_topic()
    waiting = [push(box, late, "k") for _ in range(20)]
    node = sluice.start("run", "--sink", url_of(real_kafka), "--retry-base", "50ms", "--retry-max", "200ms",
                        "--max-attempts", 1000, *NODE, db=box)
    wait_until(lambda: count(box, condition="attempts > 0"), 30, "the topic is missing")
    other = [push(box, there, "other") for _ in range(20)]
    wait_until(lambda: ids(real_kafka.read(there)) == other, 30, "another topic goes on")
    assert count(box, condition=f"topic = '{late}'") == 20 and count(box, "outbox_dead") == 0
    assert late in query(box, "SELECT last_error FROM outbox WHERE last_error IS NOT NULL")[0][0]
    real_kafka.create(late)
    drained(box)
    stop(node)
    assert ids(real_kafka.read(late)) == waiting


def test_a_topic_that_is_deleted_and_made_again(sluice, pgbox, real_kafka):
    topic = real_kafka.new_topic(partitions=2)
    node = sluice.start("run", "--sink", url_of(real_kafka), "--retry-base", "50ms", "--retry-max", "200ms",
                        "--max-attempts", 1000, *NODE, db=pgbox)
    for key in ("a", "b", "c"):
        push(pgbox, topic, key)
    drained(pgbox)
    real_kafka.delete(topic)
    behind = [push(pgbox, topic, key) for _ in range(10) for key in ("a", "b", "c")]
    wait_until(lambda: count(pgbox, condition="attempts > 0") or "opic" in node.stderr(), 60, "the topic is missed")
    real_kafka.create(topic, partitions=2)
    drained(pgbox, 60)
    stop(node)
    records = real_kafka.read(topic)
    assert sorted(ids(records)) == behind and count(pgbox, "outbox_dead") == 0
    assert_in_order(history_of(records))



@pytest.mark.slow
def test_more_partitions_while_it_runs(sluice, pgbox, real_kafka, recorded):
    """Keys move, and none of them is reordered: what is in the old partition was confirmed before the first went to the
    new one, by the nodes' own record of what they sent when."""
    topic = real_kafka.new_topic(partitions=3)
    nodes = [sluice.start("run", "--sink", url_of(real_kafka), "--kafka", "topic.metadata.refresh.interval.ms=200", "--node",
                          f"n{i}", "--batch", 20, *NODE, db=pgbox, env=recorded.env) for i in range(2)]
    messages = {}
    for i in range(30):
        messages.update(commit_to(pgbox, topic, 100, keys=40))
        if i == 10:
            real_kafka.raise_partitions(topic, 8)
        wait_until(lambda: count(pgbox) < 100, 30, "most is delivered")
    drained(pgbox)
    stop(*nodes)
    records = real_kafka.read(topic)
    assert check(messages, history_of(records), least=len(messages)).duplicates == 0
    ends = {e.id: e.at for e in record.read(recorded.folder) if e.kind == record.RESULT}
    begins = {e.id: e.at for e in record.read(recorded.folder) if e.kind == record.SEND}
    places = {}
    for id, r in sorted(zip(ids(records), records), key=lambda pair: pair[0]):
        before = places.get(r.key)
        if before and before[1].partition == r.partition:
            assert before[1].offset < r.offset
        elif before:
            assert ends[before[0]] < begins[id], f"{id} was sent before {before[0]} was confirmed"
        places[r.key] = id, r


@pytest.mark.slow
def test_keys_move_when_a_node_looks_again(sluice, pgbox, real_kafka):
    """A new node computes partitions by their new number; where Java's producer would, too."""
    topic = real_kafka.new_topic(partitions=3)
    first = commit_to(pgbox, topic, 200, keys=40)
    sluice.run("run", "--drain", "--sink", url_of(real_kafka), *NODE, db=pgbox)
    real_kafka.raise_partitions(topic, 8)
    second = commit_to(pgbox, topic, 200, keys=40)
    sluice.run("run", "--drain", "--sink", url_of(real_kafka), *NODE, db=pgbox)
    records = real_kafka.read(topic)
    assert all(r.partition == murmur2(r.key) % (3 if id in first else 8) for id, r in zip(ids(records), records))
    assert sorted(ids(records)) == sorted({**first, **second}) and len(wanderers(records)) > 10
