"""Nodes under attack: a cluster of them, producers that never stop, and what is done to them. Used by
tests/torture (for hours) and tests/e2e/test_nemesis.py (for seconds):

    run = Run(sluice, pg, COMBINATIONS["lanes/ring"], seed=1, seconds=60)
    figures = run.play()            # attacks, heals, stops; the history's figures
    run.wrong                       # what is wrong, as lines

What is attacked is seen in the nodes' own records (record.py), so that a kill can wait until its
victim has work in flight, at a certain step of its turn. All that is random comes from the seed;
what the machine makes of it does not.
"""
import collections
import fcntl
import heapq
import json
import os
import random
import shutil
import signal
import threading
import time

import psycopg2

import record as rec
from checker import dead_letters, message, read_sink
from harness import PATIENCE, WAITING, connect, query, waiting
from history import SECOND, Fault, Heal, History, left_behind
from segments import audit, next_segment, truncations

# flags are for all nodes; by_slot, if given, are one list of flags for each place of a node; init are flags for the
# tables.
Combination = collections.namedtuple("Combination", "name flags by_slot ordered epochs session_held init",
                                     defaults=(None, True, True, False, ()))


def _lanes(assign, by_slot=None):
    return Combination(f"lanes/{assign}", ["--strategy", "lanes", "--assign", assign], by_slot)


# With static lanes two nodes want the same ones: one of them has them, the other stands by.
STATIC = [["--static-lanes", "0-31"], ["--static-lanes", "0-31"], ["--static-lanes", "32-63"],
          ["--static-lanes", "32-63"]]
# What was delivered stays only if it was read in one piece, which a worker with a good part of the lanes does: so there
# are fewer of them.
ROTATED = Combination("lanes/ring/rotated", ["--strategy", "lanes", "--assign", "ring"],
                      [["--workers", "1"]] * 3 + [["--workers", "2"]], init=("--layout", "rotated"))
COMBINATIONS = {c.name: c for c in (
    Combination("advisory", ["--strategy", "advisory"], session_held=True),
    Combination("guard", ["--strategy", "guard"]),
    _lanes("ring"), _lanes("claim"), _lanes("static", STATIC), _lanes("birth-order"), ROTATED)}
# Promises no order: what is found here shows that the judge is not blind.
UNORDERED = Combination("skip-locked", ["--strategy", "skip-locked", "--hold", "lease"])

# How often: seconds between two of a kind, on average; None for never.
Pace = collections.namedtuple("Pace", "kill pause restart leave", defaults=(3.0, 11.0, 70.0, 9.0))

NODES = 4
WORKERS = 2
LEASE = 2.0
BATCH = 20
KEYS = 200
BACKLOG = 900  # messages that wait, if producers are fast enough
LATER = 3.0  # seconds, at most
RATE_MAX = 350  # messages a second, of all producers
DEATHS_MAX = 5  # nodes that end by themselves, before the run is given up
TURN = 2.0  # seconds that new messages go to a segment, on average
DONE = ("kills", "pauses", "restarts", "leaves", "truncations")
MOMENTS = [(), (), (rec.TAKEN,), (rec.SEND,), (rec.RESULT,)]  # of a turn, to kill in


# -- Producers -----------------------------------------------------------------------------------

