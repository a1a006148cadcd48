"""Sluice itself, on the same server: `lanes` with order, `skip-locked` in a transaction without, into null: with one and
two workers. null: keeps no record, so that the counts of the log are checked there; one more configuration goes into a
file, whose lines are checked as the records of the others are."""
import array
import json
import re
import types

from parts.program import WAYS, drain
from parts.program import command as run_command
from parts.tables import PostgresTable

from .peer import Config, Drained, Peer

BATCH = 500
ROWS = 400000
WAY = {"ordered": next(w for w in WAYS if w.name == "lanes"),
       "unordered": next(w for w in WAYS if w.name == "skip-locked-transaction")}


class Table(PostgresTable):
    """The outbox in a database of a server that is there already."""

    def __init__(self, server, url):  # pylint: disable=super-init-not-called
        dbname = url.rpartition("/")[2]
        self.server = types.SimpleNamespace(sql=lambda text: server.sql(text, dbname), pid=server.pid)
        self.url = url


def write_record(lines, path):
    """The lines of the file as a record: a message begins and ends where its line is."""
    numbers = array.array("d")
    with open(lines, encoding="utf-8") as f:
        for i, line in enumerate(f):
            numbers.extend((json.loads(line)["payload"]["n"], i, i))
    with open(path, "wb") as f:
        numbers.tofile(f)


class Sluice(Peer):
    name = "sluice"
    order = {"ordered": "lanes", "unordered": "none"}

    def __init__(self, program):
        self.program = program
        self.version = re.search(r"\d[\d.]*", run_command([program, "--version"])).group()

    def configs(self, mode):
        """The first two count; the third is for the check, and for comparison."""
        return [Config("1 worker, null:", {"workers": 1, "file": False}, ROWS),
                Config("2 workers, null:", {"workers": 2, "file": False}, ROWS),
                Config("2 workers, file:", {"workers": 2, "file": True}, ROWS)]

    def install(self):
        pass  # it is built by make

    def enqueue(self, server, url, load, config):
        run_command([self.program, "init", "--db", url])
        self.table = Table(server, url)
        self.table.add(load.rows, key=f"'order:' || g % {load.keys}")

    def drain(self, url, load, config, record):
        options = types.SimpleNamespace(sluice=self.program, batch=BATCH)
        lines = record + ".jsonl"
        run = drain(options, self.table, WAY[load.mode], f"file:{lines}" if config.settings["file"] else "null:",
                    config.settings["workers"], load.rows)
        if config.settings["file"]:
            write_record(lines, record)
        return Drained(0, run.seconds, record if config.settings["file"] else None)

    def left(self, server, dbname):
        return sum(self.table.left())


PEER = Sluice
