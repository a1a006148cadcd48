"""PgQ: an extension of PostgreSQL. One consumer gets batches of all events in order. Its position moves by a batch, and
events go when a whole table of them is truncated: it writes nothing for a single event, and cannot hold one key back."""
import os
import re
import subprocess

from .peer import HERE, Config, Driven, Unavailable

PACKAGE = "postgresql-15-pgq3"


def config(batch):
    return Config(f"1 consumer, a tick each {batch:,} events", {"batch": batch}, 400000)


def installed_version():
    """Of the Debian package, without Debian's part; empty if there is none."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", PACKAGE],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return ""
    found = re.fullmatch(r"installed (\S+?)(-\S+)?", done.stdout)
    return found.group(1) if found else ""


class PgQ(Driven):
    name = "pgq"
    order = {"ordered": "one consumer, all in order", "unordered": None}
    absent = "always in order"
    unfinished = """SELECT count(*) FROM pgq.tick t JOIN pgq.subscription s ON s.sub_queue = t.tick_queue
                     WHERE t.tick_id > s.sub_last_tick"""

    def __init__(self):
        self.version = installed_version()

    def configs(self, mode):
        return [config(500), config(5000)]

    def install(self):
        if not self.version:
            raise Unavailable(f"there is no package {PACKAGE}")

    def driver(self):
        return ["/usr/bin/python3", os.path.join(HERE, "pgq", "drive.py")]


PEER = PgQ
