"""At most once under faults: nodes are killed, and PostgreSQL is shut down immediately, while messages are in flight.

    run = Run(sluice, pg, strategy="lanes", messages=4000, kills=10, restarts=2)
    figures, wrong = run.play()

What must hold, by the sink's own file and by `sluice dead list --unknown`:

    twice       no message arrives a second time
    missing     each message arrived or is listed, and what is listed was never lost sight of: nothing else is left
    order       of each key the ids rise, among what arrived
    least       the faults hit something: so many of the killed nodes had messages in flight

A message that is listed may have arrived: only the receiver knows. With `journal=True` the killed come back under their
names with a journal, and know of most: what it says they finish, and only the rest is listed. With `delivery="at-least-once"` the same faults must
make duplicates, which is the test of this test.
"""
import collections
import json
import os
import random
import re

import psycopg2

from checker import read_sink, some
from harness import connect, ports_of, query, wait_until

TRIES = 5  # with as many messages again, where all were delivered before the fault could hit
INSERT = ("INSERT INTO outbox (topic, entity_key, payload) SELECT 'orders', 'k' || (i % ?), convert_to('{\"n\":' || i || '}',"
          " 'UTF8') FROM generate_series(1, ?) AS s (i) RETURNING id, entity_key")


class Eye:
    """One connection that looks again and again, and comes back when the server does."""

    def __init__(self, url):
        self.url, self.conn = url, None

    def one(self, sql, *args):
        """None: the server is away."""
        try:
            self.conn = self.conn or connect(self.url)
            cur = self.conn.cursor()
            cur.execute(sql, args)
            return cur.fetchone()[0]
        except psycopg2.Error:
            self.close()
            return None

    def close(self):
        if self.conn:
            self.conn.close()
        self.conn = None


