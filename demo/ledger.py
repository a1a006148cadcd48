"""What arrived: reads the file that the nodes append to, and counts."""
import collections
import json

IN_ORDER, LATE, AGAIN = "in order", "late", "again"

Arrival = collections.namedtuple("Arrival", "id key seq worker kind at")


class Tail:
    """The whole lines that were appended to a file since the last look."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "a+b")  # it may be the first to come
        self.rest = b""

    def lines(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        return lines

    def close(self):
        self.file.close()


class Ledger:
    """Every delivery, judged on arrival. A sequence number that was seen before is a duplicate; a
    new one that is not above all seen ones of its key is an order violation."""

    def __init__(self, history=32):
        self.seen = collections.defaultdict(set)
        self.highest = collections.defaultdict(int)
        self.history = collections.defaultdict(lambda: collections.deque(maxlen=history))
        self.by_node = collections.Counter()
        self.kinds = collections.Counter()
        self.latencies = []
        self.ids = set()

    @property
    def delivered(self):
        return self.kinds[IN_ORDER] + self.kinds[LATE]

    @property
    def duplicates(self):
        return self.kinds[AGAIN]

    @property
    def violations(self):
        return self.kinds[LATE]

    def judge(self, key, seq):
        if seq in self.seen[key]:
            return AGAIN
        return LATE if seq <= self.highest[key] else IN_ORDER

    def read(self, line, now):
        """Takes one line of the file; returns its Arrival, or None for what is no message: a
        process that is killed inside its write leaves a torn line, and the message comes again."""
        try:
            m = json.loads(line)
            key, seq, sent = m["key"], m["payload"]["seq"], m["payload"]["at"]
            arrival = Arrival(m["id"], key, seq, m["worker"], self.judge(key, seq), now)
        except (ValueError, KeyError, TypeError):
            return None
        self.note(arrival)
        if arrival.kind != AGAIN:
            self.latencies.append(max(0.0, now - sent))
        return arrival

    def note(self, a):
        self.kinds[a.kind] += 1
        self.by_node[a.worker.split("/")[0]] += 1
        self.seen[a.key].add(a.seq)
        self.highest[a.key] = max(self.highest[a.key], a.seq)
        self.history[a.key].append((a.seq, a.kind))
        self.ids.add(a.id)

    def messages(self):
        """All (key, seq) that arrived."""
        return {(key, seq) for key, seqs in self.seen.items() for seq in seqs}

    def percentiles(self, *shares):
        """In seconds, one for each share; 0 while nothing has arrived."""
        ordered = sorted(self.latencies) or [0.0]
        return [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in shares]


class Rates:
    """Counters over the last second, as rates."""

    def __init__(self, seconds=1.0):
        self.seconds = seconds
        self.samples = collections.deque()

    def sample(self, now, counters):
        self.samples.append((now, dict(counters)))
        while now - self.samples[0][0] > self.seconds:
            self.samples.popleft()

    def of(self, name):
        if len(self.samples) < 2:
            return 0.0
        (first, before), (last, after) = self.samples[0], self.samples[-1]
        return (after.get(name, 0) - before.get(name, 0)) / max(last - first, 0.001)
