"""Servers for tests, and the only thing that starts them: real binaries, a temporary folder, a
private port, killed by process id at the end, whatever happens.

    with Postgres() as pg:
        url = pg.new_database()
        pg.kill()       # as kill -9 of all its processes
        pg.start()

kafka.py has Kafka, in the same way. `tests/support/with-servers pg -- CMD` does the same from a shell.
"""
import atexit
import contextlib
import ctypes
import fcntl
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

PORTS = range(21000, 32700)  # below the ephemeral ports, which any connection may take
MEMORY = "/dev/shm"
ROOM = 8 << 30  # bytes: what all servers of a run could need at once


def wait_for(fn, timeout, what):
    """Polls until fn() is true; returns what it returned."""
    end = time.monotonic() + timeout
    while True:
        got = fn()
        if got:
            return got
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        time.sleep(0.02)


class PortLock:
    """A TCP port of 127.0.0.1 that no other test run on this machine takes while we live. The lock
    is the kernel's, so that a killed run leaves nothing behind. A port that was given back is taken
    again last: clients of the server that had it may go on knocking for a while."""

    _tried = 0  # ports that this process has asked for

    def __init__(self):
        folder = os.path.join(tempfile.gettempdir(), "sluice-test-ports")
        os.makedirs(folder, exist_ok=True)
        if os.stat(folder).st_uid == os.geteuid():
            os.chmod(folder, 0o1777)
        first = os.getpid() * 7 % len(PORTS)
        for _ in PORTS:
            port = PORTS[(first + PortLock._tried) % len(PORTS)]
            PortLock._tried += 1
            if self._take(os.path.join(folder, str(port)), port):
                self.port = port
                return
        raise RuntimeError(f"no free port from {PORTS[0]} to {PORTS[-1]}")

    def _take(self, path, port):
        try:
            self._file = open(path, "a")
        except PermissionError:  # of another user
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", port))
            return True
        except OSError:
            self._file.close()
            return False

    def release(self):
        self._file.close()


def _die_with_parent():
    """In the child: an immediate shutdown when this program is killed. (1 is PR_SET_PDEATHSIG.)"""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def new_folder(base, kind="pg"):
    """A temporary folder, and the locked file in it that says that we live. Folders of runs that
    were killed are removed on this occasion."""
    for owner in glob.glob(os.path.join(base, f"sluice-{kind}-*", "owner")):
        try:
            with open(owner) as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(os.path.dirname(owner), ignore_errors=True)
        except OSError:
            pass  # it lives, or is not ours
    folder = tempfile.mkdtemp(prefix=f"sluice-{kind}-", dir=base)
    new = open(os.path.join(folder, "new"), "w")
    fcntl.flock(new, fcntl.LOCK_EX)
    os.rename(new.name, os.path.join(folder, "owner"))  # seen by others only when it is locked
    return folder, new


def _free_memory():
    """Bytes, and no more than a container may have."""
    with open("/proc/meminfo", encoding="ascii") as f:
        free = int(re.search(r"^MemAvailable: *(\d+) kB", f.read(), re.M)[1]) << 10
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # of the second version, of the first
        with contextlib.suppress(OSError, ValueError), open(f"/sys/fs/cgroup/{limit}", encoding="ascii") as f:
            free = min(free, int(f.read()))
    return free


def _has_room():
    """May servers keep their files in memory? A disk's file system takes longer to make and remove the three hundred files
    of a database than most tests do."""
    try:
        stat = os.statvfs(MEMORY)
        return min(stat.f_bavail * stat.f_frsize, _free_memory()) >= ROOM and os.access(MEMORY, os.W_OK | os.X_OK)
    except (OSError, TypeError):
        return False