class Producer(threading.Thread):
    """Commits messages of its own keys, one transaction after another, so that the order of ids is the
    order of commits within a key; but not between producers, and some take their time. Some messages
    are without a key. When the database goes away in a commit, it asks afterwards whether that one is
    there: a counter, raised in the same transaction, tells. Where messages may stay for a while when they
    are delivered, some transactions are rolled back, and messages without a key may be for later."""

    def __init__(self, run, number, keys):
        super().__init__(daemon=True)
        self.run_, self.number, self.keys = run, number, keys
        self.random = random.Random(f"{run.seed}/producer/{number}")
        self.weights = [1 / (i + 1) ** 1.1 for i in range(len(keys))]
        self.messages, self.commits = {}, {}
        self.transactions = 0
        self.conn = None
        self.failed = None
        self.stop = threading.Event()

    def run(self):
        try:
            while not self.stop.is_set():
                if self.run_.wants_more():
                    self._transaction()
                else:
                    self.stop.wait(0.02)
        except Exception as e:  # told by the main thread
            self.failed = e
        finally:
            self._forget()

    def _forget(self):
        if self.conn:
            self.conn.close()
        self.conn = None

    def _rows(self):
        n = self.random.choice((1, 1, 2, 4, 8))
        keys = self.random.choices(self.keys, self.weights, k=n)
        return [("orders", None if self.random.random() < 0.05 else key,
                 json.dumps({"p": self.number, "t": self.transactions, "i": i}).encode()) for i, key in enumerate(keys)]

    def _later(self, row):
        """In how many seconds a message is due. One without a key holds up nobody else."""
        return self.random.uniform(0, LATER) if self.run_.rotated and row[1] is None else 0

    def _transaction(self):
        self.transactions += 1
        rows, ids = self._rows(), []
        try:
            if not self.conn:
                self.conn = psycopg2.connect(self.run_.url, application_name="producer")
            with self.conn.cursor() as cur:
                cur.execute("INSERT INTO outbox (topic, entity_key, payload, available_at) VALUES "
                            + ",".join(["(%s, %s, %s, now() + %s * interval '1 second')"] * len(rows)) + " RETURNING id",
                            [value for row in rows for value in (*row, self._later(row))])
                ids = [id for (id,) in cur.fetchall()]
                cur.execute("UPDATE producers SET transactions = %s WHERE number = %s",
                            (self.transactions, self.number))
            if self.random.random() < 0.03:
                self.stop.wait(self.random.uniform(0.01, 0.2))
            given_up = self.run_.rotated and self.random.random() < 0.05
            (self.conn.rollback if given_up else self.conn.commit)()
            known = not given_up
        except psycopg2.Error:
            self._forget()
            known = ids and self._was_committed()
        if known:
            self._note(ids, rows)

    def _note(self, ids, rows):
        now = rec.now_ns()
        for id, row in zip(ids, rows):
            self.messages[id] = message(*row)
            self.commits[id] = now
        self.run_.committed(len(ids))

    def _was_committed(self):
        """Waits for the database, and for a transaction of ours that may still be there."""
        while True:
            try:
                rows = query(self.run_.url, "SELECT transactions FROM producers WHERE number = ? FOR UPDATE",
                             self.number)
                return rows[0][0] == self.transactions
            except psycopg2.Error:
                time.sleep(0.1)


# -- The sink's gate -----------------------------------------------------------------------------

class Gate(threading.Thread):
    """Keeps the lock of the sink's file for a moment, and until something waits, so that nodes have
    work in flight all the time, and not only when the disk is slow. For some seconds at a time it
    does nothing."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(f"{run.seed}/gate")
        self.stop = threading.Event()

    def run(self):
        with open(self.run_.out, "ab") as f:
            while not self.stop.is_set():
                if self.random.random() < 0.03:
                    self.stop.wait(self.random.uniform(1, 3))
                if self._lock(f):
                    self.stop.wait(self.random.uniform(0.02, 0.2))
                    end = time.monotonic() + 0.5
                    while self.run_.waiting < BACKLOG / 3 and time.monotonic() < end:
                        self.stop.wait(0.02)
                    fcntl.flock(f, fcntl.LOCK_UN)
                self.stop.wait(self.random.uniform(0.01, 0.1))

    def _lock(self, f):
        """A node that was stopped may have it for long."""
        while not self.stop.is_set():
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                self.stop.wait(0.005)
        return False


class Watch(threading.Thread):
    """Counts what waits in the table, several times a second."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_ = run
        self.stop = threading.Event()

    def run(self):
        conn = None
        while not self.stop.wait(0.1):
            try:
                conn = conn or connect(self.run_.url)
                with conn.cursor() as cur:
                    cur.execute(WAITING.format(t="outbox"))
                    self.run_.waiting = cur.fetchone()[0]
            except psycopg2.Error:
                conn = None
        if conn:
            conn.close()


