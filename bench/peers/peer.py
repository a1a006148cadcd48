"""What bench/peers/run asks of a peer, and what peers have in common: where they are installed, and how their
drivers are called."""
import collections
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from parts.program import Wrong, environment
from parts.tables import PAD, ROOT

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(ROOT, ".cache", "peers")
INSTALL_LIMIT_SECONDS = 900
RUN_LIMIT_SECONDS = 600
MODES = ("ordered", "unordered")

Load = collections.namedtuple("Load", "rows keys mode")  # messages 1 to rows; the key of one is its number modulo keys

# settings: a dict, for the driver. rows: such that a run takes 5 to 30 s.
Config = collections.namedtuple("Config", "name settings rows")
# When workers had started and when all was done, in seconds of one clock; and a file of messages, see record.py.
Drained = collections.namedtuple("Drained", "started ended record")


class Unavailable(Exception):
    """The peer cannot be had here; says why, in a few words."""


class Peer:
    name = ""
    version = ""
    order = {"ordered": "", "unordered": "none"}  # what keeps the order, in words; None: the peer has no such mode
    absent = ""  # why not

    def configs(self, mode):
        """The configurations to try; the best one counts."""
        raise NotImplementedError

    def install(self):
        """Does nothing if it was done before. Raises Unavailable."""
        raise NotImplementedError

    def enqueue(self, server, url, load, config):
        """Makes the peer's tables in an empty database, and adds all messages. Not measured."""
        raise NotImplementedError

    def drain(self, url, load, config, record):
        """Handles them all, and returns Drained."""
        raise NotImplementedError

    def left(self, server, dbname):
        """How many messages are not done, by the peer's own tables."""
        raise NotImplementedError


class Driven(Peer):
    """A peer that is driven by a program of ours, in its own language: `driver enqueue|drain SETTINGS`, where
    SETTINGS is JSON. After a drain its last line says when workers had started and when all was done, in seconds
    of the same clock as the record."""
    unfinished = ""  # SQL: how many messages are not done

    def driver(self):
        """The command, without its arguments."""
        raise NotImplementedError

    def driver_environment(self):
        return environment()

    def settings(self, url, load, config, **more):
        return {"url": url, "rows": load.rows, "keys": load.keys, "pad": PAD, "ordered": load.mode == "ordered",
                "unfinished": self.unfinished, **config.settings, **more}

    def call(self, verb, settings):
        argv = [*self.driver(), verb, json.dumps(settings)]
        try:
            done = subprocess.run(argv, env=self.driver_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=RUN_LIMIT_SECONDS)
        except subprocess.TimeoutExpired as e:
            raise Wrong(f"{verb} was not done after {RUN_LIMIT_SECONDS} s") from e
        if done.returncode:
            raise Wrong(f"{verb} ended with status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout.splitlines()

    def enqueue(self, server, url, load, config):
        self.call("enqueue", self.settings(url, load, config))

    def drain(self, url, load, config, record):
        times = json.loads(self.call("drain", self.settings(url, load, config, record=record))[-1])
        return Drained(times["started"], times["ended"], record)

    def left(self, server, dbname):
        return int(server.sql(self.unfinished, dbname))


# -- installing ------------------------------------------------------------------------------------

def command(argv, what, **kw):
    """Runs a step of an installation."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=INSTALL_LIMIT_SECONDS, **kw)
    except OSError as e:
        raise Unavailable(f"{what}: {e.strerror}") from e
    except subprocess.TimeoutExpired as e:
        raise Unavailable(f"{what}: not done after {INSTALL_LIMIT_SECONDS} s") from e
    if done.returncode:
        print(done.stdout[-2000:], file=sys.stderr)
        raise Unavailable(f"{what} failed with status {done.returncode}")
    return done.stdout


def installed(name, version, files, install):
    """The folder .cache/peers/NAME-VERSION. `install(folder)` fills it, unless that was done before with the same
    `files`, which are copied into it first."""
    folder = os.path.join(CACHE, f"{name}-{version}")
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as f:
            digest.update(f.read() + b"\0")
    mark = os.path.join(folder, "installed")
    if os.path.exists(mark):
        with open(mark, encoding="ascii") as f:
            if f.read() == digest.hexdigest():
                return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for path in files:
        shutil.copy(path, folder)
    install(folder)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as f:
        f.write(digest.hexdigest())
    os.rename(f.name, mark)
    return folder
