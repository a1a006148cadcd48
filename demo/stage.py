"""What the story is played on: the shop, the nodes, the file, and the eyes on all of it."""
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time

import producer
import screen
from children import Child, Trouble
from database import Observer
from ledger import Ledger, Rates, Tail
from report import Report
from views import View

HERE = os.path.dirname(os.path.abspath(__file__))
CUSTOMERS = 120
ORDERS_PER_SECOND = 300
WORKERS = 4
BATCH = 5  # small, so that several workers have some of a burst
PATIENCE = 30  # seconds for what normally takes none
TICK = 0.01  # how promptly the file is read: no latency is shown smaller
OBSERVE = 0.1


class Node:
    def __init__(self, name):
        self.name = name
        self.workers = WORKERS
        self.alive = False
        self.killed_at = None
        self.starts = 0
        self.child = None


class Stage:
    """Knows how to do things, not when: that is the story's."""

    def __init__(self, program, times, folder, show):
        self.program = program
        self.times = times
        self.folder = folder
        self.show = show
        self.view = View(self)
        self.database = os.path.join(folder, "shop.db")
        self.node_a, self.node_b = self.nodes = [Node("A"), Node("B")]
        self.shop = None
        self.tail = Tail(os.path.join(folder, "out.jsonl"))
        self.ledger = Ledger()
        self.rates = Rates()
        self.observer = None
        self.counts = None
        self.owned = {}
        self.orphans = {}
        self.queued = 0  # the most that waited in the lanes of the dead node
        self.events = []
        self.watch_some()
        self.scene = None
        self.closed = False
        self.interrupted = False
        self.started = self.observed = self.drawn = self.stopped = None  # times of the monotonic clock

    def watch_some(self):
        self.watched = [f"customer:{n:03d}" for n in range(7, CUSTOMERS, CUSTOMERS // 6)]
        self.watched_why = f"{len(self.watched)} of {CUSTOMERS}"

    # -- before ------------------------------------------------------------------------------------

    def env(self):
        """Settings in the caller's environment are not meant for the demo's nodes."""
        return {k: v for k, v in os.environ.items()
                if k != "DATABASE_URL" and not k.startswith("SLUICE_")}

    def run_command(self, node):
        return ["run", "--db", "sqlite:shop.db", "--sink", "file:out.jsonl?sync=off",
                "--lease", f"{self.times.lease}s", "--workers", str(WORKERS), "--batch", str(BATCH),
                "--poll", "20ms", "--node", node]

    def workers_command(self):
        program = min(self.program, os.path.relpath(self.program), key=len)
        return f"{program} workers --db sqlite:{self.database}"

    def prepare(self):
        done = subprocess.run([self.program, "init", "--db", "sqlite:shop.db"], cwd=self.folder, env=self.env(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Trouble(f"sluice init ended with status {done.returncode}: {done.stderr.strip()}")
        with sqlite3.connect(self.database, isolation_level=None) as db:
            db.execute(producer.CREATE_ORDERS)
        db.close()
        self.observer = Observer(self.database)

    def start_node(self, node):
        node.child = Child(f"node {node.name}", [self.program, *self.run_command(node.name)], self.folder,
                           self.env())
        node.starts += 1
        node.child.wait_log("node started", node.starts, PATIENCE)
        node.alive = True

    def start(self):
        self.prepare()
        for node in self.nodes:
            self.start_node(node)
        self.shop = Child("shop", [sys.executable, os.path.join(HERE, "producer.py"), self.database,
                                   str(ORDERS_PER_SECOND), str(CUSTOMERS)], self.folder, self.env())
        self.shop.wait_log(producer.OPEN, timeout=PATIENCE)
        self.started = self.drawn = time.monotonic()
        self.observe()

    def introduce(self):
        say = self.show.say
        say([("bold", "Sluice demo"), f": {self.times.total:g} seconds, in {self.folder}"])
        say()
        say(["For each order the shop commits one transaction: the order, and a message about it."])
        say()
        for line in producer.SHOWN.split("\n"):
            say(["  ", ("cyan", line)])
        say()
        say(["Two nodes, A and B, deliver the messages to a file, each customer's in order:"])
        say()
        say(["  ", ("cyan", "sluice init --db sqlite:shop.db")])
        words = self.run_command("A")
        say(["  ", ("cyan", f"sluice {' '.join(words[:5])} \\")])
        say(["      ", ("cyan", " ".join(words[5:]))])
        say()

    # -- while it runs -----------------------------------------------------------------------------

    def elapsed(self):
        return (self.stopped or time.monotonic()) - self.started

    def event(self, text):
        line = textwrap.fill(f"{self.elapsed():5.1f} s  {text}", 79, subsequent_indent=" " * 9)
        self.events.append(line)
        self.show.event(line)

    def read_file(self):
        for line in self.tail.lines():
            arrival = self.ledger.read(line, time.time())
            orphan = self.orphans.get(arrival.id) if arrival else None
            if orphan and not orphan.taken_by:
                orphan.taken_by, orphan.taken_at, orphan.kind = arrival.worker, self.elapsed(), arrival.kind

    def observe(self):
        self.observed = time.monotonic()
        self.counts = self.observer.counts()
        self.owned = self.observer.owned()
        if self.orphans and not self.node_b.alive and "B" in self.owned:
            self.queued = max(self.queued, self.owned["B"].waiting)
        self.rates.sample(self.observed, {"pushed": self.counts.pushed, **self.ledger.by_node})

    def check(self):
        for node in self.nodes:
            if node.alive:
                node.child.check()
        if not self.closed:
            self.shop.check()

    def tick(self):
        self.read_file()
        self.check()
        if time.monotonic() - self.observed >= OBSERVE:
            self.observe()
        self.scene = self.scene()
        if time.monotonic() - self.drawn >= self.show.period:
            self.observe()
            self.show.draw(self.view)
            self.drawn = time.monotonic()

    def run(self, scene):
        self.scene = scene
        self.event("the shop opens; nodes A and B deliver")
        self.show.begin()
        while self.scene and not self.interrupted:
            self.tick()
            time.sleep(TICK)
        self.end()

    def close_shop(self):
        self.closed = True
        self.shop.term()
        self.shop.wait(PATIENCE)

    # -- after -------------------------------------------------------------------------------------

    def end(self):
        """Ends everything politely, and reads what was written last."""
        if self.interrupted:
            self.event("interrupted")
        if not self.closed:
            self.close_shop()
        alive = [node for node in self.nodes if node.alive]
        for node in alive:
            node.child.term()
        for node in alive:
            node.alive = False
            node.child.wait(PATIENCE)
        self.read_file()
        self.stopped = time.monotonic()

    def summarise(self):
        self.show.end()
        if isinstance(self.show, screen.Terminal):
            for line in self.events:
                self.show.say([line])
        self.show.say()
        report = Report(self)
        for line in report.lines():
            self.show.say(line)
        return 0 if report.good else 1

    def clean_up(self):
        """Whatever happened: no process and no file stays."""
        self.show.close()
        for child in [self.shop, *(node.child for node in self.nodes)]:
            if child and child.running:
                child.kill()
        self.tail.close()
        if self.observer:
            self.observer.close()
        shutil.rmtree(self.folder, ignore_errors=True)
