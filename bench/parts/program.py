"""Running sluice and the ceilings, and the two clocks: a whole drain by the lines of its log, and any
stretch of a run by what bench/tap.c notes."""
import collections
import datetime
import glob
import json
import os
import resource
import signal
import subprocess
import tempfile
import time

RUN_LIMIT_SECONDS = 900

# Without and with starting and connecting; and the processor time of both, server and client.
Run = collections.namedtuple("Run", "seconds whole_seconds processor_seconds")
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


def has_way(options, way, url):
    """Whether the program has this strategy for this database, which is empty. A program that knows it
    and fails is another matter."""
    argv = [options.sluice, "run", "--db", url, "--sink", "null:", *way.args, "--workers", "1", "--drain"]
    done = subprocess.run(argv, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=RUN_LIMIT_SECONDS)
    if done.returncode and "strategy" not in done.stderr:
        raise Wrong(f"{' '.join(argv)} ended with status {done.returncode}\n{done.stderr}")
    return done.returncode == 0


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
    meter, before = Meter(table), time.monotonic()
    log = command([options.sluice, "run", "--db", table.url, "--sink", sink, *way.args, "--workers", str(workers),
                   "--batch", str(options.batch), "--drain", "--log-format", "json"])
    whole, used = time.monotonic() - before, meter.seconds()
    end = check_counts(log, rows)
    if table.left() != (0, 0):
        raise Wrong(f"after the run there are {table.left()} messages and dead letters, not none")
    return Run(max(log_time(end) - log_time(log_line(log, "node started")), 0.001), whole, used)


# -- by the tap ------------------------------------------------------------------------------------

class Node:
    """A `sluice run` into null: whose batches are noted as they come. Paused and resumed, so that a
    table can be filled under it."""

    def __init__(self, options, table, way, workers=1):
        self.dir = tempfile.TemporaryDirectory(prefix="sluice-bench-")
        self.tap = os.path.join(self.dir.name, "tap")
        self.log = open(os.path.join(self.dir.name, "log"), "w+")
        self.limit = options.limit
        self.events = []  # (seconds, messages so far)
        self._read = 0
        open(self.tap, "w").close()
        # ASan wants to come before what is preloaded; here it need not.
        asan = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        env = {**environment(), "LD_PRELOAD": options.tap, "BENCH_TAP": self.tap, "ASAN_OPTIONS": asan}
        self.process = subprocess.Popen(
            [options.sluice, "run", "--db", table.url, "--sink", "null:", *way.args, "--workers", str(workers),
             "--batch", str(options.batch), "--poll", "20ms", "--log-format", "json"],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)

    def look(self):
        if self.process.poll() is not None:
            raise Wrong(f"sluice ended with status {self.process.returncode}\n{self.log_text()}")
        with open(self.tap, encoding="ascii") as f:
            f.seek(self._read)
            text = f.read()
        text = text[:text.rfind("\n") + 1]
        self._read += len(text)
        for line in text.splitlines():
            ns, rows = map(int, line.split())
            self.events.append((ns / 1e9, self.taken + rows))

    @property
    def taken(self):
        """What came so far, as of the last look."""
        return self.events[-1][1] if self.events else 0

    def wait_taken(self, messages):
        """Until it has taken that many messages in all. False if that takes too long."""
        end = time.monotonic() + self.limit
        while self.taken < messages and time.monotonic() < end:
            time.sleep(0.01)
            self.look()
        return self.taken >= messages

    def stretch(self, first, last):
        """(messages, seconds) between the batch that reached `first` messages and the one that reached
        `last`: what was delivered and settled meanwhile, and the time that all of it took."""
        inside = [e for e in self.events if e[1] > first]
        inside = inside[:next((i + 1 for i, e in enumerate(inside) if e[1] >= last), len(inside))]
        if len(inside) < 3:
            raise Wrong(f"too few batches between {first} and {last} messages: {len(inside)}")
        return inside[-1][1] - inside[0][1], inside[-1][0] - inside[0][0]

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def log_text(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def stop(self):
        """Ends it, and returns how many messages it sent."""
        self.resume()
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
        self.dir.cleanup()
