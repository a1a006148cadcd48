"""Judges what the ordered strategies promise, over a whole history with faults in it:

    h = History(messages, read_sink("out.jsonl"), record.read(folder), faults, lease=2.0, batch=20)
    verdict = h.judge(least={"messages": 1000, "kills": 3})     # raises BadHistory, or has the figures

What it reads: what was committed (checker.Message, with the times in `commits`), what the sink
recorded (one file, so that its order is the order of the appends), what the processes recorded
themselves (record.py), and what was done to them (Fault). Besides what checker.py judges:

    order        per key, deliveries are runs of consecutive messages; a run starts no later than one
                 behind the end of the last (`1 2 3 2 3 4` is fine, `1 3 2` is not), and only a new
                 owner starts one
    exclusion    per key, the times from TAKEN to RESULT of different workers never overlap
    epochs       per key, they never fall in the order of the sink
    zombies      a node that was paused for longer than its lease wakes up believing in it. What it
                 then does to the three above is excused, and counted, and bounded: after waking up
                 a worker begins one send at most, writes no more than a batch, and knows better
                 within ZOMBIE_WINDOW. Where the claim is an open transaction, the end of the
                 database's sessions is such a pause for everybody.
    lanes        tenures (GRANTED to RELEASED) of one lane never overlap, and their epochs rise
    claims       nobody loses a claim on what it sent without a fault
    record       each delivery was sent by who says so; what was reported as not sent is not there
    fairness     no key waits long while it is ready
    liveness     after the last fault all is delivered within a bound
    least        what was promised about the size of the history: a kill that hit nothing is none
"""
import bisect
import collections

import record as rec
from checker import BadHistory, complaints, some
from harness import WAITING

SECOND = 1_000_000_000
ZOMBIE_WINDOW = 1.0  # from waking up to knowing better: a slice of polling, and a busy machine
AWAKE = SECOND // 10  # what was begun so shortly after waking up may have been begun before
SENT_OR_SO = (None, rec.SENT, rec.VERDICTS.index("unknown"))
SHOWN_EVENTS = 24  # of an offending key, before and after

# What was done to a process (or, pid 0, to the database): kill, pause, pg, leave. `at` is before it
# took effect, `effective` after, `until` the end of a pause or an outage.
Fault = collections.namedtuple("Fault", "kind pid at effective until")
# The time between the last fault and the last delivery, and what it may be; all in seconds.
Heal = collections.namedtuple("Heal", "took bound")

Violation = collections.namedtuple("Violation", "text key at", defaults=(None, None))


class Flight:
    """One message in the hands of one worker, from TAKEN on."""

    __slots__ = "pid worker id key epoch taken send result verdict settled lost closed end".split()

    def __init__(self, event, key):
        self.pid, self.worker, self.id, self.key = event.pid, event.worker, event.id, key
        self.epoch, self.taken = event.epoch, event.at
        self.send = self.result = self.verdict = self.settled = self.lost = self.closed = self.end = None

    @property
    def owner(self):
        return self.pid, self.worker

    def open_at(self, when):
        return self.taken <= when and (self.closed is None or self.closed > when)


class Claim:
    """Flights of one key in the hands of one worker, as long as there was one at any time."""

    __slots__ = "pid worker key start end".split()

    def __init__(self, flight):
        self.pid, self.worker, self.key = flight.pid, flight.worker, flight.key
        self.start, self.end = flight.taken, flight.end


