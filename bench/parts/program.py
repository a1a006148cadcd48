"""Running sluice: a drain by the lines of its log, and a node beside other work."""
import collections
import datetime
import glob
import json
import os
import resource
import signal
import struct
import subprocess
import tempfile

RUN_LIMIT_SECONDS = 900
TAP, TAP_MAGIC = struct.Struct("<6q"), 0x7461702e736c7531

Run = collections.namedtuple("Run", "seconds")  # without starting and connecting
Way = collections.namedtuple("Way", "name args")  # to share the table: a strategy and what it needs

WAYS = [
    Way("lanes", ("--strategy", "lanes")),
    Way("guard", ("--strategy", "guard")),
    Way("advisory", ("--strategy", "advisory")),
    Way("skip-locked-transaction", ("--strategy", "skip-locked", "--hold", "transaction")),
    Way("skip-locked-lease", ("--strategy", "skip-locked", "--hold", "lease")),
]


class Wrong(Exception):
    """A run that did not do what it should: its time means nothing."""


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_", "PG")) and k != "DATABASE_URL"}
    return {**env, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def command(argv):
    """Runs it to its end; returns standard output and error together."""
    done = subprocess.run(argv, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=RUN_LIMIT_SECONDS)
    if done.returncode:
        raise Wrong(f"{' '.join(argv)} ended with status {done.returncode}\n{done.stdout}")
    return done.stdout


# -- processor time --------------------------------------------------------------------------------

def processor_seconds(pid):
    """What a process has used, and all below it, those that have ended included."""
    stats = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(path.split("/")[2])] = fields
    below, grown = {pid}, True
    while grown:
        more = {p for p, fields in stats.items() if int(fields[1]) in below} - below
        below |= more
        grown = bool(more)
    return sum(int(t) for p in below if p in stats for t in stats[p][11:15]) / os.sysconf("SC_CLK_TCK")


class Meter:
    """Counts the processor time of a database's server, if it has one, and of commands that end meanwhile."""

    def __init__(self, table):
        self.server = getattr(table, "server", None)
        self.began = self._now()

    def _now(self):
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime + (processor_seconds(self.server.pid) if self.server else 0)

    def seconds(self):
        return max(self._now() - self.began, 0.001)


# -- by the log ------------------------------------------------------------------------------------

def log_line(log, sentence):
    """The fields of the log line with this sentence."""
    for line in log.splitlines():
        fields = json.loads(line) if line.startswith("{") else {}
        if fields.get("msg") == sentence:
            return fields
    raise Wrong(f"no line '{sentence}' in the log:\n{log}")


def log_time(fields):
    return datetime.datetime.strptime(fields["time"], "%Y-%m-%dT%H:%M:%S.%fZ").timestamp()


def check_counts(log, rows):
    """The line at the end of a node: each message was sent, once, at the first attempt."""
    end = log_line(log, "workers ended")
    bad = [k for k in ("retried", "dead", "unknown", "lost") if int(end.get(k, 0))]
    if int(end["sent"]) != rows or bad:
        raise Wrong(f"not all of {rows} messages were sent once: {end}")
    return end


def drain(options, table, way, sink, workers, rows):
    """`sluice run --drain` on a full table. The clock runs from 'node started' to 'workers ended'."""
    log = command([options.sluice, "run", "--db", table.url, "--sink", sink, *way.args, "--workers", str(workers),
                   "--batch", str(options.batch), "--drain", "--log-format", "json"])
    end = check_counts(log, rows)
    if table.left() != (0, 0):
        raise Wrong(f"after the run there are {table.left()} messages and dead letters, not none")
    return Run(max(log_time(end) - log_time(log_line(log, "node started")), 0.001))


# -- beside other work -----------------------------------------------------------------------------

class Node:
    """A `sluice run` into null: that goes on until it is stopped. What it delivers is counted (src/sink/tap.h)."""

    def __init__(self, options, table, way, workers=1):
        self.log = tempfile.TemporaryFile("w+")
        self.tap = tempfile.NamedTemporaryFile(prefix="sluice-bench-")
        self.tap.write(TAP.pack(TAP_MAGIC, 0, 0, 0, 0, 0))  # of no message in particular: all are strangers
        self.tap.flush()
        self.process = subprocess.Popen(
            [options.sluice, "run", "--db", table.url, "--sink", "null:", *way.args, "--workers", str(workers),
             "--batch", str(options.batch), "--poll", "20ms", "--log-format", "json"],
            env={**environment(), "SLUICE_TAP": self.tap.name}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.log)

    @property
    def taken(self):
        self.tap.seek(0)
        return TAP.unpack(self.tap.read(TAP.size))[5]

    def log_text(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        """Ends it, and returns how many messages it sent."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        if status:
            raise Wrong(f"sluice ended with status {status}\n{self.log_text()}")
        sent = int(log_line(self.log_text(), "workers ended")["sent"])
        check_counts(self.log_text(), sent)
        return sent

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.tap.close()
