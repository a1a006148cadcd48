"""Kafka for tests under test: is what it says what is there?"""
import base64
import hashlib
import hmac
import http.server
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading

import pytest

import kafkajars
import record as rec
from checker import check, complaints, message
from harness import ROOT, wait_until
from kafka import Kafka, MockKafka, any_kafka, mock_program, shared_kafka
from kafkaclient import (MECHANISMS, PASSWORD, USER, Failed, KafkaRecord, attach, history_of, run_kcat, scram_works,
                         wanderers)
from kafkajars import Unreachable

WITH_SERVERS = os.path.join(ROOT, "tests", "support", "with-servers")
ALL_BYTES = bytes(range(256))
NOWHERE = "http://127.0.0.1:9/maven2"  # port 9 discards, if anybody listens at all


def broker(**kw):
    try:
        return Kafka(**kw)
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")


@pytest.fixture(scope="module")
def kafka():
    with broker(secure=True) as cluster:
        yield cluster
        pid = cluster.pid()
    assert not os.path.exists(cluster.dir) and not os.path.exists(f"/proc/{pid}")
    cluster.close()  # once more does no harm


@pytest.fixture
def mock():
    with MockKafka() as cluster:
        yield cluster


# -- Records ---------------------------------------------------------------------------------------

def test_what_kcat_writes_is_read_byte_for_byte(kafka, tmp_path):
    topic = kafka.new_topic(partitions=2)
    path = tmp_path / "value"
    path.write_bytes(ALL_BYTES)
    kafka.kcat("-P", "-t", topic, "-p", "1", "-k", "straße", "-H", "a=1", "-H", "a=2", "-H", "naïve=ü", str(path))
    kafka.kcat("-P", "-t", topic, "-p", "1", "-Z", "-K", "|", input="k|\n".encode())
    first, second = kafka.read(topic)
    assert (first.topic, first.partition, first.offset) == (topic, 1, 0)
    assert first.key == "straße".encode() and first.value == ALL_BYTES
    assert first.headers == [("a", b"1"), ("a", b"2"), ("naïve", "ü".encode())]
    assert first.timestamp > 1_600_000_000_000
    assert (second.offset, second.key, second.value, second.headers) == (1, b"k", None, [])


@pytest.mark.parametrize("value", [ALL_BYTES, b"", None, b'{"a":"\\u0000\xed\xa0\x80\xe2\x80\xa8\x85"}\r\n', b"\xff" * 70000],
                         ids=["all", "empty", "null", "awkward", "large"])
def test_bytes_survive_as_key_value_and_header(kafka, value):
    topic = kafka.new_topic()
    key = value if value is None else value[:300]
    kafka.produce(topic, value, key=key, headers=[("h", value), ("", b"")])
    (got,) = kafka.read(topic)
    assert (got.key, got.value, got.headers) == (key, value, [("h", value), ("", b"")])


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_compression(kafka, codec):
    topic = kafka.new_topic()
    values = [b"%d " % i * 100 for i in range(200)]
    kafka.produce(topic, *values, compression_type=codec, enable_idempotence=True)
    assert [r.value for r in kafka.read(topic)] == values


def test_isolation_shows_what_was_aborted_only_if_asked(kafka):
    topic = kafka.new_topic()
    p = kafka.producer(transactional_id=topic)
    p.init_transactions(30)
    for value, end in ((b"kept", p.commit_transaction), (b"aborted", p.abort_transaction)):
        p.begin_transaction()
        p.produce(topic, value)
        p.flush(30)
        end(30)
    assert [r.value for r in kafka.read(topic)] == [b"kept"]
    assert [r.value for r in kafka.read(topic, committed=False)] == [b"kept", b"aborted"]


# -- Topics ----------------------------------------------------------------------------------------