class History:
    """lease is in seconds; batch the most that one worker takes.

    ordered       the strategy keeps the order of a key
    epochs        each change of the owner raises the epoch; else a claim is as young as its TAKEN
    session_held  the claim ends with the database session
    commits       id -> when its commit returned
    dead          ids of dead letters
    heal          Heal, if the history had an end that was waited for
    """

    signed = True  # each delivery says who made it

    def __init__(self, messages, deliveries, events, faults=(), *, lease, batch, ordered=True, epochs=True,
                 session_held=False, commits=None, dead=(), heal=None):
        self.messages, self.deliveries, self.events = messages, deliveries, events
        life = getattr(events, "life", lambda pid, at: pid)  # a pid may have come again
        self.faults = sorted((f._replace(pid=life(f.pid, f.at)) for f in faults), key=lambda f: f.at)
        self.lease, self.batch = lease, batch
        self.ordered, self.epochs, self.session_held = ordered, epochs, session_held
        self.commits, self.dead, self.heal = commits or {}, set(dead), heal
        self.kills = {f.pid: f for f in self.faults if f.kind == "kill"}
        # A lease may be a good part through when its holder is stopped.
        self.pauses = [f for f in self.faults if f.kind == "pause" and f.until - f.at > lease * SECOND / 2]
        self.outages = [f for f in self.faults if f.kind == "pg"]
        self.pauses_of = collections.defaultdict(list)
        for f in self.pauses:
            self.pauses_of[f.pid].append(f)
        self.odd = []  # events that fit nowhere
        self.flights = self._fly()
        self.flights_of = collections.defaultdict(list)
        for f in self.flights:
            self.flights_of[f.pid].append(f)
        self.flight_of = self._match()  # line -> its flight

    def key_of(self, id):
        """Its key; a message without one, or without order, is alone with itself."""
        message = self.messages.get(id)
        return message.key if self.ordered and message and message.key is not None else ("no key", id)

    # -- What happened ---------------------------------------------------------------------------

    def _fly(self):
        """From TAKEN to the end of the turn: a worker has one batch at a time."""
        flights, current, last, turns = [], {}, {}, collections.defaultdict(list)
        for e in self.events:
            before, last[e.pid, e.worker] = last.get((e.pid, e.worker)), e
            if e.kind in (rec.GRANTED, rec.RELEASED):
                continue
            if e.kind == rec.TAKEN and before and before.kind != rec.TAKEN:
                for flight in turns.pop((e.pid, e.worker), ()):
                    flight.closed = flight.closed or e.at
            flight = current.get((e.pid, e.worker, e.id))
            if e.kind == rec.TAKEN:
                current[e.pid, e.worker, e.id] = flight = Flight(e, self.key_of(e.id))
                turns[e.pid, e.worker].append(flight)
                flights.append(flight)
            elif flight is None:
                self.odd.append(Violation(f"process {e.pid}: {rec.KINDS[e.kind]} of message {e.id} by {e.worker},"
                                          " who had not taken it", self.key_of(e.id), e.at))
            else:
                self._note(flight, e)
        for f in flights:
            f.end = self._end(f, last[f.pid, f.worker].at)
        return flights

    @staticmethod
    def _note(flight, e):
        if e.kind == rec.SEND:
            flight.send = e.at
        elif e.kind == rec.RESULT:
            flight.result, flight.verdict = e.at, e.extra
        elif e.kind == rec.SETTLED:
            flight.settled = flight.closed = e.at
        else:
            flight.lost = flight.closed = flight.lost or e.at

    def _end(self, flight, last):
        """Until when it was surely in the worker's hands: the row may be gone before SETTLED."""
        known = [t for t in (flight.result, flight.lost, flight.settled) if t is not None]
        if known:
            return min(known)
        kill = self.kills.get(flight.pid)
        return max(flight.taken, kill.at) if kill and not flight.closed else flight.closed or last

    def _match(self):
        """Each delivery and the flight that sent it: by worker, epoch and message, and in order.
        Who was killed may or may not have delivered."""
        flown = collections.defaultdict(list)
        for f in self.flights:
            if f.send is not None and f.verdict in SENT_OR_SO:
                flown[f.worker if self.signed else "", f.epoch, f.id].append(f)
        made = collections.defaultdict(list)
        for d in self.deliveries:
            made[d.worker[-18:] if self.signed else "", d.epoch, d.id].append(d)
        found = {}
        for place, deliveries in made.items():
            flights = flown.get(place, [])
            spare = len(flights) - len(deliveries)
            for f in [f for f in flights if f.verdict != rec.SENT][:max(spare, 0)]:
                flights.remove(f)
            found.update((d.line, f) for d, f in zip(deliveries, flights))
        self.unsent = [d for d in self.deliveries if d.line not in found]
        matched = {id(f) for f in found.values()}
        self.undelivered = [f for f in self.flights if f.verdict == rec.SENT and id(f) not in matched]
        return found

    def hit(self, fault):
        """The flights that a fault interrupted."""
        if fault.kind == "kill":
            return [f for f in self.flights_of[fault.pid] if f.closed is None]
        if fault.kind == "pause":
            return [f for f in self.flights_of[fault.pid] if f.open_at(fault.effective)]
        if fault.kind == "pg":
            return [f for f in self.flights if f.taken <= fault.until and (f.closed is None or f.closed > fault.at)
                    and (f.pid not in self.kills or self.kills[f.pid].effective > fault.at)]
        return []

    def in_flight(self):
        """Ids that may be delivered once more, for each time that their owner was hit. A worker that
        was stopped right after it took them says so when it wakes up."""
        found = []
        for fault in self.faults:
            if fault.kind != "pause":
                found += [f.id for f in self.hit(fault)]
            elif fault in self.pauses:
                found += [f.id for f in self.flights_of[fault.pid] if f.taken <= fault.until + AWAKE
                          and (f.closed is None or f.closed > fault.effective)]
        return found

    # -- Excuses ---------------------------------------------------------------------------------

    def pause_over(self, pid, start, end):
        """The pause of a process that meets this time, if any."""
        for f in self.pauses_of[pid]:
            if f.at <= end and start <= f.until + AWAKE:
                return f
        return None

    def outage_over(self, start, end, slack=0.0):
        """The same for the database; `slack` in seconds after it is back."""
        for f in self.outages:
            if f.at <= end and start <= f.until + int(slack * SECOND):
                return f
        return None

    def excuse(self, pid, start, end):
        return self.pause_over(pid, start, end) or (self.session_held and self.outage_over(start, end)) or None

    def excuse_late(self, delivery):
        """For sinks that may carry out a send after they were given up (see kafkarun.py)."""
        return None

    # -- Order and epochs ------------------------------------------------------------------------

    def _by_key(self):
        """key -> its deliveries in the order of the sink."""
        found = collections.defaultdict(list)
        for d in self.deliveries:
            if d.id in self.messages:
                found[self.key_of(d.id)].append(d)
        return found

    def _rank(self, delivery):
        """How young its claim is; None if nobody knows."""
        flight = self.flight_of.get(delivery.line)
        return delivery.epoch if self.epochs else flight and flight.taken

    def find_zombies(self):
        """Fills self.zombies, deliveries behind one of a younger claim; yields those without an
        excuse, which are epochs that fell."""
        self.zombies = {}
        for key, deliveries in self._by_key().items():
            youngest = None
            for d in deliveries:
                if self._rank(d) is None:
                    continue
                if youngest is None or self._rank(d) >= self._rank(youngest):
                    youngest = d
                    continue
                flight = self.flight_of.get(d.line)
                excuse = (flight and self.excuse(flight.pid, flight.taken, flight.result or flight.end)
                          or self.excuse_late(d))
                self.zombies[d.line] = excuse
                if not excuse:
                    yield Violation(f"key {key}: line {d.line} (message {d.id}, {d.worker}, epoch {d.epoch}) stands"
                                    f" behind line {youngest.line} (message {youngest.id}, {youngest.worker}, epoch"
                                    f" {youngest.epoch})", key, flight and flight.end)

    def _sequence(self):
        """id -> its place in its key, from 0."""
        by_key = collections.defaultdict(list)
        for id in sorted(self.messages.keys() - self.dead):
            by_key[self.key_of(id)].append(id)
        return {id: n for ids in by_key.values() for n, id in enumerate(ids)}

    def _owner(self, delivery):
        """Whose turn it was: with epochs, any worker of a process may go on in one."""
        flight = self.flight_of.get(delivery.line)
        pid = flight.pid if flight else 0
        return (pid, delivery.epoch) if self.epochs else (pid, delivery.worker)

    def order(self):
        place = self._sequence()
        for key, deliveries in self._by_key().items():
            before = highest = None
            back = []  # since it fell back behind the highest
            for d in deliveries:
                if d.line in self.zombies or d.id not in place:
                    continue
                flight = self.flight_of.get(d.line)
                at = flight and flight.end
                text = f"key {key}: line {d.line} delivers message {d.id}, number {place[d.id] + 1} of its key,"
                if before is None:
                    if place[d.id] != 0:
                        yield Violation(f"{text} first", key, at)
                elif (place[d.id] > place[before.id] + 1
                      and not (place[d.id] <= place[highest.id] + 1 and all(map(self.excuse_late, back)))):
                    yield Violation(f"{text} after number {place[before.id] + 1} (line {before.line})", key, at)
                elif (place[d.id] <= place[before.id] and self._owner(d) == self._owner(before)
                      and not self._interrupted(d, before)):
                    if self.excuse_late(d):
                        continue
                    yield Violation(f"{text} after number {place[before.id] + 1} (line {before.line}), again by"
                                    f" {d.worker} in epoch {d.epoch}", key, at)
                before = d
                if highest is None or place[d.id] > place[highest.id]:
                    highest, back = d, []
                else:
                    back.append(d)

    def _interrupted(self, delivery, before):
        """Was the owner stopped, or the database away, between two deliveries? Then what was not settled
        is taken again, and in the same epoch if nobody else took it meanwhile."""
        a, b = self.flight_of.get(before.line), self.flight_of.get(delivery.line)
        return a and b and (self.pause_over(a.pid, a.taken, b.taken) or self.outage_over(a.taken, b.taken))

    # -- Exclusion -------------------------------------------------------------------------------

    def _claims(self):
        """key -> claims in the order of their start."""
        found, current = collections.defaultdict(list), {}
        for f in sorted(self.flights, key=lambda f: f.taken):
            claim = current.get((f.owner, f.key))
            if claim and f.taken <= claim.end:
                claim.end = max(claim.end, f.end)
            else:
                current[f.owner, f.key] = claim = Claim(f)
                found[f.key].append(claim)
        return found

    def exclusion(self):
        """Fills self.excused, overlaps for which a pause is to blame; yields the others."""
        self.excused = []
        for key, claims in self._claims().items():
            active = []
            for claim in claims:
                active = [c for c in active if c.end > claim.start]
                for other in active:
                    if (other.pid, other.worker) == (claim.pid, claim.worker):
                        continue
                    if self.excuse(other.pid, other.start, claim.start) or \
                            self.excuse(claim.pid, claim.start - AWAKE, claim.start):
                        self.excused.append((other, claim))
                        continue
                    until = min(other.end, claim.end)
                    yield Violation(f"key {key}: {claim.worker} (process {claim.pid}) has it beside {other.worker}"
                                    f" (process {other.pid}) for {(until - claim.start) / 1e6:.3f} ms", key,
                                    claim.start)
                active.append(claim)

    # -- Zombies ---------------------------------------------------------------------------------

    def _taken_over(self):
        """key -> (times, flights) of TAKEN, to see who took a key after whom."""
        found = collections.defaultdict(list)
        for f in sorted(self.flights, key=lambda f: f.taken):
            found[f.key].append(f)
        return {key: ([f.taken for f in flights], flights) for key, flights in found.items()}

    def zombie_bounds(self):
        """What paused workers did after they woke up, with claims that were someone else's by then."""
        taken = self._taken_over()
        begun, written = collections.Counter(), collections.Counter()
        for f in self.flights:
            for pause in self.pauses_of[f.pid]:
                if not f.taken < pause.effective or f.end < pause.until:
                    continue
                times, flights = taken[f.key]
                between = flights[bisect.bisect(times, pause.at):bisect.bisect(times, f.end)]
                if not any(g.owner != f.owner for g in between):
                    continue
                if f.send is not None and f.send > pause.until:
                    begun[pause, f.worker] += 1
                again = any(pause.at < p.at < f.end for p in self.pauses_of[f.pid])
                late = (f.end - pause.until) / SECOND
                if late > ZOMBIE_WINDOW and not again and not self.outage_over(pause.until, f.end, self.lease):
                    yield Violation(f"{f.worker} (process {f.pid}) held message {f.id} for {late:.3f} s after it woke"
                                    " up, and it was someone else's", f.key, f.end)
        for line, excuse in self.zombies.items():
            if excuse and excuse.kind != "late":
                written[excuse, self.flight_of[line].worker] += 1
        self.zombie_sends = sum(begun.values())
        for (pause, worker), n in begun.items():
            if n > 1:
                yield Violation(f"{worker} (process {pause.pid}) began {n} sends after it woke up, of what was not its"
                                " own any more")
        for (pause, worker), n in written.items():
            if n > self.batch:
                yield Violation(f"{worker} delivered {n} messages after a {pause.kind} of process {pause.pid}, more"
                                f" than its batch of {self.batch}, which were not its own any more")

    # -- Lanes -----------------------------------------------------------------------------------

    def _tenures(self):
        """lane -> [pid, epoch, start, end] in the order of their start."""
        found, current, last = collections.defaultdict(list), {}, {}
        for e in self.events:
            last[e.pid] = e.at
            if e.kind == rec.GRANTED and not self._just_awake(e):
                current[e.pid, e.id] = tenure = [e.pid, e.epoch, e.at, None]
                found[e.id].append(tenure)
            elif e.kind == rec.RELEASED and (e.pid, e.id) in current:
                current.pop((e.pid, e.id))[3] = e.at
        for tenure in (t for tenures in found.values() for t in tenures if t[3] is None):
            kill = self.kills.get(tenure[0])
            tenure[3] = max(kill.at, tenure[2]) if kill else last[tenure[0]]
        return found

    def _just_awake(self, event):
        """What it says then may be long over."""
        return any(f.until <= event.at <= f.until + AWAKE for f in self.pauses_of[event.pid])

    def lanes(self):
        """An outage that lasts longer than the leases is an excuse here: that nothing was sent
        meanwhile is seen in the flights."""
        self.tenures = 0
        for lane, tenures in self._tenures().items():
            self.tenures += len(tenures)
            for a, b in zip(tenures, tenures[1:]):
                if b[1] <= a[1]:
                    yield Violation(f"lane {lane} was granted with epoch {b[1]} to process {b[0]} after epoch {a[1]} to"
                                    f" process {a[0]}", ("lane", lane), b[2])
                if a[0] != b[0] and a[3] > b[2] and not (self.pause_over(a[0], a[2], b[2]) or
                                                          self.outage_over(a[2], b[2], self.lease)):
                    yield Violation(f"lane {lane} was granted to process {b[0]} (epoch {b[1]})"
                                    f" {(a[3] - b[2]) / 1e6:.3f} ms before process {a[0]} (epoch {a[1]}) let go of it",
                                    ("lane", lane), b[2])

    # -- Claims, record, fairness, liveness ------------------------------------------------------

    def claims_kept(self):
        """A sink that is slow may cost a claim; but then nothing was sent."""
        for f in self.flights:
            if not f.lost or f.verdict not in SENT_OR_SO:
                continue
            if self.pause_over(f.pid, f.taken, f.lost) or self.outage_over(f.taken, f.lost, self.lease):
                continue
            yield Violation(f"{f.worker} (process {f.pid}) lost message {f.id}, epoch {f.epoch},"
                            f" {(f.lost - f.taken) / SECOND:.3f} s after it took it, without a fault", f.key, f.lost)

    def record_agrees(self):
        yield from self.odd
        for d in self.unsent:
            yield Violation(f"line {d.line} delivers message {d.id}, which {d.worker} did not send in epoch {d.epoch}",
                            self.key_of(d.id))
        for f in self.undelivered:
            yield Violation(f"{f.worker} (process {f.pid}) reported message {f.id} as sent, which the sink does not"
                            " have", f.key, f.end)

    def _down(self, start, end):
        """For how long the database was away in this time."""
        return sum(max(0, min(end, f.until) - max(start, f.at)) for f in self.outages)

    def waits(self):
        """(seconds, key, when it was over) for each message: from when it was the first of its key
        and committed, until it was delivered for the first time; less what the database was away."""
        first = {}
        for d in self.deliveries:
            flight = self.flight_of.get(d.line)
            if flight and d.id not in first:
                first[d.id] = flight.end
        previous = {}
        for id in sorted(self.commits.keys() & first.keys()):
            key, end = self.key_of(id), first[id]
            ready = max(self.commits[id], previous.get(key, 0))
            previous[key] = max(end, previous.get(key, 0))
            yield (end - ready - self._down(ready, end)) / SECOND, key, end

    def fairness(self):
        """The bound grows with what there was to do for those who did it: 4 x keys / (claims a
        second), at least 10 s, and the leases of those who were hit."""
        waits = list(self.waits())
        self.longest_wait = max((w[0] for w in waits), default=0.0)
        if not waits:
            return
        seconds = max((self.events[-1].at - self.events[0].at) / SECOND, 0.001)
        keys = len({self.key_of(id) for id in self.messages if self.messages[id].key is not None})
        rate = sum(len(claims) for claims in self._claims().values()) / seconds
        bound = max(10.0, 4 * keys / rate) + (2 * self.lease if self.faults else 0)
        for seconds, key, end in waits:
            if seconds > bound:
                yield Violation(f"key {key} waited {seconds:.1f} s, more than {bound:.1f} s", key, end)

    def liveness(self):
        if self.heal and self.heal.took > self.heal.bound:
            yield Violation(f"all was delivered {self.heal.took:.1f} s after the last fault, more than"
                            f" {self.heal.bound:.1f} s")

    # -- The verdict -----------------------------------------------------------------------------

    def _figures(self, summary):
        hits = {f: len(self.hit(f)) for f in self.faults}
        count = collections.Counter(f.kind for f, n in hits.items() if n and
                                    (f.kind != "pause" or f.until - f.effective > self.lease * SECOND))
        killed = [n for f, n in hits.items() if f.kind == "kill" and n]
        return {
            "messages": summary.committed, "deliveries": summary.lines, "duplicates": summary.duplicates,
            "bound": len(self.in_flight()), "torn": summary.torn, "claims": len(self.flights), "kills": count["kill"],
            "in flight": round(sum(killed) / len(killed), 1) if killed else 0, "pauses": count["pause"],
            "restarts": len(self.outages), "leaves": sum(f.kind == "leave" for f in self.faults),
            "workers": len(summary.workers),
        }

    def judge(self, least=None, raises=True):
        """The figures, as a dict; `least` says what they must reach. Raises BadHistory, or leaves
        what is wrong in `self.wrong`."""
        found = {}

        def look(kind, generator):
            found[kind] = list(generator)
        look("epochs", self.find_zombies() if self.ordered else ())
        self.zombies = getattr(self, "zombies", {})
        summary, wrong = complaints(self.messages, self.deliveries, self.dead, self.in_flight(),
                                    torn_max=sum(f.kind == "kill" for f in self.faults), excused=self.zombies)
        look("order", self.order() if self.ordered else ())
        look("exclusion", self.exclusion())
        look("zombies", self.zombie_bounds())
        for kind, fn in (("lanes", self.lanes), ("claims", self.claims_kept), ("record", self.record_agrees),
                         ("fairness", self.fairness), ("liveness", self.liveness)):
            look(kind, fn())
        figures = self._figures(summary)
        figures.update({
            "lost": len(self.messages.keys() - {d.id for d in self.deliveries} - self.dead),
            "out of order": len(found["order"]), "epochs fallen": len(found["epochs"]),
            "overlaps": len(found["exclusion"]), "zombie overlaps": len(self.excused),
            "zombie sends": self.zombie_sends, "zombie deliveries": len(self.zombies) - len(found["epochs"]),
            "tenures": self.tenures, "longest wait": round(self.longest_wait, 2)})
        for kind, violations in found.items():
            wrong += some(kind, (v.text for v in violations))
            wrong += self._shown(violations)
        wrong += [f"least: {figures[name]} {name}, there should be {n}" for name, n in
                  {"messages": 1, "claims": 1, **(least or {})}.items() if figures[name] < n]
        figures["violations"] = sum(map(len, found.values()))
        self.wrong = wrong
        if wrong and raises:
            raise BadHistory("\n".join([str(summary), *wrong]))
        return figures

    def _shown(self, violations):
        """The history of the first offending key, near the place."""
        first = next((v for v in violations if v.key is not None), None)
        return self.near(first.key, first.at) if first else []

    def near(self, key, at=None):
        """Lines that tell what was done with a key or a lane, around a time; and the faults meanwhile."""
        start = self.events[0].at if self.events else 0
        lines = [(e.at, f"{e.worker:10} {rec.KINDS[e.kind]:8} {e.id} epoch {e.epoch}"
                        + (f" {rec.VERDICTS[e.extra]}" if e.kind == rec.RESULT else "") + f"  (process {e.pid})")
                 for e in self.events if key == (self.key_of(e.id) if e.kind < rec.GRANTED else ("lane", e.id))]
        lines += [(self.flight_of[d.line].end, f"{d.worker:10} line {d.line} has {d.id} epoch {d.epoch}")
                  for d in self.deliveries if self.key_of(d.id) == key and d.line in self.flight_of]
        lines += [(t, f"{'producer':10} committed {id}") for id, t in self.commits.items() if self.key_of(id) == key]
        lines.sort(key=lambda line: line[0])
        i = bisect.bisect([t for t, _ in lines], at) if at else 0
        lines = lines[max(0, i - SHOWN_EVENTS):i + SHOWN_EVENTS]
        if lines:
            for f in self.faults:
                if f.at <= lines[-1][0] and f.until >= lines[0][0] - self.lease * SECOND:
                    lines.append((f.at, f"---------- {f.kind} of {f.pid or 'PostgreSQL'}, until"
                                        f" {(f.until - start) / SECOND:.6f}"))
        return [f"    {(t - start) / SECOND:12.6f}  {text}" for t, text in sorted(lines)]


