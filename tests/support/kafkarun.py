"""PostgreSQL to Kafka under attack: nodes are killed and paused, and brokers are killed, while messages are in flight.

    run = Run(sluice, pg, kafka, messages=20000, kills=5, pauses=3, brokers=1)
    figures, wrong = run.play()

A fault waits until its victim has work in flight, by its own record (record.py). Afterwards every record of the topic
is read back, and judged by history.py, together with the processes' records. What is different with Kafka:

    partitions  each key is in one partition only
    unknown     a sink that gets no answer says so: such a message may be there, and comes again; in the same epoch, too
    late        what was unknown may have been in a broker's hands all the time, and is carried out behind what was sent
                after it. Without a fence this is excused, and counted, and no more than was unknown; as what a paused
                node writes when it wakes up is (see `zombies` in history.py). With a fence there is neither.
    duplicates  no more than there were messages in flight at a kill or a pause, and unknown ones; none with exactly-once
"""
import collections
import os
import random
import time

import record as rec
from checker import message
from harness import PATIENCE, query, wait_until, waiting
from history import SECOND, Fault, Heal, History, left_behind
from kafkaclient import history_of, wanderers
from segments import audit, next_segment, truncations

UNKNOWN = rec.VERDICTS.index("unknown")
PAUSED_MAX = 2  # nodes at a time
AWAY = 2.0  # seconds that a broker is away, at least
INSERT = ("INSERT INTO outbox (topic, entity_key, payload) SELECT ?, 'k' || (random() * ?)::int,"
          " convert_to(repeat('x', 20) || i, 'UTF8') FROM generate_series(1, ?) AS s (i) RETURNING id, topic, entity_key, payload")


class KafkaHistory(History):
    """fence: the brokers refuse what a former owner sends. Which worker has sent a record is in no header: it is found by
    message and epoch."""

    signed = False

    def __init__(self, *args, fence=False, **kw):
        self.fence, self.late = fence, {}
        super().__init__(*args, **kw)
        self.deliveries[:] = [d._replace(worker=self.flight_of[d.line].worker) if d.line in self.flight_of else d
                              for d in self.deliveries]
        self.unknown = [f for f in self.flights if f.verdict == UNKNOWN]
        self.spare = collections.Counter(f.id for f in self.unknown)

    def in_flight(self):
        return super().in_flight() + [f.id for f in self.unknown]

    def excuse_late(self, delivery):
        """Was an answer missing for this message? Then one copy of it may be anywhere behind the first."""
        if self.fence or not self.spare[delivery.id]:
            return None
        self.spare[delivery.id] -= 1
        self.late[delivery.line] = delivery
        return Fault("late", 0, 0, 0, 0)

    def _interrupted(self, delivery, before):
        flight = self.flight_of.get(before.line)
        return super()._interrupted(delivery, before) or (flight and flight.verdict == UNKNOWN)


class Node:
    def __init__(self, name, process, records):
        self.name, self.process, self.tail = name, process, rec.Tail(records, process.pid)
        self.paused = None  # the fault that goes on
        self.until = 0.0  # when it is to go on

    def in_flight(self):
        return len(self.tail.follow().in_flight())


