"""The programs that are compared, as processes: each carries messages from the outbox into a topic until it is told to
end, and each says in its log when it begins to read."""
import datetime
import json
import os
import re
import subprocess
import tempfile
import time
from urllib.parse import urlsplit

import kafka
import kafkajars
from servers import PortLock

from parts.program import Wrong, check_counts, environment
from parts.tables import ROOT

FOLDER = os.path.join(ROOT, "bench", "peers", "debezium")
JARS = os.path.join(FOLDER, "debezium-jars.txt")
SLOT = "peers"
START_SECONDS, END_SECONDS = 120, 120

# The collector that was best on two cores, see KAFKA.md. The line that tells when it begins to read is logged at info.
JVM = ["-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.log.io.debezium.pipeline=info",
       "-Dorg.slf4j.simpleLogger.showDateTime=true",
       "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"]


def status_of(pid, name):
    """A line of /proc/PID/status, in kB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return int(re.search(rf"^{name}:\s+(\d+) kB", f.read(), re.M).group(1))


def utc(text, form):
    return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc).timestamp()


class Program:
    """One process. Its folder goes with it."""
    slot = False  # does it need a replication slot?

    def __init__(self, name):
        self.name = name
        self.process = None

    def start(self, table, broker):
        self.dir = tempfile.TemporaryDirectory(prefix="sluice-peers-")
        self.log = os.path.join(self.dir.name, "log")
        argv = self.argv(table, broker)
        with open(self.log, "wb") as log:
            self.began = time.time()
            self.process = subprocess.Popen(argv, env=environment(), cwd=self.dir.name, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=kafka._die_with_parent)

    @property
    def pid(self):
        return self.process.pid

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def alive(self):
        if self.process.poll() is not None:
            raise Wrong(f"{self.name} ended with status {self.process.returncode}\n{self.log_text()[-5000:]}")

    def wait_reading(self):
        """Until it says that it begins to read; returns when that was."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            self.alive()
            at = self.reading_since(self.log_text())
            if at:
                return at
            time.sleep(0.01)
        raise Wrong(f"{self.name} did not begin to read within {START_SECONDS} s\n{self.log_text()[-5000:]}")

    def peak_mb(self):
        return status_of(self.pid, "VmHWM") * 1024 / 1e6

    def stop(self):
        self.alive()
        self.process.terminate()
        self.process.wait(END_SECONDS)
        return self.log_text()

    def close(self):
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None
            self.dir.cleanup()


class Sluice(Program):
    def __init__(self, name, program, workers):
        super().__init__(name)
        self.program, self.workers = program, workers

    def argv(self, table, broker):
        return [self.program, "run", "--db", table.url, "--sink", f"kafka://{broker.bootstrap()}", "--strategy", "lanes",
                "--workers", str(self.workers), "--wake", "notify", "--log-format", "json"]

    def reading_since(self, log):
        for line in log.splitlines():
            if '"node started"' in line and line.endswith("}"):
                return utc(json.loads(line)["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        return None

    def finish(self, rows):
        """Ends it in peace: it has sent each message once and says so."""
        check_counts(self.stop(), rows)
        if self.process.returncode:
            raise Wrong(f"{self.name} ended with status {self.process.returncode}")


class Debezium(Program):
    """What its two forms have in common: the connector."""
    slot = True

    def __init__(self, name, heap_mb, classes):
        super().__init__(name)
        self.heap_mb, self.classes = heap_mb, classes

    def java(self, main, *args):
        return [kafka.java(), f"-Xmx{self.heap_mb}m", *JVM, "-cp", ":".join([self.classes, *kafkajars.fetch(JARS)]), main, *args]

    def properties(self, source, **more):
        """A copy of one of our files with what varies; names with _ for the dots."""
        path = os.path.join(self.dir.name, source)
        with open(os.path.join(FOLDER, source), encoding="utf-8") as f, open(path, "w", encoding="utf-8") as to:
            to.write(f.read() + "".join(f"{name.replace('_', '.')}={value}\n" for name, value in more.items()))
        return path

    def connector(self, table, **more):
        at = urlsplit(table.url)
        return self.properties("connector.properties", name=SLOT, database_hostname=at.hostname, database_port=at.port,
                               database_user=at.username or "postgres", database_dbname=at.path.lstrip("/"), **more)

    def offsets(self):
        return {"offset_storage_file_filename": os.path.join(self.dir.name, "offsets")}

    def reading_since(self, log):
        found = re.search(r"^(\d{4}-\S+ \S+) .*Starting streaming$", log, re.M)
        return found and utc(found.group(1), "%Y-%m-%d %H:%M:%S.%f")

    def finish(self, _):
        self.stop()


class Engine(Debezium):
    """Its embedded engine, by debezium/Engine.java."""

    def argv(self, table, broker):
        connector = self.connector(table, offset_storage="org.apache.kafka.connect.storage.FileOffsetBackingStore",
                                   **self.offsets())
        return self.java("Engine", connector, self.properties("producer.properties", bootstrap_servers=broker.bootstrap()))


class Connect(Debezium):
    """Kafka Connect, standalone, with the connector in it."""

    def argv(self, table, broker):
        self.port = PortLock()
        worker = self.properties("worker.properties", bootstrap_servers=broker.bootstrap(),
                                 listeners=f"http://127.0.0.1:{self.port.port}", **self.offsets())
        return self.java("org.apache.kafka.connect.cli.ConnectStandalone", worker, self.connector(table))

    def close(self):
        if self.process:
            self.port.release()
        super().close()


def compile_engine(folder):
    """Engine.java into this folder."""
    javac = os.path.join(os.path.dirname(os.path.realpath(kafka.java())), "javac")
    if not os.path.exists(javac):
        raise kafkajars.Unreachable("there is no javac; hint: tools/install-deps bench-peers-kafka")
    done = subprocess.run([javac, "-proc:none", "-cp", ":".join(kafkajars.fetch(JARS)), "-d", folder,
                           os.path.join(FOLDER, "Engine.java")], env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"javac: status {done.returncode}\n{done.stdout}")
