"""River: a job queue for Go. Sequences, its order of a key, are in River Pro; one worker alone takes one job after the
other, in order as long as none fails, which is shown for comparison."""
import glob
import os
import re
import shutil
import subprocess

from .peer import HERE, Config, Driven, Unavailable, command, installed

FOLDER = os.path.join(HERE, "river")
FILES = [os.path.join(FOLDER, f) for f in ("go.mod", "go.sum", "main.go")]


def go_mod(pattern):
    with open(FILES[0], encoding="ascii") as f:
        return re.search(pattern, f.read(), re.M).group(1)


def numbers(text):
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def find_go():
    """A Go that is new enough: it may be where its makers put it, or where Debian puts its versions."""
    needed, found = go_mod(r"^go (\S+)"), []
    for go in filter(None, [shutil.which("go"), "/usr/local/go/bin/go", *glob.glob("/usr/lib/go-*/bin/go")]):
        if os.path.exists(go):
            done = subprocess.run([go, "env", "GOVERSION"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env={**os.environ, "GOTOOLCHAIN": "local"}, cwd=os.path.dirname(go))
            found.append(done.stdout.strip())
            if numbers(done.stdout) >= numbers(needed):
                return go
    raise Unavailable(f"it needs Go {needed}, and there is {' and '.join(found) or 'none'}")


def config(rows, workers, cooldown=2):
    name = f"{workers:,} workers, fetches {cooldown} ms apart" if workers > 1 else f"1 worker, fetches {cooldown} ms apart"
    return Config(name, {"maxWorkers": workers, "cooldown": cooldown}, rows)


class River(Driven):
    name = "river"
    order = {"ordered": "none of a key (Pro only): one worker", "unordered": "none"}
    unfinished = "SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending')"

    def __init__(self):
        self.version = go_mod(r"riverqueue/river v(\S+)")

    def configs(self, mode):
        return [config(10000, 1, 1)] if mode == "ordered" else [config(100000, 100), config(100000, 2000)]

    def install(self):
        def build(folder):
            go = find_go()
            env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
            command([go, "build", "-o", "river", "."], "go build", cwd=folder, env=env)
        self.home = installed(self.name, self.version, FILES, build)

    def driver(self):
        return [os.path.join(self.home, "river")]


PEER = River
