"""Kafka for tests: a real one from Maven's repository (kafkajars.py) on private ports, or librdkafka's mock
cluster where there is no repository, or errors are wanted by the script.

    with Kafka(nodes=3) as kafka:
        topic = kafka.new_topic(partitions=3)
        kafka.kill(kafka.leader(topic))         # SIGKILL
        kafka.start(2)

    with MockKafka() as mock:
        mock.command("error Produce NOT_ENOUGH_REPLICAS x3")

    with any_kafka() as kafka:                  # the real one if it can be had
        kafka.real, kafka.why

What can be done with either is in kafkaclient.py. All is killed with the process that started it.
"""
import atexit
import base64
import contextlib
import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import uuid

import kafkajars
from harness import PATIENCE, ROOT, all_stopped
from kafkaclient import MECHANISMS, PASSWORD, USER, Client, attach
from kafkajars import Unreachable
from servers import PortLock, new_folder, wait_for

LIBC = ctypes.CDLL(None)  # here, because a child of a process with threads must not load anything
START_SECONDS = 60
SECURE = {"ssl": "SSL", "mtls": "SSL", "sasl_plaintext": "SASL_PLAINTEXT", "sasl_ssl": "SASL_SSL"}
PROTOCOLS = {"plaintext": "PLAINTEXT", "controller": "PLAINTEXT", **SECURE}

# A small heap is enough, and code that is compiled once and plainly is there sooner.
JVM = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
       "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true",
       "-Dorg.slf4j.simpleLogger.showDateTime=true",
       "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
       "-Dorg.slf4j.simpleLogger.showShortLogName=true"]


def java():
    """Debian's, whatever else is on the PATH."""
    found = "/usr/bin/java" if os.path.exists("/usr/bin/java") else shutil.which("java")
    if not found:
        raise RuntimeError("java is not installed; hint: tools/install-deps check")
    return found


def _die_with_parent():
    """In the child. (1 is PR_SET_PDEATHSIG; to a JVM, SIGQUIT would only be a question.)"""
    LIBC.prctl(1, signal.SIGKILL)