def test_topics_are_created_changed_and_deleted(kafka):
    topic = kafka.new_topic(partitions=2, configs={"max.message.bytes": "5000", "retention.ms": "-1"})
    assert kafka.partitions(topic) == 2 and kafka.in_sync(topic) and kafka.leader(topic, 1) == 1
    kafka.raise_partitions(topic, 5)
    kafka.produce(topic, b"x", partition=4)
    assert [r.partition for r in kafka.read(topic)] == [4]
    kafka.produce(topic, b"x" * 4000)
    kafka.configure(topic, max_message_bytes=2000)
    assert kafka.configs(topic) == {"max.message.bytes": "2000", "retention.ms": "-1"}
    with pytest.raises(Failed) as e:
        kafka.produce(topic, b"x" * 4000)
    assert e.value.name == "MSG_SIZE_TOO_LARGE"
    kafka.configure(topic, retention_ms=None)
    assert kafka.configs(topic) == {"max.message.bytes": "2000"}
    kafka.delete(topic)
    with pytest.raises(RuntimeError, match="[Uu]nknown topic"):
        kafka.read(topic)


def test_topics_are_not_made_by_use(kafka):
    with pytest.raises(Failed) as e:
        kafka.produce("nobody-made-this", b"x", topic_metadata_propagation_max_ms=100)
    assert e.value.name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")


# -- Listeners -------------------------------------------------------------------------------------

@pytest.mark.parametrize("listener,mechanism", [("ssl", None), ("mtls", None)]
                         + [(name, m) for name in ("sasl_plaintext", "sasl_ssl") for m in MECHANISMS])
def test_secure_listeners(kafka, listener, mechanism):
    if mechanism in MECHANISMS[1:] and not scram_works():
        return assert_scram_is_refused(kafka, listener, mechanism)
    topic = kafka.new_topic()
    how = {"listener": listener, "mechanism": mechanism}
    kafka.kcat("-P", "-t", topic, input=b"hidden\n", **how)
    assert [r.value for r in kafka.read(topic, **how)] == [b"hidden"]


def assert_scram_is_refused(kafka, listener, mechanism):
    """Should it ever be let in, scram_works() is wrong."""
    done = run_kcat(kafka.properties(listener, mechanism), "-P", "-t", "none", input=b"x\n")
    assert done.returncode != 0 and b"invalid credentials" in done.stderr, done


def ask(conn, api, version, body):
    """One request of Kafka's protocol, and what is in the answer."""
    head = struct.pack("!hhih", api, version, 1, -1)  # a client without a name
    conn.sendall(struct.pack("!i", len(head + body)) + head + body)
    answer = conn.makefile("rb")
    (size,) = struct.unpack("!i", answer.read(4))
    return answer.read(size)[4:]


def authenticate(conn, text):
    """SaslAuthenticate, version 0: (error, what the server says)."""
    answer = ask(conn, 36, 0, struct.pack("!i", len(text)) + text.encode())
    error, reason = struct.unpack("!hh", answer[:4])
    return error, answer[4 + max(reason, 0) + 4:].decode()