class Run:
    """brokers: how many times one is killed, or stopped where there is no other. flags go to each node as they are;
    exactly-once and a fence among them change what must hold. With layout rotated each fault sends producers on to the
    next segment, and segments must have been emptied with messages in them."""

    def __init__(self, sluice, pg, kafka, messages=20000, keys=5000, kills=5, pauses=3, brokers=1, nodes=4, workers=2,
                 batch=100, lease=3.0, partitions=12, strategy="lanes", flags=(), seed=1, layout="sluice",
                 say=lambda text: None):
        self.sluice, self.pg, self.kafka, self.say = sluice, pg, kafka, say
        self.messages, self.keys, self.node_count = messages, keys, nodes
        self.layout, self.rotated = layout, layout == "rotated"
        self.batch, self.lease = batch, lease
        self.flags = ["--strategy", strategy, "--workers", workers, "--batch", batch, "--lease", f"{round(lease * 1000)}ms", "--poll",
                      "50ms", *flags]
        words = [str(flag) for flag in flags]
        self.exactly_once = "exactly-once" in words
        self.fence = self.exactly_once or "--fence" in words
        self.random = random.Random(seed)
        self.plan = ["kill"] * kills + ["pause"] * pauses + ["broker"] * brokers
        self.random.shuffle(self.plan)
        self.topic = kafka.new_topic(partitions=partitions)
        warm_up(kafka)
        self.records = os.path.join(sluice.cwd, f"records-{self.topic}")
        os.makedirs(self.records)
        self.url = pg.new_database()
        self.all, self.faults, self.nodes, self.wrong = {}, [], [], []
        self.started = self.misses = 0
        self.away = None  # (broker, when it may come back, since when)
        self.hits = collections.defaultdict(list)  # kind -> messages in flight

    # -- What is done --

    def start(self):
        self.started += 1
        name = f"n{self.started}"
        process = self.sluice.start("run", "--node", name, "--sink", f"kafka://{self.kafka.bootstrap()}", *self.flags,
                                    db=self.url, env={"SLUICE_RECORD": self.records})
        self.nodes.append(Node(name, process, self.records))

    def feed(self, n):
        for i in range(0, n, 5000):
            rows = query(self.url, INSERT, self.topic, self.keys - 1, min(5000, n - i))
            self.all.update((row[0], message(*row[1:])) for row in rows)

    def waiting(self):
        if self.rotated:
            return waiting(self.url)
        return query(self.url, "SELECT count(*) FROM (SELECT FROM outbox LIMIT 1) o")[0][0]

    def look(self):
        """What is due: nodes that wake up, a broker that comes back. Has anybody ended by itself?"""
        now = time.monotonic()
        for node in self.nodes:
            if node.paused and now >= node.until:
                self.resume(node)
            if not node.process.running:
                raise AssertionError(f"{node.name} ended by itself: {node.process}")
        if self.away and not self.kafka.nodes[self.away[0] - 1].running and now >= self.away[1]:
            self.kafka.start(self.away[0], wait=False)

    def resume(self, node):
        self.faults.append(node.paused._replace(until=rec.now_ns()))
        node.process.resume()
        node.paused = None

    def caught(self, least):
        """A node that stands still with so many in flight; None if there is none at the moment."""
        for node in self.random.sample(self.nodes, len(self.nodes)):
            if node.paused or node.in_flight() < least:
                continue
            at = rec.now_ns()
            node.process.pause()
            n = node.in_flight()
            if n >= least:
                return node, at, n
            node.process.resume()
        return None

    def catch(self):
        """Until there is one, with a good part of a batch if that can be had; None: all was delivered before."""
        start = time.monotonic()
        while time.monotonic() < start + 120 * PATIENCE:
            self.look()
            found = self.caught(self.batch // 4 if time.monotonic() < start + 3 else 1)
            if found:
                return found
            if not self.waiting():
                return None
        raise AssertionError("nothing was in flight for long, and messages wait")

    def kill(self):
        found = self.catch()
        if not found:
            return False
        node, at, n = found
        node.process.kill9()
        now = rec.now_ns()
        self.faults.append(Fault("kill", node.process.pid, at, now, now))
        self.hits["kill"].append(n)
        self.nodes.remove(node)
        node.tail.close()
        self.start()
        return True

    def pause(self):
        while sum(1 for node in self.nodes if node.paused) >= PAUSED_MAX:
            self.look()
            time.sleep(0.02)
        found = self.catch()
        if not found:
            return False
        node, at, n = found
        node.paused = Fault("pause", node.process.pid, at, rec.now_ns(), None)
        node.until = time.monotonic() + self.lease * self.random.uniform(1.3, 2.0)
        self.hits["pause"].append(n)
        return True

    def broker(self):
        """SIGKILL of one of several; a single one is stopped in good order, so that nothing that it has confirmed is lost
        with it."""
        self.heal_broker()
        wait_until(lambda: self.look() or not self.waiting() or self._flying() >= self.batch / 2, 60, "work in flight",
                   every=0.001)
        number = self.random.randint(1, len(self.kafka.nodes))
        at, n = rec.now_ns(), self._flying()
        if not n:
            return False
        (self.kafka.kill if len(self.kafka.nodes) > 1 else self.kafka.stop)(number)
        self.away = number, time.monotonic() + AWAY, at
        self.hits["broker"].append(n)
        return True

    def _flying(self):
        return sum(node.in_flight() for node in self.nodes if not node.paused)

    def heal_broker(self):
        """Waits until the one that was killed has all that the others have."""
        if not self.away:
            return
        number = self.away[0]
        node = self.kafka.nodes[number - 1]
        wait_until(lambda: self.look() or (node.running and node.ready()), 120, f"broker {number} is back", every=0.05)
        wait_until(lambda: self.look() or self.kafka.in_sync(self.topic), 120, f"broker {number} is in sync", every=0.1)
        now = rec.now_ns()
        self.faults.append(Fault("broker", 0, self.away[2], now, now))
        self.away = None

    def heal(self):
        """Until the faults are over, and then until nothing is left. A Heal."""
        self.heal_broker()
        wait_until(lambda: self.look() or not any(node.paused for node in self.nodes), 60, "all have woken up")
        began = time.monotonic()
        rows = waiting(self.url)
        wait_until(lambda: self.look() or not self.waiting(), 300, "everything is delivered")
        return Heal(time.monotonic() - began, 2 * (2 * self.lease + rows / 100) * PATIENCE + 30)

    def stop(self):
        for node in self.nodes:
            node.process.term()
        for node in self.nodes:
            status = node.process.wait(60)
            if status != 0:
                self.wrong.append(f"status: node {node.name} left with status {status}:\n{node.process.stderr()[-2000:]}")
            node.tail.close()
        self.nodes = []
        end = time.monotonic() + 10 * PATIENCE
        while (left := left_behind(self.url)) and time.monotonic() < end:
            time.sleep(0.05)
        self.wrong += left

    # -- The verdict --

    def judge(self, heal, least):
        events = rec.read(self.records)
        records = self.kafka.read(self.topic)
        h = KafkaHistory(self.all, history_of(records), events, self.faults, lease=self.lease, batch=self.batch,
                         heal=heal, fence=self.fence)
        figures = h.judge(raises=False)
        moved = wanderers(records)
        hit = {kind: [n for n in self.hits[kind] if n] for kind in ("kill", "pause", "broker")}
        figures = {
            "messages": figures["messages"], "keys": len({m.key for m in self.all.values()}),
            "partitions": len({r.partition for r in records}), "deliveries": figures["deliveries"],
            "claims": figures["claims"], "kills": figures["kills"], "in flight at a kill": mean(hit["kill"]),
            "pauses": figures["pauses"], "in flight at a pause": mean(hit["pause"]), "broker kills": len(hit["broker"]),
            "in flight at a broker kill": mean(hit["broker"]), "missed": self.misses, "lost": figures["lost"],
            "duplicates": figures["duplicates"], "bound of duplicates": figures["bound"], "unknown": len(h.unknown),
            "keys in two partitions": len(moved), "out of order": figures["out of order"],
            "epochs fallen": figures["epochs fallen"], "overlaps": figures["overlaps"],
            "stale writes of paused nodes": figures["zombie deliveries"] - sum(line in h.zombies for line in h.late),
            "late writes of unknown ones": len(h.late), "heal, seconds": round(heal.took, 1)}
        self.wrong += h.wrong + [f"partitions: key {key} of {topic} is in {places}" for (topic, key), places in
                                 list(moved.items())[:5]]
        if self.exactly_once and figures["duplicates"]:
            self.wrong.append(f"exactly once: {figures['duplicates']} duplicates")
        if self.fence and h.zombies:
            self.wrong.append(f"fence: {len(h.zombies)} stale writes")
        self.wrong += [f"least: {figures[name]} {name}, there should be {n}" for name, n in (least or {}).items()
                       if figures[name] < n]
        if self.rotated:
            figures["truncations"], figures["truncated messages"] = truncations(self.url)
            if not figures["truncations"]:
                self.wrong.append("least: no segment was emptied with messages in it")
        self.history = h
        return figures

    def play(self, least=None):
        """(figures, what is wrong)."""
        self.sluice.run("init", "--layout", self.layout, db=self.url)
        if self.rotated:
            audit(self.url)
        portion = self.messages // (len(self.plan) + 1)
        if not self.plan:  # what waits already is shared out evenly
            self.feed(self.messages)
        for _ in range(self.node_count):
            self.start()
        for i, fault in enumerate(self.plan):
            self.feed(portion)
            if self.rotated:
                next_segment(self.url)
            if not getattr(self, fault)():
                self.misses += 1
                self.plan.append(fault) if self.misses < 1000 else None
            if i % 10 == 9:
                self.say(f"{len(self.faults)} faults, {len(self.all)} messages, {self.misses} missed")
        self.feed(max(0, self.messages - len(self.all)))
        heal = self.heal()
        self.stop()
        return self.judge(heal, least), self.wrong

    def close(self):
        """Ends what a failure left running."""
        for node in self.nodes:
            if node.process.running:
                node.process.kill9()
        self.pg.drop_database(self.url)


def warm_up(kafka):
    """A cluster that was started a moment ago takes seconds for its first records."""
    topic = kafka.new_topic(partitions=3)
    for partition in range(3):
        kafka.produce(topic, b"1", partition=partition, acks="all")


def mean(numbers):
    return round(sum(numbers) / len(numbers), 1) if numbers else 0