def _env():
    """Nothing of the caller's that would change a JVM."""
    unwanted = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "LD_PRELOAD")
    return {**{k: v for k, v in os.environ.items() if k not in unwanted}, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _random_id():
    """An id as Kafka writes them, without a dash in front, which would be taken for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _write(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(f"{line}\n" for line in lines))


# -- Certificates ----------------------------------------------------------------------------------

def make_certificates(folder):
    """ca.pem; server.pem (key and certificate) for 127.0.0.1 and localhost; client.pem and client.key."""
    def openssl(*args):
        done = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"openssl {' '.join(args)}:\n{done.stderr}")

    def key_and(kind, name, *args):
        openssl("req", kind, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", *args)

    key_and("-x509", "ca", "-days", "2", "-out", "ca.pem", "-addext", "keyUsage=critical,keyCertSign")
    for name, usage in (("server", "serverAuth"), ("client", "clientAuth")):
        key_and("-new", name, "-out", f"{name}.csr")
        _write(os.path.join(folder, f"{name}.ext"),
               ["subjectAltName=IP:127.0.0.1,DNS:localhost", f"extendedKeyUsage={usage}"])
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    with open(os.path.join(folder, "server.pem"), "a") as both, open(os.path.join(folder, "server.key")) as key:
        both.write(key.read())


# -- The real one ----------------------------------------------------------------------------------

class _Node:
    """One process: broker and controller."""

    def __init__(self, number, folder, listeners):
        self.number = number
        self.dir = os.path.join(folder, str(number))
        self.data = os.path.join(self.dir, "data")
        self.conf = os.path.join(self.dir, "server.properties")
        self.log = os.path.join(self.dir, "log")
        self.process = None
        self._locks = {name: PortLock() for name in ("plaintext", "controller", *listeners)}
        self.ports = {name: lock.port for name, lock in self._locks.items()}
        os.makedirs(self.data)

    def address(self, listener):
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def start(self, class_path):
        assert not self.running, f"node {self.number} is running"
        with open(self.log, "ab") as log:
            self._from = log.tell()
            self.process = subprocess.Popen(
                [java(), *JVM, "-cp", class_path, "kafka.Kafka", self.conf], cwd=self.dir, env=_env(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=_die_with_parent)

    def ready(self):
        if not self.running:
            raise RuntimeError(f"node {self.number} ended with status {self.process.returncode} while starting")
        with open(self.log, "rb") as log:
            log.seek(self._from)
            return b"Kafka Server started" in log.read()

    def signal(self, signo):
        if self.running:
            self.process.send_signal(signo)

    def close(self):
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
        for lock in self._locks.values():
            lock.release()


class Kafka(Client):
    """Apache Kafka with so many nodes, numbered from 1, of which each is broker and controller. With three,
    topics have three replicas and an acknowledgement needs two. `settings` are lines of server.properties, as
    a dict; they may be changed before a restart. Topics are not created by use.

    secure=True adds listeners with TLS and SASL; USER may log in by each of MECHANISMS with PASSWORD. (Not by SCRAM
    with an old librdkafka: kafkaclient.scram_works.)"""

    def __init__(self, nodes=1, secure=False, settings=None):
        jars = kafkajars.fetch()
        self._class_path = ":".join(jars)
        self.settings = dict(settings or {})
        self._secure = list(SECURE) if secure else []
        folder, self._owner = new_folder(tempfile.gettempdir(), "kafka")
        self.nodes = [_Node(i, folder, self._secure) for i in range(1, nodes + 1)]
        super().__init__(True, {name: ",".join(n.address(name) for n in self.nodes)
                                for name in ("plaintext", *self._secure)}, folder, [n.log for n in self.nodes])
        atexit.register(self.close)
        try:
            if secure:
                make_certificates(folder)
            self._format()
            for node in self.nodes:
                self._configure(node)
                node.start(self._class_path)
            self._wait(*self.nodes)
            wait_for(lambda: len(self.brokers()) == nodes, START_SECONDS * PATIENCE, f"{nodes} brokers know each other")
        except BaseException as e:
            text = self.log_text()[-20000:]
            self.close()
            if isinstance(e, (TimeoutError, RuntimeError)):
                raise RuntimeError(f"{e}\n{text}") from None
            raise

    @property
    def version(self):
        return kafkajars.version()

    # -- Configuration ---------------------------------------------------------------------------

    def _options(self, node):
        names = ["plaintext", *self._secure, "controller"]
        n = min(3, len(self.nodes))
        options = {
            "process.roles": "broker,controller", "node.id": node.number, "log.dirs": node.data,
            "controller.quorum.voters": ",".join(f"{o.number}@{o.address('controller')}" for o in self.nodes),
            "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(f"{name.upper()}://{node.address(name)}" for name in names),
            "listener.security.protocol.map": ",".join(f"{name.upper()}:{PROTOCOLS[name]}" for name in names),
            "auto.create.topics.enable": "false", "default.replication.factor": n,
            "min.insync.replicas": max(1, n - 1), "offsets.topic.replication.factor": n,
            "offsets.topic.num.partitions": 1, "transaction.state.log.replication.factor": n,
            "transaction.state.log.min.isr": max(1, n - 1), "transaction.state.log.num.partitions": n,
            # What a dead node held moves soon.
            "broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500, "replica.lag.time.max.ms": 5000,
            "controller.quorum.fetch.timeout.ms": 1000, "controller.quorum.election.timeout.ms": 500,
            # What we have no memory or time for.
            "log.cleaner.dedupe.buffer.size": 4 << 20, "num.network.threads": 1, "num.io.threads": 2,
            "background.threads": 2, "num.recovery.threads.per.data.dir": 1, "group.initial.rebalance.delay.ms": 0,
        }
        if self._secure:
            options.update(self._security())
        options.update(self.settings)
        return options

    def _security(self):
        options = {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": os.path.join(self.dir, "server.pem"),
            "ssl.truststore.type": "PEM", "ssl.truststore.location": os.path.join(self.dir, "ca.pem"),
            "listener.name.mtls.ssl.client.auth": "required", "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        }
        modules = "org.apache.kafka.common.security"
        for listener in ("sasl_plaintext", "sasl_ssl"):
            for mechanism in MECHANISMS:
                options[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = (
                    f'{modules}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";' if mechanism == "PLAIN"
                    else f"{modules}.scram.ScramLoginModule required;")
        return options

    def _configure(self, node):
        _write(node.conf, [f"{name}={value}" for name, value in self._options(node).items()])

    # -- Storage ---------------------------------------------------------------------------------

    def _format(self):
        """As Kafka's own tool does it for each node; what it writes differs in the ids only, so it is asked
        once per checkout."""
        template = os.path.join(kafkajars.folder(), "bootstrap.checkpoint")
        if not os.path.exists(template):
            with kafkajars.locked(f"{template}.lock"):
                self._make_template(template)
        cluster = _random_id()
        for node in self.nodes:
            shutil.copy(template, node.data)
            _write(os.path.join(node.data, "meta.properties"),
                   ["version=1", f"cluster.id={cluster}", f"node.id={node.number}", f"directory.id={_random_id()}"])

    def _make_template(self, path):
        """What a controller finds when it begins: versions of its features, and users."""
        if os.path.exists(path):
            return
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            conf = os.path.join(folder, "format.properties")
            _write(conf, ["process.roles=broker,controller", "node.id=1", f"log.dirs={folder}/data",
                          "controller.quorum.voters=1@127.0.0.1:9093", "controller.listener.names=CONTROLLER",
                          "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"])
            users = [word for m in MECHANISMS[1:]
                     for word in ("--add-scram", f"{m}=[name={USER},password={PASSWORD}]")]
            done = subprocess.run([java(), *JVM, "-cp", self._class_path, "kafka.tools.StorageTool", "format", "-t",
                                   _random_id(), "-c", conf, *users], env=_env(), capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"Kafka's storage tool failed ({done.returncode}):\n{done.stdout}{done.stderr}")
            os.rename(os.path.join(folder, "data", "bootstrap.checkpoint"), path)

    # -- Life ------------------------------------------------------------------------------------

    def _wait(self, *nodes):
        wait_for(lambda: all(n.ready() for n in nodes), START_SECONDS * PATIENCE, "Kafka is started")

    def _node(self, number):
        return self.nodes[number - 1]

    def pid(self, number=1):
        return self._node(number).process.pid

    def start(self, number=1, wait=True):
        """A node that was stopped or killed. Without most of the nodes it will not get ready: wait=False."""
        node = self._node(number)
        self._configure(node)
        node.start(self._class_path)
        if wait:
            try:
                self._wait(node)
            except (TimeoutError, RuntimeError) as e:
                raise RuntimeError(f"{e}\n{self.log_text()[-20000:]}") from None

    def stop(self, number=1):
        """As an operator does: what it leads is handed over first."""
        node = self._node(number)
        node.signal(signal.SIGTERM)
        node.process.wait(60 * PATIENCE)

    def kill(self, number=1):
        """SIGKILL; returns when it is gone."""
        node = self._node(number)
        node.signal(signal.SIGKILL)
        node.process.wait()

    def restart(self, number=1):
        self.stop(number)
        self.start(number)

    def pause(self, number=1):
        """SIGSTOP; returns when every thread stands still."""
        self._node(number).signal(signal.SIGSTOP)
        wait_for(lambda: all_stopped(self.pid(number)), 10 * PATIENCE, f"node {number} stands still")

    def resume(self, number=1):
        self._node(number).signal(signal.SIGCONT)

    def rss_mb(self, number=1):
        """Memory that is in use by a node, in MB."""
        with open(f"/proc/{self.pid(number)}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def close(self):
        """Ends it and removes its folder; may be called twice."""
        for node in self.nodes:
            node.close()
        self._admin_client = None
        shutil.rmtree(self.dir, ignore_errors=True)
        self._owner.close()
        atexit.unregister(self.close)


# -- The mock --------------------------------------------------------------------------------------

def mock_program():
    """tests/programs/mockkafka.c, compiled once for each version of it: there may be no build yet."""
    source = os.path.join(ROOT, "tests", "programs", "mockkafka.c")
    with open(source, "rb") as f:
        name = os.path.join(kafkajars.CACHE, f"mockkafka-{hashlib.sha256(f.read()).hexdigest()[:16]}")
    with kafkajars.locked(os.path.join(kafkajars.CACHE, "mockkafka.lock")):
        if not os.path.exists(name):
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "rdkafka"], capture_output=True, text=True)
            if flags.returncode:
                raise RuntimeError("librdkafka is not installed; hint: tools/install-deps check")
            subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", f"{name}.new", source,
                            *flags.stdout.split()], check=True)
            os.rename(f"{name}.new", name)
    return name


class MockKafka(Client):
    """librdkafka's mock cluster: no disk, no memory of what a client may not do, and errors on command. It knows
    transactions by name only: what was aborted is read all the same."""

    def __init__(self, brokers=1, why="asked for"):
        program = mock_program()
        folder, self._owner = new_folder(tempfile.gettempdir(), "mockkafka")
        log = os.path.join(folder, "log")
        with open(log, "wb") as err:
            self.process = subprocess.Popen([program, str(brokers)], stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=err, bufsize=1)
        super().__init__(False, {"plaintext": self.process.stdout.readline().strip()}, folder, [log], why)
        atexit.register(self.close)

    def command(self, text):
        """See tests/programs/mockkafka.c for what it understands."""
        self.process.stdin.write(f"{text}\n")
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(f"mockkafka: {text}: {answer or 'it has ended'}")

    def create(self, topic, partitions=1, configs=None, replication=-1):
        """Without configs: the mock has none."""
        self.command(f"topic {topic} {partitions} {1 if replication < 0 else replication}")
        return topic

    def raise_partitions(self, topic, partitions):
        raise NotImplementedError("the mock cluster cannot do this: take real_kafka")

    delete = configs = configure = raise_partitions

    def close(self):
        self.process.kill()  # it has nothing to lose, and takes a second to end by itself
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        self._owner.close()
        atexit.unregister(self.close)


def any_kafka(**kw):
    """The real one, or the mock if its jars cannot be had."""
    try:
        return Kafka(**kw)
    except Unreachable as e:
        return MockKafka(why=f"no Kafka broker, librdkafka's mock cluster stands in for it: {e}")


def shared_kafka():
    """For tests that change nothing but topics of their own: the one that with-servers has started, else one for
    this process. Errors of a mock are commanded by who started it, so that one is always our own."""
    path = os.environ.get("SL_TEST_KAFKA_INFO")
    if not path:
        return any_kafka(secure=True)
    found = attach(path)
    return found if found.real else MockKafka(why=found.why)