def scram(address, mechanism, user, password):
    """RFC 5802, as a client that sends its nonce once; returns Kafka's error and whether the server knew us."""
    name = mechanism[len("SCRAM-"):].replace("-", "").lower()
    with socket.create_connection(address.split(":")) as conn:
        ask(conn, 17, 1, struct.pack("!h", len(mechanism)) + mechanism.encode())  # SaslHandshake
        first = f"n={user},r=nonce"
        error, challenge = authenticate(conn, f"n,,{first}")
        if error:
            return error, False
        said = dict(part.split("=", 1) for part in challenge.split(","))
        salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(said["s"]), int(said["i"]))

        def sign(key, text):
            return hmac.digest(key, text.encode(), name)
        client, bare = sign(salted, "Client Key"), f"c=biws,r={said['r']}"
        whole = f"{first},{challenge},{bare}"
        signature = sign(hashlib.new(name, client).digest(), whole)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client, signature))).decode()
        error, last = authenticate(conn, f"{bare},p={proof}")
        return error, last == "v=" + base64.b64encode(sign(sign(salted, "Server Key"), whole)).decode()


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_scram_users_get_in_whatever_librdkafka_can_do(kafka, mechanism):
    address = kafka.bootstrap("sasl_plaintext")
    assert scram(address, mechanism, USER, PASSWORD) == (0, True)
    assert scram(address, mechanism, USER, "guess") == (58, False)  # SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("listener,mechanism,wrong", [
    ("sasl_ssl", "PLAIN", {"sasl.password": "guess"}),
    ("sasl_plaintext", "SCRAM-SHA-512", {"sasl.username": "nobody"}),
    ("ssl", None, {"ssl.ca.location": "/etc/ssl/certs/ca-certificates.crt"}),
    ("mtls", None, {"ssl.certificate.location": None, "ssl.key.location": None}),
    ("ssl", None, {"security.protocol": None, "ssl.ca.location": None}),
], ids=["password", "user", "authority", "certificate", "protocol"])
def test_secure_listeners_keep_strangers_out(kafka, listener, mechanism, wrong):
    topic = kafka.new_topic()
    properties = {**kafka.properties(listener, mechanism), **wrong}
    done = run_kcat({name: value for name, value in properties.items() if value is not None}, "-P", "-t", topic,
                    input=b"x\n")
    assert done.returncode != 0 and kafka.read(topic) == [], done


# -- Life ------------------------------------------------------------------------------------------

def test_one_node_keeps_what_it_took_over_a_kill(kafka):
    topic = kafka.new_topic()
    kafka.produce(topic, b"1", acks="all")
    pid, since = kafka.pid(), kafka.log_size()
    kafka.kill()
    assert not os.path.exists(f"/proc/{pid}")
    kafka.start()
    kafka.produce(topic, b"2")
    assert [r.value for r in kafka.read(topic)] == [b"1", b"2"]
    assert kafka.log_text(since).count("Kafka Server started") == 1


def test_three_nodes_go_on_with_two():
    with broker(nodes=3) as kafka:
        topic = kafka.new_topic(partitions=3)
        first = kafka.leader(topic)
        kafka.kill(first)
        kafka.produce(topic, b"a", partition=0, acks="all")  # waits for another leader
        assert kafka.leader(topic) not in (first, -1)
        wait_until(lambda: len(kafka.brokers()) == 2, 30, "the cluster knows")
        kafka.start(first)
        wait_until(lambda: kafka.in_sync(topic), 60, "all replicas are in sync")
        kafka.pause(first)
        wait_until(lambda: not kafka.in_sync(topic), 60, "the cluster goes on without it")
        kafka.resume(first)
        wait_until(lambda: kafka.in_sync(topic), 60, "all replicas are in sync")
        assert [r.value for r in kafka.read(topic)] == [b"a"]
        assert kafka.properties()["bootstrap.servers"].count(",") == 2


def test_with_servers_says_where_it_is_and_it_dies_with_it(tmp_path):
    command = 'kcat -b "$SL_TEST_KAFKA" -L >/dev/null && echo "$SL_TEST_KAFKA" && cat "$SL_TEST_KAFKA_INFO" && echo && cat'
    child = subprocess.Popen([WITH_SERVERS, "kafka", "--", "sh", "-c", command], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "TMPDIR": str(tmp_path)})
    address = child.stdout.readline().strip()
    info = json.loads(child.stdout.readline())
    assert info["listeners"]["plaintext"] == address
    child.send_signal(signal.SIGKILL)
    wait_until(lambda: not listens(address), 20, "the broker is gone")
    _, errors = child.communicate()
    assert info["real"] != ("with-servers: no Kafka broker" in errors)


