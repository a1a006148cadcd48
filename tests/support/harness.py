"""What every end-to-end test needs: the program under test, and ways to wait for and look at what
it did. Tests get a Sluice as the fixture `sluice`; `wait_until`, `query` and `connect` are
imported:

    from harness import query, wait_until

SLUICE_BIN is the program (default build/sluice), SLUICE_WRAPPER a command to run it under (such as
valgrind), SL_TEST_PATIENCE a factor for every time limit, for slow builds, and SL_TEST_SCALE a
factor for the number of messages (by default 1, and less with much patience).
"""
import contextlib
import fcntl
import glob
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = float(os.environ.get("SL_TEST_PATIENCE", "1"))
SCALE = float(os.environ.get("SL_TEST_SCALE") or (1 if PATIENCE <= 3 else 1 / PATIENCE))

VALGRIND = ("valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect"
            " --errors-for-leak-kinds=definite --child-silent-after-fork=yes")

# What a sanitizer or valgrind writes when it has found something.
REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|runtime error: |^==\d+== ", re.M)


def wait_until(fn, timeout=10, what="the condition", every=0.02):
    """Polls fn, by default every 20 ms and after seconds of waiting less often, until it returns something true, and returns
    that. Tests never sleep to synchronise: they say what they wait for."""
    began = time.monotonic()
    end = began + timeout * PATIENCE
    while True:
        over = time.monotonic() >= end  # asked before the last look: who got no processor for long still looks once
        got = fn()
        if got:
            return got
        assert not over, f"not within {timeout * PATIENCE:g} s: {what}"
        time.sleep(max(every, min((time.monotonic() - began) / 50, 0.1)) if every >= 0.02 else every)


def scaled(n, least=1):
    """A number of messages or faults: fewer under the thread sanitizer and valgrind."""
    return max(least, round(n * SCALE))


def is_postgres(url):
    return not url.startswith("sqlite:")


def connect(url):
    """A DB-API connection to a database URL of ours, in autocommit mode: BEGIN when you mean it."""
    if not is_postgres(url):
        return sqlite3.connect(url[len("sqlite:"):], timeout=30 * PATIENCE, isolation_level=None)
    import psycopg2
    conn = psycopg2.connect(url)
    conn.autocommit = True
    return conn


def query(url, sql, *args):
    """Runs one statement and returns its rows as tuples. Parameters are written as ? for both."""
    if is_postgres(url):
        sql = sql.replace("%", "%%").replace("?", "%s")
    conn = connect(url)
    try:
        cur = conn.cursor()
        cur.execute(sql, args)
        rows = cur.fetchall() if cur.description else []
        return [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in rows]
    finally:
        conn.close()


# What waits in a PostgreSQL table {t}, as o, and how much that is. Of layout rotated, what is below the position of its
# lane is done, and stays until its segment is emptied.
WAITS = "FROM {t} o LEFT JOIN {t}_positions p ON p.lane = o.lane WHERE (o.held OR p.floor IS NULL OR o.id >= p.floor)"
WAITING = "SELECT count(*) " + WAITS


def waiting(url, table="outbox"):
    """How many messages wait, in a table of any layout."""
    return query(url, WAITING.format(t=table) if is_postgres(url) else f"SELECT count(*) FROM {table}")[0][0]


class Gate:
    """Holds the lock of a file: sink's file, so that workers keep in flight what they took until
    the gate is opened."""

    def __init__(self, path):
        self._file = open(path, "ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self):
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.open()


def all_stopped(pid):
    """Has SIGSTOP reached every thread? It reaches one first, which tells the others, when it runs."""
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        try:
            with open(path) as f:
                if f.read().rpartition(")")[2].split()[0] not in "TtZX":
                    return False
        except OSError:
            pass
    return True


def ports_of(pid):
    """The local ports of its connections, by which the server knows its sessions."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in links]


def _inside(process, url):
    """The server has not answered it yet, or waits for what comes next; or somebody writes to this SQLite file."""
    if is_postgres(url):
        ports = ", ".join(map(str, ports_of(process.pid))) or "0"
        return query(url, f"SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND client_port IN ({ports})") != [(0,)]
    conn = sqlite3.connect(url.removeprefix("sqlite:"), timeout=0.2, isolation_level=None)
    try:
        conn.execute("BEGIN IMMEDIATE")
        return False
    except sqlite3.OperationalError:
        return True
    finally:
        conn.close()


def pause_outside(process, url):
    """SIGSTOP, but not in the middle of a transaction: nobody else could write to a SQLite file then, and a server would
    end one that stands still."""
    def outside():
        process.pause()
        if not any(_inside(process, url) for _ in range(3)):  # what it had sent is answered by then
            return True
        process.resume()
        return False
    wait_until(outside, 10, "a moment outside a transaction")


class Process:
    """A running program: standard error goes to a file, and so does standard output unless the
    caller has a descriptor for it; and it never outlives its test."""

    def __init__(self, argv, env, cwd, name, stdin, stdout):
        self.argv = argv
        self.out_path = f"{name}.out"
        self.err_path = f"{name}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(argv, env=env, cwd=cwd, stderr=err,
                                          stdout=out if stdout is None else stdout,
                                          stdin=stdin or subprocess.DEVNULL)
        self.pid = self.popen.pid

    @property
    def running(self):
        return self.popen.poll() is None

    @property
    def returncode(self):
        return self.popen.poll()

    def stdout(self):
        return _text(self.out_path)

    def stderr(self):
        return _text(self.err_path)

    def signal(self, sig):
        self.popen.send_signal(sig)

    def kill9(self):
        """SIGKILL, and wait until it is gone."""
        self.popen.kill()
        return self.popen.wait()

    def term(self):
        self.signal(signal.SIGTERM)

    def pause(self):
        """SIGSTOP, and wait until every thread stands still: what is looked at next stays as it is."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: all_stopped(self.pid), 10, "every thread stands still", every=0.001)

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait(self, timeout=30, status=None):
        """Its exit status; negative if it died of a signal. `status` is what is expected."""
        try:
            got = self.popen.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout * PATIENCE:g} s: {self}") from None
        assert status is None or got == status, f"ended with status {got}, not {status}: {self}"
        return got

    def wait_log(self, text, timeout=10):
        """Until `text` stands on standard error."""
        wait_until(lambda: text in self.stderr() or not self.running, timeout,
                   f"'{text}' in the log of {self}")
        assert text in self.stderr(), f"ended without '{text}' in its log: {self}"

    def __str__(self):
        return f"{shlex.join(self.argv)}\n--- standard error:\n{self.stderr()[-4000:]}"