# -- Segments ------------------------------------------------------------------------------------

class Turns(threading.Thread):
    """Sends producers on to the next segment of a table of layout rotated, again and again."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_ = run
        self.random = random.Random(f"{run.seed}/turns")
        self.stop = threading.Event()
        audit(run.url)

    def run(self):
        while not self.stop.wait(self.random.uniform(0.5, 1.5) * TURN):
            try:
                next_segment(self.run_.url)
                self.run_.done["turns"] += 1
                self.run_.done["truncations"] = truncations(self.run_.url)[0]
            except psycopg2.Error:  # it is away
                pass


# -- Nodes ---------------------------------------------------------------------------------------

class Node:
    """A place for a node, and the process that is there now, if any."""

    def __init__(self, run, slot):
        self.run_, self.slot = run, slot
        self.name = None
        self.process = self.tail = None
        self.state = "down"  # up, paused, leaving
        self.pause = None  # the fault that goes on
        self.begun = 0.0

    def start(self, same_name=False):
        run = self.run_
        if not same_name or not self.name:
            run.names += 1
            self.name = f"n{run.names}"
        flags = [*run.combination.flags, *(run.combination.by_slot[self.slot] if run.combination.by_slot else [])]
        self.process = run.sluice.start(
            "run", "--node", self.name, "--sink", f"file:{run.out}", "--workers", WORKERS, "--batch", BATCH,
            "--lease", f"{round(run.lease * 1000)}ms", "--poll", "100ms", *flags, db=run.url, env={"SLUICE_RECORD": run.records})
        self.tail = rec.Tail(run.records, self.process.pid)
        self.state, self.begun = "up", rec.now_ns()

    def gone(self):
        self.tail.close()
        self.process = self.tail = None
        self.state = "down"

    def in_flight(self, *kinds):
        return len(self.tail.follow().in_flight(*kinds))

    def wait_in_flight(self, seconds, *kinds):
        """Until it has work in flight at this step; or else at any."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.running:
            if self.in_flight(*kinds):
                return True
            time.sleep(0.001)
        return self.process.running and self.in_flight() > 0

    def kill(self):
        """Now; the fault."""
        pid, at = self.process.pid, rec.now_ns()
        self.process.kill9()
        now = rec.now_ns()
        self.gone()
        return Fault("kill", pid, at, now, now)

    def freeze(self):
        """Now, and returns when all its threads have stopped."""
        pid, at = self.process.pid, rec.now_ns()
        self.process.pause()
        self.state = "paused"
        self.pause = Fault("pause", pid, at, rec.now_ns(), None)

    def thaw(self):
        """Goes on; the fault."""
        fault = self.pause._replace(until=rec.now_ns())
        self.process.resume()
        self.state, self.pause = "up", None
        return fault


# -- The run -------------------------------------------------------------------------------------