class Run:
    def __init__(self, sluice, pg, strategy="lanes", messages=4000, keys=50, kills=10, restarts=2, nodes=2, batch=10,
                 seed=1, delivery="at-most-once", flags=(), journal=False, say=lambda text: None):
        self.sluice, self.pg, self.say = sluice, pg, say
        self.strategy, self.delivery, self.flags, self.batch = strategy, delivery, flags, batch
        self.messages, self.keys = messages, keys
        self.faults = ["kill"] * kills + ["restart"] * restarts
        random.Random(seed).shuffle(self.faults)
        self.url = pg.new_database()
        self.out = os.path.join(sluice.cwd, f"once-{strategy}-{delivery}.jsonl")
        self.eye = Eye(self.url)
        self.node_count = nodes
        self.nodes, self.killed, self.started, self.journal = {}, [], 0, journal
        self.all, self.misses, self.restarts = {}, 0, 0

    # -- What is done --

    def start(self, name=None):
        self.started += 1
        name = name or f"n{self.started}"
        journal = ("--journal", os.path.join(self.sluice.cwd, f"{name}.journal")) if self.journal else ()
        self.nodes[name] = self.sluice.start(
            "run", "--sink", f"file:{self.out}", "--strategy", self.strategy, "--delivery", self.delivery, "--node", name,
            "--workers", 2, "--batch", self.batch, "--lease", "1s", "--poll", "20ms", *journal, *self.flags, db=self.url)
        self.nodes[name].wait_log("node started", 30)  # one that finds no server gives up

    def feed(self, n):
        self.all.update(query(self.url, INSERT, self.keys, n))

    def waiting(self):
        return self.eye.one("SELECT count(*) FROM (SELECT FROM outbox LIMIT 1) o")

    def last_lines(self):
        """Whole ones, at the end of the sink's file."""
        if not os.path.exists(self.out):
            return []
        with open(self.out, "rb") as f:
            f.seek(max(0, os.path.getsize(self.out) - 16384))
            lines = f.read().split(b"\n")[1:-1]
        return [json.loads(text) for text in lines]

    def in_flight(self, name):
        """How much this node has consumed and not settled; at least once: how much it has sent and not settled."""
        if self.delivery == "at-most-once":
            return self.eye.one("SELECT count(*) FROM outbox_consumed WHERE starts_with(worker, %s)", name + "/")
        sent = [line["id"] for line in self.last_lines() if line["worker"].startswith(name + "/")]
        return self.eye.one("SELECT count(*) FROM outbox WHERE id = ANY (%s)", sent)

    def caught(self, name):
        """The node stands still with something in its hands; else it goes on."""
        node = self.nodes[name]
        if not self.in_flight(name):
            return False
        node.pause()
        # What it had sent to the server before is still done: maybe that was the settle. Who waits for the rest of what was
        # only sent in part gets no further.
        wait_until(lambda: self.eye.one("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event IS"
                                        " DISTINCT FROM 'ClientRead' AND client_port = ANY (%s)", ports_of(node.pid)) == 0,
                   10, "its sessions are at rest", every=0.001)
        if self.in_flight(name):
            return True
        node.resume()
        return False

    def attempt(self, condition, what):
        """Until it holds; False: there was nothing left to do before it did."""
        return wait_until(lambda: "yes" if condition() else "no" if self.waiting() == 0 else None, 60, what,
                          every=0.0005) == "yes"

    def kill(self, rng):
        name = rng.choice(sorted(self.nodes))
        if not self.attempt(lambda: self.caught(name), f"{name} has something in flight"):
            return False
        self.nodes.pop(name).kill9()
        self.killed.append(name)
        self.start(name if self.journal else None)
        return True

    def restart(self, _):
        if not self.attempt(lambda: any(self.in_flight(name) for name in self.nodes), "something is in flight"):
            return False
        self.restarts += 1
        self.eye.close()
        self.pg.restart("immediate")
        return True

    def stop(self):
        for node in self.nodes.values():
            node.term()
        for node in self.nodes.values():
            node.wait(60, status=0)
        self.nodes.clear()

    # -- The verdict --

    def listed(self):
        """By `sluice dead`, once the leases of the killed are over: error by id."""
        wait_until(lambda: query(self.url, "SELECT count(*) FROM outbox_nodes WHERE lives_until > clock_timestamp()") ==
                   [(0,)], 30, "the leases of the killed are over")
        done = self.sluice.run("dead", "list", "--unknown", "--json", "--limit", 100000, db=self.url)
        got = json.loads(done.stdout)
        assert got["matching"] == len(got["dead_letters"]), "more are listed than can be shown"
        return {d["id"]: d["error"] for d in got["dead_letters"]}, got["matching"]

    def listed_by_nodes(self):
        """The rest is listed by `sluice dead`, or by a worker that lost its connection."""
        logs = "".join(p.stderr() for p in self.sluice.processes)
        return sum(map(int, re.findall(r"are dead letters now\" messages=(\d+)", logs)))

    def settled_by_journals(self):
        """What earlier lives had consumed: known to be sent, to be sent again, to be listed."""
        logs = "".join(p.stderr() for p in self.sluice.processes)
        found = re.findall(r"earlier life had consumed is settled\" sent=(\d+) back=(\d+) unknown=(\d+)", logs)
        return [sum(int(f[i]) for f in found) for i in range(3)]

    def out_of_order(self, record):
        last = {}
        for d in record:
            if d.id <= last.get(d.key, 0):
                yield f"line {d.line}: {d.id} of key {d.key} after {last[d.key]}"
            last[d.key] = max(d.id, last.get(d.key, 0))

    def judge(self, least):
        record = read_sink(self.out)
        listed, letters = self.listed()
        times = collections.Counter(d.id for d in record)
        missing = self.all.keys() - times.keys()
        left = query(self.url, "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM outbox_consumed)")[0][0]
        hit = [name for name in self.killed if any(f"consumed by {name}/" in error for error in listed.values())]
        figures = {"messages": len(self.all), "arrived": len(times), "duplicates": len(record) - len(times),
                   "missing": len(missing), "listed": len(listed), "listed and arrived": len(listed.keys() & times.keys()),
                   "listed by nodes": self.listed_by_nodes(), "kills": len(self.killed), "kills that left something": len(hit), "restarts": self.restarts,
                   "misses": self.misses, "torn": len(record.torn)}
        if self.journal:
            sent, back, unknown = self.settled_by_journals()
            figures.update({"kills that left something": len(self.killed), "finished by journals": sent,
                            "sent again by journals": back, "listed by journals": unknown})
        wrong = some("twice", (f"message {id} arrived {n} times" for id, n in times.items() if n > 1))
        wrong += some("missing", (f"message {id} never arrived, and is not listed" for id in sorted(missing - listed.keys())))
        wrong += some("invention", (f"message {id}" for id in sorted((times.keys() | listed.keys()) - self.all.keys())))
        if letters != len(listed):
            wrong.append(f"listed: {letters} dead letters of {len(listed)} messages")
        if left:
            wrong.append(f"left: {left} messages are neither delivered nor listed")
        if self.strategy != "skip-locked":
            wrong += some("order", self.out_of_order(record))
        for figure, n in least.items():
            if figures[figure] < n:
                wrong.append(f"least: {figures[figure]} {figure}, which is too few to prove anything (of {n})")
        return figures, wrong

    def play(self, least):
        """(figures, what is wrong)."""
        rng = random.Random(len(self.faults))
        self.sluice.run("init", db=self.url)
        for _ in range(self.node_count):
            self.start()
        portion = self.messages // (len(self.faults) + 1)
        for i, fault in enumerate(self.faults):
            for _ in range(TRIES):
                self.feed(portion)
                if getattr(self, fault)(rng):
                    break
                self.misses += 1
            if i % 10 == 9:
                self.say(f"{i + 1} faults, {len(self.all)} messages")
        self.feed(max(portion, self.messages - len(self.all)))
        wait_until(lambda: self.waiting() == 0, 120, "everything is delivered")
        # A node that is told to stop gives back what it has consumed and not handed over.
        wait_until(lambda: sum(self.in_flight(name) or 0 for name in self.nodes) == 0, 30, "nothing is in flight")
        self.stop()
        try:
            return self.judge(least)
        finally:
            self.eye.close()