def _processes_under(pid):
    """The process ids below pid, at any depth."""
    parents = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as f:
                text = f.read()
        except OSError:
            continue
        parents[int(text.split(" ", 1)[0])] = int(text.rpartition(")")[2].split()[1])
    below, grown = {pid}, True
    while grown:
        more = {p for p, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return below - {pid}


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Postgres:
    """A PostgreSQL server of its own. `settings` are lines of postgresql.conf, as a dict; they may
    be changed before a restart."""

    def __init__(self, version=None, fsync=False, settings=None, primary=None):
        self.process = None
        self.primary = primary
        self.fsync = fsync
        self.settings = dict(settings or {})
        self.bin = self._find(version)
        self._databases = 0
        self._standbys = []
        self._lock = PortLock()
        self.port = self._lock.port
        base = MEMORY if not fsync and _has_room() else tempfile.gettempdir()
        self.dir, self._owner = new_folder(base if len(base) < 60 else "/tmp")
        atexit.register(self.close)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log")
        self._as_user = {}
        if os.geteuid() == 0:  # the server refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        try:
            self._create()
            self.start()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _find(version):
        found = {}
        for path in glob.glob("/usr/lib/postgresql/*/bin/postgres"):
            found[int(path.split("/")[4].split(".")[0])] = os.path.dirname(path)
        if not found or (version and version not in found):
            raise RuntimeError(f"PostgreSQL {version or ''} is not installed; hint: tools/install-deps check")
        return found[version or max(found)]

    @property
    def version(self):
        return int(self.bin.split("/")[4])

    def _tool(self, name, *args):
        done = subprocess.run([os.path.join(self.bin, name), *args], cwd=self.dir, env=self._env(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, **self._as_user)
        if done.returncode:
            raise RuntimeError(f"{name} failed ({done.returncode}):\n{done.stdout}")

    @staticmethod
    def _env():
        env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        env.update(LC_ALL="C.UTF-8", TZ="UTC")
        env.pop("LD_PRELOAD", None)
        return env

    def _create(self):
        if self.primary:
            self._tool("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", self.data,
                       "-d", f"host=127.0.0.1 port={self.primary.port} user=postgres")
        else:
            self._tool("initdb", "-D", self.data, "-U", "postgres", "--locale=C.UTF-8", "-E", "UTF8",
                       "-A", "trust", "--no-sync")

    def _options(self):
        onoff = "on" if self.fsync else "off"
        options = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.dir,
            "max_connections": 100, "fsync": onoff, "full_page_writes": onoff,
            "log_line_prefix": "%m [%p] %a ", "logging_collector": "off",
        }
        options.update(self.settings)
        return [f"--{name}={value}" for name, value in options.items()]

    # -- life ------------------------------------------------------------------------------------

    def start(self, timeout=60):
        assert not self.running, "the server is running"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.bin, "postgres"), "-D", self.data, *self._options()],
                cwd=self.dir, env=self._env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_die_with_parent, **self._as_user)
        try:
            wait_for(self._ready, timeout, "PostgreSQL accepts connections")
        except (TimeoutError, RuntimeError) as e:
            raise RuntimeError(f"{e}\n{self.log_text()}") from None
        return self

    def _ready(self):
        """As pg_ctl does: by the last line of the file that the server keeps."""
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended with status {self.process.returncode} while starting")
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as f:
                lines = f.read().split("\n")
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.process.pid) and lines[7].strip() == "ready"

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def stop(self, mode="fast", timeout=30):
        """smart waits for sessions to end, fast ends them, immediate is a crash with a recovery."""
        if not self.running:
            return
        self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT,
                                  "immediate": signal.SIGQUIT}[mode])
        self.process.wait(timeout)

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def kill(self):
        """SIGKILL for the postmaster and all its children: what a dead machine looks like, but
        for the page cache. Returns when all of them are gone, so that start() works at once."""
        if not self.running:
            return
        self.process.send_signal(signal.SIGSTOP)  # it must not fork while we look
        children = _processes_under(self.process.pid)
        self.process.kill()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        wait_for(lambda: not any(map(_alive, children)), 30, "PostgreSQL's processes are gone")

    def close(self):
        """Ends it and removes its folder; may be called twice."""
        for standby in self._standbys:
            standby.close()
        if self.running:
            try:
                self.stop("immediate", 10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._lock.release()
        shutil.rmtree(self.dir, ignore_errors=True)
        self._owner.close()
        atexit.unregister(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # -- use -------------------------------------------------------------------------------------

    def url(self, dbname="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{dbname}"

    def socket_url(self, dbname="postgres"):
        return f"postgresql:///{dbname}?host={self.dir}&port={self.port}&user=postgres"

    def sql(self, text, dbname="postgres"):
        """Runs SQL, returns psql's unaligned output."""
        done = subprocess.run(
            [os.path.join(self.bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(dbname), "-c", text],
            env=self._env(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{text}: {done.stderr.strip()}")
        return done.stdout.strip()

    def new_database(self):
        """A fresh, empty database; returns its URL."""
        self._databases += 1
        name = f"t{os.getpid()}_{self._databases}"
        how = " STRATEGY file_copy" if self.version >= 15 and not self.fsync else ""  # half the work where fsync is off
        self._command(f"CREATE DATABASE {name}{how}")
        return self.url(name)

    def drop_database(self, url):
        """With all its sessions; hundreds of left-over databases take long to remove at the end."""
        self._command(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def _command(self, text):
        """Without psql, whose start takes as long as the rest: each of a thousand tests has a database of its own."""
        try:
            import psycopg2
        except ImportError:
            self.sql(text)
            return
        conn = psycopg2.connect(self.url())
        try:
            conn.autocommit = True
            conn.cursor().execute(text)
        finally:
            conn.close()

    def standby(self, **kw):
        """A hot standby that follows this server; closed together with it."""
        other = Postgres(version=self.version, primary=self, fsync=self.fsync, **kw)
        self._standbys.append(other)
        return other

    def promote(self):
        self.sql("SELECT pg_promote()")

    def log_text(self, since=0):
        """The server's log, from a byte position on; its length is a good position."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                f.seek(since)
                return f.read()
        except OSError:
            return ""

    def log_size(self):
        return os.path.getsize(self.log)

    def __str__(self):
        return f"PostgreSQL, port {self.port}"


class _Listener:
    """A TCP server that handles each connection in a thread of its own until it is closed."""

    def __init__(self):
        self._lock = PortLock()
        self.port = self._lock.port
        self.connections = 0
        self._open = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(conn)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        try:
            self.talk(conn)
        except (OSError, EOFError):
            pass

    def talk(self, conn):
        raise NotImplementedError

    def url(self, dbname="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{dbname}"

    def close(self):
        for s in [self._server, *self._open]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        self._lock.release()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class SilentServer(_Listener):
    """Accepts connections and never answers: a dead peer behind a live address."""

    def talk(self, conn):
        while conn.recv(4096):
            pass


def _read(conn, n):
    got = b""
    while len(got) < n:
        more = conn.recv(n - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def _message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


class TransactionPooler(_Listener):
    """Gives a process of the server to each transaction, and takes it back at its end: the one that was given
    back last goes out first, as with others of its kind. Speaks for a server that asks for no password."""

    def __init__(self, server):
        self._to = server.port
        self._idle = {}  # by what a client says first: sockets
        self._greetings = {}
        self._mutex = threading.Lock()
        super().__init__()

    def talk(self, conn):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = self._hello(conn)
        with self._mutex:
            if hello not in self._greetings:
                self._idle[hello] = [self._connect(hello)]
        conn.sendall(self._greetings[hello])
        server = None
        while True:
            kind, message = self._next(conn)
            if kind == b"X":
                return
            server = server or self._take(hello)
            server.sendall(message)
            if kind in (b"S", b"Q"):
                last = self._answer(server, conn)
                if last[-1:] == b"I":  # given back before the client can ask again, over whatever connection
                    with self._mutex:
                        self._idle[hello].append(server)
                    server = None
                conn.sendall(last)

    @staticmethod
    def _hello(conn):
        while True:
            length = _read(conn, 4)
            body = _read(conn, struct.unpack("!i", length)[0] - 4)
            if struct.unpack("!i", body[:4])[0] == 196608:
                return length + body
            conn.sendall(b"N")  # neither SSL nor GSS

    @staticmethod
    def _next(conn):
        kind, length = _read(conn, 1), _read(conn, 4)
        return kind, kind + length + _read(conn, struct.unpack("!i", length)[0] - 4)

    def _connect(self, hello):
        server = socket.create_connection(("127.0.0.1", self._to))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.append(server)
        server.sendall(hello)
        greeting = b""
        while not greeting.endswith(OldServer.READY):
            greeting += self._next(server)[1]
        self._greetings[hello] = greeting
        return server

    def _take(self, hello):
        with self._mutex:
            return self._idle[hello].pop() if self._idle[hello] else self._connect(hello)

    def _answer(self, server, conn):
        """Hands all of it over but for its end, which tells whether the transaction is at its own."""
        while True:
            kind, message = self._next(server)
            if kind == b"Z":
                return message
            conn.sendall(message)


class OldServer(_Listener):
    """Speaks just enough of PostgreSQL's protocol to say that it is an old one, and refuses every
    statement. `asked` collects the statements."""

    READY = _message(b"Z", b"I")

    def __init__(self, version="12.3"):
        self.version = version
        self.asked = []
        super().__init__()

    def talk(self, conn):
        while True:
            (length,) = struct.unpack("!i", _read(conn, 4))
            body = _read(conn, length - 4)
            (code,) = struct.unpack("!i", body[:4])
            if code == 196608:
                break
            if code not in (80877103, 80877104):  # neither SSL nor GSS: a cancel request
                return
            conn.sendall(b"N")
        parameters = {"server_version": self.version, "server_encoding": "UTF8", "client_encoding": "UTF8",
                      "DateStyle": "ISO, MDY", "integer_datetimes": "on", "standard_conforming_strings": "on"}
        conn.sendall(_message(b"R", struct.pack("!i", 0))
                     + b"".join(_message(b"S", f"{k}\0{v}\0".encode()) for k, v in parameters.items())
                     + _message(b"K", struct.pack("!ii", 1, 1)) + self.READY)
        self._refuse_all(conn)

    def _refuse_all(self, conn):
        error = _message(b"E", b"SERROR\0VERROR\0C42601\0Msyntax error: this server is too old for it\0\0")
        skipping = False  # after an error, until Sync
        while True:
            kind = _read(conn, 1)
            (length,) = struct.unpack("!i", _read(conn, 4))
            body = _read(conn, length - 4)
            if kind in (b"Q", b"P"):
                text = body.split(b"\0")[0 if kind == b"Q" else 1]
                self.asked.append(re.sub(r"\s+", " ", text.decode("utf-8", "replace")))
            if kind == b"X":
                return
            if kind == b"Q":
                conn.sendall(error + self.READY)
            elif kind == b"S":
                conn.sendall(self.READY)
                skipping = False
            elif kind != b"H" and not skipping:
                conn.sendall(error)
                skipping = True
