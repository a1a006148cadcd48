"""What tests do with a Kafka cluster, real or mock, that somebody else runs: topics, and what is in them.

    topic = kafka.new_topic(partitions=3)
    records = kafka.read(topic)                     # by kcat, from offset 0 to the end, byte for byte
    check(messages, history_of(records, events))    # as the record of a file: sink

kafka.py has the clusters.
"""
import collections
import json
import os
import subprocess
import uuid

from checker import Delivery, Record, digests_of
from harness import PATIENCE, wait_until
import record as rec

USER, PASSWORD = "sluice", "s3cret"  # of every SASL mechanism
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

# Bytes are bytes; headers is a list of (name, bytes or None), in the order of the record. key and value may be None.
KafkaRecord = collections.namedtuple("KafkaRecord", "topic partition offset timestamp key value headers")


def scram_works():
    """Before 2.6.1 librdkafka, which is the one of kcat, too, sends its nonce twice, and Kafka 4 takes that for a
    wrong password (github.com/confluentinc/librdkafka/pull/4895)."""
    import confluent_kafka
    return confluent_kafka.libversion()[1] >= 0x02060100


class Failed(Exception):
    """A record was not taken. `name` is librdkafka's name of the error, such as MSG_SIZE_TOO_LARGE."""

    def __init__(self, error):
        super().__init__(str(error))
        self.name = error.name()