class Run:
    """One combination, attacked for some seconds. `wrong` collects what is wrong."""

    def __init__(self, sluice, pg, combination, seed, seconds, pace=Pace(), lease=LEASE, producers=2,
                 say=lambda text: None):
        self.sluice, self.pg, self.combination, self.seed = sluice, pg, combination, f"{seed}/{combination.name}"
        self.seconds, self.pace, self.lease, self.say = seconds, pace, lease, say
        self.random = random.Random(f"{self.seed}/nemesis")
        self.folder = os.path.join(sluice.cwd, combination.name.replace("/", "-"))
        self.records = os.path.join(self.folder, "records")
        self.out = os.path.join(self.folder, "out.jsonl")
        os.makedirs(self.records)
        self.url = pg.new_database()
        self.rotated = "rotated" in combination.init
        self.wrong, self.faults, self.done = [], [], collections.Counter()
        self.nodes, self.threads, self.producer_count = [], [], producers
        self.names = 0
        self.outage = None  # since when PostgreSQL is away
        self.waiting = 0  # messages in the table, when it was looked at last
        self.pushed = 0  # messages committed
        self._budget, self._paid = 0.0, time.monotonic()
        self._lock = threading.Lock()
        self._schedule, self._number = [], 0

    # Called by the producers.

    def wants_more(self):
        """Neither too many wait, nor were too many committed lately."""
        with self._lock:
            now = time.monotonic()
            self._budget = min(self._budget + (now - self._paid) * RATE_MAX, RATE_MAX / 4)
            self._paid = now
            if self.waiting < BACKLOG and self._budget > 0:
                self._budget -= 3  # about a transaction's
                return True
        return False

    def committed(self, n):
        with self._lock:
            self.pushed += n

    # The main loop.

    def play(self, least=None):
        """All of it: start, attack, heal, stop, judge. The figures; see History.judge."""
        self.sluice.run("init", *self.combination.init, db=self.url)
        query(self.url, "CREATE TABLE producers (number int PRIMARY KEY, transactions int NOT NULL)")
        n = self.producer_count
        self.producers = [Producer(self, i, [f"k{i}-{j}" for j in range(KEYS // n)]) for i in range(n)]
        for p in self.producers:
            query(self.url, "INSERT INTO producers VALUES (?, 0)", p.number)
        self.nodes = [Node(self, i) for i in range(len(self.combination.by_slot or range(NODES)))]
        self.threads = [*self.producers, Gate(self), Watch(self), *([Turns(self)] if self.rotated else [])]
        for thread in (*self.nodes, *self.threads):
            thread.start()
        self._attack(least or {})
        heal = self._heal()
        self._stop()
        return self._judge(heal, least)

    def at(self, seconds, what, *args):
        """Schedules something, so many seconds from now."""
        self._number += 1
        heapq.heappush(self._schedule, (time.monotonic() + seconds, self._number, what, args))

    def _again_and_again(self, name):
        """Does it, and again after a while; or soon, if it could not be done."""
        every = getattr(self.pace, name)
        self.at(self.random.uniform(0.5, 1.5) * every if getattr(self, name)() else 0.3, self._again_and_again, name)

    def _attack(self, least):
        """For so many seconds, and up to five times as long if too little could be done."""
        started = tell = time.monotonic()
        for name in self.pace._fields:
            if getattr(self.pace, name):
                self.at(1 + self.random.uniform(0.3, 1.0) * getattr(self.pace, name), self._again_and_again, name)
        while (now := time.monotonic()) < started + self.seconds * (1 if self._done_enough(least) else 5):
            self._look()
            if now >= tell:
                self.say(self.progress(now - started))
                tell = now + 5
            while self._schedule and self._schedule[0][0] <= time.monotonic():
                _, _, what, args = heapq.heappop(self._schedule)
                what(*args)
            time.sleep(0.01)

    def _done_enough(self, least):
        return all(self.done[name] >= n for name, n in least.items() if name in DONE)

    def _end_outage(self):
        """All that is scheduled is forgotten but for this."""
        while self.outage:
            schedule, self._schedule = self._schedule, []
            for _, _, what, args in schedule:
                if what == self._start_again:
                    what(*args)
            time.sleep(0.02)

    def _look(self):
        """Has anybody died by itself?"""
        for p in self.producers:
            assert not p.failed, f"a producer failed: {p.failed!r}"
        for node in self.nodes:
            if node.process and not node.process.running:
                self._ended(node)

    def _ended(self, node):
        """It was told to leave, or could not start since the database was away; else it is a failure."""
        status = node.process.returncode
        away = self.outage or any(f.kind == "pg" and f.until > node.begun - SECOND for f in self.faults[-5:])
        if not (node.state == "leaving" and status == 0) and not (away and status in (0, 1, 3)):
            self.done["deaths"] += 1
            self.wrong.append(f"status: node {node.name} ended by itself with status {status}:\n"
                              + node.process.stderr()[-2000:])
            assert self.done["deaths"] < DEATHS_MAX, "\n".join(self.wrong)
        node.gone()
        self.at(self.random.uniform(0.1, 1.0), self._join, node)

    def _join(self, node, same_name=False):
        if node.state != "down":
            return
        if self.outage:  # it would only end again
            self.at(0.5, self._join, node, same_name)
            return
        node.start(same_name)
        self.done["joins"] += 1

    def _victim(self, least_left):
        """A node that works, if enough others do."""
        up = [n for n in self.nodes if n.state == "up" and rec.now_ns() - n.begun > SECOND]
        return self.random.choice(up) if len(up) > least_left else None

    def _busy_victim(self):
        """One with work in flight, at some step of its turn; None if there is none right now. A node may
        well stand by, with nothing to do."""
        moment = self.random.choice(MOMENTS)
        for _ in range(NODES):
            node = self._victim(1)
            if node and node.wait_in_flight(0.05 if self.outage else 0.3, *moment):
                return node
        return None

    # What is done to them.

    def kill(self):
        node = self._busy_victim()
        if not node:
            return False
        self.faults.append(node.kill())
        self.done["kills"] += 1
        self.at(self.random.choice((0.0, 0.2, 1.0)), self._join, node, self.random.random() < 0.5)
        return True

    def pause(self):
        node = self._busy_victim()
        if not node:
            return False
        node.freeze()
        if not node.in_flight():  # that would prove nothing
            node.thaw()
            return False
        self.at(self.lease * self.random.uniform(1.15, 2.2), self._resume, node, node.process)
        return True

    def _resume(self, node, process):
        if node.process is process and node.state == "paused":
            self.faults.append(node.thaw())
            self.done["pauses"] += 1

    def leave(self):
        node = self._victim(2)
        if not node or self.outage:
            return False
        now = rec.now_ns()
        self.faults.append(Fault("leave", node.process.pid, now, now, now))
        node.state = "leaving"
        node.process.term()
        self.done["leaves"] += 1
        self.at(15 * PATIENCE, self._overdue, node, node.process)
        return True

    def _overdue(self, node, process):
        if node.process is process and process.running and node.state == "leaving":
            self.wrong.append(f"status: node {node.name} did not leave within {15 * PATIENCE:g} s of TERM")
            self.faults.append(node.kill())
            self._join(node)

    def restart(self):
        """The database goes, and comes back after a moment; other things go on meanwhile. It is started
        by the main thread, as it ends with the thread that started it."""
        if self.outage:
            return False
        mode, sign = self.random.choice([("fast", signal.SIGINT), ("immediate", signal.SIGQUIT)])
        self.outage = rec.now_ns()
        self.pg.process.send_signal(sign)
        self.done["restarts"] += 1
        self.done[mode] += 1
        self.at(self.random.choice((0.0, 0.0, 0.3, 1.5)), self._start_again, time.monotonic() + 30)
        return True

    def _start_again(self, deadline):
        if self.pg.running and time.monotonic() < deadline:
            self.at(0.02, self._start_again, deadline)
            return
        if self.pg.running:
            self.wrong.append("PostgreSQL did not stop within 30 s")
            self.pg.kill()
        self.pg.start()
        now = rec.now_ns()
        self.faults.append(Fault("pg", 0, self.outage, now, now))
        self.outage = None

    # The end.

    def _heal(self):
        """No more faults: everybody works, until nothing is left. A Heal."""
        self._end_outage()
        for node in self.nodes:
            if node.state == "paused":
                self.faults.append(node.thaw())
        for thread in self.threads:
            thread.stop.set()
        for thread in self.threads:
            thread.join()
        deadline = time.monotonic() + 90 * PATIENCE
        began = time.monotonic()
        rows = self._count()
        bound = 2 * (2 * self.lease + rows / 100) * PATIENCE + 5
        while rows and time.monotonic() < deadline:
            self._look()
            for node in self.nodes:  # who was to come back does
                self._join(node)
            time.sleep(0.1)
            rows = self._count()
        took = time.monotonic() - began
        self.say(self.progress(self.seconds) + f", healed in {took:.1f} s")
        if rows:
            self.wrong.append(f"liveness: {rows} messages are still there {took:.0f} s after the last fault")
            self._keep_evidence()
        return Heal(took, bound)

    def _count(self):
        return waiting(self.url)

    def _keep_evidence(self):
        """What the tables say, for whoever has to find out why."""
        for table in ("outbox", "outbox_nodes", "outbox_lanes", "outbox_claims", "outbox_keys", "outbox_positions"):
            try:
                rows = query(self.url, f"SELECT * FROM {table} LIMIT 20")
                self.wrong += [f"    {table}: {row}" for row in rows if table != "outbox_lanes" or row[1]][:8]
            except psycopg2.Error:
                pass

    def _stop(self):
        """Everybody leaves, in good order, and nothing is left behind."""
        nodes = [n for n in self.nodes if n.process]
        for node in nodes:
            node.process.term()
        for node in nodes:
            try:
                status = node.process.wait(20)
                if status != 0:
                    self.wrong.append(f"status: node {node.name} left with status {status}:\n"
                                      + node.process.stderr()[-2000:])
            except AssertionError:
                self.wrong.append(f"status: node {node.name} did not leave within {20 * PATIENCE:g} s of TERM")
                node.process.kill9()
        end = time.monotonic() + 5 * PATIENCE
        left = left_behind(self.url)
        while left and time.monotonic() < end:  # sessions take a moment to end
            time.sleep(0.05)
            left = left_behind(self.url)
        self.wrong += left

    def _judge(self, heal, least):
        messages, commits = {}, {}
        for p in self.producers:
            both = messages.keys() & p.messages.keys()
            assert not both, f"ids of two messages: {sorted(both)[:5]}"
            messages.update(p.messages)
            commits.update(p.commits)
        c = self.combination
        self.history = History(messages, read_sink(self.out), rec.read(self.records), self.faults, lease=self.lease,
                               batch=BATCH, ordered=c.ordered, epochs=c.epochs, session_held=c.session_held,
                               commits=commits, dead=dead_letters(self.url), heal=heal)
        figures = self.history.judge({k: n for k, n in (least or {}).items() if k != "truncations"}, raises=False)
        self.wrong += self.history.wrong
        if self.rotated:
            self._judge_segments(figures, least or {})
        figures.update({"joins": self.done["joins"], "heal": round(heal.took, 1),
                        "immediate": self.done["immediate"], "wrong": len(self.wrong)})
        return figures

    def _judge_segments(self, figures, least):
        """Some were emptied, with delivered messages in them, or it proves nothing."""
        figures["turns"] = self.done["turns"]
        figures["truncations"], figures["truncated"] = truncations(self.url)
        if figures["truncations"] < (n := least.get("truncations", 1)):
            self.wrong.append(f"least: {figures['truncations']} truncations of segments with messages in them, there"
                              f" should be {n}")

    def progress(self, passed):
        done = self.done
        return (f"{self.combination.name}: {passed:.0f} of {self.seconds:.0f} s, {done['kills']} kills,"
                f" {done['pauses']} pauses, {done['restarts']} restarts,"
                f" {done['joins']} joins, {done['leaves']} leaves, {self.pushed} messages, {self.waiting} waiting"
                + (f", {done['truncations']} truncations" if self.rotated else ""))

    def close(self):
        """Ends what a failure left running, and removes the files unless something is wrong."""
        for thread in self.threads:
            thread.stop.set()
        if not self.pg.running:
            self.pg.start()
        for node in self.nodes:
            if node.process and node.process.running:
                node.process.signal(signal.SIGCONT)
                node.process.kill9()
        if self.wrong:
            with open(os.path.join(self.folder, "faults.json"), "w", encoding="utf-8") as f:
                json.dump([fault._asdict() for fault in self.faults], f)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.pg.drop_database(self.url)
