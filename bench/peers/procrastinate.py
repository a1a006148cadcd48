"""procrastinate: a task queue for Python. With order: the key is the job's lock."""
import os
import re

from .peer import HERE, Config, Driven, command, installed

REQUIREMENTS = os.path.join(HERE, "procrastinate", "requirements.txt")


def config(concurrency):
    return Config(f"concurrency {concurrency}", {"concurrency": concurrency}, 10000)


def install(folder):
    command(["/usr/bin/python3", "-m", "venv", folder], "python3 -m venv")
    command([os.path.join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps",
             "-r", REQUIREMENTS], "pip install")


class Procrastinate(Driven):
    name = "procrastinate"
    order = {"ordered": "lock", "unordered": "none"}
    unfinished = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

    def __init__(self):
        with open(REQUIREMENTS, encoding="ascii") as f:
            self.version = re.search(r"^procrastinate==(\S+)", f.read(), re.M).group(1)

    def configs(self, mode):
        return [config(1), config(10)]

    def install(self):
        self.home = installed(self.name, self.version, [REQUIREMENTS], install)

    def driver(self):
        return [os.path.join(self.home, "bin", "python"), os.path.join(HERE, "procrastinate", "drive.py")]


PEER = Procrastinate