class Client:
    """A cluster as its clients see it.

    real        is it Apache Kafka, or librdkafka's mock cluster?
    why         if it is the mock: why
    listeners   security protocol, or `mtls` -> addresses
    dir         a folder with ca.pem and, for `mtls`, client.pem and client.key
    logs        files
    """

    def __init__(self, real, listeners, dir=None, logs=(), why=""):
        self.real, self.listeners, self.dir, self.logs, self.why = real, listeners, dir, list(logs), why
        self._admin_client = None

    # -- Where it is -----------------------------------------------------------------------------

    def bootstrap(self, listener="plaintext"):
        """Addresses, as bootstrap.servers has them. Listeners are plaintext, ssl, mtls, sasl_plaintext, sasl_ssl."""
        return self.listeners[listener]

    def properties(self, listener="plaintext", mechanism="PLAIN"):
        """All that a client based on librdkafka has to be told to get in."""
        found = {"bootstrap.servers": self.bootstrap(listener)}
        if listener != "plaintext":
            found["security.protocol"] = "ssl" if listener == "mtls" else listener
        if listener in ("ssl", "sasl_ssl", "mtls"):
            found["ssl.ca.location"] = os.path.join(self.dir, "ca.pem")
        if listener == "mtls":
            found["ssl.certificate.location"] = os.path.join(self.dir, "client.pem")
            found["ssl.key.location"] = os.path.join(self.dir, "client.key")
        if listener.startswith("sasl"):
            found.update({"sasl.mechanisms": mechanism, "sasl.username": USER, "sasl.password": PASSWORD})
        return found

    def info(self):
        """For attach() in another process."""
        return json.dumps({"real": self.real, "listeners": self.listeners, "dir": self.dir, "logs": self.logs,
                           "why": self.why})

    # -- Topics ----------------------------------------------------------------------------------

    def _admin(self):
        from confluent_kafka.admin import AdminClient
        if not self._admin_client:
            self._admin_client = AdminClient({**self.properties(), "log_level": 0})
        return self._admin_client

    def _do(self, futures):
        """Waits for what was asked for."""
        for future in futures.values():
            future.result()

    def create(self, topic, partitions=1, configs=None, replication=-1):
        """A replication of -1 is the cluster's own. Returns when the topic can be written to."""
        from confluent_kafka.admin import NewTopic
        self._do(self._admin().create_topics([NewTopic(topic, partitions, replication, config=configs or {})],
                                             operation_timeout=30))
        self._wait_partitions(topic, partitions)
        return topic

    def new_topic(self, partitions=1, configs=None, replication=-1):
        """A topic that nobody else has: the cluster may serve other tests at the same time."""
        return self.create(f"t-{uuid.uuid4().hex[:12]}", partitions, configs, replication)

    def raise_partitions(self, topic, partitions):
        """To so many in all."""
        from confluent_kafka.admin import NewPartitions
        self._do(self._admin().create_partitions([NewPartitions(topic, partitions)]))
        self._wait_partitions(topic, partitions)

    def delete(self, topic):
        self._do(self._admin().delete_topics([topic], operation_timeout=30))
        wait_until(lambda: not any(topic in view.topics for view in self._views()), 30, f"topic {topic} is gone")

    def configs(self, topic):
        """What was set for this topic, as text."""
        from confluent_kafka.admin import ConfigResource
        (future,) = self._admin().describe_configs([ConfigResource("topic", topic)]).values()
        return {name: entry.value for name, entry in future.result().items() if entry.source == 1}

    def configure(self, topic, **configs):
        """Changes settings, with _ for the dots in their names; None takes one back."""
        from confluent_kafka.admin import ConfigResource
        wanted = self.configs(topic)
        wanted.update((name.replace("_", "."), value) for name, value in configs.items())
        wanted = {name: str(value) for name, value in wanted.items() if value is not None}
        self._do(self._admin().alter_configs([ConfigResource("topic", topic, set_config=wanted)]))
        wait_until(lambda: self.configs(topic) == wanted, 30, f"the settings of {topic}")

    def _metadata(self, topic=None):
        return self._admin().list_topics(topic, timeout=30 * PATIENCE)

    def _views(self):
        """The metadata of each broker that answers: one may know what another does not know yet."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        first = self._metadata()
        yield first
        for b in first.brokers.values() if len(first.brokers) > 1 else ():
            try:
                one = AdminClient({"bootstrap.servers": f"{b.host}:{b.port}", "log_level": 0})
                yield one.list_topics(timeout=5 * PATIENCE)
            except KafkaException:
                pass  # it is on its way out

    def _partitions(self, topic, view=None):
        """By number; none before the topic is known."""
        topics = (view or self._metadata()).topics
        return topics[topic].partitions if topic in topics else {}

    def _wait_partitions(self, topic, n):
        def complete(view):
            got = self._partitions(topic, view)
            return len(got) == n and all(p.leader >= 0 and not p.error for p in got.values())
        wait_until(lambda: all(map(complete, self._views())), 30, f"{n} partitions of {topic} have a leader")

    def partitions(self, topic):
        return len(self._partitions(topic))

    def leader(self, topic, partition=0):
        """The node's number; -1 for none."""
        return self._partitions(topic)[partition].leader

    def in_sync(self, topic):
        """Has every replica all there is?"""
        got = self._partitions(topic)
        return bool(got) and all(set(p.isrs) == set(p.replicas) and p.leader >= 0 for p in got.values())

    def brokers(self):
        """Numbers of those that live, as the cluster sees it."""
        return sorted(self._metadata().brokers)

    # -- Records ---------------------------------------------------------------------------------

    def producer(self, listener="plaintext", **properties):
        """A confluent_kafka.Producer; properties with _ for the dots."""
        from confluent_kafka import Producer
        extra = {name.replace("_", "."): value for name, value in properties.items()}
        return Producer({**self.properties(listener), "log_level": 0, **extra})

    def produce(self, topic, *values, key=None, headers=None, partition=-1, **properties):
        """Values (bytes or None) in this order; raises Failed for the first that was not taken."""
        outcomes = []
        p = self.producer(**properties)
        for value in values:
            p.produce(topic, value, key=key, headers=headers or [], partition=partition,
                      on_delivery=lambda error, _: outcomes.append(error))
        left = p.flush(60 * PATIENCE)
        assert not left, f"{left} records are still on their way"
        for error in filter(None, outcomes):
            raise Failed(error)

    def read(self, topic, committed=True, listener="plaintext", mechanism="PLAIN"):
        """All records of a topic, sorted by partition and offset. committed=False: those of transactions that
        were aborted or are open, too."""
        level = "read_committed" if committed else "read_uncommitted"
        out = self.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J", listener=listener, mechanism=mechanism,
                        **{"isolation.level": level, "check.crcs": "true", "fetch.wait.max.ms": 20,
                           "allow.auto.create.topics": "false"})
        return sorted(map(parse, out.split(b"\n")[:-1]), key=lambda r: (r.partition, r.offset))

    def kcat(self, *args, listener="plaintext", mechanism="PLAIN", input=b"", **properties):
        """Runs kcat, returns its standard output."""
        done = run_kcat({**self.properties(listener, mechanism), **properties}, *args, input=input)
        if done.returncode:
            raise RuntimeError(f"kcat {' '.join(args)}: status {done.returncode}\n"
                               f"{done.stderr.decode(errors='replace')}")
        return done.stdout

    # -- Logs ------------------------------------------------------------------------------------

    def log_size(self):
        """A position in the logs, for log_text()."""
        return [os.path.getsize(path) if os.path.exists(path) else 0 for path in self.logs]

    def log_text(self, since=None):
        found = []
        for path, start in zip(self.logs, since or [0] * len(self.logs)):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    f.seek(start)
                    found.append(f.read() if len(self.logs) == 1 else f"--- {path}\n{f.read()}")
        return "".join(found)

    def close(self):
        """Somebody else runs it."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __str__(self):
        return f"{'Kafka' if self.real else 'mock of Kafka'} at {self.bootstrap()}"


def attach(path):
    """The cluster that info() was written of."""
    with open(path, encoding="utf-8") as f:
        return Client(**json.load(f))


def run_kcat(properties, *args, input=b""):
    flags = [word for name, value in properties.items() for word in ("-X", f"{name}={value}")]
    try:
        return subprocess.run(["kcat", *flags, *args], input=input, capture_output=True, timeout=120 * PATIENCE,
                              env={**os.environ, "KCAT_CONFIG": "/dev/null"})
    except FileNotFoundError:
        raise RuntimeError("kcat is not installed; hint: tools/install-deps check") from None


def parse(line):
    """A line of kcat -J, which writes the bytes of keys, values and headers into its strings as they are, but for
    those that JSON escapes: read as Latin-1, each byte is a character."""
    got = json.loads(line.decode("latin-1"))
    names = got.get("headers", [])

    def bytes_of(text):
        return None if text is None else text.encode("latin-1")
    headers = [(bytes_of(name).decode("utf-8", "surrogateescape"), bytes_of(value))
               for name, value in zip(names[::2], names[1::2])]
    return KafkaRecord(bytes_of(got["topic"]).decode(), got["partition"], got["offset"], got["ts"],
                       bytes_of(got["key"]), bytes_of(got["payload"]), headers)


# -- For the checkers ------------------------------------------------------------------------------

def text_of(data):
    return None if data is None else data.decode("utf-8", "surrogateescape")


class _Senders:
    """Who sent a message in an epoch: records do not say, what the processes recorded does. In the order of
    the sends, for a message that was sent twice in one epoch."""

    def __init__(self, events):
        self._names = collections.defaultdict(list)
        for e in events:
            if e.kind == rec.SEND:
                self._names[e.id, e.epoch].append(e.worker)

    def next(self, id, epoch):
        names = self._names.get((id, epoch), [])
        return names.pop(0) if len(names) > 1 else "".join(names)


def history_of(records, events=()):
    """What read() gave, as checker.py and history.py want it: a Delivery for each record, in the order of
    partition and offset, which is the order of each key as long as it keeps its partition (see wanderers). The
    number of its `line` is its place in this order.

    The headers sluice-id and sluice-epoch are needed; a record without them is torn. sluice-worker and
    sluice-attempt are used if they are there. Else the attempt is 0, and the worker is who says in `events`
    (record.read) that it sent this message in this epoch, which history.py needs to know."""
    found, senders = Record(), _Senders(events)
    for line, r in enumerate(records, 1):
        headers = {name: text_of(value) for name, value in r.headers}
        try:
            id, epoch = int(headers["sluice-id"]), int(headers["sluice-epoch"])
            attempt = int(headers.get("sluice-attempt") or 0)
        except (KeyError, TypeError, ValueError):
            found.torn.append(line)
            continue
        worker = headers.get("sluice-worker") or senders.next(id, epoch)
        digests = frozenset() if r.value is None else digests_of(r.value)  # no payload is a NULL
        found.append(Delivery(line, id, r.topic, text_of(r.key), epoch, attempt, worker, digests))
    return found


def wanderers(records):
    """Keys that were seen in more than one partition of a topic: (topic, key) -> partitions."""
    seen = collections.defaultdict(set)
    for r in records:
        if r.key is not None:
            seen[r.topic, r.key].add(r.partition)
    return {place: sorted(partitions) for place, partitions in seen.items() if len(partitions) > 1}
