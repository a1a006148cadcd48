"""Reads what the processes recorded (src/core/record.h): SLUICE_RECORD=DIR makes each of them keep
a file there that survives SIGKILL.

    events = read(folder)               # afterwards: of all processes, in the order of time
    tail = Tail(folder, pid)            # meanwhile: what is this process doing?
    tail.follow().in_flight()

Times are nanoseconds of CLOCK_BOOTTIME, as now_ns() has them.
"""
import collections
import glob
import os
import struct
import time

TAKEN, SEND, RESULT, SETTLED, LOST, GRANTED, RELEASED = range(1, 8)
KINDS = ["", "TAKEN", "SEND", "RESULT", "SETTLED", "LOST", "GRANTED", "RELEASED"]
VERDICTS = ["pending", "sent", "retry", "dead", "unknown", "released", "held"]
SENT = 1

MAGIC = int.from_bytes(b"SLREC1", "little")
SLOT = 64
HEAD = struct.Struct("<QqqQ32x")  # magic, pid, start, events that were begun
BODY = struct.Struct("<qqQqiH18sQ")
assert HEAD.size == SLOT and BODY.size == SLOT

Event = collections.namedtuple("Event", "at pid worker kind id key epoch extra")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class BadRecord(AssertionError):
    """A file that is no record, or one with holes."""


LIFE = 1 << 32  # the second process of a pid has this added to it, the third twice


class Events(list):
    """Of all processes, in the order of time. `torn` counts those that a kill cut off, `pids` are
    the processes that recorded anything; in a long run a pid may come again."""

    def __init__(self, events=(), torn=0, pids=(), starts=None):
        super().__init__(events)
        self.torn = torn
        self.pids = set(pids)
        self.starts = starts or {}  # pid -> when its processes began

    def life(self, pid, at):
        """Which process had this pid at that time?"""
        return pid + LIFE * max(0, sum(start <= at for start in self.starts.get(pid, ())) - 1)


def key_hash(key):
    """As the events have it; 0 for none."""
    if key is None:
        return 0
    h = 0xcbf29ce484222325
    for byte in key.encode():
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h or 1


def pack(number, at, worker, kind, id, key=0, epoch=0, extra=0):
    """An event as a process writes it, for tests."""
    return BODY.pack(at, id, key, epoch, extra, kind, worker.encode()[-18:], MAGIC + number + 1)


def _decode(data, first, pid):
    """Events of `data`, whose first one has the number `first`; None for a torn one."""
    for number, (at, id, key, epoch, extra, kind, worker, seal) in enumerate(BODY.iter_unpack(data), first):
        if seal == 0:
            yield None
        elif seal != MAGIC + number + 1 or not TAKEN <= kind <= RELEASED:
            raise BadRecord(f"event {number} of process {pid} is no event")
        else:
            yield Event(at, pid, worker.rstrip(b"\0").decode(), kind, id, key, epoch, extra)


def _head(f, path):
    """(pid, start, events that were begun), or None while the process has not begun."""
    f.seek(0)
    data = f.read(SLOT)
    if len(data) < SLOT or data[:8] == bytes(8):
        return None
    magic, pid, start, begun = HEAD.unpack(data)
    if magic != MAGIC:
        raise BadRecord(f"{path} is no record")
    return pid, start, begun


def read_file(path):
    """(pid, start, events, torn) of one file."""
    with open(path, "rb") as f:
        head = _head(f, path)
        if not head:
            return 0, 0, [], 0
        pid, start, begun = head
        data = f.read(begun * SLOT)
    if len(data) < begun * SLOT:
        raise BadRecord(f"{path} ends before its last event")
    all = list(_decode(data, 0, pid))
    whole = [e for e in all if e]
    return pid, start, whole, len(all) - len(whole)


def read(folder):
    events, torn, starts = [], 0, collections.defaultdict(list)
    files = [read_file(path) for path in glob.glob(os.path.join(folder, "*.rec"))]
    for pid, start, some, cut in sorted((f for f in files if f[0]), key=lambda f: f[:2]):
        again = LIFE * len(starts[pid])
        events += [e._replace(pid=pid + again) for e in some] if again else some
        torn += cut
        starts[pid].append(start)
    events.sort(key=lambda e: e.at)
    return Events(events, torn, starts, starts)


class Tail:
    """Follows the record of a process that is still alive."""

    def __init__(self, folder, pid):
        self._pattern = os.path.join(folder, f"{pid}-*.rec")
        self._file = None
        self._next = 0
        self.pid = pid
        self.open = {}  # (worker, id) -> its last event, of what is not settled
        self.last = None  # the last event of all

    def _reach(self):
        """How many events were begun, or 0 if there is no file yet."""
        if not self._file:
            found = glob.glob(self._pattern)
            if not found:
                return 0
            newest = max(found, key=lambda path: int(path.rpartition("-")[2].partition(".")[0]))
            self._file = open(newest, "rb", buffering=0)
        head = _head(self._file, self._file.name)
        return head[2] if head else 0

    def follow(self):
        """Reads on, up to the first event that is not whole yet."""
        begun = self._reach()
        if begun > self._next:
            self._file.seek((1 + self._next) * SLOT)
            for event in _decode(self._file.read((begun - self._next) * SLOT), self._next, self.pid):
                if not event:
                    break
                self._next += 1
                self._add(event)
        return self

    def _add(self, event):
        self.last = event
        if event.kind in (TAKEN, SEND, RESULT):
            self.open[event.worker, event.id] = event
        elif event.kind in (SETTLED, LOST):
            self.open.pop((event.worker, event.id), None)

    def in_flight(self, *kinds):
        """Ids of messages that were taken and not settled; of those whose last event is of one of
        these kinds."""
        return [id for (_, id), e in self.open.items() if not kinds or e.kind in kinds]

    def close(self):
        if self._file:
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