def _text(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


@contextlib.contextmanager
def too_large(sluice):
    """A sink that takes no message and is not down for that: a file that has reached the limit for its size.
    The program runs under that limit meanwhile."""
    path = os.path.join(sluice.cwd, "too-large.jsonl")
    with open(path, "wb") as f:
        f.truncate(16 << 20)  # a hole; a database of the test stays smaller
    wrapper = sluice.wrapper
    sluice.wrapper = ["sh", "-c", 'ulimit -f 32768; exec "$@"', "sh", *wrapper]  # blocks of 512 bytes
    try:
        yield f"file:{path}"
    finally:
        sluice.wrapper = wrapper


class Sluice:
    """The program. Its environment has none of the caller's SLUICE_*, PG* and DATABASE_URL; its
    current folder is `cwd`."""

    def __init__(self, cwd):
        self.cwd = str(cwd)
        self.bin = os.path.abspath(os.environ.get("SLUICE_BIN") or os.path.join(ROOT, "build", "sluice"))
        self.wrapper = shlex.split(os.environ.get("SLUICE_WRAPPER", ""))
        self.processes = []
        self.errors = []  # (command, standard error) of everything that has ended
        self._logs = os.path.join(self.cwd, ".processes")
        os.makedirs(self._logs, exist_ok=True)

    def argv(self, *args, db=None):
        """The command line; --db goes right after the sub-command."""
        words = [os.fspath(a) if isinstance(a, os.PathLike) else str(a) for a in args]
        if db is not None:
            words[1:1] = ["--db", db]
        return [*self.wrapper, self.bin, *words]

    def env(self, extra=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("SLUICE_", "PG", "SL_TEST")) and k != "DATABASE_URL"}
        env.update(LC_ALL="C.UTF-8", TZ="UTC")
        env.update(extra or {})
        return env

    def run(self, *args, db=None, input=None, check=True, env=None, timeout=60, text=True, cwd=None):
        """Runs it to its end. check: True wants status 0, a number that status, False anything.
        Output is text, or bytes with text=False; input may be either."""
        argv = self.argv(*args, db=db)
        if isinstance(input, str):
            input = input.encode("utf-8", "surrogateescape")
        try:
            done = subprocess.run(argv, input=b"" if input is None else input, env=self.env(env),
                                  capture_output=True, cwd=cwd or self.cwd, timeout=timeout * PATIENCE)
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"no end after {timeout * PATIENCE:g} s: {shlex.join(argv)}\n"
                                 f"{(e.stderr or b'').decode(errors='replace')}") from None
        err = done.stderr.decode("utf-8", "surrogateescape")
        self.errors.append((shlex.join(argv), err))
        expected = 0 if check is True else check
        if check is not False and done.returncode != expected:
            out = done.stdout.decode("utf-8", "replace")
            raise AssertionError(f"status {done.returncode}, not {expected}: {shlex.join(argv)}\n"
                                 f"--- standard output:\n{out}\n--- standard error:\n{err}")
        if text:
            done.stdout = done.stdout.decode("utf-8", "surrogateescape")
            done.stderr = err
        return done

    def start(self, *args, db=None, env=None, cwd=None, stdin=None, stdout=None):
        """Starts it in the background; returns a Process."""
        name = os.path.join(self._logs, str(len(self.processes) + 1))
        p = Process(self.argv(*args, db=db), self.env(env), cwd or self.cwd, name, stdin, stdout)
        self.processes.append(p)
        return p

    def close(self):
        """Ends what still runs: politely first, so that leak checks happen."""
        for p in self.processes:
            if p.running:
                p.resume()
                p.term()
        for p in self.processes:
            try:
                p.popen.wait(10 * PATIENCE)
            except subprocess.TimeoutExpired:
                p.kill9()
        self.errors += [(shlex.join(p.argv), p.stderr()) for p in self.processes]
        self.processes = []

    def assert_no_reports(self):
        """No sanitizer and no valgrind complained, in any process of this test."""
        for command, err in self.errors:
            assert not REPORT.search(err), f"a report from {command}\n{err}"
