"""Kafka as it comes from Maven's repository: the jars that kafka-jars.txt names, each downloaded once per
checkout into .cache/kafka-VERSION, and believed only if its sha256 is the one that is pinned.

    paths = fetch()         # raises Unreachable if there is no repository to be had
    paths = fetch(PATH)     # those of another list, X-jars.txt, into .cache/X-VERSION

SL_MAVEN_URL is the repository, if not Maven's own. Several processes may ask at once: one downloads, the
others wait for it.
"""
import contextlib
import fcntl
import hashlib
import os
import urllib.request

from harness import ROOT

LIST = os.path.join(ROOT, "tests", "support", "kafka-jars.txt")
CACHE = os.path.join(ROOT, ".cache")
MAVEN = "https://repo1.maven.org/maven2"
SILENCE_SECONDS = 20  # of the repository, until we believe that it is not there
TRIES = 3


class Unreachable(Exception):
    """There are no jars and no way to get them."""


class Jar:
    def __init__(self, line):
        names, self.sha256 = line.split()
        self.group, self.artifact, self.version = names.split(":")
        self.name = f"{self.artifact}-{self.version}.jar"

    def url(self, base):
        return "/".join([base.rstrip("/"), self.group.replace(".", "/"), self.artifact, self.version, self.name])


def jars_of(path=LIST):
    with open(path, encoding="utf-8") as f:
        return [Jar(line) for line in f if line.strip() and not line.startswith("#")]


def version(path=LIST):
    return jars_of(path)[0].version


def folder(path=LIST, cache=None):
    name = os.path.basename(path).rpartition("-jars.txt")[0] or "kafka"
    return os.path.join(cache or CACHE, f"{name}-{version(path)}")


@contextlib.contextmanager
def locked(path):
    """One process at a time; a killed one leaves nothing behind."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(url):
    for last in [False] * (TRIES - 1) + [True]:
        try:
            with urllib.request.urlopen(url, timeout=SILENCE_SECONDS) as answer:
                return answer.read()
        except (OSError, ValueError) as e:  # ValueError: SL_MAVEN_URL is no URL
            if last or getattr(e, "code", 0) == 404 or isinstance(e, ValueError):
                raise Unreachable(f"{url}: {e}") from None


def _keep(jar, path, base, pinned_by):
    """Downloads one. A name that exists is always that of a whole and right file."""
    url = jar.url(base)
    data = _download(url)
    got = hashlib.sha256(data).hexdigest()
    if got != jar.sha256:
        raise RuntimeError(f"{url} has the sha256 {got}, not {jar.sha256} as {os.path.basename(pinned_by)} says")
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.rename(path + ".new", path)


def fetch(path=LIST, cache=None, base=None):
    """The jars' paths."""
    base = base or os.environ.get("SL_MAVEN_URL") or MAVEN
    into = folder(path, cache)
    found = [(jar, os.path.join(into, jar.name)) for jar in jars_of(path)]
    if not all(os.path.exists(p) for _, p in found):
        with locked(f"{into}.lock"):
            os.makedirs(into, exist_ok=True)
            for jar, p in found:
                if not os.path.exists(p):
                    _keep(jar, p, base, path)
    return [p for _, p in found]
