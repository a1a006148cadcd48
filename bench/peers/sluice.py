"""Sluice itself, on the same server: `lanes` with order, on a table of the ordinary layout and on a rotated one; without order, the
fastest of those and `skip-locked` in a transaction.
Into null:, which keeps no record, so that the counts of the log are checked there; one more configuration goes into a
file, whose lines are checked as the records of the others are."""
import array
import json
import re
import types

from parts.program import WAYS, drain
from parts.program import command as run_command
from parts.tables import PostgresTable

from .peer import Config, Drained, Peer

ROWS = 400000
WAY = {way.name: way for way in WAYS}
OF_MODE = {"ordered": "lanes", "unordered": "skip-locked-transaction"}


def config(way, workers, batch, file=False, layout="sluice"):
    plural = "s" if workers > 1 else ""
    rotated = ", rotated" if layout == "rotated" else ""
    return Config(f"{way}{rotated}, {workers} worker{plural}, batch {batch:,}, {'file:' if file else 'null:'}",
                  {"way": way, "workers": workers, "batch": batch, "file": file, "layout": layout}, ROWS)


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
        """The one into a file is for the check, and for comparison."""
        way = OF_MODE[mode]
        own = [config(way, 1, 500), config(way, 2, 500), config(way, 2, 500, file=True)]
        own += [config("lanes", 2, batch, layout="rotated") for batch in (500, 5000)]
        own += [config("lanes", 2, 5000)]
        if mode == "unordered":
            return own + [config("lanes", 2, 500)]
        return own + [config("lanes", 2, 500, file=True, layout="rotated")]

    def install(self):
        pass  # it is built by make

    def enqueue(self, server, url, load, config):
        run_command([self.program, "init", "--db", url, "--layout", config.settings["layout"]])
        self.table = Table(server, url)
        self.table.add(load.rows, key=f"'order:' || g % {load.keys}")

    def drain(self, url, load, config, record):
        own = config.settings
        options = types.SimpleNamespace(sluice=self.program, batch=own["batch"])
        lines = record + ".jsonl"
        run = drain(options, self.table, WAY[own["way"]], f"file:{lines}" if own["file"] else "null:",
                    own["workers"], load.rows)
        if own["file"]:
            write_record(lines, record)
        return Drained(0, run.seconds, record if own["file"] else None)

    def left(self, server, dbname):
        return sum(self.table.left())


PEER = Sluice