# -- Nothing is left behind ----------------------------------------------------------------------

LEFT_BEHIND = {  # what must be 0 after everybody stopped
    "messages": WAITING,
    "dead letters": "SELECT count(*) FROM {t}_dead",
    "blocked keys": "SELECT count(*) FROM {t}_keys",
    "claims of keys": "SELECT count(*) FROM {t}_claims WHERE ends_at > clock_timestamp()",
    "owned lanes": "SELECT count(*) FROM {t}_lanes l JOIN {t}_nodes n ON n.session = l.owner",
    "live nodes": "SELECT count(*) FROM {t}_nodes WHERE lives_until > clock_timestamp()",
    "advisory locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
                      " (SELECT oid FROM pg_database WHERE datname = current_database())",
    "open transactions": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                         " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'",
    "sessions": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
}


def left_behind(url, table="outbox", ask=None):
    """What is still there, as lines; none is right. `ask` runs a query and returns rows."""
    if ask is None:
        from harness import query
        ask = query
    tables = {name for (name,) in ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}
    found = []
    for what, sql in LEFT_BEHIND.items():
        name = sql.partition(" FROM ")[2].split()[0].format(t=table)
        if not name.startswith("pg_") and name not in tables:
            continue
        n = ask(url, sql.format(t=table))[0][0]
        if n:
            found.append(f"left behind: {n} {what}")
    return found