def listens(address):
    try:
        socket.create_connection(address.split(":"), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


def kafkajars_are_there():
    try:
        kafkajars.fetch()
    except Unreachable as e:
        pytest.skip(f"no Kafka broker: {e}")


def test_a_broker_that_does_not_start_shows_its_log():
    kafkajars_are_there()
    with pytest.raises(RuntimeError, match="(?s)while starting.*num.io.threads"):
        Kafka(settings={"num.io.threads": "none"})


# -- The mock --------------------------------------------------------------------------------------

def test_errors_of_the_mock_are_met_as_often_as_commanded(mock):
    topic = mock.new_topic()
    mock.command("error Produce MSG_SIZE_TOO_LARGE x2")
    for value in (b"1", b"2"):
        with pytest.raises(Failed) as e:
            mock.produce(topic, value)
        assert e.value.name == "MSG_SIZE_TOO_LARGE"
    mock.produce(topic, b"3", key=b"k", headers=[("h", b"\xff")])
    mock.command("error Produce 10")
    mock.command("clear Produce")
    mock.produce(topic, b"4")
    assert [(r.key, r.value) for r in mock.read(topic)] == [(b"k", b"3"), (None, b"4")]


def test_brokers_of_the_mock_go_and_come_back(mock):
    topic = mock.new_topic()
    mock.command("down 1")
    with pytest.raises(Failed) as e:
        mock.produce(topic, b"lost", message_timeout_ms=1000)
    assert e.value.name == "_MSG_TIMED_OUT"
    mock.command("up 1")
    mock.produce(topic, b"found")
    assert [r.value for r in mock.read(topic)] == [b"found"]


@pytest.mark.parametrize("text", ["", "dance", "topic", "topic t 0 1", "error Produce NONSENSE", "error Nothing 5",
                                  "error Produce 5 3", "down 9", "rtt 1 x", "a b c d e f g h i"])
def test_the_mock_says_what_it_does_not_understand(mock, text):
    with pytest.raises(RuntimeError, match="mockkafka: "):
        mock.command(text)
    mock.command("rtt 1 0")


def test_the_mock_cannot_do_all(mock):
    for cannot in (lambda: mock.delete("t"), lambda: mock.configure("t", a=1), lambda: mock.raise_partitions("t", 2)):
        with pytest.raises((NotImplementedError, TypeError)):
            cannot()


# -- Without a repository --------------------------------------------------------------------------

@pytest.fixture
def no_repository(tmp_path, monkeypatch):
    """As on a machine that never was online."""
    mock_program()
    monkeypatch.setattr(kafkajars, "folder", lambda *_: str(tmp_path / "none"))
    monkeypatch.setenv("SL_MAVEN_URL", NOWHERE)


def test_the_mock_stands_in_and_says_why(no_repository):
    with any_kafka() as kafka:
        assert not kafka.real and "librdkafka's mock cluster" in kafka.why and NOWHERE in kafka.why
        topic = kafka.new_topic(partitions=3)
        kafka.produce(topic, b"x", partition=2)
        assert [(r.partition, r.value) for r in kafka.read(topic)] == [(2, b"x")]


def test_a_broker_of_somebody_else_is_used_and_not_ended(kafka, tmp_path, monkeypatch):
    path = tmp_path / "info.json"
    path.write_text(kafka.info())
    monkeypatch.setenv("SL_TEST_KAFKA_INFO", str(path))
    with shared_kafka() as other:
        assert other.real and other.properties("mtls") == kafka.properties("mtls")
        topic = other.new_topic()
    assert kafka.partitions(topic) == 1
    seen = attach(path).log_text()
    assert seen and kafka.log_text().startswith(seen)  # the broker goes on writing


# -- Downloads -------------------------------------------------------------------------------------

class Repository(http.server.ThreadingHTTPServer):
    """Serves what `files` has, and counts."""

    def __init__(self, files):
        self.files, self.asked = files, []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/m2/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *exc):
        self.shutdown()
        super().__exit__(*exc)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        found = self.server.files.get(self.path)
        self.send_response(200 if found is not None else 404)
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *args):
        pass


@pytest.fixture
def jars(tmp_path):
    """A list of two jars, and a repository that has them."""
    sums = {"one": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
            "two": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"}
    path = tmp_path / "list.txt"
    path.write_text("# comment\n" + "".join(f"a.b:{name}:1.0 {digest}\n" for name, digest in sums.items()))
    with Repository({f"/m2/a/b/{name}/1.0/{name}-1.0.jar": name.encode() for name in sums}) as repository:
        yield path, tmp_path / "cache", repository


def fetch_once(path, cache, url, start):
    start.wait()
    kafkajars.fetch(path, cache, url)


def test_each_jar_is_downloaded_once_by_many_processes(jars):
    path, cache, repository = jars
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(4)
    children = [context.Process(target=fetch_once, args=(path, cache, repository.url, start)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert len(repository.asked) == 2 and len(set(repository.asked)) == 2
    got = kafkajars.fetch(path, cache, NOWHERE)
    assert [pathlib.Path(p).read_bytes() for p in got] == [b"one", b"two"]
    assert sorted(os.listdir(cache / "kafka-1.0")) == ["one-1.0.jar", "two-1.0.jar"]


def test_a_jar_that_is_not_the_pinned_one_is_refused(jars):
    path, cache, repository = jars
    repository.files["/m2/a/b/two/1.0/two-1.0.jar"] = b"evil"
    with pytest.raises(RuntimeError, match="two-1.0.jar has the sha256 .* not 3fc4"):
        kafkajars.fetch(path, cache, repository.url)
    assert os.listdir(cache / "kafka-1.0") == ["one-1.0.jar"]


def test_a_repository_without_the_jar_is_none(jars):
    path, cache, repository = jars
    repository.files.clear()
    with pytest.raises(Unreachable, match="404"):
        kafkajars.fetch(path, cache, repository.url)
    assert len(repository.asked) == 1


# -- For the checkers ------------------------------------------------------------------------------

def record_of(id, key, value=b"{}", epoch=1, partition=0, offset=0, **more):
    headers = {"sluice-id": id, "sluice-epoch": epoch, **{f"sluice-{name}": text for name, text in more.items()}}
    return KafkaRecord("orders", partition, offset, 0, key, value,
                       [(name, str(text).encode()) for name, text in headers.items()])


def event(id, worker, epoch=1, at=0):
    return rec.Event(at, 7, worker, rec.SEND, id, 0, epoch, 0)


def test_records_are_deliveries():
    messages = {1: message("orders", "a", b"{}"), 2: message("orders", None, b"\xff")}
    good = [record_of(1, b"a", worker="w", attempt=3), record_of(2, None, b"\xff")]
    got = history_of(good, [event(2, "w-2"), event(2, "later", epoch=2)])
    assert [(d.line, d.key, d.worker, d.attempt, d.epoch) for d in got] == [(1, "a", "w", 3, 1), (2, None, "w-2", 0, 1)]
    assert check(messages, got).delivered == 2
    for bad, kind in ((good[:1], "loss"), (good + good[:1], "duplicates"),
                      ([good[0], record_of(2, b"x", b"\xff")], "invention"),
                      ([good[0], record_of(2, None, b"\xfe")], "another payload"),
                      ([good[0], record_of(2, None, None)], "another payload"),
                      (good + [record_of("no number", b"a")], "torn"),
                      (good + [good[0]._replace(headers=[])], "torn"),
                      ([record_of(3, b"a")] + good, "never committed")):
        assert kind in "\n".join(complaints(messages, history_of(bad))[1]), kind


def test_who_sent_twice_in_one_epoch_is_named_in_order():
    records = [record_of(1, b"a"), record_of(1, b"a", offset=1), record_of(1, b"a", offset=2)]
    assert [d.worker for d in history_of(records, [event(1, "x"), event(1, "y", at=5)])] == ["x", "y", "y"]
    assert [d.worker for d in history_of(records)] == ["", "", ""]


def test_keys_that_change_their_partition_are_found():
    records = [record_of(1, b"a"), record_of(2, b"b", partition=1), record_of(3, b"a", partition=2), record_of(4, None),
               record_of(5, None, partition=1)]
    assert wanderers(records) == {("orders", b"a"): [0, 2]}
